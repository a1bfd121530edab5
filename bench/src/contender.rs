//! Who takes part, behind one interface.

use crate::cases::Case;
use anyhow::Result;
use std::time::Duration;

/// A way to run kernels: a compiler with its runtime and its device.
pub(crate) trait Platform {
    /// Its short name, as in tables.
    fn name(&self) -> &'static str;

    /// What exactly it is.
    fn about(&self) -> String;

    /// The numbers of threads it is asked to use, one after the other.
    fn threads(&self) -> Vec<usize>;

    /// Whether it is another way to run a case that others run too; those are left out without a word.
    fn concerns(&self, _case: &Case) -> bool {
        true
    }

    /// Compiles a case and puts its inputs in place.
    fn prepare<'a>(&'a self, case: &'a Case) -> Result<Box<dyn Contender + 'a>>;
}

/// A case that is ready to run.
pub(crate) trait Contender {
    /// Puts the buffers that a run has written back as they were.
    fn reset(&mut self) -> Result<()>;

    /// Runs the kernel once and says how long that took, from the call to the results being there.
    fn run(&mut self, threads: usize) -> Result<Duration>;

    /// The bytes of the buffers that are results, in order.
    fn results(&mut self) -> Result<Vec<Vec<u8>>>;
}
