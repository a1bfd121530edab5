//! Any backend as an executor.

use crate::{Case, Executor, Failure, Observed};
use std::sync::Arc;
use std::time::Duration;
use vyre_driver::{BackendExt, DispatchConfig, Error, VyreBackend};

/// A backend that runs cases.
///
/// ```
/// use vyre_conform::{DEFAULT_SIZE, Device, compare, generate, schedules};
/// let mut executors = schedules(1, 1);
/// executors.push(Box::new(Device::new(vyre_driver::acquire("reference")?)));
/// assert!(compare(&generate(1, DEFAULT_SIZE), &executors).is_none());
/// # Ok::<(), vyre_driver::Error>(())
/// ```
#[derive(Clone)]
pub struct Device {
    backend: Arc<dyn VyreBackend>,
    threads: Option<usize>,
    patience: Duration,
}

impl Device {
    /// This backend, with as many threads as it likes and far more time than a generated case needs.
    pub fn new(backend: Arc<dyn VyreBackend>) -> Device {
        Device { backend, threads: None, patience: Duration::from_secs(20) }
    }

    /// With at most so many threads.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Device {
        Device { threads: Some(threads), ..self }
    }

    /// How the case is dispatched.
    pub(crate) fn config(case: &Case) -> DispatchConfig {
        DispatchConfig {
            grid: case.grid,
            lengths: case.lengths.clone(),
            fixpoint_iterations: case.fixpoint,
            ..DispatchConfig::default()
        }
    }
}

impl Executor for Device {
    fn name(&self) -> String {
        let name = self.backend.profile().backend;
        self.threads.map_or_else(|| name.to_owned(), |threads| format!("{name}, {threads} threads"))
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let config = DispatchConfig { threads: self.threads, ..Device::config(case).timeout(self.patience) };
        match self.backend.dispatch_borrowed(&case.program, &case.input_slices(), &config) {
            Ok(output) => Ok(Observed::Outputs {
                outputs: output.outputs,
                passes: output.report.passes,
                converged: output.report.converged,
            }),
            Err(Error::Trap(trap)) => {
                Ok(Observed::Trap { tag: trap.tag, value: trap.value, invocation: trap.invocation })
            }
            Err(error @ (Error::Unsupported { .. } | Error::ResidencyExceeded { .. })) => {
                Err(Failure::Unsupported(error.to_string()))
            }
            Err(error) => Err(Failure::Failed(error.to_string())),
        }
    }
}
