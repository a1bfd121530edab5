//! Paths through the tree, for programs that have no text: `entry[2].then[0].value`.

use crate::{Body, Event, Node, Walk};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

/// One step down the tree.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Step {
    Buffer(usize),
    Function(usize),
    /// A statement of the body with this name.
    Statement(&'static str, usize),
    /// A link of an `else if` chain, counted from its first `if`.
    ElseIf(usize),
    Let(usize),
    Arg(usize),
    Field(&'static str),
}

/// The way from the program to the part being checked.
#[derive(Default)]
pub(super) struct Path(Vec<Step>);

impl Path {
    pub(super) fn push(&mut self, step: Step) {
        self.0.push(step);
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    pub(super) fn replace(&mut self, step: Step) {
        self.0.pop();
        self.0.push(step);
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            match step {
                Step::Buffer(n) => write!(f, "buffers[{n}]")?,
                Step::Function(n) => write!(f, "functions[{n}]")?,
                Step::Statement(body, n) => write!(f, "{body}[{n}]")?,
                Step::ElseIf(n) => write!(f, "else_if[{n}]")?,
                Step::Let(n) => write!(f, "lets[{n}]")?,
                Step::Arg(n) => write!(f, "args[{n}]")?,
                Step::Field(name) => f.write_str(name)?,
            }
        }
        Ok(())
    }
}

/// Stands for the path of a statement until [`of_statements`] has found it.
pub(super) fn pending(number: usize) -> String {
    format!("#{number}")
}

/// The number of the statement that a path stands for, if it is [`pending`].
pub(super) fn is_pending(path: &str) -> Option<usize> {
    path.strip_prefix('#')?.parse().ok()
}

/// The paths of statements by their numbers in the order in which statements begin, from one walk.
pub(super) fn of_statements(entry: &Body, wanted: &BTreeSet<usize>) -> BTreeMap<usize, String> {
    let mut paths = BTreeMap::new();
    let Some(last) = wanted.last() else { return paths };
    let mut open = vec![Level { body: "entry", begun: 0, link: 0 }];
    let mut in_chain = false;
    let mut met = 0;
    for event in Walk::new(entry) {
        match event {
            Event::Node(node) => {
                let Some(level) = open.last_mut() else { return paths };
                if std::mem::take(&mut in_chain) {
                    level.link += 1;
                } else {
                    level.begun += 1;
                    level.link = 0;
                }
                if wanted.contains(&met) {
                    paths.insert(met, render(&open));
                }
                if met == *last {
                    return paths;
                }
                met += 1;
                match node {
                    Node::If { .. } => open.push(Level { body: "then", begun: 0, link: 0 }),
                    Node::Loop { .. } | Node::Block { .. } | Node::Region { .. } => {
                        open.push(Level { body: "body", begun: 0, link: 0 });
                    }
                    _ => {}
                }
            }
            Event::Else(Node::If { otherwise, .. }) => {
                open.pop();
                in_chain = otherwise.as_else_if().is_some();
                if !in_chain {
                    open.push(Level { body: "else", begun: 0, link: 0 });
                }
            }
            Event::End(Node::If { otherwise, .. }) if otherwise.as_else_if().is_some() => {}
            Event::Else(_) | Event::End(_) => {
                open.pop();
            }
        }
    }
    paths
}

/// A body that the walk is in. The links of an `else if` chain share the level of the first one.
struct Level {
    body: &'static str,
    begun: usize,
    link: usize,
}

fn render(open: &[Level]) -> String {
    let mut path = String::new();
    for (i, Level { body, begun, link }) in open.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(path, "{}{body}[{}]", if i > 0 { "." } else { "" }, begun.saturating_sub(1));
        if *link > 0 {
            let _ = write!(path, ".else_if[{link}]");
        }
    }
    path
}
