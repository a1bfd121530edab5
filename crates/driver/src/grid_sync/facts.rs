//! What the engine knows of a dispatch without asking the device.

use super::formula::Known;
use crate::plan::{Plan, Source};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use vyre_foundation::{BufferDecl, element};

/// What is known of a dispatch.
pub(crate) struct Facts<'a> {
    workgroups: [u32; 3],
    buffers: Vec<Buffer<'a>>,
    /// Elements of buffers that nobody writes, as the device gave them.
    elements: FxHashMap<(u32, u32), u64>,
}

struct Buffer<'a> {
    decl: BufferDecl,
    /// Its slot, if the grid shares it.
    slot: Option<usize>,
    count: u32,
    /// Its first contents, where they are the caller's and stay where they are.
    lent: Option<&'a [u8]>,
}

impl<'a> Facts<'a> {
    /// What is known of a dispatch before it begins. One that is a single launch needs no facts.
    pub(crate) fn of(plan: &Plan<'a>) -> Facts<'a> {
        let mut slots = plan.slots.iter().enumerate();
        let describe = |decl: &BufferDecl| {
            let slot = if decl.access().is_shared_by_grid() { slots.next() } else { None };
            let count = match slot {
                Some((_, (_, bytes))) => (bytes / decl.element().size() as u64) as u32,
                None => decl.count().unwrap_or(0),
            };
            let lent = match slot {
                Some((_, (Source::Bytes(Cow::Borrowed(lent)), _))) => Some(*lent),
                _ => None,
            };
            Buffer { decl: decl.clone(), slot: slot.map(|(slot, _)| slot), count, lent }
        };
        let is_split = plan.split.is_some();
        let buffers = plan.pipeline.program().buffers().iter().filter(|_| is_split).map(describe).collect();
        Facts { workgroups: plan.grid.workgroups(), buffers, elements: FxHashMap::default() }
    }

    /// The declaration of a buffer.
    pub(crate) fn decl(&self, buffer: u32) -> &BufferDecl {
        &self.buffers[buffer as usize].decl
    }

    /// The slot of a buffer that the grid shares.
    pub(crate) fn slot(&self, buffer: u32) -> Option<usize> {
        self.buffers.get(buffer as usize)?.slot
    }

    /// The buffer of a slot, by its number.
    pub(crate) fn buffer(&self, slot: usize) -> u32 {
        self.buffers.iter().position(|buffer| buffer.slot == Some(slot)).unwrap_or(0) as u32
    }

    /// The device has given an element of a buffer that nobody writes.
    pub(crate) fn learn(&mut self, buffer: u32, index: u32, bits: u64) {
        self.elements.insert((buffer, index), bits);
    }
}

impl Known for Facts<'_> {
    fn workgroups(&self) -> [u32; 3] {
        self.workgroups
    }

    fn len(&self, buffer: u32) -> u32 {
        self.buffers[buffer as usize].count
    }

    fn element(&self, buffer: u32, index: u32) -> Option<u64> {
        let Buffer { decl, lent, .. } = &self.buffers[buffer as usize];
        if let Some(bytes) = lent {
            let start = index as usize * decl.element().size();
            return bytes.get(start..).map(|bytes| element::load(decl.element(), bytes));
        }
        // Nobody writes it, so what starts as zeros stays so.
        if !decl.consumes_input() {
            return Some(0);
        }
        self.elements.get(&(buffer, index)).copied()
    }
}
