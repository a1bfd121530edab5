//! Types and uniformity of expressions.

use super::uniformity::{At, Level, Uniform};
use super::{Binding, Checker, Value};
use crate::diagnostic::{Place, Problem, Role, binary_takes, unary_takes};
use crate::ops::{AtomicOp, BinOp, Scope, UnOp};
use crate::validate::path::Step;
use crate::{BufferAccess, BufferDecl, Expr, Name, Operand, Type};

impl Value {
    fn new(ty: Type, uniform: Uniform) -> Value {
        Value { ty: Some(ty), uniform }
    }

    /// The value of an expression that is wrong: nothing further is said about it.
    fn unknown() -> Value {
        Value { ty: None, uniform: Uniform::GRID }
    }
}

impl<'p> Checker<'p> {
    /// Checks an expression. Operands come first, so that numbers count up as the source map does.
    pub(super) fn expr(&mut self, expr: &'p Expr) -> Value {
        match expr {
            Expr::Literal(literal) => self.leaf(Value::new(literal.ty(), Uniform::GRID)),
            Expr::Var(name) => self.variable(name),
            Expr::BufLen { buffer } => self.buf_len(buffer),
            Expr::InvocationId { .. } => self.id(Level::Divergent, "`global_id` differs between invocations"),
            Expr::LocalId { .. } => self.id(Level::Divergent, "`local_id` differs between invocations"),
            Expr::SubgroupLocalId => self.id(Level::Divergent, "`subgroup_lane` differs between invocations"),
            Expr::WorkgroupId { .. } => {
                self.id(Level::Workgroup, "`workgroup_id` differs between workgroups")
            }
            Expr::NumWorkgroups { .. } | Expr::SubgroupSize => {
                self.impure("ids");
                self.leaf(Value::new(Type::U32, Uniform::GRID))
            }
            Expr::Load { buffer, index } => self.load(buffer, index),
            Expr::BinOp { op, left, right } => self.binary(*op, left, right),
            Expr::UnOp { op, operand } => self.unary(*op, operand),
            Expr::Select { cond, if_true, if_false } => self.select(cond, if_true, if_false),
            Expr::Cast { to, value } => {
                let value = self.operand("value", value);
                self.leaf(Value::new(*to, value.uniform))
            }
            Expr::Bitcast { to, value } => self.bitcast(*to, value),
            Expr::Fma { a, b, c } => self.fma([a, b, c]),
            Expr::Atomic { op, .. } => {
                let value = self.atomic(expr);
                if *op == AtomicOp::Store {
                    let place = self.last_place();
                    self.report(Problem::StoreAsValue, place);
                    return Value::unknown();
                }
                value
            }
            Expr::UniformLoad { scope, buffer, index } => self.uniform_load(*scope, buffer, index),
            Expr::SubgroupBallot { cond } => self.ballot(cond),
            Expr::SubgroupShuffle { value, lane } => self.shuffle(value, lane),
            Expr::SubgroupReduce { op, value } => {
                let value = self.operand("value", value);
                let place = self.subgroup();
                match value.ty {
                    Some(ty) if !ty.is_integer() => {
                        let takes = "`u32`, `i32`, `u64` and `i64`";
                        let operator = op.spelling();
                        self.report(Problem::OperatorType { operator, ty, takes }, place);
                        Value::unknown()
                    }
                    ty => Value { ty, uniform: self.subgroup_result() },
                }
            }
            Expr::Call { function, args } => self.call(function, args),
        }
    }

    /// Counts the expression and gives it this value.
    fn leaf(&mut self, value: Value) -> Value {
        self.expr += 1;
        value
    }

    fn operand(&mut self, field: &'static str, operand: &'p Operand) -> Value {
        self.path.push(Step::Field(field));
        let value = self.expr(operand);
        self.path.pop();
        value
    }

    /// The place of the expression that was counted last.
    fn last_place(&self) -> Place {
        self.expr_place(self.expr.saturating_sub(1))
    }

    /// An expression counted last, as a place in the graph.
    fn last_at(&self) -> At {
        At::Expr { node: self.node.saturating_sub(1) as u32, expr: self.expr.saturating_sub(1) as u32 }
    }

    /// Reports a value of the wrong type at the expression that was counted last.
    pub(super) fn expect_type(&mut self, value: Value, expected: Type, role: Role) {
        if let Some(found) = value.ty.filter(|ty| *ty != expected) {
            let place = self.last_place();
            self.report(Problem::WrongType { role, expected, found }, place);
        }
    }

