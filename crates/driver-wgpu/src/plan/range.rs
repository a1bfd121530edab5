//! Ranges of buffers, and how a range falls into whole words and the bytes around them.

/// Bytes of a buffer of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Range {
    /// The number of the buffer.
    pub(crate) buffer: usize,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// How many bytes behind it belong to nobody, up to the end of a word.
    pub(crate) room: u64,
}

impl Range {
    pub(crate) fn new(buffer: usize, offset: u64, bytes: u64) -> Range {
        Range { buffer, offset, bytes, room: 0 }
    }

    pub(crate) fn end(self) -> u64 {
        self.offset + self.bytes
    }

    pub(crate) fn overlaps(self, other: Range) -> bool {
        self.buffer == other.buffer
            && self.bytes > 0
            && other.bytes > 0
            && self.offset < other.end()
            && other.offset < self.end()
    }

    pub(crate) fn contains(self, other: Range) -> bool {
        self.buffer == other.buffer && self.offset <= other.offset && other.end() <= self.end()
    }

    /// A part of it; it may reach into the room behind.
    pub(crate) fn part(self, piece: Piece) -> Range {
        Range { offset: self.offset + piece.start, bytes: piece.bytes, room: 0, ..self }
    }

    /// The smallest range of whole units around it.
    pub(crate) fn outward(self, unit: u64) -> Range {
        let offset = self.offset / unit * unit;
        Range { offset, bytes: self.end().next_multiple_of(unit) - offset, room: 0, ..self }
    }

    pub(crate) fn is_word(self) -> bool {
        self.bytes == 4 && self.offset.is_multiple_of(4)
    }
}

/// A part of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Where it starts in the range.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Whether it is whole words.
    pub(crate) is_words: bool,
}

/// The most bytes of a piece: its elements are counted in 32 bits.
const MOST: u64 = 1 << 30;
/// A range of at most so many bytes is not worth more than one piece.
const SMALL: u64 = 256;

/// The pieces of a range that starts at this offset.
pub(crate) fn pieces(offset: u64, bytes: u64, room: u64) -> Vec<Piece> {
    let head = (offset.next_multiple_of(4) - offset).min(bytes);
    let rest = (bytes - head) % 4;
    let tail = if rest > 0 && room >= 4 - rest { 0 } else { rest };
    let middle = (bytes - head - tail).next_multiple_of(4);
    if bytes <= SMALL && head + tail > 0 {
        return in_bytes(bytes);
    }
    let parts = [(0, head, false), (head, middle, true), (head + middle, tail, false)];
    parts.into_iter().flat_map(|(start, bytes, is_words)| cut(start, bytes, is_words)).collect()
}

/// The pieces of a range that is taken byte by byte.
pub(crate) fn in_bytes(bytes: u64) -> Vec<Piece> {
    cut(0, bytes, false).collect()
}

fn cut(start: u64, bytes: u64, is_words: bool) -> impl Iterator<Item = Piece> {
    let count = bytes.div_ceil(MOST);
    (0..count).map(move |k| Piece { start: start + k * MOST, bytes: (bytes - k * MOST).min(MOST), is_words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_range_once() {
        for offset in 0..9 {
            for bytes in (0..40).chain(250..300).chain(MOST - 2..MOST + 9) {
                for room in 0..4 {
                    let found = pieces(offset, bytes, room);
                    let mut at = 0;
                    for piece in &found {
                        assert_eq!(piece.start, at);
                        assert!(piece.bytes > 0 && piece.bytes <= MOST);
                        if piece.is_words {
                            assert!(
                                (offset + piece.start).is_multiple_of(4) && piece.bytes.is_multiple_of(4)
                            );
                        }
                        at += piece.bytes;
                    }
                    assert!(at >= bytes && at <= bytes + room, "{offset} {bytes} {room}: {found:?}");
                }
            }
        }
    }
}
