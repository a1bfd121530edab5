//! From a validated program to [`Code`].

use crate::code::{Code, Id, Inst, Reg, Routine};
use std::collections::HashMap;
use vyre_foundation::{
    Body, Element, Expr, Function, Literal, MemoryOrdering, Name, Node, Program, Scope, Type,
};

/// Compiles a program that has passed validation.
pub(crate) fn compile(program: &Program) -> Code {
    let mut code = Code {
        insts: Vec::new(),
        registers: 0,
        routines: Vec::new(),
        tags: Vec::new(),
        waits_for_grid: false,
        before: Vec::new(),
    };
    let globals = Globals::new(program);
    for function in program.functions() {
        code.routines.push(routine(&globals, function));
    }
    let mut compiler = Compiler::new(&globals);
    compiler.body(program.entry());
    compiler.insts.push(Inst::Return);
    code.insts = compiler.insts;
    code.registers = compiler.most;
    code.tags = compiler.tags;
    code.waits_for_grid = compiler.waits_for_grid;
    code.count();
    code
}

fn routine(globals: &Globals<'_>, function: &Function) -> Routine {
    let mut compiler = Compiler::new(globals);
    for (name, ty) in &function.params {
        compiler.open(name, *ty);
    }
    for (name, value) in &function.lets {
        compiler.let_bind(name, value);
    }
    let (result, _) = compiler.expr(&function.result, None);
    let params = function.params.len() as u32;
    Routine { insts: compiler.insts, params, registers: compiler.most, result }
}

/// The names that are visible everywhere.
struct Globals<'p> {
    buffers: HashMap<&'p str, (u32, Element)>,
    functions: HashMap<&'p str, (u32, Type)>,
    ballot: Type,
    subgroup_size: u32,
}

impl<'p> Globals<'p> {
    fn new(program: &'p Program) -> Globals<'p> {
        let buffers = program.buffers().iter().zip(0..).map(|(b, i)| (b.name().as_str(), (i, b.element())));
        let functions =
            program.functions().iter().zip(0..).map(|(f, i)| (f.name.as_str(), (i, f.result_type)));
        Globals {
            buffers: buffers.collect(),
            functions: functions.collect(),
            ballot: if program.subgroup_size() == 64 { Type::U64 } else { Type::U32 },
            subgroup_size: program.subgroup_size(),
        }
    }

    fn buffer(&self, name: &Name) -> (u32, Element) {
        self.buffers[name.as_str()]
    }
}

/// Jumps out of a loop that wait for their target.
#[derive(Default)]
struct Exits {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

struct Compiler<'p> {
    globals: &'p Globals<'p>,
    insts: Vec<Inst>,
    names: HashMap<&'p str, (Reg, Type)>,
    /// Registers in use, and the most that ever were.
    used: u32,
    most: u32,
    loops: Vec<Exits>,
    tags: Vec<Name>,
    waits_for_grid: bool,
    /// Where this statement's uniform load left its value: it happens before the rest.
    uniform: Option<(Reg, Type)>,
}

// Statements.
impl<'p> Compiler<'p> {
    fn new(globals: &'p Globals<'p>) -> Compiler<'p> {
        Compiler {
            globals,
            insts: Vec::new(),
            names: HashMap::new(),
            used: 0,
            most: 0,
            loops: Vec::new(),
            tags: Vec::new(),
            waits_for_grid: false,
            uniform: None,
        }
    }

    fn register(&mut self) -> Reg {
        let register = self.used;
        self.used += 1;
        self.most = self.most.max(self.used);
        register
    }

    fn open(&mut self, name: &'p Name, ty: Type) -> Reg {
        let register = self.register();
        self.names.insert(name, (register, ty));
        register
    }

    fn let_bind(&mut self, name: &'p Name, value: &'p Expr) {
        let register = self.register();
        let (_, ty) = self.expr(value, Some(register));
        self.names.insert(name, (register, ty));
        // What the expression needed in between is free again; the variable stays.
        self.used = register + 1;
    }

    fn here(&self) -> u32 {
        self.insts.len() as u32
    }

    fn patch(&mut self, at: usize, target: u32) {
        match &mut self.insts[at] {
            Inst::Jump { to } | Inst::JumpUnless { to, .. } | Inst::LoopTest { exit: to, .. } => *to = target,
            _ => unreachable!("only jumps wait for a target"),
        }
    }

    /// Compiles the statements of a scope; its variables are free afterwards. A name is visible once, so a
    /// later scope that uses it again simply opens it again.
    fn body(&mut self, body: &'p Body) {
        let used = self.used;
        for node in body {
            let before = self.used;
            self.statement(node);
            if !matches!(node, Node::Let { .. }) {
                self.used = before;
            }
        }
        self.used = used;
    }

