//! What each row computes, with the reference's arithmetic: total integers, floats with one rounding.
//!
//! Operators are written once for one lane and for vectors of lanes: the types of the operands say which. A truth value
//! is 0 or 1 in one lane, and in a vector a lane full of ones or zeros.

use super::bounds::Access;
use super::{Emitter, clif_type};
use crate::calls::ROUNDINGS;
use crate::context::{Calls, Context};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F32X4, I8X16, I32, I32X4, I64X2};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData};
use std::mem::offset_of;
use vyre_foundation::{BinOp, Literal, Type, UnOp};
use vyre_lower::{Id, Value, ValueId};

impl Emitter<'_, '_> {
    /// Computes a row here, of operands that are taken so.
    pub(super) fn compute(
        &mut self,
        row: ValueId,
        operand: fn(&mut Self, ValueId) -> ir::Value,
    ) -> ir::Value {
        match self.shape.kernel.value(row) {
            Value::Const(literal) => self.constant(literal),
            Value::Id(id, axis) => self.id(id, axis as usize),
            Value::SubgroupLane => {
                let lane = self.lane_index();
                let lane = self.b.ins().ireduce(I32, lane);
                self.b.ins().band_imm_u(lane, i64::from(self.shape.kernel.subgroup_size - 1))
            }
            Value::Len(buffer) => {
                let count = self.count(buffer);
                self.b.ins().ireduce(I32, count)
            }
            Value::Load { buffer, index, .. } => self.load(Access::Row(row), buffer, index),
            Value::Binary { op, ty, a, b } => {
                // All lanes of a vector are shifted by one count.
                let (a, b) = (operand(self, a), if is_shift(op) { self.get(b) } else { operand(self, b) });
                match ty {
                    Type::F32 => self.float(op, a, b),
                    Type::Bool => self.logic(op, a, b),
                    _ => self.integer(op, ty, a, b),
                }
            }
            Value::Unary { op, ty, a } => {
                let a = operand(self, a);
                if ty == Type::F32 { self.float_unary(op, a) } else { self.integer_unary(op, ty, a) }
            }
            Value::Select { cond, a, b, .. } => {
                let [cond, a, b] = [cond, a, b].map(|row| operand(self, row));
                self.choose(cond, a, b)
            }
            Value::Cast { from, to, a } => {
                let a = operand(self, a);
                self.cast(from, to, a)
            }
            Value::Bitcast { from, to, a } => {
                let a = operand(self, a);
                let bits = if from == Type::F32 { self.canonical(a) } else { a };
                if to == Type::F32 { self.as_f32(bits) } else { bits }
            }
            Value::Fma { a, b, c } => {
                let [a, b, c] = [a, b, c].map(|row| operand(self, row));
                self.fused(a, b, c)
            }
            // Made known where its item is; anywhere else it is in its slot.
            Value::Param { .. } | Value::Out { .. } => {
                let slot = self.slot_of_row(row, true);
                self.read_slot(slot)
            }
        }
    }

    fn constant(&mut self, literal: Literal) -> ir::Value {
        let bits = literal.bits();
        match literal.ty() {
            Type::F32 => self.b.ins().f32const(ir::immediates::Ieee32::with_bits(bits as u32)),
            // Immediates are sign-extended from their width.
            Type::U32 | Type::I32 => self.b.ins().iconst(I32, i64::from(bits as u32)),
            ty => self.b.ins().iconst(clif_type(ty), bits as i64),
        }
    }

    fn id(&mut self, id: Id, axis: usize) -> ir::Value {
        if let Some(wide) = self.wide_id(id, axis) {
            return self.b.ins().ireduce(I32, wide);
        }
        match (id, self.workgroup) {
            (Id::Workgroup, Some(workgroup)) => workgroup.ids[axis],
            _ => self.context_field(I32, offset_of!(Context, workgroups) + 4 * axis),
        }
    }

    /// Zero of a type.
    pub(super) fn zero(&mut self, ty: ir::Type) -> ir::Value {
        if ty == F32 {
            self.b.ins().f32const(ir::immediates::Ieee32::with_bits(0))
        } else {
            self.b.ins().iconst(ty, 0)
        }
    }

    fn type_of(&self, value: ir::Value) -> ir::Type {
        self.b.func.dfg.value_type(value)
    }

    /// Whether a value is for a vector of lanes.
    pub(super) fn is_vector(&self, value: ir::Value) -> bool {
        self.type_of(value).is_vector()
    }

