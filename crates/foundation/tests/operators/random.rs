//! Pseudo-random operands, leaning towards what breaks arithmetic: evenly drawn bits almost never
//! meet a tie, a cancellation or an underflow.

use crate::exact::{self, F32};
use crate::integers;
use vyre_foundation::Type;
use vyre_foundation::rng::SplitMix64;

/// A source of operands of one type.
pub(crate) struct Operands {
    rng: SplitMix64,
    ty: Type,
    edges: Vec<u64>,
}

impl Operands {
    /// Operands of type `ty`; the seed and the type decide them all.
    pub(crate) fn new(ty: Type, edges: &[u64], seed: u64) -> Operands {
        let rng = SplitMix64::new(seed << 8 | ty as u64);
        Operands { rng, ty, edges: edges.to_vec() }
    }

    /// One operand.
    pub(crate) fn one(&mut self) -> u64 {
        match self.ty {
            Type::Bool => self.rng.below(2),
            Type::F32 => self.float().into(),
            _ => self.integer(),
        }
    }

    /// Two operands that often have to do with each other.
    pub(crate) fn two(&mut self) -> (u64, u64) {
        if self.ty == Type::F32 && self.rng.chance(1, 8) {
            return self.halfway();
        }
        let a = self.one();
        if self.rng.chance(1, 2) {
            return (a, self.one());
        }
        match self.ty {
            Type::Bool => (a, a),
            Type::F32 => (a, self.partner(a as u32).into()),
            _ => (a, self.neighbour(a)),
        }
    }

    /// Three `f32` operands; the third often all but cancels the product of the others.
    pub(crate) fn fma(&mut self) -> (u64, u64, u64) {
        let (a, b) = self.two();
        let product = exact::mul(a as u32, b as u32);
        let c = match self.rng.below(4) {
            0 => self.float(),
            1 => self.nudge(product ^ F32.sign(), 2),
            // Near the product's exponent, or below its last place: ties and what breaks them.
            2 => self.at_exponent(i64::from(product >> 23 & 0xff), -50, 3),
            _ => self.at_exponent(i64::from(product >> 23 & 0xff), -27, 27),
        };
        (a, b, c.into())
    }

    fn integer(&mut self) -> u64 {
        let (w, r) = (integers::width(self.ty), self.rng.next_u64());
        let bits = match self.rng.below(8) {
            0 | 1 => r,
            // Any length, and its negative.
            2 => r >> self.rng.below(64),
            3 => (r >> self.rng.below(64)).wrapping_neg(),
            4 => {
                let edge = *self.rng.pick(&self.edges);
                edge.wrapping_add(self.rng.below(7)).wrapping_sub(3)
            }
            5 => r & self.rng.next_u64() & self.rng.next_u64(),
            6 => r | self.rng.next_u64() | self.rng.next_u64(),
            // 25 bits with the last one set, shifted: a tie when it becomes an f32, give or take
            // one.
            _ => {
                let tie = (r >> 40 | 1 << 24 | 1) << self.rng.below(40);
                tie.wrapping_add(self.rng.below(3)).wrapping_sub(1)
            }
        };
        integers::wrap(self.ty, (bits & (u64::MAX >> (64 - w))).into())
    }

    /// An integer that has to do with `a`: near it or its negative, a shift count, a multiple, a
    /// factor.
    fn neighbour(&mut self, a: u64) -> u64 {
        let value = integers::value(self.ty, a);
        let near = i128::from(self.rng.below(5)) - 2;
        let other = match self.rng.below(5) {
            0 => value,
            1 => value + near,
            2 => near - value,
            3 => self.rng.below(140).into(),
            _ => value >> self.rng.below(64),
        };
        integers::wrap(self.ty, other)
    }

