//! The one engine behind every dispatch: makes batches of a plan and reads their results.
//!
//! A dispatch is one batch, or, as a fixpoint, chunks of passes. In a chunk, pass k sets flag k where it changes a
//! carried buffer and runs only where flag k-1 is set, so the chunk stops where the fixpoint does. The flags
//! come back with the chunk, and with them the outputs if the chunk was the last.

use crate::backend::VyreBackend;
use crate::batch::{Action, Batch, Launch, Outcome, Predicate, Span, Step, Temporary};
use crate::config::{DispatchConfig, Route};
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::handle::RawHandle;
use crate::output::DispatchReport;
use crate::plan::{Plan, Source};
use crate::profile::Feature;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use vyre_foundation::{BufferAccess, BufferDecl};

/// The most passes of one batch.
pub(crate) const MOST_PASSES: u32 = 64;

/// A dispatch between its batches.
pub(crate) struct Job<'a> {
    plan: Plan<'a>,
    /// The slots whose bytes go back to the caller.
    returned: Vec<usize>,
    limit: Option<u32>,
    must_converge: bool,
    threads: Option<usize>,
    deadline: Deadline,
    /// How many passes the next batch may have.
    chunk: u32,
    passes: u32,
    device_nanos: Option<u64>,
    /// What the dispatch has allocated.
    owned: Vec<RawHandle>,
}

/// What a dispatch has given.
pub(crate) struct Finished {
    pub(crate) outputs: Vec<Vec<u8>>,
    pub(crate) report: DispatchReport,
    pub(crate) device: Option<Duration>,
}

/// Whether a buffer starts as zeros in each dispatch and keeps its contents between passes.
pub(crate) fn starts_as_zeros(buffer: &BufferDecl) -> bool {
    buffer.produces_output() && !buffer.consumes_input()
}

impl<'a> Job<'a> {
    /// A dispatch whose first batch has at most so many passes.
    pub(crate) fn new(plan: Plan<'a>, config: &DispatchConfig, chunk: u32, deadline: Deadline) -> Job<'a> {
        let slots = plan.buffers().iter().zip(&plan.slots).enumerate();
        let ours = slots.filter(|(_, (buffer, (source, _)))| {
            buffer.produces_output() && !matches!(source, Source::Resident(_))
        });
        Job {
            returned: ours.map(|(slot, _)| slot).collect(),
            plan,
            limit: config.fixpoint_iterations,
            must_converge: config.must_converge,
            threads: config.threads,
            deadline,
            chunk,
            passes: 0,
            device_nanos: None,
            owned: Vec::new(),
        }
    }

    /// The bytes that the caller gave.
    pub(crate) fn bytes_in(&self) -> u64 {
        let given = self.plan.slots.iter().filter(|(source, _)| matches!(source, Source::Bytes(_)));
        given.map(|(_, bytes)| *bytes).sum()
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self, backend: &dyn VyreBackend) -> Result<Finished> {
        let deadline = self.deadline;
        let result = loop {
            let outcome = self.next(backend).and_then(|batch| {
                let _span = tracing::debug_span!("launch", steps = batch.steps.len()).entered();
                backend.run(batch, deadline)
            });
            match outcome.and_then(|outcome| self.absorb(backend, outcome)) {
                Ok(None) => {}
                Ok(Some(finished)) => break Ok(finished),
                Err(error) => break Err(error),
            }
        };
        self.release(backend);
        result
    }

    /// Frees what the dispatch has allocated. On a lost device it is gone already.
    pub(crate) fn release(&mut self, backend: &dyn VyreBackend) {
        for handle in self.owned.drain(..) {
            let _ = backend.free(handle);
        }
    }

    /// The next batch.
    pub(crate) fn next(&mut self, backend: &dyn VyreBackend) -> Result<Batch<'a>> {
        let _span = tracing::debug_span!("plan", program = %self.plan.pipeline.program().name()).entered();
        let left = self.limit.unwrap_or(1) - self.passes;
        let count = left.min(self.chunk);
        let is_last = count == left;
        self.chunk = (self.chunk * 2).min(MOST_PASSES);
        let mut batch = Batch { threads: self.threads, deadline: self.deadline, ..Batch::default() };
        if self.passes == 0 {
            if !is_last {
                self.settle(backend, &mut batch)?;
            }
            self.zero_outputs(&mut batch);
        }
        let spans = self.place(&mut batch);
        if self.limit.is_none() {
            self.launch(&mut batch, &spans, None);
            self.returned.iter().for_each(|slot| batch.push(Action::Read { from: spans[*slot] }));
            return Ok(batch);
        }
        let flags = self.passes_of_fixpoint(&mut batch, &spans, count);
        batch.push(Action::Read { from: flags });
        let converged = Predicate { word: word(flags, count - 1), holds: false };
        for slot in &self.returned {
            let action = Action::Read { from: spans[*slot] };
            batch.steps.push(Step { action, when: (!is_last).then_some(converged) });
        }
        Ok(batch)
    }

    /// Moves what must outlive a batch into resident memory. Bytes that the caller lends, and that the device can
    /// use where they are, stay there.
    fn settle(&mut self, backend: &dyn VyreBackend, batch: &mut Batch<'a>) -> Result<()> {
        let in_place = backend.profile().features.has(Feature::HostMemory);
        let slots = self.plan.pipeline.compiled().plan().slots().iter().zip(&mut self.plan.slots);
        for (buffer, (source, bytes)) in slots {
            let stays = match source {
                Source::Resident(_) => true,
                Source::Bytes(Cow::Borrowed(_)) => in_place && !buffer.access().allows_store(),
                Source::Bytes(Cow::Owned(_)) => false,
                Source::Zeros => buffer.access() == BufferAccess::Scratch,
            };
            if stays {
                continue;
            }
            let handle = backend.allocate(*bytes)?;
            self.owned.push(handle);
            let target = Span::resident(handle);
            if let Source::Bytes(bytes) = std::mem::replace(source, Source::Resident(target)) {
                batch.push(Action::Write { target, bytes });
            }
        }
        Ok(())
    }

