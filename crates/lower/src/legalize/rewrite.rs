//! Puts calls where operations stand that are not legal.
//!
//! Operands keep their order and number: a call evaluates its arguments as an operator its operands, and a function
//! sees nothing else.

use super::soft::Soft;
use super::{Legal, is_replaced};
use crate::lower::roomy;
use rustc_hash::FxHashMap;
use vyre_foundation::{BinOp, Body, Element, Expr, Function, Name, Node, Program, Type, UnOp};

pub(super) struct Rewriting<'p> {
    program: &'p Program,
    legal: Legal,
    soft: Soft,
    buffers: FxHashMap<&'p str, Element>,
    functions: FxHashMap<&'p str, Type>,
    /// The types of variables. A name is visible at most once, so what has gone out of scope is never asked for.
    variables: FxHashMap<Name, Type>,
}

impl<'p> Rewriting<'p> {
    pub(super) fn new(program: &'p Program, legal: Legal) -> Rewriting<'p> {
        Rewriting {
            program,
            legal,
            soft: Soft::new(program),
            buffers: program.buffers().iter().map(|b| (b.name().as_str(), b.element())).collect(),
            functions: program.functions().iter().map(|f| (f.name.as_str(), f.result_type)).collect(),
            variables: FxHashMap::default(),
        }
    }

    /// The functions that are called, and those that they call.
    pub(super) fn added(&mut self) -> Vec<Function> {
        let mut added = Vec::new();
        while let Some(function) = self.soft.next() {
            added.push(self.function(&function));
        }
        added
    }

    pub(super) fn function(&mut self, function: &Function) -> Function {
        self.variables = function.params.iter().cloned().collect();
        let mut lets = Vec::with_capacity(function.lets.len());
        for (name, value) in &function.lets {
            lets.push((name.clone(), self.open(name, value)));
        }
        let result = self.expr(&function.result).0;
        Function { lets, result, ..function.clone() }
    }

    pub(super) fn body(&mut self, body: &Body) -> Body {
        // A chain of `else if` nests as deep as it is long.
        roomy(|| body.iter().map(|node| self.node(node)).collect())
    }

    /// The value of a new variable.
    fn open(&mut self, name: &Name, value: &Expr) -> Expr {
        let (value, ty) = self.expr(value);
        self.variables.insert(name.clone(), ty);
        value
    }

    fn node(&mut self, node: &Node) -> Node {
        match node {
            Node::Let { name, value } => Node::Let { name: name.clone(), value: self.open(name, value) },
            Node::Assign { name, value } => Node::Assign { name: name.clone(), value: self.expr(value).0 },
            Node::Store { buffer, index, value } => {
                let (index, value) = (self.expr(index).0, self.expr(value).0);
                let value = match self.replaced(buffer) {
                    Some(Element::F16) => self.call("f32_to_f16", [value]).0,
                    Some(_) => self.call("f32_to_bf16", [value]).0,
                    None => value,
                };
                Node::Store { buffer: buffer.clone(), index, value }
            }
            Node::Eval { expr } => Node::Eval { expr: self.expr(expr).0 },
            Node::If { cond, then, otherwise } => {
                let cond = self.expr(cond).0;
                Node::If { cond, then: self.body(then), otherwise: self.body(otherwise) }
            }
            Node::Loop { var, from, to, body } => {
                let (from, to) = (self.expr(from).0, self.expr(to).0);
                self.variables.insert(var.clone(), Type::U32);
                Node::Loop { var: var.clone(), from, to, body: self.body(body) }
            }
            Node::Block { body } => Node::Block { body: self.body(body) },
            Node::Region { generator, source_region, body } => Node::Region {
                generator: generator.clone(),
                source_region: source_region.clone(),
                body: self.body(body),
            },
            Node::Trap { tag, value } => Node::Trap { tag: tag.clone(), value: self.expr(value).0 },
            Node::Break | Node::Continue | Node::Barrier { .. } | Node::Return => node.clone(),
        }
    }

    /// An expression and its type.
    fn expr(&mut self, expr: &Expr) -> (Expr, Type) {
        // The types of the first operands; no operator has more than three.
        let mut types = [Type::U32; 3];
        let mut count = 0;
        let expr = expr.clone().map_operands(&mut |operand| {
            let (operand, ty) = roomy(|| self.expr(&operand));
            if let Some(place) = types.get_mut(count) {
                *place = ty;
            }
            count += 1;
            operand
        });
        let ty = self.ty(&expr, types);
        match expr {
            Expr::BinOp { op, left, right } if types[0] == Type::F32 => match self.binary(op) {
                Some(name) => self.call(name, [left.into_expr(), right.into_expr()]),
                None => (Expr::BinOp { op, left, right }, ty),
            },
            Expr::UnOp { op, operand } if types[0] == Type::F32 => match self.unary(op) {
                Some(name) => self.call(name, [operand.into_expr()]),
                None => (Expr::UnOp { op, operand }, ty),
            },
            Expr::Fma { a, b, c } if !self.legal.fma => {
                self.call("fma_f32", [a.into_expr(), b.into_expr(), c.into_expr()])
            }
            Expr::Cast { to, value } => match self.cast(types[0], to) {
                Some(name) => self.call(name, [value.into_expr()]),
                None => (Expr::Cast { to, value }, ty),
            },
            Expr::Load { ref buffer, .. } | Expr::UniformLoad { ref buffer, .. } => {
                match self.replaced(buffer) {
                    Some(Element::F16) => self.call("f16_to_f32", [expr]),
                    Some(_) => self.call("bf16_to_f32", [expr]),
                    None => (expr, ty),
                }
            }
            expr => (expr, ty),
        }
    }

    /// The type of an expression, by the types of its first operands.
    fn ty(&self, expr: &Expr, types: [Type; 3]) -> Type {
        match expr {
            Expr::Literal(literal) => literal.ty(),
            Expr::Var(name) => self.variables.get(name).copied().unwrap_or(Type::U32),
            Expr::Load { buffer, .. } | Expr::UniformLoad { buffer, .. } | Expr::Atomic { buffer, .. } => {
                self.buffers.get(buffer.as_str()).map_or(Type::U32, |element| element.value_type())
            }
            Expr::BinOp { op, .. } => op.result(types[0]).unwrap_or(types[0]),
            Expr::UnOp { op, .. } => op.result(types[0]).unwrap_or(types[0]),
            Expr::Select { .. } => types[1],
            Expr::Cast { to, .. } | Expr::Bitcast { to, .. } => *to,
            Expr::Fma { .. } => Type::F32,
            Expr::SubgroupShuffle { .. } | Expr::SubgroupReduce { .. } => types[0],
            Expr::SubgroupBallot { .. } if self.program.subgroup_size() == 64 => Type::U64,
            Expr::Call { function, .. } => {
                let own = self.functions.get(function.as_str()).copied();
                own.or_else(|| self.soft.result(function)).unwrap_or(Type::U32)
            }
            Expr::BufLen { .. }
            | Expr::InvocationId { .. }
            | Expr::WorkgroupId { .. }
            | Expr::LocalId { .. }
            | Expr::NumWorkgroups { .. }
            | Expr::SubgroupLocalId
            | Expr::SubgroupSize
            | Expr::SubgroupBallot { .. } => Type::U32,
        }
    }

    fn call<const N: usize>(&mut self, name: &str, args: [Expr; N]) -> (Expr, Type) {
        let (name, ty) = self.soft.call(name);
        (Expr::call(name, args), ty)
    }

    /// The element type of a buffer whose loads and stores are calls.
    fn replaced(&self, buffer: &str) -> Option<Element> {
        let element = self.buffers.get(buffer).copied();
        element.filter(|element| is_replaced(*element, &self.legal))
    }

    /// The function for an operator on two `f32`.
    fn binary(&self, op: BinOp) -> Option<&'static str> {
        let legal = &self.legal;
        match op {
            BinOp::Add if !legal.add => Some("add_f32"),
            BinOp::Sub if !legal.add => Some("sub_f32"),
            BinOp::Mul if !legal.mul => Some("mul_f32"),
            BinOp::Div if !legal.div => Some("div_f32"),
            _ => None,
        }
    }

