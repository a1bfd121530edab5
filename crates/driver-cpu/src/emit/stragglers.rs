//! Loops that most lanes of a bundle have left.
//!
//! A bundle goes round until its last lane leaves a loop. Where a lane has 64 bits, a vector has two of them, and a round
//! costs what several rounds of single lanes do. So when a short loop has gone on for long and no more than [`FEW`] lanes
//! are left in it, these are finished one after the other by the code of single lanes: what goes around is written to
//! memory, each lane takes its part of it, and leaves its results there.

use super::control::LoopParts;
use super::slots::width;
use super::vector_control::{Masked, Round};
use super::vectors::{BYTES, Parts, is_wide};
use super::{Emitter, clif_type};
use crate::shape::Level;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, Block, BlockArg, InstBuilder, StackSlotData, StackSlotKind};
use rustc_hash::FxHashSet;
use vyre_foundation::Type;
use vyre_lower::ValueId;

/// How many lanes are better finished one by one.
const FEW: u32 = 2;

/// How often a loop looks for lanes that go on before that, every other round: changing over costs as much as some rounds.
const PATIENCE: i64 = 16;

/// What the code for single lanes of a loop needs of the bundle.
pub(super) struct Stragglers {
    /// The rows of the loop itself.
    inside: FxHashSet<ValueId>,
    /// The rows of lanes from outside.
    outside: Vec<ValueId>,
}

/// A row in the lanes of a bundle, where each of them can be found by its number.
#[derive(Clone, Copy)]
enum Spread {
    /// That of the first lane, and what it grows by from lane to lane.
    Steps(ir::Value, i64),
    /// Memory with a value for each lane.
    Memory(ir::Value, Type),
}

impl Emitter<'_, '_> {
    /// What is needed to finish the last lanes of a loop one by one, if that is worth it.
    pub(super) fn stragglers(&self, parts: &LoopParts<'_>, masked: &Masked<'_>) -> Option<Stragglers> {
        let (shape, kernel) = (self.shape, self.shape.kernel);
        if kernel.item_count(parts.body) > 0 || self.rounds_at_once(parts.body) == 1 {
            return None;
        }
        let params = masked.params.iter().chain(&masked.shared);
        let is_wide_row = |row: ValueId| !self.is_first_only(row) && is_wide(kernel.value(row).ty());
        if !params.clone().any(|(_, row)| is_wide_row(*row)) {
            return None;
        }
        let rows = shape.rows_at(parts.body, 0).iter().map(|(_, row)| *row);
        let all = (0..parts.first.len()).filter_map(|k| shape.param(parts.id, k));
        let inside: FxHashSet<ValueId> = rows.clone().chain(all).collect();
        let used = rows.flat_map(|row| kernel.value(row).operands().collect::<Vec<_>>());
        let used = used.chain(parts.next.iter().copied()).chain([parts.again]);
        // Also what is the same in all lanes may be made of what is not.
        let is_of_lanes = |row: &ValueId| shape.defined[row.index()] == Level::Lane;
        let mut outside: Vec<ValueId> =
            used.filter(|row| !inside.contains(row) && is_of_lanes(row)).collect();
        outside.sort_unstable();
        outside.dedup();
        // Truth values stand in memory in one form for bundles and in another for lanes.
        let is_number = |row: &ValueId| self.is_same(*row) || kernel.value(*row).ty() != Type::Bool;
        let are_numbers = outside.iter().chain(params.map(|(_, row)| row)).all(is_number)
            && masked.types.iter().all(|ty| *ty != Type::Bool);
        are_numbers.then_some(Stragglers { inside, outside })
    }

