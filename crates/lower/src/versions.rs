//! Memory versions: loads of one buffer with equal versions see equal memory.
//!
//! Stores, atomics, barriers and uniform loads give the buffers they touch a new version. An atomic that acquires touches
//! all buffers that others may write: who sees a flag sees the data. So does the head of a loop for what its body
//! touches, since an earlier iteration may have, and the end of a loop or branch.

use crate::kernel::{Item, ItemId, RegionId};
use crate::lower::roomy;
use vyre_foundation::MemoryOrdering::{AcqRel, Acquire, SeqCst};
use vyre_foundation::{AtomicOp, BufferAccess, BufferDecl};

/// Gives every load its version. Items are numbered before what is nested in them.
pub(crate) fn assign(items: &mut [(Item, u32)], regions: &[Vec<ItemId>], buffers: &[BufferDecl]) {
    let mut written = vec![false; buffers.len()];
    for (item, _) in items.iter() {
        if let Item::Store { buffer, .. } | Item::Atomic { buffer, .. } = item {
            written[*buffer as usize] = true;
        }
    }
    let shared = |i: &usize| written[*i] && buffers[*i].access() != BufferAccess::Local;
    let shared: Vec<usize> = (0..buffers.len()).filter(shared).collect();
    let mut touched: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    for i in (0..items.len()).rev() {
        let nested: Vec<RegionId> = match &items[i].0 {
            Item::If { then, otherwise, .. } => vec![*then, *otherwise],
            Item::Loop { body, .. } => vec![*body],
            _ => Vec::new(),
        };
        let mut all = match &items[i].0 {
            Item::Store { buffer, .. } => vec![*buffer as usize],
            Item::Atomic { ordering: Acquire | AcqRel | SeqCst, .. } => shared.clone(),
            Item::Atomic { op, buffer, .. } if *op != AtomicOp::Load => vec![*buffer as usize],
            Item::Barrier { .. } | Item::UniformLoad { .. } => shared.clone(),
            _ => Vec::new(),
        };
        for item in nested.iter().flat_map(|region| &regions[region.index()]) {
            all.extend_from_slice(&touched[item.index()]);
        }
        all.sort_unstable();
        all.dedup();
        touched[i] = all;
    }
    let current = vec![0; buffers.len()];
    let mut versions = Versions { items, regions, touched: &touched, current, next: 1 };
    versions.region(RegionId(0));
}

struct Versions<'a> {
    items: &'a mut [(Item, u32)],
    regions: &'a [Vec<ItemId>],
    /// The buffers that each item touches, with what is nested in it.
    touched: &'a [Vec<usize>],
    current: Vec<u32>,
    next: u32,
}

impl Versions<'_> {
    fn touch(&mut self, item: ItemId) {
        for buffer in &self.touched[item.index()] {
            self.current[*buffer] = self.next;
            self.next += 1;
        }
    }

    fn region(&mut self, region: RegionId) {
        let regions = self.regions;
        for item in &regions[region.index()] {
            roomy(|| self.item(*item));
        }
    }

    fn item(&mut self, id: ItemId) {
        match &mut self.items[id.index()].0 {
            Item::Load { buffer, version, .. } => *version = self.current[*buffer as usize],
            Item::If { then, otherwise, .. } => {
                let (then, otherwise) = (*then, *otherwise);
                let before = self.current.clone();
                self.region(then);
                self.current = before;
                self.region(otherwise);
                self.touch(id);
            }
            Item::Loop { body, .. } => {
                let body = *body;
                self.touch(id);
                self.region(body);
                self.touch(id);
            }
            _ => self.touch(id),
        }
    }
}
