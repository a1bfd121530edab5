//! Branches and loops of bundles.
//!
//! Where a condition is the same in all lanes, control is that of one lane. Where lanes differ, both arms of a branch
//! run one after the other, each for the lanes that are meant by it and only if there is one, and the results are
//! selected. A loop runs while any lane goes on; what a lane left it with is kept aside. Lanes that are not meant compute
//! along, which does no harm because every operation is total; what they compute nobody selects.

mod masked;

pub(super) use masked::{Masked, Round};

use crate::emit::choice::DEPTH;
use crate::emit::conditions::{Terms, comparison};
use crate::emit::control::LoopParts;
use crate::emit::vectors::{Parts, vector_type};
use crate::emit::{Emitter, Span, clif_type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{self, Block, BlockArg, InstBuilder};
use smallvec::SmallVec;
use vyre_foundation::{BinOp, Type};
use vyre_lower::{Item, ItemId, RegionId, Value, ValueId};

/// The most rows of an arm that is computed for all lanes rather than branched around.
const LIGHT: usize = 12;

/// How a row stands in the parameters of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As its value in the first lane.
    First,
    /// As parts.
    Lanes,
}

impl Emitter<'_, '_> {
    /// A stretch of lane code for the lanes that are meant.
    pub(super) fn vector_span(&mut self, span: Span) {
        for position in span.positions() {
            self.vector_rows(span.region, position);
            if position == span.end {
                break;
            }
            let id = self.shape.kernel.item_at(span.region, position);
            match self.shape.kernel.item(id) {
                Item::If { cond, then, otherwise, yields } => {
                    self.vector_branch(id, cond, [then, otherwise], &yields);
                }
                Item::Loop { guard, first, body, next, again } => {
                    let parts = LoopParts { id, guard, first: &first, body, next: &next, again };
                    if self.is_same(guard) && self.is_same(again) {
                        self.repeat_together(&parts);
                    } else {
                        self.repeat_masked(&parts);
                    }
                }
                item => self.vector_effect(id, item),
            }
        }
    }

    fn vector_region(&mut self, region: RegionId) {
        let end = self.shape.kernel.item_count(region);
        let fetched = self.bundle.as_mut().and_then(|bundle| bundle.fetched.take());
        stacker::maybe_grow(64 << 10, 1 << 20, || self.vector_span(Span { region, start: 0, end }));
        if let Some(bundle) = &mut self.bundle {
            bundle.fetched = fetched;
        }
    }

    fn form(&self, row: ValueId) -> Form {
        if self.is_first_only(row) { Form::First } else { Form::Lanes }
    }

    /// A row as arguments of a block.
    fn arguments(&mut self, row: ValueId, form: Form) -> Parts {
        match form {
            Form::First => SmallVec::from_elem(self.get(row), 1),
            Form::Lanes => self.vector(row),
        }
    }

    /// Parameters of a block, for each of some rows in its form. All of them come before the first instruction.
    fn append_params(&mut self, block: Block, rows: &[(usize, ValueId)]) -> Parts {
        let mut params = Parts::new();
        for (_, row) in rows {
            let ty = self.shape.kernel.value(*row).ty();
            match self.form(*row) {
                Form::First => params.push(self.b.append_block_param(block, clif_type(ty))),
                Form::Lanes => params.extend(self.append_parts(block, ty)),
            }
        }
        params
    }

    /// Makes parameters of a block known as rows.
    fn define_params(&mut self, rows: &[(usize, ValueId)], params: Parts) {
        let mut rest = &params[..];
        for (_, row) in rows {
            let ty = self.shape.kernel.value(*row).ty();
            let form = self.form(*row);
            let (mine, others) = rest.split_at(if form == Form::First { 1 } else { self.part_count(ty) });
            rest = others;
            match form {
                Form::First => self.define_first(*row, mine[0]),
                Form::Lanes => self.define_parts(*row, mine.into()),
            }
        }
    }

    /// A parameter of a block for values like one.
    pub(super) fn append_like(&mut self, block: Block, value: &BlockArg) -> ir::Value {
        let ty = value.as_value().map_or(I64, |value| self.b.func.dfg.value_type(value));
        self.b.append_block_param(block, ty)
    }