    fn expect_operand(
        &mut self,
        field: &'static str,
        operand: &'p Operand,
        expected: Type,
        role: Role,
    ) -> Value {
        self.path.push(Step::Field(field));
        let value = self.expr(operand);
        self.expect_type(value, expected, role);
        self.path.pop();
        value
    }

    /// Reports what a function must not do.
    fn impure(&mut self, what: &'static str) {
        if let Some(number) = self.function {
            let function = self.program.functions()[number].name.clone();
            let place = self.expr_place(self.expr);
            self.report(Problem::ImpureFunction { function, what }, place);
        }
    }

    fn variable(&mut self, name: &'p Name) -> Value {
        let value = match self.lookup(name) {
            Some(Binding::Variable(id)) => {
                let variable = &self.variables[id];
                Value { ty: variable.ty, uniform: variable.uniform }
            }
            _ => {
                let (is, nearest) = self.suggestion(name, |b| matches!(b, Binding::Variable(_)));
                let place = self.expr_place(self.expr);
                self.report(Problem::UnknownVariable { name: name.clone(), nearest, is }, place);
                Value::unknown()
            }
        };
        self.leaf(value)
    }

    fn id(&mut self, level: Level, why: &'static str) -> Value {
        self.impure("ids");
        self.expr += 1;
        let at = self.last_at();
        let uniform = self.graph.source(level, at, why);
        Value::new(Type::U32, uniform)
    }

