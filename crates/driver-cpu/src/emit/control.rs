//! Items at the level at which they are emitted: branches and loops as for one lane, and what barriers leave behind.

use super::conditions::Terms;
use super::{Emitter, bounds, clif_type, slots};
use crate::calls::SubgroupCode;
use crate::shape::Level;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder};
use vyre_foundation::{Scope, Type};
use vyre_lower::{Item, ItemId, RegionId, ValueId};

/// A loop.
#[derive(Clone, Copy)]
pub(super) struct LoopParts<'l> {
    pub(super) id: ItemId,
    pub(super) guard: ValueId,
    pub(super) first: &'l [ValueId],
    pub(super) body: RegionId,
    pub(super) next: &'l [ValueId],
    pub(super) again: ValueId,
}

impl Emitter<'_, '_> {
    /// An item at the level at which it is emitted.
    pub(super) fn control(&mut self, level: Level, id: ItemId) {
        match self.shape.kernel.item(id) {
            // All lanes take it, and there is no other.
            Item::If { then, .. } if self.proven.contains(&bounds::Access::Item(id)) => {
                self.region(level, then, &[]);
            }
            Item::If { cond, then, otherwise, yields } => {
                self.branch(level, id, cond, [then, otherwise], &yields)
            }
            Item::Loop { guard, first, body, next, again } => {
                let parts = LoopParts { id, guard, first: &first, body, next: &next, again };
                if level == Level::Lane { self.repeat_lanes(&parts) } else { self.repeat(level, &parts) }
            }
            Item::Barrier { .. } => {}
            Item::UniformLoad { scope, buffer, index } => {
                let value = match scope {
                    Scope::Grid => self.load_for_all(id, buffer, index),
                    Scope::Workgroup => self.load(bounds::Access::Item(id), buffer, index),
                };
                if let Some(row) = self.shape.result(id, 0) {
                    self.define(row, value);
                }
            }
            Item::Ballot { .. } => {
                let wide = self.shape.kernel.subgroup_size == 64;
                self.subgroup(id, SubgroupCode::Ballot { wide });
            }
            Item::Shuffle { value, .. } => {
                let wide = slots::width(self.shape.kernel.value(value).ty()) == 8;
                self.subgroup(id, SubgroupCode::Shuffle { wide });
            }
            Item::Reduce { op, value } => {
                self.subgroup(id, SubgroupCode::Reduce(op, self.shape.kernel.value(value).ty()));
            }
            item => self.effect(id, item),
        }
    }

    /// The results of control that are values at its level, by number.
    fn merged(&self, id: ItemId, level: Level, count: usize) -> Vec<usize> {
        (0..count).filter(|i| self.shape.level_of(id, *i) == Some(level)).collect()
    }

    fn branch(
        &mut self,
        level: Level,
        id: ItemId,
        cond: ValueId,
        arms: [RegionId; 2],
        yields: &[(ValueId, ValueId)],
    ) {
        let merged = self.merged(id, level, yields.len());
        let [then, otherwise, join] = [0; 3].map(|_| self.b.create_block());
        self.go(cond, (then, &[]), (otherwise, &[]));
        let (had_read, mut has_read) = (self.has_read, false);
        for (arm, block, region) in [(0, then, arms[0]), (1, otherwise, arms[1])] {
            let pick = |pair: &(ValueId, ValueId)| if arm == 0 { pair.0 } else { pair.1 };
            self.b.switch_to_block(block);
            self.has_read = had_read;
            let mark = self.log.len();
            let keeps = self.keeps(id, level, yields.iter().map(pick));
            self.region(level, region, &keeps);
            let values: Vec<BlockArg> = merged.iter().map(|i| self.get(pick(&yields[*i])).into()).collect();
            self.b.ins().jump(join, &values);
            self.forget(mark);
            has_read |= self.has_read;
        }
        self.has_read = has_read;
        let types = merged.iter().map(|i| self.shape.kernel.value(yields[*i].0).ty()).collect::<Vec<_>>();
        self.define_results(id, join, &merged, &types, level);
    }

