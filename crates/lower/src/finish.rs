//! From a kernel under construction to its columns: without what nothing uses, in one canonical order.

use crate::affine::strides;
use crate::build::Builder;
use crate::columns::{Items, NONE, Regions, Values};
use crate::flow::Flow;
use crate::kernel::{Item, ItemId, Origin, RegionId, Value, ValueId};
use crate::lower::roomy;
use crate::uniformity::uniformity;
use crate::versions;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::LazyCell;
use vyre_foundation::{BufferDecl, Name};

/// The columns of a kernel.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) values: Values,
    pub(crate) items: Items,
    pub(crate) regions: Regions,
    pub(crate) pool: Vec<u32>,
    pub(crate) origins: Vec<Origin>,
    pub(crate) tags: Vec<Name>,
    /// Whether every parameter and result was needed as it is.
    pub(crate) settled: bool,
}

/// Writes what the builder holds as columns.
///
/// Rows are numbered as a walk over the items first needs them, operands before users, so that equal kernels
/// have equal columns.
pub(crate) fn finish(
    builder: &mut Builder,
    origins: &[Origin],
    tags: &[Name],
    buffers: &[BufferDecl],
) -> Parts {
    let alias = invariants(builder);
    let settled = alias.is_empty();
    let mut finisher = Finisher {
        builder,
        alias,
        kept: FxHashSet::default(),
        new_value: vec![NONE; builder.values.len()],
        known: FxHashMap::default(),
        new_item: vec![u32::MAX; builder.items.len()],
        slots: FxHashMap::default(),
        all_origins: origins,
        new_origin: FxHashMap::default(),
        all_tags: tags,
        items: Vec::new(),
        regions: Vec::new(),
        parts: Parts { values: Values::with_room(builder.values.len()), ..Parts::default() },
    };
    finisher.kept = finisher.mark();
    finisher.region(Builder::ROOT);
    Parts { settled, ..finisher.write(buffers) }
}

/// Parameters that never change, and results that are the same for both branches, with what they always are.
fn invariants(builder: &mut Builder) -> FxHashMap<ValueId, ValueId> {
    let mut alias: FxHashMap<ValueId, ValueId> = FxHashMap::default();
    let mut rows: FxHashMap<(ItemId, u32, bool), ValueId> = FxHashMap::default();
    for (i, value) in builder.values.iter().enumerate() {
        match value {
            Value::Param { item, index, .. } => rows.insert((*item, *index, true), ValueId(i as u32)),
            Value::Out { item, index, .. } => rows.insert((*item, *index, false), ValueId(i as u32)),
            _ => None,
        };
    }
    let mut home = vec![Builder::ROOT; builder.items.len()];
    for (i, region) in builder.regions.iter().enumerate() {
        region.items.iter().for_each(|item| home[item.index()] = RegionId(i as u32));
    }
    // What an item leaves can settle one around it, or one inside: in turns items are gone over in both directions.
    let mut backwards = false;
    loop {
        let before = alias.len();
        for i in 0..home.len() {
            let i = if backwards { home.len() - 1 - i } else { i };
            let (id, home) = (ItemId(i as u32), home[i]);
            match builder.items[i].clone() {
                Item::Loop { first, next, .. } => {
                    for (k, (first, next)) in (0..).zip(first.into_iter().zip(next)) {
                        let Some(param) = rows.get(&(id, k, true)) else { continue };
                        let (first, next) = (resolve(&alias, first), resolve(&alias, next));
                        if alias.contains_key(param) || !(next == *param || next == first) {
                            continue;
                        }
                        alias.insert(*param, first);
                        if let Some(out) = rows.get(&(id, k, false)) {
                            alias.insert(*out, first);
                        }
                    }
                }
                Item::If { cond, yields, .. } => {
                    for (k, (a, b)) in (0..).zip(yields) {
                        let (a, b) = (resolve(&alias, a), resolve(&alias, b));
                        let Some(out) = rows.get(&(id, k, false)).filter(|out| !alias.contains_key(out))
                        else {
                            continue;
                        };
                        if a == b {
                            alias.insert(*out, a);
                        } else if [a, b].iter().all(|value| builder.exists_in(*value, home)) {
                            let cond = resolve(&alias, cond);
                            let select = builder.select(cond, a, b);
                            alias.insert(*out, select);
                        }
                    }
                }
                _ => {}
            }
        }
        if alias.len() == before {
            return alias;
        }
        builder.recompute_early(|value| resolve(&alias, value));
        backwards = !backwards;
    }
}

fn resolve(alias: &FxHashMap<ValueId, ValueId>, mut value: ValueId) -> ValueId {
    while let Some(next) = alias.get(&value) {
        value = *next;
    }
    value
}

