//! The one engine behind every dispatch: makes batches of a plan and reads their results.
//!
//! A dispatch is passes over a program, one unless it is a fixpoint. A pass is one launch, or, where grid barriers are
//! not left to the device, a walk through a schedule whose launches are steps of batches. A batch ends where the
//! engine must know a value to go on, and where it is long enough.
//!
//! Fixpoints run in chunks. In a chunk, pass k sets flag k where it changes a carried buffer. Where it does not, it
//! halts the chunk: every later step asks for that word, so the chunk stops exactly where the fixpoint does. The
//! flags of the passes that ran come back with the chunk, and with them the outputs if it was the last. A trap halts
//! the chunk in the same way, at the next grid barrier or the end of its pass.

use crate::backend::VyreBackend;
use crate::batch::{Action, Batch, Launch, Outcome, Predicate, Span, Step, Temporary};
use crate::config::{DispatchConfig, Route};
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::grid_sync::{Facts, Machine, Position, Stage, Storage};
use crate::handle::RawHandle;
use crate::output::DispatchReport;
use crate::plan::{Plan, Source};
use crate::profile::Feature;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use vyre_foundation::{BufferAccess, BufferDecl, Element, float_env};
use vyre_lower::ValueId;

/// The most passes of one batch.
pub(crate) const MOST_PASSES: u32 = 64;

/// A dispatch between its batches.
pub(crate) struct Job<'a> {
    pub(crate) plan: Plan<'a>,
    /// Hidden storage of a schedule, with its size.
    pub(crate) hidden: Vec<(Source<'a>, u64)>,
    /// What carried buffers held when the pass under way began, where that must outlive a batch.
    pub(crate) snapshots: Vec<Source<'a>>,
    /// The pass under way in a schedule.
    pub(crate) pass: Option<Machine>,
    pub(crate) facts: Facts<'a>,
    /// What the batch in flight gives back, in order.
    pub(crate) expected: Vec<Expected>,
    /// What each pass of the batch in flight does.
    pub(crate) walked: Vec<Walked>,
    /// Which segments the batch in flight launches, by step.
    pub(crate) launched: Vec<(usize, usize)>,
    /// The slots whose bytes go back to the caller.
    pub(crate) returned: Vec<usize>,
    pub(crate) limit: Option<u32>,
    must_converge: bool,
    threads: Option<usize>,
    deadline: Deadline,
    /// How many passes the next batch may have.
    chunk: u32,
    pub(crate) passes: u32,
    is_started: bool,
    /// How far it has come where its memory is on the host.
    pub(crate) stage: Stage,
    /// Resident memory of the caller that is on the host for now, by slot.
    pub(crate) borrowed: Vec<(usize, Span)>,
    /// Whether the batch in flight ends with a pass.
    ends_pass: bool,
    device_nanos: Option<u64>,
    /// What the dispatch has allocated.
    owned: Vec<RawHandle>,
}

/// What a read gives.
pub(crate) enum Expected {
    /// The value of a row, for the pass under way.
    Row(ValueId, Encoded),
    /// An element of a buffer that nobody writes.
    Element(u32, u32),
    /// Whether the next pass of the chunk changed anything; nothing where it did not run.
    Flag,
    /// A value that is not wanted any more.
    Nothing,
    /// Which invocations trapped; nothing where none did.
    Traps,
    /// The bytes of a slot, for the caller.
    Output,
    /// The bytes of a storage that the host keeps, as a launch left them.
    Kept(Storage),
}

/// What a pass does in a batch.
#[derive(Clone, Copy, Default)]
pub(crate) struct Walked {
    pub(crate) segments: u64,
    pub(crate) points: u64,
}

/// How the bytes of a value are to be read.
#[derive(Clone, Copy)]
pub(crate) enum Encoded {
    /// One or two words.
    Words,
    /// An element of a buffer.
    Element(Element),
}

/// What a dispatch has given.
pub(crate) struct Finished {
    pub(crate) outputs: Vec<Vec<u8>>,
    pub(crate) report: DispatchReport,
    pub(crate) device: Option<Duration>,
}

