//! Loops over workgroups and over the lanes of a workgroup.
//!
//! In a segment each worker takes workgroups until none is left, so one that finds less work takes more of it. A run goes
//! over the lanes with x fastest. Where all that a run does stands in one `if` that compares an id with something that
//! all lanes share, the loop goes over the lanes for which that holds and no others. Runs that are worth it go over bundles
//! of lanes first, and lane by lane over what is left.

use super::bounds::Access;
use super::choice::{Choice, ENOUGH};
use super::conditions::{Terms, comparison, swapped};
use super::vectors::LANES;
use super::{Emitter, Keep, Span};
use crate::context::{Calls, Context, NONE_LEFT, Worker};
use crate::shape::Level;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, MemFlagsData};
use rustc_hash::FxHashMap;
use std::mem::offset_of;
use vyre_foundation::{BinOp, BufferAccess};
use vyre_lower::{Id, Item, RegionId, Value, ValueId};

/// The workgroup that the code at hand is for.
#[derive(Clone, Copy)]
pub(super) struct Workgroup {
    /// Its number.
    pub(super) linear: ir::Value,
    /// Its id on each axis, as 32 bits.
    pub(super) ids: [ir::Value; 3],
    /// The global id of its first lane on each axis, as 64 bits.
    pub(super) base: [ir::Value; 3],
    /// What it keeps across grid barriers.
    pub(super) kept: Option<ir::Value>,
}

/// The lane that the code at hand is for.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    /// Its global id on each axis where the loop counts these, else its local id, as 64 bits.
    pub(super) ids: [ir::Value; 3],
    /// Where the loop counts global ids.
    pub(super) is_global: [bool; 3],
}

/// Lanes that a round does one after the other.
#[derive(Default)]
pub(super) struct Side {
    /// Which of them the code at hand is for.
    pub(super) number: u32,
    /// The indices that the first of them accesses with, as 64 bits.
    pub(super) first: FxHashMap<ValueId, ir::Value>,
}

/// Which lanes a run is for.
struct Trim {
    /// The first lane and the one behind the last, on each axis where it is not all.
    ranges: [Option<(ir::Value, ir::Value)>; 3],
    /// What is left to do for these lanes.
    span: Span,
}

/// The bundles of a run.
struct Bundles {
    /// How many vectors of lanes the first ones have, and the later ones.
    vectors: Vec<u32>,
    /// Where this does not hold there are none.
    holds: Option<ir::Value>,
    /// Accesses that need no check where it holds.
    accesses: Vec<Access>,
}

/// What a loop over lanes goes over.
struct Plan<'p> {
    trim: Trim,
    bundles: Option<Bundles>,
    keeps: &'p [Keep],
}

/// What a round of a loop over lanes does, where that is not one lane.
#[derive(Clone, Copy)]
enum Round {
    /// So many lanes, one after the other.
    Lanes(u32),
    /// A bundle of so many vectors of lanes.
    Bundle(u32),
}

impl Round {
    fn lanes(self) -> u32 {
        match self {
            Round::Lanes(lanes) => lanes,
            Round::Bundle(vectors) => vectors * LANES,
        }
    }
}

/// How many lanes a round of a short run does.
const UNROLL: u32 = 8;

/// The most rows and items of a short run.
const SHORT: usize = 16;

