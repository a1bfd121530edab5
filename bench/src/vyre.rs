//! vyre on one of its backends, over resident buffers.

use crate::cases::Case;
use crate::contender::{Contender, Platform};
use crate::data::Role;
use anyhow::{Result, ensure};
use std::borrow::Cow;
use std::time::{Duration, Instant};
use vyre_driver::{
    Action, Batch, CompileOptions, Deadline, FloatMode, Launch, Optimization, RawHandle, Span, Unit,
    VyreBackend,
};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::grid::{self, Grid};
use vyre_foundation::{Layout, Name, Program};

/// A backend, as programs are compiled for it.
pub(crate) struct Vyre<B> {
    pub(crate) backend: B,
    pub(crate) name: &'static str,
    pub(crate) floats: FloatMode,
    pub(crate) optimization: Optimization,
    pub(crate) threads: Vec<usize>,
}

impl Vyre<CpuBackend> {
    /// The CPU backend with as many threads as it may be asked to use. It keeps nothing on disk, so that every run of
    /// the tool compiles.
    pub(crate) fn new(threads: &[usize]) -> Result<Vyre<CpuBackend>> {
        let most = threads.iter().copied().max().unwrap_or(1);
        let options = CpuOptions { threads: most, cache_folder: None, ..CpuOptions::default() };
        let backend = CpuBackend::with_options(options)?;
        let (floats, optimization) = (FloatMode::Exact, Optimization::On);
        Ok(Vyre { backend, name: "vyre", floats, optimization, threads: threads.to_vec() })
    }
}

impl<B: VyreBackend> Vyre<B> {
    fn run<'a>(&self, actions: impl IntoIterator<Item = Action<'a>>) -> Result<Vec<Option<Vec<u8>>>> {
        let mut batch = Batch::default();
        actions.into_iter().for_each(|action| batch.push(action));
        Ok(self.backend.run(batch, Deadline::NEVER)?.reads)
    }
}

impl<B: VyreBackend> Platform for Vyre<B> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> String {
        let profile = self.backend.profile();
        format!("vyre {}, {}", profile.version, profile.device)
    }

    fn threads(&self) -> Vec<usize> {
        self.threads.clone()
    }

    fn concerns(&self, case: &Case) -> bool {
        self.floats == FloatMode::Exact || case.has_floats()
    }

    fn prepare<'a>(&'a self, case: &'a Case) -> Result<Box<dyn Contender + 'a>> {
        let mut unit = Unit::new(Program::parse(case.text.vyre)?)?;
        if self.optimization == Optimization::On {
            unit = unit.optimized();
        }
        let grid = grid_of(case, unit.program())?;
        let pipeline = self.backend.compile(&unit, &CompileOptions { float_mode: self.floats })?;
        // From here on dropping frees what has been allocated.
        let mut prepared = Prepared { vyre: self, case, handles: Vec::new(), launch: Batch::default() };
        for buffer in &case.buffers {
            let bytes = buffer.initial.bytes();
            prepared.handles.push(self.backend.allocate(bytes.len() as u64)?);
        }
        let inputs = prepared.writes(|role| role == Role::Input);
        self.run(inputs)?;
        let bindings = prepared.handles.iter().map(|handle| Span::resident(*handle)).collect();
        prepared.launch.push(Action::Launch(Launch { pipeline, bindings, grid }));
        prepared.reset()?;
        Ok(Box::new(prepared))
    }
}

/// The grid of a case, after a check that the program declares the buffers that the case has.
fn grid_of(case: &Case, program: &Program) -> Result<Grid> {
    let declared: Vec<_> =
        program.buffers().iter().filter(|buffer| buffer.access().is_shared_by_grid()).collect();
    ensure!(declared.len() == case.buffers.len(), "{} declares other buffers than its case", case.name);
    let mut inputs = Vec::new();
    let mut lengths: Vec<(Name, u32)> = Vec::new();
    for (declared, buffer) in declared.iter().zip(&case.buffers) {
        if declared.consumes_input() {
            inputs.push(buffer.initial.bytes().len());
        } else {
            lengths.push((declared.name().clone(), u32::try_from(buffer.initial.len())?));
        }
    }
    let layout = Layout::new(program, &inputs, &lengths)?;
    let grid = grid::resolve(program, &layout, Some(case.grid()?))?;
    ensure!(
        grid.workgroup_size() == [case.workgroup_size[0] as u32, case.workgroup_size[1] as u32, 1],
        "{} has another workgroup size than its case",
        case.name
    );
    Ok(grid)
}

struct Prepared<'a, B: VyreBackend> {
    vyre: &'a Vyre<B>,
    case: &'a Case,
    handles: Vec<RawHandle>,
    /// One launch.
    launch: Batch<'static>,
}

impl<'a, B: VyreBackend> Prepared<'a, B> {
    /// Writes the initial contents of the buffers in some roles.
    fn writes(&self, which: impl Fn(Role) -> bool) -> Vec<Action<'a>> {
        let buffers = self.handles.iter().zip(&self.case.buffers).filter(|(_, buffer)| which(buffer.role));
        let write = |(handle, buffer): (&RawHandle, &'a crate::data::Buffer)| Action::Write {
            target: Span::resident(*handle),
            bytes: Cow::Borrowed(buffer.initial.bytes()),
        };
        buffers.map(write).collect()
    }
}

impl<B: VyreBackend> Contender for Prepared<'_, B> {
    fn reset(&mut self) -> Result<()> {
        self.vyre.run(self.writes(|role| role != Role::Input))?;
        Ok(())
    }

    fn run(&mut self, threads: usize) -> Result<Duration> {
        let mut batch = self.launch.clone();
        batch.threads = Some(threads);
        let start = Instant::now();
        self.vyre.backend.run(batch, Deadline::NEVER)?;
        Ok(start.elapsed())
    }

    fn results(&mut self) -> Result<Vec<Vec<u8>>> {
        let results = self.handles.iter().zip(&self.case.buffers).filter(|(_, buffer)| buffer.is_result());
        let reads = results.map(|(handle, _)| Action::Read { from: Span::resident(*handle) });
        Ok(self.vyre.run(reads)?.into_iter().flatten().collect())
    }
}

impl<B: VyreBackend> Drop for Prepared<'_, B> {
    fn drop(&mut self) {
        for handle in &self.handles {
            // Freeing what was just in use can only fail if the backend is gone.
            let _ = self.vyre.backend.free(*handle);
        }
    }
}
