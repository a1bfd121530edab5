//! Executes batches: one step after the other, on the caller's thread and the workers.

use crate::backend::{Core, CpuOptions};
use crate::faults;
use crate::launch::Launcher;
use crate::memory::Memory;
use crate::pipeline::CpuPipeline;
use std::any::Any;
use std::borrow::Cow;
use std::time::Instant;
use vyre_driver::{
    Action, Batch, Deadline, Error, Launch, Memory as Named, Outcome, Pins, Result, Span, Stop, Temporary,
};

/// A temporary while its batch runs.
enum Place<'a> {
    Owned(Memory),
    Borrowed(Cow<'a, [u8]>),
    /// Its bytes have been given to the caller.
    Given,
}

/// The memory of a batch in progress.
struct Held<'a> {
    temporaries: Vec<Place<'a>>,
    residents: &'a Pins<Memory>,
}

impl Core {
    /// Executes a batch that was checked, over the resident memory that is held for it.
    pub(crate) fn execute(
        &self,
        batch: Batch<'_>,
        residents: &Pins<Memory>,
        stop: &Stop,
        deadline: Deadline,
    ) -> Result<Outcome> {
        let _watch = self.timer.watch(deadline, stop);
        stop.check(deadline)?;
        let last: Vec<Option<usize>> = (0..batch.temporaries.len()).map(|i| batch.last_use(i)).collect();
        let temporaries = tracing::debug_span!("upload").in_scope(|| {
            let temporaries = batch.temporaries.into_iter().map(|temporary| self.place(temporary));
            temporaries.collect::<Result<_>>()
        })?;
        let mut held = Held { temporaries, residents };
        let mut outcome = Outcome::default();
        let mut nanos = 0;
        for (number, step) in batch.steps.into_iter().enumerate() {
            stop.check(deadline)?;
            let runs = step.when.is_none_or(|when| (held.word(when.word) != 0) == when.holds);
            match step.action {
                Action::Read { from } if runs => {
                    let is_last = matches!(from.memory, Named::Temporary(i) if last[i] == Some(number));
                    let bytes = held.read(from, is_last)?;
                    self.telemetry.bytes_downloaded(bytes.len() as u64);
                    outcome.reads.push(Some(bytes));
                }
                Action::Read { .. } => outcome.reads.push(None),
                _ if !runs => {}
                Action::Launch(launch) => {
                    let start = Instant::now();
                    let launched = self.launch(&launch, &held, batch.threads, stop, deadline);
                    launched.map_err(|error| error.at_step(number))?;
                    nanos += start.elapsed().as_nanos() as u64;
                }
                action => self.transfer(action, &held),
            }
        }
        outcome.device_nanos = Some(nanos);
        Ok(outcome)
    }

