//! Which runs go over bundles, and how many vectors of lanes a bundle has.
//!
//! The time of a run is estimated for both ways, in operations per four lanes:
//!
//! | what | lane by lane | bundles |
//! |---|---|---|
//! | a row that is the same in all lanes, or differs by a stride | 4 | 1 |
//! | an operator with a vector form | 4 | 1, of 64 bits 2 |
//! | an operator without | 4 | 16 |
//! | an access side by side | 4 | 2, a load without a check 1 |
//! | a load that is mostly side by side | 4 | 4 |
//! | a load by a stride | 4 | 6 |
//! | any other load | 4 | 9, in a loop 6 |
//! | any other store | 4 | 12 |
//! | an atomic side by side whose result nobody wants | 8 | 4 |
//! | any other atomic, a trap | 8 | 16 |
//! | a row that is kept for other runs | 4 | 1 |
//!
//! A loop counts [`ROUNDS`] times its body. Loads in loops count less because the next round of a lane waits for them: a
//! bundle has the rounds of other lanes to do meanwhile. A branch on which lanes differ counts twice for bundles, which
//! go both ways.
//!
//! Some runs are always for lanes: those of a loop that lanes leave at different times, by what they read or computed,
//! if there are accesses in it that are made lane by lane: a bundle would make them for the lane that stays longest. And
//! those that use `local` memory, which is made for one lane.

use super::bounds::Access;
use super::vectors::{LANES, is_wide};
use super::{Emitter, Keep, Span};
use crate::compile::Simd;
use crate::shape::Level;
use vyre_foundation::BufferAccess;
use vyre_lower::{Item, ItemId, RegionId, Value, ValueId};

/// How many vectors a bundle has, by the most rows and items that the run has: short ones leave time between operations
/// that depend on each other, long ones cost time to compile.
const VECTORS: [(usize, u32); 3] = [(24, 8), (200, 2), (1000, 1)];

/// How many vectors are enough where operations of other bundles follow soon, or where more would not have registers.
pub(super) const ENOUGH: u32 = 4;

/// How many rows and items of lanes in bundles a kernel has at most: beyond it, its time to compile matters more.
const MOST: usize = 1 << 15;

/// How often the body of a loop is taken to run.
const ROUNDS: u64 = 8;

/// How far a condition is followed to see what it is made of.
pub(super) const DEPTH: u32 = 8;

/// The bundles of a run.
pub(super) struct Choice {
    /// How many vectors of lanes one has.
    pub(super) vectors: u32,
    /// Whether there are loops in the run.
    pub(super) has_loops: bool,
}

/// What one run costs.
#[derive(Default)]
struct Survey {
    lanes: u64,
    bundles: u64,
    /// How often what is looked at runs.
    times: u64,
    /// How many loops are around it.
    loops: u32,
    /// Whether lanes leave one of these at different times that nobody can foretell.
    is_ragged: bool,
    size: usize,
    gathers: bool,
    /// Whether there are lanes of 64 bits.
    is_wide: bool,
    /// Whether lanes leave a loop at different times.
    is_masked: bool,
    has_loops: bool,
    /// How many rows that lanes have for themselves are made outside of loops.
    held: u32,
    /// The most such rows that go around in a loop.
    carried: u32,
    /// Whether lanes do something one by one.
    acts: bool,
    /// Whether lanes would make accesses for those that stay longer in a loop.
    waits: bool,
    /// Whether there is no other way than lane by lane.
    refused: bool,
}

impl Survey {
    fn add(&mut self, lanes: u64, bundles: u64) {
        self.lanes = self.lanes.saturating_add(self.times.saturating_mul(lanes));
        self.bundles = self.bundles.saturating_add(self.times.saturating_mul(bundles));
    }
}

impl Emitter<'_, '_> {
    /// The bundles of a run; `None` where it goes over single lanes.
    pub(super) fn choice(&mut self, span: Span, keeps: &[Keep]) -> Option<Choice> {
        if self.target.simd == Simd::Off || self.shape.is_large {
            return None;
        }
        let mut survey = Survey { times: 1, ..Survey::default() };
        self.survey(span, &mut survey);
        for keep in keeps.iter().filter(|keep| keep.level == Level::Lane) {
            survey.refused |= is_wide(keep.ty) && !self.target.unaligned;
            survey.add(4, 1);
        }
        let is_worthwhile =
            !survey.waits && survey.bundles.saturating_mul(5) <= survey.lanes.saturating_mul(4);
        if survey.refused || !is_worthwhile && self.target.simd == Simd::On {
            return None;
        }
        let (_, most) = VECTORS.into_iter().find(|(most, _)| survey.size <= *most)?;
        let vectors = most.min(if survey.is_masked || survey.gathers || survey.is_wide {
            // The lane that stays longest keeps all others; and all that goes around wants a place in a register.
            2
        } else if survey.has_loops && !survey.acts && survey.held <= 1 && survey.carried <= 1 {
            // One chain of operations, each of which waits for the one before.
            most
        } else {
            ENOUGH
        });
        let bundled = survey.size * (vectors * LANES) as usize;
        if self.bundled + bundled > MOST {
            return None;
        }
        self.bundled += bundled;
        Some(Choice { vectors, has_loops: survey.has_loops })
    }

    /// Whether a stretch has a form for bundles and at most so many rows and items.
    pub(super) fn is_small_bundle(&self, span: Span, most: usize) -> bool {
        let mut survey = Survey { times: 1, ..Survey::default() };
        self.survey(span, &mut survey);
        !survey.refused && survey.size <= most
    }

