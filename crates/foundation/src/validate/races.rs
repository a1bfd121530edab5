//! Races between two accesses that can be proved by looking at straight code: warnings, never errors. (Stores
//! of a whole workgroup to one element are found by [uniformity](super::uniformity).)
//!
//! Only certain races are reported. Two accesses count where both are made by all invocations of a workgroup
//! (uniform control, nobody has returned), with no barrier between, in one body or in the expressions of its
//! statements, and where the workgroup has more than one invocation.

use crate::diagnostic::{Cause, Diagnostic, Note, Place, Problem};
use crate::ops::{AtomicOp, Axis};
use crate::validate::Assignments;
use crate::{BinOp, BufferAccess, Expr, Literal, Name, Node, Program};
use rustc_hash::FxHashMap;

/// The provable races of a valid program, in source order.
pub(super) fn find(program: &Program) -> Vec<Diagnostic> {
    let size = program.workgroup_size();
    if size.invocations() < 2 {
        return Vec::new();
    }
    let width = (size.size()[1] == 1 && size.size()[2] == 1).then_some(size.size()[0]);
    let mut finder = Finder {
        program,
        width,
        window: Vec::new(),
        found: Vec::new(),
        names: FxHashMap::default(),
        assignments: Assignments::of(program.entry()),
        node: 0,
        expr: 0,
    };
    finder.expr += program.functions().iter().flat_map(|f| f.exprs()).map(count).sum::<usize>();
    finder.entry();
    finder.found
}

fn count(expr: &Expr) -> usize {
    let mut total = 1;
    expr.for_each_operand(&mut |operand| total += count(operand));
    total
}

/// Which element an access names, as far as it is known.
#[derive(Clone, Copy, PartialEq)]
enum Index {
    /// The same constant for all.
    Constant(u32),
    /// The x id of the invocation, local or global, plus a constant.
    Own(Id, u32),
    Other,
}

#[derive(Clone, Copy, PartialEq)]
enum Id {
    Local,
    Global,
}

#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Load,
    Store,
    AtomicLoad,
    /// An atomic that may write.
    Atomic,
}

impl Sort {
    fn is_atomic(self) -> bool {
        matches!(self, Sort::AtomicLoad | Sort::Atomic)
    }

    fn writes(self) -> bool {
        matches!(self, Sort::Store | Sort::Atomic)
    }
}

struct Access<'p> {
    buffer: &'p Name,
    index: Index,
    sort: Sort,
    place: Place,
}

struct Finder<'p> {
    program: &'p Program,
    /// How many invocations a workgroup has, if they all lie on the x axis.
    width: Option<u32>,
    /// The accesses since the last barrier that every invocation makes.
    window: Vec<Access<'p>>,
    found: Vec<Diagnostic>,
    /// What the variables that are never assigned hold.
    names: FxHashMap<&'p Name, Index>,
    assignments: Assignments,
    node: usize,
    expr: usize,
}

/// Accesses to compare with; more in one stretch of straight code would be compared for minutes.
const WINDOW: usize = 256;

impl<'p> Finder<'p> {
    /// The straight code of the entry body, up to the first statement that may end an invocation.
    fn entry(&mut self) {
        for (i, node) in self.program.entry().iter().enumerate() {
            let path = format!("entry[{i}]");
            match node {
                Node::Barrier { .. } => self.window.clear(),
                Node::Return | Node::Trap { .. } => return,
                Node::If { .. } | Node::Loop { .. } | Node::Block { .. } | Node::Region { .. } => {
                    // What happens inside is not followed: it may wait, return or touch anything.
                    self.window.clear();
                    if node_may_end(node) {
                        return;
                    }
                    self.skip(node);
                    continue;
                }
                _ => {}
            }
            let number = self.node;
            self.node += 1;
            // A uniform load is a barrier before everything else of its statement.
            if node.uniform_load().is_some() {
                self.window.clear();
            }
            node.for_each_expr(&mut |expr| self.expression(expr, &path));
            if let Node::Let { name, value } = node
                && !self.assignments.is_assigned(number)
            {
                self.names.insert(name, self.classify(value));
            }
            if let Node::Store { buffer, index, .. } = node {
                let span = self.program.source().map(|s| s.nodes[number].name);
                let place = Place { span, path };
                self.access(buffer, index, Sort::Store, place);
            }
        }
    }

