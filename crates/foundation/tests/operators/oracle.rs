//! What each operation must give, as register bits: the rows of the specification put together from
//! the exact floats and the integers.

use crate::exact::{self, BF16, F16, F32, Format, Rounding};
use crate::integers;
use std::cmp::Ordering;
use vyre_foundation::{AtomicOp, BinOp, Element, Type, UnOp};

/// A result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// These bits.
    Bits(u64),
    /// Some NaN: the payload of a computed NaN is nobody's business until a store or a bitcast
    /// makes it canonical.
    Nan,
}

impl Expected {
    /// Whether a result is the expected one.
    pub(crate) fn accepts(self, got: u64) -> bool {
        match self {
            Expected::Bits(bits) => got == bits,
            Expected::Nan => got >> 32 == 0 && F32.is_nan(got as u32),
        }
    }
}

/// A computed number: one rounding happened, so a NaN may have any payload.
fn computed(bits: u32) -> Expected {
    if F32.is_nan(bits) { Expected::Nan } else { moved(bits) }
}

/// Bits that only moved.
fn moved(bits: u32) -> Expected {
    Expected::Bits(bits.into())
}

/// `a op b` on operands of type `ty`, which the operator takes.
pub(crate) fn binary(op: BinOp, ty: Type, a: u64, b: u64) -> Expected {
    if ty != Type::F32 {
        let bits = integers::binary(op, ty, a, b);
        return Expected::Bits(bits.expect("comparisons come back with a truth value"));
    }
    let (x, y) = (a as u32, b as u32);
    if let Some(holds) = integers::holds(op, exact::compare(x, y)) {
        return Expected::Bits(holds.into());
    }
    match op {
        BinOp::Add => computed(exact::add(x, y)),
        BinOp::Sub => computed(exact::sub(x, y)),
        BinOp::Mul => computed(exact::mul(x, y)),
        BinOp::Div => computed(exact::div(x, y)),
        BinOp::Min => moved(exact::pick(x, y, Ordering::Less)),
        BinOp::Max => moved(exact::pick(x, y, Ordering::Greater)),
        _ => panic!("the oracle has no {op:?} on f32"),
    }
}

/// `op a` on an operand of type `ty`, which the operator takes.
pub(crate) fn unary(op: UnOp, ty: Type, a: u64) -> Expected {
    if ty != Type::F32 {
        let bits = integers::unary(op, ty, a);
        return Expected::Bits(bits.unwrap_or_else(|| panic!("the oracle has no {op:?} on {ty}")));
    }
    let x = a as u32;
    let magnitude = x & (F32.sign() - 1);
    match op {
        UnOp::Neg => moved(x ^ F32.sign()),
        UnOp::Abs => moved(magnitude),
        UnOp::Sqrt => computed(exact::sqrt(x)),
        UnOp::InverseSqrt => computed(exact::inverse_sqrt(x)),
        UnOp::Floor => computed(exact::round_to_integer(x, Rounding::Down)),
        UnOp::Ceil => computed(exact::round_to_integer(x, Rounding::Up)),
        UnOp::Trunc => computed(exact::round_to_integer(x, Rounding::TowardZero)),
        UnOp::Round => computed(exact::round_to_integer(x, Rounding::NearestEven)),
        UnOp::IsNan => Expected::Bits(F32.is_nan(x).into()),
        UnOp::IsInf => Expected::Bits((magnitude == F32.infinity()).into()),
        _ => panic!("the oracle has no {op:?} on f32"),
    }
}

/// `a * b + c` on `f32`.
pub(crate) fn fma(a: u64, b: u64, c: u64) -> Expected {
    computed(exact::fma(a as u32, b as u32, c as u32))
}

/// A value of type `from` as type `to`.
pub(crate) fn cast(from: Type, to: Type, bits: u64) -> Expected {
    match (from, to) {
        (Type::F32, Type::F32) => computed(bits as u32),
        // `!= 0`: the zeros are equal to 0, NaN is not.
        (Type::F32, Type::Bool) => Expected::Bits((bits & 0x7fff_ffff != 0).into()),
        (Type::F32, _) => {
            let (least, greatest) = integers::ends(to);
            let value = exact::to_integer(bits as u32, least, greatest);
            Expected::Bits(integers::wrap(to, value))
        }
        (_, Type::F32) => moved(exact::from_integer(integers::value(from, bits))),
        (_, Type::Bool) => Expected::Bits((integers::value(from, bits) != 0).into()),
        _ => Expected::Bits(integers::wrap(to, integers::value(from, bits))),
    }
}

