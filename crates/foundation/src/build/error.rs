//! What is wrong with a program that was built in Rust, and where in the Rust source.

use super::emit::Lines;
use crate::diagnostic::{Cause, Place};
use crate::{Body, Diagnostic, Diagnostics, Event, Node, Program, Walk};
use rustc_hash::FxHashMap;
use std::fmt;
use std::panic::Location;
use thiserror::Error;

/// What is wrong.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum What {
    /// The program breaks a rule of the language. The diagnostic's place is a path through the program.
    #[error("{}", .0.problem)]
    Invalid(Diagnostic),
    /// A value or variable is used after the body in which it was made has ended.
    #[error("this uses what was made at {made}, in a body that has ended")]
    OutOfScope {
        /// Where it was made.
        made: &'static Location<'static>,
    },
    /// A function uses a value of the program around it.
    #[error("a function sees its arguments alone, but this was made outside it, at {made}")]
    CapturedByFunction {
        /// Where it was made.
        made: &'static Location<'static>,
    },
    /// A function does more than compute.
    #[error("a function computes one result, but this is a statement")]
    StatementInFunction,
    /// A value, variable, buffer, function or `Kernel` of another program is used.
    #[error("this belongs to another program, or to none")]
    OtherBuild,
    /// Something was built between an `if_` and its `else_` or `else_if`.
    #[error("this `else` does not follow its `if` directly")]
    ElseApart,
    /// A ballot with more or fewer bits than the subgroup size asks for.
    #[error("the ballot of a subgroup of {lanes} lanes has {} bits", if *.lanes == 64 { 64 } else { 32 })]
    BallotWidth {
        /// The subgroup size of the program.
        lanes: u32,
    },
}

impl What {
    /// The stable code: `B…` for what only a program built in Rust can get wrong, else that of the diagnostic.
    pub fn code(&self) -> &'static str {
        match self {
            What::Invalid(diagnostic) => diagnostic.code(),
            What::OutOfScope { .. } => "B001",
            What::CapturedByFunction { .. } => "B002",
            What::StatementInFunction => "B003",
            What::OtherBuild => "B004",
            What::ElseApart => "B005",
            What::BallotWidth { .. } => "B006",
        }
    }

    /// How to fix it.
    pub fn help(&self) -> String {
        match self {
            What::Invalid(diagnostic) => diagnostic.help(),
            What::OutOfScope { .. } => {
                "make a variable before the body (`k.var`), set it inside, and get it afterwards".into()
            }
            What::CapturedByFunction { .. } => "pass it as an argument".into(),
            What::StatementInFunction => "move it out of the function".into(),
            What::OtherBuild => "use only what this program's `k` has made, while its closure runs".into(),
            What::ElseApart => "write `k.if_(…).else_(…)` in one expression".into(),
            What::BallotWidth { lanes: 64 } => "use `subgroup_ballot64`".into(),
            What::BallotWidth { .. } => "use `subgroup_ballot`".into(),
        }
    }
}

/// One thing that is wrong, and the place in the Rust source that built it.
#[derive(Clone, PartialEq, Debug)]
pub struct Mistake {
    /// What is wrong.
    pub what: What,
    /// Where it was built; `None` where it concerns the program as a whole.
    pub at: Option<&'static Location<'static>>,
    /// What led to it and where that was built, in the order in which a person wants to read it.
    pub because: Vec<(Cause, Option<&'static Location<'static>>)>,
}

impl Mistake {
    pub(super) fn new(what: What, at: Option<&'static Location<'static>>) -> Mistake {
        Mistake { what, at, because: Vec::new() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] ", self.what.code())?;
        if let Some(at) = self.at {
            write!(f, "{at}: ")?;
        }
        write!(f, "{}", self.what)?;
        for (cause, at) in &self.because {
            write!(f, "; ")?;
            if let Some(at) = at {
                write!(f, "{at}: ")?;
            }
            write!(f, "{cause}")?;
        }
        write!(f, ". help: {}", self.what.help())
    }
}

/// Why a program could not be built: every mistake in it.
///
/// Each says where in the Rust source it was made:
///
/// ```
/// let error = vyre_foundation::build::program("p", |k| k.break_()).unwrap_err();
/// assert_eq!(error.mistakes()[0].what.code(), "V017");
/// assert!(error.to_string().contains(".rs:"));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct BuildError(Vec<Mistake>);

impl BuildError {
    pub(super) fn new(mistakes: Vec<Mistake>) -> BuildError {
        BuildError(mistakes)
    }

    /// What validation found, with the lines of the Rust source that built it.
    pub(super) fn invalid(program: &Program, found: &Diagnostics, lines: &Lines) -> BuildError {
        let mut finder = Finder::new(program, lines);
        let mistake = |diagnostic: &Diagnostic| Mistake {
            at: finder.line(&diagnostic.place),
            because: diagnostic.notes.iter().map(|n| (n.cause.clone(), finder.line(&n.place))).collect(),
            what: What::Invalid(diagnostic.clone()),
        };
        BuildError(found.iter().map(mistake).collect())
    }

    /// The mistakes.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.0
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.0.iter().enumerate() {
            write!(f, "{}{mistake}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

/// The step of a path: a name and, in brackets, a number.
fn step(text: &str) -> (&str, usize) {
    let (name, number) = text.split_once('[').unwrap_or((text, ""));
    (name, number.trim_end_matches(']').parse().unwrap_or(0))
}

/// Finds the lines that built the parts of a program.
struct Finder<'p> {
    program: &'p Program,
    lines: &'p Lines,
    /// The number of each statement, by its address.
    numbers: FxHashMap<*const Node, usize>,
    /// How many places are still looked up: a program with a mistake in every line needs no line for each.
    left: u32,
}

impl<'p> Finder<'p> {
    fn new(program: &'p Program, lines: &'p Lines) -> Finder<'p> {
        let statements = Walk::new(program.entry()).filter_map(|event| match event {
            Event::Node(node) => Some(std::ptr::from_ref(node)),
            _ => None,
        });
        let numbers = statements.enumerate().map(|(number, node)| (node, number)).collect();
        Finder { program, lines, numbers, left: 1000 }
    }

    /// The line that built the statement, buffer or function that a place is in.
    fn line(&mut self, place: &Place) -> Option<&'static Location<'static>> {
        self.left = self.left.checked_sub(1)?;
        let (name, number) = step(place.path.split('.').next()?);
        match name {
            "buffers" => self.lines.buffers.get(number).copied(),
            "functions" => self.lines.functions.get(number).copied(),
            _ => {
                let node = std::ptr::from_ref(statement(self.program.entry(), &place.path)?);
                self.lines.statements.get(*self.numbers.get(&node)?).copied()
            }
        }
    }
}

/// The innermost statement on a path.
fn statement<'p>(entry: &'p Body, path: &str) -> Option<&'p Node> {
    let mut found: Option<&Node> = None;
    for (name, number) in path.split('.').map(step) {
        let body = match (name, found) {
            ("entry", None) => entry,
            ("then" | "body", Some(node)) => node.bodies().next()?,
            ("else", Some(node)) => node.bodies().nth(1)?,
            ("else_if", Some(_)) => {
                for _ in 0..number {
                    found = found?.bodies().nth(1)?.as_else_if();
                }
                continue;
            }
            // The rest of the path leads through an expression.
            _ => break,
        };
        found = body.get(number);
    }
    found
}