    /// Zeros the caller's resident memory of buffers that start as zeros.
    fn zero_outputs(&self, batch: &mut Batch<'a>) {
        for (slot, buffer) in self.plan.buffers().iter().enumerate() {
            let is_callers = starts_as_zeros(buffer) && !self.returned.contains(&slot);
            if let (Source::Resident(target), true) = (&self.plan.slots[slot].0, is_callers) {
                batch.push(Action::Fill { target: *target, byte: 0 });
            }
        }
    }

    /// The memory of each slot in this batch.
    fn place(&mut self, batch: &mut Batch<'a>) -> Vec<Span> {
        let slots = self.plan.pipeline.compiled().plan().slots().iter().zip(&mut self.plan.slots);
        let spans = slots.map(|(buffer, (source, bytes))| {
            let temporary = match source {
                Source::Resident(span) => return *span,
                Source::Zeros => Temporary::Zeroed { bytes: *bytes },
                Source::Bytes(Cow::Borrowed(lent)) if !buffer.access().allows_store() => {
                    Temporary::Borrowed(Cow::Borrowed(*lent))
                }
                Source::Bytes(given) => {
                    // Whatever is needed again has been settled.
                    let given = std::mem::take(given);
                    if buffer.access().allows_store() {
                        Temporary::Initial(given)
                    } else {
                        Temporary::Borrowed(given)
                    }
                }
            };
            batch.temporary(temporary)
        });
        spans.collect()
    }

    fn launch(&self, batch: &mut Batch<'a>, spans: &[Span], when: Option<Predicate>) {
        let pipeline = Arc::clone(self.plan.pipeline.compiled());
        let launch = Launch { pipeline, bindings: spans.to_vec(), grid: self.plan.grid };
        batch.steps.push(Step { action: Action::Launch(launch), when });
    }

    /// Adds passes, each but the first only where the one before it changed something. Gives their flags.
    fn passes_of_fixpoint(&self, batch: &mut Batch<'a>, spans: &[Span], count: u32) -> Span {
        let flags = batch.temporary(Temporary::Zeroed { bytes: u64::from(count) * 4 });
        let buffers = || self.plan.buffers().iter().zip(spans);
        let carried: Vec<(Span, Span)> = buffers()
            .filter(|(buffer, _)| buffer.produces_output())
            .map(|(_, span)| (*span, batch.temporary(Temporary::Zeroed { bytes: span.bytes })))
            .collect();
        let scratch: Vec<Span> = buffers()
            .filter(|(buffer, _)| buffer.access() == BufferAccess::Scratch)
            .map(|(_, span)| *span)
            .collect();
        for pass in 0..count {
            let when = pass.checked_sub(1).map(|last| Predicate { word: word(flags, last), holds: true });
            let mut push = |action| batch.steps.push(Step { action, when });
            if pass > 0 {
                scratch.iter().for_each(|target| push(Action::Fill { target: *target, byte: 0 }));
            }
            carried.iter().for_each(|(from, to)| push(Action::Copy { from: *from, to: *to }));
            self.launch(batch, spans, when);
            let differs = word(flags, pass);
            for (a, b) in &carried {
                batch.steps.push(Step { action: Action::Compare { a: *a, b: *b, differs }, when });
            }
        }
        flags
    }

    /// Takes what a batch gave. `None` asks for the next batch.
    pub(crate) fn absorb(&mut self, backend: &dyn VyreBackend, outcome: Outcome) -> Result<Option<Finished>> {
        let _span = tracing::debug_span!("read_back").entered();
        if let Some(nanos) = outcome.device_nanos {
            self.device_nanos = Some(self.device_nanos.unwrap_or(0) + nanos);
        }
        let missing = || Error::Internal("the backend did not give back what was read".to_owned());
        let mut reads = outcome.reads.into_iter();
        let mut converged = None;
        let mut ran = 1;
        if let Some(limit) = self.limit {
            let flags = reads.next().flatten().ok_or_else(missing)?;
            let unchanged = flags.chunks(4).position(|flag| flag.iter().all(|byte| *byte == 0));
            ran = unchanged.map_or(flags.len() / 4, |pass| pass + 1) as u32;
            self.passes += ran;
            converged = Some(unchanged.is_some());
            if unchanged.is_none() && self.passes < limit {
                backend.telemetry().passes(u64::from(ran));
                return Ok(None);
            }
        } else {
            self.passes = 1;
        }
        backend.telemetry().passes(u64::from(ran));
        if self.must_converge && converged == Some(false) {
            return Err(Error::NotConverged { passes: self.passes });
        }
        let outputs: Vec<Vec<u8>> = reads.collect::<Option<_>>().ok_or_else(missing)?;
        if outputs.len() != self.returned.len() {
            return Err(missing());
        }
        let report = DispatchReport {
            backend: backend.profile().backend,
            route: Route::Native,
            grid: self.plan.grid,
            passes: self.passes,
            converged,
            timing: None,
        };
        Ok(Some(Finished { outputs, report, device: self.device_nanos.map(Duration::from_nanos) }))
    }
}

/// A word of a range of words.
fn word(words: Span, number: u32) -> Span {
    Span { memory: words.memory, offset: words.offset + u64::from(number) * 4, bytes: 4 }
}
