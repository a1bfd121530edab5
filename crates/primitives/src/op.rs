//! What reductions and scans combine, and how.
//!
//! All of these operators give the same whatever the order and the grouping, so results do not depend on the grid. That
//! is why there are no floats: the order in which a float sum is made shows in its last bits.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, BitXor};
use vyre_foundation::build::{AtomicElement, Value};

/// A type that can be reduced and scanned: `u32`, `i32`, `u64` or `i64`.
pub trait Word:
    AtomicElement + Ord + Debug + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    /// Zero.
    const ZERO: Self;
    /// The smallest number.
    const LEAST: Self;
    /// The largest number.
    const MOST: Self;
    /// All bits set.
    const ONES: Self;

    /// The wrapping sum, for oracles.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

macro_rules! words {
    ($($ty:ident)*) => {$(
        impl Word for $ty {
            const ZERO: $ty = 0;
            const LEAST: $ty = $ty::MIN;
            const MOST: $ty = $ty::MAX;
            const ONES: $ty = !0;

            fn plus(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }
        }
    )*};
}

words!(u32 i32 u64 i64);

/// How two words are combined.
///
/// ```
/// use vyre_primitives::Op;
/// assert_eq!(Op::Min.combine(3u32, Op::Min.identity()), 3);
/// assert_eq!(Op::Sum.combine(u32::MAX, 2), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// The sum, wrapping.
    Sum,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl Op {
    /// All of them.
    pub const ALL: [Op; 6] = [Op::Sum, Op::Min, Op::Max, Op::And, Op::Or, Op::Xor];

    /// What changes nothing, and what nothing at all gives.
    pub fn identity<T: Word>(self) -> T {
        match self {
            Op::Sum | Op::Or | Op::Xor => T::ZERO,
            Op::Min => T::MOST,
            Op::Max => T::LEAST,
            Op::And => T::ONES,
        }
    }

    /// Both together, in a program.
    pub fn of<T: Word>(self, a: Value<T>, b: Value<T>) -> Value<T> {
        match self {
            Op::Sum => a + b,
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            Op::And => a & b,
            Op::Or => a | b,
            Op::Xor => a ^ b,
        }
    }

    /// Both together, on the host.
    pub fn combine<T: Word>(self, a: T, b: T) -> T {
        match self {
            Op::Sum => a.plus(b),
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            Op::And => a & b,
            Op::Or => a | b,
            Op::Xor => a ^ b,
        }
    }

    /// The name, as it stands in names of programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Op::Sum => "sum",
            Op::Min => "min",
            Op::Max => "max",
            Op::And => "and",
            Op::Or => "or",
            Op::Xor => "xor",
        }
    }
}
