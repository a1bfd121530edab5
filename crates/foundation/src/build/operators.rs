//! Rust's operators on values.

use super::Value;
use super::scalar::{Bits, Integer, IntoValue, Number, Signed};
use crate::{BinOp, UnOp};
use std::ops;
use std::panic::Location;

/// An operator, its assigning form, and the same with a Rust number on the left.
macro_rules! operator {
    ($bound:ident $op:ident $method:ident $assign:ident $assign_method:ident; $($ty:ident)*) => {
        impl<T: $bound, R: IntoValue<T>> ops::$op<R> for Value<T> {
            type Output = Value<T>;
            #[track_caller]
            fn $method(self, right: R) -> Value<T> {
                self.binary(BinOp::$op, right.into_value(), Location::caller())
            }
        }

        impl<T: $bound, R: IntoValue<T>> ops::$assign<R> for Value<T> {
            #[track_caller]
            fn $assign_method(&mut self, right: R) {
                *self = self.binary(BinOp::$op, right.into_value(), Location::caller());
            }
        }

        $(
            impl ops::$op<Value<$ty>> for $ty {
                type Output = Value<$ty>;
                #[track_caller]
                fn $method(self, right: Value<$ty>) -> Value<$ty> {
                    Value::constant(self).binary(BinOp::$op, right, Location::caller())
                }
            }
        )*
    };
}

operator!(Number Add add AddAssign add_assign; u32 i32 u64 i64 f32);
operator!(Number Sub sub SubAssign sub_assign; u32 i32 u64 i64 f32);
operator!(Number Mul mul MulAssign mul_assign; u32 i32 u64 i64 f32);
operator!(Number Div div DivAssign div_assign; u32 i32 u64 i64 f32);
operator!(Integer Rem rem RemAssign rem_assign; u32 i32 u64 i64);
operator!(Bits BitAnd bitand BitAndAssign bitand_assign; bool u32 i32 u64 i64);
operator!(Bits BitOr bitor BitOrAssign bitor_assign; bool u32 i32 u64 i64);
operator!(Bits BitXor bitxor BitXorAssign bitxor_assign; bool u32 i32 u64 i64);
operator!(Integer Shl shl ShlAssign shl_assign; u32 i32 u64 i64);
operator!(Integer Shr shr ShrAssign shr_assign; u32 i32 u64 i64);

impl<T: Bits> ops::Not for Value<T> {
    type Output = Value<T>;
    #[track_caller]
    fn not(self) -> Value<T> {
        self.unary(T::NOT, Location::caller())
    }
}

impl<T: Signed> ops::Neg for Value<T> {
    type Output = Value<T>;
    #[track_caller]
    fn neg(self) -> Value<T> {
        self.unary(UnOp::Neg, Location::caller())
    }
}