    /// The type of a value in one lane, or for as many lanes as another value is for.
    fn shaped(&self, lane: ir::Type, like: ir::Value) -> ir::Type {
        let lanes = self.type_of(like).lane_count();
        lane.by(lanes).unwrap_or(lane)
    }

    /// A number of the type of another one.
    pub(super) fn number_like(&mut self, like: ir::Value, number: i64) -> ir::Value {
        let ty = self.type_of(like);
        let number = self.b.ins().iconst(ty.lane_type(), number);
        if ty.is_vector() { self.b.ins().splat(ty, number) } else { number }
    }

    fn float_like(&mut self, like: ir::Value, number: f32) -> ir::Value {
        let ty = self.type_of(like);
        let number = self.b.ins().f32const(number);
        if ty.is_vector() { self.b.ins().splat(ty, number) } else { number }
    }

    pub(super) fn as_f32(&mut self, bits: ir::Value) -> ir::Value {
        let ty = self.shaped(F32, bits);
        self.b.ins().bitcast(ty, MemFlagsData::new(), bits)
    }

    pub(super) fn as_bits(&mut self, value: ir::Value) -> ir::Value {
        let ty = self.shaped(I32, value);
        self.b.ins().bitcast(ty, MemFlagsData::new(), value)
    }

    /// One value where a condition holds, else another. It moves bits.
    pub(super) fn choose(&mut self, cond: ir::Value, a: ir::Value, b: ir::Value) -> ir::Value {
        match self.type_of(a) {
            F32X4 => {
                let (a, b) = (self.as_bits(a), self.as_bits(b));
                let bits = self.choose(cond, a, b);
                self.as_f32(bits)
            }
            // Byte by byte: the instructions that look at whole lanes are made for floats, and some processors wait when
            // numbers go there and back.
            ty @ (I32X4 | I64X2) if self.target.blend => {
                let [cond, a, b] = [cond, a, b].map(|value| self.retype(I8X16, value));
                let chosen = self.b.ins().blendv(cond, a, b);
                self.retype(ty, chosen)
            }
            I32X4 | I64X2 => self.b.ins().bitselect(cond, a, b),
            _ => self.b.ins().select(cond, a, b),
        }
    }

    fn logic(&mut self, op: BinOp, a: ir::Value, b: ir::Value) -> ir::Value {
        match op {
            BinOp::And | BinOp::BitAnd => self.b.ins().band(a, b),
            BinOp::Or | BinOp::BitOr => self.b.ins().bor(a, b),
            BinOp::Eq => self.icmp(IntCC::Equal, a, b),
            _ => self.b.ins().bxor(a, b),
        }
    }

    /// A binary operator on integers.
    pub(super) fn integer(&mut self, op: BinOp, ty: Type, a: ir::Value, b: ir::Value) -> ir::Value {
        let signed = ty.is_signed();
        let pick = |unsigned: IntCC, other: IntCC| if signed { other } else { unsigned };
        let less = pick(IntCC::UnsignedLessThan, IntCC::SignedLessThan);
        match op {
            BinOp::Add => self.b.ins().iadd(a, b),
            BinOp::Sub => self.b.ins().isub(a, b),
            BinOp::Mul => self.multiply(a, b),
            BinOp::Div | BinOp::Rem => self.divide(op == BinOp::Div, ty, a, b),
            BinOp::BitAnd | BinOp::And => self.b.ins().band(a, b),
            BinOp::BitOr | BinOp::Or => self.b.ins().bor(a, b),
            BinOp::BitXor => self.b.ins().bxor(a, b),
            BinOp::Shl => self.b.ins().ishl(a, b),
            BinOp::Shr if signed => self.b.ins().sshr(a, b),
            BinOp::Shr => self.b.ins().ushr(a, b),
            BinOp::RotL | BinOp::RotR if self.is_vector(a) => self.rotate(op == BinOp::RotL, a, b),
            BinOp::RotL => self.b.ins().rotl(a, b),
            BinOp::RotR => self.b.ins().rotr(a, b),
            BinOp::Eq => self.icmp(IntCC::Equal, a, b),
            BinOp::Ne => self.icmp(IntCC::NotEqual, a, b),
            BinOp::Lt => self.icmp(less, a, b),
            BinOp::Le => self.icmp(pick(IntCC::UnsignedLessThanOrEqual, IntCC::SignedLessThanOrEqual), a, b),
            BinOp::Gt => self.icmp(pick(IntCC::UnsignedGreaterThan, IntCC::SignedGreaterThan), a, b),
            BinOp::Ge => {
                self.icmp(pick(IntCC::UnsignedGreaterThanOrEqual, IntCC::SignedGreaterThanOrEqual), a, b)
            }
            BinOp::Min | BinOp::Max if self.type_of(a) == I64X2 => {
                let is_less = self.icmp(less, a, b);
                if op == BinOp::Min { self.choose(is_less, a, b) } else { self.choose(is_less, b, a) }
            }
            BinOp::Min if signed => self.b.ins().smin(a, b),
            BinOp::Min => self.b.ins().umin(a, b),
            BinOp::Max if signed => self.b.ins().smax(a, b),
            BinOp::Max => self.b.ins().umax(a, b),
            BinOp::MulHi if signed => self.b.ins().smulhi(a, b),
            BinOp::MulHi => self.b.ins().umulhi(a, b),
            BinOp::AbsDiff => {
                let smaller = self.icmp(less, a, b);
                let (up, down) = (self.b.ins().isub(b, a), self.b.ins().isub(a, b));
                self.choose(smaller, up, down)
            }
            BinOp::SatAdd | BinOp::SatSub => self.saturate(op == BinOp::SatAdd, ty, a, b),
        }
    }

