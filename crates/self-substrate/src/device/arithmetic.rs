//! What constants are computed by: every operation of the language on bits, as one tree of decisions.
//!
//! A device cannot be told at run time what to compute, so all of it stands in the program. Operations that give the
//! same bits for signed and unsigned numbers stand there once.

use rustc_hash::FxHashMap;
use vyre_foundation::build::Scalar;
use vyre_foundation::build::prelude::*;
use vyre_foundation::{BinOp, Type, UnOp};
use vyre_lower::columns::{kind, op};

/// The operations, by their numbers in the tree.
pub(super) struct Arithmetic {
    kinds: Vec<u32>,
    numbers: FxHashMap<u32, u32>,
}

impl Arithmetic {
    /// Those that rows of these kinds need.
    pub(super) fn new(kinds: &[u32]) -> Arithmetic {
        let mut arithmetic = Arithmetic { kinds: Vec::new(), numbers: FxHashMap::default() };
        for kind in kinds.iter().map(|kind| shared(*kind)) {
            let next = arithmetic.kinds.len() as u32;
            if *arithmetic.numbers.entry(kind).or_insert(next) == next {
                arithmetic.kinds.push(kind);
            }
        }
        arithmetic
    }

    /// The number of the operation that computes rows of a kind.
    pub(super) fn number(&self, kind: u32) -> u32 {
        self.numbers[&shared(kind)]
    }

    /// Computes operation `number` of these bits.
    pub(super) fn compute(&self, k: &Kernel, number: Value<u32>, operands: [Value<u64>; 3]) -> Value<u64> {
        let result = k.var("result", 0u64);
        self.among(k, number, (0, self.kinds.len()), operands, result);
        result.get()
    }

    fn among(
        &self,
        k: &Kernel,
        number: Value<u32>,
        (first, end): (usize, usize),
        operands: [Value<u64>; 3],
        result: Var<u64>,
    ) {
        if end - first == 1 {
            return result.set(computed(self.kinds[first], operands));
        }
        let middle = first.midpoint(end);
        k.if_(number.lt(middle as u32), || self.among(k, number, (first, middle), operands, result))
            .else_(|| self.among(k, number, (middle, end), operands, result));
    }
}

/// The kind whose operation gives the same bits.
fn shared(of: u32) -> u32 {
    let (operation, variant) = (of & 0xff, of >> 8 & 0xff);
    let [from, to] = [of >> 16 & 0xff, of >> 24].map(|ty| Type::ALL[ty as usize]);
    let unsigned = |ty: Type| match ty {
        Type::I32 => Type::U32,
        Type::I64 => Type::U64,
        other => other,
    };
    let signless = match operation {
        op::BINARY => matches!(
            BinOp::ALL[variant as usize],
            BinOp::Add
                | BinOp::Sub
                | BinOp::Mul
                | BinOp::BitAnd
                | BinOp::BitOr
                | BinOp::BitXor
                | BinOp::Shl
                | BinOp::RotL
                | BinOp::RotR
                | BinOp::Eq
                | BinOp::Ne
        ),
        op::UNARY => matches!(
            UnOp::ALL[variant as usize],
            UnOp::BitNot | UnOp::Popcount | UnOp::Clz | UnOp::Ctz | UnOp::ReverseBits
        ),
        op::SELECT => return kind(op::SELECT, 0, Type::U64, Type::U64),
        op::CAST if from == to => return kind(op::CAST, 0, Type::U64, Type::U64),
        op::CAST if to != Type::F32 && from != Type::F32 => {
            return kind(
                op::CAST,
                0,
                if to.bits() > from.bits() { from } else { unsigned(from) },
                unsigned(to),
            );
        }
        op::BITCAST if from != Type::F32 => return kind(op::CAST, 0, Type::U64, Type::U64),
        op::BITCAST => return kind(op::BITCAST, 0, Type::F32, Type::U32),
        _ => false,
    };
    match signless {
        true => kind(operation, variant, unsigned(from), unsigned(to)),
        false => of,
    }
}

