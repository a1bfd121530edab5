//! Statements: scopes, assignments, and the control flow that uniformity follows.

use super::uniformity::{At, Branch, Level, OpenLoop, Uniform, assigned};
use super::{Binding, Checker, Origin, Value};
use crate::diagnostic::{Cause, Diagnostic, Note, Problem, Role};
use crate::ops::{MemoryOrdering, Scope};
use crate::validate::path::Step;
use crate::{Body, BufferAccess, Event, Expr, Literal, Name, Node, Type, Walk};

impl<'p> Checker<'p> {
    pub(super) fn entry(&mut self) {
        self.body("entry", self.program.entry());
        self.unused_mut();
    }

    /// The first statement that some invocations may not reach because they have ended: what follows the first
    /// `return` or `trap`, from the outermost loop around it on.
    pub(super) fn first_end(body: &Body) -> usize {
        let (mut met, mut loops, mut outermost) = (0, 0, 0);
        for event in Walk::new(body) {
            match event {
                Event::Node(node) => {
                    if loops == 0 {
                        outermost = met;
                    }
                    match node {
                        Node::Loop { .. } => loops += 1,
                        Node::Return | Node::Trap { .. } => return outermost,
                        _ => {}
                    }
                    met += 1;
                }
                Event::End(Node::Loop { .. }) => loops -= 1,
                _ => {}
            }
        }
        usize::MAX
    }

    fn unused_mut(&mut self) {
        let Some(source) = self.program.source() else { return };
        for i in self.function_variables..self.variables.len() {
            let Origin::Let(node) = self.variables[i].origin else { continue };
            if source.nodes[node].mutable && !self.assignments.is_assigned(node) {
                let place = self.declared_at(Binding::Variable(i));
                self.report(Problem::UnusedMut(self.variables[i].name.clone()), place);
            }
        }
    }

    /// The control under which the statement being checked runs.
    pub(super) fn control(&mut self) -> Uniform {
        match self.flows.loops.last() {
            Some(open) => self.graph.join(self.flows.control, open.rest),
            None => self.flows.control,
        }
    }

    fn body(&mut self, name: &'static str, body: &'p Body) {
        self.path.push(Step::Statement(name, 0));
        self.scope(|checker| {
            for (i, node) in body.iter().enumerate() {
                checker.path.replace(Step::Statement(name, i));
                checker.statement(node);
            }
        });
        self.path.pop();
    }

    fn statement(&mut self, node: &'p Node) {
        let number = self.node;
        self.node += 1;
        self.effect = None;
        match node {
            Node::Let { name, value } => self.let_statement(number, name, value),
            Node::Assign { name, value } => self.assign(number, name, value),
            Node::Store { buffer, index, value } => self.store(number, buffer, index, value),
            Node::Eval { expr } => self.effect_expr(expr),
            Node::If { .. } => self.if_chain(number, node),
            Node::Loop { var, from, to, body } => self.for_loop(number, var, [from, to], body),
            Node::Break => self.jump(number, "break"),
            Node::Continue => self.jump(number, "continue"),
            Node::Block { body } | Node::Region { body, .. } => self.body("body", body),
            Node::Barrier { ordering } => self.barrier(number, *ordering),
            Node::Return => self.flows.dead = true,
            Node::Trap { value, .. } => {
                self.typed_expr("value", value, Some((Type::U32, Role::TrapValue)));
                self.flows.dead = true;
            }
        }
    }

    fn let_statement(&mut self, number: usize, name: &'p Name, value: &'p Expr) {
        let value = self.typed_expr("value", value, None);
        let at = At::Name { node: number as u32 };
        let uniform = self.graph.because(value.uniform, at, assigned(name));
        self.open_variable(name, Origin::Let(number), Value { uniform, ..value });
    }

