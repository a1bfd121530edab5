//! The rounds of loops, and how often they look whether work is to stop.
//!
//! Work must stop soon after it is told to, in a loop too. A loop with others in it looks in every round. Of those without,
//! one that is short because its ends are constants needs not look at all: what is around it does. And one that counts
//! looks after [`CHUNK`] rounds: it goes on to a *limit* instead of its end, and only there looks whether to stop and where
//! the next limit is. The number that it counts goes around in 64 bits, as addresses need it.
//!
//! A loop of lanes that counts through buffers, as one over the neighbours of a node does, is there twice: where its end
//! is not behind those of the buffers, one runs that does not check.

use super::bounds::Access;
use super::conditions::Terms;
use super::control::LoopParts;
use super::{Emitter, clif_type};
use crate::shape::{CHUNK, Level, Rounds};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, Block, BlockArg, InstBuilder};
use vyre_lower::{Counter, Item, ItemId, RegionId, Value, ValueId};

/// The most rows and items of a loop that is there twice.
const SMALL: usize = 64;

/// A loop that counts, in code for lanes.
pub(super) struct Counted {
    counter: Counter,
    /// The next number.
    next: ValueId,
    /// What must hold, or must not, for another round beside the counter.
    others: Vec<(ValueId, bool)>,
}

/// The next number in such a loop, and where it looks whether to stop.
pub(super) struct Count {
    next: ir::Value,
    limit: ir::Value,
}

impl Counted {
    /// Which of the values that go around is the number.
    pub(super) fn index(&self) -> usize {
        self.counter.index
    }
}

impl Emitter<'_, '_> {
    /// How a loop counts, where that is all that decides how long it goes on, or one of the things that must hold for it.
    pub(super) fn counted(&self, id: ItemId, next: &[ValueId], again: ValueId) -> Option<Counted> {
        let kernel = self.shape.kernel;
        let counter = kernel.counter(id)?;
        let Terms { leaves, is_all, .. } = Terms::of(kernel, again, true);
        let has_counter = leaves.contains(&(counter.more, true));
        // A loop may be left by the same condition that it goes on by.
        let others = leaves.into_iter().filter(|leaf| *leaf != (counter.more, true)).collect();
        let is_chunked = self.shape.rounds[id.index()] == Rounds::Chunked;
        (is_all && has_counter && is_chunked).then(|| Counted { counter, next: next[counter.index], others })
    }

    /// A loop of lanes. One that counts through buffers has a version without checks of that.
    pub(super) fn repeat_lanes(&mut self, parts: &LoopParts<'_>) {
        let accesses = self.walked(parts);
        let Some(counter) = self.shape.kernel.counter(parts.id).filter(|_| !accesses.is_empty()) else {
            return self.repeat(Level::Lane, parts);
        };
        let end = self.index(counter.end);
        let inside = |e: &mut Self, buffer| {
            let count = e.count(buffer);
            e.icmp(IntCC::UnsignedLessThanOrEqual, end, count)
        };
        let mut buffers: Vec<u32> = accesses.iter().map(|(_, buffer)| *buffer).collect();
        buffers.sort_unstable();
        buffers.dedup();
        let first = inside(self, buffers[0]);
        let all = buffers[1..].iter().fold(first, |all, buffer| {
            let other = inside(self, *buffer);
            self.b.ins().band(all, other)
        });
        let results: Vec<ValueId> =
            (0..parts.first.len()).filter_map(|k| self.shape.result(parts.id, k)).collect();
        let [fast, slow, join] = [0; 3].map(|_| self.b.create_block());
        self.b.ins().brif(all, fast, &[], slow, &[]);
        self.seldom(slow);
        for (block, is_proven) in [(fast, true), (slow, false)] {
            self.b.switch_to_block(block);
            let (mark, checked) = (self.log.len(), self.proven.clone());
            if is_proven {
                self.proven.extend(accesses.iter().map(|(access, _)| *access));
            }
            self.repeat(Level::Lane, parts);
            let values: Vec<BlockArg> = results.iter().map(|row| self.get(*row).into()).collect();
            self.b.ins().jump(join, &values);
            self.proven = checked;
            self.forget(mark);
        }
        self.b.switch_to_block(join);
        let types = results.iter().map(|row| clif_type(self.shape.kernel.value(*row).ty()));
        let values: Vec<ir::Value> = types.map(|ty| self.b.append_block_param(join, ty)).collect();
        for (row, value) in results.into_iter().zip(values) {
            self.define(row, value);
        }
    }

