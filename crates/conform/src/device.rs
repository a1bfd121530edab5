//! Any backend as an executor.

use crate::{Case, Executor, Failure, Observed};
use std::sync::Arc;
use std::time::Duration;
use vyre_driver::{BackendExt, DispatchConfig, Error, Optimization, Route, VyreBackend};

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
    route: Route,
    optimization: Optimization,
    patience: Duration,
}

impl Device {
    /// This backend, with as many threads as it likes and far more time than a generated case needs.
    pub fn new(backend: Arc<dyn VyreBackend>) -> Device {
        let (route, optimization) = (Route::Auto, Optimization::On);
        Device { backend, threads: None, route, optimization, patience: Duration::from_secs(300) }
    }

    /// With at most so many threads.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Device {
        Device { threads: Some(threads), ..self }
    }

    /// By this route, which matters to programs with grid barriers.
    #[must_use]
    pub fn with_route(self, route: Route) -> Device {
        Device { route, ..self }
    }

    /// With programs as they are written, or optimised, if an optimizer is linked in.
    #[must_use]
    pub fn with_optimization(self, optimization: Optimization) -> Device {
        Device { optimization, ..self }
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
        let mut name = self.backend.profile().backend.to_owned();
        if let Some(threads) = self.threads {
            name += &format!(", {threads} threads");
        }
        if self.route != Route::Auto {
            name += &format!(", {}", self.route);
        }
        if self.optimization == Optimization::Off {
            name += ", not optimised";
        }
        name
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let config = Device::config(case).timeout(self.patience).route(self.route);
        let config = config.optimization(self.optimization);
        let config = DispatchConfig { threads: self.threads, ..config };
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
