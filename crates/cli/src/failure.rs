//! What went wrong: a code, a message, help, a place, and the exit code that goes with it.

use crate::print;
use crate::values::ValueError;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use vyre_driver::Error;
use vyre_foundation::diagnostic::{Diagnostic, Severity, Style};
use vyre_foundation::{Diagnostics, InputError, Name, Span};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file cannot be read.
    #[error("cannot read {}: {error}. help: check the path and its permissions", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A program that is not text.
    #[error("{} is not UTF-8 text. help: a program is a .vyre text; save it as UTF-8", .0.display())]
    NotText(PathBuf),
    /// The command line is wrong.
    #[error("{message}. help: {help}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What would be right.
        help: String,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}. help: check the path and its permissions", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The program is wrong.
    #[error("{} error{} in {}. help: see the list", .found.len(), if .found.len() == 1 { "" } else { "s" }, .path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// Its text.
        text: String,
        /// What is wrong.
        found: Diagnostics,
    },
    /// An input was not given.
    #[error(
        "the input `{name}` is missing. help: give it, for example `--in {name}=[1,2,3]` or `--in {name}=iota:16`"
    )]
    MissingInput {
        /// The buffer.
        name: Name,
    },
    /// A buffer that the caller does not fill was given.
    #[error("`{name}` is `{access}`: the caller gives no contents. help: leave `--in {name}` out")]
    NotAnInput {
        /// The buffer.
        name: Name,
        /// Its access.
        access: &'static str,
    },
    /// A buffer that is not returned was asked for.
    #[error("`{name}` is `{access}`: it is not returned. help: leave `--out {name}` out")]
    NotAnOutput {
        /// The buffer.
        name: Name,
        /// Its access.
        access: &'static str,
    },
    /// A buffer was given twice.
    #[error("`{option} {name}` is given twice. help: keep one of them")]
    GivenTwice {
        /// The option.
        option: &'static str,
        /// The buffer.
        name: Name,
    },
    /// A value does not fit its buffer.
    #[error("--in {name}: {error}")]
    Value {
        /// The buffer.
        name: Name,
        /// Why.
        error: ValueError,
    },
    /// A backend that this build does not have.
    #[error("the backend `{0}` is not available in this build. help: use `--backend cpu`")]
    NoBackend(&'static str),
    /// The driver or the backend says no.
    #[error(transparent)]
    Run(#[from] vyre_driver::Error),
    /// The inputs do not fit the program.
    #[error(transparent)]
    Input(#[from] InputError),
}

/// A failure as JSON.
#[derive(Serialize)]
pub(crate) struct ErrorJson {
    code: String,
    message: String,
    help: String,
    span: Option<SpanJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trap: Option<TrapJson>,
}

#[derive(Serialize)]
struct TrapJson {
    tag: String,
    value: u32,
    invocation: u64,
}

/// A span as JSON: bytes, and the line and column of its start.
#[derive(Serialize)]
pub(crate) struct SpanJson {
    start: u32,
    end: u32,
    line: usize,
    column: usize,
}

impl SpanJson {
    pub(crate) fn new(text: &str, span: Span) -> SpanJson {
        let before = &text[..(span.start as usize).min(text.len())];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        SpanJson {
            start: span.start,
            end: span.end,
            line: before.bytes().filter(|b| *b == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Message and help of an error whose text has both.
fn split_help(text: &str) -> (String, String) {
    // The help comes last; a path or a tag in the message may hold anything.
    match text.rsplit_once(". help: ") {
        Some((message, help)) => (message.to_owned(), help.to_owned()),
        None => (text.to_owned(), String::new()),
    }
}

/// The exit code that goes with an error of the driver.
fn exit_code(error: &Error) -> u8 {
    match error.root() {
        Error::Unsupported { .. }
        | Error::ResidencyExceeded { .. }
        | Error::DeviceLost { .. }
        | Error::ShutDown { .. }
        | Error::Busy { .. }
        | Error::UnknownBackend { .. }
        | Error::NoBackend { .. }
        | Error::Cache(_) => 3,
        Error::Trap(_) => 4,
        Error::Timeout { .. } | Error::NotConverged { .. } => 5,
        _ => 1,
    }
}

impl Failure {
    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage { .. } => 2,
            Failure::NoBackend(_) => 3,
            Failure::Run(error) => exit_code(error),
            _ => 1,
        }
    }

    /// What is wrong and what to do about it.
    pub(crate) fn texts(&self) -> (String, String) {
        let (message, help) = split_help(&self.to_string());
        // The driver speaks to programmers; here its settings are options.
        let help = match self {
            Failure::Run(Error::Timeout { .. }) => {
                "allow more time with `--timeout`, or look for a loop that does not end".to_owned()
            }
            Failure::Run(Error::NotConverged { .. }) => "allow more passes with `--fixpoint`".to_owned(),
            Failure::Run(error) if matches!(error.root(), Error::Unsupported { .. }) => {
                format!("{help}; `vyre devices` lists what each backend has")
            }
            _ => help,
        };
        (message, help)
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::Unreadable { .. } => "C001",
            Failure::Unwritable { .. } => "C002",
            Failure::NotText(_) => "C016",
            Failure::Usage { .. } => "C017",
            Failure::Program { found, .. } => found.iter().next().map_or("D001", Diagnostic::code),
            Failure::MissingInput { .. } => "C003",
            Failure::NotAnInput { .. } => "C004",
            Failure::NotAnOutput { .. } => "C005",
            Failure::GivenTwice { .. } => "C006",
            Failure::Value { error, .. } => error.code(),
            Failure::NoBackend(_) => "C007",
            Failure::Run(error) => error.code(),
            Failure::Input(error) => error.code(),
        }
    }

    pub(crate) fn errors(&self) -> Vec<ErrorJson> {
        if let Failure::Program { text, found, .. } = self {
            let errors = found.iter().filter(|d| d.severity() == Severity::Error);
            return errors.map(|diagnostic| diagnostic_json(diagnostic, text)).collect();
        }
        let trap = match self {
            Failure::Run(Error::Trap(trap)) => {
                Some(TrapJson { tag: trap.tag.to_string(), value: trap.value, invocation: trap.invocation })
            }
            _ => None,
        };
        let (message, help) = self.texts();
        vec![ErrorJson { code: self.code().to_owned(), message, help, span: None, trap }]
    }

    /// Prints the failure where it belongs: JSON to standard output, text to standard error.
    pub fn print(&self, json: bool) {
        if json {
            let errors = self.errors();
            let first = errors.first();
            let text = serde_json::json!({ "error": first, "errors": errors }).to_string();
            if let Err(Failure::Unwritable { path, error }) = print::out(&format!("{text}\n")) {
                print::err(&format!("cannot write {}: {error}\n", path.display()));
            }
            return;
        }
        let style = style();
        match self {
            Failure::Program { path, text, found } => {
                print::err(&found.render(&path.display().to_string(), text, style));
            }
            _ => {
                let (message, help) = self.texts();
                let (red, blue, bold, plain) = match style {
                    Style::Colored => ("\x1b[1;31m", "\x1b[1;36m", "\x1b[1m", "\x1b[0m"),
                    Style::Plain => ("", "", "", ""),
                };
                print::err(&format!("{red}error[{}]{plain}{bold}: {message}{plain}\n", self.code()));
                if !help.is_empty() {
                    print::err(&format!("  {blue}={plain} {bold}help{plain}: {help}\n"));
                }
            }
        }
    }
}

/// Colours on a terminal, unless the user wants none.
pub(crate) fn style() -> Style {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && std::io::stderr().is_terminal() { Style::Colored } else { Style::Plain }
}

pub(crate) fn diagnostic_json(diagnostic: &Diagnostic, text: &str) -> ErrorJson {
    ErrorJson {
        code: diagnostic.code().to_owned(),
        message: diagnostic.problem.to_string(),
        help: diagnostic.help(),
        span: diagnostic.place.span.map(|span| SpanJson::new(text, span)),
        trap: None,
    }
}

/// The text of a program file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::Unreadable { path: path.to_owned(), error })?;
    String::from_utf8(bytes).map_err(|_| Failure::NotText(path.to_owned()))
}