    fn place<'a>(&self, temporary: Temporary<'a>) -> Result<Place<'a>> {
        let owned = |bytes: &[u8]| {
            let memory = Memory::zeroed(bytes.len() as u64, self.options.placement, "a copy of an input")?;
            // SAFETY: the memory is new and as large as the bytes.
            unsafe { memory.start().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            self.telemetry.bytes_uploaded(bytes.len() as u64);
            Ok(Place::Owned(memory))
        };
        match temporary {
            Temporary::Zeroed { bytes } => {
                Ok(Place::Owned(Memory::zeroed(bytes, self.options.placement, "a buffer")?))
            }
            Temporary::Borrowed(bytes) if self.options.is_guarded() => owned(&bytes),
            Temporary::Borrowed(bytes) => Ok(Place::Borrowed(bytes)),
            Temporary::Initial(Cow::Owned(bytes)) if !self.options.is_guarded() => {
                self.telemetry.bytes_uploaded(bytes.len() as u64);
                Ok(Place::Owned(Memory::from_vec(bytes)?))
            }
            Temporary::Initial(bytes) => owned(&bytes),
        }
    }

    fn launch(
        &self,
        launch: &Launch,
        held: &Held<'_>,
        threads: Option<usize>,
        stop: &Stop,
        deadline: Deadline,
    ) -> Result<()> {
        let any: &dyn Any = &*launch.pipeline;
        let Some(pipeline) = any.downcast_ref::<CpuPipeline>() else {
            return Err(Error::foreign_pipeline(crate::NAME));
        };
        let span = tracing::debug_span!("launch", workgroups = ?launch.grid.workgroups());
        let _entered = span.enter();
        let bindings: Vec<(*mut u8, u64)> =
            launch.bindings.iter().map(|binding| (held.address(*binding), binding.bytes)).collect();
        let threads = threads.unwrap_or(self.options.threads).clamp(1, self.options.threads);
        let CpuOptions { placement, share_from, .. } = self.options;
        let launcher = Launcher { pool: &self.pool, placement, threads, share_from };
        self.telemetry.launches(1);
        launcher.launch(pipeline, &bindings, launch.grid, stop, deadline)
    }

    /// Fills, writes, copies and compares. The batch was checked: ranges are inside their memory, and of one length.
    fn transfer(&self, action: Action<'_>, held: &Held<'_>) {
        match action {
            Action::Fill { target, byte } => {
                // SAFETY: the range is inside its memory.
                unsafe { held.address(target).write_bytes(byte, target.bytes as usize) };
            }
            Action::Write { target, bytes } => {
                // SAFETY: the range is inside its memory and as long as the bytes.
                unsafe { held.address(target).copy_from(bytes.as_ptr(), bytes.len()) };
                self.telemetry.bytes_uploaded(bytes.len() as u64);
            }
            Action::Copy { from, to } => {
                // SAFETY: both ranges are inside their memory and of one length.
                unsafe { held.address(to).copy_from(held.address(from), from.bytes as usize) };
            }
            Action::Compare { a, b, differs } => {
                // SAFETY: both ranges are inside their memory.
                let equal = unsafe {
                    std::slice::from_raw_parts(held.address(a), a.bytes as usize)
                        == std::slice::from_raw_parts(held.address(b), b.bytes as usize)
                };
                if !equal {
                    let one = 1u32.to_le_bytes();
                    // SAFETY: the flag is four bytes inside its memory, outside the ranges.
                    unsafe { held.address(differs).copy_from(one.as_ptr(), one.len()) };
                }
            }
            Action::Read { .. } | Action::Launch(_) => {}
        }
    }
}

impl Held<'_> {
    /// The first byte of a range. Where a temporary is borrowed nothing writes to it.
    fn address(&self, span: Span) -> *mut u8 {
        let start = match span.memory {
            Named::Temporary(number) => match &self.temporaries[number] {
                Place::Owned(memory) => memory.start(),
                Place::Borrowed(bytes) => bytes.as_ptr().cast_mut(),
                Place::Given => std::ptr::null_mut(),
            },
            Named::Resident(handle) => self.residents.get(handle).map_or(std::ptr::null_mut(), |m| m.start()),
        };
        start.wrapping_add(span.offset as usize)
    }

    fn word(&self, span: Span) -> u32 {
        // SAFETY: predicates are four bytes inside their memory, at any address.
        unsafe { self.address(span).cast::<u32>().read_unaligned() }
    }

    /// The bytes of a range; those of a whole temporary that nobody needs any more without copying.
    fn read(&mut self, from: Span, is_last: bool) -> Result<Vec<u8>> {
        if let (Named::Temporary(number), true) = (from.memory, is_last)
            && matches!(&self.temporaries[number], Place::Owned(memory) if memory.bytes() as u64 == from.bytes)
            && let Place::Owned(memory) = std::mem::replace(&mut self.temporaries[number], Place::Given)
        {
            match memory.into_vec() {
                Ok(bytes) => return Ok(bytes),
                Err(memory) => self.temporaries[number] = Place::Owned(memory),
            }
        }
        let mut bytes = Vec::new();
        let full = || Error::OutOfMemory { what: "a result".to_owned(), asked: from.bytes, available: None };
        if faults::strikes() {
            return Err(full());
        }
        bytes.try_reserve_exact(from.bytes as usize).map_err(|_| full())?;
        // SAFETY: the range is inside its memory.
        bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts(self.address(from), from.bytes as usize)
        });
        Ok(bytes)
    }
}
