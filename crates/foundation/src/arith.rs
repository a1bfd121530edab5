//! What every operator computes. This is the arithmetic of the reference; whoever folds constants or evaluates
//! uniform values on the host calls it too.
//!
//! A value is 64 register bits: 32-bit values and `bool` are zero-extended, so equal values have equal bits.
//! Everything is total. An operator on a type that it does not take ([`BinOp::result`]) gives some value without
//! meaning; validation refuses such programs.

use crate::Type;
use crate::ops::{AtomicOp, BinOp, UnOp};

/// The bits that stand for every NaN which a store or a bitcast lets out.
pub const CANONICAL_NAN: u32 = 0x7fc0_0000;

/// The bits, with any NaN replaced by the canonical one.
pub const fn canonical_f32(bits: u32) -> u32 {
    if bits & 0x7fff_ffff > 0x7f80_0000 { CANONICAL_NAN } else { bits }
}

/// The integer operators of one type, in terms of its native Rust type.
macro_rules! integer_binary {
    ($op:expr, $a:expr, $b:expr, $int:ty, $unsigned:ty, $wide:ty) => {{
        let (a, b) = ($a as $int, $b as $int);
        let count = ($b as $unsigned % <$unsigned>::BITS as $unsigned) as u32;
        let result: $int = match $op {
            BinOp::Add => a.wrapping_add(b),
            BinOp::Sub => a.wrapping_sub(b),
            BinOp::Mul => a.wrapping_mul(b),
            BinOp::Div => {
                if b == 0 {
                    a
                } else {
                    a.wrapping_div(b)
                }
            }
            BinOp::Rem => {
                if b == 0 {
                    0
                } else {
                    a.wrapping_rem(b)
                }
            }
            BinOp::BitAnd => a & b,
            BinOp::BitOr => a | b,
            BinOp::BitXor => a ^ b,
            BinOp::Shl => a.wrapping_shl(count),
            BinOp::Shr => a.wrapping_shr(count),
            BinOp::RotL => a.rotate_left(count),
            BinOp::RotR => a.rotate_right(count),
            BinOp::Min => a.min(b),
            BinOp::Max => a.max(b),
            BinOp::AbsDiff => a.abs_diff(b) as $int,
            BinOp::SatAdd => a.saturating_add(b),
            BinOp::SatSub => a.saturating_sub(b),
            BinOp::MulHi => ((a as $wide * b as $wide) >> <$int>::BITS) as $int,
            BinOp::Eq => (a == b) as $int,
            BinOp::Ne => (a != b) as $int,
            BinOp::Lt => (a < b) as $int,
            BinOp::Le => (a <= b) as $int,
            BinOp::Gt => (a > b) as $int,
            BinOp::Ge => (a >= b) as $int,
            BinOp::And | BinOp::Or => 0,
        };
        result as $unsigned as u64
    }};
}

/// `a op b` on operands of type `ty`.
///
/// ```
/// use vyre_foundation::{arith, BinOp, Type};
/// assert_eq!(arith::binary(BinOp::Div, Type::U32, 7, 0), 7);
/// assert_eq!(arith::binary(BinOp::Lt, Type::I32, 0xffff_ffff, 0), 1);
/// ```
#[inline]
pub fn binary(op: BinOp, ty: Type, a: u64, b: u64) -> u64 {
    match ty {
        Type::U32 => integer_binary!(op, a, b, u32, u32, u64),
        Type::I32 => integer_binary!(op, a, b, i32, u32, i64),
        Type::U64 => integer_binary!(op, a, b, u64, u64, u128),
        Type::I64 => integer_binary!(op, a, b, i64, u64, i128),
        Type::F32 => binary_f32(op, a as u32, b as u32),
        Type::Bool => binary_bool(op, a != 0, b != 0) as u64,
    }
}

#[inline]
fn binary_bool(op: BinOp, a: bool, b: bool) -> bool {
    match op {
        BinOp::BitAnd | BinOp::And => a & b,
        BinOp::BitOr | BinOp::Or => a | b,
        BinOp::BitXor | BinOp::Ne => a ^ b,
        BinOp::Eq => a == b,
        _ => false,
    }
}

#[inline]
fn binary_f32(op: BinOp, a_bits: u32, b_bits: u32) -> u64 {
    let (a, b) = (f32::from_bits(a_bits), f32::from_bits(b_bits));
    let result = match op {
        BinOp::Add => (a + b).to_bits(),
        BinOp::Sub => (a - b).to_bits(),
        BinOp::Mul => (a * b).to_bits(),
        BinOp::Div => (a / b).to_bits(),
        // Selections move bits, so that no signalling NaN is quieted and no zero changes its sign.
        BinOp::Min => {
            if b < a || a.is_nan() {
                b_bits
            } else {
                a_bits
            }
        }
        BinOp::Max => {
            if b > a || a.is_nan() {
                b_bits
            } else {
                a_bits
            }
        }
        BinOp::Eq => (a == b) as u32,
        BinOp::Ne => (a != b) as u32,
        BinOp::Lt => (a < b) as u32,
        BinOp::Le => (a <= b) as u32,
        BinOp::Gt => (a > b) as u32,
        BinOp::Ge => (a >= b) as u32,
        _ => 0,
    };
    u64::from(result)
}

