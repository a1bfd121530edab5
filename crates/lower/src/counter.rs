//! Loops that count.

use crate::kernel::{Item, ItemId, Kernel, Value, ValueId};
use vyre_foundation::{BinOp, Literal, Type};

/// How a loop counts that goes through the numbers from one on to before another, as every `for` does. It may be left
/// before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter {
    /// Which of the values that go around is the number.
    pub index: usize,
    /// The first number.
    pub from: ValueId,
    /// The one that ends the loop. It is the same in all rounds.
    pub end: ValueId,
    /// Whether the next number is before the end: another round follows only where it is.
    pub more: ValueId,
}

impl Counter {
    /// The most rounds, where the ends are constants.
    pub fn rounds(&self, kernel: &Kernel) -> Option<u32> {
        Some(word(kernel, self.end)?.saturating_sub(word(kernel, self.from)?))
    }
}

impl Kernel {
    /// How a loop counts, if that is what it does.
    pub fn counter(&self, id: ItemId) -> Option<Counter> {
        let Item::Loop { guard, first, next, again, .. } = self.item(id) else { return None };
        let less = |row: ValueId| match self.value(row) {
            Value::Binary { op: BinOp::Lt, ty: Type::U32, a, b } => Some((a, b)),
            _ => None,
        };
        let (from, end) = less(guard)?;
        let more = match self.value(again) {
            Value::Binary { op: BinOp::And, a, .. } => a,
            _ => again,
        };
        let (counted, last) = less(more)?;
        let Value::Binary { op: BinOp::Add, a: param, b: one, .. } = self.value(counted) else { return None };
        let Value::Param { item, index, .. } = self.value(param) else { return None };
        let index = index as usize;
        let counts = item == id
            && last == end
            && word(self, one) == Some(1)
            && first[index] == from
            && next[index] == counted;
        counts.then_some(Counter { index, from, end, more })
    }
}

fn word(kernel: &Kernel, row: ValueId) -> Option<u32> {
    match kernel.value(row) {
        Value::Const(Literal::U32(word)) => Some(word),
        _ => None,
    }
}
