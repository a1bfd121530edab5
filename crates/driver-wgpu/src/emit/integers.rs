//! Integers and truth values, with the reference's arithmetic: everything wraps, and division is total.
//!
//! Divisors are never zero and counts of shifts are masked: shaders promise nothing there.
//! Bit counts exist for words; double words are made of two.

use super::{Builder, Emitter, Value, scalar};
use naga::{BinaryOperator, MathFunction, Scalar, ScalarKind, UnaryOperator};
use vyre_driver::Result;
use vyre_foundation::{BinOp, Literal, Type, UnOp};

impl Emitter<'_> {
    pub(super) fn logic(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        match op {
            BinOp::And | BinOp::BitAnd => self.b.both(a, b),
            BinOp::Or | BinOp::BitOr => self.b.either(a, b),
            BinOp::Eq => self.b.equal(a, b),
            _ => self.b.binary(BinaryOperator::NotEqual, a, b),
        }
    }

    /// A binary operator on integers. Of a constant the shader wants to know that it is not zero, so `right` is told.
    pub(super) fn integer_binary(
        &mut self,
        op: BinOp,
        ty: Type,
        a: Value,
        b: Value,
        right: vyre_lower::Value,
    ) -> Value {
        let is_ordering = matches!(
            op,
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge | BinOp::Min | BinOp::Max | BinOp::AbsDiff
        );
        let a = if ty == Type::I64 && is_ordering { self.hide(a) } else { a };
        let simple = match op {
            BinOp::Add => BinaryOperator::Add,
            BinOp::Sub => BinaryOperator::Subtract,
            BinOp::Mul => BinaryOperator::Multiply,
            BinOp::Div | BinOp::Rem => return self.divide(op == BinOp::Div, ty, a, b, right),
            BinOp::BitAnd | BinOp::And => BinaryOperator::And,
            BinOp::BitOr | BinOp::Or => BinaryOperator::InclusiveOr,
            BinOp::BitXor => BinaryOperator::ExclusiveOr,
            BinOp::Eq => BinaryOperator::Equal,
            BinOp::Ne => BinaryOperator::NotEqual,
            BinOp::Lt => BinaryOperator::Less,
            BinOp::Le => BinaryOperator::LessEqual,
            BinOp::Gt => BinaryOperator::Greater,
            BinOp::Ge => BinaryOperator::GreaterEqual,
            BinOp::Shl | BinOp::Shr | BinOp::RotL | BinOp::RotR => return self.shift(op, ty, a, b, right),
            BinOp::Min => {
                let first = self.b.less(a, b);
                return self.b.select(first, a, b);
            }
            BinOp::Max => {
                let first = self.b.less(b, a);
                return self.b.select(first, a, b);
            }
            BinOp::AbsDiff => {
                let smaller = self.b.less(a, b);
                let (up, down) = (self.b.sub(b, a), self.b.sub(a, b));
                let result = self.b.select(smaller, up, down);
                return self.unsigned(ty, result);
            }
            BinOp::SatAdd | BinOp::SatSub => return self.saturate(op == BinOp::SatAdd, ty, a, b),
            BinOp::MulHi => return self.multiply_high(ty, a, b),
        };
        self.b.binary(simple, a, b)
    }

    /// An `i64` of which the driver knows nothing: it may have folded it to a constant, and then compares it wrongly.
    fn hide(&mut self, value: Value) -> Value {
        let Some(zeros) = self.zeros else { return value };
        // Not the zero that constants are combined with.
        let zero = self.b.convert(zeros.operands[0], Scalar::U64);
        let bits = self.b.bits_as(value, ScalarKind::Uint);
        let hidden = self.b.xor(bits, zero);
        self.b.bits_as(hidden, ScalarKind::Sint)
    }

    /// The bits of a number as an unsigned one.
    fn unsigned(&mut self, ty: Type, value: Value) -> Value {
        if ty.is_signed() { self.b.bits_as(value, ScalarKind::Uint) } else { value }
    }

    /// Unsigned bits as a number of a type.
    fn typed(&mut self, ty: Type, bits: Value) -> Value {
        if ty.is_signed() { self.b.bits_as(bits, ScalarKind::Sint) } else { bits }
    }

    fn number(&mut self, ty: Type, bits: u64) -> Value {
        self.constant(Literal::from_bits(ty, bits))
    }

    fn divide(&mut self, quotient: bool, ty: Type, a: Value, b: Value, right: vyre_lower::Value) -> Value {
        if let vyre_lower::Value::Const(literal) = right
            && literal.bits() == 0
        {
            return if quotient { a } else { self.number(ty, 0) };
        }
        let op = if quotient { BinaryOperator::Divide } else { BinaryOperator::Modulo };
        if !ty.is_signed() {
            return self.divide_unsigned(op, ty, a, b);
        }
        // Of the magnitudes, which never overflow: some drivers fold the smallest number by -1 and crash.
        let zero = self.number(ty, 0);
        let (a_negative, b_negative) = (self.b.less(a, zero), self.b.less(b, zero));
        let [x, y] = [(a, a_negative), (b, b_negative)].map(|(value, negative)| {
            let negated = self.b.sub(zero, value);
            let magnitude = self.b.select(negative, negated, value);
            self.b.bits_as(magnitude, ScalarKind::Uint)
        });
        let result = self.divide_unsigned(op, ty.to_unsigned(), x, y);
        let result = self.b.bits_as(result, ScalarKind::Sint);
        let negated = self.b.sub(zero, result);
        let negative = match quotient {
            true => self.b.binary(BinaryOperator::NotEqual, a_negative, b_negative),
            false => a_negative,
        };
        self.b.select(negative, negated, result)
    }

    /// `x / 0 = x` and `x % 0 = 0`: a divisor of 1 gives both.
    fn divide_unsigned(&mut self, op: BinaryOperator, ty: Type, a: Value, b: Value) -> Value {
        let (zero, one) = (self.number(ty, 0), self.number(ty, 1));
        let none = self.b.equal(b, zero);
        let b = self.b.select(none, one, b);
        self.b.binary(op, a, b)
    }

    /// The count of a shift as a word below the width.
    fn count(&mut self, ty: Type, by: Value, right: vyre_lower::Value) -> Value {
        let mask = ty.bits() - 1;
        if let vyre_lower::Value::Const(literal) = right {
            return self.b.u32(literal.bits() as u32 & mask);
        }
        let by = self.unsigned(ty, by);
        let by = if ty.bits() == 64 { self.b.convert(by, Scalar::U32) } else { by };
        let mask = self.b.u32(mask);
        self.b.and(by, mask)
    }

    fn shift(&mut self, op: BinOp, ty: Type, a: Value, by: Value, right: vyre_lower::Value) -> Value {
        let mut by = self.count(ty, by, right);
        if let (BinOp::RotL | BinOp::RotR, 64, Some(zeros)) = (op, ty.bits(), self.zeros) {
            // A driver takes 64 bits for 32 where it recognises a rotation by a constant.
            by = self.b.xor(by, zeros.others);
        }
        match op {
            BinOp::Shl => self.b.shl(a, by),
            BinOp::Shr => self.b.shr(a, by),
            _ => {
                let bits = self.unsigned(ty, a);
                let zero = self.b.u32(0);
                let back = self.b.sub(zero, by);
                let mask = self.b.u32(ty.bits() - 1);
                let back = self.b.and(back, mask);
                let (left, right) = if op == BinOp::RotL { (by, back) } else { (back, by) };
                let (high, low) = (self.b.shl(bits, left), self.b.shr(bits, right));
                let rotated = self.b.or(high, low);
                self.typed(ty, rotated)
            }
        }
    }

    fn saturate(&mut self, add: bool, ty: Type, a: Value, b: Value) -> Value {
        let result = if add { self.b.add(a, b) } else { self.b.sub(a, b) };
        if !ty.is_signed() {
            let over = if add { self.b.less(result, a) } else { self.b.less(a, b) };
            let end = self.number(ty, if add { u64::MAX } else { 0 });
            return self.b.select(over, end, result);
        }
        // Overflow: the result's sign differs from that of both operands, the second one negated for a difference.
        let left = self.b.xor(a, result);
        let right = if add { self.b.xor(b, result) } else { self.b.xor(a, b) };
        let both = self.b.and(left, right);
        let zero = self.number(ty, 0);
        let over = self.b.less(both, zero);
        let sign = self.b.shr_by(a, ty.bits() - 1);
        let largest = self.number(ty, if ty.bits() == 64 { i64::MAX as u64 } else { i32::MAX as u64 });
        let end = self.b.xor(sign, largest);
        self.b.select(over, end, result)
    }

    fn multiply_high(&mut self, ty: Type, a: Value, b: Value) -> Value {
        if ty.bits() == 32 {
            let wide = if ty.is_signed() { Scalar::I64 } else { Scalar::U64 };
            let (a, b) = (self.b.convert(a, wide), self.b.convert(b, wide));
            let product = self.b.mul(a, b);
            let high = self.b.shr_by(product, 32);
            return self.truncate(ty, high);
        }
        let (x, y) = (self.unsigned(ty, a), self.unsigned(ty, b));
        let mut high = self.high_of_double_words(x, y);
        if ty.is_signed() {
            // A negative factor was taken for itself plus 2^64.
            for (factor, other) in [(a, y), (b, x)] {
                let zero = self.number(ty, 0);
                let negative = self.b.less(factor, zero);
                let none = self.b.u64(0);
                let extra = self.b.select(negative, other, none);
                high = self.b.sub(high, extra);
            }
        }
        self.typed(ty, high)
    }

    /// The high half of the product of two `u64`, of four products of their halves.
    fn high_of_double_words(&mut self, x: Value, y: Value) -> Value {
        let b = &mut self.b;
        let mask = b.u64(u64::from(u32::MAX));
        let halves = |b: &mut Builder, value: Value| (b.and(value, mask), b.shr_by(value, 32));
        let ((x0, x1), (y0, y1)) = (halves(b, x), halves(b, y));
        let low = b.mul(x0, y0);
        let carried = b.shr_by(low, 32);
        let middle = b.mul(x1, y0);
        let middle = b.add(middle, carried);
        let (middle_low, middle_high) = halves(b, middle);
        let other = b.mul(x0, y1);
        let other = b.add(other, middle_low);
        let other_high = b.shr_by(other, 32);
        let top = b.mul(x1, y1);
        let top = b.add(top, middle_high);
        b.add(top, other_high)
    }

    /// The low word of a double word of the same sign.
    fn truncate(&mut self, to: Type, value: Value) -> Value {
        if !to.is_signed() {
            return self.b.convert(value, Scalar::U32);
        }
        let bits = self.b.bits_as(value, ScalarKind::Uint);
        let low = self.b.convert(bits, Scalar::U32);
        self.b.bits_as(low, ScalarKind::Sint)
    }

    pub(super) fn integer_unary(&mut self, op: UnOp, ty: Type, a: Value) -> Value {
        match op {
            UnOp::Not => self.b.not(a),
            UnOp::BitNot => self.b.unary(UnaryOperator::BitwiseNot, a),
            UnOp::Neg => {
                let zero = self.number(ty, 0);
                self.b.sub(zero, a)
            }
            UnOp::Abs => {
                let zero = self.number(ty, 0);
                let negated = self.b.sub(zero, a);
                let negative = self.b.less(a, zero);
                self.b.select(negative, negated, a)
            }
            UnOp::Popcount => self.count_bits(ty, a, MathFunction::CountOneBits),
            UnOp::Clz => self.count_bits(ty, a, MathFunction::CountLeadingZeros),
            UnOp::Ctz => self.count_bits(ty, a, MathFunction::CountTrailingZeros),
            UnOp::ReverseBits => {
                let bits = self.unsigned(ty, a);
                let reversed = if ty.bits() == 32 {
                    self.b.math(MathFunction::ReverseBits, bits, None)
                } else {
                    let (low, high) = self.words(bits);
                    let low = self.b.math(MathFunction::ReverseBits, low, None);
                    let high = self.b.math(MathFunction::ReverseBits, high, None);
                    let (low, high) = (self.b.convert(low, Scalar::U64), self.b.convert(high, Scalar::U64));
                    let top = self.b.shl_by(low, 32);
                    self.b.or(top, high)
                };
                self.typed(ty, reversed)
            }
            _ => a,
        }
    }

    /// The two words of a `u64`, the low one first.
    fn words(&mut self, bits: Value) -> (Value, Value) {
        let low = self.b.convert(bits, Scalar::U32);
        let high = self.b.shr_by(bits, 32);
        (low, self.b.convert(high, Scalar::U32))
    }

    fn count_bits(&mut self, ty: Type, a: Value, fun: MathFunction) -> Value {
        let bits = self.unsigned(ty, a);
        if ty.bits() == 32 {
            return self.b.math(fun, bits, None);
        }
        let (low, high) = self.words(bits);
        let of_low = self.b.math(fun, low, None);
        let of_high = self.b.math(fun, high, None);
        let both = self.b.add(of_low, of_high);
        // Zeros go on in the second word where the first one has nothing else.
        let (first, of_first) = match fun {
            MathFunction::CountLeadingZeros => (high, of_high),
            MathFunction::CountTrailingZeros => (low, of_low),
            _ => return both,
        };
        let zero = self.b.u32(0);
        let is_empty = self.b.equal(first, zero);
        self.b.select(is_empty, both, of_first)
    }

    /// A conversion between integers and truth values.
    fn cast_integer(&mut self, from: Type, to: Type, a: Value) -> Value {
        if to == Type::Bool {
            let zero = self.number(from, 0);
            return self.b.binary(BinaryOperator::NotEqual, a, zero);
        }
        // By the sign of the source to the width of the target, then to its kind.
        let wide = match (from.bits(), to.bits()) {
            (32, 64) => self.b.convert(a, if from.is_signed() { Scalar::I64 } else { Scalar::U64 }),
            (64, 32) => self.truncate(from, a),
            _ => a,
        };
        if from.is_signed() == to.is_signed() { wide } else { self.b.bits_as(wide, scalar(to).kind) }
    }

    pub(super) fn cast(&mut self, from: Type, to: Type, a: Value) -> Result<Value> {
        Ok(match (from, to) {
            _ if from == to => a,
            (Type::F32, _) => return self.float_as(to, a),
            (Type::Bool, _) => {
                let one = if to == Type::F32 { u64::from(1f32.to_bits()) } else { 1 };
                let (one, zero) = (self.number(to, one), self.number(to, 0));
                self.b.select(a, one, zero)
            }
            (_, Type::F32) => self.integer_as_float(a),
            _ => self.cast_integer(from, to, a),
        })
    }

    pub(super) fn bitcast(&mut self, from: Type, to: Type, a: Value) -> Value {
        let bits = if from == Type::F32 { self.canonical(a) } else { a };
        let (from, to) = (scalar(from), scalar(to));
        if from == to { bits } else { self.b.bits_as(bits, to.kind) }
    }
}
