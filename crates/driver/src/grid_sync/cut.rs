//! Cuts segments out of a kernel: each becomes a kernel of its own that loads what was kept, does its part, and keeps
//! what others need.

use super::crossing::{Key, Part};
use super::rows::Rows;
use super::schedule::{Binding, Storage, Traps, element_of};
use super::shape::{GridShape, Place};
use super::slots::{Slot, Slots};
use crate::error::{Error, Result};
use rustc_hash::FxHashMap;
use vyre_foundation::{
    AtomicOp, BinOp, BufferAccess, BufferDecl, MemoryOrdering, Name, Scope, Type, WorkgroupSize,
};
use vyre_lower::{Id, Item, ItemId, Kernel, KernelBuilder, RegionId, Value, ValueId};

/// What all segments of a kernel have in common.
pub(super) struct Common<'s, 'k> {
    pub(super) shape: &'s GridShape<'k>,
    pub(super) slots: &'s Slots,
    /// For each `workgroup` and `local` buffer the hidden storage that it stands in, if it does.
    pub(super) moved: &'s [Option<u32>],
    pub(super) traps: Option<&'s Traps>,
    /// The words of the grid, and those that launches find.
    pub(super) uniforms: u32,
    pub(super) found: u32,
    /// A beginning of names that no buffer has.
    pub(super) prefix: &'s str,
}

/// A segment as a kernel.
pub(super) struct Cut {
    pub(super) kernel: Kernel,
    pub(super) bindings: Vec<Binding>,
}

/// What one invocation does for the whole grid.
#[derive(Clone, Copy, Debug)]
pub(super) enum Once {
    /// A grid `uniform_load`.
    Load(ItemId),
    /// The values of control that the whole grid shares.
    Results(ItemId, Part),
}

/// A buffer of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Bound {
    Storage(Storage),
    /// Memory of a workgroup or an invocation that only this segment uses, by its number.
    Own(u32),
}

struct Used {
    bound: Bound,
    decl: BufferDecl,
    is_stored: bool,
    is_touched: bool,
}

/// An item that has been copied.
#[derive(Clone, Copy)]
struct Copied {
    id: ItemId,
    region: RegionId,
    body: RegionId,
}

struct Cutter<'c, 's, 'k> {
    common: &'c Common<'s, 'k>,
    kernel: &'k Kernel,
    rows: Rows,
    /// Where items go.
    region: RegionId,
    buffers: Vec<Used>,
    numbers: FxHashMap<Bound, u32>,
    known: FxHashMap<ValueId, ValueId>,
    items: FxHashMap<ItemId, Copied>,
    /// Whether the code asks how many workgroups there are.
    counts_workgroups: bool,
}

/// Cuts out what one launch does between grid barriers.
pub(super) fn place(
    common: &Common<'_, '_>,
    place: Place,
    live: &[Key],
    keeps: &[(Key, ValueId)],
    name: Name,
) -> Result<Cut> {
    let mut cutter = Cutter::new(common);
    live.iter().try_for_each(|key| cutter.recall(*key))?;
    for position in place.start..place.end {
        cutter.item(common.shape.kernel.item_at(place.region, position))?;
    }
    let values = keeps.iter().map(|(_, row)| cutter.row(*row)).collect::<Result<Vec<ValueId>>>()?;
    for ((key, row), value) in keeps.iter().zip(values) {
        cutter.keep(*key, value)?;
        if let (Key::Row(_), Some((word, _))) = (key, common.slots.of_first.get(row)) {
            cutter.keep_first(*word, value)?;
        }
    }
    let kernel = common.shape.kernel;
    Ok(cutter.finish(name, kernel.workgroup_size, kernel))
}

/// Cuts out what is computed once for the grid: by one invocation alone, unless the grid itself is asked for. Gives
/// whether it was.
pub(super) fn once(
    common: &Common<'_, '_>,
    steps: &[Once],
    live: &[Key],
    results: &dyn Fn(ItemId, Part) -> Vec<(Key, ValueId)>,
    name: Name,
) -> Result<(Cut, bool)> {
    let kernel = common.shape.kernel;
    let mut cutter = Cutter::new(common);
    cutter.steps(steps, live, results)?;
    if !cutter.counts_workgroups {
        return Ok((cutter.finish(name, 1.into(), kernel), true));
    }
    let mut cutter = Cutter::new(common);
    let invocation = cutter.rows.invocation(kernel.workgroup_size);
    cutter.only(invocation, |cutter| cutter.steps(steps, live, results))?;
    Ok((cutter.finish(name, kernel.workgroup_size, kernel), false))
}

