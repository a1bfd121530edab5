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
    /// What must hold besides for another round.
    pub besides: Option<ValueId>,
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
        let counted = |more: ValueId, besides: Option<ValueId>| {
            let Value::Binary { op: BinOp::Lt, ty: Type::U32, a: counted, b: end } = self.value(more) else {
                return None;
            };
            let Value::Binary { op: BinOp::Add, a: param, b: one, .. } = self.value(counted) else {
                return None;
            };
            let Value::Param { item, index, .. } = self.value(param) else { return None };
            let index = index as usize;
            let counts = item == id
                && word(self, one) == Some(1)
                && next[index] == counted
                && self.says_less(guard, first[index], end);
            counts.then_some(Counter { index, from: first[index], end, more, besides })
        };
        match self.value(again) {
            Value::Binary { op: BinOp::And, a, b, .. } => counted(a, Some(b)).or_else(|| counted(b, Some(a))),
            _ => counted(again, None),
        }
    }

    /// Whether a condition says that one row is less than another.
    fn says_less(&self, condition: ValueId, less: ValueId, than: ValueId) -> bool {
        match self.value(condition) {
            Value::Binary { op: BinOp::Lt, ty: Type::U32, a, b } => (a, b) == (less, than),
            Value::Binary { op: BinOp::Gt, ty: Type::U32, a, b } => (b, a) == (less, than),
            Value::Const(Literal::Bool(true)) => {
                word(self, less).zip(word(self, than)).is_some_and(|(less, than)| less < than)
            }
            _ => false,
        }
    }
}

fn word(kernel: &Kernel, row: ValueId) -> Option<u32> {
    match kernel.value(row) {
        Value::Const(Literal::U32(word)) => Some(word),
        _ => None,
    }
}

/// Where an index is always inside a buffer.
impl Kernel {
    /// Whether an index is inside a buffer wherever it is computed, because it is the number of a loop through the
    /// buffer: through its elements, or through groups of them, as in `b[k * 4 + 3]` for `k` in `0..len(b) / 4`.
    pub fn walks_inside(&self, buffer: u32, index: ValueId) -> bool {
        let (scaled, offset) = self.with_constant(BinOp::Add, index).unwrap_or((index, 0));
        let (group, size) = self.with_factor(BinOp::Mul, BinOp::Shl, scaled).unwrap_or((scaled, 1));
        let Value::Param { item, index: number, .. } = self.value(group) else { return false };
        let Some(Counter { index, end, .. }) = self.counter(item) else { return false };
        let (all, groups_of) = self.with_factor(BinOp::Div, BinOp::Shr, end).unwrap_or((end, 1));
        let inside = match (self.value(all), self.buffers[buffer as usize].count()) {
            // The last group ends at or before the end, so it is enough to stay in a group.
            (Value::Len(of), _) => of == buffer && size <= groups_of && offset < groups_of,
            (Value::Const(Literal::U32(end)), Some(count)) if groups_of == 1 => {
                let last = u64::from(end.saturating_sub(1)) * u64::from(size) + u64::from(offset);
                last < u64::from(count)
            }
            _ => false,
        };
        inside && index == number as usize
    }

    /// The operands of an operator on `u32` of which one, by rights the second, is a constant.
    fn with_constant(&self, operator: BinOp, row: ValueId) -> Option<(ValueId, u32)> {
        match self.value(row) {
            Value::Binary { op, ty: Type::U32, a, b } if op == operator => match word(self, b) {
                Some(constant) => Some((a, constant)),
                None if matches!(op, BinOp::Add | BinOp::Mul) => Some((b, word(self, a)?)),
                None => None,
            },
            _ => None,
        }
    }

    /// What is multiplied or divided and by what, if by a constant, be it by a shift.
    fn with_factor(&self, by_factor: BinOp, by_shift: BinOp, row: ValueId) -> Option<(ValueId, u32)> {
        self.with_constant(by_factor, row).or_else(|| {
            let (shifted, count) = self.with_constant(by_shift, row)?;
            Some((shifted, 1 << (count % 32)))
        })
    }
}
