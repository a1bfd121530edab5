//! What users dispatch: a program, or a program that was compiled before.

use crate::backend::{CompiledPipeline, VyreBackend};
use crate::config::{CompileOptions, DispatchConfig, FloatMode};
use crate::error::{Error, Result};
use crate::profile::{DeviceProfile, Feature};
use crate::unit::Unit;
use std::fmt;
use std::sync::Arc;
use vyre_foundation::{Program, WorkgroupSize};

/// A program with its code for one backend. Cloning it is cheap.
#[derive(Clone)]
pub struct Pipeline {
    unit: Unit,
    compiled: Arc<dyn CompiledPipeline>,
    options: CompileOptions,
    backend: &'static str,
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

    /// What a launch runs.
    pub fn compiled(&self) -> &Arc<dyn CompiledPipeline> {
        &self.compiled
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
        let size: Option<WorkgroupSize> =
            config.workgroup_size.filter(|size| *size != program.workgroup_size());
        let unit = match (size, self) {
            (Some(size), _) => Unit::of(&program.clone().with_workgroup_size(size))?,
            (None, Work::Program(program)) => Unit::of(program)?,
            (None, Work::Pipeline(pipeline)) if pipeline.backend != backend.profile().backend => {
                return Err(Error::foreign_pipeline(backend.profile().backend));
            }
            (None, Work::Pipeline(pipeline)) if pipeline.options == options => return Ok(pipeline.clone()),
            (None, Work::Pipeline(pipeline)) => pipeline.unit.clone(),
        };
        check_features(backend.profile(), &unit, options)?;
        let _span = tracing::debug_span!("compile", program = %unit.program().name()).entered();
        let compiled = backend.compile(&unit, &options)?;
        Ok(Pipeline { unit, compiled, options, backend: backend.profile().backend })
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
