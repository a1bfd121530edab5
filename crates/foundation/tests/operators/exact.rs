//! IEEE-754 binary arithmetic in exact integers: nothing in this file computes with a float.
//!
//! A finite number is `(-1)^negative * significand * 2^exponent`. Each operation forms its exact
//! result, or enough leading bits of it and whether anything follows, and [`encode`] rounds once,
//! to nearest even. A NaN result is always the canonical quiet one; callers decide whether its bits
//! matter.

use crate::wide::Wide;
use std::cmp::Ordering;

/// A binary interchange format.
pub(crate) struct Format {
    /// How many bits a number takes.
    pub(crate) width: u32,
    /// How many bits the significand has, the hidden one included.
    pub(crate) precision: u32,
    /// The exponent of the least subnormal.
    pub(crate) lowest: i32,
}

pub(crate) const F32: Format = Format { width: 32, precision: 24, lowest: -149 };
pub(crate) const F16: Format = Format { width: 16, precision: 11, lowest: -24 };
pub(crate) const BF16: Format = Format { width: 16, precision: 8, lowest: -133 };

/// The bits of `1.0`.
const ONE: u32 = 0x3f80_0000;

impl Format {
    /// The bit that holds the sign.
    pub(crate) fn sign(&self) -> u32 {
        1 << (self.width - 1)
    }

    /// The bits of positive infinity.
    pub(crate) fn infinity(&self) -> u32 {
        self.sign() - (1 << (self.precision - 1))
    }

    /// The bits of the canonical NaN: quiet, positive, no payload.
    pub(crate) fn nan(&self) -> u32 {
        self.infinity() | 1 << (self.precision - 2)
    }

    /// Whether the bits are those of a NaN.
    pub(crate) fn is_nan(&self, bits: u32) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }
}

/// A finite number; zero has a sign too.
#[derive(Clone, Copy)]
pub(crate) struct Number {
    pub(crate) negative: bool,
    pub(crate) significand: u64,
    pub(crate) exponent: i32,
}

/// What some bits stand for.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    Nan,
    Infinite { negative: bool },
    Finite(Number),
}

/// Takes the bits of a number apart.
pub(crate) fn decode(format: &Format, bits: u32) -> Class {
    let negative = bits & format.sign() != 0;
    let magnitude = bits & (format.sign() - 1);
    if magnitude > format.infinity() {
        return Class::Nan;
    }
    if magnitude == format.infinity() {
        return Class::Infinite { negative };
    }
    let hidden = 1 << (format.precision - 1);
    let (field, fraction) = (magnitude / hidden, magnitude % hidden);
    Class::Finite(match field {
        0 => Number { negative, significand: fraction.into(), exponent: format.lowest },
        _ => Number {
            negative,
            significand: (fraction + hidden).into(),
            exponent: format.lowest + field as i32 - 1,
        },
    })
}

/// The number nearest to `(significand + s) * 2^exponent`, ties to even, where `s` is 0 or, with
/// `sticky`, something between 0 and 1. A sticky significand has more bits than the format keeps.
pub(crate) fn encode(format: &Format, negative: bool, significand: u128, exponent: i32, sticky: bool) -> u32 {
    let sign = if negative { format.sign() } else { 0 };
    if significand == 0 && !sticky {
        return sign;
    }
    let length = bit_length(significand) as i32;
    assert!(length < 128 && (!sticky || length > format.precision as i32 + 1));
    // The unit in the last place of the result: subnormals all share the lowest.
    let unit = (exponent + length - format.precision as i32).max(format.lowest);
    let dropped = unit - exponent;
    let kept = if dropped <= 0 {
        significand << -dropped
    } else if dropped > length {
        0
    } else {
        let half = 1 << (dropped - 1);
        let (quotient, rest) = (significand >> dropped, significand & (2 * half - 1));
        let up = match rest.cmp(&half) {
            Ordering::Less => false,
            Ordering::Equal => sticky || quotient % 2 == 1,
            Ordering::Greater => true,
        };
        quotient + u128::from(up)
    };
    // The hidden bit of `kept` counts one exponent up, and so does a carry out of the significand;
    // the lowest unit without the hidden bit is the subnormals' exponent field 0.
    let magnitude = ((unit - format.lowest) as u128) << (format.precision - 1);
    sign | (magnitude + kept).min(format.infinity().into()) as u32
}

/// How many bits a number has up to its highest set one.
fn bit_length(mut n: u128) -> u32 {
    let mut length = 0;
    for step in [64, 32, 16, 8, 4, 2, 1] {
        if n >> step != 0 {
            n >>= step;
            length += step;
        }
    }
    length + u32::from(n != 0)
}

