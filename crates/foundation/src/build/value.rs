//! Values: typed handles of expressions, and what they can do.

use super::scalar::{Integer, IntoValue, Number, SameBits, Scalar, Signed};
use super::state::{self, At, Kind, Repr};
use crate::{BinOp, Expr, UnOp};
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

/// A value of the program that is being built.
///
/// It is a handle, so it is `Copy`. Operators (`+ - * / % & | ^ << >> ! -`) work between values and with Rust
/// numbers on either side; what Rust's own traits cannot give, such as comparisons, are methods. Each is there
/// for the types that the language allows:
///
/// ```compile_fail
/// # use vyre_foundation::build::prelude::*;
/// fn wrong(x: Value<f32>) -> Value<f32> {
///     x % 2.0 // there is no remainder of `f32`
/// }
/// ```
///
/// ```compile_fail
/// # use vyre_foundation::build::prelude::*;
/// fn wrong(a: Value<u32>, b: Value<i32>) -> Value<u32> {
///     a + b // nothing converts by itself: `a + b.cast::<u32>()`
/// }
/// ```
///
/// Assigning operators (`x *= y`) make the Rust variable hold a new value; what was made of the old one keeps it.
pub struct Value<T: Scalar> {
    repr: Repr,
    types: PhantomData<(T, state::OneThread)>,
}

impl<T: Scalar> Clone for Value<T> {
    fn clone(&self) -> Value<T> {
        *self
    }
}

impl<T: Scalar> Copy for Value<T> {}

impl<T: Scalar> fmt::Debug for Value<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repr {
            Repr::Constant(literal) => write!(f, "{literal}"),
            Repr::Item { id, .. } => write!(f, "{}#{id}", T::TYPE),
        }
    }
}

/// What an operand is replaced in.
pub(super) fn hole() -> Expr {
    Expr::bool(false)
}

impl<T: Scalar> Value<T> {
    pub(super) fn new(repr: Repr) -> Value<T> {
        Value { repr, types: PhantomData }
    }

    pub(super) fn constant(constant: T) -> Value<T> {
        match constant.literal() {
            Expr::Literal(literal) => Value::new(Repr::Constant(literal)),
            _ => Value::new(Repr::NOWHERE),
        }
    }

    pub(super) fn repr(self) -> Repr {
        self.repr
    }

    /// A value made by the open build; without one, a value that no build accepts.
    pub(super) fn made(make: impl FnOnce(&mut state::State) -> state::ItemId) -> Value<T> {
        let repr = state::with(|state| Repr::Item { build: state.build, id: make(state) });
        Value::new(repr.unwrap_or(Repr::NOWHERE))
    }

    pub(super) fn pure(template: Expr, operands: &[Repr], at: At) -> Value<T> {
        Value::made(|state| state.expr(template, Kind::Pure, operands, at))
    }

    pub(super) fn binary<U: Scalar>(self, op: BinOp, right: Value<T>, at: At) -> Value<U> {
        Value::pure(Expr::binary(op, hole(), hole()), &[self.repr, right.repr], at)
    }

    pub(super) fn unary<U: Scalar>(self, op: UnOp, at: At) -> Value<U> {
        Value::pure(Expr::unary(op, hole()), &[self.repr], at)
    }
}

