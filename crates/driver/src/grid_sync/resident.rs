//! A schedule over memory of the device: launches are steps of batches, and only what the engine must see comes back.

use super::formula::{Known, Missing};
use super::machine::{Event, Machine};
use super::schedule::{Purpose, Schedule, Storage};
use crate::batch::{Action, Launch, Span};
use crate::engine::{Chunk, Encoded, Expected, Job, word};
use crate::error::{Error, Result};
use std::sync::Arc;
use vyre_foundation::element;
use vyre_foundation::grid::Grid;
use vyre_lower::ValueId;
use vyre_reference::Trap;

/// Where a pass stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Position {
    /// It came to its end.
    Ended,
    /// The batch must run before it goes on.
    Waits,
}

/// The most steps of a batch.
const MOST_STEPS: usize = 1024;

/// The most nodes that are walked for a batch. A loop may have nothing to launch, and must be stopped all the same.
const MOST_NODES: usize = 1 << 16;

impl<'a> Job<'a> {
    /// Goes on with the pass under way, or begins it.
    pub(crate) fn go_on(&mut self, chunk: &mut Chunk<'a>) -> Result<Position> {
        let Some(split) = self.plan.split.clone() else { return Ok(Position::Ended) };
        if self.plan.grid.workgroup_count() == 0 {
            return Ok(Position::Ended);
        }
        let mut machine = self.pass.take().unwrap_or_else(|| Machine::new(&split.schedule));
        let mut walked = 0;
        while chunk.batch.steps.len() < MOST_STEPS && walked < MOST_NODES {
            walked += 1;
            match machine.step(&self.facts) {
                Ok(Event::End) => return Ok(Position::Ended),
                Ok(Event::Control) => {}
                Ok(Event::Barrier) => {
                    self.walked(|walked| walked.points += 1);
                    self.halt_on_trap(chunk);
                }
                Ok(Event::Launch(segment)) => {
                    self.walked(|walked| walked.segments += 1);
                    self.launch_segment(chunk, segment);
                }
                Ok(Event::Word(row, number)) => self.read_word(chunk, row, number),
                Ok(Event::Element(row, buffer, index)) => {
                    self.read_element(chunk, &mut machine, row, buffer, index);
                }
                Err(Missing::Element(buffer, index)) => {
                    self.read_constant(chunk, buffer, index)?;
                    break;
                }
                Err(Missing::Row(row)) => {
                    let is_asked = |expected: &Expected| matches!(expected, Expected::Row(r, _) if *r == row);
                    if !self.expected.iter().any(is_asked) {
                        return Err(Error::Internal(format!("{row:?} is needed and nobody has it")));
                    }
                    break;
                }
            }
        }
        self.pass = Some(machine);
        Ok(Position::Waits)
    }

    fn launch_segment(&mut self, chunk: &mut Chunk<'a>, number: usize) {
        let Some(split) = &self.plan.split else { return };
        let segment = &split.schedule.segments[number];
        let span = |storage: Storage| match storage {
            Storage::Buffer(buffer) => self.facts.slot(buffer).map(|slot| chunk.slots[slot]),
            Storage::Hidden(hidden) => chunk.hidden.get(hidden as usize).copied(),
        };
        let bindings = segment.bindings.iter().filter_map(|binding| span(binding.storage)).collect();
        let grid = segment_grid(segment.is_once, self.plan.grid);
        let launch = Launch { pipeline: Arc::clone(&split.code[number]), bindings, grid };
        self.launched.push((chunk.batch.steps.len(), number));
        // What was found is handed on when the launch is done: nobody reads it while it is written.
        let [found, uniforms] =
            [Purpose::Found, Purpose::Uniforms].map(|purpose| find(&split.schedule, purpose));
        let words = segment.found.clone();
        chunk.push(Action::Launch(launch));
        if let (Some(found), Some(uniforms)) = (found, uniforms) {
            for number in words {
                let [from, to] = [found, uniforms].map(|memory| word(chunk.hidden[memory], number));
                chunk.push(Action::Copy { from, to });
            }
        }
    }

    /// Asks for a word that a launch has found. All of a 64-bit value is asked for: rows know their types.
    fn read_word(&mut self, chunk: &mut Chunk<'a>, row: ValueId, number: u32) {
        let Some(split) = &self.plan.split else { return };
        let Some(found) = find(&split.schedule, Purpose::Found) else { return };
        let memory = chunk.hidden[found];
        let bytes = if split.schedule.is_wide(number) { 8 } else { 4 };
        let from = Span { bytes, ..word(memory, number) };
        let when = chunk.running();
        self.read(chunk, from, when, Expected::Row(row, Encoded::Words));
    }

