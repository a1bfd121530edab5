//! The integer operators done another way: values as 128-bit integers, bits one at a time, products
//! from 32-bit limbs and quotients by long division. `bool` is an integer of one bit here.

use std::cmp::Ordering;
use vyre_foundation::{BinOp, Type, UnOp};

/// Whether the type has negative integers.
fn is_signed(ty: Type) -> bool {
    ty == Type::I32 || ty == Type::I64
}

/// How many bits the type has.
pub(crate) fn width(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::U32 | Type::I32 | Type::F32 => 32,
        Type::U64 | Type::I64 => 64,
    }
}

/// The smallest and the largest value.
pub(crate) fn ends(ty: Type) -> (i128, i128) {
    let w = width(ty);
    if is_signed(ty) { (-(1 << (w - 1)), (1 << (w - 1)) - 1) } else { (0, (1 << w) - 1) }
}

/// The value that register bits stand for.
pub(crate) fn value(ty: Type, bits: u64) -> i128 {
    let unsigned = i128::from(bits);
    if is_signed(ty) && bit(bits, width(ty) - 1) { unsigned - (1 << width(ty)) } else { unsigned }
}

/// The register bits of a value, which wraps around the type.
pub(crate) fn wrap(ty: Type, value: i128) -> u64 {
    (value & ((1 << width(ty)) - 1)) as u64
}

fn bit(bits: u64, index: u32) -> bool {
    bits & (1 << index) != 0
}

/// Bits made one at a time, the lowest first.
fn build(ty: Type, bit_at: impl Fn(u32) -> bool) -> u64 {
    let mut bits = 0;
    for i in 0..width(ty) {
        if bit_at(i) {
            bits += 1 << i;
        }
    }
    bits
}

/// The low and the high half of the full product, each as wide as the type.
fn product(ty: Type, a: i128, b: i128) -> (u64, u64) {
    let (x, y) = (a.unsigned_abs() as u64, b.unsigned_abs() as u64);
    // Schoolbook multiplication: four limbs of 32 bits, each partial product carried at once.
    let split = |n: u64| [n & 0xffff_ffff, n >> 32];
    let mut limbs = [0_u64; 4];
    for (i, p) in split(x).into_iter().enumerate() {
        let mut carry = 0;
        for (j, q) in split(y).into_iter().enumerate() {
            let sum = limbs[i + j] + p * q + carry;
            limbs[i + j] = sum & 0xffff_ffff;
            carry = sum >> 32;
        }
        limbs[i + 2] += carry;
    }
    if (a < 0) != (b < 0) {
        let mut carry = 1;
        for limb in &mut limbs {
            let sum = (*limb ^ 0xffff_ffff) + carry;
            *limb = sum & 0xffff_ffff;
            carry = sum >> 32;
        }
    }
    match width(ty) {
        32 => (limbs[0], limbs[1]),
        _ => (limbs[0] + (limbs[1] << 32), limbs[2] + (limbs[3] << 32)),
    }
}

/// The quotient and the remainder of magnitudes, one bit at a time; the divisor is not 0.
fn divide(dividend: u128, divisor: u128) -> (i128, i128) {
    let (mut quotient, mut rest) = (0_i128, 0_u128);
    for i in (0..64).rev() {
        rest = rest * 2 + (dividend >> i) % 2;
        quotient *= 2;
        if rest >= divisor {
            rest -= divisor;
            quotient += 1;
        }
    }
    (quotient, rest as i128)
}

/// `a / b`, truncated, and the rest, which has the sign of `a`; `x / 0 = x` and `x % 0 = 0`.
fn quotient_and_rest(a: i128, b: i128) -> (i128, i128) {
    if b == 0 {
        return (a, 0);
    }
    let (quotient, rest) = divide(a.unsigned_abs(), b.unsigned_abs());
    (if (a < 0) == (b < 0) { quotient } else { -quotient }, if a < 0 { -rest } else { rest })
}

