//! Loads of neighbours. Where all that is loaded of a read-only buffer are words of aligned groups of four, the buffer is
//! an array of vectors: a group is loaded once, and each word is taken out of it. Each is still checked by itself.

use super::memory::Inside;
use super::{Emitter, Form, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use vyre_driver::Result;
use vyre_foundation::{BinOp, Literal};
use vyre_lower::{Item, Kernel, Value as Row, ValueId};

/// The groups that are loaded, the latest last, as buffer and first index.
#[derive(Default)]
pub(super) struct Groups {
    loaded: FxHashMap<(u32, ValueId), Value>,
    order: Vec<(u32, ValueId)>,
}

/// The first index of a group and which word of it an index is, where that can be seen.
fn group(kernel: &Kernel, index: ValueId) -> Option<(ValueId, u32)> {
    let word = |row: ValueId| match kernel.value(row) {
        Row::Const(Literal::U32(word)) => Some(word),
        _ => None,
    };
    // Products and shifts wrap, and stay multiples of four.
    let is_first = |row: ValueId| match kernel.value(row) {
        Row::Binary { op: BinOp::Mul, a, b, .. } => {
            [a, b].into_iter().filter_map(word).any(|factor| factor.is_multiple_of(4))
        }
        Row::Binary { op: BinOp::Shl, b, .. } => word(b).is_some_and(|by| (2..32).contains(&by)),
        _ => false,
    };
    if is_first(index) {
        return Some((index, 0));
    }
    let Row::Binary { op: BinOp::Add, a, b, .. } = kernel.value(index) else { return None };
    let parts = [(a, b), (b, a)].into_iter();
    parts
        .filter_map(|(first, rest)| Some((first, word(rest)?)))
        .find(|(first, rest)| *rest < 4 && is_first(*first))
}

/// Which buffers are arrays of vectors.
pub(super) fn grouped(kernel: &Kernel, form: &Form) -> Vec<bool> {
    let mut slots = form.windows.iter().zip(&form.shifted);
    let mut can: Vec<bool> = kernel
        .buffers
        .iter()
        .map(|buffer| {
            let access = buffer.access();
            let is_whole = access.is_shared_by_grid()
                && slots.next().is_some_and(|(windows, is_shifted)| *windows == 1 && !is_shifted);
            is_whole && !access.allows_store() && buffer.element().size() == 4
        })
        .collect();
    let mut first: FxHashMap<(u32, ValueId), u32> = FxHashMap::default();
    let mut gains: FxHashSet<u32> = FxHashSet::default();
    for row in kernel.rows() {
        let Row::Load { buffer, index, .. } = kernel.value(row) else { continue };
        match group(kernel, index) {
            Some((base, word)) => {
                if *first.entry((buffer, base)).or_insert(word) != word {
                    gains.insert(buffer);
                }
            }
            None => can[buffer as usize] = false,
        }
    }
    for item in kernel.region_ids().flat_map(|region| kernel.region(region)) {
        if let Item::Load { buffer, .. } | Item::UniformLoad { buffer, .. } = kernel.item(item) {
            can[buffer as usize] = false;
        }
    }
    (0..).zip(can).map(|(buffer, can)| can && gains.contains(&buffer)).collect()
}

impl Emitter<'_> {
    /// How many groups are loaded.
    pub(super) fn groups(&self) -> usize {
        self.groups.order.len()
    }

    /// Forgets the groups that were loaded since, in a block that ends.
    pub(super) fn forget_groups(&mut self, kept: usize) {
        for group in self.groups.order.drain(kept..) {
            self.groups.loaded.remove(&group);
        }
    }

    /// An element of a buffer that is an array of vectors.
    pub(super) fn load_of_group(&mut self, buffer: u32, index: ValueId) -> Result<Option<Value>> {
        let Some((base, word)) = group(self.kernel, index) else { return Ok(None) };
        let vector = match self.groups.loaded.get(&(buffer, base)) {
            Some(loaded) => *loaded,
            None => {
                let mut first = self.get(base)?;
                if let Inside::Where(inside) = self.inside(buffer, base)? {
                    let zero = self.b.u32(0);
                    first = self.b.select(inside, first, zero);
                }
                let number = self.b.shr_by(first, 2);
                let Some(global) = self.only_window(buffer) else { return Ok(None) };
                let global = self.b.global_value(global);
                let pointer = self.b.access(global, number);
                let loaded = self.b.load(pointer);
                self.groups.loaded.insert((buffer, base), loaded);
                self.groups.order.push((buffer, base));
                loaded
            }
        };
        let value = self.b.access_index(vector, word);
        let nothing = self.zero_of(self.kernel.buffers[buffer as usize].element().value_type());
        Ok(Some(match self.inside(buffer, index)? {
            Inside::Always => value,
            Inside::Never => nothing,
            Inside::Where(inside) => self.b.select(inside, value, nothing),
        }))
    }
}