/// The number in another format; NaN becomes that format's canonical one.
pub(crate) fn convert(from: &Format, to: &Format, bits: u32) -> u32 {
    match decode(from, bits) {
        Class::Nan => to.nan(),
        Class::Infinite { negative } => to.infinity() | if negative { to.sign() } else { 0 },
        Class::Finite(n) => encode(to, n.negative, n.significand.into(), n.exponent, false),
    }
}

/// `a + b`, exact before its one rounding. A zero sum is negative where both terms are.
fn sum(a: Number, b: Number) -> u32 {
    let base = a.exponent.min(b.exponent);
    let x = Wide::place(a.significand, (a.exponent - base) as u32);
    let y = Wide::place(b.significand, (b.exponent - base) as u32);
    let (negative, total) = if a.negative == b.negative {
        (a.negative, x.plus(y))
    } else {
        match x.order(y) {
            Ordering::Less => (b.negative, y.minus(x)),
            Ordering::Equal => (false, x.minus(y)),
            Ordering::Greater => (a.negative, x.minus(y)),
        }
    };
    let (leading, shift, sticky) = total.leading();
    encode(&F32, negative, leading.into(), base + shift as i32, sticky)
}

/// The exact product of two finite numbers.
fn product(a: Number, b: Number) -> Number {
    Number {
        negative: a.negative != b.negative,
        significand: a.significand * b.significand,
        exponent: a.exponent + b.exponent,
    }
}

fn infinite(negative: bool) -> u32 {
    F32.infinity() | if negative { F32.sign() } else { 0 }
}

/// `a + b`.
pub(crate) fn add(a: u32, b: u32) -> u32 {
    match (decode(&F32, a), decode(&F32, b)) {
        (Class::Nan, _) | (_, Class::Nan) => F32.nan(),
        (Class::Infinite { negative: x }, Class::Infinite { negative: y }) if x != y => F32.nan(),
        (Class::Infinite { negative }, _) | (_, Class::Infinite { negative }) => infinite(negative),
        (Class::Finite(x), Class::Finite(y)) => sum(x, y),
    }
}

/// `a - b`.
pub(crate) fn sub(a: u32, b: u32) -> u32 {
    add(a, b ^ F32.sign())
}

/// `a * b`.
pub(crate) fn mul(a: u32, b: u32) -> u32 {
    let negative = (a ^ b) & F32.sign() != 0;
    match (decode(&F32, a), decode(&F32, b)) {
        (Class::Nan, _) | (_, Class::Nan) => F32.nan(),
        (Class::Finite(n), Class::Infinite { .. }) | (Class::Infinite { .. }, Class::Finite(n))
            if n.significand == 0 =>
        {
            F32.nan()
        }
        (Class::Infinite { .. }, _) | (_, Class::Infinite { .. }) => infinite(negative),
        (Class::Finite(x), Class::Finite(y)) => {
            let p = product(x, y);
            encode(&F32, negative, p.significand.into(), p.exponent, false)
        }
    }
}

/// `a * b + c` with one rounding.
pub(crate) fn fma(a: u32, b: u32, c: u32) -> u32 {
    match (decode(&F32, a), decode(&F32, b), decode(&F32, c)) {
        (Class::Finite(x), Class::Finite(y), Class::Finite(z)) => sum(product(x, y), z),
        // A finite product does not overflow before the addition, so it cannot meet an infinite
        // addend as an infinity: the addend alone decides.
        (Class::Finite(_), Class::Finite(_), _) => add(0, c),
        // The product is an infinity or a NaN and needs no rounding.
        _ => add(mul(a, b), c),
    }
}

/// `a / b`.
pub(crate) fn div(a: u32, b: u32) -> u32 {
    let negative = (a ^ b) & F32.sign() != 0;
    match (decode(&F32, a), decode(&F32, b)) {
        (Class::Nan, _) | (_, Class::Nan) => F32.nan(),
        (Class::Infinite { .. }, Class::Infinite { .. }) => F32.nan(),
        (Class::Infinite { .. }, Class::Finite(_)) => infinite(negative),
        (Class::Finite(_), Class::Infinite { .. }) => encode(&F32, negative, 0, 0, false),
        (Class::Finite(x), Class::Finite(y)) if y.significand == 0 => {
            if x.significand == 0 {
                F32.nan()
            } else {
                infinite(negative)
            }
        }
        (Class::Finite(x), Class::Finite(y)) => {
            // 60 more bits leave at least 36 in the quotient, and the remainder says what follows.
            let (dividend, divisor) = (u128::from(x.significand) << 60, u128::from(y.significand));
            let (quotient, rest) = (dividend / divisor, dividend % divisor);
            encode(&F32, negative, quotient, x.exponent - y.exponent - 60, rest != 0)
        }
    }
}

