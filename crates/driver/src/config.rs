//! How a dispatch is to run.

use crate::deadline::Deadline;
use std::fmt;
use std::time::Duration;
use vyre_foundation::{Name, WorkgroupSize};

/// How a program with grid barriers runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Route {
    /// The first of the others that can run.
    #[default]
    Auto,
    /// Inside one launch.
    Native,
    /// One launch per segment; buffers stay on the device.
    Resident,
    /// One launch per segment; live bytes travel through the host.
    Host,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Route::Auto => "auto",
            Route::Native => "native",
            Route::Resident => "resident",
            Route::Host => "host",
        })
    }
}

/// Which floats a program gets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FloatMode {
    /// Those of the reference, bit for bit.
    #[default]
    Exact,
    /// Those of the device, outside the promise of equal bytes.
    Native,
}

impl fmt::Display for FloatMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FloatMode::Exact => "exact",
            FloatMode::Native => "native",
        })
    }
}

/// Whether the optimizer improves a program before it is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Optimization {
    /// It does, where one is linked in.
    #[default]
    On,
    /// It does not.
    Off,
}

/// What decides the code of a program, besides the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CompileOptions {
    /// Which floats.
    pub float_mode: FloatMode,
}

/// How a dispatch is to run. The default is right for a first run.
///
/// ```
/// use vyre_driver::DispatchConfig;
/// let config = DispatchConfig::new().grid([4, 1, 1]).output_len("o", 256);
/// assert_eq!(config.grid, Some([4, 1, 1]));
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DispatchConfig {
    /// The workgroups on each axis; by default what the returned buffers ask for.
    pub grid: Option<[u32; 3]>,
    /// Another workgroup size than the program's.
    pub workgroup_size: Option<WorkgroupSize>,
    /// The lengths of `output`, `write` and `scratch` buffers whose count is open.
    pub lengths: Vec<(Name, u32)>,
    /// At most this many passes, ending after the first that changes nothing. `None` is one pass.
    pub fixpoint_iterations: Option<u32>,
    /// Whether a fixpoint that does not converge is an error.
    pub must_converge: bool,
    /// How grid barriers run.
    pub route: Route,
    /// Which floats.
    pub float_mode: FloatMode,
    /// Whether the program is optimised.
    pub optimization: Optimization,
    /// How long the dispatch may take.
    pub timeout: Option<Duration>,
    /// How much memory the dispatch may use.
    pub memory_budget: Option<u64>,
    /// A name for traces.
    pub label: Option<String>,
    /// At most this many threads, on a backend that has threads.
    pub threads: Option<usize>,
}

impl DispatchConfig {
    /// The default.
    pub fn new() -> DispatchConfig {
        DispatchConfig::default()
    }

    /// With these workgroups on each axis.
    #[must_use]
    pub fn grid(mut self, workgroups: [u32; 3]) -> DispatchConfig {
        self.grid = Some(workgroups);
        self
    }

    /// With another workgroup size.
    #[must_use]
    pub fn workgroup_size(mut self, size: impl Into<WorkgroupSize>) -> DispatchConfig {
        self.workgroup_size = Some(size.into());
        self
    }

    /// With the length of one buffer whose count is open.
    #[must_use]
    pub fn output_len(mut self, buffer: impl Into<Name>, elements: u32) -> DispatchConfig {
        self.lengths.push((buffer.into(), elements));
        self
    }

    /// As a fixpoint of at most this many passes.
    #[must_use]
    pub fn fixpoint(mut self, passes: u32) -> DispatchConfig {
        self.fixpoint_iterations = Some(passes);
        self
    }

    /// With an error where the fixpoint does not converge.
    #[must_use]
    pub fn must_converge(mut self) -> DispatchConfig {
        self.must_converge = true;
        self
    }

    /// By this route.
    #[must_use]
    pub fn route(mut self, route: Route) -> DispatchConfig {
        self.route = route;
        self
    }

    /// With these floats.
    #[must_use]
    pub fn float_mode(mut self, mode: FloatMode) -> DispatchConfig {
        self.float_mode = mode;
        self
    }

    /// With the program as it was written, or optimised.
    #[must_use]
    pub fn optimization(mut self, optimization: Optimization) -> DispatchConfig {
        self.optimization = optimization;
        self
    }

    /// For at most this long.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> DispatchConfig {
        self.timeout = Some(limit);
        self
    }

    /// With at most this much memory.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> DispatchConfig {
        self.memory_budget = Some(bytes);
        self
    }

    /// Under this name in traces.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> DispatchConfig {
        self.label = Some(label.into());
        self
    }

    /// On at most this many threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> DispatchConfig {
        self.threads = Some(threads);
        self
    }

    /// The deadline of a dispatch that starts now.
    pub fn deadline(&self) -> Deadline {
        self.timeout.map_or(Deadline::NEVER, Deadline::after)
    }

    /// What decides the code.
    pub fn compile_options(&self) -> CompileOptions {
        CompileOptions { float_mode: self.float_mode }
    }
}