    /// The end of a round: back to the head of the loop, or out of it. It goes on here where few lanes are left.
    pub(super) fn look_for_few(
        &mut self,
        mask: &Parts,
        looks: ir::Value,
        (head, around): (Block, &[BlockArg]),
        (exit, last): (Block, &[BlockArg]),
    ) {
        let [fewer, some, few] = [0; 3].map(|_| self.b.create_block());
        let bits = self.lane_bits(mask);
        let rest = (0..FEW).fold(bits, |rest, _| self.without_lowest(rest));
        self.b.ins().brif(rest, head, around, fewer, &[]);
        self.b.switch_to_block(fewer);
        self.b.ins().brif(bits, some, &[], exit, last);
        self.b.switch_to_block(some);
        let is_early = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, looks, PATIENCE);
        self.b.ins().brif(is_early, head, around, few, &[]);
        self.b.switch_to_block(few);
    }

    /// A number without its lowest bit.
    fn without_lowest(&mut self, bits: ir::Value) -> ir::Value {
        let less = self.b.ins().iadd_imm_s(bits, -1);
        self.b.ins().band(bits, less)
    }

    /// Finishes the lanes that are left one by one. Gives the results of all lanes.
    pub(super) fn finish_lanes(
        &mut self,
        parts: &LoopParts<'_>,
        masked: &Masked<'_>,
        stragglers: &Stragglers,
        round: &Round,
    ) -> Vec<Parts> {
        let Some(first) = self.lane else { return round.last.clone() };
        let mark = self.log.len();
        let last = masked.types.iter().zip(&round.last);
        let results: Vec<Spread> = last.map(|(ty, parts)| self.spread(*ty, parts)).collect();
        let params = self.spread_params(masked, &results, &round.around);
        let outside: Vec<(ValueId, Spread)> =
            stragglers.outside.iter().map(|row| (*row, self.spread_row(*row))).collect();
        let bits = self.lane_bits(&round.mask);
        let [one, done] = [0; 2].map(|_| self.b.create_block());
        self.b.ins().jump(one, &[bits.into()]);

        self.b.switch_to_block(one);
        let bits = self.b.append_block_param(one, I32);
        let number = self.b.ins().ctz(bits);
        let number = self.b.ins().uextend(I64, number);
        let bundle = self.bundle.take();
        let mut lane = first;
        lane.ids[0] = self.b.ins().iadd(first.ids[0], number);
        self.lane = Some(lane);
        // What is known of the first lane of the bundle is not so of this one.
        let mut known = Vec::new();
        for (row, spread) in outside {
            let value = self.of_lane(spread, number);
            known.push((row, self.known[row.index()].replace(value)));
        }
        let last = self.finish_lane(parts, masked, stragglers, (&params, number));
        for (spread, value) in results.iter().zip(last) {
            self.put(*spread, number, value);
        }
        for (row, value) in known {
            self.known[row.index()] = value;
        }
        self.lane = Some(first);
        self.bundle = bundle;
        let others = self.without_lowest(bits);
        self.b.ins().brif(others, one, &[others.into()], done, &[]);
        self.b.switch_to_block(done);
        self.forget(mark);
        results.into_iter().map(|spread| self.collected(spread)).collect()
    }

    /// The rest of the rounds of one lane. Gives its results.
    fn finish_lane(
        &mut self,
        parts: &LoopParts<'_>,
        masked: &Masked<'_>,
        stragglers: &Stragglers,
        (params, number): (&[(usize, ValueId, Spread)], ir::Value),
    ) -> Vec<ir::Value> {
        let given: Vec<BlockArg> =
            params.iter().map(|(_, _, spread)| self.of_lane(*spread, number).into()).collect();
        let [head, left] = [0; 2].map(|_| self.b.create_block());
        self.b.ins().jump(head, &given);
        self.b.switch_to_block(head);
        let mark = self.log.len();
        for ((_, row, _), given) in params.iter().zip(&given) {
            let value = self.append_like(head, given);
            self.know(*row, value);
        }
        self.lane_region(parts.body);
        let kernel = self.shape.kernel;
        let around = |e: &mut Self, k: usize| {
            let next = masked.leaving.holds.resolve(kernel, parts.next[k]);
            let is_shared = e.shape.defined[next.index()] < Level::Lane;
            let is_named = stragglers.inside.contains(&next) || stragglers.outside.contains(&next);
            e.get(if is_shared || is_named { next } else { parts.next[k] })
        };
        let around: Vec<BlockArg> = params.iter().map(|(k, ..)| around(self, *k).into()).collect();
        let last = masked.results.iter().map(|(k, _)| self.get(parts.next[*k])).collect();
        self.check_stop_in(parts.id);
        self.go(parts.again, (head, &around), (left, &[]));
        self.b.switch_to_block(left);
        self.forget(mark);
        last
    }

    /// What goes around a loop, as the last round left it.
    fn spread_params(
        &mut self,
        masked: &Masked<'_>,
        results: &[Spread],
        around: &[ir::Value],
    ) -> Vec<(usize, ValueId, Spread)> {
        let mut params = Vec::new();
        let mut rest = around;
        for (k, row) in &masked.params {
            let ty = self.shape.kernel.value(*row).ty();
            let stride = self.stride_of(*row);
            let (mine, others) = rest.split_at(if stride.is_some() { 1 } else { self.part_count(ty) });
            rest = others;
            let spread = match stride {
                Some(stride) => Spread::Steps(mine[0], stride),
                None => self.spread(ty, mine),
            };
            params.push((*k, *row, spread));
        }
        for (k, row) in &masked.shared {
            if let Some(at) = masked.results.iter().position(|(other, _)| other == k) {
                params.push((*k, *row, results[at]));
            }
        }
        params
    }

    /// What a row grows by from lane to lane, if all that is known of it is its value in the first one.
    fn stride_of(&self, row: ValueId) -> Option<i64> {
        if self.is_same(row) { Some(0) } else { self.shape.kernel.stride(row).map(i64::from) }
    }

    fn spread_row(&mut self, row: ValueId) -> Spread {
        if let Some(stride) = self.stride_of(row) {
            return Spread::Steps(self.get(row), stride);
        }
        let parts = self.vector(row);
        self.spread(self.shape.kernel.value(row).ty(), &parts)
    }

    fn spread(&mut self, ty: Type, parts: &[ir::Value]) -> Spread {
        let bytes = BYTES * parts.len() as u32;
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, BYTES.ilog2() as u8);
        let slot = self.b.create_sized_stack_slot(slot);
        let address = self.b.ins().stack_addr(self.target.pointer, slot, 0);
        for (part, value) in (0..).zip(parts) {
            self.b.ins().store(self.own_flags, *value, address, part * BYTES as i32);
        }
        Spread::Memory(address, ty)
    }

    /// The value in the lane with this number.
    fn of_lane(&mut self, spread: Spread, number: ir::Value) -> ir::Value {
        match spread {
            Spread::Steps(first, 0) => first,
            Spread::Steps(first, stride) => {
                let ty = self.b.func.dfg.value_type(first);
                let number = if ty == I64 { number } else { self.b.ins().ireduce(ty, number) };
                let steps = self.b.ins().imul_imm_s(number, stride);
                self.b.ins().iadd(first, steps)
            }
            Spread::Memory(start, ty) => {
                let address = self.place(start, ty, number);
                self.b.ins().load(clif_type(ty), self.own_flags, address, 0)
            }
        }
    }

    fn put(&mut self, spread: Spread, number: ir::Value, value: ir::Value) {
        if let Spread::Memory(start, ty) = spread {
            let address = self.place(start, ty, number);
            self.b.ins().store(self.own_flags, value, address, 0);
        }
    }

    fn place(&mut self, start: ir::Value, ty: Type, number: ir::Value) -> ir::Value {
        let offset = self.b.ins().imul_imm_s(number, i64::from(width(ty)));
        self.b.ins().iadd(start, offset)
    }

    fn collected(&mut self, spread: Spread) -> Parts {
        let Spread::Memory(start, ty) = spread else { return Parts::new() };
        let count = self.part_count(ty) as i32;
        (0..count).map(|part| self.load_lanes(ty, self.own_flags, start, part * BYTES as i32)).collect()
    }
}
