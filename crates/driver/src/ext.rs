//! The user half of the contract: what every backend gives its users, made of the required half alone.

use crate::backend::VyreBackend;
use crate::bytes::copied;
use crate::config::{DispatchConfig, Route};
use crate::deadline::Deadline;
use crate::device_buffer::{DeviceBuffer, DeviceElement, DeviceMemory};
use crate::engine::{Finished, Job, MOST_PASSES};
use crate::error::{Error, Result};
use crate::handle::{Generation, RawHandle};
use crate::output::{DispatchOutput, DispatchReport, PipelineCacheSnapshot, Timing};
use crate::pending::PendingDispatch;
use crate::pipeline::{Pipeline, Work};
use crate::plan::{Plan, bound_buffers};
use crate::profile::Feature;
use crate::resident::{self, ResidentRange, ResidentStep, deliver};
use crate::telemetry::Counters;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use vyre_foundation::grid::Grid;
use vyre_foundation::{AtomicOp, BinOp, Element, Layout, Program, SubgroupOp, UnOp, grid};

/// What every backend gives its users. Nobody implements it: every [`VyreBackend`] has it.
///
/// Inputs are the bytes of the `read`, `uniform` and `read_write` buffers, outputs those of the `read_write`,
/// `output` and `write` buffers, each in declaration order. `work` is `&program` or `&pipeline`. Outputs change
/// only after success.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig, ReferenceBackend};
/// use vyre_foundation::Program;
///
/// let text = "program double { buffer a: read_write u32[]; a[global_id.x] = a[global_id.x] * 2; }";
/// let program = Program::parse(text).unwrap();
/// let backend = ReferenceBackend::new();
/// let output = backend.dispatch_borrowed(&program, &[&[1, 0, 0, 0, 2, 0, 0, 0]], &DispatchConfig::new())?;
/// assert_eq!(output.outputs, [[2, 0, 0, 0, 4, 0, 0, 0]]);
/// # Ok::<(), vyre_driver::Error>(())
/// ```
pub trait BackendExt: VyreBackend {
    /// Runs a program on bytes that the call may keep: `read_write` buffers are not copied.
    fn dispatch<'w>(
        &self,
        work: impl Into<Work<'w>>,
        inputs: Vec<Vec<u8>>,
        config: &DispatchConfig,
    ) -> Result<DispatchOutput> {
        if config.fixpoint_iterations.is_some() {
            // The bytes outlive every pass here, so they need not be kept anywhere else.
            let lent = inputs.iter().map(|bytes| Cow::Borrowed(&bytes[..])).collect();
            return dispatch(&self, work.into(), lent, config, false);
        }
        let inputs = inputs.into_iter().map(Cow::Owned).collect();
        dispatch(&self, work.into(), inputs, config, false)
    }

    /// Runs a program on the caller's bytes.
    fn dispatch_borrowed<'w>(
        &self,
        work: impl Into<Work<'w>>,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<DispatchOutput> {
        dispatch(&self, work.into(), borrowed(inputs), config, false)
    }

    /// As [`BackendExt::dispatch_borrowed`], into buffers of the caller, which are used again where they have
    /// room.
    fn dispatch_borrowed_into<'w>(
        &self,
        work: impl Into<Work<'w>>,
        inputs: &[&[u8]],
        outputs: &mut Vec<Vec<u8>>,
        config: &DispatchConfig,
    ) -> Result<DispatchReport> {
        let finished = finish(&self, work.into(), borrowed(inputs), config, None)?;
        deliver(&self, finished.outputs, outputs);
        Ok(finished.report)
    }

    /// As [`BackendExt::dispatch_borrowed`], and tells how long it took.
    fn dispatch_borrowed_timed<'w>(
        &self,
        work: impl Into<Work<'w>>,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<DispatchOutput> {
        dispatch(&self, work.into(), borrowed(inputs), config, true)
    }

    /// Starts a program on bytes that the call keeps, and returns at once.
    fn dispatch_async<'w>(
        self: &Arc<Self>,
        work: impl Into<Work<'w>>,
        inputs: Vec<Vec<u8>>,
        config: &DispatchConfig,
    ) -> Result<PendingDispatch>
    where
        Self: 'static,
    {
        let backend: Arc<dyn VyreBackend> = Arc::new(Arc::clone(self));
        let pipeline = work.into().pipeline(&*backend, config)?;
        let inputs = inputs.into_iter().map(Cow::Owned).collect();
        let plan = Plan::of_bytes(&*backend, pipeline, inputs, config)?;
        let deadline = config.deadline();
        let job = Job::new(plan, config, MOST_PASSES, deadline);
        backend.telemetry().bytes_in(job.bytes_in());
        PendingDispatch::start(backend, job, deadline)
    }

    /// Starts a program on a copy of the caller's bytes, and returns at once.
    fn dispatch_borrowed_async<'w>(
        self: &Arc<Self>,
        work: impl Into<Work<'w>>,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<PendingDispatch>
    where
        Self: 'static,
    {
        self.dispatch_async(work, copies(inputs)?, config)
    }

    /// New resident memory, all zeros.
    fn allocate_resident(&self, bytes: u64) -> Result<RawHandle> {
        self.allocate(bytes)
    }

    /// Frees resident memory, after the work that uses it.
    fn free_resident(&self, handle: RawHandle) -> Result<()> {
        self.free(handle)
    }

    /// Writes all of a resident buffer.
    fn upload_resident(&self, handle: RawHandle, bytes: &[u8]) -> Result<()> {
        self.upload_resident_many(&[(handle, bytes)])
    }

    /// Writes all of several resident buffers, or none.
    fn upload_resident_many(&self, uploads: &[(RawHandle, &[u8])]) -> Result<()> {
        uploads.iter().try_for_each(|(handle, bytes)| resident::check_size(*handle, bytes))?;
        resident::upload(&self, uploads.iter().map(|(handle, bytes)| (*handle, 0, *bytes)))
    }

    /// Writes a part of a resident buffer.
    fn upload_resident_at(&self, handle: RawHandle, offset: u64, bytes: &[u8]) -> Result<()> {
        self.upload_resident_at_many(&[(handle, offset, bytes)])
    }

    /// Writes parts of resident buffers, all or none.
    fn upload_resident_at_many(&self, uploads: &[(RawHandle, u64, &[u8])]) -> Result<()> {
        resident::upload(&self, uploads.iter().copied())
    }

    /// The bytes of a resident buffer.
    fn download_resident(&self, handle: RawHandle) -> Result<Vec<u8>> {
        self.download_resident_range(handle.into())
    }

    /// The bytes of a resident buffer, into a buffer of the caller.
    fn download_resident_into(&self, handle: RawHandle, output: &mut Vec<u8>) -> Result<()> {
        self.download_resident_range_into(handle.into(), output)
    }

    /// The bytes of a range.
    fn download_resident_range(&self, range: ResidentRange) -> Result<Vec<u8>> {
        let mut output = Vec::new();
        self.download_resident_range_into(range, &mut output)?;
        Ok(output)
    }

    /// The bytes of a range, into a buffer of the caller.
    fn download_resident_range_into(&self, range: ResidentRange, output: &mut Vec<u8>) -> Result<()> {
        let bytes = resident::download(&self, &[range])?;
        let mut outputs = vec![std::mem::take(output)];
        deliver(&self, bytes, &mut outputs);
        *output = outputs.pop().unwrap_or_default();
        Ok(())
    }

    /// The bytes of several ranges, into buffers of the caller.
    fn download_resident_ranges_into(
        &self,
        ranges: &[ResidentRange],
        outputs: &mut Vec<Vec<u8>>,
    ) -> Result<()> {
        deliver(&self, resident::download(&self, ranges)?, outputs);
        Ok(())
    }

    /// Runs a program over resident memory: one handle per buffer that is not scratch, workgroup or local, in
    /// declaration order. `output` and `write` buffers are zeroed first.
    fn dispatch_resident_timed<'w>(
        &self,
        work: impl Into<Work<'w>>,
        buffers: &[RawHandle],
        config: &DispatchConfig,
    ) -> Result<DispatchReport> {
        let start = Instant::now();
        let deadline = config.deadline();
        let _span = span(config);
        let pipeline = work.into().pipeline(&self, config)?;
        let plan = Plan::of_residents(&self, pipeline, buffers, config)?;
        let prepared = start.elapsed();
        let finished = Job::new(plan, config, 1, deadline).run(&self)?;
        let timing = Timing { total: start.elapsed(), prepare: prepared, device: finished.device };
        Ok(DispatchReport { timing: Some(timing), ..finished.report })
    }

    /// Runs dispatches over resident memory one after the other, then reads ranges into buffers of the caller.
    fn dispatch_resident_sequence_read_ranges_into(
        &self,
        steps: &[ResidentStep<'_>],
        ranges: &[ResidentRange],
        outputs: &mut Vec<Vec<u8>>,
    ) -> Result<()> {
        self.dispatch_resident_repeated_sequence_read_ranges_into(steps, 1, ranges, outputs)
    }

    /// As [`BackendExt::dispatch_resident_sequence_read_ranges_into`], and tells how long it took.
    fn dispatch_resident_sequence_read_ranges_timed_into(
        &self,
        steps: &[ResidentStep<'_>],
        ranges: &[ResidentRange],
        outputs: &mut Vec<Vec<u8>>,
    ) -> Result<Timing> {
        let (bytes, timing) = resident::sequence(&self, steps, 1, ranges)?;
        deliver(&self, bytes, outputs);
        Ok(timing)
    }

    /// Runs a sequence so many times, then reads ranges.
    fn dispatch_resident_repeated_sequence_read_ranges_into(
        &self,
        steps: &[ResidentStep<'_>],
        rounds: u32,
        ranges: &[ResidentRange],
        outputs: &mut Vec<Vec<u8>>,
    ) -> Result<()> {
        let (bytes, _) = resident::sequence(&self, steps, rounds, ranges)?;
        deliver(&self, bytes, outputs);
        Ok(())
    }

    /// Runs a program whose grid barriers are not left to the device: segment by segment over memory of the device, or
    /// over memory of the host where the configuration says so or the device keeps none.
    fn dispatch_with_grid_sync_split<'w>(
        &self,
        work: impl Into<Work<'w>>,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<DispatchOutput> {
        self.dispatch_borrowed(work, inputs, &split_config(&self, config))
    }

    /// As [`BackendExt::dispatch_with_grid_sync_split`], into buffers of the caller.
    fn dispatch_with_grid_sync_split_into<'w>(
        &self,
        work: impl Into<Work<'w>>,
        inputs: &[&[u8]],
        outputs: &mut Vec<Vec<u8>>,
        config: &DispatchConfig,
    ) -> Result<DispatchReport> {
        self.dispatch_borrowed_into(work, inputs, outputs, &split_config(&self, config))
    }

    /// As [`BackendExt::dispatch_with_grid_sync_split`], and tells how long it took.
    fn dispatch_with_grid_sync_split_timed<'w>(
        &self,
        work: impl Into<Work<'w>>,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<DispatchOutput> {
        self.dispatch_borrowed_timed(work, inputs, &split_config(&self, config))
    }

    /// As [`BackendExt::dispatch_resident_timed`], with the grid barriers not left to the device.
    fn dispatch_resident_with_grid_sync_split_timed<'w>(
        &self,
        work: impl Into<Work<'w>>,
        buffers: &[RawHandle],
        config: &DispatchConfig,
    ) -> Result<DispatchReport> {
        self.dispatch_resident_timed(work, buffers, &split_config(&self, config))
    }

    /// Repeats a program over resident memory until it changes nothing, at most so many times, with its grid barriers
    /// not left to the device; then reads ranges into buffers of the caller.
    fn dispatch_resident_grid_sync_fixpoint_into<'w>(
        &self,
        work: impl Into<Work<'w>>,
        buffers: &[RawHandle],
        passes: u32,
        ranges: &[ResidentRange],
        outputs: &mut Vec<Vec<u8>>,
        config: &DispatchConfig,
    ) -> Result<DispatchReport> {
        let config = split_config(&self, config).fixpoint(passes);
        let report = self.dispatch_resident_timed(work, buffers, &config)?;
        self.download_resident_ranges_into(ranges, outputs)?;
        Ok(report)
    }

    /// New typed memory on the device, all zeros.
    fn device_buffer<T: DeviceElement>(self: &Arc<Self>, len: usize) -> Result<DeviceBuffer<T>>
    where
        Self: 'static,
    {
        DeviceBuffer::new(Arc::new(Arc::clone(self)), len)
    }

    /// New typed memory on the device with these values.
    fn device_buffer_from<T: DeviceElement>(self: &Arc<Self>, values: &[T]) -> Result<DeviceBuffer<T>>
    where
        Self: 'static,
    {
        let buffer = self.device_buffer(values.len())?;
        buffer.upload(values)?;
        Ok(buffer)
    }

    /// As [`BackendExt::dispatch_resident_timed`], over typed memory, whose types must fit.
    fn dispatch_with_device_buffers<'w>(
        &self,
        work: impl Into<Work<'w>>,
        buffers: &[&dyn DeviceMemory],
        config: &DispatchConfig,
    ) -> Result<DispatchReport> {
        let work = work.into();
        for (declared, given) in bound_buffers(work.program()).zip(buffers) {
            let Some(element) = given.element() else { continue };
            let is_half = matches!(declared.element(), Element::F16 | Element::BF16);
            if element != declared.element() && !(is_half && element == Element::U16) {
                let what = format!("`{}` holds {}, not {element}", declared.name(), declared.element());
                return Err(Error::Config { what, help: "bind a device buffer of that type" });
            }
        }
        let handles: Vec<RawHandle> = buffers.iter().map(|buffer| buffer.handle()).collect();
        self.dispatch_resident_timed(work, &handles, config)
    }

    /// Compiles a program, or finds it compiled.
    fn compile_native(&self, program: &Program, config: &DispatchConfig) -> Result<Pipeline> {
        Work::Program(program).pipeline(&self, config)
    }

    /// As [`BackendExt::compile_native`], to be shared between threads.
    fn compile_native_shared(&self, program: &Program, config: &DispatchConfig) -> Result<Arc<Pipeline>> {
        self.compile_native(program, config).map(Arc::new)
    }

    /// Makes the first dispatch of a program a warm one: compiles it and wakes the device.
    fn prepare(&self, program: &Program, config: &DispatchConfig) -> Result<()> {
        self.compile_native(program, config)?;
        self.flush()
    }

    /// What is compiled.
    fn pipeline_cache_snapshot(&self) -> PipelineCacheSnapshot {
        let counters = self.telemetry().snapshot();
        PipelineCacheSnapshot {
            hits: counters.memory_hits,
            misses: counters.memory_misses,
            disk_hits: counters.disk_hits,
            disk_misses: counters.disk_misses,
            entries: counters.pipelines_kept.saturating_sub(counters.pipelines_dropped),
            bytes: counters.code_kept.saturating_sub(counters.code_dropped),
        }
    }

    /// Every number about the backend with its stable name, for export.
    fn backend_metric_snapshot(&self) -> Vec<(&'static str, u64)> {
        let counters = self.telemetry().snapshot();
        let cache = self.pipeline_cache_snapshot();
        let health = self.health();
        let resident = counters.resident_allocated.saturating_sub(counters.resident_freed);
        let gauges = [
            ("resident_bytes", resident),
            ("pipeline_entries", cache.entries),
            ("pipeline_bytes", cache.bytes),
            ("device_lost", u64::from(health.lost)),
            ("generation", health.generation.0),
        ];
        counters.iter().chain(gauges).collect()
    }

    /// What the backend has done so far.
    fn snapshot_dispatch_telemetry(&self) -> Counters {
        self.telemetry().snapshot()
    }

    /// Whether the device has a feature.
    fn supports(&self, feature: Feature) -> bool {
        self.profile().features.has(feature)
    }

    /// Whether atomics work on 64-bit elements.
    fn supports_atomics64(&self) -> bool {
        self.supports(Feature::Atomics64)
    }

    /// Whether atomics may have other orderings than relaxed.
    fn supports_orderings(&self) -> bool {
        self.supports(Feature::Orderings)
    }

    /// Whether a launch tells which invocation has trapped.
    fn supports_traps(&self) -> bool {
        self.supports(Feature::Traps)
    }

    /// Whether a launch that runs can be stopped.
    fn supports_interrupts(&self) -> bool {
        self.supports(Feature::Interrupts)
    }

    /// Whether floats equal the reference bit for bit.
    fn supports_exact_floats(&self) -> bool {
        self.supports(Feature::ExactFloats)
    }

    /// Whether a program may ask for the device's own floats.
    fn supports_native_floats(&self) -> bool {
        self.supports(Feature::NativeFloats)
    }

    /// Whether a grid barrier can be kept inside one launch, on a grid that fits.
    fn supports_native_grid_sync(&self) -> bool {
        self.supports(Feature::NativeGridSync)
    }

    /// Whether memory stays on the device between calls.
    fn supports_resident(&self) -> bool {
        self.supports(Feature::Resident)
    }

    /// Whether a program with grid barriers may run segment by segment from the host.
    fn allows_host_grid_sync_split(&self) -> bool {
        self.supports(Feature::HostGridSync)
    }

    /// The largest buffer, in bytes.
    fn max_buffer_bytes(&self) -> u64 {
        self.profile().limits.max_buffer_bytes
    }

    /// The most workgroups on each axis.
    fn max_workgroups(&self) -> [u32; 3] {
        self.profile().limits.max_workgroups
    }

    /// The most invocations of a workgroup.
    fn max_workgroup_invocations(&self) -> u32 {
        self.profile().limits.max_workgroup_invocations
    }

    /// The most memory of a workgroup, in bytes.
    fn max_workgroup_bytes(&self) -> u64 {
        self.profile().limits.max_workgroup_bytes
    }

    /// The operations that programs may use, by their spelling. Every backend has all of them; what differs
    /// between devices are [features](Feature).
    fn supported_ops(&self) -> Vec<&'static str> {
        let binary = BinOp::ALL.into_iter().map(BinOp::spelling);
        let unary = UnOp::ALL.into_iter().map(UnOp::spelling);
        let atomic = AtomicOp::ALL.into_iter().map(AtomicOp::spelling);
        let subgroup = SubgroupOp::ALL.into_iter().map(SubgroupOp::spelling);
        binary.chain(unary).chain(atomic).chain(subgroup).collect()
    }

    /// The subgroup size of a program that names none. It belongs to the program: what the hardware has is
    /// never seen.
    fn subgroup_size(&self) -> u32 {
        Program::DEFAULT_SUBGROUP_SIZE
    }

    /// Whether the grid barriers of a program can be kept inside one launch on the grid of a dispatch with these
    /// input sizes in bytes.
    fn cooperative_grid_sync_fits<'w>(
        &self,
        work: impl Into<Work<'w>>,
        input_bytes: &[usize],
        config: &DispatchConfig,
    ) -> Result<bool> {
        let pipeline = work.into().pipeline(&self, config)?;
        let layout = Layout::new(pipeline.program(), input_bytes, &config.lengths)?;
        let grid: Grid = grid::resolve(pipeline.program(), &layout, config.grid)?;
        Ok(pipeline.compiled().is_some_and(|compiled| compiled.fits_natively(grid)))
    }

    /// Waits for what this thread has submitted.
    fn flush(&self) -> Result<()> {
        self.run(crate::Batch::default(), Deadline::NEVER).map(|_| ())
    }

    /// Whether the device is lost.
    fn device_lost(&self) -> bool {
        self.health().lost
    }

    /// Takes the device into use again. All handles become stale.
    fn try_recover(&self) -> Result<Generation> {
        self.recover()
    }
}