    pub(super) fn append_parts(&mut self, block: Block, ty: Type) -> Parts {
        (0..self.part_count(ty)).map(|_| self.b.append_block_param(block, vector_type(ty))).collect()
    }

    pub(super) fn jump_with(&mut self, block: Block, values: &[ir::Value]) {
        let values: Vec<BlockArg> = values.iter().copied().map(BlockArg::from).collect();
        self.b.ins().jump(block, &values);
    }

    /// Whether all lanes of a mask are set.
    pub(super) fn all(&mut self, mask: &Parts) -> ir::Value {
        let all = self.fold(mask, |e, a, b| e.b.ins().band(a, b));
        self.b.ins().vall_true(all)
    }

    /// Whether a lane of a mask is set.
    fn any(&mut self, mask: &Parts) -> ir::Value {
        let any = self.fold(mask, |e, a, b| e.b.ins().bor(a, b));
        self.b.ins().vany_true(any)
    }

    /// Joins all parts.
    pub(super) fn fold(
        &mut self,
        mask: &Parts,
        join: impl Fn(&mut Self, ir::Value, ir::Value) -> ir::Value,
    ) -> ir::Value {
        mask[1..].iter().fold(mask[0], |all, part| join(self, all, *part))
    }

    /// The lanes of a mask that are meant.
    fn meant(&mut self, mask: Parts) -> Parts {
        match self.mask() {
            Some(outer) => {
                mask.iter().zip(outer).map(|(mask, outer)| self.b.ins().band(*mask, outer)).collect()
            }
            None => mask,
        }
    }

    /// The results of an item that rows name.
    fn results(&self, id: ItemId) -> Vec<(usize, ValueId)> {
        (0..self.shape.result_count(id)).filter_map(|k| Some((k, self.shape.result(id, k)?))).collect()
    }

    fn vector_branch(
        &mut self,
        id: ItemId,
        cond: ValueId,
        arms: [RegionId; 2],
        yields: &[(ValueId, ValueId)],
    ) {
        let results = self.results(id);
        if !self.is_same(cond) {
            return self.branch_masked(cond, arms, yields, &results);
        }
        let [then, otherwise, join] = [0; 3].map(|_| self.b.create_block());
        self.go(cond, (then, &[]), (otherwise, &[]));
        for (arm, block) in [then, otherwise].into_iter().enumerate() {
            self.b.switch_to_block(block);
            let mark = self.log.len();
            self.vector_region(arms[arm]);
            let mut values = Parts::new();
            for (k, row) in &results {
                let given = if arm == 0 { yields[*k].0 } else { yields[*k].1 };
                values.extend(self.arguments(given, self.form(*row)));
            }
            self.jump_with(join, &values);
            self.forget(mark);
        }
        self.b.switch_to_block(join);
        let given = self.append_params(join, &results);
        self.define_params(&results, given);
    }

    /// A branch on which lanes differ.
    fn branch_masked(
        &mut self,
        cond: ValueId,
        arms: [RegionId; 2],
        yields: &[(ValueId, ValueId)],
        results: &[(usize, ValueId)],
    ) {
        if self.mask().is_none() && results.is_empty() && self.is_plain(cond, DEPTH) && self.is_usual(arms) {
            return self.branch_usually(cond, arms[0]);
        }
        let cond = self.vector(cond);
        let outer = self.mask();
        let mut given: [Vec<Parts>; 2] = [Vec::new(), Vec::new()];
        for (arm, region) in arms.into_iter().enumerate() {
            let values: Vec<ValueId> =
                results.iter().map(|(k, _)| if arm == 0 { yields[*k].0 } else { yields[*k].1 }).collect();
            if self.is_light(region) {
                self.vector_region(region);
                given[arm] = values.into_iter().map(|value| self.vector(value)).collect();
                continue;
            }
            let holds: Parts =
                if arm == 0 { cond.clone() } else { cond.iter().map(|c| self.b.ins().bnot(*c)).collect() };
            let mask = self.meant(holds);
            given[arm] = self.arm(mask, region, &values);
            self.set_mask(outer.clone());
        }
        let [then, otherwise] = given;
        for ((_, row), (a, b)) in results.iter().zip(then.into_iter().zip(otherwise)) {
            let ty = self.shape.kernel.value(*row).ty();
            let chosen = self.choose_parts(ty, &cond, &a, &b);
            self.define_parts(*row, chosen);
        }
    }

