//! What a dispatch will do, decided and checked before anything is allocated or launched.

use crate::backend::VyreBackend;
use crate::batch::{Memory, Span};
use crate::config::{DispatchConfig, Route};
use crate::error::{Error, Result};
use crate::handle::{HandleError, RawHandle};
use crate::pipeline::{Pipeline, Split};
use crate::profile::{DeviceProfile, Feature};
use std::borrow::Cow;
use vyre_foundation::grid::{self, Grid};
use vyre_foundation::{BufferAccess, BufferDecl, Layout, Program};

/// Where the memory of a slot comes from.
pub(crate) enum Source<'a> {
    /// The caller's bytes.
    Bytes(Cow<'a, [u8]>),
    /// Resident memory.
    Resident(Span),
    /// Zeros.
    Zeros,
}

/// The memory and the grid of a dispatch.
pub(crate) struct Plan<'a> {
    pub(crate) pipeline: Pipeline,
    pub(crate) grid: Grid,
    /// How its grid barriers run; native where it is one launch.
    pub(crate) route: Route,
    /// The segments, where it is not, or where a device without traps has them noted in memory.
    pub(crate) split: Option<Split>,
    /// The memory of each slot of the binding plan, with its size.
    pub(crate) slots: Vec<(Source<'a>, u64)>,
}

/// Whether the buffer of a resident dispatch is bound by the caller. Scratch belongs to the call.
fn is_bound(buffer: &BufferDecl) -> bool {
    buffer.access().is_shared_by_grid() && buffer.access() != BufferAccess::Scratch
}

/// The buffers for which a resident dispatch takes handles, in order.
pub(crate) fn bound_buffers(program: &Program) -> impl Iterator<Item = &BufferDecl> {
    program.buffers().iter().filter(|buffer| is_bound(buffer))
}

