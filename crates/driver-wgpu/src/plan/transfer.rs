//! Fills, writes, copies and comparisons of any range: native where whole words move, kernels of our own elsewhere.

use super::range::{Piece, in_bytes, pieces};
use super::{DATA, Op, Planner, Range, SMALL_INPUT, WORDS};
use crate::utility::Utility;
use vyre_driver::{Predicate, Result, Span};

impl<'b> Planner<'b> {
    /// Fills a range with a byte.
    pub(super) fn fill(&mut self, target: Span, byte: u8, when: Option<Predicate>) -> Result<()> {
        let target = self.range(target)?;
        let value = u32::from_le_bytes([byte; 4]);
        if let Some(when) = when
            && target.buffer == WORDS
            && target.is_word()
        {
            return self.set_word(when, target, value);
        }
        for piece in pieces(target.offset, target.bytes, target.room) {
            let part = target.part(piece);
            if piece.is_words && byte == 0 && when.is_none() {
                self.plan.ops.push(Op::Clear(part));
                continue;
            }
            let offset = self.append(&value.to_le_bytes(), 4, 0)?;
            let value = Range::new(DATA, offset, 4);
            match piece.is_words {
                true => self.kernel(Utility::FillWords, &[value, part], part.bytes / 4)?,
                false => self.kernel(Utility::FillBytes, &[value, part], part.bytes)?,
            }
        }
        Ok(())
    }

    /// Copies a range to another one, natively where that is allowed and possible.
    pub(super) fn copy(&mut self, from: Range, to: Range, is_native: bool) -> Result<()> {
        let is_even = from.offset % 4 == to.offset % 4;
        let pieces =
            if is_even { pieces(to.offset, to.bytes, from.room.min(to.room)) } else { in_bytes(to.bytes) };
        for piece in pieces {
            let (source, target) = (from.part(piece), to.part(piece));
            match piece.is_words {
                true if is_native => self.copy_words(source, target)?,
                true => self.kernel(Utility::CopyWords, &[source, target], target.bytes / 4)?,
                false => self.kernel(Utility::CopyBytes, &[source, target], target.bytes)?,
            }
        }
        Ok(())
    }

    fn copy_words(&mut self, from: Range, to: Range) -> Result<()> {
        if from.buffer != to.buffer {
            self.plan.ops.push(Op::Copy { from, to });
            return Ok(());
        }
        // A native copy is between two buffers.
        let between = Range::new(self.lease(from.bytes, false)?, 0, from.bytes);
        self.plan.ops.push(Op::Copy { from, to: between });
        self.plan.ops.push(Op::Copy { from: between, to });
        Ok(())
    }

    /// Writes the caller's bytes.
    pub(super) fn write(&mut self, target: Span, bytes: &'b [u8], is_native: bool) -> Result<()> {
        let target = self.range(target)?;
        if is_native && target.bytes > SMALL_INPUT && self.is_untouched(target) {
            return self.give(target, bytes);
        }
        let offset = self.append(bytes, 4, target.offset % 4)?;
        let from = Range { room: 3, ..Range::new(DATA, offset, target.bytes) };
        self.copy(from, target, is_native)
    }

    /// Whether nothing before has to do with a range, so that it can be written before everything else.
    fn is_untouched(&self, range: Range) -> bool {
        let is_apart =
            |op: &Op| matches!(op, Op::Copy { from, to } if !from.overlaps(range) && !to.overlaps(range));
        // What is zeroed first would be zeroed after it.
        let is_zeroed = range.buffer == WORDS || self.plan.cleared.contains(&range.buffer);
        !is_zeroed && self.plan.ops.iter().all(is_apart)
    }

    /// Gives bytes to a range that nothing before has to do with: directly where there are many whole words.
    pub(super) fn give(&mut self, target: Range, bytes: &'b [u8]) -> Result<()> {
        if target.bytes <= SMALL_INPUT || !target.offset.is_multiple_of(4) {
            let offset = self.append(bytes, 4, target.offset % 4)?;
            let from = Range { room: 3, ..Range::new(DATA, offset, target.bytes) };
            self.copy(from, target, true)?;
            return self.flush(None, super::Counts::default());
        }
        let rest = bytes.len() % 4;
        let (whole, rest) = bytes.split_at(bytes.len() - rest);
        self.plan.writes.push((Range::new(target.buffer, target.offset, whole.len() as u64), whole));
        if rest.is_empty() {
            return Ok(());
        }
        let offset = self.append(rest, 4, 0)?;
        let from = Range { room: 3, ..Range::new(DATA, offset, rest.len() as u64) };
        let last = Piece { start: whole.len() as u64, bytes: rest.len() as u64, is_words: false };
        self.copy(from, Range { room: target.room, ..target.part(last) }, true)
    }

    /// Makes a word 1 where two ranges differ.
    pub(super) fn compare(&mut self, a: Span, b: Span, differs: Span) -> Result<()> {
        let (a, b, differs) = (self.range(a)?, self.range(b)?, self.range(differs)?);
        let is_even = a.offset % 4 == b.offset % 4 && differs.is_word();
        // What is behind a range does not count, so no piece reaches there.
        let pieces = if is_even { pieces(a.offset, a.bytes, 0) } else { in_bytes(a.bytes) };
        for piece in pieces {
            let (a, b) = (a.part(piece), b.part(piece));
            match piece.is_words {
                true => self.kernel(Utility::CompareWords, &[a, b, differs], a.bytes / 4)?,
                false => self.kernel(Utility::CompareBytes, &[a, b, differs], a.bytes)?,
            }
        }
        Ok(())
    }
}
