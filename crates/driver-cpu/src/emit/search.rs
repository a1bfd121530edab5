//! Runs that look for work.
//!
//! A step of a search over a graph asks every node whether it is on the frontier, and few are. Where a run does nothing
//! but load elements side by side and, if something holds of them, a loop, lanes are asked in vectors: for a few of them
//! at once it is computed which go on, and only those run, one after the other, from the beginning. A lane that does not
//! go on has loaded what it was asked about and is done; that others ran between its load and theirs is an order like
//! any other.

use super::bounds::Access;
use super::lanes::Lane;
use super::vectors::LANES;
use super::{Emitter, Keep, Span};
use crate::compile::Simd;
use crate::shape::Level;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, InstBuilder};
use vyre_foundation::{BufferAccess, Element};
use vyre_lower::{Item, ItemId, RegionId, Value, ValueId};

/// The most vectors of lanes that are asked at once.
const VECTORS: u32 = 4;

/// The most rows and loads of a question.
const MOST: usize = 16;

/// What lanes are asked whether they go on.
pub(super) struct Question {
    /// What comes before the branch.
    before: Span,
    /// What the branch asks, and what must come out.
    cond: ValueId,
    holds: bool,
}

impl Emitter<'_, '_> {
    /// What the lanes of a run can be asked first, if it is a run that looks for work.
    pub(super) fn question(&self, span: Span, keeps: &[Keep]) -> Option<Question> {
        let is_kept = keeps.iter().any(|keep| keep.level == Level::Lane);
        if self.target.simd == Simd::Off || self.shape.is_large || self.is_rare || is_kept {
            return None;
        }
        let before = Span { end: span.end.checked_sub(1)?, ..span };
        if before.end <= before.start {
            return None;
        }
        let branch = self.shape.kernel.item_at(span.region, before.end);
        let (cond, holds, region) = self.one_way(branch)?;
        let is_asked = !self.is_same(cond) && self.has_loop(region) && self.is_askable(before);
        let is_left = self.shape.rows_at(span.region, span.end).iter().any(|(_, row)| self.is_row_kept(*row));
        (is_asked && !is_left).then_some(Question { before, cond, holds })
    }

    /// The condition of a branch that gives nothing and has one arm, whether it must hold, and the arm.
    pub(super) fn one_way(&self, id: ItemId) -> Option<(ValueId, bool, RegionId)> {
        let shape = self.shape;
        let Item::If { cond, then, otherwise, .. } = shape.kernel.item(id) else { return None };
        if shape.result_count(id) > 0 {
            return None;
        }
        match [then, otherwise].map(|arm| shape.kernel.item_count(arm)) {
            [_, 0] => Some((cond, true, then)),
            [0, _] => Some((cond, false, otherwise)),
            _ => None,
        }
    }

    fn has_loop(&self, region: RegionId) -> bool {
        let kernel = self.shape.kernel;
        (0..kernel.item_count(region))
            .any(|at| matches!(kernel.item(kernel.item_at(region, at)), Item::Loop { .. }))
    }

    /// Whether a row of lanes is kept for code elsewhere.
    pub(super) fn is_row_kept(&self, row: ValueId) -> bool {
        self.shape.defined[row.index()] == Level::Lane && self.slot_to_write(row).is_some()
    }

    /// Whether a stretch is a few operators with vector forms and loads side by side that need no check.
    fn is_askable(&self, span: Span) -> bool {
        let (shape, kernel) = (self.shape, self.shape.kernel);
        if !self.is_small_bundle(span, MOST) {
            return false;
        }
        for position in span.positions() {
            let rows = shape.rows_at(span.region, position);
            let of_lanes = |row: &ValueId| shape.defined[row.index()] == Level::Lane;
            for row in rows.iter().map(|(_, row)| *row).filter(of_lanes) {
                let value = kernel.value(row);
                let is_fine = match value {
                    Value::Load { buffer, index, .. } => self.is_side(Access::Row(row), buffer, index),
                    _ => self.has_vector_form(value) || shape.kernel.stride(row).is_some(),
                };
                if !is_fine || self.is_row_kept(row) {
                    return false;
                }
            }
            if position == span.end {
                break;
            }
            let id = kernel.item_at(span.region, position);
            let is_fine = match kernel.item(id) {
                Item::Load { buffer, index, .. } => self.is_side(Access::Item(id), buffer, index),
                Item::Atomic { buffer, index, .. } if self.is_loaded_side(&kernel.item(id)) => {
                    self.is_side(Access::Item(id), buffer, index)
                }
                _ => false,
            };
            if !is_fine || shape.result(id, 0).is_some_and(|row| self.is_row_kept(row)) {
                return false;
            }
        }
        true
    }