/// Whether a comparison operator holds for this order, `None` being a NaN's.
pub(crate) fn holds(op: BinOp, order: Option<Ordering>) -> Option<bool> {
    use Ordering::{Equal, Greater, Less};
    Some(match op {
        BinOp::Eq => order == Some(Equal),
        BinOp::Ne => order != Some(Equal),
        BinOp::Lt => order == Some(Less),
        BinOp::Le => order == Some(Less) || order == Some(Equal),
        BinOp::Gt => order == Some(Greater),
        BinOp::Ge => order == Some(Greater) || order == Some(Equal),
        _ => return None,
    })
}

/// `a op b` on integers or truth values; `None` for no such operator.
pub(crate) fn binary(op: BinOp, ty: Type, a: u64, b: u64) -> Option<u64> {
    let (x, y) = (value(ty, a), value(ty, b));
    if let Some(holds) = holds(op, Some(x.cmp(&y))) {
        return Some(holds.into());
    }
    let (least, greatest) = ends(ty);
    let saturate = |v: i128| wrap(ty, if v < least { least } else { v.min(greatest) });
    let w = width(ty);
    // Counts are taken modulo the width as numbers, so a negative count comes from above.
    let count = || y.rem_euclid(w.into()) as u32;
    Some(match op {
        BinOp::Add => wrap(ty, x + y),
        BinOp::Sub => wrap(ty, x - y),
        BinOp::Mul => product(ty, x, y).0,
        BinOp::MulHi => product(ty, x, y).1,
        BinOp::Div => wrap(ty, quotient_and_rest(x, y).0),
        BinOp::Rem => wrap(ty, quotient_and_rest(x, y).1),
        BinOp::BitAnd | BinOp::And => build(ty, |i| bit(a, i) && bit(b, i)),
        BinOp::BitOr | BinOp::Or => build(ty, |i| bit(a, i) || bit(b, i)),
        BinOp::BitXor => build(ty, |i| bit(a, i) != bit(b, i)),
        BinOp::Shl => {
            let n = count();
            build(ty, |i| i >= n && bit(a, i - n))
        }
        BinOp::Shr => {
            let (n, fill) = (count(), x < 0);
            build(ty, |i| if i + n < w { bit(a, i + n) } else { fill })
        }
        BinOp::RotL => {
            let n = count();
            build(ty, |i| bit(a, if i >= n { i - n } else { i + w - n }))
        }
        BinOp::RotR => {
            let n = count();
            build(ty, |i| bit(a, if i + n < w { i + n } else { i + n - w }))
        }
        BinOp::Min => wrap(ty, x.min(y)),
        BinOp::Max => wrap(ty, x.max(y)),
        BinOp::AbsDiff => wrap(ty, if x < y { y - x } else { x - y }),
        BinOp::SatAdd => saturate(x + y),
        BinOp::SatSub => saturate(x - y),
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => return None,
    })
}

/// `op a` on an integer or a truth value; `None` for no such operator.
pub(crate) fn unary(op: UnOp, ty: Type, a: u64) -> Option<u64> {
    let w = width(ty);
    let x = value(ty, a);
    Some(match op {
        UnOp::Neg => wrap(ty, -x),
        UnOp::Not | UnOp::BitNot => build(ty, |i| !bit(a, i)),
        UnOp::Abs => wrap(ty, if x < 0 { -x } else { x }),
        UnOp::Popcount => (0..w).filter(|&i| bit(a, i)).count() as u64,
        UnOp::Clz => (0..w).rev().take_while(|&i| !bit(a, i)).count() as u64,
        UnOp::Ctz => (0..w).take_while(|&i| !bit(a, i)).count() as u64,
        UnOp::ReverseBits => build(ty, |i| bit(a, w - 1 - i)),
        UnOp::Sqrt
        | UnOp::InverseSqrt
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Trunc
        | UnOp::Round
        | UnOp::IsNan
        | UnOp::IsInf => return None,
    })
}