    /// Compares lanes of 64 bits. There are instructions for equal and for greater of signed ones.
    pub(super) fn compare_wide(&mut self, cc: IntCC, a: ir::Value, b: ir::Value) -> ir::Value {
        if matches!(cc, IntCC::Equal | IntCC::NotEqual) {
            return self.b.ins().icmp(cc, a, b);
        }
        let [a, b] = match cc.unsigned() == cc {
            // Unsigned numbers are ordered as signed ones are with the highest bit turned over.
            true => [a, b].map(|value| {
                let highest = self.number_like(value, i64::MIN);
                self.b.ins().bxor(value, highest)
            }),
            false => [a, b],
        };
        let greater = |e: &mut Self, a, b| e.b.ins().icmp(IntCC::SignedGreaterThan, a, b);
        match cc {
            IntCC::SignedGreaterThan | IntCC::UnsignedGreaterThan => greater(self, a, b),
            IntCC::SignedLessThan | IntCC::UnsignedLessThan => greater(self, b, a),
            IntCC::SignedLessThanOrEqual | IntCC::UnsignedLessThanOrEqual => {
                let greater = greater(self, a, b);
                self.b.ins().bnot(greater)
            }
            _ => {
                let less = greater(self, b, a);
                self.b.ins().bnot(less)
            }
        }
    }

    /// A rotation of each lane of a vector, for which there is no instruction. Counts are taken modulo the width.
    fn rotate(&mut self, left: bool, a: ir::Value, by: ir::Value) -> ir::Value {
        let back = self.b.ins().ineg(by);
        let (left, right) = if left { (by, back) } else { (back, by) };
        let (high, low) = (self.b.ins().ishl(a, left), self.b.ins().ushr(a, right));
        self.b.ins().bor(high, low)
    }

    /// A product; by 3, 5 and 9 as a sum, which is an address computation and faster; in vectors by powers of two as a
    /// shift.
    fn multiply(&mut self, a: ir::Value, b: ir::Value) -> ir::Value {
        for (a, b) in [(a, b), (b, a)] {
            let shift = match self.immediate(b) {
                Some(3) => 1,
                Some(5) => 2,
                Some(9) => 3,
                Some(power) if self.is_vector(a) && power.count_ones() == 1 => {
                    let shift = self.b.ins().iconst(I32, i64::from(power.trailing_zeros()));
                    return self.b.ins().ishl(a, shift);
                }
                _ => continue,
            };
            let shift = self.b.ins().iconst(I32, shift);
            let shifted = self.b.ins().ishl(a, shift);
            return self.b.ins().iadd(a, shifted);
        }
        self.b.ins().imul(a, b)
    }

    /// The number that a value is, if it is a constant, in all lanes of a vector.
    pub(super) fn immediate(&self, value: ir::Value) -> Option<i64> {
        let dfg = &self.b.func.dfg;
        let inst = dfg.value_def(value).inst()?;
        match dfg.insts[inst] {
            ir::InstructionData::UnaryImm { opcode: ir::Opcode::Iconst, imm } => Some(imm.bits()),
            ir::InstructionData::Unary { opcode: ir::Opcode::Splat, arg } => self.immediate(arg),
            _ => None,
        }
    }

