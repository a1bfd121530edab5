//! Breaks a program down into the items that [`super::required`] enumerates.

use super::required::Sink;
use crate::typing::{self, Visitor};
use std::collections::HashMap;
use vyre_foundation::{
    AtomicOp, BinOp, Body, BufferAccess, Event, Expr, Literal, MemoryOrdering, Name, Node, Program, Scope,
    Type, Walk,
};

/// Gives every item that a valid program uses to the sink, once per use.
pub(super) fn program(program: &Program, sink: &mut Sink<'_>) {
    declarations(program, sink);
    let mut collector = Collector {
        program,
        sink,
        open: Vec::new(),
        returned: false,
        ended: Vec::from([None]),
        waits: Waits::default(),
        assigned: Vec::new(),
        variables: HashMap::new(),
        stored: HashMap::new(),
        bound: false,
    };
    typing::walk(program, &mut collector);
}

fn declarations(program: &Program, sink: &mut Sink<'_>) {
    sink("subgroup size", program.subgroup_size().to_string());
    sink("workgroup size", format!("{} axes", program.workgroup_size().axes()));
    for buffer in program.buffers() {
        let (access, element) = (buffer.access(), buffer.element());
        let sort = if buffer.count().is_some() { "static" } else { "open" };
        sink("buffer", format!("{access} {element} {sort}"));
        if buffer.count() == Some(0) {
            sink("buffer", format!("{access} without elements"));
        }
    }
    for function in program.functions() {
        sink("function", format!("result {}", function.result_type));
        for (_, ty) in &function.params {
            sink("function", format!("parameter {ty}"));
        }
        if function.exprs().any(holds_call) {
            sink("shape", "function calls function".to_owned());
        }
    }
}

fn holds_call(expr: &Expr) -> bool {
    let mut found = matches!(expr, Expr::Call { .. });
    expr.for_each_operand(&mut |operand| found |= holds_call(operand));
    found
}

/// What encloses a statement.
#[derive(Clone, Copy, PartialEq)]
enum Frame {
    Loop,
    Branch,
    Scope,
}

/// How many barriers and uniform loads the walk has met.
#[derive(Clone, Copy, Default, PartialEq)]
struct Waits {
    all: u64,
    /// Those of the whole grid.
    grid: u64,
}

/// What is known of a variable on the walk.
struct Life {
    /// What the walk had met when it was written last.
    written: Waits,
    /// How many loops and branches were open where it was declared.
    depth: (usize, usize),
    counter: bool,
    assigned: bool,
    /// Whether a loop without grid barriers has computed it.
    by_plain_loop: bool,
}

struct Collector<'p, 's, 'f> {
    program: &'p Program,
    sink: &'s mut Sink<'f>,
    open: Vec<Frame>,
    /// Whether the walk has passed a `return`.
    returned: bool,
    /// For each open body the jump after which nobody arrives.
    ended: Vec<Option<&'static str>>,
    waits: Waits,
    /// For each open loop the variables assigned in it so far.
    assigned: Vec<Vec<Name>>,
    variables: HashMap<Name, Life>,
    /// When local and workgroup memory was last stored to.
    stored: HashMap<Name, Waits>,
    /// Whether the statement's expressions have loaded memory.
    bound: bool,
}

