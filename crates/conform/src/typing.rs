//! The types of the expressions of a valid program.
//!
//! Validation checks types but does not keep them; coverage and reduction need them. Inference here counts on a
//! valid program: names resolve, operands fit and trees are no deeper than the limits, so recursion is safe.

use std::collections::HashMap;
use vyre_foundation::{AtomicOp, Event, Expr, Function, Literal, Name, Node, Program, Type, Walk};

/// What a walk over a program tells about it, in evaluation order: functions first, operands before operators.
pub(crate) trait Visitor {
    /// An expression, the types of its operands and its own; `None` for an atomic store, which is no value.
    fn expr(&mut self, expr: &Expr, operands: &[Type], ty: Option<Type>);

    /// A statement begins; its own expressions have been visited.
    fn node(&mut self, _node: &Node) {}

    /// The first body of this `If` has ended.
    fn otherwise(&mut self, _node: &Node) {}

    /// The last body of this statement has ended.
    fn end(&mut self, _node: &Node) {}
}

/// Walks over a valid program with the types of its expressions.
pub(crate) fn walk(program: &Program, visitor: &mut dyn Visitor) {
    let mut typer = Typer { program, variables: HashMap::new(), scopes: Vec::new(), visitor };
    for function in program.functions() {
        typer.function(function);
    }
    typer.scopes.push(Vec::new());
    for event in Walk::new(program.entry()) {
        typer.event(event);
    }
}

struct Typer<'p, 'v> {
    program: &'p Program,
    /// The type of each visible variable. A name is visible at most once.
    variables: HashMap<&'p Name, Type>,
    scopes: Vec<Vec<&'p Name>>,
    visitor: &'v mut dyn Visitor,
}

impl<'p> Typer<'p, '_> {
    fn function(&mut self, function: &'p Function) {
        self.variables.extend(function.params.iter().map(|(name, ty)| (name, *ty)));
        for (name, value) in &function.lets {
            let ty = self.expr(value);
            self.variables.insert(name, ty);
        }
        self.expr(&function.result);
        self.variables.clear();
    }

    fn event(&mut self, event: Event<'p>) {
        match event {
            Event::Node(node) => {
                let mut types = Vec::new();
                node.for_each_expr(&mut |expr| types.push(self.expr(expr)));
                self.visitor.node(node);
                if let (Node::Let { name, .. }, [ty]) = (node, types.as_slice()) {
                    self.open(name, *ty);
                }
                if node.bodies().next().is_some() {
                    self.scopes.push(Vec::new());
                }
                if let Node::Loop { var, .. } = node {
                    self.open(var, Type::U32);
                }
            }
            Event::Else(node) => {
                self.close();
                self.scopes.push(Vec::new());
                self.visitor.otherwise(node);
            }
            Event::End(node) => {
                self.close();
                self.visitor.end(node);
            }
        }
    }

    fn open(&mut self, name: &'p Name, ty: Type) {
        self.variables.insert(name, ty);
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(name);
        }
    }

    fn close(&mut self) {
        for name in self.scopes.pop().unwrap_or_default() {
            self.variables.remove(name);
        }
    }

    /// The type of an expression; `u32` stands for the one expression without a type, an atomic store.
    fn expr(&mut self, expr: &'p Expr) -> Type {
        let mut operands = Vec::new();
        expr.for_each_operand(&mut |operand| operands.push(self.expr(operand)));
        let ty = self.result(expr, &operands);
        self.visitor.expr(expr, &operands, ty);
        ty.unwrap_or(Type::U32)
    }

    fn result(&self, expr: &Expr, operands: &[Type]) -> Option<Type> {
        let first = operands.first().copied();
        match expr {
            Expr::Literal(literal) => Some(literal.ty()),
            Expr::Var(name) => self.variables.get(name).copied(),
            Expr::Atomic { op: AtomicOp::Store, .. } => None,
            Expr::Load { buffer, .. } | Expr::Atomic { buffer, .. } | Expr::UniformLoad { buffer, .. } => {
                self.program.buffer(buffer).map(|decl| decl.element().value_type())
            }
            Expr::BufLen { .. }
            | Expr::InvocationId { .. }
            | Expr::WorkgroupId { .. }
            | Expr::LocalId { .. }
            | Expr::NumWorkgroups { .. }
            | Expr::SubgroupLocalId
            | Expr::SubgroupSize => Some(Type::U32),
            Expr::BinOp { op, .. } => first.and_then(|ty| op.result(ty)),
            Expr::UnOp { op, .. } => first.and_then(|ty| op.result(ty)),
            Expr::Select { .. } => operands.get(1).copied(),
            Expr::Cast { to, .. } | Expr::Bitcast { to, .. } => Some(*to),
            Expr::Fma { .. } => Some(Type::F32),
            Expr::SubgroupBallot { .. } => {
                Some(if self.program.subgroup_size() == 64 { Type::U64 } else { Type::U32 })
            }
            Expr::SubgroupShuffle { .. } | Expr::SubgroupReduce { .. } => first,
            Expr::Call { function, .. } => {
                self.program.functions().iter().find(|f| f.name == *function).map(|f| f.result_type)
            }
        }
    }
}

/// The constant of this type whose bits are all zero.
pub(crate) fn zero(ty: Type) -> Expr {
    Expr::Literal(Literal::from_bits(ty, 0))
}