    /// The accesses of a small loop at the number that it counts, if there are no other loops in it.
    fn walked(&self, parts: &LoopParts<'_>) -> Vec<(Access, u32)> {
        let (mut found, mut room) = (Vec::new(), SMALL);
        let counter = self.shape.kernel.counter(parts.id).filter(|_| !self.is_rare && !self.shape.is_large);
        let number = counter.and_then(|counter| self.shape.param(parts.id, counter.index));
        let is_small = number.is_some_and(|number| self.walk(parts.body, number, &mut room, &mut found));
        found.retain(|(access, _)| is_small && !self.proven.contains(access));
        found
    }

    /// Collects accesses at an index; `false` where there is a loop, or too much.
    fn walk(&self, region: RegionId, at: ValueId, room: &mut usize, found: &mut Vec<(Access, u32)>) -> bool {
        let (shape, kernel) = (self.shape, self.shape.kernel);
        let end = kernel.item_count(region);
        for (_, row) in (0..=end).flat_map(|position| shape.rows_at(region, position)) {
            if let Value::Load { buffer, index, .. } = kernel.value(*row)
                && index == at
            {
                found.push((Access::Row(*row), buffer));
            }
            *room = room.saturating_sub(1);
        }
        for id in kernel.region(region) {
            *room = room.saturating_sub(1);
            let is_plain = match kernel.item(id) {
                Item::Loop { .. } => false,
                Item::If { then, otherwise, .. } => {
                    [then, otherwise].into_iter().all(|region| self.walk(region, at, room, found))
                }
                Item::Load { buffer, index, .. }
                | Item::Store { buffer, index, .. }
                | Item::Atomic { buffer, index, .. } => {
                    if index == at {
                        found.push((Access::Item(id), buffer));
                    }
                    true
                }
                _ => true,
            };
            if !is_plain || *room == 0 {
                return false;
            }
        }
        true
    }

    /// The first number, and the first limit.
    pub(super) fn start_counting(&mut self, counted: &Counted) -> [ir::Value; 2] {
        let from = self.index(counted.counter.from);
        [from, self.limit_from(counted, from)]
    }

    /// The limit for rounds that begin with a number which is before the end.
    fn limit_from(&mut self, counted: &Counted, number: ir::Value) -> ir::Value {
        let end = self.index(counted.counter.end);
        let left = self.b.ins().isub(end, number);
        let most = self.b.ins().iconst(I64, i64::from(CHUNK));
        let rounds = self.b.ins().umin(left, most);
        self.b.ins().iadd(number, rounds)
    }

    /// The number that counts as a row, and the next one.
    pub(super) fn count_at(
        &mut self,
        counted: &Counted,
        number: ir::Value,
        limit: ir::Value,
    ) -> (ir::Value, Count) {
        // It is not greater than the end, so it does not wrap.
        let next = self.b.ins().iadd_imm_s(number, 1);
        let row = self.narrowed(next);
        self.know(counted.next, row);
        (self.narrowed(number), Count { next, limit })
    }

    /// The lower half of a number of 64 bits of which the upper half is zero.
    pub(super) fn narrowed(&mut self, number: ir::Value) -> ir::Value {
        let narrow = self.b.ins().ireduce(I32, number);
        self.extended.insert(narrow, number);
        narrow
    }

    /// The end of a round: to the next one with the values that go around, of which that at `place` is the number, or to
    /// `left`, out of the loop.
    pub(super) fn next_round(
        &mut self,
        counted: &Counted,
        count: &Count,
        (head, mut around, place): (Block, Vec<BlockArg>, usize),
        left: Block,
    ) {
        let number = count.next;
        around[place] = number.into();
        let others: Vec<(ir::Value, bool)> =
            counted.others.iter().map(|(leaf, holds)| (self.get(*leaf), *holds)).collect();
        let [look, refill] = [0; 2].map(|_| self.b.create_block());
        for (leaf, holds) in others {
            let on = self.b.create_block();
            let [then, otherwise] = if holds { [on, left] } else { [left, on] };
            self.b.ins().brif(leaf, then, &[], otherwise, &[]);
            self.b.switch_to_block(on);
        }
        around.push(count.limit.into());
        let more = self.icmp(IntCC::UnsignedLessThan, number, count.limit);
        self.b.ins().brif(more, head, &around, look, &[]);
        self.b.switch_to_block(look);
        let end = self.index(counted.counter.end);
        if self.shape.is_large {
            // Of two ways the code generator puts the second one first.
            let ends = self.icmp(IntCC::UnsignedGreaterThanOrEqual, number, end);
            self.b.ins().brif(ends, left, &[], refill, &[]);
        } else {
            let more = self.icmp(IntCC::UnsignedLessThan, number, end);
            self.b.ins().brif(more, refill, &[], left, &[]);
            self.seldom(refill);
        }
        self.b.switch_to_block(refill);
        self.check_stop();
        around.pop();
        around.push(self.limit_from(counted, number).into());
        self.b.ins().jump(head, &around);
    }
}