impl<'a> Plan<'a> {
    /// A dispatch over the caller's bytes.
    pub(crate) fn of_bytes(
        backend: &dyn VyreBackend,
        pipeline: Pipeline,
        inputs: Vec<Cow<'a, [u8]>>,
        config: &DispatchConfig,
    ) -> Result<Plan<'a>> {
        let sizes: Vec<usize> = inputs.iter().map(|bytes| bytes.len()).collect();
        let layout = Layout::new(pipeline.program(), &sizes, &config.lengths)?;
        let mut inputs = inputs.into_iter();
        Plan::new(backend, pipeline, &layout, config, |buffer| match buffer.consumes_input() {
            true => inputs.next().map_or(Source::Zeros, Source::Bytes),
            false => Source::Zeros,
        })
    }

    /// A dispatch over resident memory: one handle per buffer that is not scratch, in declaration order.
    pub(crate) fn of_residents(
        backend: &dyn VyreBackend,
        pipeline: Pipeline,
        handles: &[RawHandle],
        config: &DispatchConfig,
    ) -> Result<Plan<'a>> {
        let bound: Vec<&BufferDecl> = bound_buffers(pipeline.program()).collect();
        if bound.len() != handles.len() {
            let what =
                format!("{} resident buffers are given where the program has {}", handles.len(), bound.len());
            let help = "give one per buffer that is not scratch, workgroup or local, in declaration order";
            return Err(Error::Config { what, help });
        }
        let mut sizes = Vec::new();
        let mut lengths = config.lengths.clone();
        for (buffer, handle) in bound.iter().zip(handles) {
            let count = elements(buffer, *handle)?;
            if buffer.consumes_input() {
                sizes.push(count as usize * buffer.element().size());
            } else {
                lengths.push((buffer.name().clone(), count));
            }
        }
        let layout = Layout::new(pipeline.program(), &sizes, &lengths)?;
        let mut handles = handles.iter();
        Plan::new(backend, pipeline, &layout, config, |buffer| match is_bound(buffer) {
            true => handles.next().map_or(Source::Zeros, |handle| Source::Resident(Span::resident(*handle))),
            false => Source::Zeros,
        })
    }

    fn new(
        backend: &dyn VyreBackend,
        pipeline: Pipeline,
        layout: &Layout,
        config: &DispatchConfig,
        mut source: impl FnMut(&BufferDecl) -> Source<'a>,
    ) -> Result<Plan<'a>> {
        check_config(config)?;
        let program = pipeline.program();
        let grid = grid::resolve(program, layout, config.grid)?;
        let shared =
            program.buffers().iter().zip(layout.counts()).filter(|(b, _)| b.access().is_shared_by_grid());
        let slots = shared.map(|(buffer, count)| {
            let bytes = u64::from(*count) * buffer.element().size() as u64;
            (source(buffer), bytes)
        });
        let slots = slots.collect();
        let mut plan = Plan { pipeline, grid, route: Route::Native, split: None, slots };
        plan.check_limits(backend.profile())?;
        plan.route = plan.choose_route(backend.profile(), config.route)?;
        if plan.route != Route::Native || plan.pipeline.notes_traps(backend.profile()) {
            let split = plan.pipeline.split(backend)?;
            split.schedule.check_grid(grid, backend.profile().backend)?;
            plan.split = Some(split);
            plan.check_aliases()?;
        }
        plan.check_budget(backend.profile(), config)?;
        Ok(plan)
    }

    /// The buffers of the slots.
    pub(crate) fn buffers(&self) -> &[BufferDecl] {
        self.pipeline.unit().bindings().slots()
    }

    /// The caller's resident memory.
    pub(crate) fn residents(&self) -> impl Iterator<Item = Span> {
        self.slots.iter().filter_map(|(source, _)| match source {
            Source::Resident(span) => Some(*span),
            _ => None,
        })
    }

    /// Refuses memory in two slots of which one writes, also where no segment has both.
    fn check_aliases(&self) -> Result<()> {
        let slots: Vec<_> = self.buffers().iter().zip(&self.slots).collect();
        for (i, (first, (source, _))) in slots.iter().enumerate() {
            for (second, (other, _)) in &slots[i + 1..] {
                let (Source::Resident(a), Source::Resident(b)) = (source, other) else { continue };
                let is_written = first.access().allows_store() || second.access().allows_store();
                if let (true, Memory::Resident(handle)) = (is_written && a.overlaps(*b), a.memory) {
                    return Err(HandleError::Aliased(handle).into());
                }
            }
        }
        Ok(())
    }

    fn check_limits(&self, profile: &DeviceProfile) -> Result<()> {
        let limits = &profile.limits;
        for (buffer, (_, bytes)) in self.buffers().iter().zip(&self.slots) {
            if *bytes > limits.max_buffer_bytes {
                let (what, available) = (format!("`{}`", buffer.name()), Some(limits.max_buffer_bytes));
                return Err(Error::OutOfMemory { what, asked: *bytes, available });
            }
        }
        let refuse = |feature: String, help: String| {
            Err(Error::Unsupported { feature, backend: profile.backend, help })
        };
        let workgroups = self.grid.workgroups();
        if workgroups.iter().zip(limits.max_workgroups).any(|(asked, most)| *asked > most) {
            let help = format!("use at most {:?}, and let each invocation do more", limits.max_workgroups);
            return refuse(format!("a grid of {workgroups:?} workgroups"), help);
        }
        let invocations: u64 = self.grid.workgroup_size().iter().map(|n| u64::from(*n)).product();
        if invocations > u64::from(limits.max_workgroup_invocations) {
            let help = format!("use at most {}", limits.max_workgroup_invocations);
            return refuse(format!("a workgroup of {invocations} invocations"), help);
        }
        let of_workgroup = self.pipeline.program().buffers().iter();
        let of_workgroup = of_workgroup.filter(|b| b.access() == BufferAccess::Workgroup);
        let bytes: u64 =
            of_workgroup.map(|b| u64::from(b.count().unwrap_or(0)) * b.element().size() as u64).sum();
        if bytes > limits.max_workgroup_bytes {
            let help = format!("use at most {}", limits.max_workgroup_bytes);
            return refuse(format!("workgroup memory of {bytes} bytes"), help);
        }
        Ok(())
    }

    /// The route of the dispatch: the one that is asked for, or the first that can run.
    fn choose_route(&self, profile: &DeviceProfile, asked: Route) -> Result<Route> {
        if !self.pipeline.unit().needs().grid_sync {
            return Ok(Route::Native);
        }
        let features = profile.features;
        let fits = self.pipeline.compiled().is_some_and(|compiled| compiled.fits_natively(self.grid));
        let refuse = |feature: Feature| {
            let what = format!("the route `{asked}` for grid barriers");
            Err(profile.unsupported(what, feature))
        };
        match asked {
            Route::Auto | Route::Native if fits => Ok(Route::Native),
            Route::Native if !features.has(Feature::NativeGridSync) => refuse(Feature::NativeGridSync),
            Route::Native => {
                let workgroups = self.grid.workgroup_count();
                Err(Error::ResidencyExceeded { backend: profile.backend, workgroups })
            }
            Route::Auto | Route::Resident if features.has(Feature::Resident) => Ok(Route::Resident),
            Route::Auto | Route::Host if features.has(Feature::HostGridSync) => Ok(Route::Host),
            Route::Resident => refuse(Feature::Resident),
            Route::Auto | Route::Host => refuse(Feature::HostGridSync),
        }
    }

    fn check_budget(&self, profile: &DeviceProfile, config: &DispatchConfig) -> Result<()> {
        let Some(budget) = config.memory_budget else { return Ok(()) };
        let needed = self.needed_bytes(profile, config.fixpoint_iterations.is_some());
        if needed > budget { Err(Error::OverBudget { needed, budget }) } else { Ok(()) }
    }

    /// How much memory the dispatch allocates: buffers that are not the caller's, hidden storage, snapshots.
    pub(crate) fn needed_bytes(&self, profile: &DeviceProfile, is_fixpoint: bool) -> u64 {
        let in_place = profile.features.has(Feature::HostMemory);
        let slots = self.buffers().iter().zip(&self.slots).map(|(buffer, (source, bytes))| {
            let memory = match source {
                Source::Resident(_) => 0,
                // What the call owns it must keep between passes; what it was lent stays where it is.
                Source::Bytes(Cow::Owned(_)) if is_fixpoint || self.split.is_some() => *bytes,
                Source::Bytes(_) if in_place && !buffer.access().allows_store() => 0,
                _ => *bytes,
            };
            let snapshot = if is_fixpoint && buffer.produces_output() { *bytes } else { 0 };
            memory.saturating_add(snapshot)
        });
        let hidden = match &self.split {
            Some(split) => {
                let of_code = split.code.iter().map(|code| code.hidden_bytes(self.grid)).max();
                split.schedule.hidden_bytes(self.grid).saturating_add(of_code.unwrap_or(0))
            }
            None => self.pipeline.compiled().map_or(0, |compiled| compiled.hidden_bytes(self.grid)),
        };
        slots.fold(hidden, u64::saturating_add)
    }
}

/// Refuses settings that contradict themselves.
fn check_config(config: &DispatchConfig) -> Result<()> {
    if config.fixpoint_iterations == Some(0) {
        let what = "a fixpoint of 0 passes runs nothing".to_owned();
        return Err(Error::Config { what, help: "ask for at least 1 pass" });
    }
    if config.threads == Some(0) {
        let what = "0 threads run nothing".to_owned();
        return Err(Error::Config { what, help: "ask for at least 1 thread" });
    }
    Ok(())
}

/// How many elements of a buffer a handle holds.
fn elements(buffer: &BufferDecl, handle: RawHandle) -> Result<u32> {
    let size = buffer.element().size() as u64;
    let given = handle.bytes();
    let expected = buffer.count().map_or(given / size * size, |count| u64::from(count) * size);
    match u32::try_from(given / size) {
        Ok(count) if expected == given => Ok(count),
        _ => {
            let help = "a buffer is bound with exactly the bytes of its elements";
            Err(HandleError::Size { handle, expected, given, help }.into())
        }
    }
}
