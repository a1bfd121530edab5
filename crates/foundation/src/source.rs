//! Where the parts of a program stand in its source text.

use std::ops::Range;

/// A range of bytes in a source text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` to before `end`.
    pub fn new(start: usize, end: usize) -> Span {
        // The parser refuses texts of 4 GiB and more, so positions fit.
        Span { start: start as u32, end: end as u32 }
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// As a range for slicing.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The spans of a statement.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct NodeSpans {
    /// The statement without the bodies in it.
    pub(crate) whole: Span,
    /// The name that it opens, assigns or stores to; else the whole.
    pub(crate) name: Span,
    /// Whether it is a `let mut`.
    pub(crate) mutable: bool,
}

/// The spans of a function.
#[derive(Clone, Default, Debug)]
pub(crate) struct FunctionSpans {
    pub(crate) name: Span,
    pub(crate) params: Vec<Span>,
    pub(crate) lets: Vec<Span>,
}

/// The spans of a declaration.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct BufferSpans {
    pub(crate) whole: Span,
    pub(crate) name: Span,
}

/// Where each part of a parsed program stands.
///
/// Statements are numbered in the order in which they begin, expressions in the order in which they end
/// (operands before operators), functions first. A walk in that order finds its spans by counting; the
/// program itself carries no positions, so equal programs are equal wherever they came from.
#[derive(Clone, Default, Debug)]
pub struct SourceMap {
    pub(crate) name: Span,
    pub(crate) workgroup_size: Span,
    pub(crate) subgroup_size: Span,
    pub(crate) buffers: Vec<BufferSpans>,
    pub(crate) functions: Vec<FunctionSpans>,
    pub(crate) nodes: Vec<NodeSpans>,
    pub(crate) exprs: Vec<Span>,
}
