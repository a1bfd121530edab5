//! Where values are kept between runs, and where a kernel's own memory stands.
//!
//! Emission asks for a slot when it needs a value that the run at hand has not computed. The first time it gets a
//! promise; when everything has been emitted once, the promised slots are laid out and the kernel is emitted
//! again, this time for good. So slots are exactly the values that cross, and nothing predicts them.

use crate::shape::{Level, Shape};
use indexmap::IndexMap;
use vyre_foundation::{BufferAccess, Type};
use vyre_lower::{ItemId, ValueId};

/// What a slot keeps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Key {
    /// A row.
    Row(ValueId),
    /// A parameter of a loop and its result, or a result of another item.
    Result(ItemId, u32),
    /// An operand of a subgroup operation.
    Operand(ItemId, u32),
}

/// A slot: one element per lane or one per workgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// The type of the value.
    pub(super) ty: Type,
    /// Whether each lane has its own element.
    pub(super) per_lane: bool,
    /// Whether it lives across grid barriers: in the storage of the workgroup, not in the frame of the worker.
    pub(super) kept: bool,
    /// Where it begins.
    pub(super) offset: i32,
}

/// Workgroup or local memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Own {
    /// Whether it lives across grid barriers.
    pub(super) kept: bool,
    /// Where it begins.
    pub(super) offset: i32,
    /// The bytes of one array.
    pub(super) bytes: u32,
    /// Bytes from the array of one lane to that of the next; 0 where there is only one.
    pub(super) stride: u32,
}

/// The slots of a kernel.
#[derive(Default)]
pub(super) struct Slots {
    slots: IndexMap<Key, Slot>,
    /// Rows that are not computed again although they are cheap, because a level above needs them.
    pub(super) pinned: Vec<ValueId>,
    /// The kernel's own memory, by the number of the buffer.
    pub(super) own: Vec<Option<Own>>,
    /// The size of a worker's frame.
    pub(super) frame_bytes: u64,
    /// The size of what a workgroup keeps across grid barriers.
    pub(super) kept_bytes: u64,
    /// Whether something was promised since the last layout.
    changed: bool,
}

/// In the frame of a large kernel: sixteen bytes that stay zero, for loads outside their buffer.
pub(super) const ZERO_CELL: i64 = 0;

/// And sixteen bytes that nobody reads, for stores outside.
pub(super) const SINK_CELL: i64 = 16;

/// The size of both.
const CELLS: u64 = 32;

/// The bytes of a value in a slot.
pub(super) const fn width(ty: Type) -> u32 {
    if ty.bits() == 64 { 8 } else { 4 }
}

impl Slots {
    /// The slot of a key; made on first demand.
    pub(super) fn get(&mut self, key: Key, ty: Type, level: Level, kept: bool) -> Slot {
        let fresh = Slot { ty, per_lane: level == Level::Lane, kept, offset: 0 };
        let changed = &mut self.changed;
        let slot = self.slots.entry(key).or_insert_with(|| {
            *changed = true;
            fresh
        });
        if kept && !slot.kept {
            slot.kept = true;
            self.changed = true;
        }
        *slot
    }

    /// The slot of a key, if somebody has asked for it.
    pub(super) fn find(&self, key: Key) -> Option<Slot> {
        self.slots.get(&key).copied()
    }

    /// Computes a row once, where it is homed, although it is cheap.
    pub(super) fn pin(&mut self, row: ValueId) {
        self.pinned.push(row);
        self.changed = true;
    }

    /// Gives everything its place. `None` where it would not fit 31-bit offsets. Says whether anything changed since.
    pub(super) fn lay_out(&mut self, shape: &Shape<'_>) -> Option<bool> {
        let changed = std::mem::take(&mut self.changed);
        (self.frame_bytes, self.kept_bytes) = (if shape.is_large { CELLS } else { 0 }, 0);
        self.own = vec![None; shape.kernel.buffers.len()];
        // Every workgroup of the grid has what is kept, so nothing is lost between: large elements come first.
        let mut largest = 1;
        for size in [8, 4, 2, 1] {
            for number in 0..self.own.len() {
                if shape.kernel.buffers[number].element().size() as u64 == size {
                    self.own[number] = self.own(shape, number)?;
                }
            }
            for i in 0..self.slots.len() {
                let Slot { ty, per_lane, kept, .. } = self.slots[i];
                if u64::from(width(ty)) == size {
                    let count = if per_lane { shape.lanes } else { 1 };
                    self.slots[i].offset = self.take(kept, size * u64::from(count))?;
                }
            }
            if self.kept_bytes > 0 {
                largest = largest.max(size);
            }
        }
        self.kept_bytes = self.kept_bytes.checked_next_multiple_of(largest)?;
        Some(changed)
    }

    /// Gives a buffer its place, if it is the kernel's own memory. The outer `None`: it does not fit.
    fn own(&mut self, shape: &Shape<'_>, number: usize) -> Option<Option<Own>> {
        let buffer = &shape.kernel.buffers[number];
        let bytes = u64::from(buffer.count().unwrap_or(0)) * buffer.element().size() as u64;
        let stride = match buffer.access() {
            BufferAccess::Workgroup => 0,
            // Without runs one lane after the other lives and dies: they share one array.
            BufferAccess::Local if !shape.has_runs => 0,
            BufferAccess::Local => bytes,
            _ => return Some(None),
        };
        let total = bytes.max(stride * u64::from(shape.lanes));
        let offset = self.take(shape.segmented, total)?;
        let (bytes, stride) = (bytes as u32, stride as u32);
        Some(Some(Own { kept: shape.segmented, offset, bytes, stride }))
    }

    /// The next free bytes: in the frame 16 aligned, in what is kept right behind the ones before.
    fn take(&mut self, kept: bool, bytes: u64) -> Option<i32> {
        let (area, align) = if kept { (&mut self.kept_bytes, 1) } else { (&mut self.frame_bytes, 16) };
        let offset = i32::try_from(*area).ok()?;
        *area = area.checked_add(bytes)?.checked_next_multiple_of(align)?;
        (*area <= i32::MAX as u64).then_some(offset)
    }
}
