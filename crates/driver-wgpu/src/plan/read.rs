//! What the host reads: ranges are copied to memory that it can map, together with the words that decide whether the
//! caller gets them.

use super::{Op, Planner, Range, WORDS};
use crate::memory::ALIGNMENT;
use vyre_driver::{Predicate, Result, Span};

/// The most bytes of one buffer that the host maps, unless a single range is longer.
const MOST_BACK: u64 = 64 << 20;
/// A longer range at the end of a batch that depends on a predicate is read afterwards, if at all.
const DEFERRED_FROM: u64 = 64 << 10;

/// A place in the memory that the host maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    pub(crate) buffer: usize,
    pub(crate) offset: u64,
}

/// How the result of a read is put together.
pub(crate) struct Reading {
    pub(crate) bytes: u64,
    pub(crate) source: Source,
    /// The word that decides, and whether it must not be zero.
    pub(crate) when: Option<(Spot, bool)>,
}

/// Where the bytes of a read come from.
pub(crate) enum Source {
    /// From what has been copied.
    Copied(Spot),
    /// From the device, once it is known that they are wanted.
    Deferred(Range),
}

impl Planner<'_> {
    /// Reads a range; at the tail nothing is written any more.
    pub(super) fn read(&mut self, from: Span, when: Option<Predicate>, is_tail: bool) -> Result<()> {
        let range = self.range(from)?;
        let when = match when {
            Some(when) => {
                let word = self.range(when.word)?;
                Some((self.take_back(word), when.holds))
            }
            None => None,
        };
        let source = if is_tail && when.is_some() && range.bytes > DEFERRED_FROM {
            Source::Deferred(range)
        } else {
            Source::Copied(self.take_back(range))
        };
        self.plan.readings.push(Reading { bytes: range.bytes, source, when });
        Ok(())
    }

    /// Where the host finds a range as it is now.
    fn take_back(&mut self, range: Range) -> Spot {
        if range.bytes == 0 {
            return Spot { buffer: 0, offset: 0 };
        }
        let at =
            |taken: Range, spot: Spot| Spot { offset: spot.offset + range.offset - taken.offset, ..spot };
        if let Some((taken, spot, op)) = self.taken.get(&range.buffer)
            && taken.contains(range)
            && !self.is_touched_since(*op, *taken, false)
        {
            return at(*taken, *spot);
        }
        // Whoever reads one of the words is likely to read the others too.
        let words = Range::new(WORDS, 0, self.named_words);
        let from = if words.contains(range) { words } else { range.outward(4) };
        let spot = self.spot(from.bytes);
        self.taken.insert(range.buffer, (from, spot, self.plan.ops.len()));
        self.plan.ops.push(Op::ReadBack { from, to: spot });
        at(from, spot)
    }

    /// Room for what the host reads.
    pub(super) fn spot(&mut self, bytes: u64) -> Spot {
        let back = &mut self.plan.back;
        let fits = back.last().is_some_and(|used| used + bytes <= MOST_BACK);
        if !fits {
            back.push(0);
        }
        let buffer = back.len() - 1;
        let offset = back[buffer];
        back[buffer] = (offset + bytes).next_multiple_of(ALIGNMENT);
        Spot { buffer, offset }
    }
}
