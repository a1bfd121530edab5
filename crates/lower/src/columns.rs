//! The columns of a kernel, and how rows are written to them and read back.

use crate::kernel::{Id, Item, ItemId, RegionId, Value, ValueId};
use vyre_foundation::{AtomicOp, Axis, BinOp, Literal, MemoryOrdering, Scope, SubgroupOp, Type, UnOp};

/// The number that stands for no value.
pub const NONE: u32 = u32::MAX;

/// The number that stands for no stride: of all of them the one that would be of no use.
pub const NO_STRIDE: u32 = 1 << 31;

/// The value rows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Values {
    /// Operation, its variant, and the types of operand and result, a byte each.
    pub kind: Vec<u32>,
    /// Operands, or the parts of a leaf.
    pub args: [Vec<u32>; 3],
    /// The longest path from the leaves; leaves are 0.
    pub level: Vec<u32>,
    /// How uniform the row is, as the number of its [`Level`](vyre_foundation::validate::Level).
    pub uniformity: Vec<u32>,
    /// What the row grows by from a lane to the next one along x, as a signed number, or [`NO_STRIDE`].
    pub stride: Vec<u32>,
}

/// The item rows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Items {
    /// Operation and its variants, a byte each.
    pub kind: Vec<u32>,
    /// Buffers, operands and regions.
    pub args: [Vec<u32>; 4],
    /// Where the lists of the item begin in the pool, and how many entries each has.
    pub lists: [Vec<u32>; 2],
    /// The region of the program that the item came from; 0 is none.
    pub origin: Vec<u32>,
}

/// The regions: which stretch of the order of items each holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Regions {
    /// Where the items of the region begin in the pool.
    pub start: Vec<u32>,
    /// How many there are.
    pub count: Vec<u32>,
}

/// The operations of value rows, as they stand in the lowest byte of a kind.
pub mod op {
    /// A constant; its bits are the first two arguments.
    pub const CONST: u32 = 0;
    /// An id; the variant says which, the first argument the axis.
    pub const ID: u32 = 1;
    /// The lane in the subgroup.
    pub const LANE: u32 = 2;
    /// The length of the buffer that the first argument names.
    pub const LEN: u32 = 3;
    /// A load at the first argument, from the buffer that the second one names.
    pub const LOAD: u32 = 4;
    /// A binary operator; the variant says which.
    pub const BINARY: u32 = 5;
    /// A unary operator; the variant says which.
    pub const UNARY: u32 = 6;
    /// A choice: condition, first, second.
    pub const SELECT: u32 = 7;
    /// A conversion.
    pub const CAST: u32 = 8;
    /// The same bits as another type.
    pub const BITCAST: u32 = 9;
    /// A product and a sum, rounded once.
    pub const FMA: u32 = 10;
    /// A parameter: the item, and which one.
    pub const PARAM: u32 = 11;
    /// A result: the item, and which one.
    pub const OUT: u32 = 12;

    /// How many of the arguments of a row are rows; they come first.
    pub const fn operands(op: u32) -> usize {
        match op {
            LOAD | UNARY | CAST | BITCAST => 1,
            BINARY => 2,
            SELECT | FMA => 3,
            _ => 0,
        }
    }
}

use op::{BINARY, BITCAST, CAST, CONST, FMA, ID, LANE, LEN, LOAD, OUT, PARAM, SELECT, UNARY};

const IDS: [Id; 4] = [Id::Invocation, Id::Workgroup, Id::Local, Id::NumWorkgroups];

/// The kind of a row: its operation, which variant of it, and the types of operand and result.
pub const fn kind(op: u32, variant: u32, operand: Type, result: Type) -> u32 {
    op | variant << 8 | (operand as u32) << 16 | (result as u32) << 24
}

impl Values {
    /// No rows yet, with room for so many. What is known about rows when all of them are there takes none.
    pub(crate) fn with_room(rows: usize) -> Values {
        let column = || Vec::with_capacity(rows);
        let args = [0; 3].map(|_| column());
        Values { kind: column(), args, level: column(), ..Values::default() }
    }