    fn float(&mut self) -> u32 {
        let r = self.rng.next_u64();
        let (bits, sign) = (r as u32, (r >> 32) as u32 & F32.sign());
        match self.rng.below(8) {
            0 => bits,
            1 => {
                let edge = *self.rng.pick(&self.edges);
                self.nudge(edge as u32, 3)
            }
            2 => self.at_exponent(127, -30, 30),
            3 => self.at_exponent(127, 0, 70),
            4 => self.at_exponent(0, 0, 30),
            5 => self.at_exponent(127, -30, 30) & !(bits & bits.rotate_left(7) & 0x007f_ffff),
            // A small integer, a half or a quarter.
            6 => {
                let halvings = (r >> 40 & 3) as i32;
                sign | exact::encode(&F32, false, (r & 0xff_ffff).into(), -halvings, false)
            }
            _ => sign | self.rng.below(0x0100_0000) as u32,
        }
    }

    /// A number whose exponent has to do with that of `a`.
    fn partner(&mut self, a: u32) -> u32 {
        let exponent = i64::from(a >> 23 & 0xff);
        match self.rng.below(8) {
            // Itself, its negative, their neighbours: cancellation.
            0 => self.nudge(a ^ F32.sign(), 2),
            1 => self.nudge(a, 2),
            2 | 3 => self.at_exponent(exponent, -26, 26),
            // The product underflows, or overflows.
            4 => self.at_exponent(127 - exponent, -26, 2),
            5 => self.at_exponent(127 + 254 - exponent, -2, 2),
            // The quotient underflows, or overflows.
            6 => self.at_exponent(127 + exponent, -2, 26),
            _ => self.at_exponent(127 + exponent - 254, -2, 2),
        }
    }

    /// Two numbers whose product or quotient lies exactly half way between two subnormals, give or
    /// take the last place of one of them: an odd number of 2^-150.
    fn halfway(&mut self) -> (u64, u64) {
        let r = self.rng.next_u64();
        let (x, y) = ((r & 0xfff | 1).into(), (r >> 12 & 0xfff | 1).into());
        let exponent = (r >> 24 & 0x3f) as i32 - 64;
        let (negative, minus) = (r >> 62 & 1 == 1, r >> 63 == 1);
        let (a, b) = if r >> 61 & 1 == 0 {
            let a = exact::encode(&F32, negative, x, exponent - 75, false);
            (a, exact::encode(&F32, minus, y, -75 - exponent, false))
        } else {
            let a = exact::encode(&F32, negative, x * y, exponent - 84, false);
            (a, exact::encode(&F32, minus, y, exponent + 66, false))
        };
        if r >> 60 & 1 == 0 {
            return (a.into(), b.into());
        }
        (self.nudge(a, 1).into(), self.nudge(b, 1).into())
    }

    /// A few places up or down the line of bit patterns.
    fn nudge(&mut self, bits: u32, most: u64) -> u32 {
        bits.wrapping_add(self.rng.below(2 * most + 1) as u32).wrapping_sub(most as u32)
    }

    /// A number with an exponent field near `field`; its fraction is random, short or nearly all
    /// ones.
    fn at_exponent(&mut self, field: i64, from: i64, to: i64) -> u32 {
        let offset = from + self.rng.below((to - from + 1) as u64) as i64;
        let r = self.rng.next_u64();
        let short = (r as u32 & 0x007f_ffff) & (0x007f_ffff << (r >> 40 & 31).min(23));
        let fraction = match r >> 60 & 3 {
            0 => short,
            1 => 0x007f_ffff ^ (short >> (r >> 45 & 15)),
            _ => r as u32 & 0x007f_ffff,
        };
        (r >> 32) as u32 & F32.sign() | ((field + offset).clamp(0, 254) as u32) << 23 | fraction
    }
}

/// How many pseudo-random cases each operator and type gets: `VYRE_CASES`, or 200,000.
pub(crate) fn cases() -> u64 {
    match std::env::var("VYRE_CASES") {
        Ok(text) => text.parse().expect("VYRE_CASES is a number of cases"),
        Err(_) => 200_000,
    }
}