struct Finisher<'b> {
    builder: &'b Builder,
    alias: FxHashMap<ValueId, ValueId>,
    /// The parameters and results that something needs, by item and number.
    kept: FxHashSet<(ItemId, u32)>,
    /// The new number of each value that has one.
    new_value: Vec<u32>,
    /// New rows by what they are. Values that stand for others can make rows equal that were not; where none does, rows
    /// stay as different as they are.
    known: FxHashMap<Value, ValueId>,
    new_item: Vec<u32>,
    /// The new numbers of the parameters and results that are kept.
    slots: FxHashMap<(ItemId, u32), u32>,
    all_origins: &'b [Origin],
    new_origin: FxHashMap<u32, u32>,
    all_tags: &'b [Name],
    items: Vec<(Item, u32)>,
    regions: Vec<Vec<ItemId>>,
    parts: Parts,
}

impl Finisher<'_> {
    fn resolve(&self, value: ValueId) -> ValueId {
        resolve(&self.alias, value)
    }

    /// Marks what items need, around loops too.
    fn mark(&self) -> FxHashSet<(ItemId, u32)> {
        let mut kept = FxHashSet::default();
        let is_slot = |value: &Value| matches!(value, Value::Param { .. } | Value::Out { .. });
        if !self.builder.values.iter().any(is_slot) {
            return kept;
        }
        let mut used = vec![false; self.builder.values.len()];
        let mut pending = Vec::new();
        for item in &self.builder.items {
            match item {
                Item::Loop { guard, again, .. } => pending.extend([*guard, *again]),
                _ => pending.extend(item.operands()),
            }
        }
        while let Some(value) = pending.pop() {
            let value = self.resolve(value);
            if std::mem::replace(&mut used[value.index()], true) {
                continue;
            }
            let row = self.builder.get(value);
            pending.extend(row.operands());
            let (Value::Param { item, index, .. } | Value::Out { item, index, .. }) = row else { continue };
            if kept.insert((item, index)) {
                match &self.builder.items[item.index()] {
                    Item::Loop { first, next, .. } => {
                        pending.extend([first[index as usize], next[index as usize]])
                    }
                    Item::If { yields, .. } => {
                        let (a, b) = yields[index as usize];
                        pending.extend([a, b]);
                    }
                    _ => {}
                }
            }
        }
        kept
    }

    /// The new number of a value; what it needs is numbered first.
    fn value(&mut self, root: ValueId) -> ValueId {
        let root = self.resolve(root);
        let mut pending = vec![root];
        while let Some(&top) = pending.last() {
            if self.new_value[top.index()] != NONE {
                pending.pop();
                continue;
            }
            let row = self.builder.get(top);
            let before = pending.len();
            let operands = row.operands().map(|operand| self.resolve(operand));
            pending.extend(operands.filter(|operand| self.new_value[operand.index()] == NONE));
            if pending.len() > before {
                // The first operand is numbered first.
                pending[before..].reverse();
                continue;
            }
            pending.pop();
            let row = self.renamed(row);
            self.new_value[top.index()] = self.row(row).0;
        }
        ValueId(self.new_value[root.index()])
    }

    fn row(&mut self, row: Value) -> ValueId {
        let id = ValueId(self.parts.values.len() as u32);
        let known = if self.alias.is_empty() { id } else { *self.known.entry(row).or_insert(id) };
        if known == id {
            self.parts.values.push(row);
        }
        known
    }

    fn renamed(&self, row: Value) -> Value {
        let new = |value: ValueId| ValueId(self.new_value[self.resolve(value).index()]);
        match row {
            Value::Load { buffer, index, ty } => Value::Load { buffer, index: new(index), ty },
            Value::Binary { op, ty, a, b } => Value::Binary { op, ty, a: new(a), b: new(b) },
            Value::Unary { op, ty, a } => Value::Unary { op, ty, a: new(a) },
            Value::Select { ty, cond, a, b } => Value::Select { ty, cond: new(cond), a: new(a), b: new(b) },
            Value::Cast { from, to, a } => Value::Cast { from, to, a: new(a) },
            Value::Bitcast { from, to, a } => Value::Bitcast { from, to, a: new(a) },
            Value::Fma { a, b, c } => Value::Fma { a: new(a), b: new(b), c: new(c) },
            Value::Param { item, index, ty } => {
                let slot = self.slots[&(item, index)];
                Value::Param { item: ItemId(self.new_item[item.index()]), index: slot, ty }
            }
            Value::Out { item, index, ty } => {
                let slot = self.slots.get(&(item, index)).copied().unwrap_or(index);
                Value::Out { item: ItemId(self.new_item[item.index()]), index: slot, ty }
            }
            leaf => leaf,
        }
    }

    fn region(&mut self, region: RegionId) -> RegionId {
        let new = RegionId(self.regions.len() as u32);
        self.regions.push(Vec::new());
        for old in &self.builder.regions[region.index()].items {
            let id = roomy(|| self.item(*old));
            self.regions[new.index()].push(id);
        }
        new
    }

    /// The slots of an item that are needed, in order, under their new numbers.
    fn keep(&mut self, item: ItemId, count: usize) -> Vec<usize> {
        let kept: Vec<usize> = (0..count).filter(|k| self.kept.contains(&(item, *k as u32))).collect();
        for (new, old) in kept.iter().enumerate() {
            self.slots.insert((item, *old as u32), new as u32);
        }
        kept
    }

    fn item(&mut self, old: ItemId) -> ItemId {
        let id = ItemId(self.items.len() as u32);
        self.new_item[old.index()] = id.0;
        let origin = self.origin(self.builder.origins[old.index()]);
        self.items.push((Item::Barrier { scope: vyre_foundation::Scope::Grid }, origin));
        let item = match self.builder.items[old.index()].clone() {
            Item::If { cond, then, otherwise, yields } => {
                let cond = self.value(cond);
                let kept = self.keep(old, yields.len());
                let then = self.region(then);
                let otherwise = self.region(otherwise);
                let pair = |this: &mut Self, k: usize| (this.value(yields[k].0), this.value(yields[k].1));
                let yields = kept.into_iter().map(|k| pair(self, k)).collect();
                Item::If { cond, then, otherwise, yields }
            }
            Item::Loop { guard, first, body, next, again } => {
                let guard = self.value(guard);
                let kept = self.keep(old, first.len());
                let first = kept.iter().map(|k| self.value(first[*k])).collect();
                let body = self.region(body);
                let next = kept.iter().map(|k| self.value(next[*k])).collect();
                let again = self.value(again);
                Item::Loop { guard, first, body, next, again }
            }
            Item::Store { buffer, index, value } => {
                Item::Store { buffer, index: self.value(index), value: self.value(value) }
            }
            Item::Load { buffer, index, version } => Item::Load { buffer, index: self.value(index), version },
            Item::Atomic { op, ordering, buffer, index, expected, value } => {
                let index = self.value(index);
                let expected = expected.map(|value| self.value(value));
                let value = value.map(|value| self.value(value));
                Item::Atomic { op, ordering, buffer, index, expected, value }
            }
            Item::Barrier { scope } => Item::Barrier { scope },
            Item::UniformLoad { scope, buffer, index } => {
                Item::UniformLoad { scope, buffer, index: self.value(index) }
            }
            Item::Trap { tag, value } => {
                let value = self.value(value);
                self.parts.tags.push(self.all_tags[tag as usize].clone());
                Item::Trap { tag: self.parts.tags.len() as u32 - 1, value }
            }
            Item::Ballot { cond } => Item::Ballot { cond: self.value(cond) },
            Item::Shuffle { value, lane } => {
                Item::Shuffle { value: self.value(value), lane: self.value(lane) }
            }
            Item::Reduce { op, value } => Item::Reduce { op, value: self.value(value) },
        };
        self.items[id.index()].0 = item;
        id
    }

    /// The new number of an origin; the ones around it are numbered first.
    fn origin(&mut self, old: u32) -> u32 {
        if old == 0 {
            return 0;
        }
        if let Some(new) = self.new_origin.get(&old) {
            return *new;
        }
        let origin = &self.all_origins[old as usize - 1];
        let parent = roomy(|| self.origin(origin.parent));
        self.parts.origins.push(Origin { parent, ..origin.clone() });
        let new = self.parts.origins.len() as u32;
        self.new_origin.insert(old, new);
        new
    }

    fn write(mut self, buffers: &[BufferDecl]) -> Parts {
        versions::assign(&mut self.items, &self.regions, buffers);
        let (values, items) = (&self.parts.values, &self.items);
        let flow = LazyCell::new(|| Flow::of(values, items));
        let (uniformity, stride) = (uniformity(values, items, &flow), strides(values, items, &flow));
        (self.parts.values.uniformity, self.parts.values.stride) = (uniformity, stride);
        for items in &self.regions {
            self.parts.regions.start.push(self.parts.pool.len() as u32);
            self.parts.regions.count.push(items.len() as u32);
            self.parts.pool.extend(items.iter().map(|item| item.0));
        }
        for (item, origin) in &self.items {
            self.parts.items.push(item, *origin, &mut self.parts.pool);
        }
        self.parts
    }
}