    /// Counts what stands in a statement that is not followed.
    fn skip(&mut self, node: &Node) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            self.node += 1;
            node.for_each_expr(&mut |expr| self.expr += count(expr));
            pending.extend(node.bodies().flat_map(|body| body.iter()));
        }
    }

    fn expression(&mut self, expr: &'p Expr, path: &str) {
        expr.for_each_operand(&mut |operand| self.expression(operand, path));
        let span = self.program.source().map(|s| s.exprs[self.expr]);
        self.expr += 1;
        let place = Place { span, path: path.to_owned() };
        match expr {
            Expr::Load { buffer, index } => self.access(buffer, index, Sort::Load, place),
            Expr::Atomic { op: AtomicOp::Load, buffer, index, .. } => {
                self.access(buffer, index, Sort::AtomicLoad, place);
            }
            Expr::Atomic { buffer, index, .. } => self.access(buffer, index, Sort::Atomic, place),
            _ => {}
        }
    }

    fn access(&mut self, buffer: &'p Name, index: &'p Expr, sort: Sort, place: Place) {
        let Some(decl) = self.program.buffer(buffer) else { return };
        let private =
            matches!(decl.access(), BufferAccess::Local | BufferAccess::ReadOnly | BufferAccess::Uniform);
        if private {
            return;
        }
        let index = self.classify(index);
        // An index past the end touches nothing.
        let least = match index {
            Index::Constant(least) => least,
            // A small step back is a large step forward that wraps.
            Index::Own(_, offset) if offset < 1 << 31 => offset,
            Index::Own(..) | Index::Other => 0,
        };
        if decl.count().is_some_and(|count| least >= count) {
            return;
        }
        let access = Access { buffer, index, sort, place };
        let width = self.width.unwrap_or(0);
        let earlier = self.window.iter().find_map(|other| Some((other, conflict(other, &access, width)?)));
        if let Some((other, problem)) = earlier {
            let note = Note { place: other.place.clone(), cause: Cause::OtherAccess };
            let place = access.place.clone();
            self.found.push(Diagnostic { problem, place, notes: vec![note] });
        }
        if self.window.len() < WINDOW && access.index != Index::Other {
            self.window.push(access);
        }
    }

    fn classify(&self, expr: &Expr) -> Index {
        match expr {
            Expr::Literal(Literal::U32(value)) => Index::Constant(*value),
            Expr::Var(name) => self.names.get(name).copied().unwrap_or(Index::Other),
            // Another axis of the workgroup would give several invocations the same x.
            Expr::LocalId { axis: Axis::X } if self.width.is_some() => Index::Own(Id::Local, 0),
            Expr::InvocationId { axis: Axis::X } if self.width.is_some() => Index::Own(Id::Global, 0),
            Expr::BinOp { op, left, right } => match (op, self.classify(left), self.classify(right)) {
                (BinOp::Add, Index::Own(id, a), Index::Constant(b))
                | (BinOp::Add, Index::Constant(a), Index::Own(id, b)) => Index::Own(id, a.wrapping_add(b)),
                (BinOp::Sub, Index::Own(id, a), Index::Constant(b)) => Index::Own(id, a.wrapping_sub(b)),
                _ => Index::Other,
            },
            _ => Index::Other,
        }
    }
}

/// The race between two accesses of all `width` invocations of a workgroup, if it is certain.
fn conflict(a: &Access<'_>, b: &Access<'_>, width: u32) -> Option<Problem> {
    if a.buffer != b.buffer {
        return None;
    }
    let name = a.buffer.clone();
    match (a.index, b.index) {
        (Index::Constant(i), Index::Constant(k)) if i == k => {
            // Two plain accesses, one a store: the store has been reported by itself.
            let mixed = a.sort.is_atomic() != b.sort.is_atomic();
            (mixed && (a.sort.writes() || b.sort.writes())).then_some(Problem::MixedRace(name))
        }
        (Index::Own(x, i), Index::Own(y, k)) if x == y && i != k => {
            // Two invocations so far apart stand in one workgroup if it is wider than that.
            let near = i.wrapping_sub(k).min(k.wrapping_sub(i)) < width;
            let one_stores = a.sort == Sort::Store || b.sort == Sort::Store;
            let plain = !a.sort.is_atomic() && !b.sort.is_atomic();
            (near && one_stores && plain).then_some(Problem::NeighbourRace(name))
        }
        _ => None,
    }
}

/// Whether a statement may end some invocations, so that not all go on to the next one.
fn node_may_end(node: &Node) -> bool {
    let mut pending = vec![node];
    while let Some(node) = pending.pop() {
        if matches!(node, Node::Return | Node::Trap { .. }) {
            return true;
        }
        pending.extend(node.bodies().flat_map(|body| body.iter()));
    }
    false
}