    fn assign(&mut self, number: usize, name: &'p Name, value: &'p Expr) {
        let target = match self.lookup(name) {
            Some(Binding::Variable(id)) => Some(id),
            _ => None,
        };
        let role = target.and_then(|id| self.variables[id].ty).map(|ty| (ty, Role::Assigned(name.clone())));
        let value = self.typed_expr("value", value, role);
        let Some(id) = target else {
            let (is, nearest) = self.suggestion(name, |b| matches!(b, Binding::Variable(_)));
            let place = self.name_place(number);
            return self.report(Problem::UnknownVariable { name: name.clone(), nearest, is }, place);
        };
        match self.variables[id].origin {
            Origin::Let(node) if self.program.source().is_some_and(|s| !s.nodes[node].mutable) => {
                let declared = self.declared_at(Binding::Variable(id));
                let note = Note { place: declared, cause: Cause::NotMutable(name.clone()) };
                let (problem, place) = (Problem::AssignedImmutable(name.clone()), self.name_place(number));
                self.found.push(Diagnostic { problem, place, notes: vec![note] });
            }
            Origin::Let(_) => {}
            _ => {
                let place = self.name_place(number);
                return self.report(Problem::AssignedLoopVariable(name.clone()), place);
            }
        }
        let at = At::Name { node: number as u32 };
        let value = self.graph.because(value.uniform, at, assigned(name));
        let control = self.control();
        let control = self.graph.because(control, at, Cause::AssignedUnderControl(name.clone()));
        let uniform = self.graph.join(value, control);
        self.set(id, uniform);
    }

    /// Gives a variable a new value in the walk, and remembers the old one.
    fn set(&mut self, variable: usize, uniform: Uniform) {
        let old = std::mem::replace(&mut self.variables[variable].uniform, uniform);
        self.flows.log.push((variable, old));
    }

    /// Gives up following a variable where the graph has grown too large; gives whether it has.
    fn lose(&mut self, variable: usize) -> bool {
        let Some(lost) = self.graph.lost() else { return false };
        if self.variables[variable].uniform != lost {
            self.set(variable, lost);
        }
        true
    }

    fn store(&mut self, number: usize, buffer: &'p Name, index: &'p Expr, value: &'p Expr) {
        let constant = match index {
            Expr::Literal(Literal::U32(index)) => Some(*index),
            _ => None,
        };
        let index = self.typed_expr("index", index, Some((Type::U32, Role::Index)));
        let decl = self.buffer(buffer, |checker| checker.name_place(number));
        let shared = decl.is_some_and(|decl| decl.access() != BufferAccess::Local);
        let inside = match (constant, decl.and_then(|decl| decl.count())) {
            (Some(index), Some(count)) => index < count,
            _ => true,
        };
        let certain = inside && !self.flows.dead && self.flows.doubtful == 0 && number < self.first_end;
        if shared && certain && self.program.workgroup_size().invocations() > 1 {
            let control = self.control();
            let problem = Problem::StoreRace(buffer.clone());
            let place = self.name_place(number);
            self.graph.shared_store([control, index.uniform], problem, place);
        }
        let ty = decl.map(|decl| (decl.element().value_type(), Role::Stored(buffer.clone())));
        self.typed_expr("value", value, ty);
        if let Some(access) = decl.map(|decl| decl.access()).filter(|access| !access.allows_store()) {
            let place = self.name_place(number);
            self.report(Problem::NotStorable { buffer: buffer.clone(), access }, place);
        }
    }

    fn barrier(&mut self, number: usize, ordering: MemoryOrdering) {
        let place = self.statement_place(number);
        let (scope, at_most) = match ordering {
            MemoryOrdering::GridSync => (Scope::Grid, Level::Grid),
            MemoryOrdering::SeqCst => (Scope::Workgroup, Level::Workgroup),
            other => return self.report(Problem::BarrierOrdering(other), place),
        };
        let control = self.control();
        self.graph.demand(control, at_most, Problem::DivergentBarrier(scope), place);
    }

