//! What users dispatch: a program, or a program that was compiled before.

use crate::backend::{CompiledPipeline, VyreBackend};
use crate::config::{CompileOptions, DispatchConfig, FloatMode, Optimization, Route};
use crate::error::{Error, Result};
use crate::grid_sync::{Schedule, Segment};
use crate::profile::{DeviceProfile, Feature};
use crate::unit::Unit;
use std::fmt;
use std::sync::{Arc, OnceLock};
use vyre_foundation::{Program, WorkgroupSize};

/// A program with its code for one backend. Cloning it is cheap.
#[derive(Clone)]
pub struct Pipeline {
    unit: Unit,
    /// The code of the whole program; none where its grid barriers cannot be left to the device.
    whole: Option<Arc<dyn CompiledPipeline>>,
    split: Arc<OnceLock<Split>>,
    options: CompileOptions,
    is_optimized: bool,
    backend: &'static str,
}

/// A program in segments, with the code of each.
#[derive(Clone)]
pub(crate) struct Split {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) code: Arc<[Arc<dyn CompiledPipeline>]>,
}

impl Pipeline {
    /// The program, with its flat form.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// The program.
    pub fn program(&self) -> &Program {
        self.unit.program()
    }

    /// What one launch of the whole program runs; `None` where its grid barriers are not left to the device.
    pub fn compiled(&self) -> Option<&Arc<dyn CompiledPipeline>> {
        self.whole.as_ref()
    }

    /// The program in segments, compiled now if it is not yet.
    pub(crate) fn split(&self, backend: &dyn VyreBackend) -> Result<Split> {
        if let Some(split) = self.split.get() {
            return Ok(split.clone());
        }
        let schedule = self.unit.schedule()?;
        let segments = schedule.segments();
        let compile = |(number, segment): (usize, &Segment)| {
            let code = backend.compile(segment.unit(), &self.options);
            code.map_err(|error| error.in_segment(number, &schedule))
        };
        let code = segments.iter().enumerate().map(compile).collect::<Result<_>>()?;
        Ok(self.split.get_or_init(|| Split { schedule: Arc::clone(&schedule), code }).clone())
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.program().name();
        f.debug_struct("Pipeline").field("program", name).field("backend", &self.backend).finish()
    }
}

/// What a dispatch runs: `&program` or `&pipeline`. A program is compiled by the first dispatch and found by the
/// later ones.
#[derive(Clone, Copy)]
pub enum Work<'a> {
    /// A program.
    Program(&'a Program),
    /// A compiled program.
    Pipeline(&'a Pipeline),
}

impl<'a> From<&'a Program> for Work<'a> {
    fn from(program: &'a Program) -> Work<'a> {
        Work::Program(program)
    }
}

impl<'a> From<&'a Pipeline> for Work<'a> {
    fn from(pipeline: &'a Pipeline) -> Work<'a> {
        Work::Pipeline(pipeline)
    }
}

impl<'a> From<&'a Arc<Pipeline>> for Work<'a> {
    fn from(pipeline: &'a Arc<Pipeline>) -> Work<'a> {
        Work::Pipeline(pipeline)
    }
}

impl<'a> Work<'a> {
    /// The program.
    pub fn program(self) -> &'a Program {
        match self {
            Work::Program(program) => program,
            Work::Pipeline(pipeline) => pipeline.program(),
        }
    }

    /// The pipeline for a backend and a configuration.
    pub(crate) fn pipeline(self, backend: &dyn VyreBackend, config: &DispatchConfig) -> Result<Pipeline> {
        let options = config.compile_options();
        let program = self.program();
        let is_optimized = config.optimization == Optimization::On;
        let size: Option<WorkgroupSize> =
            config.workgroup_size.filter(|size| *size != program.workgroup_size());
        let unit = match (size, self) {
            (Some(size), _) => Unit::of(&program.clone().with_workgroup_size(size))?,
            (None, Work::Program(program)) => Unit::of(program)?,
            (None, Work::Pipeline(pipeline)) if pipeline.backend != backend.profile().backend => {
                return Err(Error::foreign_pipeline(backend.profile().backend));
            }
            (None, Work::Pipeline(pipeline))
                if pipeline.options == options && pipeline.is_optimized == is_optimized =>
            {
                return pipeline.clone().with_code(backend, config.route);
            }
            (None, Work::Pipeline(pipeline)) => Unit::of(pipeline.program())?,
        };
        let unit = if is_optimized { unit.optimized() } else { unit };
        check_features(backend.profile(), &unit, options)?;
        let (whole, split, backend_name) = (None, Arc::default(), backend.profile().backend);
        Pipeline { unit, whole, split, options, is_optimized, backend: backend_name }
            .with_code(backend, config.route)
    }
}

impl Pipeline {
    /// Whether traps are notes in memory, which the segments of a schedule make, though it be one segment.
    pub(crate) fn notes_traps(&self, profile: &DeviceProfile) -> bool {
        self.unit.needs().traps && !profile.features.has(Feature::Traps)
    }

    /// The same with the code that a route needs for sure.
    fn with_code(mut self, backend: &dyn VyreBackend, route: Route) -> Result<Pipeline> {
        let by_device = matches!(route, Route::Auto | Route::Native)
            && backend.profile().features.has(Feature::NativeGridSync);
        let _span = tracing::debug_span!("compile", program = %self.program().name()).entered();
        let is_split = self.unit.needs().grid_sync && !by_device || self.notes_traps(backend.profile());
        if is_split {
            self.split(backend)?;
        } else if self.whole.is_none() {
            self.whole = Some(backend.compile(&self.unit, &self.options)?);
        }
        Ok(self)
    }
}

/// Refuses what the device does not have.
fn check_features(profile: &DeviceProfile, unit: &Unit, options: CompileOptions) -> Result<()> {
    let needs = unit.needs();
    let native = options.float_mode == FloatMode::Native;
    let wanted = [
        (native, "native float mode", Feature::NativeFloats),
        (needs.floats && !native, "exact float arithmetic", Feature::ExactFloats),
        (needs.atomics64, "a 64-bit atomic", Feature::Atomics64),
        (needs.orderings, "an atomic ordering other than relaxed", Feature::Orderings),
    ];
    for (is_wanted, what, feature) in wanted {
        if is_wanted && !profile.features.has(feature) {
            return Err(profile.unsupported(what, feature));
        }
    }
    Ok(())
}
