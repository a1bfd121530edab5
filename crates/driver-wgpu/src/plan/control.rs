//! Predicates. A step that depends on one is an indirect dispatch whose arguments a small kernel writes before: a
//! *control*, a list of decisions that one invocation takes in order. Steps share a control as long as nobody has
//! written what it would decide on since; a step that sets a single word may be a decision of its own.

use super::{ARGUMENT_BYTES, ARGUMENTS, Counts, DATA, Dispatch, Op, Planner, Range, WORDS};
use crate::utility::Utility;
use vyre_driver::{Predicate, Result};

/// How far back a control may be. Looking at everything since then takes time.
const MOST_BEHIND: usize = 64;
/// The most words of the entries of a control, eight for each: so few rounds no driver cuts off.
const MOST_ENTRIES: usize = 8 << 12;

/// Decisions, and how they are launched.
pub(crate) struct Control {
    /// Its place among the ops.
    at: usize,
    /// Words of other buffers that are copied first: from where, and to which word.
    pub(crate) copies: Vec<(Range, Range)>,
    entries: Vec<u32>,
    pub(crate) dispatches: Vec<Dispatch>,
}

impl Planner<'_> {
    /// Ends a step: what is pending runs, where its predicate holds.
    pub(super) fn flush(&mut self, when: Option<Predicate>, counts: Counts) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let Some(when) = when else {
            self.plan.counts.launches += counts.launches;
            self.plan.counts.uploaded += counts.uploaded;
            self.plan.ops.extend(pending.into_iter().map(Op::Dispatch));
            return Ok(());
        };
        let first = self.arguments;
        // All of a step is decided before any of it runs: it may write the word that it asks.
        for dispatch in &mut pending {
            dispatch.argument = Some(self.argument(when, dispatch.workgroups)?);
        }
        if counts != Counts::default() {
            if pending.is_empty() {
                self.argument(when, [0; 3])?;
            }
            self.plan.conditional.push((first, counts));
        }
        self.plan.ops.extend(pending.into_iter().map(Op::Dispatch));
        Ok(())
    }

    /// The number of an argument that is these counts where the predicate holds, and no workgroups elsewhere.
    fn argument(&mut self, when: Predicate, workgroups: [u32; 3]) -> Result<u32> {
        let word = self.asked(when)?;
        let number = self.arguments;
        self.arguments += 1;
        let [x, y, z] = workgroups;
        self.enter([word, u32::from(when.holds), 0, number * 4, x, y, z, 0]);
        Ok(number)
    }

    /// Sets a word of the words where the predicate holds.
    pub(super) fn set_word(&mut self, when: Predicate, target: Range, value: u32) -> Result<()> {
        let mut word = self.asked(when)?;
        let is_late =
            self.plan.controls.last().is_some_and(|last| self.is_touched_since(last.at, target, true));
        if is_late {
            self.open();
            word = self.asked(when)?;
        }
        self.enter([word, u32::from(when.holds), 1, (target.offset / 4) as u32, value, 0, 0, 0]);
        Ok(())
    }

    fn enter(&mut self, entry: [u32; 8]) {
        if let Some(control) = self.plan.controls.last_mut() {
            control.entries.extend_from_slice(&entry);
        }
    }

    fn open(&mut self) {
        let at = self.plan.ops.len();
        self.plan.ops.push(Op::Control(self.plan.controls.len()));
        self.plan.controls.push(Control {
            at,
            copies: Vec::new(),
            entries: Vec::new(),
            dispatches: Vec::new(),
        });
    }

    /// Makes the last control one that can ask the word of a predicate, and gives the number of the word.
    fn asked(&mut self, when: Predicate) -> Result<u32> {
        let mut range = self.range(when.word)?;
        if !range.is_word() {
            range = self.aligned_word(range)?;
        }
        let control = self.plan.controls.last();
        let fits = control.is_some_and(|control| {
            self.plan.ops.len() - control.at <= MOST_BEHIND
                && control.entries.len() < MOST_ENTRIES
                && !self.is_touched_since(control.at, range, false)
        });
        if !fits {
            self.open();
        }
        if range.buffer == WORDS {
            return Ok((range.offset / 4) as u32);
        }
        let known = self.plan.controls.last().and_then(|control| {
            control.copies.iter().find(|(from, _)| (from.buffer, from.offset) == (range.buffer, range.offset))
        });
        if let Some((_, to)) = known {
            return Ok((to.offset / 4) as u32);
        }
        let to = self.new_word();
        if let Some(control) = self.plan.controls.last_mut() {
            control.copies.push((Range { room: 0, ..range }, to));
        }
        Ok((to.offset / 4) as u32)
    }

    fn new_word(&mut self) -> Range {
        self.words += 4;
        Range::new(WORDS, self.words - 4, 4)
    }

    /// A copy of a word that starts anywhere, as it is now.
    fn aligned_word(&mut self, from: Range) -> Result<Range> {
        let to = self.new_word();
        let pending = std::mem::take(&mut self.pending);
        self.kernel(Utility::CopyBytes, &[from, to], 4)?;
        self.flush(None, Counts::default())?;
        self.pending = pending;
        Ok(to)
    }

    /// Puts the decisions of every control into the data.
    pub(super) fn settle_controls(&mut self) -> Result<()> {
        for number in 0..self.plan.controls.len() {
            let entries = std::mem::take(&mut self.plan.controls[number].entries);
            let bytes: Vec<u8> = entries.iter().flat_map(|word| word.to_le_bytes()).collect();
            let offset = self.append(&bytes, 4, 0)?;
            let list = Range::new(DATA, offset, bytes.len() as u64);
            let words = Range::new(WORDS, 0, self.words);
            let arguments = Range::new(ARGUMENTS, 0, u64::from(self.arguments) * ARGUMENT_BYTES);
            let pipeline = self.core.utilities.get(self.gpu, Utility::Control)?;
            self.dispatch(&pipeline, &[list, words, arguments], [1; 3])?;
            self.plan.controls[number].dispatches = std::mem::take(&mut self.pending);
        }
        Ok(())
    }
}
