//! The flat form: what optimizer and emitters work on.
//!
//! **Values** are rows. Pure rows float: they belong to no statement, because every operation is total. Leaves
//! are constants, ids, lengths, parameters of loops and results of items. An operand always has a smaller
//! number than the row that uses it, so rows are acyclic; what goes around a loop stands in its item.
//!
//! **Items** are pinned: effects and control, in order, in regions. An `If` and a `Loop` hold regions and give
//! results: for each result of an `If` a value per branch, for each parameter of a `Loop` its first value, its
//! next value, and the last one as a result. A `Loop` is a guarded do-while: where the guard does not hold the
//! results are the first values; otherwise the body runs until its `again` does not hold.
//!
//! There is no return, break or continue: they have become conditions. Invocations that have ended go on
//! computing uniform values and take part in barriers and subgroup operations, with values that change nothing; they
//! reach no other effect.
//!
//! Everything is stored as columns of `u32`, ready for a device. [`Value`] and [`Item`] are views of rows.
//!
//! Two columns hold facts that follow from the rest: how uniform each row is, and its *stride*, what it grows by from a
//! lane to the next one along x.

use crate::columns::{Items, NO_STRIDE, Regions, Values};
use std::fmt;
use vyre_foundation::{
    AtomicOp, Axis, BinOp, BufferDecl, Literal, MemoryOrdering, Name, Scope, SubgroupOp, Type, UnOp,
    WorkgroupSize, arith,
};

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The row of a number.
            pub const fn new(number: u32) -> $name {
                $name(number)
            }

            /// The number of the row.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    };
}

handle!(
    /// A value row.
    ValueId,
    "v"
);
handle!(
    /// An item row: an effect or control.
    ItemId,
    "i"
);
handle!(
    /// A region: a sequence of items.
    RegionId,
    "r"
);

/// Which id a row reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Id {
    /// `global_id`.
    Invocation,
    /// `workgroup_id`.
    Workgroup,
    /// `local_id`.
    Local,
    /// `num_workgroups`.
    NumWorkgroups,
}

/// A value row. Buffers are named by number, operands by row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// A constant.
    Const(Literal),
    /// An id on an axis.
    Id(Id, Axis),
    /// The lane in the subgroup.
    SubgroupLane,
    /// The element count of a buffer, by its number.
    Len(u32),
    /// A load of memory that the program never writes.
    Load {
        /// The buffer, by its number.
        buffer: u32,
        /// The index of the element.
        index: ValueId,
        /// The type of the operands, or of the value itself.
        ty: Type,
    },
    /// A binary operator on operands of type `ty`.
    Binary {
        /// The operator.
        op: BinOp,
        /// The type of the operands, or of the value itself.
        ty: Type,
        /// The first operand.
        a: ValueId,
        /// The second operand.
        b: ValueId,
    },
    /// A unary operator on an operand of type `ty`.
    Unary {
        /// The operator.
        op: UnOp,
        /// The type of the operands, or of the value itself.
        ty: Type,
        /// The first operand.
        a: ValueId,
    },
    /// `a` where `cond` holds, else `b`; both of type `ty`.
    Select {
        /// The type of the operands, or of the value itself.
        ty: Type,
        /// The condition, a `bool`.
        cond: ValueId,
        /// The value where it holds.
        a: ValueId,
        /// The value where it does not.
        b: ValueId,
    },
    /// A conversion.
    Cast {
        /// The type of the operand.
        from: Type,
        /// The type of the result.
        to: Type,
        /// The first operand.
        a: ValueId,
    },
    /// The same bits as another type; NaN canonical.
    Bitcast {
        /// The type of the operand.
        from: Type,
        /// The type of the result.
        to: Type,
        /// The first operand.
        a: ValueId,
    },
    /// `a * b + c` rounded once.
    Fma {
        /// The first factor.
        a: ValueId,
        /// The second factor.
        b: ValueId,
        /// The addend.
        c: ValueId,
    },
    /// The parameter of a loop, in its body.
    Param {
        /// The item.
        item: ItemId,
        /// Which one.
        index: u32,
        /// The type of the operands, or of the value itself.
        ty: Type,
    },
    /// A result of an item, after it.
    Out {
        /// The item.
        item: ItemId,
        /// Which one.
        index: u32,
        /// The type of the operands, or of the value itself.
        ty: Type,
    },
}

impl Value {
    /// The type of the value.
    pub fn ty(self) -> Type {
        match self {
            Value::Const(literal) => literal.ty(),
            Value::Id(..) | Value::SubgroupLane | Value::Len(_) => Type::U32,
            Value::Binary { op, ty, .. } => op.result(ty).unwrap_or(ty),
            Value::Unary { op, ty, .. } => op.result(ty).unwrap_or(ty),
            Value::Cast { to, .. } | Value::Bitcast { to, .. } => to,
            Value::Fma { .. } => Type::F32,
            Value::Load { ty, .. }
            | Value::Select { ty, .. }
            | Value::Param { ty, .. }
            | Value::Out { ty, .. } => ty,
        }
    }