/// A batch under construction.
pub(crate) struct Chunk<'a> {
    pub(crate) batch: Batch<'a>,
    /// The memory of each slot.
    pub(crate) slots: Vec<Span>,
    pub(crate) hidden: Vec<Span>,
    /// Carried buffers, with what they held when the pass began.
    carried: Vec<(Span, Span)>,
    /// What is zeroed before each pass but the first.
    zeroed: Vec<Span>,
    flags: Option<Span>,
    /// The word that stops all later steps when it is not zero.
    halt: Option<Span>,
    /// The word that is not zero when a dispatch in which an invocation trapped has come to its end.
    trapped: Option<Span>,
    /// Whether the word may have been set.
    may_halt: bool,
    /// How many passes have ended in this batch.
    ended: u32,
}

impl<'a> Chunk<'a> {
    /// What a step asks for that does not run when the chunk was halted.
    pub(crate) fn running(&self) -> Option<Predicate> {
        self.halt.filter(|_| self.may_halt).map(|word| Predicate { word, holds: false })
    }

    /// Adds a step that runs unless the chunk was halted.
    pub(crate) fn push(&mut self, action: Action<'a>) {
        let when = self.running();
        self.batch.steps.push(Step { action, when });
    }

    /// Halts the chunk where a word is zero, or is not.
    pub(crate) fn halt_when(&mut self, word: Span, holds: bool) {
        let Some(target) = self.halt else { return };
        let when = Some(Predicate { word, holds });
        self.batch.steps.push(Step { action: Action::Fill { target, byte: 1 }, when });
        self.may_halt = true;
    }

    /// Halts the chunk where an invocation has trapped: at a grid barrier or the end of a pass, not before. One with a
    /// smaller number may still trap until then.
    pub(crate) fn halt_on_trap(&mut self, flag: Span) {
        let Some(target) = self.trapped else { return };
        let when = Some(Predicate { word: flag, holds: true });
        self.batch.steps.push(Step { action: Action::Fill { target, byte: 1 }, when });
        self.halt_when(flag, true);
    }

    /// What a read of the traps asks for.
    pub(crate) fn has_trapped(&self) -> Option<Predicate> {
        self.trapped.map(|word| Predicate { word, holds: true })
    }
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
            facts: Facts::of(&plan),
            plan,
            hidden: Vec::new(),
            snapshots: Vec::new(),
            pass: None,
            expected: Vec::new(),
            walked: Vec::new(),
            launched: Vec::new(),
            limit: config.fixpoint_iterations,
            must_converge: config.must_converge,
            threads: config.threads,
            deadline,
            chunk,
            passes: 0,
            is_started: false,
            stage: Stage::default(),
            borrowed: Vec::new(),
            ends_pass: false,
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
            match self.absorb(backend, outcome) {
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

    /// The next batch. What the engine computes for it has the float environment of all programs.
    pub(crate) fn next(&mut self, backend: &dyn VyreBackend) -> Result<Batch<'a>> {
        if self.plan.split.is_some() {
            return float_env::with_default(|| self.next_batch(backend));
        }
        self.next_batch(backend)
    }