impl Collector<'_, '_, '_> {
    fn add(&mut self, group: &'static str, name: impl Into<String>) {
        (self.sink)(group, name.into());
    }

    fn count(&self, frame: Frame) -> usize {
        self.open.iter().filter(|open| **open == frame).count()
    }

    fn wait(&mut self, group: &'static str, scope: Scope) {
        self.waits.all += 1;
        self.waits.grid += u64::from(scope == Scope::Grid);
        let (loops, branches) = (self.count(Frame::Loop), self.count(Frame::Branch));
        let first = self.open.iter().find(|frame| **frame != Frame::Scope);
        let places = [
            (loops == 0 && branches == 0, "straight"),
            (loops > 0, "in a loop"),
            (branches > 0, "in a branch"),
            (loops > 1, "in a loop in a loop"),
            (loops > 0 && branches > 0 && first == Some(&Frame::Loop), "in a branch in a loop"),
            (loops > 0 && branches > 0 && first == Some(&Frame::Branch), "in a loop in a branch"),
            (self.returned, "after a return"),
        ];
        for (holds, place) in places {
            if holds {
                self.add(group, format!("{} {place}", scope.name()));
            }
        }
    }

    fn access(&self, buffer: &Name) -> String {
        match self.program.buffer(buffer) {
            Some(decl) => format!("{} {}", decl.access(), decl.element()),
            None => String::new(),
        }
    }

    fn variable_used(&mut self, name: &Name, ty: Option<Type>) {
        let Some(life) = self.variables.get(name) else { return };
        if life.written == self.waits {
            return;
        }
        let (counter, assigned, grid) = (life.counter, life.assigned, life.written.grid < self.waits.grid);
        if let Some(ty) = ty {
            self.add("live across barrier", ty.to_string());
            if grid {
                self.add("live across grid barrier", ty.to_string());
            }
        }
        if counter {
            self.add("shape", "loop counter live across barrier");
        }
        if assigned {
            self.add("shape", "assigned variable live across barrier");
        }
    }

    fn declare(&mut self, name: &Name, counter: bool) {
        let depth = (self.count(Frame::Loop), self.count(Frame::Branch));
        let life = Life { written: self.waits, depth, counter, assigned: false, by_plain_loop: false };
        self.variables.insert(name.clone(), life);
    }

    fn assign(&mut self, name: &Name) {
        let now = (self.count(Frame::Loop), self.count(Frame::Branch));
        let Some(life) = self.variables.get_mut(name) else { return };
        life.written = self.waits;
        life.assigned = true;
        life.by_plain_loop = false;
        self.assigned.iter_mut().for_each(|names| names.push(name.clone()));
        let depth = life.depth;
        if now.0 > depth.0 {
            self.add("shape", "variable assigned in loop");
        }
        if now.1 > depth.1 {
            self.add("shape", "variable assigned in branch");
        }
    }

    fn atomic(&mut self, op: AtomicOp, buffer: &Name, ordering: MemoryOrdering) {
        let access = self.access(buffer);
        self.add("atomic", format!("{} on {access}", op.spelling()));
        self.add("ordering", format!("{} {}", op.spelling(), ordering.name()));
    }

    fn load(&mut self, buffer: &Name) {
        self.bound = true;
        let access = self.access(buffer);
        self.add("load", access);
        let Some(at) = self.stored.get(buffer).copied() else { return };
        let local = self.program.buffer(buffer).is_some_and(|b| b.access() == BufferAccess::Local);
        if local && at.all < self.waits.all {
            self.add("shape", "local array live across barrier");
        }
        if at.grid < self.waits.grid {
            let kind = if local { "local array" } else { "workgroup memory" };
            self.add("shape", format!("{kind} live across grid barrier"));
        }
    }

    fn for_loop(&mut self, from: &Expr, to: &Expr) {
        self.add("statement", "loop");
        if let (Expr::Literal(Literal::U32(from)), Expr::Literal(Literal::U32(to))) = (from, to)
            && from >= to
        {
            self.add("shape", "empty loop");
        }
        if self.bound {
            self.add("shape", "loop bound from memory");
        }
        if self.open.contains(&Frame::Loop) {
            self.add("shape", "loop in loop");
        }
        if self.open.contains(&Frame::Branch) {
            self.add("shape", "loop in branch");
        }
    }

    fn branch(&mut self, otherwise: &Body) {
        self.add("statement", "if");
        if otherwise.as_else_if().is_some() {
            self.add("statement", "else if");
        } else if !otherwise.is_empty() {
            self.add("statement", "if else");
        }
        if self.open.contains(&Frame::Loop) {
            self.add("shape", "branch in loop");
        }
    }

    fn end_of_control(&mut self, word: &'static str) {
        self.add("statement", word);
        self.returned |= word == "return";
        if word == "return" && self.open.contains(&Frame::Loop) {
            self.add("shape", "return in loop");
        }
        if let Some(ended) = self.ended.last_mut() {
            *ended = Some(word);
        }
    }

    /// What decides a branch or loop that holds a grid barrier.
    fn grid_control(&mut self, node: &Node) {
        let (mut plain, mut loaded) = (false, false);
        node.for_each_expr(&mut |expr| {
            loaded |= loads_for_grid(expr);
            expr.visit(&mut |part| {
                let life = match part {
                    Expr::Var(name) => self.variables.get(name),
                    _ => None,
                };
                plain |= life.is_some_and(|life| life.by_plain_loop);
            });
        });
        if (plain || loaded) && node.bodies().any(waits_for_grid) {
            if plain {
                self.add("shape", "grid control from a plain loop");
            }
            if loaded {
                self.add("shape", "grid control from a uniform load");
            }
        }
        if let Node::If { then, .. } = node
            && loaded
            && then.iter().any(|inner| matches!(inner, Node::Break))
        {
            self.add("shape", "loop left on a uniform load");
        }
    }

    /// The end of a loop: without a grid barrier, it has computed what it assigned.
    fn end_of_loop(&mut self, body: &Body) {
        let assigned = self.assigned.pop().unwrap_or_default();
        if waits_for_grid(body) {
            return;
        }
        for name in assigned {
            if let Some(life) = self.variables.get_mut(&name) {
                life.by_plain_loop = true;
            }
        }
    }

    fn enter(&mut self, frame: Frame) {
        self.open.push(frame);
        self.ended.push(None);
    }
}