    /// `break` and `continue`: the values they carry out, and the control they leave behind.
    fn jump(&mut self, number: usize, word: &'static str) {
        if self.flows.loops.is_empty() {
            let place = self.statement_place(number);
            return self.report(Problem::OutsideLoop(word), place);
        }
        if self.flows.dead {
            return;
        }
        self.flows.dead = true;
        let at = At::Statement { node: number as u32 };
        let control = self.control();
        let leaves = word == "break";
        let cause = if leaves { Cause::Break } else { Cause::Continue };
        let control = self.graph.because(control, at, cause);
        let innermost = self.flows.loops.len() - 1;
        self.carry(innermost, leaves);
        let open = &mut self.flows.loops[innermost];
        if leaves {
            self.graph.edge(control, open.control);
        } else {
            open.rest = self.graph.join(open.rest, control);
        }
    }

    /// The values that reach the head of a loop, or its exit, from here.
    fn carry(&mut self, innermost: usize, leaves: bool) {
        if self.flows.loops[innermost].lost {
            return;
        }
        if let Some(lost) = self.graph.lost() {
            // Give up precision rather than time: see `Graph::lost`.
            let open = &mut self.flows.loops[innermost];
            open.lost = true;
            for (_, head, _) in &open.carried {
                self.graph.edge(lost, *head);
            }
            return;
        }
        for (variable, head, exit) in &self.flows.loops[innermost].carried {
            let now = self.variables[*variable].uniform;
            if now != *head {
                self.graph.edge(now, if leaves { *exit } else { *head });
            }
        }
    }

    fn if_chain(&mut self, number: usize, first: &'p Node) {
        let outer = self.flows.control;
        let was_dead = self.flows.dead;
        let rest = self.rest();
        let mut branches = Vec::new();
        let mut link = first;
        let mut number = number;
        let mut links = 0;
        let mut doubtful = false;
        loop {
            let Node::If { cond, then, otherwise } = link else { unreachable!("a chain of `if`s") };
            let value = self.typed_expr("cond", cond, Some((Type::Bool, Role::Condition)));
            let at = At::Expr { node: number as u32, expr: (self.expr - 1) as u32 };
            let taken = self.graph.because(value.uniform, at, Cause::Branch);
            let control = self.control();
            self.flows.control = self.graph.join(control, taken);
            self.graph.control_of(number, self.flows.control);
            // A constant condition says that one of the branches may never run.
            doubtful |= matches!(cond, Expr::Literal(_));
            self.flows.doubtful += u32::from(doubtful);
            branches.push(self.branch("then", then, was_dead));
            self.flows.doubtful -= u32::from(doubtful);
            self.set_rest(rest);
            match otherwise.as_else_if() {
                Some(next) => {
                    links += 1;
                    if links == 1 {
                        self.path.push(Step::ElseIf(links));
                    } else {
                        self.path.replace(Step::ElseIf(links));
                    }
                    link = next;
                    number = self.node;
                    self.node += 1;
                    self.effect = None;
                }
                None => {
                    self.flows.doubtful += u32::from(doubtful);
                    branches.push(self.branch("else", otherwise, was_dead));
                    self.flows.doubtful -= u32::from(doubtful);
                    break;
                }
            }
        }
        if links > 0 {
            self.path.pop();
        }
        self.flows.control = outer;
        let mut after = rest;
        for branch in &branches {
            after = self.graph.join(after, branch.rest);
        }
        self.set_rest(after);
        self.merge(branches);
        self.flows.dead |= was_dead;
    }

    /// What `continue`s have left for the rest of the innermost loop's body.
    fn rest(&self) -> Uniform {
        self.flows.loops.last().map_or(Uniform::GRID, |open| open.rest)
    }

    fn set_rest(&mut self, rest: Uniform) {
        if let Some(open) = self.flows.loops.last_mut() {
            open.rest = rest;
        }
    }