impl<'c, 's, 'k> Cutter<'c, 's, 'k> {
    fn new(common: &'c Common<'s, 'k>) -> Cutter<'c, 's, 'k> {
        Cutter {
            common,
            kernel: common.shape.kernel,
            rows: Rows::default(),
            region: KernelBuilder::ENTRY,
            buffers: Vec::new(),
            numbers: FxHashMap::default(),
            known: FxHashMap::default(),
            items: FxHashMap::default(),
            counts_workgroups: false,
        }
    }

    fn finish(self, name: Name, size: WorkgroupSize, kernel: &Kernel) -> Cut {
        let mut bindings = Vec::new();
        let mut decls = Vec::new();
        for Used { bound, decl, is_stored, is_touched } in self.buffers {
            if let Bound::Storage(storage) = bound {
                bindings.push(Binding { storage, is_stored, is_touched });
            }
            let access = match (decl.access(), is_stored) {
                (BufferAccess::Workgroup | BufferAccess::Local | BufferAccess::Uniform, _) => decl.access(),
                (_, true) => BufferAccess::ReadWrite,
                (_, false) => BufferAccess::ReadOnly,
            };
            let changed = BufferDecl::storage(decl.name(), access, decl.element());
            decls.push(decl.count().map_or(changed.clone(), |count| changed.with_count(count)));
        }
        let kernel = self.rows.builder.finish(name, size, kernel.subgroup_size, decls, &kernel.origins);
        Cut { kernel, bindings }
    }

    /// The number of a buffer in this segment.
    fn buffer(&mut self, bound: Bound, decl: impl FnOnce() -> BufferDecl, is_stored: bool) -> u32 {
        let buffers = &mut self.buffers;
        let number = *self.numbers.entry(bound).or_insert_with(|| {
            buffers.push(Used { bound, decl: decl(), is_stored: false, is_touched: false });
            buffers.len() as u32 - 1
        });
        buffers[number as usize].is_stored |= is_stored;
        number
    }

    fn touch(&mut self, buffer: u32) -> u32 {
        self.buffers[buffer as usize].is_touched = true;
        buffer
    }

    /// The number of hidden storage in this segment.
    fn hidden(&mut self, number: u32, ty: Type, is_stored: bool) -> u32 {
        let name = format!("{}{number}", self.common.prefix);
        let decl = || BufferDecl::storage(name, BufferAccess::ReadOnly, element_of(ty));
        let buffer = self.buffer(Bound::Storage(Storage::Hidden(number)), decl, is_stored);
        self.touch(buffer)
    }

    /// The number of a buffer of the program in this segment, and the index in it.
    fn access(&mut self, buffer: u32, index: ValueId, is_stored: bool) -> Result<(u32, ValueId)> {
        let index = self.row(index)?;
        let decl = &self.kernel.buffers[buffer as usize];
        let Some(number) = self.common.moved[buffer as usize] else {
            let bound = match decl.access().is_shared_by_grid() {
                true => Bound::Storage(Storage::Buffer(buffer)),
                false => Bound::Own(buffer),
            };
            let number = self.buffer(bound, || decl.clone(), is_stored);
            return Ok((self.touch(number), index));
        };
        let name = format!("{}{number}", self.common.prefix);
        let moved = || BufferDecl::storage(name, BufferAccess::ReadOnly, decl.element());
        let new = self.buffer(Bound::Storage(Storage::Hidden(number)), moved, is_stored);
        let count = decl.count().unwrap_or(0);
        let size = self.kernel.workgroup_size;
        let rows = &mut self.rows;
        // The elements of one index stand beside each other for all invocations, those of a workgroup together.
        let place = if decl.access() == BufferAccess::Local {
            let (own, all) = (rows.invocation(size), rows.invocations(size));
            let first = rows.binary(BinOp::Mul, index, all);
            rows.binary(BinOp::Add, first, own)
        } else {
            let (group, elements) = (rows.workgroup(), rows.u32(count));
            let first = rows.binary(BinOp::Mul, group, elements);
            rows.binary(BinOp::Add, first, index)
        };
        // What is outside its own array is outside everything.
        let count = rows.u32(count);
        let inside = rows.binary(BinOp::Lt, index, count);
        let nowhere = rows.u32(u32::MAX);
        let index = rows.select(inside, place, nowhere);
        Ok((self.touch(new), index))
    }

    /// Puts an item where items go now.
    fn push(&mut self, item: Item, origin: u32) -> ItemId {
        self.rows.builder.item(self.region, item, origin)
    }

    /// The result of an item that has just been put.
    fn out(&mut self, item: ItemId, ty: Type) -> ValueId {
        self.rows.builder.out(item, 0, ty, self.region)
    }

    /// Does something where a number is 0 only.
    fn only(&mut self, number: ValueId, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let zero = self.rows.u32(0);
        let cond = self.rows.binary(BinOp::Eq, number, zero);
        let outer = self.region;
        let [then, otherwise] = [0; 2].map(|_| self.rows.builder.region(outer));
        self.region = then;
        body(self)?;
        self.region = outer;
        self.push(Item::If { cond, then, otherwise, yields: Vec::new() }, 0);
        Ok(())
    }

    fn slot(&self, key: Key) -> Result<(Slot, Type)> {
        let missing = || Error::Internal(format!("{key:?} is needed across a grid barrier and not kept"));
        self.common.slots.of.get(&key).copied().ok_or_else(missing)
    }

    /// Makes something known that was kept.
    fn recall(&mut self, key: Key) -> Result<()> {
        let (slot, ty) = self.slot(key)?;
        let size = self.kernel.workgroup_size;
        let stored = if ty == Type::Bool { Type::U32 } else { ty };
        let value = match slot {
            Slot::Invocation(number) => {
                let buffer = self.hidden(number, ty, false);
                let index = self.rows.invocation(size);
                let item = self.push(Item::Load { buffer, index, version: 0 }, 0);
                self.out(item, stored)
            }
            // It may be written again further on, and it must be seen that all invocations get one value.
            Slot::Workgroup(number) => {
                let buffer = self.hidden(number, ty, false);
                let index = self.rows.workgroup();
                let item = self.push(Item::UniformLoad { scope: Scope::Workgroup, buffer, index }, 0);
                self.out(item, stored)
            }
            Slot::Words(word) => self.recall_words(word, ty),
        };
        let value = if ty == Type::Bool { self.rows.cast(value, Type::Bool) } else { value };
        self.define(key, value);
        Ok(())
    }

    fn recall_words(&mut self, word: u32, ty: Type) -> ValueId {
        let buffer = self.hidden(self.common.uniforms, Type::U32, false);
        let parts = if ty.bits() == 64 { 2 } else { 1 };
        let words: Vec<ValueId> = (word..word + parts)
            .map(|word| {
                let index = self.rows.u32(word);
                let item = self.push(Item::Load { buffer, index, version: 0 }, 0);
                self.out(item, Type::U32)
            })
            .collect();
        self.rows.join(&words, ty)
    }

    fn define(&mut self, key: Key, value: ValueId) {
        match key {
            Key::Row(row) => {
                self.known.insert(row, value);
            }
            Key::Result(item, index) => {
                self.known.extend(self.common.shape.named(item, index).map(|row| (row, value)));
            }
        }
    }

    /// Keeps a value for others.
    fn keep(&mut self, key: Key, value: ValueId) -> Result<()> {
        let (slot, ty) = self.slot(key)?;
        let size = self.kernel.workgroup_size;
        let stored = if ty == Type::Bool { self.rows.cast(value, Type::U32) } else { value };
        match slot {
            Slot::Invocation(number) => {
                let buffer = self.hidden(number, ty, true);
                let index = self.rows.invocation(size);
                self.push(Item::Store { buffer, index, value: stored }, 0);
                Ok(())
            }
            Slot::Workgroup(number) => {
                let buffer = self.hidden(number, ty, true);
                let (index, lane) = (self.rows.workgroup(), self.rows.lane(size));
                self.only(lane, |cutter| {
                    cutter.push(Item::Store { buffer, index, value: stored }, 0);
                    Ok(())
                })
            }
            Slot::Words(word) => self.keep_first(word, value),
        }
    }

    /// The first invocation leaves its value in words that launches find.
    fn keep_first(&mut self, word: u32, value: ValueId) -> Result<()> {
        let first = self.rows.invocation(self.kernel.workgroup_size);
        let found = self.common.found;
        self.only(first, |cutter| {
            cutter.keep_words(found, word, value);
            Ok(())
        })
    }

    fn keep_words(&mut self, memory: u32, word: u32, value: ValueId) {
        let buffer = self.hidden(memory, Type::U32, true);
        for (word, value) in (word..).zip(self.rows.split(value)) {
            let index = self.rows.u32(word);
            self.push(Item::Store { buffer, index, value }, 0);
        }
    }

    /// What is computed once for the grid, in order. All values of control are computed before one is kept.
    fn steps(
        &mut self,
        steps: &[Once],
        live: &[Key],
        results: &dyn Fn(ItemId, Part) -> Vec<(Key, ValueId)>,
    ) -> Result<()> {
        live.iter().try_for_each(|key| self.recall(*key))?;
        for step in steps {
            let kept: Vec<(Key, ValueId)> = match *step {
                Once::Load(id) => {
                    let Item::UniformLoad { buffer, index, .. } = self.kernel.item(id) else { continue };
                    let ty = self.kernel.buffers[buffer as usize].element().value_type();
                    let (buffer, index) = self.access(buffer, index, false)?;
                    let item = self
                        .push(Item::Load { buffer, index, version: 0 }, self.kernel.items.origin[id.index()]);
                    vec![(Key::Result(id, 0), self.out(item, ty))]
                }
                Once::Results(id, part) => {
                    let rows = results(id, part).into_iter();
                    rows.map(|(key, row)| Ok((key, self.row(row)?))).collect::<Result<_>>()?
                }
            };
            for (key, value) in kept {
                if let (Slot::Words(word), _) = self.slot(key)? {
                    self.keep_words(self.common.uniforms, word, value);
                }
                self.define(key, value);
            }
        }
        Ok(())
    }

    /// The row of this segment for a row of the kernel.
    fn row(&mut self, root: ValueId) -> Result<ValueId> {
        let mut pending = vec![root];
        while let Some(&row) = pending.last() {
            if self.known.contains_key(&row) {
                pending.pop();
                continue;
            }
            let value = self.kernel.value(row);
            let missing: Vec<ValueId> =
                value.operands().filter(|operand| !self.known.contains_key(operand)).collect();
            if !missing.is_empty() {
                pending.extend(missing);
                continue;
            }
            pending.pop();
            let new = self.copied_row(value)?;
            self.known.insert(row, new);
        }
        Ok(self.known[&root])
    }

    /// The row of this segment for a row whose operands are known.
    fn copied_row(&mut self, value: Value) -> Result<ValueId> {
        let get = |row: ValueId| self.known[&row];
        let new = match value {
            Value::Param { item, index, ty } => {
                let copied = self.copied(item)?;
                return Ok(self.rows.builder.param(copied.id, index, ty, copied.body));
            }
            Value::Out { item, index, ty } => {
                let copied = self.copied(item)?;
                return Ok(self.rows.builder.out(copied.id, index, ty, copied.region));
            }
            Value::Load { buffer, index, ty } => {
                let (buffer, index) = self.access(buffer, index, false)?;
                Value::Load { buffer, index, ty }
            }
            Value::Len(buffer) => {
                let decl = &self.kernel.buffers[buffer as usize];
                if let Some(count) = decl.count() {
                    return Ok(self.rows.u32(count));
                }
                let bound = Bound::Storage(Storage::Buffer(buffer));
                Value::Len(self.buffer(bound, || decl.clone(), false))
            }
            Value::Id(Id::NumWorkgroups, _) => {
                self.counts_workgroups = true;
                value
            }
            Value::Binary { op, ty, a, b } => Value::Binary { op, ty, a: get(a), b: get(b) },
            Value::Unary { op, ty, a } => Value::Unary { op, ty, a: get(a) },
            Value::Select { ty, cond, a, b } => Value::Select { ty, cond: get(cond), a: get(a), b: get(b) },
            Value::Cast { from, to, a } => Value::Cast { from, to, a: get(a) },
            Value::Bitcast { from, to, a } => Value::Bitcast { from, to, a: get(a) },
            Value::Fma { a, b, c } => Value::Fma { a: get(a), b: get(b), c: get(c) },
            Value::Const(_) | Value::Id(..) | Value::SubgroupLane => value,
        };
        Ok(self.rows.builder.value(new))
    }

    fn copied(&self, item: ItemId) -> Result<Copied> {
        let missing = || Error::Internal(format!("{item:?} is needed in a segment that does not have it"));
        self.items.get(&item).copied().ok_or_else(missing)
    }

    /// Copies an item with all that is in it.
    fn item(&mut self, old: ItemId) -> Result<()> {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.copy_item(old))
    }

