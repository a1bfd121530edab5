//! Transfers to and from resident memory, and sequences of dispatches over it.

use crate::backend::VyreBackend;
use crate::batch::{Action, Batch, Launch, Memory, Span, Temporary};
use crate::config::DispatchConfig;
use crate::deadline::Deadline;
use crate::engine::{Job, starts_as_zeros};
use crate::error::{Error, Result};
use crate::handle::{HandleError, RawHandle, check_range};
use crate::output::Timing;
use crate::pipeline::Work;
use crate::plan::{Plan, Source};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vyre_foundation::BufferAccess;

/// How many launches one batch of a sequence has, at most, unless one round of the sequence has more.
const MOST_LAUNCHES: usize = 1024;

/// A range of resident memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResidentRange {
    /// Which memory.
    pub handle: RawHandle,
    /// Where the range starts.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

impl From<RawHandle> for ResidentRange {
    /// All of it.
    fn from(handle: RawHandle) -> ResidentRange {
        ResidentRange { handle, offset: 0, bytes: handle.bytes() }
    }
}

impl ResidentRange {
    fn span(self) -> Result<Span> {
        check_range(self.handle, self.offset, self.bytes)?;
        Ok(Span { memory: Memory::Resident(self.handle), offset: self.offset, bytes: self.bytes })
    }
}

/// One dispatch of a sequence over resident memory.
#[derive(Clone, Copy)]
pub struct ResidentStep<'a> {
    /// What to run.
    pub work: Work<'a>,
    /// The memory: one handle per buffer that is not scratch, workgroup or local, in declaration order.
    pub buffers: &'a [RawHandle],
    /// How to run it. The shortest timeout of a sequence holds for all of it.
    pub config: &'a DispatchConfig,
}

impl<'a> ResidentStep<'a> {
    /// A dispatch of a program or pipeline over this memory.
    pub fn new(
        work: impl Into<Work<'a>>,
        buffers: &'a [RawHandle],
        config: &'a DispatchConfig,
    ) -> ResidentStep<'a> {
        ResidentStep { work: work.into(), buffers, config }
    }
}

/// Writes bytes to ranges, all or none. Each range is as long as its bytes.
pub(crate) fn upload<'a>(
    backend: &dyn VyreBackend,
    writes: impl Iterator<Item = (RawHandle, u64, &'a [u8])>,
) -> Result<()> {
    let _span = tracing::debug_span!("upload").entered();
    let mut batch = Batch::default();
    let mut total = 0;
    for (handle, offset, bytes) in writes {
        let target = ResidentRange { handle, offset, bytes: bytes.len() as u64 }.span()?;
        total += target.bytes;
        batch.push(Action::Write { target, bytes: Cow::Borrowed(bytes) });
    }
    backend.run(batch, Deadline::NEVER)?;
    backend.telemetry().bytes_in(total);
    Ok(())
}

/// The error for bytes that are not as long as the buffer.
pub(crate) fn check_size(handle: RawHandle, bytes: &[u8]) -> Result<()> {
    let given = bytes.len() as u64;
    if given == handle.bytes() {
        return Ok(());
    }
    let help = "give all of the buffer, or use `upload_resident_at` for a part of it";
    Err(HandleError::Size { handle, expected: handle.bytes(), given, help }.into())
}

/// Reads ranges.
pub(crate) fn download(backend: &dyn VyreBackend, ranges: &[ResidentRange]) -> Result<Vec<Vec<u8>>> {
    let _span = tracing::debug_span!("read_back").entered();
    let mut batch = Batch::default();
    for range in ranges {
        batch.push(Action::Read { from: range.span()? });
    }
    all_reads(backend.run(batch, Deadline::NEVER)?.reads)
}

fn all_reads(reads: Vec<Option<Vec<u8>>>) -> Result<Vec<Vec<u8>>> {
    let missing = || Error::Internal("the backend did not give back what was read".to_owned());
    reads.into_iter().collect::<Option<_>>().ok_or_else(missing)
}

