//! The arithmetic of the language on integers of a few bits, written from its specification alone: a second opinion
//! about every operator, small enough to try all values.

use vyre_foundation::{BinOp, Type, UnOp};
use vyre_self_substrate::rules::{Letters, Lit, Term};

/// Terms on integers of `width` bits, which is a power of two. Where a rule has types of 32 and of 64 bits, those of 32
/// have half as many.
pub(crate) struct Small {
    pub(crate) letters: Letters,
    pub(crate) width: u32,
}

impl Small {
    /// Rules for 64 bits alone are those for 32 bits: both have the same few.
    pub(crate) fn stands_for_another(&self) -> bool {
        !self.mixes() && self.letters[0].bits() == 64
    }

    fn mixes(&self) -> bool {
        let widths = self.letters.map(|ty| ty.bits());
        widths.contains(&32) && widths.contains(&64)
    }

    pub(crate) fn bits(&self, ty: Type) -> u32 {
        match ty {
            Type::Bool => 1,
            Type::U32 | Type::I32 if self.mixes() => self.width / 2,
            _ => self.width,
        }
    }

    fn mask(&self, ty: Type) -> i64 {
        (1 << self.bits(ty)) - 1
    }

    /// The number that bits stand for.
    fn number(&self, ty: Type, bits: u64) -> i64 {
        let bits = bits as i64;
        let sign = 1i64 << (self.bits(ty) - 1);
        if ty.is_signed() && bits & sign != 0 { bits - 2 * sign } else { bits }
    }

    fn wrap(&self, ty: Type, number: i64) -> u64 {
        (number & self.mask(ty)) as u64
    }

    fn clamp(&self, ty: Type, number: i64) -> u64 {
        let (low, high) = self.ends(ty);
        self.wrap(ty, number.clamp(low, high))
    }

    fn ends(&self, ty: Type) -> (i64, i64) {
        let mask = self.mask(ty);
        if ty.is_signed() { (-(mask >> 1) - 1, mask >> 1) } else { (0, mask) }
    }

    fn literal(&self, lit: Lit, ty: Type) -> u64 {
        let (low, high) = self.ends(ty);
        match lit {
            Lit::Zero | Lit::False => 0,
            Lit::One | Lit::True => 1,
            Lit::MinusOne => self.wrap(ty, -1),
            Lit::Min => self.wrap(ty, low),
            Lit::Max => self.wrap(ty, high),
            Lit::Width => self.wrap(ty, i64::from(self.bits(ty))),
            Lit::MinusZero => panic!("only floats have it"),
        }
    }

    /// The value of a term: the first four values are those of rows, the others those of constants.
    pub(crate) fn value(&self, term: &Term, ty: Type, values: &[u64; 8]) -> u64 {
        let of = |term: &Term, ty: Type| self.value(term, ty, values);
        match term {
            Term::Any(k) => values[usize::from(*k)],
            Term::Const(k) => values[4 + usize::from(*k)],
            Term::Lit(lit) => self.literal(*lit, ty),
            Term::Binary(op, ty, a, b) => {
                let ty = ty.of(self.letters);
                self.binary(*op, ty, of(a, ty), of(b, ty))
            }
            Term::Unary(op, ty, a) => {
                let ty = ty.of(self.letters);
                self.unary(*op, ty, of(a, ty))
            }
            Term::Select(ty, c, a, b) => {
                let ty = ty.of(self.letters);
                if of(c, Type::Bool) != 0 { of(a, ty) } else { of(b, ty) }
            }
            Term::Cast(from, to, a) => {
                let (from, to) = (from.of(self.letters), to.of(self.letters));
                let bits = of(a, from);
                if to == Type::Bool { u64::from(bits != 0) } else { self.wrap(to, self.number(from, bits)) }
            }
            Term::Bitcast(from, _, a) => of(a, from.of(self.letters)),
            Term::Fma(..) => panic!("only floats have it"),
        }
    }

    fn binary(&self, op: BinOp, ty: Type, a_bits: u64, b_bits: u64) -> u64 {
        let (a, b) = (self.number(ty, a_bits), self.number(ty, b_bits));
        let width = self.bits(ty);
        let count = (b_bits % u64::from(width)) as u32;
        let wrap = |number: i64| self.wrap(ty, number);
        let rotated = |left: u32| {
            let wide = (a_bits as i64) << left | (a_bits as i64) >> ((width - left) % width);
            wrap(if left == 0 { a_bits as i64 } else { wide })
        };
        match op {
            BinOp::Add => wrap(a + b),
            BinOp::Sub => wrap(a - b),
            BinOp::Mul => wrap(a * b),
            BinOp::Div => wrap(if b == 0 { a } else { a / b }),
            BinOp::Rem => wrap(if b == 0 { 0 } else { a % b }),
            BinOp::BitAnd | BinOp::And => a_bits & b_bits,
            BinOp::BitOr | BinOp::Or => a_bits | b_bits,
            BinOp::BitXor => a_bits ^ b_bits,
            BinOp::Shl => wrap(a << count),
            BinOp::Shr => wrap(a >> count),
            BinOp::RotL => rotated(count),
            BinOp::RotR => rotated((width - count) % width),
            BinOp::Eq => u64::from(a == b),
            BinOp::Ne => u64::from(a != b),
            BinOp::Lt => u64::from(a < b),
            BinOp::Le => u64::from(a <= b),
            BinOp::Gt => u64::from(a > b),
            BinOp::Ge => u64::from(a >= b),
            BinOp::Min => wrap(a.min(b)),
            BinOp::Max => wrap(a.max(b)),
            BinOp::AbsDiff => wrap((a - b).abs()),
            BinOp::SatAdd => self.clamp(ty, a + b),
            BinOp::SatSub => self.clamp(ty, a - b),
            BinOp::MulHi => wrap((a * b) >> width),
        }
    }

    fn unary(&self, op: UnOp, ty: Type, bits: u64) -> u64 {
        let a = self.number(ty, bits);
        let width = self.bits(ty);
        match op {
            UnOp::Neg => self.wrap(ty, -a),
            UnOp::Not => 1 - bits,
            UnOp::BitNot => self.wrap(ty, !a),
            UnOp::Abs => self.wrap(ty, a.abs()),
            UnOp::Popcount => u64::from(bits.count_ones()),
            UnOp::Clz => u64::from(bits.leading_zeros() - (64 - width)),
            UnOp::Ctz => u64::from(bits.trailing_zeros().min(width)),
            UnOp::ReverseBits => bits.reverse_bits() >> (64 - width),
            _ => panic!("only floats have it"),
        }
    }
}