impl<B: VyreBackend + ?Sized> BackendExt for B {}

fn borrowed<'a>(inputs: &[&'a [u8]]) -> Vec<Cow<'a, [u8]>> {
    inputs.iter().map(|bytes| Cow::Borrowed(*bytes)).collect()
}

fn copies(inputs: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
    inputs.iter().map(|bytes| copied(bytes, "a copy of an input")).collect()
}

/// The configuration with a route that runs segment by segment.
fn split_config(backend: &dyn VyreBackend, config: &DispatchConfig) -> DispatchConfig {
    let route = match config.route {
        Route::Host => Route::Host,
        _ if backend.profile().features.has(Feature::Resident) => Route::Resident,
        _ => Route::Host,
    };
    config.clone().route(route)
}

fn span(config: &DispatchConfig) -> tracing::span::EnteredSpan {
    tracing::debug_span!("dispatch", label = config.label.as_deref()).entered()
}

fn dispatch(
    backend: &dyn VyreBackend,
    work: Work<'_>,
    inputs: Vec<Cow<'_, [u8]>>,
    config: &DispatchConfig,
    is_timed: bool,
) -> Result<DispatchOutput> {
    let finished = finish(backend, work, inputs, config, is_timed.then(Instant::now))?;
    let telemetry = backend.telemetry();
    telemetry.bytes_out(finished.outputs.iter().map(|output| output.len() as u64).sum());
    telemetry.outputs_appended(finished.outputs.len() as u64);
    Ok(DispatchOutput { outputs: finished.outputs, report: finished.report })
}

/// One blocking dispatch over bytes; with its timing where a start is given.
fn finish(
    backend: &dyn VyreBackend,
    work: Work<'_>,
    inputs: Vec<Cow<'_, [u8]>>,
    config: &DispatchConfig,
    start: Option<Instant>,
) -> Result<Finished> {
    let deadline = config.deadline();
    let _span = span(config);
    let pipeline = work.pipeline(backend, config)?;
    let plan = Plan::of_bytes(backend, pipeline, inputs, config)?;
    let job = Job::new(plan, config, 1, deadline);
    let prepared = start.map(|start| start.elapsed());
    backend.telemetry().bytes_in(job.bytes_in());
    let mut finished = job.run(backend)?;
    if let (Some(start), Some(prepare)) = (start, prepared) {
        finished.report.timing = Some(Timing { total: start.elapsed(), prepare, device: finished.device });
    }
    Ok(finished)
}
