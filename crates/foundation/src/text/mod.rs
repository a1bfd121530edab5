//! The text format: [`parse()`], [`print()`] and [`format()`].
//!
//! `parse(print(p)) == p` for every valid program. Printing and formatting share one layout, so a printed
//! program is already formatted.

mod expr;
mod layout;
mod lex;
mod number;
mod parse;
mod print;
mod statements;

pub use parse::parse;
pub use print::{print, print_expr, print_node};

use crate::{Body, Diagnostics, Expr, Literal, Node, Program};
use std::fmt;

/// The text in canonical layout. Only white space changes: comments, the spelling of numbers and parentheses
/// stay. Up to one blank line between statements is kept.
///
/// ```
/// let tidy = vyre_foundation::text::format("program p{let x=1+2;// three\n}").unwrap();
/// assert_eq!(tidy, "program p {\n    let x = 1 + 2; // three\n}\n");
/// ```
pub fn format(text: &str) -> Result<String, Diagnostics> {
    parse(text)?;
    Ok(layout::layout(text))
}

impl Program {
    /// Reads a program from text. The result knows its source positions but is not yet
    /// [validated](crate::validate()).
    pub fn parse(text: &str) -> Result<Program, Diagnostics> {
        parse(text)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_node(self))
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_expr(self))
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::U32(value) => write!(f, "{value}"),
            Literal::I32(value) => write!(f, "{value}i32"),
            Literal::U64(value) => write!(f, "{value}u64"),
            Literal::I64(value) => write!(f, "{value}i64"),
            Literal::F32(value) if value.value().is_nan() => f.write_str("nan"),
            Literal::F32(value) => write!(f, "{:?}", value.value()),
        }
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
