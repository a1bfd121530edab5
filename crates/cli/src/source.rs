//! A program file: its text, and the program in it.

use crate::failure::{Failure, read_text};
use std::path::{Path, PathBuf};
use vyre_driver::{Error, Unit};
use vyre_foundation::{Diagnostics, Program};

/// A program with the text that errors are drawn over.
pub(crate) struct Source {
    path: PathBuf,
    text: String,
    pub(crate) program: Program,
}

impl Source {
    /// Reads and parses a file. Whoever compiles the program validates it.
    pub(crate) fn read(path: &Path) -> Result<Source, Failure> {
        let text = read_text(path)?;
        let parsed = tracing::info_span!("parse", bytes = text.len()).in_scope(|| Program::parse(&text));
        match parsed {
            Ok(program) => Ok(Source { path: path.to_owned(), text, program }),
            Err(found) => Err(Failure::Program { path: path.to_owned(), text, found }),
        }
    }

    /// The program, valid; its kernel may be an optimised one.
    pub(crate) fn unit(&self, is_optimized: bool) -> Result<Unit, Failure> {
        let unit = Unit::of(&self.program).map_err(|error| self.failure(error))?;
        Ok(if is_optimized { unit.optimized() } else { unit })
    }

    /// What an error of the driver is for whoever wrote the file.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        match error {
            Error::InvalidProgram(found) => self.invalid(found),
            error => Failure::Run(error),
        }
    }

    fn invalid(&self, found: Diagnostics) -> Failure {
        Failure::Program { path: self.path.clone(), text: self.text.clone(), found }
    }
}