    /// Whether a load is of elements side by side that are known to be inside. Each lane has `local` memory of its own.
    fn is_side(&self, access: Access, buffer: u32, index: ValueId) -> bool {
        let decl = &self.shape.kernel.buffers[buffer as usize];
        self.shape.kernel.stride(index) == Some(1)
            && decl.element() != Element::F16
            && decl.access() != BufferAccess::Local
            && self.proven.contains(&access)
    }

    /// A loop over lanes on x that asks them first.
    pub(super) fn ask(
        &mut self,
        question: &Question,
        mut lane: Lane,
        (first, end): (ir::Value, ir::Value),
        (span, keeps): (Span, &[Keep]),
    ) {
        let size = self.shape.kernel.workgroup_size.size()[0];
        let vectors = VECTORS.min(1 << (size / LANES).ilog2());
        let lanes = i64::from(vectors * LANES);
        let [round, whole, rest, found, one, next, behind] = [0; 7].map(|_| self.b.create_block());
        let some = self.icmp(IntCC::SignedLessThan, first, end);
        self.b.ins().brif(some, round, &[first.into()], behind, &[]);

        self.b.switch_to_block(round);
        let start = self.b.append_block_param(round, I64);
        let left = self.b.ins().isub(end, start);
        let enough = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, left, lanes);
        self.b.ins().brif(enough, whole, &[], rest, &[]);

        self.b.switch_to_block(whole);
        lane.ids[0] = start;
        let bits = self.with_bundle(lane, vectors, |e| {
            if let Some(bundle) = &mut e.bundle {
                bundle.is_asked = true;
            }
            e.vector_span(question.before);
            let asked = e.vector(question.cond);
            e.lane_bits(&asked)
        });
        let bits = if question.holds { bits } else { self.b.ins().bxor_imm_u(bits, (1 << lanes) - 1) };
        self.b.ins().jump(found, &[bits.into()]);

        // The last lanes are fewer: all of them run, and find out for themselves.
        self.b.switch_to_block(rest);
        let bit = self.b.ins().iconst(I32, 1);
        let bit = self.b.ins().ishl(bit, left);
        let bits = self.b.ins().iadd_imm_s(bit, -1);
        self.b.ins().jump(found, &[bits.into()]);

        self.b.switch_to_block(found);
        let bits = self.b.append_block_param(found, I32);
        self.b.ins().brif(bits, one, &[bits.into()], next, &[]);

        self.b.switch_to_block(one);
        let bits = self.b.append_block_param(one, I32);
        let number = self.b.ins().ctz(bits);
        let number = self.b.ins().uextend(I64, number);
        lane.ids[0] = self.b.ins().iadd(start, number);
        self.one_lane(lane, span, keeps);
        let others = self.b.ins().iadd_imm_s(bits, -1);
        let bits = self.b.ins().band(bits, others);
        self.b.ins().brif(bits, one, &[bits.into()], next, &[]);

        self.b.switch_to_block(next);
        if self.shape.is_long {
            self.check_stop();
        }
        let start = self.b.ins().iadd_imm_s(start, lanes);
        let more = self.icmp(IntCC::SignedLessThan, start, end);
        self.b.ins().brif(more, round, &[start.into()], behind, &[]);
        self.b.switch_to_block(behind);
    }
}
