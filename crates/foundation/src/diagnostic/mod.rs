//! What is wrong with a program, where, and how to fix it.
//!
//! A [`Diagnostic`] is data: a [`Problem`] with fields, a [`Place`] and [`Note`]s. Its text is derived from
//! them. [`Diagnostics::render`] draws it over the source text; [`std::fmt::Display`] gives one plain line.

mod problem;
mod render;

pub use problem::{Cause, Problem, Role};
pub(crate) use problem::{binary_takes, unary_takes};
pub use render::Style;

use crate::Span;
use std::fmt;

/// How bad a problem is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program is accepted, and likely not what was meant.
    Warning,
}

/// Where something is: a span of the text if the program came from text, and always a path through the tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The bytes of the source text.
    pub span: Option<Span>,
    /// The way from the program to the part, such as `entry[2].then[0].value`; empty for a syntax error.
    pub path: String,
}

impl From<Span> for Place {
    fn from(span: Span) -> Place {
        Place { span: Some(span), path: String::new() }
    }
}

/// A further place that explains a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Where.
    pub place: Place,
    /// What is to be seen there.
    pub cause: Cause,
}

/// One problem of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// What is wrong.
    pub problem: Problem,
    /// Where.
    pub place: Place,
    /// What led to it, in the order in which a person wants to read it.
    pub notes: Vec<Note>,
}

impl Diagnostic {
    pub(crate) fn new(problem: Problem, place: impl Into<Place>) -> Diagnostic {
        Diagnostic { problem, place: place.into(), notes: Vec::new() }
    }

    /// The stable code of the rule: `P…` for syntax, `V…` for validation, `W…` for warnings.
    pub fn code(&self) -> &'static str {
        self.problem.code()
    }

    /// How bad it is.
    pub fn severity(&self) -> Severity {
        if self.code().starts_with('W') { Severity::Warning } else { Severity::Error }
    }

    /// How to fix it.
    pub fn help(&self) -> String {
        self.problem.help()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] ", self.code())?;
        if !self.place.path.is_empty() {
            write!(f, "{}: ", self.place.path)?;
        }
        write!(f, "{}", self.problem)?;
        for note in &self.notes {
            write!(f, "; {}", note.cause)?;
        }
        write!(f, ". help: {}", self.help())
    }
}

/// All problems that were found, in source order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// The problems.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.iter().any(|d| d.severity() == Severity::Error)
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Diagnostic> {
        self.0.iter_mut()
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// In source order; the order of discovery decides between equals.
    pub(crate) fn sorted(mut self) -> Diagnostics {
        self.0.sort_by_key(|d| d.place.span.map_or(0, |span| span.start));
        self
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(items: I) -> Diagnostics {
        Diagnostics(items.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