impl Visitor for Collector<'_, '_, '_> {
    fn expr(&mut self, expr: &Expr, operands: &[Type], ty: Option<Type>) {
        let first = operands.first().map_or("", |ty| ty.name());
        let own = ty.map_or("", |ty| ty.name());
        match expr {
            Expr::Literal(literal) => {
                for class in classes(*literal) {
                    self.add("constant", format!("{own} {class}"));
                }
            }
            Expr::Var(name) => self.variable_used(name, ty),
            Expr::Load { buffer, .. } => self.load(buffer),
            Expr::BufLen { buffer } => {
                if let Some(decl) = self.program.buffer(buffer) {
                    let access = decl.access().to_string();
                    self.add("length of", access);
                }
            }
            Expr::InvocationId { axis } => self.add("builtin", format!("global_id.{}", axis.name())),
            Expr::WorkgroupId { axis } => self.add("builtin", format!("workgroup_id.{}", axis.name())),
            Expr::LocalId { axis } => self.add("builtin", format!("local_id.{}", axis.name())),
            Expr::NumWorkgroups { axis } => self.add("builtin", format!("num_workgroups.{}", axis.name())),
            Expr::SubgroupLocalId => self.add("builtin", "subgroup_lane"),
            Expr::SubgroupSize => self.add("builtin", "subgroup_size"),
            Expr::BinOp { op, left, .. } => {
                self.add("binary", format!("{} on {first}", op.spelling()));
                if *op == BinOp::Min && matches!(&**left, Expr::BinOp { op: BinOp::Max, .. }) {
                    self.add("clamp", first);
                }
            }
            Expr::UnOp { op, .. } => self.add("unary", format!("{} on {first}", op.spelling())),
            Expr::Select { .. } => self.add("select", own),
            Expr::Cast { .. } => self.add("cast", format!("{first} to {own}")),
            Expr::Bitcast { .. } => self.add("bitcast", format!("{first} to {own}")),
            Expr::Fma { .. } => self.add("fma", "f32"),
            Expr::Atomic { op, buffer, ordering, .. } => self.atomic(*op, buffer, *ordering),
            Expr::UniformLoad { scope, buffer, .. } => {
                let access = self.access(buffer);
                self.add("uniform load", format!("{} {access}", scope.name()));
                self.add("statement", format!("uniform load {}", scope.name()));
                self.wait("uniform load place", *scope);
                self.bound = true;
            }
            Expr::SubgroupBallot { .. } => self.add("ballot", own),
            Expr::SubgroupShuffle { .. } => self.add("shuffle", own),
            Expr::SubgroupReduce { op, .. } => self.add("reduce", format!("{} on {own}", op.spelling())),
            Expr::Call { .. } => {}
        }
    }

    fn node(&mut self, node: &Node) {
        if let Some(Some(word)) = self.ended.last() {
            let word = *word;
            self.add("shape", format!("statement after {word}"));
        }
        match node {
            Node::Let { name, .. } => {
                self.add("statement", "let");
                self.declare(name, false);
            }
            Node::Assign { name, .. } => {
                self.add("statement", "assign");
                self.assign(name);
            }
            Node::Store { buffer, .. } => {
                self.add("statement", "store");
                let access = self.access(buffer);
                self.add("store", access);
                let private = [BufferAccess::Local, BufferAccess::Workgroup];
                if self.program.buffer(buffer).is_some_and(|b| private.contains(&b.access())) {
                    self.stored.insert(buffer.clone(), self.waits);
                }
            }
            Node::Eval { expr: Expr::Atomic { .. } } => self.add("statement", "eval atomic"),
            Node::Eval { .. } => self.add("statement", "eval value"),
            Node::If { otherwise, .. } => {
                self.branch(otherwise);
                self.grid_control(node);
                self.enter(Frame::Branch);
            }
            Node::Loop { var, from, to, .. } => {
                self.for_loop(from, to);
                self.grid_control(node);
                self.enter(Frame::Loop);
                self.assigned.push(Vec::new());
                self.declare(var, true);
            }
            Node::Break => self.end_of_control("break"),
            Node::Continue => self.end_of_control("continue"),
            Node::Block { .. } => {
                self.add("statement", "block");
                self.enter(Frame::Scope);
            }
            Node::Region { source_region, .. } => {
                self.add("statement", if source_region.is_some() { "region from" } else { "region" });
                self.enter(Frame::Scope);
            }
            Node::Barrier { ordering } => {
                let scope =
                    if *ordering == MemoryOrdering::GridSync { Scope::Grid } else { Scope::Workgroup };
                self.add("statement", format!("barrier {}", scope.name()));
                self.wait("barrier", scope);
            }
            Node::Return => self.end_of_control("return"),
            Node::Trap { .. } => self.end_of_control("trap"),
        }
        self.bound = false;
    }

    fn otherwise(&mut self, _node: &Node) {
        if let Some(ended) = self.ended.last_mut() {
            *ended = None;
        }
    }

    fn end(&mut self, node: &Node) {
        if let Node::Loop { body, .. } = node {
            self.end_of_loop(body);
        }
        self.open.pop();
        self.ended.pop();
    }
}