    fn read_element(
        &mut self,
        chunk: &mut Chunk<'a>,
        machine: &mut Machine,
        row: ValueId,
        buffer: u32,
        index: u32,
    ) {
        match self.element_span(chunk, buffer, index) {
            Some(from) => {
                let encoded = Encoded::Element(self.facts.decl(buffer).element());
                let when = chunk.running();
                self.read(chunk, from, when, Expected::Row(row, encoded));
            }
            None => {
                // What was asked for before comes back later, and is not what it is now.
                let asked = |expected: &&mut Expected| matches!(expected, Expected::Row(r, _) if *r == row);
                self.expected.iter_mut().filter(asked).for_each(|expected| *expected = Expected::Nothing);
                machine.learn(row, 0);
            }
        }
    }

    /// Asks for an element that nobody writes.
    fn read_constant(&mut self, chunk: &mut Chunk<'a>, buffer: u32, index: u32) -> Result<()> {
        let outside = || Error::Internal("an element outside its buffer is needed".to_owned());
        let from = self.element_span(chunk, buffer, index).ok_or_else(outside)?;
        self.read(chunk, from, None, Expected::Element(buffer, index));
        Ok(())
    }

    fn element_span(&self, chunk: &Chunk<'a>, buffer: u32, index: u32) -> Option<Span> {
        let span = chunk.slots[self.facts.slot(buffer)?];
        let bytes = self.facts.decl(buffer).element().size() as u64;
        let offset = u64::from(index) * bytes;
        (index < self.facts.len(buffer)).then_some(Span {
            memory: span.memory,
            offset: span.offset + offset,
            bytes,
        })
    }

    /// The word that says whether an invocation has trapped.
    pub(crate) fn trap_flag(&self, hidden: &[Span]) -> Option<Span> {
        let traps = self.plan.split.as_ref()?.schedule.traps.as_ref()?;
        hidden.get(traps.flag as usize).copied()
    }

    pub(crate) fn halt_on_trap(&self, chunk: &mut Chunk<'a>) {
        if let Some(flag) = self.trap_flag(&chunk.hidden) {
            chunk.halt_on_trap(flag);
        }
    }

    /// Asks which invocations have trapped, where some have.
    pub(crate) fn read_traps(&mut self, chunk: &mut Chunk<'a>) {
        let Some(when) = chunk.has_trapped() else { return };
        let traps = self.plan.split.as_ref().and_then(|split| split.schedule.traps.as_ref());
        let Some(notes) = traps.map(|traps| chunk.hidden[traps.notes as usize]) else { return };
        self.read(chunk, notes, Some(when), Expected::Traps);
    }

    /// Takes what the engine asked for. Nothing comes back of what a halted chunk did not do.
    pub(crate) fn learn(&mut self, expected: Expected, bytes: Option<Vec<u8>>) -> Result<()> {
        let Some(bytes) = bytes else { return Ok(()) };
        match expected {
            Expected::Row(row, encoded) => {
                let bits = match encoded {
                    Encoded::Words => bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
                    Encoded::Element(element) => element::load(element, &bytes),
                };
                self.pass.iter_mut().for_each(|pass| pass.learn(row, bits));
            }
            Expected::Element(buffer, index) => {
                let bits = element::load(self.facts.decl(buffer).element(), &bytes);
                self.facts.learn(buffer, index, bits);
            }
            Expected::Traps => return Err(self.trapped(&bytes)),
            Expected::Kept(storage) => self.put_back(storage, bytes),
            Expected::Flag | Expected::Output | Expected::Nothing => {}
        }
        Ok(())
    }

    /// The trap of the smallest invocation that noted one.
    pub(crate) fn trapped(&self, notes: &[u8]) -> Error {
        let tags = self.plan.split.as_ref().and_then(|split| split.schedule.traps.as_ref());
        for (invocation, note) in (0..).zip(notes.chunks_exact(8)) {
            let note = element::load(vyre_foundation::Element::U64, note);
            let tag = (note as u32).checked_sub(1).and_then(|tag| tags?.tags.get(tag as usize));
            if let Some(tag) = tag {
                return Error::Trap(Trap { tag: tag.clone(), value: (note >> 32) as u32, invocation });
            }
        }
        Error::Internal("a trap that nobody noted".to_owned())
    }
}

/// The grid of a segment.
pub(super) fn segment_grid(is_once: bool, grid: Grid) -> Grid {
    if is_once { Grid::ONE } else { grid }
}

/// The hidden storage that is for something.
pub(super) fn find(schedule: &Schedule, purpose: Purpose) -> Option<usize> {
    schedule.hidden.iter().position(|hidden| hidden.purpose == purpose)
}