    fn survey(&self, span: Span, survey: &mut Survey) {
        let shape = self.shape;
        for position in span.positions() {
            for (_, row) in shape.rows_at(span.region, position) {
                if shape.defined[row.index()] == Level::Lane {
                    self.survey_row(*row, survey);
                    self.survey_slot(*row, survey);
                }
            }
            if position == span.end || survey.refused {
                break;
            }
            survey.size += 1;
            let id = shape.kernel.item_at(span.region, position);
            self.survey_item(id, survey);
            if let Some(row) = shape.result(id, 0) {
                self.survey_slot(row, survey);
            }
        }
    }

    /// A row that is kept for other runs is written, too.
    fn survey_slot(&self, row: ValueId, survey: &mut Survey) {
        if self.slot_to_write(row).is_some() {
            survey.add(4, 1);
        }
    }

    fn survey_region(&self, region: RegionId, survey: &mut Survey) {
        let end = self.shape.kernel.item_count(region);
        stacker::maybe_grow(64 << 10, 1 << 20, || self.survey(Span { region, start: 0, end }, survey));
    }

    fn survey_row(&self, row: ValueId, survey: &mut Survey) {
        let value = self.shape.kernel.value(row);
        survey.size += 1;
        if let Value::Load { buffer, index, .. } = value {
            return self.survey_load(Access::Row(row), buffer, index, survey);
        }
        if self.is_first_only(row) {
            return survey.add(4, 1);
        }
        survey.held += u32::from(survey.loops == 0);
        let wide = is_wide(value.ty()) || value.operands().any(|operand| self.is_wide_row(operand));
        survey.refused |= wide && !self.target.unaligned;
        survey.is_wide |= wide;
        match (self.has_vector_form(value), wide) {
            (true, false) => survey.add(4, 1),
            (true, true) => survey.add(4, 2),
            (false, _) => survey.add(4, 16),
        }
    }

    fn is_wide_row(&self, row: ValueId) -> bool {
        is_wide(self.shape.kernel.value(row).ty())
    }

    fn survey_load(&self, access: Access, buffer: u32, index: ValueId, survey: &mut Survey) {
        let decl = &self.shape.kernel.buffers[buffer as usize];
        survey.refused |= decl.access() == BufferAccess::Local
            || is_wide(decl.element().value_type()) && !self.target.unaligned;
        if self.is_same(index) {
            return survey.add(4, 1);
        }
        survey.held += u32::from(survey.loops == 0);
        if self.shape.kernel.stride(index) == Some(1) {
            return survey.add(4, if self.proven.contains(&access) { 1 } else { 2 });
        }
        if self.shape.kernel.stride(index).is_none() && self.is_mostly_side_by_side(index) {
            return survey.add(4, 4);
        }
        survey.gathers = true;
        survey.waits |= survey.is_ragged;
        let has_stride = self.shape.kernel.stride(index).is_some();
        survey.add(4, if has_stride || survey.loops > 0 { 6 } else { 9 });
    }

    fn survey_item(&self, id: ItemId, survey: &mut Survey) {
        let kernel = self.shape.kernel;
        match kernel.item(id) {
            Item::Load { buffer, index, .. } => self.survey_load(Access::Item(id), buffer, index, survey),
            Item::Store { buffer, index, value } => {
                let decl = &kernel.buffers[buffer as usize];
                survey.refused |=
                    decl.access() == BufferAccess::Local || self.is_wide_row(value) && !self.target.unaligned;
                if self.is_stored_side_by_side(buffer, index) {
                    return survey.add(4, 2);
                }
                survey.waits |= survey.is_ragged;
                survey.acts = true;
                survey.add(4, 12);
            }
            Item::If { cond, then, otherwise, yields } => {
                survey.size += yields.len();
                let lanes = survey.lanes;
                self.survey_region(then, survey);
                self.survey_region(otherwise, survey);
                if !self.is_same(cond) {
                    // One lane goes one way only.
                    survey.lanes = lanes + (survey.lanes - lanes) / 2;
                    survey.add(4, 2);
                }
            }
            Item::Loop { guard, first, body, again, .. } => {
                // What goes around takes registers.
                survey.size += 2 * first.len();
                let params = (0..first.len()).filter_map(|k| self.shape.param(id, k));
                let carried = params.filter(|row| !self.is_first_only(*row)).count() as u32;
                survey.carried = survey.carried.max(carried);
                let is_together = self.is_same(guard) && self.is_same(again);
                let (times, was_ragged) = (survey.times, survey.is_ragged);
                let is_plain = self.is_plain(guard, DEPTH) && self.is_plain(again, DEPTH);
                survey.is_ragged |= !is_together && !is_plain;
                survey.times = times.saturating_mul(ROUNDS);
                survey.loops += 1;
                survey.has_loops = true;
                survey.is_masked |= !is_together;
                self.survey_region(body, survey);
                survey.add(8, if is_together { 2 } else { 6 });
                survey.loops -= 1;
                (survey.times, survey.is_ragged) = (times, was_ragged);
            }
            item => {
                if let Item::Atomic { buffer, .. } = item {
                    survey.refused |= is_wide(kernel.buffers[buffer as usize].element().value_type())
                        && !self.target.unaligned;
                }
                if self.is_updated_side(id) {
                    return survey.add(8, 4);
                }
                survey.waits |= survey.is_ragged;
                survey.acts = true;
                survey.add(8, 16);
            }
        }
    }

    /// Whether a condition is made of ids, lengths and counters alone, so that lanes side by side mostly agree.
    pub(super) fn is_plain(&self, row: ValueId, depth: u32) -> bool {
        let value = self.shape.kernel.value(row);
        if self.is_first_only(row) {
            return true;
        }
        let is_made = !matches!(value, Value::Load { .. } | Value::Param { .. } | Value::Out { .. });
        depth > 0 && is_made && value.operands().all(|operand| self.is_plain(operand, depth - 1))
    }
}