    /// Whether a branch does something under a condition that guards it, as that an index is inside: something short
    /// that is made lane by lane, which no mask makes cheaper.
    fn is_usual(&self, [then, otherwise]: [RegionId; 2]) -> bool {
        let kernel = self.shape.kernel;
        let is_effect = |id| !matches!(kernel.item(id), Item::If { .. } | Item::Loop { .. });
        kernel.item_count(otherwise) == 0
            && (1..=LIGHT as u32).contains(&kernel.item_count(then))
            && kernel.region(then).all(is_effect)
    }

    /// A branch that all lanes mostly take: if they do, it goes without a mask.
    fn branch_usually(&mut self, cond: ValueId, region: RegionId) {
        let all = self.holds_in_all(cond);
        let [usual, rare, join] = [0; 3].map(|_| self.b.create_block());
        self.b.ins().brif(all, usual, &[], rare, &[]);
        let mark = self.log.len();
        self.b.switch_to_block(usual);
        self.vector_region(region);
        self.b.ins().jump(join, &[]);
        self.forget(mark);
        self.b.switch_to_block(rare);
        self.seldom(rare);
        let mask = self.vector(cond);
        self.arm(mask, region, &[]);
        self.set_mask(None);
        self.b.ins().jump(join, &[]);
        self.forget(mark);
        self.b.switch_to_block(join);
    }

    /// Whether a condition holds in all lanes.
    fn holds_in_all(&mut self, cond: ValueId) -> ir::Value {
        let kernel = self.shape.kernel;
        match comparison(kernel, (cond, true)) {
            // Numbers that follow each other are less where the last one is, as 64 bits: none wraps then.
            Some((BinOp::Lt, a, b)) if kernel.stride(a) == Some(1) && self.is_same(b) => {
                let (first, bound) = (self.index(a), self.index(b));
                let others = i64::from(self.bundle_lanes()) - 1;
                let last = self.b.ins().iadd_imm_s(first, others);
                self.icmp(IntCC::UnsignedLessThan, last, bound)
            }
            _ => {
                let mask = self.vector(cond);
                self.all(&mask)
            }
        }
    }

    /// The arm of a branch for some lanes, if there is one, and what it gives.
    fn arm(&mut self, mask: Parts, region: RegionId, values: &[ValueId]) -> Vec<Parts> {
        let types: Vec<Type> = values.iter().map(|value| self.shape.kernel.value(*value).ty()).collect();
        let mut nothing: Vec<BlockArg> = Vec::new();
        for ty in &types {
            let zero = self.zero(clif_type(*ty));
            nothing.extend(self.splat_parts(*ty, zero).into_iter().map(BlockArg::from));
        }
        let any = self.any(&mask);
        let [some, join] = [0; 2].map(|_| self.b.create_block());
        self.b.ins().brif(any, some, &[], join, &nothing);
        self.b.switch_to_block(some);
        let mark = self.log.len();
        self.set_mask(Some(mask));
        self.vector_region(region);
        let mut parts = Parts::new();
        for value in values {
            parts.extend(self.vector(*value));
        }
        self.jump_with(join, &parts);
        self.forget(mark);
        self.b.switch_to_block(join);
        types.into_iter().map(|ty| self.append_parts(join, ty)).collect()
    }

    /// Whether an arm does so little that nobody branches around it: a few rows, no effects, nothing read.
    fn is_light(&self, region: RegionId) -> bool {
        let rows = self.shape.rows_at(region, 0);
        let is_plain = |(_, row): &(u32, ValueId)| {
            let value = self.shape.kernel.value(*row);
            !matches!(value, Value::Load { .. }) && self.has_vector_form(value)
        };
        self.shape.kernel.item_count(region) == 0 && rows.len() <= LIGHT && rows.iter().all(is_plain)
    }

