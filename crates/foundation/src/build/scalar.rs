//! Which types there are, and what each of them can do.

use super::Value;
use crate::{Element, Expr, Type, UnOp};
use half::{bf16, f16};

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// A type of values: `bool`, `u32`, `i32`, `u64`, `i64` or `f32`.
pub trait Scalar: Sealed + Copy + 'static {
    /// The type in the program.
    const TYPE: Type;

    /// The constant in the program.
    #[doc(hidden)]
    fn literal(self) -> Expr;
}

/// A type with arithmetic and an order: every [`Scalar`] but `bool`.
pub trait Number: Scalar {}

/// One of the four integer types.
pub trait Integer: Number + Bits {
    /// The unsigned type of the same width.
    type Unsigned: Integer;
}

/// A type with negative values: `i32`, `i64` and `f32`.
pub trait Signed: Number {}

/// A type with `&`, `|`, `^` and `!`: every [`Scalar`] but `f32`.
pub trait Bits: Scalar {
    /// What `!` is.
    #[doc(hidden)]
    const NOT: UnOp;
}

/// A type whose bits can be read as those of `T`: both have one width, and neither is `bool`.
#[diagnostic::on_unimplemented(message = "the bits of `{Self}` cannot be read as `{T}`")]
pub trait SameBits<T: Scalar>: Scalar {}

/// The type of a buffer's elements: the scalars but `bool`, and `u8`, `i8`, `u16`, `i16`, [`f16`](struct@f16) and
/// [`bf16`].
#[diagnostic::on_unimplemented(message = "buffers cannot hold `{Self}`")]
pub trait Storable: Sealed + Copy + 'static {
    /// What a load gives and a store takes; narrow elements are widened.
    type Value: Number;

    /// The type in the program.
    const ELEMENT: Element;
}

/// An element type that has atomics: `u32`, `i32`, `u64` and `i64`.
#[diagnostic::on_unimplemented(message = "there are no atomics on `{Self}`")]
pub trait AtomicElement: Storable<Value = Self> + Integer {}

/// What may stand where a value of type `T` is wanted: a [`Value`] or a Rust number.
#[diagnostic::on_unimplemented(message = "expected a `{T}` value, found `{Self}`")]
pub trait IntoValue<T: Scalar> {
    /// The value.
    fn into_value(self) -> Value<T>;
}

impl<T: Scalar> IntoValue<T> for T {
    fn into_value(self) -> Value<T> {
        Value::constant(self)
    }
}

impl<T: Scalar> IntoValue<T> for Value<T> {
    fn into_value(self) -> Value<T> {
        self
    }
}

impl<T: Scalar> From<T> for Value<T> {
    fn from(constant: T) -> Value<T> {
        Value::constant(constant)
    }
}

macro_rules! scalars {
    ($($ty:ident $name:ident),*) => {$(
        impl Sealed for $ty {}
        impl Scalar for $ty {
            const TYPE: Type = Type::$name;
            fn literal(self) -> Expr {
                Expr::$ty(self)
            }
        }
    )*};
}

macro_rules! elements {
    ($($ty:ident $name:ident $value:ident),*) => {$(
        impl Storable for $ty {
            type Value = $value;
            const ELEMENT: Element = Element::$name;
        }
    )*};
}

macro_rules! integers {
    ($($ty:ident $unsigned:ident),*) => {$(
        impl Integer for $ty {
            type Unsigned = $unsigned;
        }
        impl Bits for $ty {
            const NOT: UnOp = UnOp::BitNot;
        }
        impl AtomicElement for $ty {}
    )*};
}

macro_rules! implement {
    ($name:path: $($ty:ident)*) => {
        $(impl $name for $ty {})*
    };
}

scalars!(bool Bool, u32 U32, i32 I32, u64 U64, i64 I64, f32 F32);
elements!(u32 U32 u32, i32 I32 i32, u64 U64 u64, i64 I64 i64, f32 F32 f32);
elements!(u8 U8 u32, i8 I8 i32, u16 U16 u32, i16 I16 i32, f16 F16 f32, bf16 BF16 f32);
integers!(u32 u32, i32 u32, u64 u64, i64 u64);

impl Bits for bool {
    const NOT: UnOp = UnOp::Not;
}

implement!(Sealed: u8 i8 u16 i16 f16 bf16);
implement!(Number: u32 i32 u64 i64 f32);
implement!(Signed: i32 i64 f32);
implement!(SameBits<u32>: u32 i32 f32);
implement!(SameBits<i32>: u32 i32 f32);
implement!(SameBits<f32>: u32 i32 f32);
implement!(SameBits<u64>: u64 i64);
implement!(SameBits<i64>: u64 i64);
