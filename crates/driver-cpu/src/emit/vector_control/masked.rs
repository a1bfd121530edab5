//! Loops that lanes of a bundle run more or less often.
//!
//! Such a loop runs while any lane goes on; what a lane left it with is kept aside. Lanes that have left compute along,
//! which does no harm because every operation is total; what they compute nobody selects.

use super::Form;
use crate::emit::Emitter;
use crate::emit::bounds::Access;
use crate::emit::conditions::Terms;
use crate::emit::control::LoopParts;
use crate::emit::vectors::Parts;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{self, Block, BlockArg, InstBuilder};
use vyre_foundation::Type;
use vyre_lower::{Kernel, RegionId, Value, ValueId};

/// The most rows of a loop of which two rounds are made at once.
const BRIEF: usize = 32;

impl Emitter<'_, '_> {
    /// A loop that lanes run more or less often.
    pub(super) fn repeat_masked(&mut self, parts: &LoopParts<'_>) {
        let LoopParts { id, guard, first, .. } = *parts;
        let results = self.results(id);
        let outer = self.mask();
        let start = if self.is_same(guard) { self.all_lanes() } else { self.vector(guard) };
        let start = self.meant(start);
        let [head, exit] = [0; 2].map(|_| self.b.create_block());
        let masked = self.masked(parts, &results, exit);
        let stragglers = self.stragglers(parts, &masked);
        let mut given = self.all_arguments(&masked.params, |k| first[k]);
        let unchanged = self.lanes_of(&results, first);
        given.extend(unchanged.iter().copied());
        given.extend(start.iter().copied().map(BlockArg::from));
        if stragglers.is_some() {
            given.push(self.b.ins().iconst(I32, 0).into());
        }
        if self.is_same(guard) {
            self.go(guard, (head, &given), (exit, &unchanged));
        } else {
            let any = self.any(&start);
            self.b.ins().brif(any, head, &given, exit, &unchanged);
        }

        self.b.switch_to_block(head);
        let mark = self.log.len();
        let mut round = Round {
            around: self.append_params(head, &masked.params),
            last: masked.types.iter().map(|ty| self.append_parts(head, *ty)).collect(),
            mask: self.append_parts(head, Type::Bool),
        };
        let stragglers = stragglers.map(|stragglers| (stragglers, self.b.append_block_param(head, I32)));
        round = self.masked_round(&masked, round);
        let proofs = self.drop_proofs(parts.body);
        for _ in 1..self.rounds_at_once(parts.body) {
            self.forget(mark);
            round = self.masked_round(&masked, round);
        }
        self.proven.extend(proofs);
        self.check_stop_in(id);
        let last = arguments_of(&round.last);
        let mut around: Vec<BlockArg> = round.around.iter().copied().map(BlockArg::from).collect();
        around.extend(last.iter().copied());
        around.extend(round.mask.iter().copied().map(BlockArg::from));
        self.set_mask(outer);
        if let Some((stragglers, looks)) = stragglers {
            let looks = self.b.ins().iadd_imm_s(looks, 1);
            around.push(looks.into());
            self.look_for_few(&round.mask, looks, (head, &around), (exit, &last));
            self.forget(mark);
            let last = self.finish_lanes(parts, &masked, &stragglers, &round);
            self.b.ins().jump(exit, &arguments_of(&last));
        } else {
            let any = self.any(&round.mask);
            self.b.ins().brif(any, head, &around, exit, &last);
            self.forget(mark);
        }
        self.b.switch_to_block(exit);
        let given: Vec<Parts> = masked.types.iter().map(|ty| self.append_parts(exit, *ty)).collect();
        for ((_, row), parts) in results.iter().zip(given) {
            self.define_parts(*row, parts);
        }
    }

    /// How many rounds of a loop that lanes leave at different times are made before one looks whether a lane goes on: one
    /// too many does no harm, as nobody selects what it computes and it reads nothing that is not checked.
    pub(in crate::emit) fn rounds_at_once(&self, body: RegionId) -> u32 {
        let is_short = self.shape.rows_at(body, 0).len() <= BRIEF;
        if is_short && self.shape.kernel.item_count(body) == 0 { 2 } else { 1 }
    }

    /// Drops what is proven of loads in a loop that are the same in all lanes, and gives it. Proofs are about lanes that are
    /// meant. A round that nobody asked for may have none, and such an index is then that of no lane at all.
    fn drop_proofs(&mut self, body: RegionId) -> Vec<Access> {
        let shape = self.shape;
        let is_same_load = |row: ValueId| match shape.kernel.value(row) {
            Value::Load { index, .. } => self.is_same(index),
            _ => false,
        };
        let rows = shape.rows_at(body, 0).iter().map(|(_, row)| *row);
        let accesses: Vec<Access> = rows.filter(|row| is_same_load(*row)).map(Access::Row).collect();
        accesses.into_iter().filter(|access| self.proven.remove(access)).collect()
    }

    /// What each round of a loop that lanes run more or less often needs.
    fn masked<'a>(&self, parts: &LoopParts<'a>, results: &'a [(usize, ValueId)], exit: Block) -> Masked<'a> {
        let LoopParts { id, first, body, next, again, .. } = *parts;
        let kernel = self.shape.kernel;
        let leaving = self.leaving(again);
        // A parameter that is a result too goes around as that, where the same value is one and the other.
        let is_result = |k: usize, row: ValueId| {
            let (stays, leaves) = leaving.resolve(kernel, next[k]);
            let is_one = stays == next[k] || leaves == Some(row);
            self.form(row) == Form::Lanes && is_one && results.iter().any(|(other, _)| *other == k)
        };
        let all = (0..first.len()).filter_map(|k| Some((k, self.shape.param(id, k)?)));
        let (shared, params) = all.partition(|(k, row)| is_result(*k, *row));
        let types = results.iter().map(|(_, row)| kernel.value(*row).ty()).collect();
        Masked { body, next, results, types, params, shared, leaving, exit }
    }