    /// What it is, as bits in the reference's arithmetic, of operands that are given; nothing for what is not computed of
    /// operands alone. Floats are right in the default environment: see [`float_env`](vyre_foundation::float_env).
    pub fn computed<E>(self, get: impl Fn(ValueId) -> Result<u64, E>) -> Result<Option<u64>, E> {
        Ok(Some(match self {
            Value::Const(literal) => literal.bits(),
            Value::Binary { op, ty, a, b } => arith::binary(op, ty, get(a)?, get(b)?),
            Value::Unary { op, ty, a } => arith::unary(op, ty, get(a)?),
            Value::Select { cond, a, b, .. } => get(if get(cond)? != 0 { a } else { b })?,
            Value::Cast { from, to, a } => arith::cast(from, to, get(a)?),
            Value::Bitcast { from, a, .. } => arith::bitcast(from, get(a)?),
            Value::Fma { a, b, c } => arith::fma(get(a)?, get(b)?, get(c)?),
            _ => return Ok(None),
        }))
    }

    /// Its operands, in evaluation order.
    pub fn operands(self) -> impl Iterator<Item = ValueId> {
        let operands = match self {
            Value::Load { index, .. } => [Some(index), None, None],
            Value::Binary { a, b, .. } => [Some(a), Some(b), None],
            Value::Unary { a, .. } | Value::Cast { a, .. } | Value::Bitcast { a, .. } => {
                [Some(a), None, None]
            }
            Value::Select { cond, a, b, .. } => [Some(cond), Some(a), Some(b)],
            Value::Fma { a, b, c } => [Some(a), Some(b), Some(c)],
            _ => [None; 3],
        };
        operands.into_iter().flatten()
    }
}

/// An item: an effect or control. Buffers are named by number, operands by row.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// Stores an element.
    Store {
        /// The buffer, by its number.
        buffer: u32,
        /// The index of the element.
        index: ValueId,
        /// The value.
        value: ValueId,
    },
    /// Loads an element of memory that the program writes. Equal versions see equal memory.
    Load {
        /// The buffer, by its number.
        buffer: u32,
        /// The index of the element.
        index: ValueId,
        /// The version of the memory that it sees.
        version: u32,
    },
    /// An atomic; `expected` is of a compare-exchange only, `value` of all but a load.
    Atomic {
        /// The operator.
        op: AtomicOp,
        /// The ordering.
        ordering: MemoryOrdering,
        /// The buffer, by its number.
        buffer: u32,
        /// The index of the element.
        index: ValueId,
        /// The expected value of a compare-exchange.
        expected: Option<ValueId>,
        /// The value.
        value: Option<ValueId>,
    },
    /// A barrier.
    Barrier {
        /// Who waits.
        scope: Scope,
    },
    /// A barrier, one load for all, a barrier.
    UniformLoad {
        /// Who waits.
        scope: Scope,
        /// The buffer, by its number.
        buffer: u32,
        /// The index of the element.
        index: ValueId,
    },
    /// A trap, by the number of its tag.
    Trap {
        /// The tag, by its number.
        tag: u32,
        /// The value.
        value: ValueId,
    },
    /// A ballot. Invocations that have ended vote `false`.
    Ballot {
        /// The condition, a `bool`.
        cond: ValueId,
    },
    /// A shuffle. Invocations that have ended offer zero.
    Shuffle {
        /// The value.
        value: ValueId,
        /// The lane to read from.
        lane: ValueId,
    },
    /// A reduction. Invocations that have ended give the value that changes nothing.
    Reduce {
        /// The operator.
        op: SubgroupOp,
        /// The value.
        value: ValueId,
    },
    /// One of two regions. Result `k` is `yields[k].0` after the first, `yields[k].1` after the second.
    If {
        /// The condition, a `bool`.
        cond: ValueId,
        /// The region where it holds.
        then: RegionId,
        /// The region where it does not.
        otherwise: RegionId,
        /// For each result what the two regions leave.
        yields: Vec<(ValueId, ValueId)>,
    },
    /// A guarded do-while. Parameter `k` is `first[k]`, then `next[k]` of the iteration before; result `k` is the
    /// last `next[k]`, or `first[k]` where the guard does not hold.
    Loop {
        /// Whether the body runs at all.
        guard: ValueId,
        /// The first value of each parameter.
        first: Vec<ValueId>,
        /// The region that is repeated.
        body: RegionId,
        /// The next value of each parameter.
        next: Vec<ValueId>,
        /// Whether another iteration follows.
        again: ValueId,
    },
}

