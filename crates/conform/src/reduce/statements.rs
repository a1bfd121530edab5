//! Smaller bodies: statements removed, compound statements replaced by what they hold, variables erased.

use super::edit::{holds_uniform_load, replace_statements, statements, without_jumps, without_variable};
use super::{Reducer, is_compound};
use crate::typing::{self, Visitor, zero};
use vyre_foundation::{Body, Expr, Node, Program, Type};

impl Reducer<'_> {
    /// Removes runs of statements, long runs first, later ones first: uses go before what they use.
    pub(super) fn remove_statements(&mut self) {
        let mut run = statements(self.best.program.entry()).div_ceil(2);
        while run > 0 {
            let mut end = statements(self.best.program.entry());
            while end > 0 {
                let start = end.saturating_sub(run);
                let ordered = self.ordered;
                let variant = replace_statements(&self.best.program, &mut |n, node| {
                    let gone = (start..end).contains(&n) && (ordered || waits(node) == 0);
                    gone.then(Vec::new)
                });
                self.attempt_program(variant);
                end = start;
            }
            run /= 2;
        }
    }

    /// Puts the bodies of compound statements in their place.
    pub(super) fn unwrap_statements(&mut self) {
        let mut number = 0;
        while number < statements(self.best.program.entry()) {
            let mut unwrapped = false;
            for choice in 0..4 {
                let mut applies = false;
                let ordered = self.ordered;
                let variant = replace_statements(&self.best.program, &mut |n, node| {
                    let nodes = (n == number).then(|| unwrap(node, choice)).flatten()?;
                    if !ordered && nodes.iter().map(waits).sum::<usize>() != waits(node) {
                        return None;
                    }
                    applies = true;
                    Some(nodes)
                });
                if applies && self.attempt_program(variant) {
                    unwrapped = true;
                    break;
                }
            }
            // What has been unwrapped stands at the same number now and may be compound itself.
            number += usize::from(!unwrapped);
        }
    }

    /// Replaces variables by zero, or by their first value where nothing changes it.
    pub(super) fn erase_variables(&mut self) {
        let mut number = statements(self.best.program.entry());
        while number > 0 {
            number -= 1;
            let types = let_types(&self.best.program);
            let Some(Some(ty)) = types.get(number) else { continue };
            for value in [Some(zero(*ty)), None] {
                let entry = erase(self.best.program.entry(), &mut 0, number, &value);
                let variant = self.best.program.clone().with_rewritten_entry(entry);
                if self.attempt_program(variant) {
                    break;
                }
            }
        }
    }
}

/// How many barriers and uniform loads, which order memory, the statement and those in it hold.
fn waits(node: &Node) -> usize {
    let mut found = usize::from(matches!(node, Node::Barrier { .. }));
    node.for_each_expr(&mut |expr| found += usize::from(holds_uniform_load(expr)));
    found + node.bodies().flat_map(|body| body.iter()).map(waits).sum::<usize>()
}

/// What a compound statement can be replaced by.
fn unwrap(node: &Node, choice: usize) -> Option<Vec<Node>> {
    match (node, choice) {
        (Node::If { then, .. }, 0) => Some(then.to_vec()),
        (Node::If { otherwise, .. }, 1) => Some(otherwise.to_vec()),
        (Node::If { cond, then, otherwise }, 2) if !otherwise.is_empty() => {
            Some(vec![Node::If { cond: cond.clone(), then: then.clone(), otherwise: Body::EMPTY }])
        }
        (Node::Loop { var, from, body, .. }, 0) => {
            let mut nodes = vec![Node::let_bind(var, from.clone())];
            nodes.extend(without_jumps(body));
            Some(nodes)
        }
        (Node::Loop { body, .. }, 1) => Some(without_jumps(body)),
        (Node::Block { body } | Node::Region { body, .. }, 0) => Some(body.to_vec()),
        (Node::Region { body, .. }, 1) => Some(vec![Node::Block { body: body.clone() }]),
        // Where names collide, a scope of its own keeps them apart.
        (_, 3) if is_compound(node) && !matches!(node, Node::Block { .. }) => {
            let body: Vec<Node> = node.bodies().flat_map(|body| without_jumps(body)).collect();
            Some(vec![Node::block(body)])
        }
        _ => None,
    }
}

/// The body without the variable that statement `number` opens. `None` stands for its first value.
fn erase(body: &Body, next: &mut usize, number: usize, value: &Option<Expr>) -> Body {
    let mut out = Vec::new();
    for (i, node) in body.iter().enumerate() {
        let current = *next;
        *next += 1;
        if let (Node::Let { name, value: first }, true) = (node, current == number) {
            let value = value.clone().unwrap_or_else(|| first.clone());
            out.extend(without_variable(&body[i + 1..], name, &value));
            return out.into();
        }
        out.push(super::edit::with_bodies(node, &mut |body| erase(body, next, number, value)));
    }
    out.into()
}

/// For each statement the type of the variable that it opens, if it is a `let`.
fn let_types(program: &Program) -> Vec<Option<Type>> {
    struct Lets {
        last: Option<Type>,
        types: Vec<Option<Type>>,
    }
    impl Visitor for Lets {
        fn expr(&mut self, _expr: &Expr, _operands: &[Type], ty: Option<Type>) {
            self.last = ty;
        }
        fn node(&mut self, node: &Node) {
            self.types.push(if matches!(node, Node::Let { .. }) { self.last } else { None });
        }
    }
    let mut lets = Lets { last: None, types: Vec::new() };
    typing::walk(program, &mut lets);
    lets.types
}
