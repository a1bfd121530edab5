//! Which variables are assigned, and in which loops: one walk that resolves names by scope.

use crate::{Body, Event, Name, Node, Walk};
use rustc_hash::{FxHashMap, FxHashSet};

/// Statements are numbered in the order in which they begin.
#[derive(Default)]
pub(crate) struct Assignments {
    /// The `let`s that are assigned somewhere.
    assigned: FxHashSet<usize>,
    /// For each loop the `let`s outside it that are assigned inside it, in order.
    loops: FxHashMap<usize, Vec<usize>>,
}

impl Assignments {
    pub(crate) fn of(body: &Body) -> Assignments {
        let mut walk = Resolver::default();
        walk.scopes.push(Vec::new());
        for event in Walk::new(body) {
            walk.event(event);
        }
        walk.result
    }

    /// Whether the `let` with this number is assigned somewhere.
    pub(crate) fn is_assigned(&self, node: usize) -> bool {
        self.assigned.contains(&node)
    }

    /// The `let`s outside the loop with this number that are assigned inside it.
    pub(crate) fn in_loop(&self, node: usize) -> &[usize] {
        self.loops.get(&node).map_or(&[], Vec::as_slice)
    }
}

#[derive(Default)]
struct Resolver<'p> {
    result: Assignments,
    visible: FxHashMap<&'p Name, Vec<usize>>,
    scopes: Vec<Vec<&'p Name>>,
    /// The open loops: their numbers and what is assigned in each so far.
    open: Vec<(usize, Vec<usize>)>,
    next: usize,
}

impl<'p> Resolver<'p> {
    fn event(&mut self, event: Event<'p>) {
        match event {
            Event::Node(node) => {
                let number = self.next;
                self.next += 1;
                match node {
                    Node::Let { name, .. } => {
                        self.visible.entry(name).or_default().push(number);
                        if let Some(scope) = self.scopes.last_mut() {
                            scope.push(name);
                        }
                    }
                    Node::Assign { name, .. } => {
                        if let Some(&variable) = self.visible.get(name).and_then(|v| v.last()) {
                            self.result.assigned.insert(variable);
                            if let Some((_, list)) = self.open.last_mut() {
                                list.push(variable);
                            }
                        }
                    }
                    Node::Loop { .. } => self.open.push((number, Vec::new())),
                    _ => {}
                }
                if node.bodies().next().is_some() {
                    self.scopes.push(Vec::new());
                }
            }
            Event::Else(_) => {
                self.close_scope();
                self.scopes.push(Vec::new());
            }
            Event::End(node) => {
                self.close_scope();
                if matches!(node, Node::Loop { .. }) {
                    self.close_loop();
                }
            }
        }
    }

    fn close_scope(&mut self) {
        for name in self.scopes.pop().unwrap_or_default() {
            self.visible.get_mut(name).and_then(Vec::pop);
        }
    }

    fn close_loop(&mut self) {
        let Some((number, mut list)) = self.open.pop() else { return };
        list.sort_unstable();
        list.dedup();
        // A `let` that began after the loop did stands inside it.
        list.retain(|variable| *variable < number);
        if let Some((_, outer)) = self.open.last_mut() {
            outer.extend_from_slice(&list);
        }
        self.result.loops.insert(number, list);
    }
}