    pub(crate) fn push(&mut self, value: Value) {
        let none = [0; 3];
        let u32s = Type::U32;
        let (kind, args) = match value {
            Value::Const(literal) => {
                let bits = literal.bits();
                (kind(CONST, 0, literal.ty(), literal.ty()), [bits as u32, (bits >> 32) as u32, 0])
            }
            Value::Id(id, axis) => (kind(ID, id as u32, u32s, u32s), [axis as u32, 0, 0]),
            Value::SubgroupLane => (kind(LANE, 0, u32s, u32s), none),
            Value::Len(buffer) => (kind(LEN, 0, u32s, u32s), [buffer, 0, 0]),
            Value::Load { buffer, index, ty } => (kind(LOAD, 0, ty, ty), [index.0, buffer, 0]),
            Value::Binary { op, ty, a, b } => (kind(BINARY, op as u32, ty, value.ty()), [a.0, b.0, 0]),
            Value::Unary { op, ty, a } => (kind(UNARY, op as u32, ty, value.ty()), [a.0, 0, 0]),
            Value::Select { ty, cond, a, b } => (kind(SELECT, 0, ty, ty), [cond.0, a.0, b.0]),
            Value::Cast { from, to, a } => (kind(CAST, 0, from, to), [a.0, 0, 0]),
            Value::Bitcast { from, to, a } => (kind(BITCAST, 0, from, to), [a.0, 0, 0]),
            Value::Fma { a, b, c } => (kind(FMA, 0, Type::F32, Type::F32), [a.0, b.0, c.0]),
            Value::Param { item, index, ty } => (kind(PARAM, 0, ty, ty), [item.0, index, 0]),
            Value::Out { item, index, ty } => (kind(OUT, 0, ty, ty), [item.0, index, 0]),
        };
        let level = value.operands().map(|operand| self.level[operand.index()] + 1).max().unwrap_or(0);
        self.kind.push(kind);
        self.args.iter_mut().zip(args).for_each(|(column, arg)| column.push(arg));
        self.level.push(level);
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Whether a row is a parameter or a result.
    pub(crate) fn is_slot(&self, row: usize) -> bool {
        matches!(self.kind[row] & 0xff, PARAM | OUT)
    }

    /// The row as a value.
    pub fn get(&self, id: ValueId) -> Value {
        let i = id.index();
        value(self.kind[i], [0, 1, 2].map(|k: usize| self.args[k][i]))
    }
}

/// The value that a kind and arguments stand for.
pub(crate) fn value(kind: u32, args: [u32; 3]) -> Value {
    let [a, b, _] = args;
    let [va, vb, vc] = args.map(ValueId);
    let variant = (kind >> 8 & 0xff) as usize;
    let ty = Type::ALL[(kind >> 16 & 0xff) as usize];
    let to = Type::ALL[(kind >> 24) as usize];
    match kind & 0xff {
        CONST => Value::Const(Literal::from_bits(ty, u64::from(a) | u64::from(b) << 32)),
        ID => Value::Id(IDS[variant], Axis::ALL[a as usize]),
        LANE => Value::SubgroupLane,
        LEN => Value::Len(a),
        LOAD => Value::Load { buffer: b, index: va, ty },
        BINARY => Value::Binary { op: BinOp::ALL[variant], ty, a: va, b: vb },
        UNARY => Value::Unary { op: UnOp::ALL[variant], ty, a: va },
        SELECT => Value::Select { ty, cond: va, a: vb, b: vc },
        CAST => Value::Cast { from: ty, to, a: va },
        BITCAST => Value::Bitcast { from: ty, to, a: va },
        FMA => Value::Fma { a: va, b: vb, c: vc },
        PARAM => Value::Param { item: ItemId(a), index: b, ty },
        _ => Value::Out { item: ItemId(a), index: b, ty },
    }
}

/// The operations of item rows, as they stand in the lowest byte of a kind.
pub mod item {
    /// A store: buffer, index, value.
    pub const STORE: u32 = 0;
    /// A load: buffer, index, version.
    pub const LOAD: u32 = 1;
    /// An atomic: buffer, index, expected, value; the last two may be [`NONE`](super::NONE).
    pub const ATOMIC: u32 = 2;
    /// A barrier.
    pub const BARRIER: u32 = 3;
    /// A barrier, one load for all, a barrier: buffer, index.
    pub const UNIFORM_LOAD: u32 = 4;
    /// A trap: tag, value.
    pub const TRAP: u32 = 5;
    /// A ballot: condition.
    pub const BALLOT: u32 = 6;
    /// A shuffle: value, lane.
    pub const SHUFFLE: u32 = 7;
    /// A reduction: value.
    pub const REDUCE: u32 = 8;
    /// A branch: condition, two regions.
    pub const IF: u32 = 9;
    /// A loop: guard, region, whether another iteration follows.
    pub const LOOP: u32 = 10;

    /// Which arguments are rows, a bit for each.
    pub const fn rows(op: u32) -> u32 {
        match op {
            STORE => 0b0110,
            ATOMIC => 0b1110,
            LOAD | UNIFORM_LOAD | TRAP => 0b0010,
            SHUFFLE => 0b0011,
            LOOP => 0b0101,
            BALLOT | REDUCE | IF => 0b0001,
            _ => 0,
        }
    }