/// A type whose values go to and from 64 bits.
trait InBits: Scalar {
    fn of(bits: Value<u64>) -> Value<Self>;
    fn bits(value: Value<Self>) -> Value<u64>;
}

macro_rules! bits {
    ($($ty:ty: $of:expr, $bits:expr;)*) => {$(
        impl InBits for $ty {
            fn of(bits: Value<u64>) -> Value<$ty> {
                $of(bits)
            }
            fn bits(value: Value<$ty>) -> Value<u64> {
                $bits(value)
            }
        }
    )*};
}

bits! {
    bool: |bits: Value<u64>| bits.ne(0u64), |value: Value<bool>| value.cast();
    u32: |bits: Value<u64>| bits.cast(), |value: Value<u32>| value.cast();
    i32: |bits: Value<u64>| bits.cast::<u32>().bitcast(), |value: Value<i32>| value.bitcast::<u32>().cast();
    u64: |bits: Value<u64>| bits, |value: Value<u64>| value;
    i64: |bits: Value<u64>| bits.bitcast(), |value: Value<i64>| value.bitcast();
    f32: |bits: Value<u64>| bits.cast::<u32>().bitcast(), |value: Value<f32>| value.bitcast::<u32>().cast();
}

/// What a row of a kind is, as bits, of the bits of its operands.
fn computed(of: u32, [a, b, c]: [Value<u64>; 3]) -> Value<u64> {
    let variant = (of >> 8 & 0xff) as usize;
    let [from, to] = [of >> 16 & 0xff, of >> 24].map(|ty| Type::ALL[ty as usize]);
    match of & 0xff {
        op::BINARY => binary(BinOp::ALL[variant], from, a, b),
        op::UNARY => unary(UnOp::ALL[variant], from, a),
        op::SELECT => a.ne(0u64).select(b, c),
        op::BITCAST => f32::bits(f32::of(a)),
        op::CAST => cast(from, to, a),
        _ => f32::bits(f32::of(a).fma(f32::of(b), f32::of(c))),
    }
}

macro_rules! compared {
    ($op:expr, $a:expr, $b:expr) => {
        bool::bits(match $op {
            BinOp::Ne => $a.ne($b),
            BinOp::Lt => $a.lt($b),
            BinOp::Le => $a.le($b),
            BinOp::Gt => $a.gt($b),
            BinOp::Ge => $a.ge($b),
            _ => $a.eq($b),
        })
    };
}

macro_rules! integer_binary {
    ($ty:ty, $op:expr, $a:expr, $b:expr) => {{
        let (a, b) = (<$ty>::of($a), <$ty>::of($b));
        match $op {
            BinOp::Add => <$ty>::bits(a + b),
            BinOp::Sub => <$ty>::bits(a - b),
            BinOp::Mul => <$ty>::bits(a * b),
            BinOp::Div => <$ty>::bits(a / b),
            BinOp::Rem => <$ty>::bits(a % b),
            BinOp::BitAnd => <$ty>::bits(a & b),
            BinOp::BitOr => <$ty>::bits(a | b),
            BinOp::BitXor => <$ty>::bits(a ^ b),
            BinOp::Shl => <$ty>::bits(a << b),
            BinOp::Shr => <$ty>::bits(a >> b),
            BinOp::RotL => <$ty>::bits(a.rotl(b)),
            BinOp::RotR => <$ty>::bits(a.rotr(b)),
            BinOp::Min => <$ty>::bits(a.min(b)),
            BinOp::Max => <$ty>::bits(a.max(b)),
            BinOp::AbsDiff => InBits::bits(a.abs_diff(b)),
            BinOp::SatAdd => <$ty>::bits(a.sat_add(b)),
            BinOp::SatSub => <$ty>::bits(a.sat_sub(b)),
            BinOp::MulHi => <$ty>::bits(a.mul_hi(b)),
            comparison => compared!(comparison, a, b),
        }
    }};
}

