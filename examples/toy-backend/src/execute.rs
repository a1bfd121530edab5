//! A batch, step by step. The batch has been checked: every range lies inside its memory.

use crate::backend::{Shared, ToyPipeline};
use crate::device::Block;
use std::any::Any;
use vyre_driver::{
    Action, Batch, Deadline, Error, Launch, Memory, Outcome, Pins, Predicate, Result, Span, Stop, Temporary,
    Trap,
};
use vyre_reference::Schedule;

/// Executes a batch until it is done or told to stop. Its temporaries go with it, whatever happens.
pub(crate) fn execute(
    shared: &Shared,
    batch: Batch<'_>,
    pins: &Pins<Block>,
    stop: &Stop,
    deadline: Deadline,
) -> Result<Outcome> {
    let temporaries = batch.temporaries.iter().map(|temporary| upload(shared, temporary));
    let memory = Reach { temporaries: temporaries.collect::<Result<_>>()?, pins };
    let mut outcome = Outcome::default();
    for (number, step) in batch.steps.iter().enumerate() {
        stop.check(deadline)?;
        let runs = step.when.map_or(Ok(true), |when| memory.holds(when))?;
        match &step.action {
            Action::Read { .. } if !runs => outcome.reads.push(None),
            _ if !runs => {}
            Action::Fill { target, byte } => memory.write(*target, &vec![*byte; target.bytes as usize])?,
            Action::Write { target, bytes } => {
                shared.telemetry.bytes_uploaded(target.bytes);
                memory.write(*target, bytes)?;
            }
            Action::Copy { from, to } => memory.write(*to, &memory.read(*from)?)?,
            Action::Compare { a, b, differs } => {
                if memory.read(*a)? != memory.read(*b)? {
                    memory.write(*differs, &1u32.to_le_bytes())?;
                }
            }
            Action::Read { from } => {
                shared.telemetry.bytes_downloaded(from.bytes);
                outcome.reads.push(Some(memory.read(*from)?));
            }
            Action::Launch(launch) => {
                shared.telemetry.launches(1);
                run(launch, &memory, stop, deadline).map_err(|error| error.at_step(number))?;
            }
        }
    }
    Ok(outcome)
}

/// Device memory for a temporary.
fn upload(shared: &Shared, temporary: &Temporary<'_>) -> Result<Block> {
    let block = shared.allocate(temporary.bytes())?;
    if let Temporary::Borrowed(bytes) | Temporary::Initial(bytes) = temporary {
        shared.telemetry.bytes_uploaded(temporary.bytes());
        block.write(0, bytes);
    }
    Ok(block)
}

/// The memory that a batch reaches.
struct Reach<'a> {
    temporaries: Vec<Block>,
    pins: &'a Pins<Block>,
}

impl Reach<'_> {
    fn block(&self, memory: Memory) -> Result<&Block> {
        match memory {
            Memory::Temporary(number) => Ok(&self.temporaries[number]),
            Memory::Resident(handle) => self.pins.get(handle).map(|block| &**block),
        }
    }

    fn read(&self, span: Span) -> Result<Vec<u8>> {
        Ok(self.block(span.memory)?.read(span.offset, span.bytes))
    }

    fn write(&self, span: Span, bytes: &[u8]) -> Result<()> {
        self.block(span.memory)?.write(span.offset, bytes);
        Ok(())
    }

    fn holds(&self, when: Predicate) -> Result<bool> {
        let is_set = self.read(when.word)?.iter().any(|byte| *byte != 0);
        Ok(is_set == when.holds)
    }
}

/// The processor of the device: it loads what is bound, interprets the program and stores what it may have written.
fn run(launch: &Launch, memory: &Reach<'_>, stop: &Stop, deadline: Deadline) -> Result<()> {
    let pipeline: &dyn Any = &*launch.pipeline;
    let pipeline = pipeline.downcast_ref::<ToyPipeline>().ok_or_else(|| Error::foreign_pipeline("toy"))?;
    let loaded = launch.bindings.iter().map(|span| memory.read(*span));
    let mut bytes: Vec<Vec<u8>> = loaded.collect::<Result<_>>()?;
    let is_stopped = || stop.check(deadline).is_err();
    let result = pipeline.code.launch(&mut bytes, launch.grid, Schedule::Reversed, &is_stopped);
    result.map_err(|error| match error {
        vyre_reference::Error::Trap(trap) => {
            Error::Trap(Trap { tag: trap.tag, value: trap.value, invocation: trap.invocation })
        }
        vyre_reference::Error::Timeout => stop.check(deadline).err().unwrap_or(Error::Cancelled),
        other => Error::Internal(other.to_string()),
    })?;
    for ((slot, span), bytes) in pipeline.plan.slots().iter().zip(&launch.bindings).zip(bytes) {
        if slot.access().allows_store() {
            memory.write(*span, &bytes)?;
        }
    }
    Ok(())
}
