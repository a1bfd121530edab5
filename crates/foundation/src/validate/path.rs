//! Paths through the tree, for programs that have no text: `entry[2].then[0].value`.

use crate::{Body, Event, Node, Walk};
use std::fmt;

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

/// The path of a statement by its number in the order in which statements begin.
pub(super) fn of_statement(entry: &Body, number: usize) -> String {
    // Each open body: its name and how many of its statements have begun. Links of an `else if` chain share
    // the level of the first one.
    let mut open = vec![("entry", 0usize)];
    let mut chains = vec![0usize];
    let mut link = false;
    let mut met = 0;
    let render = |open: &[(&str, usize)], chains: &[usize]| {
        let mut path = String::new();
        for (level, (body, begun)) in open.iter().enumerate() {
            let dot = if level > 0 { "." } else { "" };
            path += &format!("{dot}{body}[{}]", begun.saturating_sub(1));
            if chains[level] > 0 {
                path += &format!(".else_if[{}]", chains[level]);
            }
        }
        path
    };
    for event in Walk::new(entry) {
        match event {
            Event::Node(node) => {
                let level = open.len() - 1;
                if link {
                    chains[level] += 1;
                    link = false;
                } else {
                    open[level].1 += 1;
                    chains[level] = 0;
                }
                if met == number {
                    return render(&open, &chains);
                }
                met += 1;
                match node {
                    Node::If { .. } => open.push(("then", 0)),
                    Node::Loop { .. } | Node::Block { .. } | Node::Region { .. } => open.push(("body", 0)),
                    _ => continue,
                }
                chains.push(0);
            }
            Event::Else(Node::If { otherwise, .. }) => {
                open.pop();
                chains.pop();
                if otherwise.as_else_if().is_some() {
                    link = true;
                } else {
                    open.push(("else", 0));
                    chains.push(0);
                }
            }
            Event::End(Node::If { otherwise, .. }) if otherwise.as_else_if().is_some() => {}
            Event::Else(_) | Event::End(_) => {
                open.pop();
                chains.pop();
            }
        }
    }
    String::new()
}