/// The bits of a value as another type of its width.
pub(crate) fn bitcast(from: Type, bits: u64) -> Expected {
    let nan = from == Type::F32 && F32.is_nan(bits as u32);
    Expected::Bits(if nan { 0x7fc0_0000 } else { bits })
}

/// What an atomic leaves in memory.
pub(crate) fn atomic(op: AtomicOp, ty: Type, old: u64, expected: u64, value: u64) -> Expected {
    let combined = match op {
        AtomicOp::Add => BinOp::Add,
        AtomicOp::Sub => BinOp::Sub,
        AtomicOp::Min => BinOp::Min,
        AtomicOp::Max => BinOp::Max,
        AtomicOp::And => BinOp::BitAnd,
        AtomicOp::Or => BinOp::BitOr,
        AtomicOp::Xor => BinOp::BitXor,
        AtomicOp::Exchange | AtomicOp::Store => return Expected::Bits(value),
        AtomicOp::CompareExchange if old == expected => return Expected::Bits(value),
        AtomicOp::CompareExchange | AtomicOp::Load => return Expected::Bits(old),
    };
    binary(combined, ty, old, value)
}

/// How an element stands in memory.
enum Layout {
    /// So many bytes of a two's complement or unsigned integer; `true` extends by the sign.
    Integer(u32, bool),
    /// A float of this format.
    Float(&'static Format),
}

fn layout(element: Element) -> Layout {
    match element {
        Element::U8 => Layout::Integer(1, false),
        Element::I8 => Layout::Integer(1, true),
        Element::U16 => Layout::Integer(2, false),
        Element::I16 => Layout::Integer(2, true),
        Element::U32 => Layout::Integer(4, false),
        Element::I32 => Layout::Integer(4, true),
        Element::U64 => Layout::Integer(8, false),
        Element::I64 => Layout::Integer(8, true),
        Element::F16 => Layout::Float(&F16),
        Element::BF16 => Layout::Float(&BF16),
        Element::F32 => Layout::Float(&F32),
    }
}

/// How many bytes an element takes.
pub(crate) fn size(element: Element) -> usize {
    match layout(element) {
        Layout::Integer(bytes, _) => bytes as usize,
        Layout::Float(format) => format.width as usize / 8,
    }
}

/// The type of the value that an element widens to.
pub(crate) fn value_type(element: Element) -> Type {
    match layout(element) {
        Layout::Integer(8, false) => Type::U64,
        Layout::Integer(8, true) => Type::I64,
        Layout::Integer(_, false) => Type::U32,
        Layout::Integer(_, true) => Type::I32,
        Layout::Float(_) => Type::F32,
    }
}

/// What a load of an element gives, whose stored bits these are.
pub(crate) fn load(element: Element, stored: u64) -> Expected {
    match layout(element) {
        Layout::Integer(bytes, signed) => {
            let negative = signed && stored >> (bytes * 8 - 1) & 1 == 1;
            let value = i128::from(stored) - if negative { 1 << (bytes * 8) } else { 0 };
            Expected::Bits(integers::wrap(value_type(element), value))
        }
        // A load of a whole f32 moves bits; a narrow one is converted, and its NaN with it.
        Layout::Float(format) if format.width == 32 => Expected::Bits(stored),
        Layout::Float(format) => computed(exact::convert(format, &F32, stored as u32)),
    }
}

/// The bits that a store of a value leaves.
pub(crate) fn store(element: Element, bits: u64) -> u64 {
    match layout(element) {
        Layout::Integer(bytes, _) => (u128::from(bits) & ((1 << (bytes * 8)) - 1)) as u64,
        Layout::Float(format) => exact::convert(&F32, format, bits as u32).into(),
    }
}