    /// Goes on behind control and makes its results known: those at its level as parameters of the block, the others in
    /// their slots.
    fn define_results(&mut self, id: ItemId, block: Block, merged: &[usize], types: &[Type], level: Level) {
        self.b.switch_to_block(block);
        let values =
            types.iter().map(|ty| self.b.append_block_param(block, clif_type(*ty))).collect::<Vec<_>>();
        for (i, value) in merged.iter().zip(values) {
            if let Some(row) = self.shape.result(id, *i) {
                self.define(row, value);
            }
        }
        self.note_kept(id, level);
    }

    /// Notes where the results are defined that are in slots only.
    fn note_kept(&mut self, id: ItemId, level: Level) {
        if level == Level::Lane {
            return;
        }
        for i in 0..self.shape.result_count(id) {
            for row in [self.shape.param(id, i), self.shape.result(id, i)].into_iter().flatten() {
                self.defined_in[row.index()] = self.segment;
            }
        }
    }

    pub(super) fn repeat(&mut self, level: Level, parts: &LoopParts<'_>) {
        let LoopParts { id, guard, first, body, next, again } = *parts;
        let merged = self.merged(id, level, first.len());
        let counted = self.counted(id, next, again).filter(|_| level == Level::Lane);
        let place = counted.as_ref().and_then(|counted| merged.iter().position(|i| *i == counted.index()));
        let counted = counted.zip(place);
        let mut given: Vec<BlockArg> = merged.iter().map(|i| self.get(first[*i]).into()).collect();
        let results: Vec<usize> =
            merged.iter().copied().filter(|i| self.shape.result(id, *i).is_some()).collect();
        let start: Vec<BlockArg> = results.iter().map(|i| self.get(first[*i]).into()).collect();
        if let Some((counted, place)) = &counted {
            let [number, limit] = self.start_counting(counted);
            given[*place] = number.into();
            given.push(limit.into());
        }
        let [head, exit] = [0; 2].map(|_| self.b.create_block());
        self.go_round(level, guard, (head, &given), (exit, &start));
        let had_read = std::mem::take(&mut self.has_read);
        self.b.switch_to_block(head);
        let mark = self.log.len();
        let types = results.iter().map(|i| self.shape.kernel.value(first[*i]).ty()).collect::<Vec<_>>();
        let mut params = given.iter().map(|given| self.append_like(head, given)).collect::<Vec<_>>();
        let counted = counted.map(|(counted, place)| {
            let (row, count) = self.count_at(&counted, params[place], params[merged.len()]);
            params[place] = row;
            (counted, place, count)
        });
        for (i, param) in merged.iter().zip(params) {
            if let Some(row) = self.shape.param(id, *i) {
                self.define(row, param);
            }
        }
        self.note_kept(id, level);
        let keeps = self.keeps(id, level, next.iter().copied());
        self.group_loops += u32::from(level == Level::Workgroup);
        self.region(level, body, &keeps);
        self.group_loops -= u32::from(level == Level::Workgroup);
        // What a loop that goes on selects is decided by that, so the selection is left to where it is left.
        let kernel = self.shape.kernel;
        let holds = Terms::of(kernel, again, true);
        let last: Vec<BlockArg> = results.iter().map(|i| self.get(next[*i]).into()).collect();
        let around = merged.iter().map(|i| self.get(holds.resolve(kernel, next[*i])).into());
        let around: Vec<BlockArg> = around.collect();
        let left = self.b.create_block();
        if let Some((counted, place, count)) = counted {
            self.next_round(&counted, &count, (head, around, place), left);
        } else {
            self.check_stop_in(id);
            self.go_round(level, again, (head, &around), (left, &[]));
        }
        self.has_read |= had_read;
        self.b.switch_to_block(left);
        self.b.ins().jump(exit, &last);
        self.forget(mark);
        self.define_results(id, exit, &results, &types, level);
    }

    /// Branches to a round of a loop, or past it. At the level of the grid every round begins with nothing read since the
    /// workers met.
    fn go_round(
        &mut self,
        level: Level,
        cond: ValueId,
        (head, values): (Block, &[BlockArg]),
        exit: (Block, &[BlockArg]),
    ) {
        if level != Level::Grid {
            return self.go(cond, (head, values), exit);
        }
        let round = self.b.create_block();
        self.go(cond, (round, &[]), exit);
        let has_read = self.has_read;
        self.b.switch_to_block(round);
        if has_read {
            self.meet(false);
        }
        self.b.ins().jump(head, values);
        self.has_read = has_read;
    }
}