    /// The buffer with this name; an unknown one is reported.
    pub(super) fn buffer(
        &mut self,
        name: &'p Name,
        place: impl FnOnce(&Self) -> Place,
    ) -> Option<&'p BufferDecl> {
        if let Some(Binding::Buffer(i)) = self.lookup(name) {
            return Some(&self.program.buffers()[i]);
        }
        let (is, nearest) = self.suggestion(name, |b| matches!(b, Binding::Buffer(_)));
        let place = place(self);
        self.report(Problem::UnknownBuffer { name: name.clone(), nearest, is }, place);
        None
    }

    fn buf_len(&mut self, buffer: &'p Name) -> Value {
        self.impure("`len`");
        self.buffer(buffer, |checker| checker.expr_place(checker.expr));
        self.leaf(Value::new(Type::U32, Uniform::GRID))
    }

    fn load(&mut self, buffer: &'p Name, index: &'p Operand) -> Value {
        let index = self.expect_operand("index", index, Type::U32, Role::Index);
        self.impure("memory");
        self.expr += 1;
        let Some(decl) = self.buffer(buffer, Self::last_place) else { return Value::unknown() };
        if !decl.access().allows_load() {
            let place = self.last_place();
            self.report(Problem::NotLoadable(buffer.clone()), place);
        }
        let ty = decl.element().value_type();
        if matches!(decl.access(), BufferAccess::ReadOnly | BufferAccess::Uniform) {
            return Value::new(ty, index.uniform);
        }
        let at = self.last_at();
        let why = "a load of memory that the program writes may differ between invocations";
        Value::new(ty, self.graph.source(Level::Divergent, at, why))
    }

    fn binary(&mut self, op: BinOp, left: &'p Operand, right: &'p Operand) -> Value {
        let left = self.operand("left", left);
        let right = self.operand("right", right);
        self.expr += 1;
        let uniform = self.graph.join(left.uniform, right.uniform);
        let (Some(a), Some(b)) = (left.ty, right.ty) else {
            // The type of the result may still be known: a comparison is a `bool` whatever it compares.
            let ty = if op.is_comparison() { Some(Type::Bool) } else { None };
            return Value { ty, uniform };
        };
        let operator = op.spelling();
        if a != b {
            let place = self.last_place();
            self.report(Problem::OperandTypes { operator, left: a, right: b }, place);
            return Value { ty: op.is_comparison().then_some(Type::Bool), uniform };
        }
        let ty = op.result(a);
        if ty.is_none() {
            let place = self.last_place();
            self.report(Problem::OperatorType { operator, ty: a, takes: binary_takes(op) }, place);
        }
        Value { ty, uniform }
    }

    fn unary(&mut self, op: UnOp, operand: &'p Operand) -> Value {
        let value = self.operand("operand", operand);
        self.expr += 1;
        let Some(operand) = value.ty else { return value };
        let ty = op.result(operand);
        if ty.is_none() {
            let place = self.last_place();
            let operator = op.spelling();
            self.report(Problem::OperatorType { operator, ty: operand, takes: unary_takes(op) }, place);
        }
        Value { ty, uniform: value.uniform }
    }

    fn select(&mut self, cond: &'p Operand, if_true: &'p Operand, if_false: &'p Operand) -> Value {
        let cond = self.expect_operand("cond", cond, Type::Bool, Role::SelectCondition);
        let a = self.operand("if_true", if_true);
        let b = self.operand("if_false", if_false);
        self.expr += 1;
        let uniform = self.graph.join(a.uniform, b.uniform);
        let uniform = self.graph.join(cond.uniform, uniform);
        if let (Some(left), Some(right)) = (a.ty, b.ty)
            && left != right
        {
            let place = self.last_place();
            self.report(Problem::OperandTypes { operator: "select", left, right }, place);
            return Value { ty: None, uniform };
        }
        Value { ty: a.ty.or(b.ty), uniform }
    }

    fn bitcast(&mut self, to: Type, value: &'p Operand) -> Value {
        let value = self.operand("value", value);
        self.expr += 1;
        if let Some(from) = value.ty
            && (from.bits() != to.bits() || to == Type::Bool)
        {
            let place = self.last_place();
            self.report(Problem::BitcastTypes { from, to }, place);
        }
        Value::new(to, value.uniform)
    }

    fn fma(&mut self, operands: [&'p Operand; 3]) -> Value {
        let mut uniform = Uniform::GRID;
        for (field, operand) in ["a", "b", "c"].into_iter().zip(operands) {
            let value = self.expect_operand(field, operand, Type::F32, Role::Fma);
            uniform = self.graph.join(uniform, value.uniform);
        }
        self.leaf(Value::new(Type::F32, uniform))
    }

    fn atomic(&mut self, expr: &'p Expr) -> Value {
        let Expr::Atomic { op, buffer, index, expected, value, ordering } = expr else {
            unreachable!("called for atomics only");
        };
        self.expect_operand("index", index, Type::U32, Role::Index);
        let mut given = Vec::new();
        for (field, operand) in [("expected", expected), ("value", value)] {
            if let Some(operand) = operand {
                let checked = self.operand(field, operand);
                given.push((checked, self.expr - 1));
            }
        }
        self.impure("memory");
        self.expr += 1;
        self.effect = Some("an atomic");
        if expected.is_some() != op.takes_expected() || value.is_some() != op.takes_value() {
            let place = self.last_place();
            self.report(Problem::AtomicOperands(*op), place);
        }
        if !ordering.is_legal_for(*op) {
            let place = self.last_place();
            self.report(Problem::AtomicOrdering { op: *op, ordering: *ordering }, place);
        }
        let Some(decl) = self.buffer(buffer, Self::last_place) else { return Value::unknown() };
        if !decl.access().allows_atomics() {
            let (access, place) = (decl.access(), self.last_place());
            self.report(Problem::NotAtomicAccess { buffer: buffer.clone(), access }, place);
        } else if !decl.element().is_atomic() {
            let (element, place) = (decl.element(), self.last_place());
            self.report(Problem::NotAtomicElement { buffer: buffer.clone(), element }, place);
        }
        let ty = decl.element().value_type();
        for (checked, number) in given {
            if let Some(found) = checked.ty.filter(|found| *found != ty) {
                let place = self.expr_place(number);
                let role = Role::Stored(buffer.clone());
                self.report(Problem::WrongType { role, expected: ty, found }, place);
            }
        }
        let at = self.last_at();
        let why = "the result of an atomic may differ between invocations";
        Value::new(ty, self.graph.source(Level::Divergent, at, why))
    }

    fn uniform_load(&mut self, scope: Scope, buffer: &'p Name, index: &'p Operand) -> Value {
        let index = self.expect_operand("index", index, Type::U32, Role::Index);
        let index_place = self.last_place();
        self.impure("memory");
        self.expr += 1;
        let place = self.last_place();
        if let Some(effect) = self.effect.replace("another `uniform_load`") {
            self.report(Problem::LateUniformLoad(effect), place.clone());
        }
        let at_most = match scope {
            Scope::Grid => Level::Grid,
            Scope::Workgroup => Level::Workgroup,
        };
        let control = self.control();
        self.graph.demand(control, at_most, Problem::DivergentUniformLoad(scope), place.clone());
        self.graph.demand(index.uniform, at_most, Problem::DivergentUniformIndex(scope), index_place);
        let Some(decl) = self.buffer(buffer, Self::last_place) else { return Value::unknown() };
        let access = decl.access();
        let private = access == BufferAccess::Local || !access.allows_load();
        if private || scope == Scope::Grid && access == BufferAccess::Workgroup {
            self.report(Problem::UniformLoadAccess { scope, access }, place);
        }
        let at = self.last_at();
        let uniform = match scope {
            Scope::Grid => Uniform::GRID,
            Scope::Workgroup => {
                let why = "`uniform_load(workgroup, …)` differs between workgroups";
                self.graph.source(Level::Workgroup, at, why)
            }
        };
        Value::new(decl.element().value_type(), uniform)
    }

    /// Counts a subgroup operation and checks where it stands.
    fn subgroup(&mut self) -> Place {
        self.impure("subgroup operations");
        self.expr += 1;
        self.effect = Some("a subgroup operation");
        let place = self.last_place();
        let control = self.control();
        self.graph.demand(control, Level::Workgroup, Problem::DivergentSubgroup, place.clone());
        place
    }

    fn subgroup_result(&mut self) -> Uniform {
        let at = self.last_at();
        let why = "the result of a subgroup operation may differ between subgroups";
        self.graph.source(Level::Divergent, at, why)
    }

    fn ballot(&mut self, cond: &'p Operand) -> Value {
        self.expect_operand("cond", cond, Type::Bool, Role::Ballot);
        self.subgroup();
        let ty = if self.program.subgroup_size() == 64 { Type::U64 } else { Type::U32 };
        Value::new(ty, self.subgroup_result())
    }

    fn shuffle(&mut self, value: &'p Operand, lane: &'p Operand) -> Value {
        let value = self.operand("value", value);
        self.expect_operand("lane", lane, Type::U32, Role::Lane);
        self.subgroup();
        Value { ty: value.ty, uniform: self.subgroup_result() }
    }

    fn call(&mut self, name: &'p Name, args: &'p [Operand]) -> Value {
        let mut uniform = Uniform::GRID;
        let mut given = Vec::with_capacity(args.len());
        for (i, arg) in args.iter().enumerate() {
            self.path.push(Step::Arg(i));
            let value = self.expr(arg);
            self.path.pop();
            uniform = self.graph.join(uniform, value.uniform);
            given.push((value, self.expr - 1));
        }
        self.expr += 1;
        let Some(Binding::Function(i)) = self.lookup(name) else {
            let place = self.last_place();
            let (is, nearest) = self.suggestion(name, |b| matches!(b, Binding::Function(_)));
            self.report(Problem::UnknownFunction { name: name.clone(), nearest, is }, place);
            return Value::unknown();
        };
        let function = &self.program.functions()[i];
        let (expected, found) = (function.params.len(), args.len());
        if expected != found {
            let place = self.last_place();
            self.report(Problem::CallArguments { function: name.clone(), expected, found }, place);
        }
        for ((value, number), (param, ty)) in given.into_iter().zip(&function.params) {
            if let Some(found) = value.ty.filter(|found| found != ty) {
                let place = self.expr_place(number);
                let role = Role::Argument(name.clone(), param.clone());
                self.report(Problem::WrongType { role, expected: *ty, found }, place);
            }
        }
        Value::new(function.result_type, uniform)
    }

    /// An expression whose value nobody takes: the one place for an atomic store.
    pub(super) fn effect_expr(&mut self, expr: &'p Expr) {
        self.path.push(Step::Field("expr"));
        match expr {
            Expr::Atomic { .. } => self.atomic(expr),
            _ => self.expr(expr),
        };
        self.path.pop();
    }

    /// An expression of a statement, with the type it must have.
    pub(super) fn typed_expr(
        &mut self,
        field: &'static str,
        expr: &'p Expr,
        expected: Option<(Type, Role)>,
    ) -> Value {
        self.path.push(Step::Field(field));
        let value = self.expr(expr);
        if let Some((ty, role)) = expected {
            self.expect_type(value, ty, role);
        }
        self.path.pop();
        value
    }
}