/// Runs dispatches one after the other, `rounds` times, and then reads ranges. Nothing goes through the host in
/// between. Gives the bytes and how long it took.
pub(crate) fn sequence(
    backend: &dyn VyreBackend,
    steps: &[ResidentStep<'_>],
    rounds: u32,
    ranges: &[ResidentRange],
) -> Result<(Vec<Vec<u8>>, Timing)> {
    let start = Instant::now();
    let limit = steps.iter().filter_map(|step| step.config.timeout).min();
    let deadline = limit.map_or(Deadline::NEVER, Deadline::after);
    let spans: Vec<Span> = ranges.iter().map(|range| range.span()).collect::<Result<_>>()?;
    let plans: Vec<Plan<'static>> = steps.iter().map(|step| plan(backend, step)).collect::<Result<_>>()?;
    if plans.iter().any(|plan| plan.split.is_some()) {
        // A read of nothing looks up its handle: a wrong one fails before anything has run.
        let mut batch = Batch::default();
        for from in plans.iter().flat_map(Plan::residents).chain(spans.iter().copied()) {
            batch.push(Action::Read { from: Span { bytes: 0, ..from } });
        }
        backend.run(batch, deadline)?;
        return one_by_one(backend, steps, rounds, spans, (start, deadline));
    }
    let threads = steps.iter().filter_map(|step| step.config.threads).min();
    let in_batch = (MOST_LAUNCHES / plans.len().max(1)).max(1) as u32;
    // A read of nothing looks up its handle: a wrong range fails before anything has run.
    let nothing = spans.iter().map(|span| Action::Read { from: Span { bytes: 0, ..*span } });
    let prepare = start.elapsed();
    let mut device: Option<u64> = None;
    let mut left = rounds;
    loop {
        let now = left.min(in_batch);
        left -= now;
        let mut batch = Batch { threads, ..Batch::default() };
        rounds_of(&plans, now, &mut batch);
        let reads = spans.iter().map(|span| Action::Read { from: *span });
        match left {
            0 => reads.for_each(|read| batch.push(read)),
            _ => nothing.clone().for_each(|read| batch.push(read)),
        }
        let outcome = backend.run(batch, deadline)?;
        if let Some(nanos) = outcome.device_nanos {
            device = Some(device.unwrap_or(0) + nanos);
        }
        backend.telemetry().passes(u64::from(now) * plans.len() as u64);
        if left == 0 {
            let device = device.map(Duration::from_nanos);
            return Ok((all_reads(outcome.reads)?, Timing { total: start.elapsed(), prepare, device }));
        }
    }
}

/// A sequence in which a dispatch is more than one launch: the engine runs each by itself.
fn one_by_one(
    backend: &dyn VyreBackend,
    steps: &[ResidentStep<'_>],
    rounds: u32,
    ranges: Vec<Span>,
    (start, deadline): (Instant, Deadline),
) -> Result<(Vec<Vec<u8>>, Timing)> {
    let prepare = start.elapsed();
    let mut device: Option<Duration> = None;
    for _ in 0..rounds {
        for step in steps {
            let plan = plan(backend, step)?;
            let finished = Job::new(plan, step.config, 1, deadline).run(backend)?;
            device = finished.device.map(|time| device.unwrap_or_default() + time).or(device);
        }
    }
    let mut batch = Batch::default();
    ranges.into_iter().for_each(|from| batch.push(Action::Read { from }));
    let reads = all_reads(backend.run(batch, deadline)?.reads)?;
    Ok((reads, Timing { total: start.elapsed(), prepare, device }))
}

fn plan(backend: &dyn VyreBackend, step: &ResidentStep<'_>) -> Result<Plan<'static>> {
    if step.config.fixpoint_iterations.is_some() {
        let what = "a dispatch of a sequence cannot be a fixpoint".to_owned();
        return Err(Error::Config { what, help: "dispatch it by itself, or repeat the sequence" });
    }
    let pipeline = step.work.pipeline(backend, step.config)?;
    Plan::of_residents(backend, pipeline, step.buffers, step.config)
}

/// Adds every dispatch so many times.
fn rounds_of(plans: &[Plan<'static>], rounds: u32, batch: &mut Batch<'_>) {
    let bind = |plan: &Plan<'static>| -> Vec<Span> {
        let slots = plan.slots.iter().map(|(source, bytes)| match source {
            Source::Resident(span) => *span,
            _ => batch.temporary(Temporary::Zeroed { bytes: *bytes }),
        });
        slots.collect()
    };
    let bindings: Vec<Vec<Span>> = plans.iter().map(bind).collect();
    for round in 0..rounds {
        for (plan, spans) in plans.iter().zip(&bindings) {
            for (buffer, target) in plan.buffers().iter().zip(spans) {
                let is_used_scratch = buffer.access() == BufferAccess::Scratch && round > 0;
                if starts_as_zeros(buffer) || is_used_scratch {
                    batch.push(Action::Fill { target: *target, byte: 0 });
                }
            }
            let Some(pipeline) = plan.pipeline.compiled().map(Arc::clone) else { continue };
            batch.push(Action::Launch(Launch { pipeline, bindings: spans.clone(), grid: plan.grid }));
        }
    }
}

/// Puts bytes into the caller's buffers: in place where they have room, otherwise as new ones.
pub(crate) fn deliver(backend: &dyn VyreBackend, bytes: Vec<Vec<u8>>, outputs: &mut Vec<Vec<u8>>) {
    outputs.truncate(bytes.len());
    let telemetry = backend.telemetry();
    for (i, new) in bytes.into_iter().enumerate() {
        telemetry.bytes_out(new.len() as u64);
        match outputs.get_mut(i) {
            Some(old) if old.capacity() >= new.len() => {
                old.clear();
                old.extend_from_slice(&new);
                telemetry.outputs_reused(1);
            }
            Some(old) => {
                *old = new;
                telemetry.outputs_appended(1);
            }
            None => {
                outputs.push(new);
                telemetry.outputs_appended(1);
            }
        }
    }
}