impl Item {
    /// The values that the item itself uses, where it stands. What regions yield is used at their ends.
    pub fn operands(&self) -> Vec<ValueId> {
        match self {
            Item::Store { index, value, .. } => vec![*index, *value],
            Item::Load { index, .. } | Item::UniformLoad { index, .. } => vec![*index],
            Item::Atomic { index, expected, value, .. } => {
                [Some(*index), *expected, *value].into_iter().flatten().collect()
            }
            Item::Barrier { .. } => Vec::new(),
            Item::Trap { value, .. } => vec![*value],
            Item::Ballot { cond } => vec![*cond],
            Item::Shuffle { value, lane } => vec![*value, *lane],
            Item::Reduce { value, .. } => vec![*value],
            Item::If { cond, .. } => vec![*cond],
            Item::Loop { guard, first, .. } => std::iter::once(*guard).chain(first.iter().copied()).collect(),
        }
    }

    /// Goes over the operands of an effect, to change them. Control has none of its own here.
    pub(crate) fn for_each_operand_mut(&mut self, mut each: impl FnMut(&mut ValueId)) {
        match self {
            Item::Store { index, value, .. } => [index, value].into_iter().for_each(each),
            Item::Load { index, .. } | Item::UniformLoad { index, .. } => each(index),
            Item::Atomic { index, expected, value, .. } => {
                each(index);
                expected.iter_mut().chain(value).for_each(each);
            }
            Item::Trap { value, .. } | Item::Reduce { value, .. } => each(value),
            Item::Ballot { cond } => each(cond),
            Item::Shuffle { value, lane } => [value, lane].into_iter().for_each(each),
            Item::Barrier { .. } | Item::If { .. } | Item::Loop { .. } => {}
        }
    }
}

/// Where items came from: a `region` of the program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    /// What made the statements.
    pub generator: Name,
    /// Which part of the generator's source they came from.
    pub source: Option<Name>,
    /// The origin around it; 0 is none, others count from 1.
    pub parent: u32,
}

/// A program in flat form.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// The program's name.
    pub name: Name,
    /// The workgroup size.
    pub workgroup_size: WorkgroupSize,
    /// The subgroup size.
    pub subgroup_size: u32,
    /// The buffers; rows name them by number.
    pub buffers: Vec<BufferDecl>,
    /// The tags of traps.
    pub tags: Vec<Name>,
    /// The origins of items.
    pub origins: Vec<Origin>,
    /// The value rows.
    pub values: Values,
    /// The item rows.
    pub items: Items,
    /// The regions; the first one is the entry.
    pub regions: Regions,
    /// Lists: the items of regions, what branches yield, the parameters of loops.
    pub pool: Vec<u32>,
}

impl Kernel {
    /// The entry region.
    pub const ENTRY: RegionId = RegionId(0);

    /// A value row.
    pub fn value(&self, id: ValueId) -> Value {
        self.values.get(id)
    }

    /// An item row.
    pub fn item(&self, id: ItemId) -> Item {
        self.items.get(id, &self.pool)
    }

    /// The two rows of a result of a branch, or of a parameter of a loop: see [`Item`].
    pub fn pair(&self, item: ItemId, index: u32) -> (ValueId, ValueId) {
        let at = (self.items.lists[0][item.index()] + 2 * index) as usize;
        (ValueId(self.pool[at]), ValueId(self.pool[at + 1]))
    }

    /// What a row grows by, wrapping, from a lane to the one whose `local_id.x` is one more, if that is known; 0 says
    /// that the row is the same for all lanes side by side. It compares lanes that both compute the row, in the same
    /// iteration of every loop around it. All operands of a row with a stride have one.
    pub fn stride(&self, id: ValueId) -> Option<i32> {
        let stride = self.values.stride[id.index()];
        (stride != NO_STRIDE).then_some(stride as i32)
    }

    /// All value rows, operands before what uses them.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = ValueId> + use<> {
        (0..self.values.len() as u32).map(ValueId)
    }

    /// All regions, outer ones before inner ones.
    pub fn region_ids(&self) -> impl DoubleEndedIterator<Item = RegionId> + use<> {
        (0..self.regions.start.len() as u32).map(RegionId)
    }

    /// How many items a region has.
    pub fn item_count(&self, id: RegionId) -> u32 {
        self.regions.count[id.index()]
    }

    /// The item at a position of a region.
    pub fn item_at(&self, id: RegionId, position: u32) -> ItemId {
        ItemId(self.pool[(self.regions.start[id.index()] + position) as usize])
    }

    /// The items of a region, in order.
    pub fn region(&self, id: RegionId) -> impl Iterator<Item = ItemId> {
        let start = self.regions.start[id.index()] as usize;
        let count = self.regions.count[id.index()] as usize;
        self.pool[start..start + count].iter().map(|item| ItemId(*item))
    }
}
