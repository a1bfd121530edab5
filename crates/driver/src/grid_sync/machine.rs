//! Walks through a schedule: where a pass stands, and what the engine knows.

use super::formula::{Known, Missing, Values};
use super::schedule::{Carried, Given, Node, Schedule};
use std::sync::Arc;
use vyre_lower::ValueId;

/// A pass over a schedule.
pub(crate) struct Machine {
    schedule: Arc<Schedule>,
    frames: Vec<Frame>,
    values: Values,
}

/// A block that is being carried out.
#[derive(Clone, Copy)]
struct Frame {
    block: usize,
    next: usize,
    /// The node that it belongs to, in the block before it; 1 is the second block of a branch.
    owner: Option<(usize, usize, usize)>,
}

/// What is to be done next.
pub(crate) enum Event {
    /// A segment is to be launched, by its number.
    Launch(usize),
    /// A grid barrier has been reached.
    Barrier,
    /// A word of what launches find is to be learnt.
    Word(ValueId, u32),
    /// An element of a buffer is to be learnt, by buffer and index.
    Element(ValueId, u32, u32),
    /// Control was carried out.
    Control,
    /// The pass is over.
    End,
}

impl Machine {
    /// A pass that has not begun.
    pub(crate) fn new(schedule: &Arc<Schedule>) -> Machine {
        let entry = Frame { block: 0, next: 0, owner: None };
        Machine { schedule: Arc::clone(schedule), frames: vec![entry], values: Values::default() }
    }

    /// The engine has learnt the value of a row.
    pub(crate) fn learn(&mut self, row: ValueId, bits: u64) {
        self.values.insert(row, bits);
    }

    /// Goes on by one node. Where a value is missing, nothing has happened.
    pub(crate) fn step(&mut self, known: &dyn Known) -> Result<Event, Missing> {
        let schedule = Arc::clone(&self.schedule);
        let Some(frame) = self.frames.last().copied() else { return Ok(Event::End) };
        let Some(node) = schedule.blocks[frame.block].get(frame.next) else {
            return self.leave(frame, &schedule, known);
        };
        let event = match node {
            Node::Launch(segment) => Event::Launch(*segment),
            Node::Barrier => Event::Barrier,
            Node::Let { row, from: Given::Word(word) } => Event::Word(*row, *word),
            Node::Let { row, from: Given::Element { buffer, index } } => {
                let index = index.evaluate(&mut self.values, known)? as u32;
                // What is on its way is not known any more.
                self.values.remove(row);
                Event::Element(*row, *buffer, index)
            }
            Node::While { guard, carried, body, .. } => {
                let runs = guard.evaluate(&mut self.values, known)? != 0;
                self.assign(carried, 0, known)?;
                self.enter(runs.then_some((*body, 0)));
                return Ok(Event::Control);
            }
            Node::Branch { cond, then, otherwise, .. } => {
                let holds = cond.evaluate(&mut self.values, known)? != 0;
                self.enter(Some(if holds { (*then, 0) } else { (*otherwise, 1) }));
                return Ok(Event::Control);
            }
        };
        if let Event::Word(row, _) = &event {
            self.values.remove(row);
        }
        self.advance();
        Ok(event)
    }

    fn advance(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.next += 1;
        }
    }

    /// Enters a block of the node at hand, or passes it by.
    fn enter(&mut self, block: Option<(usize, usize)>) {
        let Some(around) = self.frames.last().copied() else { return };
        self.advance();
        if let Some((block, which)) = block {
            self.frames.push(Frame { block, next: 0, owner: Some((around.block, around.next, which)) });
        }
    }

    /// Gives the values of control their new values. All are computed before one changes: they may be each other's.
    fn assign(&mut self, carried: &[Carried], which: usize, known: &dyn Known) -> Result<(), Missing> {
        let values = carried.iter().map(|carried| carried.values[which].evaluate(&mut self.values, known));
        let values = values.collect::<Result<Vec<u64>, Missing>>()?;
        for (carried, bits) in carried.iter().zip(values) {
            carried.rows.iter().for_each(|row| self.learn(*row, bits));
        }
        Ok(())
    }

    /// The end of a block.
    fn leave(&mut self, frame: Frame, schedule: &Schedule, known: &dyn Known) -> Result<Event, Missing> {
        let Some((block, node, which)) = frame.owner else {
            self.frames.clear();
            return Ok(Event::End);
        };
        let goes_on = match &schedule.blocks[block][node] {
            Node::While { carried, again, .. } => {
                let again = again.evaluate(&mut self.values, known)? != 0;
                self.assign(carried, 1, known)?;
                again
            }
            Node::Branch { carried, .. } => {
                self.assign(carried, which, known)?;
                false
            }
            _ => false,
        };
        match self.frames.last_mut() {
            Some(frame) if goes_on => frame.next = 0,
            _ => {
                self.frames.pop();
            }
        }
        Ok(Event::Control)
    }
}
