//! Writes the wire form, without recursion.

use super::{expr_tag, node_tag};
use crate::ops::MemoryOrdering;
use crate::{Body, Event, Expr, Name, Node, Program, Walk};
use rustc_hash::FxHashMap;

/// The payload of a program: what is written, hashed and compared.
pub(crate) fn payload(program: &Program) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.program(program);
    encoder.finish()
}

/// The encoding of one expression, for comparing.
pub(crate) fn expr_bytes(expr: &Expr) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.expr(expr);
    encoder.finish()
}

/// The encoding of one body, for comparing.
pub(crate) fn body_bytes(body: &Body) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.body(body);
    encoder.finish()
}

#[derive(Default)]
struct Encoder<'a> {
    out: Vec<u8>,
    names: Vec<&'a Name>,
    numbers: FxHashMap<&'a Name, u64>,
}

fn push_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl<'a> Encoder<'a> {
    fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.out.len() + 16 * self.names.len());
        push_number(&mut out, self.names.len() as u64);
        for name in &self.names {
            push_number(&mut out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
        out.extend_from_slice(&self.out);
        out
    }

    fn number(&mut self, value: u64) {
        push_number(&mut self.out, value);
    }

    fn name(&mut self, name: &'a Name) {
        let next = self.names.len() as u64;
        let number = *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            next
        });
        self.number(number);
    }

    fn program(&mut self, program: &'a Program) {
        self.name(program.name());
        let size = program.workgroup_size();
        self.out.push(size.axes() as u8);
        size.size()[..size.axes()].iter().for_each(|n| self.number(u64::from(*n)));
        self.number(u64::from(program.subgroup_size()));
        self.number(program.buffers().len() as u64);
        for buffer in program.buffers() {
            self.name(buffer.name());
            self.out.extend([buffer.access() as u8, buffer.element() as u8]);
            // An open count is 0, a static one is one more than it says.
            self.number(buffer.count().map_or(0, |n| u64::from(n) + 1));
        }
        self.number(program.functions().len() as u64);
        for function in program.functions() {
            self.name(&function.name);
            self.number(function.params.len() as u64);
            for (name, ty) in &function.params {
                self.name(name);
                self.out.push(*ty as u8);
            }
            self.out.push(function.result_type as u8);
            self.number(function.lets.len() as u64);
            for (name, value) in &function.lets {
                self.name(name);
                self.expr(value);
            }
            self.expr(&function.result);
        }
        self.body(program.entry());
    }

    fn body(&mut self, body: &'a Body) {
        for event in Walk::new(body) {
            match event {
                Event::Node(node) => self.node(node),
                Event::Else(_) => self.out.push(node_tag::ELSE),
                Event::End(_) => self.out.push(node_tag::END),
            }
        }
        self.out.push(node_tag::END);
    }

    /// The statement itself; the bodies in it follow.
    fn node(&mut self, node: &'a Node) {
        match node {
            Node::Let { name, value } => {
                self.out.push(node_tag::LET);
                self.name(name);
                self.expr(value);
            }
            Node::Assign { name, value } => {
                self.out.push(node_tag::ASSIGN);
                self.name(name);
                self.expr(value);
            }
            Node::Store { buffer, index, value } => {
                self.out.push(node_tag::STORE);
                self.name(buffer);
                self.expr(index);
                self.expr(value);
            }
            Node::Eval { expr } => {
                self.out.push(node_tag::EVAL);
                self.expr(expr);
            }
            Node::If { cond, .. } => {
                self.out.push(node_tag::IF);
                self.expr(cond);
            }
            Node::Loop { var, from, to, .. } => {
                self.out.push(node_tag::LOOP);
                self.name(var);
                self.expr(from);
                self.expr(to);
            }
            Node::Break => self.out.push(node_tag::BREAK),
            Node::Continue => self.out.push(node_tag::CONTINUE),
            Node::Block { .. } => self.out.push(node_tag::BLOCK),
            Node::Region { generator, source_region, .. } => {
                self.out.extend([node_tag::REGION, u8::from(source_region.is_some())]);
                self.name(generator);
                if let Some(source) = source_region {
                    self.name(source);
                }
            }
            Node::Barrier { ordering } => self.out.extend([node_tag::BARRIER, *ordering as u8]),
            Node::Return => self.out.push(node_tag::RETURN),
            Node::Trap { tag, value } => {
                self.out.push(node_tag::TRAP);
                self.name(tag);
                self.expr(value);
            }
        }
    }

    fn expr(&mut self, root: &'a Expr) {
        let mut pending = vec![root];
        while let Some(expr) = pending.pop() {
            self.expr_head(expr);
            let start = pending.len();
            expr.for_each_operand(&mut |operand| pending.push(operand));
            pending[start..].reverse();
        }
    }

    /// The operator and its fields; its operands follow.
    fn expr_head(&mut self, expr: &'a Expr) {
        let named = |this: &mut Self, tag: u8, name: &'a Name| {
            this.out.push(tag);
            this.name(name);
        };
        match expr {
            Expr::Literal(literal) => {
                self.out.extend([expr_tag::LITERAL, literal.ty() as u8]);
                self.number(literal.bits());
            }
            Expr::Var(name) => named(self, expr_tag::VAR, name),
            Expr::Load { buffer, .. } => named(self, expr_tag::LOAD, buffer),
            Expr::BufLen { buffer } => named(self, expr_tag::BUF_LEN, buffer),
            Expr::InvocationId { axis } => self.out.extend([expr_tag::INVOCATION_ID, *axis as u8]),
            Expr::WorkgroupId { axis } => self.out.extend([expr_tag::WORKGROUP_ID, *axis as u8]),
            Expr::LocalId { axis } => self.out.extend([expr_tag::LOCAL_ID, *axis as u8]),
            Expr::NumWorkgroups { axis } => self.out.extend([expr_tag::NUM_WORKGROUPS, *axis as u8]),
            Expr::SubgroupLocalId => self.out.push(expr_tag::SUBGROUP_LOCAL_ID),
            Expr::SubgroupSize => self.out.push(expr_tag::SUBGROUP_SIZE),
            Expr::BinOp { op, .. } => self.out.extend([expr_tag::BIN_OP, *op as u8]),
            Expr::UnOp { op, .. } => self.out.extend([expr_tag::UN_OP, *op as u8]),
            Expr::Select { .. } => self.out.push(expr_tag::SELECT),
            Expr::Cast { to, .. } => self.out.extend([expr_tag::CAST, *to as u8]),
            Expr::Bitcast { to, .. } => self.out.extend([expr_tag::BITCAST, *to as u8]),
            Expr::Fma { .. } => self.out.push(expr_tag::FMA),
            Expr::Atomic { op, buffer, expected, value, ordering, .. } => {
                let present = u8::from(expected.is_some()) | u8::from(value.is_some()) << 1;
                self.out.extend([expr_tag::ATOMIC, *op as u8, *ordering as u8, present]);
                self.name(buffer);
            }
            Expr::UniformLoad { scope, buffer, .. } => {
                self.out.extend([expr_tag::UNIFORM_LOAD, *scope as u8]);
                self.name(buffer);
            }
            Expr::SubgroupBallot { .. } => self.out.push(expr_tag::SUBGROUP_BALLOT),
            Expr::SubgroupShuffle { .. } => self.out.push(expr_tag::SUBGROUP_SHUFFLE),
            Expr::SubgroupReduce { op, .. } => self.out.extend([expr_tag::SUBGROUP_REDUCE, *op as u8]),
            Expr::Call { function, args } => {
                named(self, expr_tag::CALL, function);
                self.number(args.len() as u64);
            }
        }
    }
}

// The numbers of these enums are part of the format: a changed order must not go unnoticed.
const _: () = assert!(MemoryOrdering::GridSync as u8 == 5);