/// The integer operators of one type, in terms of its native Rust type.
macro_rules! integer_unary {
    ($op:expr, $a:expr, $int:ty, $unsigned:ty) => {{
        let a = $a as $int;
        match $op {
            UnOp::Neg => a.wrapping_neg() as $unsigned as u64,
            UnOp::Abs => (if (a as $int) < (0 as $int) { a.wrapping_neg() } else { a }) as $unsigned as u64,
            UnOp::BitNot => !a as $unsigned as u64,
            UnOp::ReverseBits => a.reverse_bits() as $unsigned as u64,
            UnOp::Popcount => a.count_ones() as u64,
            UnOp::Clz => a.leading_zeros() as u64,
            UnOp::Ctz => a.trailing_zeros() as u64,
            _ => 0,
        }
    }};
}

/// `op a` on an operand of type `ty`.
#[inline]
#[allow(unused_comparisons)] // The macro tests the sign of unsigned types too.
pub fn unary(op: UnOp, ty: Type, a: u64) -> u64 {
    match ty {
        Type::U32 => integer_unary!(op, a, u32, u32),
        Type::I32 => integer_unary!(op, a, i32, u32),
        Type::U64 => integer_unary!(op, a, u64, u64),
        Type::I64 => integer_unary!(op, a, i64, u64),
        Type::F32 => unary_f32(op, a as u32),
        Type::Bool => u64::from(op == UnOp::Not && a == 0),
    }
}

#[inline]
fn unary_f32(op: UnOp, bits: u32) -> u64 {
    let a = f32::from_bits(bits);
    let result = match op {
        UnOp::Neg => bits ^ 0x8000_0000,
        UnOp::Abs => bits & 0x7fff_ffff,
        UnOp::Sqrt => a.sqrt().to_bits(),
        UnOp::InverseSqrt => (1.0 / a.sqrt()).to_bits(),
        UnOp::Floor => a.floor().to_bits(),
        UnOp::Ceil => a.ceil().to_bits(),
        UnOp::Trunc => a.trunc().to_bits(),
        UnOp::Round => a.round_ties_even().to_bits(),
        UnOp::IsNan => a.is_nan() as u32,
        UnOp::IsInf => a.is_infinite() as u32,
        _ => 0,
    };
    u64::from(result)
}

/// `a * b + c` on `f32` with one rounding.
#[inline]
pub fn fma(a: u64, b: u64, c: u64) -> u64 {
    let [a, b, c] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
    u64::from(a.mul_add(b, c).to_bits())
}

/// A value of type `from` converted to type `to`.
///
/// Integers truncate or extend by the sign of the source; floats truncate, saturate and send NaN to 0.
#[inline]
pub fn cast(from: Type, to: Type, bits: u64) -> u64 {
    if from == to {
        return bits;
    }
    if to == Type::Bool {
        return match from {
            Type::F32 => u64::from(f32::from_bits(bits as u32) != 0.0),
            _ => u64::from(bits != 0),
        };
    }
    match from {
        Type::F32 => {
            let value = f32::from_bits(bits as u32);
            match to {
                Type::U32 => u64::from(value as u32),
                Type::I32 => u64::from(value as i32 as u32),
                Type::U64 => value as u64,
                Type::I64 => value as i64 as u64,
                Type::Bool | Type::F32 => bits,
            }
        }
        Type::Bool | Type::U32 | Type::U64 => match to {
            Type::F32 => u64::from((bits as f32).to_bits()),
            Type::U32 | Type::I32 => u64::from(bits as u32),
            _ => bits,
        },
        Type::I32 | Type::I64 => {
            let value = if from == Type::I32 { i64::from(bits as u32 as i32) } else { bits as i64 };
            match to {
                Type::F32 => u64::from((value as f32).to_bits()),
                Type::U32 | Type::I32 => u64::from(value as u32),
                _ => value as u64,
            }
        }
    }
}

/// The bits of a value of type `from` as another type of the same width; NaN leaves as the canonical one.
#[inline]
pub fn bitcast(from: Type, bits: u64) -> u64 {
    if from == Type::F32 { u64::from(canonical_f32(bits as u32)) } else { bits }
}

/// What an atomic on an element of type `ty` leaves in memory where `old` stood.
#[inline]
pub fn atomic(op: AtomicOp, ty: Type, old: u64, expected: u64, value: u64) -> u64 {
    match op {
        AtomicOp::Add => binary(BinOp::Add, ty, old, value),
        AtomicOp::Sub => binary(BinOp::Sub, ty, old, value),
        AtomicOp::Min => binary(BinOp::Min, ty, old, value),
        AtomicOp::Max => binary(BinOp::Max, ty, old, value),
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::Exchange | AtomicOp::Store => value,
        AtomicOp::CompareExchange => {
            if old == expected {
                value
            } else {
                old
            }
        }
        AtomicOp::Load => old,
    }
}