    fn statement(&mut self, node: &'p Node) {
        match node {
            Node::If { .. } => return self.if_chain(node),
            Node::Let { name, value } => {
                // The register of a hoisted uniform load would lie below the variable's and be kept: harmless.
                self.hoist(node);
                self.let_bind(name, value);
            }
            Node::Assign { name, value } => {
                self.hoist(node);
                let (register, _) = self.names[name.as_str()];
                self.expr(value, Some(register));
            }
            Node::Store { buffer, index, value } => {
                self.hoist(node);
                let (index, _) = self.expr(index, None);
                let (value, _) = self.expr(value, None);
                let (buffer, _) = self.globals.buffer(buffer);
                self.insts.push(Inst::Store { buffer, index, value });
            }
            Node::Eval { expr } => {
                self.hoist(node);
                self.expr(expr, None);
            }
            Node::Loop { var, from, to, body } => {
                self.hoist(node);
                self.for_loop(var, [from, to], body);
            }
            Node::Break | Node::Continue => self.jump_out(matches!(node, Node::Break)),
            Node::Block { body } | Node::Region { body, .. } => self.body(body),
            Node::Barrier { ordering } => {
                let scope = match ordering {
                    MemoryOrdering::GridSync => Scope::Grid,
                    _ => Scope::Workgroup,
                };
                self.waits_for_grid |= scope == Scope::Grid;
                self.insts.push(Inst::Barrier { scope });
            }
            Node::Return => self.insts.push(Inst::Return),
            Node::Trap { tag, value } => {
                self.hoist(node);
                let (value, _) = self.expr(value, None);
                self.insts.push(Inst::Trap { tag: self.tags.len() as u32, value });
                self.tags.push(tag.clone());
            }
        }
        self.uniform = None;
    }

    /// Compiles the uniform load of a statement, if it has one, before everything else of it.
    fn hoist(&mut self, node: &'p Node) {
        let Some(Expr::UniformLoad { scope, buffer, index }) = node.uniform_load() else {
            self.uniform = None;
            return;
        };
        let (index, _) = self.expr(index, None);
        let (buffer, element) = self.globals.buffer(buffer);
        let dst = self.register();
        self.waits_for_grid |= *scope == Scope::Grid;
        self.insts.push(Inst::UniformLoad { scope: *scope, dst, buffer, index });
        self.uniform = Some((dst, element.value_type()));
    }

    fn if_chain(&mut self, first: &'p Node) {
        let mut ends = Vec::new();
        let mut link = Some(first);
        while let Some(node) = link {
            let Node::If { cond, then, otherwise } = node else { unreachable!("a chain of `if`s") };
            let used = self.used;
            self.hoist(node);
            let (cond, _) = self.expr(cond, None);
            self.uniform = None;
            let skip = self.insts.len();
            self.insts.push(Inst::JumpUnless { cond, to: 0 });
            self.used = used;
            self.body(then);
            link = otherwise.as_else_if();
            if !otherwise.is_empty() {
                ends.push(self.insts.len());
                self.insts.push(Inst::Jump { to: 0 });
            }
            self.patch(skip, self.here());
            if link.is_none() {
                self.body(otherwise);
            }
        }
        let end = self.here();
        ends.into_iter().for_each(|at| self.patch(at, end));
    }

    fn for_loop(&mut self, name: &'p Name, [from, to]: [&'p Expr; 2], body: &'p Body) {
        // The variable is not visible in its own bounds.
        let var = self.register();
        self.expr(from, Some(var));
        let end = self.register();
        self.expr(to, Some(end));
        self.uniform = None;
        self.used = end + 1;
        self.names.insert(name, (var, Type::U32));
        let head = self.here();
        self.insts.push(Inst::LoopTest { var, end, exit: 0 });
        self.loops.push(Exits::default());
        self.body(body);
        let exits = self.loops.pop().unwrap_or_default();
        let next = self.here();
        self.insts.push(Inst::LoopNext { var, head });
        let exit = self.here();
        self.patch(head as usize, exit);
        exits.breaks.into_iter().for_each(|at| self.patch(at, exit));
        exits.continues.into_iter().for_each(|at| self.patch(at, next));
    }

    fn jump_out(&mut self, leaves: bool) {
        let at = self.insts.len();
        if let Some(exits) = self.loops.last_mut() {
            if leaves { exits.breaks.push(at) } else { exits.continues.push(at) }
        }
        self.insts.push(Inst::Jump { to: 0 });
    }
}

// Expressions.
impl<'p> Compiler<'p> {
    /// Compiles an expression into `want`, or into whatever register is convenient; gives register and type.
    fn expr(&mut self, expr: &'p Expr, want: Option<Reg>) -> (Reg, Type) {
        match expr {
            Expr::Var(name) => {
                let found = self.names[name.as_str()];
                return self.copied(found, want);
            }
            Expr::UniformLoad { .. } => {
                let found = self.uniform.unwrap_or((0, Type::U32));
                return self.copied(found, want);
            }
            _ => {}
        }
        // The destination is taken first, so that what the operands need lies above it and is free afterwards.
        let dst = match want {
            Some(register) => register,
            None => self.register(),
        };
        let used = self.used;
        let ty = self.expr_into(expr, dst);
        self.used = used;
        (dst, ty)
    }