    /// Whether it has an effect that others see.
    pub const fn has_effect(op: u32) -> bool {
        matches!(op, STORE | ATOMIC | BARRIER | UNIFORM_LOAD | TRAP)
    }
}

use item::{ATOMIC, BALLOT, BARRIER, IF, LOOP, REDUCE, SHUFFLE, STORE, TRAP, UNIFORM_LOAD};

const SCOPES: [Scope; 2] = [Scope::Workgroup, Scope::Grid];

impl Items {
    pub(crate) fn push(&mut self, row: &Item, origin: u32, pool: &mut Vec<u32>) {
        let optional = |value: &Option<ValueId>| value.map_or(NONE, |value| value.0);
        let (kind, args, list): (u32, [u32; 4], Vec<u32>) = match row {
            Item::Store { buffer, index, value } => (STORE, [*buffer, index.0, value.0, 0], vec![]),
            Item::Load { buffer, index, version } => (item::LOAD, [*buffer, index.0, *version, 0], vec![]),
            Item::Atomic { op, ordering, buffer, index, expected, value } => (
                ATOMIC | (*op as u32) << 8 | (*ordering as u32) << 16,
                [*buffer, index.0, optional(expected), optional(value)],
                vec![],
            ),
            Item::Barrier { scope } => (BARRIER | (*scope as u32) << 8, [0; 4], vec![]),
            Item::UniformLoad { scope, buffer, index } => {
                (UNIFORM_LOAD | (*scope as u32) << 8, [*buffer, index.0, 0, 0], vec![])
            }
            Item::Trap { tag, value } => (TRAP, [*tag, value.0, 0, 0], vec![]),
            Item::Ballot { cond } => (BALLOT, [cond.0, 0, 0, 0], vec![]),
            Item::Shuffle { value, lane } => (SHUFFLE, [value.0, lane.0, 0, 0], vec![]),
            Item::Reduce { op, value } => (REDUCE | (*op as u32) << 8, [value.0, 0, 0, 0], vec![]),
            Item::If { cond, then, otherwise, yields } => {
                (IF, [cond.0, then.0, otherwise.0, 0], yields.iter().flat_map(|(a, b)| [a.0, b.0]).collect())
            }
            Item::Loop { guard, first, body, next, again } => {
                let pairs = first.iter().zip(next).flat_map(|(a, b)| [a.0, b.0]);
                (LOOP, [guard.0, body.0, again.0, 0], pairs.collect())
            }
        };
        self.kind.push(kind);
        self.args.iter_mut().zip(args).for_each(|(column, arg)| column.push(arg));
        self.lists[0].push(pool.len() as u32);
        self.lists[1].push(list.len() as u32 / 2);
        self.origin.push(origin);
        pool.extend(list);
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// The row as an item.
    pub fn get(&self, id: ItemId, pool: &[u32]) -> Item {
        let i = id.index();
        let kind = self.kind[i];
        let [a, b, c, d] = [0, 1, 2, 3].map(|k: usize| self.args[k][i]);
        let optional = |value: u32| (value != NONE).then_some(ValueId(value));
        let start = self.lists[0][i] as usize;
        let pairs = pool[start..start + 2 * self.lists[1][i] as usize].chunks_exact(2);
        let pairs = pairs.map(|pair| (ValueId(pair[0]), ValueId(pair[1])));
        let variant = (kind >> 8 & 0xff) as usize;
        match kind & 0xff {
            STORE => Item::Store { buffer: a, index: ValueId(b), value: ValueId(c) },
            item::LOAD => Item::Load { buffer: a, index: ValueId(b), version: c },
            ATOMIC => Item::Atomic {
                op: AtomicOp::ALL[variant],
                ordering: MemoryOrdering::ALL[(kind >> 16) as usize],
                buffer: a,
                index: ValueId(b),
                expected: optional(c),
                value: optional(d),
            },
            BARRIER => Item::Barrier { scope: SCOPES[variant] },
            UNIFORM_LOAD => Item::UniformLoad { scope: SCOPES[variant], buffer: a, index: ValueId(b) },
            TRAP => Item::Trap { tag: a, value: ValueId(b) },
            BALLOT => Item::Ballot { cond: ValueId(a) },
            SHUFFLE => Item::Shuffle { value: ValueId(a), lane: ValueId(b) },
            REDUCE => Item::Reduce { op: SubgroupOp::ALL[variant], value: ValueId(a) },
            IF => Item::If {
                cond: ValueId(a),
                then: RegionId(b),
                otherwise: RegionId(c),
                yields: pairs.collect(),
            },
            _ => {
                let (first, next) = pairs.unzip();
                Item::Loop { guard: ValueId(a), first, body: RegionId(b), next, again: ValueId(c) }
            }
        }
    }
}