    /// `x / 0 = x`, `x % 0 = 0`, `MIN / -1 = MIN`, `MIN % -1 = 0`: a divisor of 1 gives three of these.
    fn divide(&mut self, quotient: bool, ty: Type, a: ir::Value, b: ir::Value) -> ir::Value {
        let wide = clif_type(ty);
        let one = self.b.ins().iconst(wide, 1);
        let zero = self.zero(wide);
        let none = self.icmp(IntCC::Equal, b, zero);
        if !ty.is_signed() {
            let b = self.b.ins().select(none, one, b);
            return if quotient { self.b.ins().udiv(a, b) } else { self.b.ins().urem(a, b) };
        }
        let minus = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let special = self.b.ins().bor(none, minus);
        let b = self.b.ins().select(special, one, b);
        if !quotient {
            return self.b.ins().srem(a, b);
        }
        let result = self.b.ins().sdiv(a, b);
        let negated = self.b.ins().ineg(a);
        self.b.ins().select(minus, negated, result)
    }

    fn saturate(&mut self, add: bool, ty: Type, a: ir::Value, b: ir::Value) -> ir::Value {
        let result = if add { self.b.ins().iadd(a, b) } else { self.b.ins().isub(a, b) };
        if !ty.is_signed() {
            let (end, over) = if add {
                (self.number_like(a, -1), self.icmp(IntCC::UnsignedLessThan, result, a))
            } else {
                (self.number_like(a, 0), self.icmp(IntCC::UnsignedLessThan, a, b))
            };
            return self.choose(over, end, result);
        }
        // Overflow: the result's sign differs from that of both operands, the second one negated for a difference.
        let left = self.b.ins().bxor(a, result);
        let right = if add { self.b.ins().bxor(b, result) } else { self.b.ins().bxor(a, b) };
        let both = self.b.ins().band(left, right);
        let zero = self.number_like(both, 0);
        let over = self.icmp(IntCC::SignedLessThan, both, zero);
        let last = self.b.ins().iconst(I32, i64::from(ty.bits()) - 1);
        let sign = self.b.ins().sshr(a, last);
        let largest = self.number_like(a, if ty.bits() == 64 { i64::MAX } else { i64::from(i32::MAX) });
        let end = self.b.ins().bxor(sign, largest);
        self.choose(over, end, result)
    }

    fn integer_unary(&mut self, op: UnOp, ty: Type, a: ir::Value) -> ir::Value {
        let narrow = |emitter: &mut Self, count: ir::Value| {
            if ty.bits() == 64 { emitter.b.ins().ireduce(I32, count) } else { count }
        };
        match op {
            UnOp::Neg => self.b.ins().ineg(a),
            UnOp::Not if self.is_vector(a) => self.b.ins().bnot(a),
            UnOp::Not => self.b.ins().bxor_imm_u(a, 1),
            UnOp::BitNot => self.b.ins().bnot(a),
            UnOp::Abs => {
                let negated = self.b.ins().ineg(a);
                let zero = self.number_like(a, 0);
                let negative = self.icmp(IntCC::SignedLessThan, a, zero);
                self.choose(negative, negated, a)
            }
            UnOp::Popcount => {
                let count = self.b.ins().popcnt(a);
                narrow(self, count)
            }
            UnOp::Clz => {
                let count = self.b.ins().clz(a);
                narrow(self, count)
            }
            UnOp::Ctz => {
                let count = self.b.ins().ctz(a);
                narrow(self, count)
            }
            UnOp::ReverseBits => self.b.ins().bitrev(a),
            _ => a,
        }
    }

    fn float(&mut self, op: BinOp, a: ir::Value, b: ir::Value) -> ir::Value {
        let compare = |emitter: &mut Self, cc: FloatCC| emitter.b.ins().fcmp(cc, a, b);
        match op {
            BinOp::Add => self.b.ins().fadd(a, b),
            BinOp::Sub => self.b.ins().fsub(a, b),
            BinOp::Mul => self.b.ins().fmul(a, b),
            BinOp::Div => self.b.ins().fdiv(a, b),
            BinOp::Eq => compare(self, FloatCC::Equal),
            BinOp::Ne => compare(self, FloatCC::NotEqual),
            BinOp::Lt => compare(self, FloatCC::LessThan),
            BinOp::Le => compare(self, FloatCC::LessThanOrEqual),
            BinOp::Gt => compare(self, FloatCC::GreaterThan),
            BinOp::Ge => compare(self, FloatCC::GreaterThanOrEqual),
            // The second operand where it is the one, or where the first is NaN; selections move bits.
            _ => {
                let cc = if op == BinOp::Min { FloatCC::LessThan } else { FloatCC::GreaterThan };
                let second = self.b.ins().fcmp(cc, b, a);
                let nan = self.b.ins().fcmp(FloatCC::Unordered, a, a);
                let second = self.b.ins().bor(second, nan);
                self.choose(second, b, a)
            }
        }
    }