/// The square root; `-0` is its own.
pub(crate) fn sqrt(a: u32) -> u32 {
    match decode(&F32, a) {
        Class::Nan => F32.nan(),
        Class::Finite(n) if n.significand == 0 => a,
        Class::Finite(Number { negative: true, .. }) | Class::Infinite { negative: true } => F32.nan(),
        Class::Infinite { negative: false } => F32.infinity(),
        Class::Finite(n) => {
            // An even exponent halves exactly; the shift leaves at least 40 bits in the root.
            let odd = n.exponent.rem_euclid(2);
            let radicand = u128::from(n.significand) << (80 + odd);
            let root = integer_root(radicand);
            encode(&F32, false, root, (n.exponent - odd - 80) / 2, root * root != radicand)
        }
    }
}

/// The largest integer whose square is at most `n`, which has at most 105 bits: one bit at a time.
fn integer_root(n: u128) -> u128 {
    let mut root = 0_u128;
    for bit in (0..53).rev() {
        let next = root | 1 << bit;
        if next * next <= n {
            root = next;
        }
    }
    root
}

/// `1 / sqrt(a)`, each step rounded.
pub(crate) fn inverse_sqrt(a: u32) -> u32 {
    div(ONE, sqrt(a))
}

/// How a number with a fraction becomes an integer.
#[derive(Clone, Copy)]
pub(crate) enum Rounding {
    Down,
    Up,
    TowardZero,
    NearestEven,
}

/// The integer near `a` that the mode picks; the sign stays, so a small negative number gives `-0`.
pub(crate) fn round_to_integer(a: u32, mode: Rounding) -> u32 {
    let n = match decode(&F32, a) {
        Class::Nan => return F32.nan(),
        Class::Infinite { .. } => return a,
        Class::Finite(n) if n.exponent >= 0 => return a,
        Class::Finite(n) => n,
    };
    // Significands have 24 bits, so a shift of 63 already drops them all without meeting the tie.
    let dropped = (-n.exponent).min(63);
    let (whole, rest) = (n.significand >> dropped, n.significand % (1 << dropped));
    let half = 1 << (dropped - 1);
    let away = match mode {
        Rounding::Down => n.negative && rest != 0,
        Rounding::Up => !n.negative && rest != 0,
        Rounding::TowardZero => false,
        Rounding::NearestEven => rest > half || (rest == half && whole % 2 == 1),
    };
    encode(&F32, n.negative, u128::from(whole) + u128::from(away), 0, false)
}

/// How two numbers compare; `None` with NaN. The zeros are equal.
pub(crate) fn compare(a: u32, b: u32) -> Option<Ordering> {
    let key = |bits: u32| {
        let magnitude = i64::from(bits & (F32.sign() - 1));
        if bits & F32.sign() != 0 { -magnitude } else { magnitude }
    };
    (!F32.is_nan(a) && !F32.is_nan(b)).then(|| key(a).cmp(&key(b)))
}

/// `b` if `b < a` or `a` is NaN, else `a`; `order` is what `b` must be to `a`, `Less` for `min`.
pub(crate) fn pick(a: u32, b: u32, order: Ordering) -> u32 {
    if F32.is_nan(a) || compare(b, a) == Some(order) { b } else { a }
}

/// The integer nearest to zero's side of `a` within `least..=greatest`; NaN gives 0.
pub(crate) fn to_integer(a: u32, least: i128, greatest: i128) -> i128 {
    let (negative, magnitude) = match decode(&F32, a) {
        Class::Nan => return 0,
        Class::Infinite { negative } => (negative, 1 << 100),
        // Anything from 2^100 on saturates every type alike.
        Class::Finite(n) if n.exponent > 76 => (n.negative, 1 << 100),
        Class::Finite(n) if n.exponent >= 0 => (n.negative, i128::from(n.significand) << n.exponent),
        Class::Finite(n) => (n.negative, i128::from(n.significand) >> (-n.exponent).min(63)),
    };
    let value = if negative { -magnitude } else { magnitude };
    value.max(least).min(greatest)
}

/// The `f32` nearest to an integer.
pub(crate) fn from_integer(value: i128) -> u32 {
    encode(&F32, value < 0, value.unsigned_abs(), 0, false)
}
