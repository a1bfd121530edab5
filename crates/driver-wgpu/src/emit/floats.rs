//! Floats. Their bits go through the shader as words; an operation takes them as floats.
//!
//! Drivers optimise float expressions as if they were real numbers: `(1 + x) - 1` becomes `x`. So each operand is
//! *shielded*: its bits are combined with a zero that exists only at run time, and no two operations meet. Each operand
//! of an operation has its own zero, or `x - x` would be known. What can be told from bits is told from bits. What is
//! left to the device is the one rounding of an operation on operands of which it knows nothing, and that only where it
//! has shown that it can (`probe`); all others are integer arithmetic before the kernel comes here.
//!
//! With the device's own floats nothing is shielded.

use super::{Emitter, Form, Value};
use naga::{BinaryOperator, Expression, MathFunction, Scalar, ScalarKind};
use vyre_driver::{Error, Result};
use vyre_foundation::{BinOp, Literal, Type, UnOp};
use vyre_lower::{Kernel, Legal, Value as Row};

use crate::probe::graphs::Kind;

/// How floats are computed on a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Floats {
    /// The operations that are left to the device; all others are integer arithmetic.
    pub(crate) legal: Legal,
    /// Whether comparisons are left to the device.
    pub(crate) compares: bool,
    /// Whether the driver may know nothing about operands.
    pub(crate) is_shielded: bool,
    /// Whether memory sees one NaN.
    pub(crate) is_canonical: bool,
}

impl Floats {
    /// Right on every device whose integers are.
    pub(crate) const SOFTWARE: Floats =
        Floats { legal: Legal::NONE, compares: false, is_shielded: true, is_canonical: true };

    /// The device's own. Halves are integers in any case.
    pub(crate) const NATIVE: Floats = Floats {
        legal: Legal { halves: false, ..Legal::ALL },
        compares: true,
        is_shielded: false,
        is_canonical: false,
    };

    /// With one more kind of operation left to the device.
    pub(crate) fn with(mut self, kind: Kind) -> Floats {
        *self.place(kind) = true;
        self
    }

    /// Whether a kind of operation is left to the device.
    pub(crate) fn has(mut self, kind: Kind) -> bool {
        *self.place(kind)
    }

    fn place(&mut self, kind: Kind) -> &mut bool {
        let legal = &mut self.legal;
        match kind {
            Kind::Add => &mut legal.add,
            Kind::Mul => &mut legal.mul,
            Kind::Div => &mut legal.div,
            Kind::Sqrt => &mut legal.sqrt,
            Kind::Fma => &mut legal.fma,
            Kind::Rounding => &mut legal.rounding,
            Kind::ToInteger => &mut legal.to_integer,
            Kind::FromInteger => &mut legal.from_integer,
            Kind::Compare => &mut self.compares,
        }
    }
}

/// The bits of infinity.
const INFINITY: u32 = 0x7f80_0000;
/// All bits but the sign.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// The NaN that memory sees.
const NAN: u32 = 0x7fc0_0000;

/// Whether a constant has the bits of 1 or -1 as a float, of whatever type it is.
fn looks_like_one(literal: Literal) -> bool {
    let bits = literal.bits();
    match literal.ty() {
        Type::U64 | Type::I64 => bits << 1 == 1f64.to_bits() << 1,
        _ => (bits as u32) << 1 == 1f32.to_bits() << 1,
    }
}

/// Whether a constant is hidden from the driver, because drivers rewrite wrongly what they see it in. One that does not
/// tell integers from floats makes a conversion of the condition of a selection between 1 or -1 and zero, and loses the
/// sign of the zero. One compares a number that was extended to 64 bits with a constant, and forgets its sign.
pub(super) fn is_hidden(literal: Literal, form: &Form) -> bool {
    match literal.ty() {
        Type::I64 => true,
        Type::F32 => form.manner.floats.is_shielded && looks_like_one(literal),
        _ => looks_like_one(literal),
    }
}