    /// The function for an operator on an `f32`.
    fn unary(&self, op: UnOp) -> Option<&'static str> {
        let legal = &self.legal;
        match op {
            UnOp::Sqrt if !legal.sqrt => Some("sqrt_f32"),
            UnOp::InverseSqrt if !legal.sqrt || !legal.div => Some("inverse_sqrt_f32"),
            UnOp::Floor if !legal.rounding => Some("floor_f32"),
            UnOp::Ceil if !legal.rounding => Some("ceil_f32"),
            UnOp::Trunc if !legal.rounding => Some("trunc_f32"),
            UnOp::Round if !legal.rounding => Some("round_f32"),
            _ => None,
        }
    }

    /// The function for a conversion.
    fn cast(&self, from: Type, to: Type) -> Option<&'static str> {
        match (from, to) {
            (Type::F32, Type::U32) if !self.legal.to_integer => Some("f32_to_u32"),
            (Type::F32, Type::I32) if !self.legal.to_integer => Some("f32_to_i32"),
            (Type::F32, Type::U64) if !self.legal.to_integer => Some("f32_to_u64"),
            (Type::F32, Type::I64) if !self.legal.to_integer => Some("f32_to_i64"),
            (Type::U32, Type::F32) if !self.legal.from_integer => Some("u32_to_f32"),
            (Type::I32, Type::F32) if !self.legal.from_integer => Some("i32_to_f32"),
            (Type::U64, Type::F32) if !self.legal.from_integer => Some("u64_to_f32"),
            (Type::I64, Type::F32) if !self.legal.from_integer => Some("i64_to_f32"),
            _ => None,
        }
    }
}