    fn copy_item(&mut self, old: ItemId) -> Result<()> {
        let origin = self.kernel.items.origin[old.index()];
        let item = match self.kernel.item(old) {
            Item::If { .. } | Item::Loop { .. } => return self.control(old, origin),
            Item::Trap { tag, value } => return self.trap(tag, value, origin),
            Item::Store { buffer, index, value } => {
                let value = self.row(value)?;
                let (buffer, index) = self.access(buffer, index, true)?;
                Item::Store { buffer, index, value }
            }
            Item::Load { buffer, index, .. } => {
                let (buffer, index) = self.access(buffer, index, false)?;
                Item::Load { buffer, index, version: 0 }
            }
            Item::Atomic { op, ordering, buffer, index, expected, value } => {
                let expected = expected.map(|row| self.row(row)).transpose()?;
                let value = value.map(|row| self.row(row)).transpose()?;
                // Atomics, loads too, need memory that can be written.
                let (buffer, index) = self.access(buffer, index, true)?;
                Item::Atomic { op, ordering, buffer, index, expected, value }
            }
            Item::UniformLoad { scope, buffer, index } => {
                let (buffer, index) = self.access(buffer, index, false)?;
                Item::UniformLoad { scope, buffer, index }
            }
            Item::Barrier { scope } => Item::Barrier { scope },
            Item::Ballot { cond } => Item::Ballot { cond: self.row(cond)? },
            Item::Shuffle { value, lane } => Item::Shuffle { value: self.row(value)?, lane: self.row(lane)? },
            Item::Reduce { op, value } => Item::Reduce { op, value: self.row(value)? },
        };
        let id = self.push(item, origin);
        self.items.insert(old, Copied { id, region: self.region, body: self.region });
        Ok(())
    }