/// Whether a kernel has anything of which the driver may know nothing.
pub(super) fn needs_zeros(kernel: &Kernel, form: &Form) -> bool {
    let is_shielded = form.manner.floats.is_shielded;
    kernel.rows().any(|row| match kernel.value(row) {
        Row::Const(literal) => is_hidden(literal, form),
        Row::Binary { op: BinOp::RotL | BinOp::RotR, ty, .. } if ty.bits() == 64 => true,
        Row::Binary { ty, .. } | Row::Unary { ty, .. } => ty == Type::I64 || is_shielded && ty == Type::F32,
        Row::Fma { .. } => is_shielded,
        Row::Cast { from, to, .. } => {
            let is = |ty: Type| from == ty || to == ty;
            is(Type::I64) || is_shielded && is(Type::F32)
        }
        row => row.ty() == Type::I64,
    })
}

impl Emitter<'_> {
    /// The operands of an operation as floats of which the driver knows nothing, not even that they are one.
    fn operands<const N: usize>(&mut self, operands: [Value; N]) -> [Value; N] {
        let mut number = 0;
        operands.map(|mut bits| {
            number += 1;
            if let (true, Some(zeros)) = (self.form.manner.floats.is_shielded, self.zeros) {
                for (bit, zero) in zeros.operands.into_iter().enumerate() {
                    if number >> bit & 1 == 1 {
                        bits = self.b.xor(bits, zero);
                    }
                }
            }
            self.b.bits_as(bits, ScalarKind::Float)
        })
    }

    /// A constant that the driver does not recognise.
    pub(super) fn shielded_constant(&mut self, literal: Literal, zero: Value) -> Value {
        let bits = literal.bits();
        let hidden = if literal.ty().bits() == 64 {
            let (constant, zero) = (self.b.u64(bits), self.b.convert(zero, Scalar::U64));
            self.b.xor(constant, zero)
        } else {
            let constant = self.b.u32(bits as u32);
            self.b.xor(constant, zero)
        };
        match literal.ty() {
            Type::I32 | Type::I64 => self.b.bits_as(hidden, ScalarKind::Sint),
            _ => hidden,
        }
    }

    fn bits(&mut self, float: Value) -> Value {
        self.b.bits_as(float, ScalarKind::Uint)
    }

    fn magnitude(&mut self, bits: Value) -> Value {
        let mask = self.b.u32(MAGNITUDE);
        self.b.and(bits, mask)
    }

    fn is_nan(&mut self, bits: Value) -> Value {
        let magnitude = self.magnitude(bits);
        let infinity = self.b.u32(INFINITY);
        self.b.less(infinity, magnitude)
    }

    /// The bits with the one NaN that memory sees.
    pub(super) fn canonical(&mut self, bits: Value) -> Value {
        if !self.form.manner.floats.is_canonical {
            return bits;
        }
        let is_nan = self.is_nan(bits);
        let nan = self.b.u32(NAN);
        self.b.select(is_nan, nan, bits)
    }

    pub(super) fn float_binary(&mut self, op: BinOp, a: Value, b: Value) -> Result<Value> {
        let arithmetic = match op {
            BinOp::Add => BinaryOperator::Add,
            BinOp::Sub => BinaryOperator::Subtract,
            BinOp::Mul => BinaryOperator::Multiply,
            BinOp::Div => BinaryOperator::Divide,
            BinOp::Eq => return Ok(self.float_equal(a, b)),
            BinOp::Ne => {
                let equal = self.float_equal(a, b);
                return Ok(self.b.not(equal));
            }
            BinOp::Lt => return Ok(self.float_less(a, b, BinaryOperator::Less)),
            BinOp::Le => return Ok(self.float_less(a, b, BinaryOperator::LessEqual)),
            BinOp::Gt => return Ok(self.float_less(b, a, BinaryOperator::Less)),
            BinOp::Ge => return Ok(self.float_less(b, a, BinaryOperator::LessEqual)),
            BinOp::Min | BinOp::Max => {
                let (left, right) = if op == BinOp::Min { (b, a) } else { (a, b) };
                let second = self.float_less(left, right, BinaryOperator::Less);
                let is_nan = self.is_nan(a);
                let second = self.b.either(second, is_nan);
                return Ok(self.b.select(second, b, a));
            }
            _ => return Err(Error::Internal(format!("{op:?} of floats"))),
        };
        let [a, b] = self.operands([a, b]);
        let result = self.b.binary(arithmetic, a, b);
        Ok(self.bits(result))
    }

    fn float_equal(&mut self, a: Value, b: Value) -> Value {
        if self.form.manner.floats.compares {
            let [a, b] = self.operands([a, b]);
            return self.b.equal(a, b);
        }
        let same = self.b.equal(a, b);
        let is_nan = self.is_nan(a);
        let is_number = self.b.not(is_nan);
        let same = self.b.both(same, is_number);
        let any = self.b.or(a, b);
        let any = self.magnitude(any);
        let zero = self.b.u32(0);
        let zeros = self.b.equal(any, zero);
        self.b.either(same, zeros)
    }

    /// Whether one number is less than another, or not greater; never with NaN.
    fn float_less(&mut self, a: Value, b: Value, how: BinaryOperator) -> Value {
        if self.form.manner.floats.compares {
            let [a, b] = self.operands([a, b]);
            return self.b.binary(how, a, b);
        }
        let ((x, x_nan), (y, y_nan)) = (self.order(a), self.order(b));
        let less = self.b.binary(how, x, y);
        let any_nan = self.b.either(x_nan, y_nan);
        let numbers = self.b.not(any_nan);
        self.b.both(less, numbers)
    }

    /// A number that is ordered as a float is, both zeros equal, and whether it is NaN.
    fn order(&mut self, bits: Value) -> (Value, Value) {
        let magnitude = self.magnitude(bits);
        let infinity = self.b.u32(INFINITY);
        let is_nan = self.b.less(infinity, magnitude);
        let magnitude = self.b.bits_as(magnitude, ScalarKind::Sint);
        let signed = self.b.bits_as(bits, ScalarKind::Sint);
        let zero = self.b.i32(0);
        let negative = self.b.less(signed, zero);
        let negated = self.b.sub(zero, magnitude);
        (self.b.select(negative, negated, magnitude), is_nan)
    }

    pub(super) fn float_unary(&mut self, op: UnOp, a: Value) -> Result<Value> {
        let function = match op {
            UnOp::Neg => {
                let sign = self.b.u32(!MAGNITUDE);
                return Ok(self.b.xor(a, sign));
            }
            UnOp::Abs => return Ok(self.magnitude(a)),
            UnOp::IsNan => return Ok(self.is_nan(a)),
            UnOp::IsInf => {
                let magnitude = self.magnitude(a);
                let infinity = self.b.u32(INFINITY);
                return Ok(self.b.equal(magnitude, infinity));
            }
            UnOp::Sqrt => MathFunction::Sqrt,
            UnOp::InverseSqrt => MathFunction::InverseSqrt,
            UnOp::Floor => MathFunction::Floor,
            UnOp::Ceil => MathFunction::Ceil,
            UnOp::Trunc => MathFunction::Trunc,
            UnOp::Round => MathFunction::Round,
            _ => return Err(Error::Internal(format!("{op:?} of a float"))),
        };
        let [operand] = self.operands([a]);
        let result = self.b.math(function, operand, None);
        Ok(self.bits(result))
    }

    /// `a * b + c`, as the device does it.
    pub(super) fn fused(&mut self, operands: [Value; 3]) -> Value {
        let [arg, b, c] = self.operands(operands);
        let fun = MathFunction::Fma;
        let result = self.b.compute(Expression::Math { fun, arg, arg1: Some(b), arg2: Some(c), arg3: None });
        self.bits(result)
    }

    /// An integer as a float.
    pub(super) fn integer_as_float(&mut self, a: Value) -> Value {
        let float = self.b.convert(a, Scalar::F32);
        self.bits(float)
    }

    /// A float as an integer or truth value.
    pub(super) fn float_as(&mut self, to: Type, a: Value) -> Result<Value> {
        if to == Type::Bool {
            let magnitude = self.magnitude(a);
            let zero = self.b.u32(0);
            return Ok(self.b.binary(BinaryOperator::NotEqual, magnitude, zero));
        }
        let [operand] = self.operands([a]);
        let number = self.b.convert(operand, super::scalar(to));
        let is_nan = self.is_nan(a);
        let zero = self.zero_of(to);
        Ok(self.b.select(is_nan, zero, number))
    }
}
