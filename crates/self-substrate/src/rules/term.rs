//! Terms: the two sides of a rule.

use super::Letters;
use std::fmt;
use vyre_foundation::{BinOp, Type, UnOp, arith};
use vyre_lower::columns::{self, op};

/// A side of a rule, or its condition.
#[derive(Debug)]
pub enum Term {
    /// Any row; equal numbers stand for the same row.
    Any(u8),
    /// Any constant; equal numbers stand for the same one.
    Const(u8),
    /// A constant of the type that stands there.
    Lit(Lit),
    /// A binary operator on operands of a type.
    Binary(BinOp, Ty, &'static Term, &'static Term),
    /// A unary operator on an operand of a type.
    Unary(UnOp, Ty, &'static Term),
    /// The second where the first holds, else the third.
    Select(Ty, &'static Term, &'static Term, &'static Term),
    /// A conversion from a type to a type.
    Cast(Ty, Ty, &'static Term),
    /// The same bits of a type as a type.
    Bitcast(Ty, Ty, &'static Term),
    /// `a * b + c`, rounded once.
    Fma(&'static Term, &'static Term, &'static Term),
}

/// A type in a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ty {
    /// The rule's first letter.
    T,
    /// The second.
    A,
    /// The third.
    B,
    /// `bool`.
    Bool,
    /// `u32`.
    U32,
}

impl Ty {
    /// The type, where letters stand for these.
    pub fn of(self, letters: Letters) -> Type {
        match self {
            Ty::T => letters[0],
            Ty::A => letters[1],
            Ty::B => letters[2],
            Ty::Bool => Type::Bool,
            Ty::U32 => Type::U32,
        }
    }
}

/// A constant that every type has, or some do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lit {
    /// `false`, 0 or `+0.0`.
    Zero,
    /// `true`, 1 or `1.0`.
    One,
    /// All bits set, or `-1.0`.
    MinusOne,
    /// The smallest integer.
    Min,
    /// The largest integer.
    Max,
    /// How many bits the type has.
    Width,
    /// `-0.0`.
    MinusZero,
    /// `true`.
    True,
    /// `false`.
    False,
}

impl Lit {
    /// The bits of the constant as a type.
    pub fn bits(self, ty: Type) -> u64 {
        let ones = u64::MAX >> (64 - ty.bits());
        let float = ty == Type::F32;
        match self {
            Lit::Zero | Lit::False => 0,
            Lit::True => 1,
            Lit::One if float => u64::from(1.0f32.to_bits()),
            Lit::One => 1,
            Lit::MinusOne if float => u64::from((-1.0f32).to_bits()),
            Lit::MinusOne => ones,
            Lit::Min if ty.is_signed() => 1 << (ty.bits() - 1),
            Lit::Min => 0,
            Lit::Max if ty.is_signed() => ones >> 1,
            Lit::Max => ones,
            Lit::Width => u64::from(ty.bits()),
            Lit::MinusZero => 1 << (ty.bits() - 1),
        }
    }
}

impl Term {
    /// The kind of row that the term describes; none for what may be any row.
    pub fn kind(&self, letters: Letters) -> Option<u32> {
        Some(match self {
            Term::Any(_) | Term::Const(_) | Term::Lit(_) => return None,
            Term::Binary(operator, ty, ..) => {
                let ty = ty.of(letters);
                columns::kind(op::BINARY, *operator as u32, ty, operator.result(ty)?)
            }
            Term::Unary(operator, ty, _) => {
                let ty = ty.of(letters);
                columns::kind(op::UNARY, *operator as u32, ty, operator.result(ty)?)
            }
            Term::Select(ty, ..) => columns::kind(op::SELECT, 0, ty.of(letters), ty.of(letters)),
            Term::Cast(from, to, _) => columns::kind(op::CAST, 0, from.of(letters), to.of(letters)),
            Term::Bitcast(from, to, _) => columns::kind(op::BITCAST, 0, from.of(letters), to.of(letters)),
            Term::Fma(..) => columns::kind(op::FMA, 0, Type::F32, Type::F32),
        })
    }

    /// Its operands, with the type of each.
    pub fn operands(&self, letters: Letters) -> Vec<(&'static Term, Type)> {
        match self {
            Term::Any(_) | Term::Const(_) | Term::Lit(_) => vec![],
            Term::Binary(_, ty, a, b) => vec![(*a, ty.of(letters)), (*b, ty.of(letters))],
            Term::Unary(_, ty, a) | Term::Cast(ty, _, a) | Term::Bitcast(ty, _, a) => {
                vec![(*a, ty.of(letters))]
            }
            Term::Select(ty, c, a, b) => {
                vec![(*c, Type::Bool), (*a, ty.of(letters)), (*b, ty.of(letters))]
            }
            Term::Fma(a, b, c) => [a, b, c].map(|term| (*term, Type::F32)).to_vec(),
        }
    }

    /// The type of its value where one of type `expected` stands.
    pub fn ty(&self, expected: Type, letters: Letters) -> Type {
        match self {
            Term::Any(_) | Term::Const(_) | Term::Lit(_) => expected,
            Term::Binary(op, ty, ..) => op.result(ty.of(letters)).unwrap_or(expected),
            Term::Unary(op, ty, _) => op.result(ty.of(letters)).unwrap_or(expected),
            Term::Select(ty, ..) | Term::Cast(_, ty, _) | Term::Bitcast(_, ty, _) => ty.of(letters),
            Term::Fma(..) => Type::F32,
        }
    }

    /// Whether it is made of constants alone.
    pub fn is_constant(&self) -> bool {
        match self {
            Term::Any(_) => false,
            Term::Const(_) | Term::Lit(_) => true,
            Term::Binary(_, _, a, b) => a.is_constant() && b.is_constant(),
            Term::Unary(_, _, a) | Term::Cast(_, _, a) | Term::Bitcast(_, _, a) => a.is_constant(),
            Term::Select(_, a, b, c) | Term::Fma(a, b, c) => {
                a.is_constant() && b.is_constant() && c.is_constant()
            }
        }
    }

    /// Its value as bits of type `ty`, in the arithmetic of the language; `any` and `constant` give the variables.
    pub fn value(
        &self,
        ty: Type,
        letters: Letters,
        any: &impl Fn(u8) -> u64,
        constant: &impl Fn(u8) -> u64,
    ) -> u64 {
        let of = |term: &Term, ty: Ty| term.value(ty.of(letters), letters, any, constant);
        match self {
            Term::Any(k) => any(*k),
            Term::Const(k) => constant(*k),
            Term::Lit(lit) => lit.bits(ty),
            Term::Binary(op, ty, a, b) => arith::binary(*op, ty.of(letters), of(a, *ty), of(b, *ty)),
            Term::Unary(op, ty, a) => arith::unary(*op, ty.of(letters), of(a, *ty)),
            Term::Select(ty, c, a, b) => of(if of(c, Ty::Bool) != 0 { a } else { b }, *ty),
            Term::Cast(from, to, a) => arith::cast(from.of(letters), to.of(letters), of(a, *from)),
            Term::Bitcast(from, _, a) => arith::bitcast(from.of(letters), of(a, *from)),
            Term::Fma(a, b, c) => {
                let [a, b, c] = [a, b, c].map(|term| term.value(Type::F32, letters, any, constant));
                arith::fma(a, b, c)
            }
        }
    }

    /// How much computing it costs, roughly. Every rule makes this less, which is why rewriting ends. Terms of constants
    /// cost nothing: they are computed when the rule is applied.
    pub fn weight(&self) -> u32 {
        if self.is_constant() {
            return 0;
        }
        let own = match self {
            Term::Any(_) | Term::Const(_) | Term::Lit(_) => 0,
            Term::Binary(op, ..) => weight_of_binary(*op),
            Term::Unary(..) => 2,
            Term::Select(..) => 8,
            Term::Cast(..) | Term::Bitcast(..) => 2,
            Term::Fma(..) => 12,
        };
        let operands = self.operands([Type::Bool; 3]);
        own + operands.into_iter().map(|(term, _)| term.weight()).sum::<u32>()
    }
}

fn weight_of_binary(op: BinOp) -> u32 {
    match op {
        BinOp::Div | BinOp::Rem => 20,
        BinOp::Mul | BinOp::MulHi => 6,
        BinOp::SatAdd | BinOp::SatSub | BinOp::AbsDiff | BinOp::RotR => 5,
        BinOp::Sub | BinOp::BitXor | BinOp::RotL => 4,
        BinOp::Shl | BinOp::Shr => 4,
        BinOp::And | BinOp::Or => 2,
        _ => 3,
    }
}

impl fmt::Display for Lit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lit::Zero => "0",
            Lit::One => "1",
            Lit::MinusOne => "-1",
            Lit::Min => "MIN",
            Lit::Max => "MAX",
            Lit::Width => "WIDTH",
            Lit::MinusZero => "-0",
            Lit::True => "true",
            Lit::False => "false",
        })
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ty::T => "T",
            Ty::A => "A",
            Ty::B => "B",
            Ty::Bool => "bool",
            Ty::U32 => "u32",
        })
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |term: &Term| match term {
            Term::Binary(op, ..) if op.precedence().is_some() => format!("({term})"),
            _ => term.to_string(),
        };
        match self {
            Term::Any(k) => f.write_str(["x", "y", "z", "c"][usize::from(*k) & 3]),
            Term::Const(k) => f.write_str(["C", "D", "E", "F"][usize::from(*k) & 3]),
            Term::Lit(lit) => lit.fmt(f),
            Term::Binary(op, _, a, b) if op.precedence().is_some() => {
                write!(f, "{} {} {}", part(a), op.spelling(), part(b))
            }
            Term::Binary(op, _, a, b) => write!(f, "{}({a}, {b})", op.spelling()),
            Term::Unary(op, _, a) if op.is_prefix() => write!(f, "{}{}", op.spelling(), part(a)),
            Term::Unary(op, _, a) => write!(f, "{}({a})", op.spelling()),
            Term::Select(_, c, a, b) => write!(f, "select({c}, {a}, {b})"),
            Term::Cast(_, to, a) => write!(f, "{to}({a})"),
            Term::Bitcast(_, to, a) => write!(f, "bitcast<{to}>({a})"),
            Term::Fma(a, b, c) => write!(f, "fma({a}, {b}, {c})"),
        }
    }
}