    /// One round of such a loop, from what the one before left.
    fn masked_round(&mut self, masked: &Masked<'_>, round: Round) -> Round {
        let kernel = self.shape.kernel;
        let Masked { next, results, types, shared, leaving, .. } = masked;
        let Round { around, last: before, mask } = round;
        self.define_params(&masked.params, around);
        for (k, row) in shared {
            if let Some(at) = results.iter().position(|(other, _)| other == k) {
                self.define_parts(*row, before[at].clone());
            }
        }
        self.set_mask(Some(mask.clone()));
        self.vector_region(masked.body);

        let around = self.parts_of(&masked.params, |k| leaving.resolve(kernel, next[k]).0);
        let mut last: Vec<Parts> = Vec::new();
        for ((k, _), (before, ty)) in results.iter().zip(before.iter().zip(types)) {
            let after = self.vector(next[*k]);
            last.push(self.choose_parts(*ty, &mask, &after, before));
        }
        let go_on = self.go_on(leaving, mask, (masked.exit, &arguments_of(&last)));
        for (at, (k, _)) in results.iter().enumerate() {
            let (stays, leaves) = leaving.resolve(kernel, next[*k]);
            // What a lane that leaves had before stays as it is from now on.
            if shared.iter().any(|(other, row)| other == k && leaves == Some(*row)) {
                let stays = self.vector(stays);
                last[at] = self.choose_parts(types[at], &go_on, &stays, &before[at]);
            }
        }
        Round { around, last, mask: go_on }
    }

    /// The lanes that go on with a loop. Where something that is the same in all lanes ends it, none does, and `end` is
    /// where the code goes.
    fn go_on(&mut self, leaving: &Leaving, mask: Parts, end: (Block, &[BlockArg])) -> Parts {
        let leaves: Vec<(ir::Value, bool)> =
            leaving.same.iter().map(|(leaf, holds)| (self.get(*leaf), *holds)).collect();
        for (leaf, holds) in leaves {
            // What the loop ends with is computed where it ends only.
            let [others, out] = [0; 2].map(|_| self.b.create_block());
            let [then, otherwise] = if holds { [others, out] } else { [out, others] };
            self.b.ins().brif(leaf, then, &[], otherwise, &[]);
            self.b.switch_to_block(out);
            self.b.ins().jump(end.0, end.1);
            self.b.switch_to_block(others);
        }
        let mut go_on = mask;
        for (leaf, holds) in &leaving.varying {
            let leaf = self.vector(*leaf);
            go_on = self.both_masks(&go_on, &leaf, *holds);
        }
        go_on
    }

    /// What makes lanes leave a loop that goes on while a condition holds.
    fn leaving(&self, again: ValueId) -> Leaving {
        let kernel = self.shape.kernel;
        let holds = Terms::of(kernel, again, true);
        let leaves = if holds.is_all { holds.leaves.clone() } else { vec![(again, true)] };
        let (same, varying): (Vec<_>, Vec<_>) = leaves.into_iter().partition(|(leaf, _)| self.is_same(*leaf));
        let fails = match varying[..] {
            [(leaf, holds)] => Some(Terms::of(kernel, leaf, !holds)),
            _ => None,
        };
        Leaving { same, varying, holds, fails }
    }

    /// What results are before a loop, as parts.
    fn lanes_of(&mut self, results: &[(usize, ValueId)], given: &[ValueId]) -> Vec<BlockArg> {
        let mut values = Vec::new();
        for (k, _) in results {
            values.extend(self.vector(given[*k]).into_iter().map(BlockArg::from));
        }
        values
    }
}

/// A loop that lanes run more or less often.
pub(in crate::emit) struct Masked<'a> {
    body: RegionId,
    next: &'a [ValueId],
    pub(in crate::emit) results: &'a [(usize, ValueId)],
    /// The types of the results.
    pub(in crate::emit) types: Vec<Type>,
    /// What goes around.
    pub(in crate::emit) params: Vec<(usize, ValueId)>,
    /// What goes around as a result.
    pub(in crate::emit) shared: Vec<(usize, ValueId)>,
    pub(in crate::emit) leaving: Leaving,
    exit: Block,
}

/// What a round of such a loop begins with, and leaves.
pub(in crate::emit) struct Round {
    /// The parameters that go around.
    pub(in crate::emit) around: Parts,
    /// The results, as far as lanes have left.
    pub(in crate::emit) last: Vec<Parts>,
    /// The lanes that have not.
    pub(in crate::emit) mask: Parts,
}

/// What makes lanes leave a loop.
pub(in crate::emit) struct Leaving {
    /// Conditions that must hold, or must not, and are the same in all lanes.
    same: Vec<(ValueId, bool)>,
    /// And those in which lanes differ.
    varying: Vec<(ValueId, bool)>,
    /// What holds where a lane goes on.
    pub(in crate::emit) holds: Terms,
    /// What holds where one of these makes a lane leave, if there is but one.
    fails: Option<Terms>,
}

impl Leaving {
    /// The row that a row equals in lanes that go on, and in those that leave by themselves.
    fn resolve(&self, kernel: &Kernel, row: ValueId) -> (ValueId, Option<ValueId>) {
        (self.holds.resolve(kernel, row), self.fails.as_ref().map(|fails| fails.resolve(kernel, row)))
    }
}

/// All parts as arguments of a block.
fn arguments_of(values: &[Parts]) -> Vec<BlockArg> {
    values.iter().flatten().copied().map(BlockArg::from).collect()
}