/// Methods that are one operator each.
macro_rules! methods {
    (binary: $($(#[$doc:meta])* $name:ident => $op:ident -> $out:ty;)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[track_caller]
        pub fn $name(self, right: impl IntoValue<T>) -> Value<$out> {
            self.binary(BinOp::$op, right.into_value(), Location::caller())
        }
    )*};
    (unary: $($(#[$doc:meta])* $name:ident => $op:ident -> $out:ty;)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[track_caller]
        pub fn $name(self) -> Value<$out> {
            self.unary(UnOp::$op, Location::caller())
        }
    )*};
}

/// Every type.
impl<T: Scalar> Value<T> {
    methods! { binary:
        /// Whether both are equal; a NaN equals nothing.
        eq => Eq -> bool;
        /// Whether they differ; a NaN differs from everything.
        ne => Ne -> bool;
    }

    /// The value as another type. Integers truncate or extend by their own sign; a float to an integer truncates,
    /// saturates and sends NaN to 0; an integer to a float rounds to nearest even; a `bool` is 0 or 1; a number
    /// as `bool` is whether it is not 0.
    #[must_use]
    #[track_caller]
    pub fn cast<U: Scalar>(self) -> Value<U> {
        Value::pure(Expr::cast(U::TYPE, hole()), &[self.repr], Location::caller())
    }

    /// The same bits as another type of the same width. A NaN becomes the canonical one.
    ///
    /// ```compile_fail
    /// # use vyre_foundation::build::prelude::*;
    /// fn wrong(x: Value<f32>) -> Value<u64> {
    ///     x.bitcast() // 32 bits are not 64
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn bitcast<U: Scalar>(self) -> Value<U>
    where
        T: SameBits<U>,
    {
        Value::pure(Expr::bitcast(U::TYPE, hole()), &[self.repr], Location::caller())
    }
}

/// Numbers: every type but `bool`.
impl<T: Number> Value<T> {
    methods! { binary:
        /// Whether this is less; false with NaN.
        lt => Lt -> bool;
        /// Whether this is less or equal; false with NaN.
        le => Le -> bool;
        /// Whether this is greater; false with NaN.
        gt => Gt -> bool;
        /// Whether this is greater or equal; false with NaN.
        ge => Ge -> bool;
        /// The smaller one; of a NaN and a number, the number.
        min => Min -> T;
        /// The larger one; of a NaN and a number, the number.
        max => Max -> T;
    }

    /// `self.max(low).min(high)`.
    #[must_use]
    #[track_caller]
    pub fn clamp(self, low: impl IntoValue<T>, high: impl IntoValue<T>) -> Value<T> {
        self.max(low).min(high)
    }
}

/// Integers.
impl<T: Integer> Value<T> {
    methods! { binary:
        /// The distance between both, in the unsigned type of the width.
        abs_diff => AbsDiff -> T::Unsigned;
        /// The sum; the nearest number of the type where it does not fit.
        sat_add => SatAdd -> T;
        /// The difference; the nearest number of the type where it does not fit.
        sat_sub => SatSub -> T;
        /// The upper half of the full product.
        mul_hi => MulHi -> T;
        /// The bits rotated to the left; the count is taken modulo the width.
        rotl => RotL -> T;
        /// The bits rotated to the right; the count is taken modulo the width.
        rotr => RotR -> T;
    }

    methods! { unary:
        /// How many bits are set.
        popcount => Popcount -> u32;
        /// How many leading bits are zero; the width for 0.
        clz => Clz -> u32;
        /// How many trailing bits are zero; the width for 0.
        ctz => Ctz -> u32;
        /// The bits in reverse order.
        reverse_bits => ReverseBits -> T;
    }
}

/// Types with negative values: `i32`, `i64` and `f32`.
impl<T: Signed> Value<T> {
    methods! { unary:
        /// The magnitude; that of the smallest integer is itself.
        abs => Abs -> T;
    }
}

impl Value<f32> {
    methods! { unary:
        /// The square root, correctly rounded.
        sqrt => Sqrt -> f32;
        /// `1 / sqrt(x)`, rounded twice.
        inverse_sqrt => InverseSqrt -> f32;
        /// Rounded down.
        floor => Floor -> f32;
        /// Rounded up.
        ceil => Ceil -> f32;
        /// Rounded towards 0.
        trunc => Trunc -> f32;
        /// Rounded to the nearest whole number, ties to even.
        round => Round -> f32;
        /// Whether it is a NaN.
        is_nan => IsNan -> bool;
        /// Whether it is an infinity.
        is_inf => IsInf -> bool;
    }

    /// `self * factor + addend`, rounded once.
    #[must_use]
    #[track_caller]
    pub fn fma(self, factor: impl IntoValue<f32>, addend: impl IntoValue<f32>) -> Value<f32> {
        let operands = [self.repr, factor.into_value().repr, addend.into_value().repr];
        Value::pure(Expr::fma(hole(), hole(), hole()), &operands, Location::caller())
    }
}

impl Value<bool> {
    /// `if_true` where this holds, else `if_false`. Both are evaluated.
    #[must_use]
    #[track_caller]
    pub fn select<T: Scalar>(self, if_true: impl IntoValue<T>, if_false: impl IntoValue<T>) -> Value<T> {
        let operands = [self.repr, if_true.into_value().repr, if_false.into_value().repr];
        Value::pure(Expr::select(hole(), hole(), hole()), &operands, Location::caller())
    }

    /// Whether both hold. Both are evaluated.
    #[must_use]
    #[track_caller]
    pub fn and(self, right: impl IntoValue<bool>) -> Value<bool> {
        self.binary(BinOp::And, right.into_value(), Location::caller())
    }

    /// Whether one of them holds. Both are evaluated.
    #[must_use]
    #[track_caller]
    pub fn or(self, right: impl IntoValue<bool>) -> Value<bool> {
        self.binary(BinOp::Or, right.into_value(), Location::caller())
    }
}