    fn control(&mut self, old: ItemId, origin: u32) -> Result<()> {
        // What it is is known when what it holds has been copied.
        let id = self.push(Item::Barrier { scope: Scope::Workgroup }, origin);
        let outer = self.region;
        let inner = |cutter: &mut Self, region: RegionId, into: RegionId| -> Result<()> {
            cutter.region = into;
            let items: Vec<ItemId> = cutter.kernel.region(region).collect();
            items.into_iter().try_for_each(|item| cutter.item(item))?;
            cutter.region = outer;
            Ok(())
        };
        let all = |cutter: &mut Self, rows: Vec<ValueId>| -> Result<Vec<ValueId>> {
            rows.into_iter().map(|row| cutter.row(row)).collect()
        };
        let new = match self.kernel.item(old) {
            Item::If { cond, then, otherwise, yields } => {
                let cond = self.row(cond)?;
                let regions = [0; 2].map(|_| self.rows.builder.region(outer));
                self.items.insert(old, Copied { id, region: outer, body: outer });
                inner(self, then, regions[0])?;
                inner(self, otherwise, regions[1])?;
                let (a, b): (Vec<ValueId>, Vec<ValueId>) = yields.into_iter().unzip();
                let yields = all(self, a)?.into_iter().zip(all(self, b)?).collect();
                Item::If { cond, then: regions[0], otherwise: regions[1], yields }
            }
            Item::Loop { guard, first, body, next, again } => {
                let (guard, first) = (self.row(guard)?, all(self, first)?);
                let region = self.rows.builder.region(outer);
                self.items.insert(old, Copied { id, region: outer, body: region });
                inner(self, body, region)?;
                let next = all(self, next)?;
                Item::Loop { guard, first, body: region, next, again: self.row(again)? }
            }
            other => other,
        };
        self.rows.builder.replace(id, new);
        Ok(())
    }

    /// A trap is noted; the dispatch ends at the next grid barrier. That the invocation does nothing more is in the
    /// kernel already.
    fn trap(&mut self, tag: u32, value: ValueId, origin: u32) -> Result<()> {
        let missing = || Error::Internal("a trap without a place to note it".to_owned());
        let traps = self.common.traps.ok_or_else(missing)?;
        let value = self.row(value)?;
        let notes = self.hidden(traps.notes, Type::U64, true);
        let flag = self.hidden(traps.flag, Type::U32, true);
        let rows = &mut self.rows;
        let index = rows.invocation(self.kernel.workgroup_size);
        let tag = rows.u32(tag + 1);
        let note = rows.join(&[tag, value], Type::U64);
        let (zero, one) = (rows.u32(0), rows.u32(1));
        self.push(Item::Store { buffer: notes, index, value: note }, origin);
        let (op, ordering) = (AtomicOp::Max, MemoryOrdering::Relaxed);
        let raise =
            Item::Atomic { op, ordering, buffer: flag, index: zero, expected: None, value: Some(one) };
        self.push(raise, origin);
        Ok(())
    }
}
