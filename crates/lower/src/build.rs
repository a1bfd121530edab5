//! Builds a kernel: merges equal rows as they are made, and knows how deep in the regions a row can first exist.

use crate::kernel::{Item, ItemId, RegionId, Value, ValueId};
use rustc_hash::FxHashMap;
use vyre_foundation::{BinOp, Literal, Type, UnOp};

/// A region under construction.
#[derive(Default)]
pub(crate) struct Region {
    /// How many regions hold it.
    pub(crate) depth: u32,
    pub(crate) items: Vec<ItemId>,
}

/// How far a kernel under construction has come.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    rows: usize,
    items: usize,
    regions: usize,
}

/// A kernel under construction.
pub(crate) struct Builder {
    pub(crate) values: Vec<Value>,
    /// For each value the deepest region that something it is made of lives in.
    early: Vec<RegionId>,
    /// The rows by what they are, as far as somebody had to look.
    known: FxHashMap<Value, ValueId>,
    /// How many rows `known` knows.
    indexed: usize,
    pub(crate) items: Vec<Item>,
    pub(crate) origins: Vec<u32>,
    pub(crate) regions: Vec<Region>,
}

impl Builder {
    pub(crate) const ROOT: RegionId = RegionId(0);

    pub(crate) fn new() -> Builder {
        Builder::with_room(0)
    }

    /// A builder with room for so many rows.
    pub(crate) fn with_room(rows: usize) -> Builder {
        Builder {
            values: Vec::with_capacity(rows),
            early: Vec::with_capacity(rows),
            known: FxHashMap::default(),
            indexed: 0,
            items: Vec::new(),
            origins: Vec::new(),
            regions: vec![Region::default()],
        }
    }

    pub(crate) fn region(&mut self, parent: RegionId) -> RegionId {
        let depth = self.regions[parent.index()].depth + 1;
        self.regions.push(Region { depth, items: Vec::new() });
        RegionId(self.regions.len() as u32 - 1)
    }

    pub(crate) fn get(&self, value: ValueId) -> Value {
        self.values[value.index()]
    }

    pub(crate) fn ty(&self, value: ValueId) -> Type {
        self.get(value).ty()
    }

    /// The row for a pure value.
    pub(crate) fn value(&mut self, value: Value) -> ValueId {
        self.find(&value).unwrap_or_else(|| self.distinct(value))
    }

    /// A row for a pure value that is known to have none.
    pub(crate) fn distinct(&mut self, value: Value) -> ValueId {
        let deeper = |a: RegionId, b: RegionId| {
            if self.regions[a.index()].depth >= self.regions[b.index()].depth { a } else { b }
        };
        let early = value.operands().map(|operand| self.early[operand.index()]).fold(Builder::ROOT, deeper);
        self.row(value, early)
    }

    /// The row that stands for a value already.
    pub(crate) fn find(&mut self, value: &Value) -> Option<ValueId> {
        for (row, value) in (self.indexed as u32..).zip(&self.values[self.indexed..]) {
            self.known.entry(*value).or_insert(ValueId(row));
        }
        self.indexed = self.values.len();
        self.known.get(value).copied()
    }

    /// A row that first exists in a region: a parameter or a result.
    pub(crate) fn row(&mut self, value: Value, early: RegionId) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        self.values.push(value);
        self.early.push(early);
        id
    }

    /// Whether the value exists already in `region`, outside everything nested in it.
    pub(crate) fn exists_in(&self, value: ValueId, region: RegionId) -> bool {
        let early = self.early[value.index()];
        self.regions[early.index()].depth <= self.regions[region.index()].depth
    }

    /// Finds out anew how deep rows are, now that some of their operands are known to be others.
    pub(crate) fn recompute_early(&mut self, resolve: impl Fn(ValueId) -> ValueId) {
        for i in 0..self.values.len() {
            let value = self.values[i];
            if value.operands().next().is_some() {
                let deeper = |a: RegionId, b: RegionId| {
                    if self.regions[a.index()].depth >= self.regions[b.index()].depth { a } else { b }
                };
                let operands = value.operands().map(|operand| self.early[resolve(operand).index()]);
                self.early[i] = operands.fold(Builder::ROOT, deeper);
            }
        }
    }

    /// Puts an item at the end of a region.
    pub(crate) fn item(&mut self, region: RegionId, item: Item, origin: u32) -> ItemId {
        let id = ItemId(self.items.len() as u32);
        self.items.push(item);
        self.origins.push(origin);
        self.regions[region.index()].items.push(id);
        id
    }

    /// How far it has come.
    pub(crate) fn mark(&self) -> Mark {
        Mark { rows: self.values.len(), items: self.items.len(), regions: self.regions.len() }
    }

    /// Forgets what came since. Nothing may refer to it.
    pub(crate) fn forget(&mut self, mark: Mark) {
        for row in mark.rows..self.indexed {
            let value = &self.values[row];
            if self.known.get(value) == Some(&ValueId(row as u32)) {
                self.known.remove(value);
            }
        }
        self.indexed = self.indexed.min(mark.rows);
        self.values.truncate(mark.rows);
        self.early.truncate(mark.rows);
        self.items.truncate(mark.items);
        self.origins.truncate(mark.items);
        self.regions.truncate(mark.regions);
    }

    pub(crate) fn constant(&mut self, literal: Literal) -> ValueId {
        self.value(Value::Const(literal))
    }

    pub(crate) fn bool(&mut self, value: bool) -> ValueId {
        self.constant(Literal::Bool(value))
    }

    pub(crate) fn zero(&mut self, ty: Type) -> ValueId {
        self.constant(Literal::from_bits(ty, 0))
    }

    pub(crate) fn as_bool(&self, value: ValueId) -> Option<bool> {
        match self.get(value) {
            Value::Const(Literal::Bool(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn binary(&mut self, op: BinOp, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Value::Binary { op, ty, a, b })
    }

    /// `!a`, for conditions that lowering makes itself.
    pub(crate) fn not(&mut self, a: ValueId) -> ValueId {
        match self.get(a) {
            Value::Const(Literal::Bool(value)) => self.bool(!value),
            Value::Unary { op: UnOp::Not, a, .. } => a,
            _ => self.value(Value::Unary { op: UnOp::Not, ty: Type::Bool, a }),
        }
    }

    /// `a && b`, for conditions that lowering makes itself.
    pub(crate) fn and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.as_bool(a), self.as_bool(b)) {
            (Some(true), _) | (_, Some(false)) => b,
            (_, Some(true)) | (Some(false), _) => a,
            _ if a == b => a,
            _ => self.binary(BinOp::And, a, b),
        }
    }

    /// `cond ? a : b`, for the merges that lowering makes itself.
    pub(crate) fn select(&mut self, cond: ValueId, a: ValueId, b: ValueId) -> ValueId {
        if a == b {
            return a;
        }
        if b == cond {
            // Where the condition does not hold, it is what is chosen.
            return self.and(cond, a);
        }
        match (self.as_bool(a), self.as_bool(b)) {
            (Some(true), Some(false)) => cond,
            (Some(false), Some(true)) => self.not(cond),
            _ => self.value(Value::Select { ty: self.ty(a), cond, a, b }),
        }
    }
}
