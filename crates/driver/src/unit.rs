//! A program that has passed validation, with its flat form.

use crate::error::Result;
use std::sync::{Arc, OnceLock};
use vyre_foundation::{Program, ProgramHash};
use vyre_lower::{Kernel, lower};

/// What a backend compiles: a valid program and its [`Kernel`]. Emitters read the kernel, the reference reads
/// the program. That a unit exists is the proof that its program is valid.
///
/// The kernel is made when somebody first asks: a backend that finds the program in its cache never does.
#[derive(Clone)]
pub struct Unit(Arc<Parts>);

struct Parts {
    program: Program,
    kernel: OnceLock<Kernel>,
}

impl Unit {
    /// Validates a program.
    pub fn new(program: Program) -> Result<Unit> {
        program.validate()?;
        Ok(Unit(Arc::new(Parts { program, kernel: OnceLock::new() })))
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// Its flat form.
    pub fn kernel(&self) -> &Kernel {
        self.0.kernel.get_or_init(|| {
            let _span = tracing::debug_span!("lower", program = %self.program().name()).entered();
            lower(self.program())
        })
    }

    /// The hash of the program.
    pub fn hash(&self) -> ProgramHash {
        self.program().content_hash()
    }
}
