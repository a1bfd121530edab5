//! A schedule over memory of the host: each launch is a batch of its own, and takes and gives the bytes that it binds.

use super::formula::{Known, Missing};
use super::machine::{Event, Machine};
use super::resident::{find, segment_grid};
use super::schedule::{Binding, Purpose, Storage};
use crate::backend::VyreBackend;
use crate::batch::{Action, Batch, Launch, Span, Temporary};
use crate::bytes::{copied, zeros};
use crate::engine::{Expected, Finished, Job};
use crate::error::{Error, Result};
use crate::plan::Source;
use std::borrow::Cow;
use std::sync::Arc;
use vyre_foundation::{BufferAccess, element};
use vyre_lower::ValueId;

/// How far a dispatch on the host has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Stage {
    /// Nothing is there yet.
    #[default]
    Begins,
    /// Passes run.
    Runs,
    /// All passes have run; what it gives is on its way to where it belongs.
    Ends {
        /// Whether the last one changed nothing.
        is_at_rest: bool,
    },
}

/// The most nodes that are walked without a look at the clock.
const MOST_NODES: usize = 1 << 16;

impl<'a> Job<'a> {
    /// The next batch: what is resident comes to the host, then one launch at a time, then what was resident goes back.
    pub(crate) fn next_on_host(
        &mut self,
        backend: &dyn VyreBackend,
        mut batch: Batch<'a>,
    ) -> Result<Batch<'a>> {
        if self.stage == Stage::Begins {
            self.stage = Stage::Runs;
            if self.gather(&mut batch)? {
                return Ok(batch);
            }
        }
        if self.stage == Stage::Runs {
            self.walk(backend, &mut batch)?;
        }
        if let Stage::Ends { .. } = self.stage {
            for (slot, target) in self.borrowed.clone() {
                let bytes = Cow::Owned(self.take(Storage::Buffer(self.facts.buffer(slot)))?);
                batch.push(Action::Write { target, bytes });
            }
        }
        Ok(batch)
    }

    /// What a batch gave has been put back. The dispatch is over if its last batch has run.
    pub(crate) fn absorb_on_host(&mut self, backend: &dyn VyreBackend) -> Result<Option<Finished>> {
        let Stage::Ends { is_at_rest } = self.stage else { return Ok(None) };
        let mut outputs = Vec::new();
        for slot in self.returned.clone() {
            outputs.push(self.take(Storage::Buffer(self.facts.buffer(slot)))?);
        }
        self.finished(backend, outputs, self.limit.map(|_| is_at_rest)).map(Some)
    }

    /// Brings all memory to the host. Gives whether something has to be asked for.
    fn gather(&mut self, batch: &mut Batch<'a>) -> Result<bool> {
        let Some(split) = self.plan.split.clone() else { return Ok(false) };
        let slots = self.plan.pipeline.unit().bindings().slots().iter().zip(&mut self.plan.slots);
        for (slot, (buffer, (source, bytes))) in slots.enumerate() {
            match source {
                Source::Zeros => *source = Source::Bytes(Cow::Owned(zeros(*bytes, "a buffer")?)),
                Source::Resident(span) if buffer.produces_output() && !buffer.consumes_input() => {
                    self.borrowed.push((slot, *span));
                    *source = Source::Bytes(Cow::Owned(zeros(*bytes, "a buffer")?));
                }
                Source::Resident(span) => {
                    if buffer.produces_output() {
                        self.borrowed.push((slot, *span));
                    }
                    batch.push(Action::Read { from: *span });
                    self.expected.push(Expected::Kept(Storage::Buffer(self.facts.buffer(slot))));
                }
                Source::Bytes(_) => {}
            }
        }
        for hidden in split.schedule.hidden() {
            let bytes = hidden.size(self.plan.grid).unwrap_or(u64::MAX);
            let memory = zeros(bytes, "what is held across grid barriers")?;
            self.hidden.push((Source::Bytes(Cow::Owned(memory)), bytes));
        }
        Ok(!self.expected.is_empty())
    }

    /// Walks on to the next launch, or to the end of the last pass.
    fn walk(&mut self, backend: &dyn VyreBackend, batch: &mut Batch<'a>) -> Result<()> {
        let Some(split) = self.plan.split.clone() else { return Ok(()) };
        for _ in 0..MOST_NODES {
            let mut machine = match self.pass.take() {
                Some(machine) => machine,
                None => {
                    self.begin_on_host()?;
                    Machine::new(&split.schedule)
                }
            };
            let is_empty = self.plan.grid.workgroup_count() == 0;
            let event = if is_empty { Ok(Event::End) } else { machine.step(&self.facts) };
            match event {
                Ok(Event::End) => {
                    self.check_traps()?;
                    if self.end_on_host(backend)? {
                        return Ok(());
                    }
                    continue;
                }
                Ok(Event::Control) => {}
                Ok(Event::Barrier) => {
                    self.walked(|walked| walked.points += 1);
                    self.check_traps()?;
                }
                Ok(Event::Launch(segment)) => {
                    self.walked(|walked| walked.segments += 1);
                    self.pass = Some(machine);
                    return self.launch_on_host(batch, segment);
                }
                Ok(Event::Word(row, number)) => self.learn_word(&mut machine, row, number),
                Ok(Event::Element(row, buffer, index)) => {
                    let bits = self.element_on_host(buffer, index);
                    machine.learn(row, bits);
                }
                Err(Missing::Element(buffer, index)) => {
                    let bits = self.element_on_host(buffer, index);
                    self.facts.learn(buffer, index, bits);
                }
                Err(Missing::Row(row)) => {
                    return Err(Error::Internal(format!("{row:?} is needed and nobody has it")));
                }
            }
            self.pass = Some(machine);
        }
        Ok(())
    }

    /// Begins a pass: what starts at zero does, and what is carried is remembered.
    fn begin_on_host(&mut self) -> Result<()> {
        let buffers = self.plan.pipeline.unit().bindings().slots().iter().zip(&mut self.plan.slots);
        if self.passes > 0 {
            for (_, (source, _)) in buffers.filter(|(buffer, _)| buffer.access() == BufferAccess::Scratch) {
                clear(source);
            }
            let hidden = self.plan.split.iter().flat_map(|split| split.schedule.hidden());
            for (hidden, (source, _)) in hidden.zip(&mut self.hidden) {
                if hidden.starts_as_zeros() {
                    clear(source);
                }
            }
        }
        if self.limit.is_some() {
            self.snapshots.clear();
            let slots = self.plan.buffers().iter().zip(&self.plan.slots);
            let mut snapshots = Vec::new();
            for (_, (source, _)) in slots.filter(|(buffer, _)| buffer.produces_output()) {
                let snapshot = copied(bytes_of(source), "what a pass began with")?;
                snapshots.push(Source::Bytes(Cow::Owned(snapshot)));
            }
            self.snapshots = snapshots;
        }
        Ok(())
    }

    /// Ends a pass. Gives whether it was the last.
    fn end_on_host(&mut self, backend: &dyn VyreBackend) -> Result<bool> {
        self.passes += 1;
        backend.telemetry().passes(1);
        let carried = self.plan.buffers().iter().zip(&self.plan.slots);
        let carried = carried.filter(|(buffer, _)| buffer.produces_output()).map(|(_, (source, _))| source);
        let is_at_rest = carried.zip(&self.snapshots).all(|(now, then)| bytes_of(now) == bytes_of(then));
        if self.limit.is_none_or(|limit| is_at_rest || self.passes == limit) {
            self.stage = Stage::Ends { is_at_rest };
        }
        Ok(self.stage != Stage::Runs)
    }

    fn launch_on_host(&mut self, batch: &mut Batch<'a>, number: usize) -> Result<()> {
        let Some(split) = self.plan.split.clone() else { return Ok(()) };
        let segment = &split.schedule.segments[number];
        let mut bindings = Vec::new();
        for binding in &segment.bindings {
            let temporary = self.lend(*binding)?;
            bindings.push(batch.temporary(temporary));
        }
        let grid = segment_grid(segment.is_once, self.plan.grid);
        self.launched.push((batch.steps.len(), number));
        let spans: Vec<Span> = bindings.clone();
        batch.push(Action::Launch(Launch { pipeline: Arc::clone(&split.code[number]), bindings, grid }));
        for (binding, from) in segment.bindings.iter().zip(spans) {
            if binding.is_stored {
                batch.push(Action::Read { from });
                self.expected.push(Expected::Kept(binding.storage));
            }
        }
        Ok(())
    }

    /// The memory of a binding for one launch.
    fn lend(&mut self, binding: Binding) -> Result<Temporary<'a>> {
        let missing = || Error::Internal(format!("{:?} is not on the host", binding.storage));
        let (source, bytes) = self.storage(binding.storage).ok_or_else(missing)?;
        let Source::Bytes(held) = source else { return Err(missing()) };
        Ok(match held {
            _ if !binding.is_touched => Temporary::Zeroed { bytes: *bytes },
            Cow::Borrowed(lent) if binding.is_stored => Temporary::Initial(Cow::Borrowed(*lent)),
            Cow::Borrowed(lent) => Temporary::Borrowed(Cow::Borrowed(*lent)),
            // It comes back when the launch is done.
            Cow::Owned(own) if binding.is_stored => Temporary::Initial(Cow::Owned(std::mem::take(own))),
            Cow::Owned(own) => Temporary::Borrowed(Cow::Owned(copied(own, "a copy of a buffer")?)),
        })
    }

    fn storage(&mut self, storage: Storage) -> Option<&mut (Source<'a>, u64)> {
        match storage {
            Storage::Buffer(buffer) => self.plan.slots.get_mut(self.facts.slot(buffer)?),
            Storage::Hidden(hidden) => self.hidden.get_mut(hidden as usize),
        }
    }

    /// Takes the bytes of a storage as a launch left them. What it found for the grid is handed on.
    pub(crate) fn put_back(&mut self, storage: Storage, bytes: Vec<u8>) {
        if let Some((source, _)) = self.storage(storage) {
            *source = Source::Bytes(Cow::Owned(bytes));
        }
        let Some(split) = self.plan.split.clone() else { return };
        let [found, uniforms] =
            [Purpose::Found, Purpose::Uniforms].map(|purpose| find(&split.schedule, purpose));
        let (Some(found), Some(uniforms)) = (found, uniforms) else { return };
        if storage != Storage::Hidden(found as u32) {
            return;
        }
        let segments = self.launched.iter().map(|(_, segment)| &split.schedule.segments[*segment]);
        let words: Vec<u32> = segments.flat_map(|segment| segment.found.iter().copied()).collect();
        let from = bytes_of(&self.hidden[found].0).to_vec();
        if let Source::Bytes(to) = &mut self.hidden[uniforms].0 {
            for number in words {
                let range = number as usize * 4..number as usize * 4 + 4;
                to.to_mut()[range.clone()].copy_from_slice(&from[range]);
            }
        }
    }

    /// The bytes of a storage, which nobody needs any more.
    fn take(&mut self, storage: Storage) -> Result<Vec<u8>> {
        match self.storage(storage) {
            Some((Source::Bytes(bytes), _)) => match std::mem::take(bytes) {
                Cow::Owned(own) => Ok(own),
                Cow::Borrowed(lent) => copied(lent, "a result"),
            },
            _ => Err(Error::Internal(format!("{storage:?} is not on the host"))),
        }
    }

    fn learn_word(&mut self, machine: &mut Machine, row: ValueId, number: u32) {
        let Some(split) = &self.plan.split else { return };
        let Some(found) = find(&split.schedule, Purpose::Found) else { return };
        let words = if split.schedule.is_wide(number) { 2 } else { 1 };
        let bytes = bytes_of(&self.hidden[found].0).iter().skip(number as usize * 4).take(words * 4);
        machine.learn(row, bytes.rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)));
    }

    fn element_on_host(&self, buffer: u32, index: u32) -> u64 {
        let Some(slot) = self.facts.slot(buffer).filter(|_| index < self.facts.len(buffer)) else { return 0 };
        let element = self.facts.decl(buffer).element();
        let bytes = bytes_of(&self.plan.slots[slot].0);
        bytes.get(index as usize * element.size()..).map_or(0, |bytes| element::load(element, bytes))
    }

    fn check_traps(&self) -> Result<()> {
        let Some(traps) = self.plan.split.as_ref().and_then(|split| split.schedule.traps.as_ref()) else {
            return Ok(());
        };
        if bytes_of(&self.hidden[traps.flag as usize].0).iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(self.trapped(bytes_of(&self.hidden[traps.notes as usize].0)))
    }
}

/// The bytes of memory on the host.
fn bytes_of<'s>(source: &'s Source<'_>) -> &'s [u8] {
    match source {
        Source::Bytes(bytes) => bytes,
        _ => &[],
    }
}

fn clear(source: &mut Source<'_>) {
    if let Source::Bytes(bytes) = source {
        bytes.to_mut().fill(0);
    }
}