    fn next_batch(&mut self, backend: &dyn VyreBackend) -> Result<Batch<'a>> {
        let _span = tracing::debug_span!("plan", program = %self.plan.pipeline.program().name()).entered();
        // A batch may have no steps, and then nobody else looks at the clock.
        if self.deadline.has_passed() {
            return Err(self.deadline.error());
        }
        let mut batch = Batch { threads: self.threads, deadline: self.deadline, ..Batch::default() };
        self.expected.clear();
        self.launched.clear();
        self.walked = vec![Walked::default()];
        if self.plan.route != Route::Native && !self.is_started {
            backend.telemetry().grid_sync_splits(1);
        }
        if self.plan.route == Route::Host {
            self.is_started = true;
            return self.next_on_host(backend, batch);
        }
        let left = self.limit.unwrap_or(1) - self.passes;
        let count = left.min(self.chunk);
        self.chunk = (self.chunk * 2).min(MOST_PASSES);
        if !self.is_started {
            self.is_started = true;
            if self.plan.split.is_some() {
                // Filling nothing looks up the handle: one that names nothing fails before anything has run.
                for target in self.plan.residents() {
                    batch.push(Action::Fill { target: Span { bytes: 0, ..target }, byte: 0 });
                }
            }
            if count < left || self.plan.split.is_some() {
                self.settle(backend, &mut batch)?;
            }
            self.zero_outputs(&mut batch);
        }
        let mut chunk = self.open(batch, count);
        self.ends_pass = self.passes_of(&mut chunk, count)?;
        self.close(&mut chunk, left);
        Ok(chunk.batch)
    }

    /// Adds passes until there are so many or a value is missing. Gives whether the last one came to its end.
    fn passes_of(&mut self, chunk: &mut Chunk<'a>, count: u32) -> Result<bool> {
        while chunk.ended < count {
            if self.plan.split.is_none() {
                self.begin(chunk);
                self.launch_whole(chunk)?;
            } else {
                if self.pass.is_none() {
                    self.begin(chunk);
                }
                if self.go_on(chunk)? == Position::Waits {
                    return Ok(false);
                }
            }
            self.end(chunk);
        }
        Ok(true)
    }

    /// Begins a pass.
    fn begin(&mut self, chunk: &mut Chunk<'a>) {
        if self.passes + chunk.ended > 0 {
            for target in chunk.zeroed.clone() {
                chunk.push(Action::Fill { target, byte: 0 });
            }
        }
        for (from, to) in chunk.carried.clone() {
            chunk.push(Action::Copy { from, to });
        }
    }

    /// Ends a pass: a fixpoint that has come to rest goes no further, nor does one that has trapped.
    fn end(&mut self, chunk: &mut Chunk<'a>) {
        self.halt_on_trap(chunk);
        if let Some(flags) = chunk.flags {
            let differs = word(flags, chunk.ended);
            for (a, b) in chunk.carried.clone() {
                chunk.push(Action::Compare { a, b, differs });
            }
            chunk.halt_when(differs, false);
        }
        chunk.ended += 1;
        self.walked.push(Walked::default());
    }

    fn launch_whole(&self, chunk: &mut Chunk<'a>) -> Result<()> {
        let missing = || Error::Internal("a dispatch without code".to_owned());
        let pipeline = Arc::clone(self.plan.pipeline.compiled().ok_or_else(missing)?);
        let launch = Launch { pipeline, bindings: chunk.slots.clone(), grid: self.plan.grid };
        chunk.push(Action::Launch(launch));
        Ok(())
    }

    /// Memory for a batch of up to so many passes.
    fn open(&mut self, mut batch: Batch<'a>, count: u32) -> Chunk<'a> {
        let slots = self.place(&mut batch);
        let resident = |(source, _): &(Source<'a>, u64)| match source {
            Source::Resident(span) => Some(*span),
            _ => None,
        };
        let hidden: Vec<Span> = self.hidden.iter().filter_map(resident).collect();
        let is_fixpoint = self.limit.is_some();
        let mut zeroed: Vec<Span> = Vec::new();
        let mut carried: Vec<(Span, Span)> = Vec::new();
        if is_fixpoint {
            let buffers = || self.plan.buffers().iter().zip(&slots);
            let scratch = buffers().filter(|(buffer, _)| buffer.access() == BufferAccess::Scratch);
            zeroed.extend(scratch.map(|(_, span)| *span));
            if let Some(split) = &self.plan.split {
                let own = split.schedule.hidden().iter().zip(&hidden);
                zeroed.extend(own.filter(|(hidden, _)| hidden.starts_as_zeros()).map(|(_, span)| *span));
            }
            let mut kept = self.snapshots.iter();
            for (_, span) in buffers().filter(|(buffer, _)| buffer.produces_output()) {
                let snapshot = match kept.next() {
                    Some(Source::Resident(snapshot)) => *snapshot,
                    _ => batch.temporary(Temporary::Zeroed { bytes: span.bytes }),
                };
                carried.push((*span, snapshot));
            }
        }
        let flags = is_fixpoint.then(|| batch.temporary(Temporary::Zeroed { bytes: u64::from(count) * 4 }));
        let mut a_word = |is_wanted: bool| is_wanted.then(|| batch.temporary(Temporary::Zeroed { bytes: 4 }));
        let has_traps = self.trap_flag(&hidden).is_some();
        let (halt, trapped) = (a_word(is_fixpoint || has_traps), a_word(has_traps));
        Chunk { batch, slots, hidden, carried, zeroed, flags, halt, trapped, may_halt: false, ended: 0 }
    }

    /// Reads what the engine and the caller need of a batch.
    fn close(&mut self, chunk: &mut Chunk<'a>, left: u32) {
        if let Some(flags) = chunk.flags {
            // A pass ran if the one before it changed something: only the flags of passes that ran travel.
            for pass in 0..chunk.ended {
                let before = pass.checked_sub(1).map(|before| word(flags, before));
                let when = before.map(|word| Predicate { word, holds: true });
                self.read(chunk, word(flags, pass), when, Expected::Flag);
            }
        }
        self.read_traps(chunk);
        let halted = chunk.halt.map(|word| Predicate { word, holds: true });
        let when = match self.ends_pass {
            true if chunk.ended == left => None,
            _ if chunk.ended > 0 => halted,
            _ => return,
        };
        for slot in self.returned.clone() {
            self.read(chunk, chunk.slots[slot], when, Expected::Output);
        }
    }

    pub(crate) fn read(
        &mut self,
        chunk: &mut Chunk<'a>,
        from: Span,
        when: Option<Predicate>,
        expected: Expected,
    ) {
        chunk.batch.steps.push(Step { action: Action::Read { from }, when });
        self.expected.push(expected);
    }

    /// Moves what must outlive a batch into resident memory. Bytes that the caller lends, and that the device can
    /// use where they are, stay there.
    fn settle(&mut self, backend: &dyn VyreBackend, batch: &mut Batch<'a>) -> Result<()> {
        let in_place = backend.profile().features.has(Feature::HostMemory);
        let is_split = self.plan.split.is_some();
        let slots = self.plan.pipeline.unit().bindings().slots().iter().zip(&mut self.plan.slots);
        for (buffer, (source, bytes)) in slots {
            let stays = match source {
                Source::Resident(_) => true,
                Source::Bytes(Cow::Borrowed(_)) => in_place && !buffer.access().allows_store(),
                Source::Bytes(Cow::Owned(_)) => false,
                // Of one launch after the other each gets its own.
                Source::Zeros => buffer.access() == BufferAccess::Scratch && !is_split,
            };
            if stays {
                continue;
            }
            let target = allocate(backend, &mut self.owned, *bytes)?;
            if let Source::Bytes(bytes) = std::mem::replace(source, Source::Resident(target)) {
                batch.push(Action::Write { target, bytes });
            }
        }
        let Some(split) = &self.plan.split else { return Ok(()) };
        for hidden in split.schedule.hidden() {
            let bytes = hidden.size(self.plan.grid).unwrap_or(u64::MAX);
            let span = allocate(backend, &mut self.owned, bytes)?;
            self.hidden.push((Source::Resident(span), bytes));
        }
        if self.limit.is_some() {
            let slots = self.plan.pipeline.unit().bindings().slots().iter().zip(&self.plan.slots);
            for (_, (_, bytes)) in slots.filter(|(buffer, _)| buffer.produces_output()) {
                self.snapshots.push(Source::Resident(allocate(backend, &mut self.owned, *bytes)?));
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
        let slots = self.plan.pipeline.unit().bindings().slots().iter().zip(&mut self.plan.slots);
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

    /// Takes what a batch gave. `None` asks for the next batch.
    pub(crate) fn absorb(
        &mut self,
        backend: &dyn VyreBackend,
        outcome: Result<Outcome>,
    ) -> Result<Option<Finished>> {
        let _span = tracing::debug_span!("read_back").entered();
        let outcome = outcome.map_err(|error| self.explain(error))?;
        if let Some(nanos) = outcome.device_nanos {
            self.device_nanos = Some(self.device_nanos.unwrap_or(0) + nanos);
        }
        if outcome.reads.len() != self.expected.len() {
            return Err(missing());
        }
        let mut flags = Vec::with_capacity(MOST_PASSES as usize);
        let mut outputs = Vec::new();
        for (expected, bytes) in std::mem::take(&mut self.expected).into_iter().zip(outcome.reads) {
            match expected {
                Expected::Flag => flags.extend(bytes.map(|flag| flag.iter().any(|byte| *byte != 0))),
                Expected::Output => outputs.push(bytes),
                other => self.learn(other, bytes)?,
            }
        }
        if self.plan.route == Route::Host {
            self.count(backend, usize::MAX);
            return self.absorb_on_host(backend);
        }
        let is_at_rest = flags.last() == Some(&false);
        self.count(backend, if is_at_rest { flags.len() } else { usize::MAX });
        let ran = if self.limit.is_some() { flags.len() as u32 } else { 1 };
        let is_over = match self.limit {
            Some(limit) => is_at_rest || self.ends_pass && self.passes + ran == limit,
            None => self.ends_pass,
        };
        if self.limit.is_some() || is_over {
            self.passes += ran;
            backend.telemetry().passes(u64::from(ran));
        }
        if !is_over {
            return Ok(None);
        }
        let outputs: Vec<Vec<u8>> = outputs.into_iter().collect::<Option<_>>().ok_or_else(missing)?;
        self.finished(backend, outputs, self.limit.map(|_| is_at_rest)).map(Some)
    }

    /// Notes what the pass under way does.
    pub(crate) fn walked(&mut self, note: impl FnOnce(&mut Walked)) {
        if let Some(walked) = self.walked.last_mut() {
            note(walked);
        }
    }

    /// Counts what the first passes of a batch did. What came behind them in the batch did not run.
    fn count(&mut self, backend: &dyn VyreBackend, passes: usize) {
        let walked = self.walked.drain(..).take(passes);
        if self.plan.route == Route::Native {
            return;
        }
        for walked in walked {
            backend.telemetry().grid_sync_segments(walked.segments);
            backend.telemetry().grid_sync_points(walked.points);
        }
    }

    /// What a dispatch has given that came to its end.
    pub(crate) fn finished(
        &self,
        backend: &dyn VyreBackend,
        outputs: Vec<Vec<u8>>,
        converged: Option<bool>,
    ) -> Result<Finished> {
        if self.must_converge && converged == Some(false) {
            return Err(Error::NotConverged { passes: self.passes });
        }
        if outputs.len() != self.returned.len() {
            return Err(missing());
        }
        let report = DispatchReport {
            backend: backend.profile().backend,
            route: self.plan.route,
            segments: self.plan.split.as_ref().map_or(1, |split| split.code.len() as u32),
            grid: self.plan.grid,
            passes: self.passes,
            converged,
            timing: None,
        };
        Ok(Finished { outputs, report, device: self.device_nanos.map(Duration::from_nanos) })
    }

    /// An error of a batch in terms of the dispatch.
    fn explain(&self, error: Error) -> Error {
        let Error::Step { step, source } = error else { return error };
        let launched = self.launched.iter().find(|(number, _)| *number == step);
        match (launched, &self.plan.split) {
            (Some((_, segment)), Some(split)) => source.in_segment(*segment, &split.schedule),
            _ => *source,
        }
    }
}

/// New resident memory of a dispatch.
fn allocate(backend: &dyn VyreBackend, owned: &mut Vec<RawHandle>, bytes: u64) -> Result<Span> {
    let handle = backend.allocate(bytes)?;
    owned.push(handle);
    Ok(Span::resident(handle))
}

fn missing() -> Error {
    Error::Internal("the backend did not give back what was read".to_owned())
}

/// A word of a range of words.
pub(crate) fn word(words: Span, number: u32) -> Span {
    Span { memory: words.memory, offset: words.offset + u64::from(number) * 4, bytes: 4 }
}