    /// Checks a branch and takes back what it did to the variables.
    fn branch(&mut self, name: &'static str, body: &'p Body, was_dead: bool) -> Branch {
        let mark = self.flows.log.len();
        self.flows.dead = was_dead;
        self.body(name, body);
        let falls = !std::mem::replace(&mut self.flows.dead, false);
        let mut left = Vec::new();
        // Going back through the log, the first entry of a variable holds what the branch leaves in it.
        while self.flows.log.len() > mark {
            if let Some((variable, old)) = self.flows.log.pop() {
                let now = std::mem::replace(&mut self.variables[variable].uniform, old);
                left.push((variable, now));
            }
        }
        // Stable order, so of the entries of one variable the last assignment comes first and is kept.
        left.sort_by_key(|(variable, _)| *variable);
        left.dedup_by_key(|(variable, _)| *variable);
        Branch { falls, left, rest: self.rest() }
    }

    /// The values after branches: what every branch that goes on leaves in a variable, or left alone.
    fn merge(&mut self, branches: Vec<Branch>) {
        let falling: Vec<_> = branches.into_iter().filter(|branch| branch.falls).collect();
        self.flows.dead = falling.is_empty();
        let count = falling.len();
        let mut left: Vec<_> = falling.into_iter().flat_map(|branch| branch.left).collect();
        left.sort_by_key(|(variable, _)| *variable);
        for entries in left.chunk_by(|a, b| a.0 == b.0) {
            let variable = entries[0].0;
            if self.lose(variable) {
                continue;
            }
            let mut uniform = entries[0].1;
            for (_, other) in &entries[1..] {
                uniform = self.graph.join(uniform, *other);
            }
            if entries.len() < count {
                uniform = self.graph.join(uniform, self.variables[variable].uniform);
            }
            self.set(variable, uniform);
        }
    }

    fn for_loop(&mut self, number: usize, var: &'p Name, [from, to]: [&'p Expr; 2], body: &'p Body) {
        let first = self.typed_expr("from", from, Some((Type::U32, Role::LoopBound)));
        let last = self.typed_expr("to", to, Some((Type::U32, Role::LoopBound)));
        let at = At::Statement { node: number as u32 };
        let bounds = self.graph.join(first.uniform, last.uniform);
        let bounds = self.graph.because(bounds, at, Cause::LoopBounds);
        let outer = self.control();
        let control = self.graph.node(None);
        self.graph.edge(outer, control);
        self.graph.edge(bounds, control);
        self.graph.control_of(number, control);
        let assigned = self.assigned_in(number);
        let mut carried = Vec::new();
        for variable in assigned {
            if self.lose(variable) {
                continue;
            }
            let (head, exit) = (self.graph.node(None), self.graph.node(None));
            self.graph.edge(self.variables[variable].uniform, head);
            self.graph.edge(head, exit);
            self.set(variable, head);
            carried.push((variable, head, exit));
        }
        let was_dead = self.flows.dead;
        let before = std::mem::replace(&mut self.flows.control, control);
        self.flows.loops.push(OpenLoop { control, rest: Uniform::GRID, carried, lost: false });
        let value = Value { ty: Some(Type::U32), uniform: bounds };
        // A loop over nothing, too, is doubtful.
        let doubtful = match (from, to) {
            (Expr::Literal(Literal::U32(from)), Expr::Literal(Literal::U32(to))) => from >= to,
            _ => false,
        };
        self.flows.doubtful += u32::from(doubtful);
        self.scope(|checker| {
            checker.open_variable(var, Origin::Loop(number), value);
            checker.body("body", body);
        });
        self.flows.doubtful -= u32::from(doubtful);
        if !self.flows.dead {
            let innermost = self.flows.loops.len() - 1;
            self.carry(innermost, false);
        }
        if let Some(open) = self.flows.loops.pop() {
            for (variable, _, exit) in open.carried {
                self.set(variable, exit);
            }
        }
        self.flows.control = before;
        self.flows.dead = was_dead;
    }

    /// The variables, by their number in the walk, that are assigned in a loop, each once.
    fn assigned_in(&mut self, number: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for node in self.assignments.in_loop(number) {
            let variable = self.variable_of_let[node] as usize;
            // The mark of this loop: nobody else leaves it.
            if std::mem::replace(&mut self.variables[variable].seen_in, number) != number {
                found.push(variable);
            }
        }
        found
    }
}