impl Emitter<'_, '_> {
    /// A loop over workgroups around a stretch, which ends when all workgroups are taken; `false` where there is nothing to
    /// do. All of it is done when the workers have met.
    pub(super) fn segment(&mut self, span: Span, keeps: &[Keep]) -> bool {
        if self.is_empty(span, Level::Workgroup, keeps) {
            return false;
        }
        if self.has_read {
            self.meet(false);
        }
        self.segment += 1;
        let mark = self.log.len();
        let [take, some, unravel, body, step, done] = [0; 6].map(|_| self.b.create_block());
        self.b.ins().jump(take, &[]);

        self.b.switch_to_block(take);
        let pointer = self.target.pointer;
        let arguments = [self.context, self.worker];
        let first = self.call_for(offset_of!(Calls, take), &[pointer, pointer], I64, &arguments);
        let none = self.b.ins().icmp_imm_s(IntCC::Equal, first, NONE_LEFT as i64);
        self.b.ins().brif(none, done, &[], some, &[]);

        self.b.switch_to_block(some);
        let flags = MemFlagsData::new().with_notrap().with_aligned();
        let end = self.b.ins().load(I64, flags, self.worker, offset_of!(Worker<'_>, end) as i32);
        let [x_count, y_count] = [0, 1].map(|axis| {
            let count = self.context_field(I32, offset_of!(Context, workgroups) + 4 * axis);
            self.b.ins().uextend(I64, count)
        });
        // In the first row, and so in a grid of one dimension, nothing needs to be divided.
        let zero = self.b.ins().iconst(I64, 0);
        let in_row = self.icmp(IntCC::UnsignedLessThan, first, x_count);
        self.b.ins().brif(in_row, body, &[first, first, zero, zero].map(BlockArg::from), unravel, &[]);

        self.b.switch_to_block(unravel);
        let x = self.b.ins().urem(first, x_count);
        let rest = self.b.ins().udiv(first, x_count);
        let y = self.b.ins().urem(rest, y_count);
        let z = self.b.ins().udiv(rest, y_count);
        self.b.ins().jump(body, &[first, x, y, z].map(BlockArg::from));

        self.b.switch_to_block(body);
        let [linear, x, y, z] = [0; 4].map(|_| self.b.append_block_param(body, I64));
        self.check_stop();
        self.enter_workgroup(linear, [x, y, z]);
        self.workgroup_span(span, keeps);
        self.workgroup = None;
        self.forget(mark);
        let linear = self.b.ins().iadd_imm_s(linear, 1);
        let more = self.icmp(IntCC::UnsignedLessThan, linear, end);
        self.b.ins().brif(more, step, &[], take, &[]);

        self.b.switch_to_block(step);
        let x = self.b.ins().iadd_imm_s(x, 1);
        let wraps = self.icmp(IntCC::Equal, x, x_count);
        let [row, carry] = [0; 2].map(|_| self.b.create_block());
        self.b.ins().brif(wraps, row, &[], body, &[linear, x, y, z].map(BlockArg::from));
        self.b.switch_to_block(row);
        let y = self.b.ins().iadd_imm_s(y, 1);
        let wraps = self.icmp(IntCC::Equal, y, y_count);
        self.b.ins().brif(wraps, carry, &[], body, &[linear, zero, y, z].map(BlockArg::from));
        self.b.switch_to_block(carry);
        let z = self.b.ins().iadd_imm_s(z, 1);
        self.b.ins().jump(body, &[linear, zero, zero, z].map(BlockArg::from));

        self.b.switch_to_block(done);
        true
    }

    fn enter_workgroup(&mut self, linear: ir::Value, ids: [ir::Value; 3]) {
        let size = self.shape.kernel.workgroup_size.size();
        let base = [0, 1, 2].map(|axis: usize| self.b.ins().imul_imm_s(ids[axis], i64::from(size[axis])));
        let ids = ids.map(|id| self.b.ins().ireduce(I32, id));
        let kept = (self.slots.kept_bytes > 0).then(|| {
            let start = self.context_field(self.target.pointer, offset_of!(Context, kept));
            let offset = self.b.ins().imul_imm_s(linear, self.slots.kept_bytes as i64);
            self.b.ins().iadd(start, offset)
        });
        self.workgroup = Some(Workgroup { linear, ids, base, kept });
        // What lives across grid barriers is zero before the first of them.
        if !self.shape.segmented {
            self.zero_own(|access| access == BufferAccess::Workgroup || self.shape.has_runs);
        }
    }

    /// Fills own memory with zeros that stands in the frame of the worker.
    fn zero_own(&mut self, which: impl Fn(BufferAccess) -> bool) {
        for number in 0..self.shape.kernel.buffers.len() {
            let Some(own) =
                self.slots.own[number].filter(|_| which(self.shape.kernel.buffers[number].access()))
            else {
                continue;
            };
            let bytes = u64::from(own.bytes).max(u64::from(own.stride) * u64::from(self.shape.lanes));
            const INLINE: u64 = 64;
            if bytes <= INLINE {
                // Places are 16 apart, so whole words fit.
                let zero = self.b.ins().iconst(I64, 0);
                for offset in (0..bytes).step_by(8) {
                    self.b.ins().store(self.own_flags, zero, self.frame, own.offset + offset as i32);
                }
                continue;
            }
            let start = self.b.ins().iadd_imm_s(self.frame, i64::from(own.offset));
            let count = self.b.ins().iconst(I64, bytes as i64);
            let pointer = self.target.pointer;
            let arguments = [self.context, start, count];
            self.call(offset_of!(Calls, zero), &[pointer, pointer, I64], &arguments);
            // Of what every lane has for itself this can be most of the work.
            const MUCH: u64 = 64 << 10;
            if bytes >= MUCH {
                self.check_stop();
            }
        }
    }

    /// A loop over the lanes of the workgroup around a stretch.
    pub(super) fn run(&mut self, span: Span, keeps: &[Keep]) {
        if self.is_empty(span, Level::Lane, keeps) {
            return;
        }
        let trim = self.trim(span, keeps);
        let (mut accesses, mut holds) = self.guard(span, false).unwrap_or_default();
        let checked = self.proven.clone();
        self.proven.extend(accesses.iter().copied());
        let vectors = self.bundle_sizes(&trim, keeps);
        let has_bundles = !vectors.is_empty();
        if !has_bundles && self.has_usual_condition(span) {
            self.proven = checked.clone();
            (accesses, holds) = self.guard(span, true).unwrap_or_default();
            self.proven.extend(accesses.iter().copied());
        }
        let proven = self.proven.clone();
        let bundles = has_bundles.then_some(Bundles { vectors, holds, accesses });
        let plan = Plan { trim, bundles, keeps };
        let Some(holds) = holds else {
            self.lanes(&plan);
            self.proven = checked;
            return;
        };
        if has_bundles {
            // What is left when the bundles are done is looked at lane by lane, whether there were bundles or not.
            self.proven = checked;
            self.is_rare = true;
            self.lanes(&plan);
            self.is_rare = false;
            return;
        }
        let [fast, slow, join] = [0; 3].map(|_| self.b.create_block());
        self.b.ins().brif(holds, fast, &[], slow, &[]);
        self.b.switch_to_block(fast);
        self.proven = proven;
        self.lanes(&plan);
        self.b.ins().jump(join, &[]);
        self.proven = checked;
        self.b.switch_to_block(slow);
        self.seldom(slow);
        self.is_rare = true;
        self.lanes(&plan);
        self.is_rare = false;
        self.b.ins().jump(join, &[]);
        self.b.switch_to_block(join);
    }

    /// How many vectors the bundles of a run have: many at once, then fewer where that is not much code.
    fn bundle_sizes(&mut self, trim: &Trim, keeps: &[Keep]) -> Vec<u32> {
        let lanes = self.shape.kernel.workgroup_size.size()[0];
        if lanes < LANES {
            return Vec::new();
        }
        let Some(Choice { vectors, has_loops }) = self.choice(trim.span, keeps) else { return Vec::new() };
        let is_whole = lanes.is_multiple_of(vectors * LANES);
        let many = if is_whole { vectors } else { vectors.min(ENOUGH).min(lanes / LANES) };
        let is_even = trim.ranges[0].is_none() && lanes.is_multiple_of(many * LANES);
        // Trimmed runs, as those of reductions, often have lanes for one vector only.
        if many == 1 || has_loops || is_even { vec![many] } else { vec![many, 1] }
    }

    fn lanes(&mut self, plan: &Plan<'_>) {
        let zero = self.b.ins().iconst(I64, 0);
        self.over(&[2, 1, 0], Lane { ids: [zero; 3], is_global: [false; 3] }, plan);
    }

    /// Loops over the lanes on some axes, the first one outermost.
    fn over(&mut self, axes: &[usize], mut lane: Lane, plan: &Plan<'_>) {
        let trim = &plan.trim;
        let Some((&axis, inner)) = axes.split_first() else {
            return self.one_lane(lane, trim.span, plan.keeps);
        };
        let size = self.shape.kernel.workgroup_size.size()[axis];
        if size == 1 && trim.ranges[axis].is_none() {
            return self.over(inner, lane, plan);
        }
        let (zero, all) = (self.b.ins().iconst(I64, 0), self.b.ins().iconst(I64, i64::from(size)));
        let (mut first, mut end) = trim.ranges[axis].unwrap_or((zero, all));
        if let (true, Some(workgroup)) = (self.counts_global(axis, plan), self.workgroup) {
            first = self.b.ins().iadd(first, workgroup.base[axis]);
            end = self.b.ins().iadd(end, workgroup.base[axis]);
            lane.is_global[axis] = true;
        }
        let mut has_rounds = false;
        if inner.is_empty()
            && size >= LANES
            && plan.bundles.is_none()
            && let Some(question) = self.question(trim.span, plan.keeps)
        {
            return self.ask(&question, lane, (first, end), (trim.span, plan.keeps));
        }
        if let (true, Some(bundles)) = (inner.is_empty(), &plan.bundles) {
            first = self.bundles(bundles, lane, first, end, plan);
            let is_even = bundles.vectors.iter().any(|vectors| size.is_multiple_of(vectors * LANES));
            // Nothing is left where it is known how many lanes there are and bundles do all of them.
            if trim.ranges[axis].is_none() && bundles.holds.is_none() && is_even {
                return;
            }
            has_rounds = true;
        } else if inner.is_empty() && size >= 2 * UNROLL && self.is_short(trim.span) {
            first = self.repeat_round(Round::Lanes(UNROLL), axis, lane, first, end, plan);
            if trim.ranges[axis].is_none() && size.is_multiple_of(UNROLL) {
                return;
            }
            has_rounds = true;
        }
        let [head, behind] = [0; 2].map(|_| self.b.create_block());
        if trim.ranges[axis].is_some() || has_rounds {
            let some = self.icmp(IntCC::SignedLessThan, first, end);
            self.b.ins().brif(some, head, &[first.into()], behind, &[]);
        } else {
            self.b.ins().jump(head, &[first.into()]);
        }
        self.b.switch_to_block(head);
        lane.ids[axis] = self.b.append_block_param(head, I64);
        self.over(inner, lane, plan);
        if inner.is_empty() && self.shape.is_long {
            self.check_stop();
        }
        let next = self.b.ins().iadd_imm_s(lane.ids[axis], 1);
        let more = self.icmp(IntCC::SignedLessThan, next, end);
        self.b.ins().brif(more, head, &[next.into()], behind, &[]);
        self.b.switch_to_block(behind);
    }

    /// Whether a loop over lanes counts global ids: where code needs these. Counting from 0 makes places in slots shorter.
    fn counts_global(&self, axis: usize, plan: &Plan<'_>) -> bool {
        let (shape, span) = (self.shape, plan.trim.span);
        let needs = |row: ValueId| shape.of_global[row.index()] >> axis & 1 == 1;
        let needs_row = |(_, row): &(u32, ValueId)| {
            let is_made = shape.defined[row.index()] == Level::Lane && !shape.cheap[row.index()];
            is_made && shape.kernel.value(*row).operands().any(needs)
        };
        let needs_at = |position: u32| {
            if shape.rows_at(span.region, position).iter().any(needs_row) {
                return true;
            }
            if position == span.end {
                return false;
            }
            match shape.kernel.item(shape.kernel.item_at(span.region, position)) {
                Item::If { .. } | Item::Loop { .. } => true,
                item => item.operands().into_iter().any(needs),
            }
        };
        shape.uses_global >> axis & 1 == 1
            && (!shape.has_runs
                || plan.keeps.iter().any(|keep| needs(keep.value))
                || span.positions().any(needs_at))
    }

    /// Goes over lanes on x in bundles, where these may be used. Gives the first lane that is left.
    fn bundles(
        &mut self,
        bundles: &Bundles,
        lane: Lane,
        mut first: ir::Value,
        end: ir::Value,
        plan: &Plan<'_>,
    ) -> ir::Value {
        let rest = self.b.create_block();
        if let Some(holds) = bundles.holds {
            let bundled = self.b.create_block();
            self.b.ins().brif(holds, bundled, &[], rest, &[first.into()]);
            self.b.switch_to_block(bundled);
        }
        let checked = self.proven.clone();
        self.proven.extend(bundles.accesses.iter().copied());
        for vectors in &bundles.vectors {
            first = self.repeat_round(Round::Bundle(*vectors), 0, lane, first, end, plan);
        }
        self.proven = checked;
        self.b.ins().jump(rest, &[first.into()]);
        self.b.switch_to_block(rest);
        self.b.append_block_param(rest, I64)
    }

    /// A loop over as many lanes as are a multiple of those of a round. Gives the first lane that is left.
    fn repeat_round(
        &mut self,
        what: Round,
        axis: usize,
        mut lane: Lane,
        first: ir::Value,
        end: ir::Value,
        plan: &Plan<'_>,
    ) -> ir::Value {
        let last = self.b.ins().iadd_imm_s(end, -i64::from(what.lanes()));
        let [round, rest] = [0; 2].map(|_| self.b.create_block());
        let enough = self.icmp(IntCC::SignedLessThanOrEqual, first, last);
        self.b.ins().brif(enough, round, &[first.into()], rest, &[first.into()]);
        self.b.switch_to_block(round);
        let start = self.b.append_block_param(round, I64);
        match what {
            Round::Bundle(vectors) => {
                lane.ids[axis] = start;
                self.one_bundle(lane, vectors, plan.trim.span, plan.keeps);
            }
            Round::Lanes(lanes) => {
                self.side = (axis == 0).then(Side::default);
                for number in 0..lanes {
                    if let Some(side) = &mut self.side {
                        side.number = number;
                    }
                    lane.ids[axis] = self.b.ins().iadd_imm_s(start, i64::from(number));
                    self.one_lane(lane, plan.trim.span, plan.keeps);
                }
                self.side = None;
            }
        }
        if self.shape.is_long {
            self.check_stop();
        }
        let next = self.b.ins().iadd_imm_s(start, i64::from(what.lanes()));
        let enough = self.icmp(IntCC::SignedLessThanOrEqual, next, last);
        self.b.ins().brif(enough, round, &[next.into()], rest, &[next.into()]);
        self.b.switch_to_block(rest);
        self.b.append_block_param(rest, I64)
    }

    /// Whether there is a branch at the top of a stretch of which it may be known that all lanes take it.
    fn has_usual_condition(&self, span: Span) -> bool {
        let mut items = (span.start..span.end).map(|at| self.shape.kernel.item_at(span.region, at));
        !self.shape.is_large && items.any(|id| self.usual_condition(id).is_some())
    }

    /// Whether a stretch is so short that the loop around it counts: a few rows and effects, without control and checks.
    fn is_short(&self, span: Span) -> bool {
        let mut room = SHORT;
        !self.shape.is_large && self.fits(span, &mut room)
    }

    /// Whether a stretch is rows and effects without control and checks, no more than there is room for.
    fn fits(&self, span: Span, room: &mut usize) -> bool {
        let (shape, kernel) = (self.shape, self.shape.kernel);
        let is_plain_row = |(_, row): &(u32, ValueId)| {
            let is_load = matches!(kernel.value(*row), Value::Load { .. });
            !is_load || shape.defined[row.index()] < Level::Lane || self.proven.contains(&Access::Row(*row))
        };
        for position in span.positions() {
            let rows = shape.rows_at(span.region, position);
            let taken = rows.len() + usize::from(position < span.end);
            if taken > *room || !rows.iter().all(is_plain_row) {
                return false;
            }
            *room -= taken;
            if position == span.end {
                break;
            }
            let id = kernel.item_at(span.region, position);
            let is_plain = match kernel.item(id) {
                Item::Load { .. } | Item::Store { .. } | Item::Atomic { .. } => {
                    self.proven.contains(&Access::Item(id))
                }
                Item::If { then, .. } if self.proven.contains(&Access::Item(id)) => {
                    self.fits(Span { region: then, start: 0, end: kernel.item_count(then) }, room)
                }
                _ => false,
            };
            if !is_plain {
                return false;
            }
        }
        true
    }

    /// What a run does for one lane.
    pub(super) fn one_lane(&mut self, lane: Lane, span: Span, keeps: &[Keep]) {
        let mark = self.log.len();
        self.lane = Some(lane);
        if !self.shape.has_runs {
            self.zero_own(|access| access == BufferAccess::Local);
        }
        self.lane_span(span);
        self.keep(keeps, Level::Lane);
        self.lane = None;
        self.forget(mark);
    }

    /// Finds the lanes that a run is for.
    fn trim(&mut self, span: Span, keeps: &[Keep]) -> Trim {
        let all = Trim { ranges: [None; 3], span };
        let Some((cond, holds, region)) = self.only_branch(span, keeps) else { return all };
        let terms = Terms::of(self.shape.kernel, cond, holds);
        let found: Vec<_> = terms.leaves.iter().filter_map(|leaf| self.lane_term(*leaf)).collect();
        let whole = terms.is_all && found.len() == terms.leaves.len();
        let mut ranges = [None; 3];
        for (axis, id, op, bound) in found {
            let size = i64::from(self.shape.kernel.workgroup_size.size()[axis]);
            let bound = self.get(bound);
            let mut bound = self.b.ins().uextend(I64, bound);
            if let (Id::Invocation, Some(workgroup)) = (id, self.workgroup) {
                bound = self.b.ins().isub(bound, workgroup.base[axis]);
            }
            let zero = self.b.ins().iconst(I64, 0);
            let size = self.b.ins().iconst(I64, size);
            let (first, end) = ranges[axis].unwrap_or((zero, size));
            let behind = self.b.ins().iadd_imm_s(bound, 1);
            let from = |emitter: &mut Self, bound| emitter.b.ins().smax(first, bound);
            let to = |emitter: &mut Self, bound| emitter.b.ins().smin(end, bound);
            ranges[axis] = Some(match op {
                BinOp::Lt => (first, to(self, bound)),
                BinOp::Le => (first, to(self, behind)),
                BinOp::Gt => (from(self, behind), end),
                BinOp::Ge => (from(self, bound), end),
                _ => (from(self, bound), to(self, behind)),
            });
        }
        // Where the ranges say all that the condition says, only the branch is left.
        let end = self.shape.kernel.item_count(region);
        Trim { ranges, span: if whole { Span { region, start: 0, end } } else { span } }
    }

    /// The one branch that a stretch consists of: its condition, whether it must hold, and the region.
    fn only_branch(&self, span: Span, keeps: &[Keep]) -> Option<(ValueId, bool, RegionId)> {
        let rows_at = |position| self.shape.rows_at(span.region, position);
        if span.end != span.start + 1
            || keeps.iter().any(|keep| keep.level == Level::Lane)
            || span
                .positions()
                .any(|position| rows_at(position).iter().any(|(_, row)| self.is_row_kept(*row)))
        {
            return None;
        }
        self.one_way(self.shape.kernel.item_at(span.region, span.start))
    }

    /// The comparison of an id of the lane with what the workgroup shares that a condition makes, if that is what it is.
    fn lane_term(&self, leaf: (ValueId, bool)) -> Option<(usize, Id, BinOp, ValueId)> {
        let (op, a, b) = comparison(self.shape.kernel, leaf)?;
        let shared = |row: ValueId| self.shape.defined[row.index()] < Level::Lane;
        for (op, id, bound) in [(op, a, b), (swapped(op), b, a)] {
            if let Value::Id(id @ (Id::Invocation | Id::Local), axis) = self.shape.kernel.value(id)
                && shared(bound)
            {
                return Some((axis as usize, id, op, bound));
            }
        }
        None
    }

    /// The linear index of the lane in its workgroup, as 64 bits.
    pub(super) fn lane_index(&mut self) -> ir::Value {
        let zero = self.b.ins().iconst(I64, 0);
        let ids = [0, 1, 2].map(|axis| self.wide_id(Id::Local, axis).unwrap_or(zero));
        let [x, y, z] = self.shape.kernel.workgroup_size.size().map(i64::from);
        let mut index = ids[0];
        if y > 1 {
            let row = self.b.ins().imul_imm_s(ids[1], x);
            index = self.b.ins().iadd(index, row);
        }
        if z > 1 {
            let plane = self.b.ins().imul_imm_s(ids[2], x * y);
            index = self.b.ins().iadd(index, plane);
        }
        index
    }

    /// An id of the invocation at hand, as 64 bits.
    pub(super) fn wide_id(&mut self, id: Id, axis: usize) -> Option<ir::Value> {
        let (workgroup, lane) = (self.workgroup?, self.lane);
        let Lane { ids, is_global } = lane?;
        match (id, is_global[axis]) {
            (Id::Invocation, true) | (Id::Local, false) => Some(ids[axis]),
            (Id::Invocation, false) => Some(self.b.ins().iadd(ids[axis], workgroup.base[axis])),
            (Id::Local, true) => Some(self.b.ins().isub(ids[axis], workgroup.base[axis])),
            (Id::Workgroup | Id::NumWorkgroups, _) => None,
        }
    }
}