    fn copied(&mut self, (src, ty): (Reg, Type), want: Option<Reg>) -> (Reg, Type) {
        match want {
            Some(dst) if dst != src => {
                self.insts.push(Inst::Copy { dst, src });
                (dst, ty)
            }
            _ => (src, ty),
        }
    }

    fn expr_into(&mut self, expr: &'p Expr, dst: Reg) -> Type {
        let literal = |this: &mut Self, literal: Literal| {
            this.insts.push(Inst::Const { dst, bits: literal.bits() });
            literal.ty()
        };
        let id = |this: &mut Self, id: Id, axis| {
            this.insts.push(Inst::Id { dst, id, axis });
            Type::U32
        };
        match expr {
            Expr::Literal(value) => literal(self, *value),
            Expr::SubgroupSize => literal(self, Literal::U32(self.globals.subgroup_size)),
            Expr::InvocationId { axis } => id(self, Id::Invocation, *axis),
            Expr::WorkgroupId { axis } => id(self, Id::Workgroup, *axis),
            Expr::LocalId { axis } => id(self, Id::Local, *axis),
            Expr::NumWorkgroups { axis } => id(self, Id::NumWorkgroups, *axis),
            Expr::SubgroupLocalId => {
                self.insts.push(Inst::SubgroupLane { dst });
                Type::U32
            }
            Expr::BufLen { buffer } => {
                let (buffer, _) = self.globals.buffer(buffer);
                self.insts.push(Inst::Len { dst, buffer });
                Type::U32
            }
            Expr::Var(_) | Expr::UniformLoad { .. } => unreachable!("these have registers"),
            _ => self.operation(expr, dst),
        }
    }

    fn operation(&mut self, expr: &'p Expr, dst: Reg) -> Type {
        match expr {
            Expr::BinOp { op, left, right } => {
                let (a, ty) = self.expr(left, None);
                let (b, _) = self.expr(right, None);
                self.insts.push(Inst::Binary { op: *op, ty, dst, a, b });
                op.result(ty).unwrap_or(ty)
            }
            Expr::UnOp { op, operand } => {
                let (a, ty) = self.expr(operand, None);
                self.insts.push(Inst::Unary { op: *op, ty, dst, a });
                op.result(ty).unwrap_or(ty)
            }
            Expr::Select { cond, if_true, if_false } => {
                let (cond, _) = self.expr(cond, None);
                let (a, ty) = self.expr(if_true, None);
                let (b, _) = self.expr(if_false, None);
                self.insts.push(Inst::Select { dst, cond, a, b });
                ty
            }
            Expr::Cast { to, value } => {
                let (a, from) = self.expr(value, None);
                self.insts.push(Inst::Cast { from, to: *to, dst, a });
                *to
            }
            Expr::Bitcast { to, value } => {
                let (a, from) = self.expr(value, None);
                self.insts.push(Inst::Bitcast { from, dst, a });
                *to
            }
            Expr::Fma { a, b, c } => {
                let [(a, _), (b, _), (c, _)] = [a, b, c].map(|operand| self.expr(operand, None));
                self.insts.push(Inst::Fma { dst, a, b, c });
                Type::F32
            }
            Expr::Call { function, args } => {
                let first = self.used;
                args.iter().for_each(|_| {
                    self.register();
                });
                for (arg, register) in args.iter().zip(first..) {
                    self.expr(arg, Some(register));
                }
                let (function, ty) = self.globals.functions[function.as_str()];
                self.insts.push(Inst::Call { function, dst, args: first });
                ty
            }
            _ => self.effect(expr, dst),
        }
    }

    /// Memory and subgroup operations.
    fn effect(&mut self, expr: &'p Expr, dst: Reg) -> Type {
        match expr {
            Expr::Load { buffer, index } => {
                let (index, _) = self.expr(index, None);
                let (buffer, element) = self.globals.buffer(buffer);
                self.insts.push(Inst::Load { dst, buffer, index });
                element.value_type()
            }
            Expr::Atomic { op, buffer, index, expected, value, .. } => {
                let (index, _) = self.expr(index, None);
                let expected = expected.as_ref().map_or(index, |e| self.expr(e, None).0);
                let value = value.as_ref().map_or(index, |e| self.expr(e, None).0);
                let (buffer, element) = self.globals.buffer(buffer);
                self.insts.push(Inst::Atomic { op: *op, dst, buffer, index, expected, value });
                element.value_type()
            }
            Expr::SubgroupBallot { cond } => {
                let (cond, _) = self.expr(cond, None);
                self.insts.push(Inst::Ballot { dst, cond });
                self.globals.ballot
            }
            Expr::SubgroupShuffle { value, lane } => {
                let (value, ty) = self.expr(value, None);
                let (lane, _) = self.expr(lane, None);
                self.insts.push(Inst::Shuffle { dst, value, lane });
                ty
            }
            Expr::SubgroupReduce { op, value } => {
                let (value, ty) = self.expr(value, None);
                self.insts.push(Inst::Reduce { op: *op, ty, dst, value });
                ty
            }
            _ => unreachable!("every other expression is handled above"),
        }
    }
}