/// Whether an expression holds a `uniform_load` of the grid.
fn loads_for_grid(expr: &Expr) -> bool {
    let mut found = false;
    expr.visit(&mut |part| found |= matches!(part, Expr::UniformLoad { scope: Scope::Grid, .. }));
    found
}

/// Whether something in a body waits for the grid.
fn waits_for_grid(body: &Body) -> bool {
    Walk::new(body).any(|event| {
        let Event::Node(node) = event else { return false };
        let mut found = matches!(node, Node::Barrier { ordering: MemoryOrdering::GridSync });
        node.for_each_expr(&mut |expr| found |= loads_for_grid(expr));
        found
    })
}

/// The classes of a constant.
fn classes(literal: Literal) -> Vec<&'static str> {
    let ty = literal.ty();
    match literal {
        Literal::Bool(true) => vec!["true"],
        Literal::Bool(false) => vec!["false"],
        Literal::F32(value) => float_classes(value.value()),
        _ => {
            let bits = literal.bits();
            let top = 1u64 << (ty.bits() - 1);
            let all = if ty.bits() == 64 { u64::MAX } else { u64::from(u32::MAX) };
            let largest = if ty.is_signed() { top - 1 } else { all };
            vec![match bits {
                0 => "zero",
                1 => "one",
                _ if bits == largest => "largest",
                _ if bits == top => "top bit",
                _ if bits == all => "minus one",
                _ => "other",
            }]
        }
    }
}

fn float_classes(value: f32) -> Vec<&'static str> {
    if value.is_nan() {
        return vec!["nan"];
    }
    if value == 0.0 {
        return vec![if value.is_sign_negative() { "-0" } else { "+0" }];
    }
    if value.is_infinite() {
        return vec![if value > 0.0 { "+inf" } else { "-inf" }];
    }
    let size = value.abs();
    let mut found = Vec::new();
    let tests = [
        (value < 0.0, "negative"),
        (size < f32::MIN_POSITIVE, "subnormal"),
        (size == f32::MIN_POSITIVE, "smallest normal"),
        (size == f32::MAX, "largest"),
        (size.fract() == 0.5, "tie"),
        (size >= 16_777_216.0, "beyond integers"),
        (size.fract() == 0.0 && size < 16_777_216.0, "integer"),
        (size.fract() != 0.0 && size.fract() != 0.5 && size > 1e-3, "fraction"),
    ];
    found.extend(tests.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name));
    found
}