    fn float_unary(&mut self, op: UnOp, a: ir::Value) -> ir::Value {
        match op {
            UnOp::Neg => self.b.ins().fneg(a),
            UnOp::Abs => self.b.ins().fabs(a),
            UnOp::Sqrt => self.b.ins().sqrt(a),
            UnOp::InverseSqrt => {
                let root = self.b.ins().sqrt(a);
                let one = self.float_like(a, 1.0);
                self.b.ins().fdiv(one, root)
            }
            UnOp::IsNan => self.b.ins().fcmp(FloatCC::Unordered, a, a),
            UnOp::IsInf => {
                let size = self.b.ins().fabs(a);
                let infinity = self.float_like(a, f32::INFINITY);
                self.b.ins().fcmp(FloatCC::Equal, size, infinity)
            }
            _ if !self.target.round => self.round_by_call(op, a),
            UnOp::Floor => self.b.ins().floor(a),
            UnOp::Ceil => self.b.ins().ceil(a),
            UnOp::Trunc => self.b.ins().trunc(a),
            _ => self.b.ins().nearest(a),
        }
    }

    fn round_by_call(&mut self, op: UnOp, a: ir::Value) -> ir::Value {
        let how = ROUNDINGS.iter().position(|other| *other == op).unwrap_or(0);
        let how = self.b.ins().iconst(I32, how as i64);
        let bits = self.as_bits(a);
        let rounded = self.call_for(offset_of!(Calls, round), &[I32, I32], I32, &[how, bits]);
        self.as_f32(rounded)
    }

    fn fused(&mut self, a: ir::Value, b: ir::Value, c: ir::Value) -> ir::Value {
        if self.target.fma {
            return self.b.ins().fma(a, b, c);
        }
        let bits = [a, b, c].map(|value| self.as_bits(value));
        let result = self.call_for(offset_of!(Calls, fma), &[I32; 3], I32, &bits);
        self.as_f32(result)
    }

    /// A conversion. Integers truncate or extend by their sign, floats truncate, saturate and send NaN to 0.
    pub(super) fn cast(&mut self, from: Type, to: Type, a: ir::Value) -> ir::Value {
        if from == to {
            return a;
        }
        let wide = self.shaped(clif_type(to), a);
        match (from, to) {
            (Type::F32, Type::Bool) => {
                let zero = self.float_like(a, 0.0);
                self.b.ins().fcmp(FloatCC::NotEqual, a, zero)
            }
            (_, Type::Bool) => {
                let zero = self.number_like(a, 0);
                self.icmp(IntCC::NotEqual, a, zero)
            }
            (Type::F32, _) if to.is_signed() => self.b.ins().fcvt_to_sint_sat(wide, a),
            (Type::F32, _) => self.b.ins().fcvt_to_uint_sat(wide, a),
            (Type::Bool, Type::F32) => {
                let number = self.cast(Type::Bool, Type::I32, a);
                self.b.ins().fcvt_from_sint(wide, number)
            }
            (Type::Bool, _) if self.is_vector(a) => {
                let one = self.number_like(a, 1);
                self.b.ins().band(a, one)
            }
            (_, Type::F32) if from.is_signed() => self.b.ins().fcvt_from_sint(wide, a),
            (_, Type::F32) => self.b.ins().fcvt_from_uint(wide, a),
            _ => match (self.type_of(a).bits(), wide.bits()) {
                (given, wanted) if given > wanted => self.b.ins().ireduce(wide, a),
                (given, wanted) if given < wanted && from.is_signed() => self.b.ins().sextend(wide, a),
                (given, wanted) if given < wanted => self.b.ins().uextend(wide, a),
                _ => a,
            },
        }
    }
}

/// Whether the second operand is a count of bits to move the first one by.
pub(super) fn is_shift(op: BinOp) -> bool {
    matches!(op, BinOp::Shl | BinOp::Shr | BinOp::RotL | BinOp::RotR)
}
