//! Lowering of expressions: names become values, functions are inlined, effects become items in evaluation order.

use crate::kernel::{Id, Item, Value, ValueId};
use crate::lower::{Lowering, roomy};
use vyre_foundation::{Expr, Literal, Operand, SubgroupOp, Type};

impl<'p> Lowering<'p> {
    pub(crate) fn expr(&mut self, expr: &'p Expr) -> ValueId {
        let value = match expr {
            Expr::Var(name) => return self.variable_value(name),
            Expr::UniformLoad { .. } => return self.hoisted(),
            Expr::Call { function, args } => return self.call(function, args),
            Expr::Load { buffer, index } => return self.load(buffer, index),
            Expr::Atomic { .. } => return self.atomic(expr),
            Expr::SubgroupBallot { .. } | Expr::SubgroupShuffle { .. } | Expr::SubgroupReduce { .. } => {
                return self.subgroup(expr);
            }
            Expr::Literal(literal) => Value::Const(*literal),
            Expr::SubgroupSize => Value::Const(Literal::U32(self.program.subgroup_size())),
            Expr::SubgroupLocalId => Value::SubgroupLane,
            Expr::InvocationId { axis } => Value::Id(Id::Invocation, *axis),
            Expr::WorkgroupId { axis } => Value::Id(Id::Workgroup, *axis),
            Expr::LocalId { axis } => Value::Id(Id::Local, *axis),
            Expr::NumWorkgroups { axis } => Value::Id(Id::NumWorkgroups, *axis),
            Expr::BufLen { buffer } => Value::Len(self.buffer_number(buffer)),
            Expr::BinOp { op, left, right } => {
                let (a, b) = (self.expr(left), self.expr(right));
                Value::Binary { op: *op, ty: self.builder.ty(a), a, b }
            }
            Expr::UnOp { op, operand } => {
                let a = self.expr(operand);
                Value::Unary { op: *op, ty: self.builder.ty(a), a }
            }
            Expr::Select { cond, if_true, if_false } => {
                let (cond, a, b) = (self.expr(cond), self.expr(if_true), self.expr(if_false));
                Value::Select { ty: self.builder.ty(a), cond, a, b }
            }
            Expr::Cast { to, value } => {
                let a = self.expr(value);
                Value::Cast { from: self.builder.ty(a), to: *to, a }
            }
            Expr::Bitcast { to, value } => {
                let a = self.expr(value);
                Value::Bitcast { from: self.builder.ty(a), to: *to, a }
            }
            Expr::Fma { a, b, c } => Value::Fma { a: self.expr(a), b: self.expr(b), c: self.expr(c) },
        };
        self.builder.value(value)
    }

    /// Inlines a call: the function sees its arguments alone.
    fn call(&mut self, name: &str, args: &'p [Operand]) -> ValueId {
        let function = &self.program.functions()[self.function_number(name)];
        let args: Vec<ValueId> = args.iter().map(|arg| self.expr(arg)).collect();
        let outer = self.enter_function();
        for ((param, _), value) in function.params.iter().zip(args) {
            self.bind(param, value);
        }
        for (name, value) in &function.lets {
            let value = roomy(|| self.expr(value));
            self.bind(name, value);
        }
        let result = roomy(|| self.expr(&function.result));
        self.leave_function(outer);
        result
    }

    fn load(&mut self, buffer: &str, index: &'p Operand) -> ValueId {
        let index = self.expr(index);
        let buffer = self.buffer_number(buffer);
        let ty = self.element_type(buffer);
        if !self.is_written(buffer) {
            return self.builder.value(Value::Load { buffer, index, ty });
        }
        // The version is known once all items are.
        self.guarded_out(ty, |this| this.effect(Item::Load { buffer, index, version: 0 }))
    }

    fn atomic(&mut self, expr: &'p Expr) -> ValueId {
        let Expr::Atomic { op, buffer, index, expected, value, ordering } = expr else {
            unreachable!("called for atomics only");
        };
        let index = self.expr(index);
        let expected = expected.as_ref().map(|e| self.expr(e));
        let value = value.as_ref().map(|e| self.expr(e));
        let buffer = self.buffer_number(buffer);
        let ty = self.element_type(buffer);
        let (op, ordering) = (*op, *ordering);
        self.guarded_out(ty, |this| {
            this.effect(Item::Atomic { op, ordering, buffer, index, expected, value })
        })
    }

    /// Everyone reaches a subgroup operation; those that have ended contribute what changes nothing.
    fn subgroup(&mut self, expr: &'p Expr) -> ValueId {
        let (item, ty) = match expr {
            Expr::SubgroupBallot { cond } => {
                let cond = self.expr(cond);
                let cond = self.builder.and(cond, self.live());
                let ty = if self.program.subgroup_size() == 64 { Type::U64 } else { Type::U32 };
                (Item::Ballot { cond }, ty)
            }
            Expr::SubgroupShuffle { value, lane } => {
                let (value, lane) = (self.expr(value), self.expr(lane));
                let ty = self.builder.ty(value);
                let value = self.if_live(value, Literal::from_bits(ty, 0));
                (Item::Shuffle { value, lane }, ty)
            }
            Expr::SubgroupReduce { op, value } => {
                let value = self.expr(value);
                let ty = self.builder.ty(value);
                let value = self.if_live(value, neutral(*op, ty));
                (Item::Reduce { op: *op, value }, ty)
            }
            _ => unreachable!("called for subgroup operations only"),
        };
        let item = self.effect(item);
        self.out(item, ty)
    }

    /// The value where the invocation still runs, else the constant.
    fn if_live(&mut self, value: ValueId, otherwise: Literal) -> ValueId {
        let live = self.live();
        if self.builder.as_bool(live) == Some(true) {
            return value;
        }
        let otherwise = self.builder.constant(otherwise);
        self.builder.select(live, value, otherwise)
    }
}

/// The value that changes nothing when it is combined.
fn neutral(op: SubgroupOp, ty: Type) -> Literal {
    let bits = match op {
        SubgroupOp::Add | SubgroupOp::Or | SubgroupOp::Xor => 0,
        SubgroupOp::Mul => 1,
        SubgroupOp::And => u64::MAX,
        SubgroupOp::Min if ty.is_signed() => u64::MAX >> (65 - ty.bits()),
        SubgroupOp::Min => u64::MAX,
        SubgroupOp::Max if ty.is_signed() => 1 << (ty.bits() - 1),
        SubgroupOp::Max => 0,
    };
    Literal::from_bits(ty, bits)
}
