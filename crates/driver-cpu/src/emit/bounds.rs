//! Which accesses need no check.

use super::{Emitter, Span};
use cranelift_codegen::ir;
use vyre_lower::{ItemId, ValueId};

/// An access to memory: an item, or a row that loads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Access {
    Item(ItemId),
    Row(ValueId),
}

impl Emitter<'_, '_> {
    /// The accesses of a run that need no check where a condition holds, or always.
    pub(super) fn guard(&mut self, _span: Span) -> Option<(Vec<Access>, Option<ir::Value>)> {
        None
    }
}
