//! Which variables are assigned, and in which loops: one walk that resolves names by scope.

use crate::{Body, Event, Name, Node, Walk};
use rustc_hash::{FxHashMap, FxHashSet};

/// Statements are numbered in the order in which they begin.
#[derive(Default)]
pub(crate) struct Assignments {
    /// The `let`s that are assigned somewhere.
    assigned: FxHashSet<usize>,
    /// Every assignment, in order: its number and that of the `let`.
    all: Vec<(u32, u32)>,
    /// For each loop the number of the statement after it.
    ends: FxHashMap<usize, u32>,
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

    /// The `let`s outside the loop with this number that are assigned inside it, once per assignment.
    pub(crate) fn in_loop(&self, node: usize) -> impl Iterator<Item = usize> {
        let end = self.ends.get(&node).copied().unwrap_or(0);
        let from = self.all.partition_point(|(number, _)| (*number as usize) < node);
        let to = self.all.partition_point(|(number, _)| *number < end);
        let inside = self.all.get(from..to).unwrap_or(&[]).iter();
        // A `let` that began after the loop did stands inside it.
        inside.map(|(_, variable)| *variable as usize).filter(move |variable| *variable < node)
    }
}

#[derive(Default)]
struct Resolver<'p> {
    result: Assignments,
    visible: FxHashMap<&'p Name, Vec<usize>>,
    scopes: Vec<Vec<&'p Name>>,
    /// The numbers of the open loops.
    open: Vec<usize>,
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
                            self.result.all.push((number as u32, variable as u32));
                        }
                    }
                    Node::Loop { .. } => self.open.push(number),
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
        if let Some(number) = self.open.pop() {
            self.result.ends.insert(number, self.next as u32);
        }
    }
}