    /// A loop that all lanes run equally often.
    fn repeat_together(&mut self, parts: &LoopParts<'_>) {
        let LoopParts { id, guard, first, body, next, again } = *parts;
        let kernel = self.shape.kernel;
        let params: Vec<(usize, ValueId)> =
            (0..first.len()).filter_map(|k| Some((k, self.shape.param(id, k)?))).collect();
        let results = self.results(id);
        let start = self.all_arguments(&params, |k| first[k]);
        let unchanged = self.all_arguments(&results, |k| first[k]);
        let counted = self.counted(id, next, again).zip(self.place_of_counter(id, &params));
        let mut given = start;
        if let Some((counted, place)) = &counted {
            let [number, limit] = self.start_counting(counted);
            given[*place] = number.into();
            given.push(limit.into());
        }
        let [head, exit] = [0; 2].map(|_| self.b.create_block());
        self.go(guard, (head, &given), (exit, &unchanged));
        self.b.switch_to_block(head);
        let mark = self.log.len();
        let mut values: Parts = given.iter().map(|given| self.append_like(head, given)).collect();
        let counted = counted.map(|(counted, place)| {
            let limit = values.pop().unwrap_or(values[place]);
            let (row, count) = self.count_at(&counted, values[place], limit);
            values[place] = row;
            (counted, place, count)
        });
        self.define_params(&params, values);
        self.vector_region(body);
        // What a loop that goes on selects is decided by that, so the selection is left to where it is left.
        let holds = Terms::of(kernel, again, true);
        let last = self.all_arguments(&results, |k| next[k]);
        let around = self.all_arguments(&params, |k| holds.resolve(kernel, next[k]));
        let left = self.b.create_block();
        if let Some((counted, place, count)) = counted {
            self.next_round(&counted, &count, (head, around, place), left);
        } else {
            self.check_stop_in(id);
            self.go(again, (head, &around), (left, &[]));
        }
        self.b.switch_to_block(left);
        self.b.ins().jump(exit, &last);
        self.forget(mark);
        self.b.switch_to_block(exit);
        let given = self.append_params(exit, &results);
        self.define_params(&results, given);
    }

    /// Where the number that a loop counts stands among arguments, if that is the same in all lanes.
    fn place_of_counter(&self, id: ItemId, params: &[(usize, ValueId)]) -> Option<usize> {
        let index = self.shape.kernel.counter(id)?.index;
        let mut place = 0;
        for (k, row) in params {
            if *k == index {
                return self.is_same(*row).then_some(place);
            }
            place += match self.form(*row) {
                Form::First => 1,
                Form::Lanes => self.part_count(self.shape.kernel.value(*row).ty()),
            };
        }
        None
    }

    /// Rows as arguments, each in the form of the row that it becomes.
    fn all_arguments(
        &mut self,
        rows: &[(usize, ValueId)],
        given: impl Fn(usize) -> ValueId,
    ) -> Vec<BlockArg> {
        self.parts_of(rows, given).into_iter().map(BlockArg::from).collect()
    }

    /// Rows as values, each in the form of the row that it becomes.
    fn parts_of(&mut self, rows: &[(usize, ValueId)], given: impl Fn(usize) -> ValueId) -> Parts {
        let mut values = Parts::new();
        for (k, row) in rows {
            let form = self.form(*row);
            values.extend(self.arguments(given(*k), form));
        }
        values
    }

    /// The lanes of a mask in which a condition holds, or does not.
    fn both_masks(&mut self, mask: &Parts, cond: &Parts, holds: bool) -> Parts {
        let both = |(mask, cond): (&ir::Value, &ir::Value)| match holds {
            true => self.b.ins().band(*mask, *cond),
            false => self.b.ins().band_not(*mask, *cond),
        };
        mask.iter().zip(cond).map(both).collect()
    }

    /// A mask of all lanes.
    fn all_lanes(&mut self) -> Parts {
        let ones = self.b.ins().iconst(clif_type(Type::U32), -1);
        self.splat_parts(Type::U32, ones)
    }
}