fn binary(op: BinOp, ty: Type, a: Value<u64>, b: Value<u64>) -> Value<u64> {
    match ty {
        Type::U32 => integer_binary!(u32, op, a, b),
        Type::I32 => integer_binary!(i32, op, a, b),
        Type::U64 => integer_binary!(u64, op, a, b),
        Type::I64 => integer_binary!(i64, op, a, b),
        Type::F32 => {
            let (a, b) = (f32::of(a), f32::of(b));
            match op {
                BinOp::Add => f32::bits(a + b),
                BinOp::Sub => f32::bits(a - b),
                BinOp::Mul => f32::bits(a * b),
                BinOp::Div => f32::bits(a / b),
                BinOp::Min => f32::bits(a.min(b)),
                BinOp::Max => f32::bits(a.max(b)),
                comparison => compared!(comparison, a, b),
            }
        }
        // Bits of a `bool` are 0 or 1.
        Type::Bool => match op {
            BinOp::And | BinOp::BitAnd => a & b,
            BinOp::Or | BinOp::BitOr => a | b,
            BinOp::Eq => bool::bits(a.eq(b)),
            _ => a ^ b,
        },
    }
}

macro_rules! integer_unary {
    ($ty:ty, $op:expr, $a:expr) => {{
        let a = <$ty>::of($a);
        match $op {
            UnOp::Popcount => u32::bits(a.popcount()),
            UnOp::Clz => u32::bits(a.clz()),
            UnOp::Ctz => u32::bits(a.ctz()),
            UnOp::ReverseBits => <$ty>::bits(a.reverse_bits()),
            _ => <$ty>::bits(!a),
        }
    }};
}

fn unary(op: UnOp, ty: Type, a: Value<u64>) -> Value<u64> {
    match (ty, op) {
        (Type::Bool, _) => a ^ 1u64,
        (Type::I32, UnOp::Neg) => i32::bits(-i32::of(a)),
        (Type::I64, UnOp::Neg) => i64::bits(-i64::of(a)),
        (Type::I32, UnOp::Abs) => i32::bits(i32::of(a).abs()),
        (Type::I64, UnOp::Abs) => i64::bits(i64::of(a).abs()),
        (Type::U64 | Type::I64, _) => integer_unary!(u64, op, a),
        (Type::U32 | Type::I32, _) => integer_unary!(u32, op, a),
        (Type::F32, _) => {
            let a = f32::of(a);
            match op {
                UnOp::Neg => f32::bits(-a),
                UnOp::Abs => f32::bits(a.abs()),
                UnOp::Sqrt => f32::bits(a.sqrt()),
                UnOp::InverseSqrt => f32::bits(a.inverse_sqrt()),
                UnOp::Floor => f32::bits(a.floor()),
                UnOp::Ceil => f32::bits(a.ceil()),
                UnOp::Trunc => f32::bits(a.trunc()),
                UnOp::Round => f32::bits(a.round()),
                UnOp::IsNan => bool::bits(a.is_nan()),
                _ => bool::bits(a.is_inf()),
            }
        }
    }
}

macro_rules! cast_to {
    ($to:expr, $value:expr) => {{
        let value = $value;
        match $to {
            Type::Bool => bool::bits(value.cast()),
            Type::U32 => u32::bits(value.cast()),
            Type::I32 => i32::bits(value.cast()),
            Type::U64 => u64::bits(value.cast()),
            Type::I64 => i64::bits(value.cast()),
            Type::F32 => f32::bits(value.cast()),
        }
    }};
}

fn cast(from: Type, to: Type, a: Value<u64>) -> Value<u64> {
    match from {
        Type::Bool => cast_to!(to, bool::of(a)),
        Type::U32 => cast_to!(to, u32::of(a)),
        Type::I32 => cast_to!(to, i32::of(a)),
        Type::U64 => cast_to!(to, u64::of(a)),
        Type::I64 => cast_to!(to, i64::of(a)),
        Type::F32 => cast_to!(to, f32::of(a)),
    }
}
