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

const CONST: u32 = 0;
const ID: u32 = 1;
const LANE: u32 = 2;
const LEN: u32 = 3;
const LOAD: u32 = 4;
const BINARY: u32 = 5;
const UNARY: u32 = 6;
const SELECT: u32 = 7;
const CAST: u32 = 8;
const BITCAST: u32 = 9;
const FMA: u32 = 10;
const PARAM: u32 = 11;
const OUT: u32 = 12;

const IDS: [Id; 4] = [Id::Invocation, Id::Workgroup, Id::Local, Id::NumWorkgroups];

fn pack(op: u32, variant: u32, a: Type, b: Type) -> u32 {
    op | variant << 8 | (a as u32) << 16 | (b as u32) << 24
}

impl Values {
    pub(crate) fn push(&mut self, value: Value) {
        let none = [0; 3];
        let u32s = Type::U32;
        let (kind, args) = match value {
            Value::Const(literal) => {
                let bits = literal.bits();
                (pack(CONST, 0, literal.ty(), literal.ty()), [bits as u32, (bits >> 32) as u32, 0])
            }
            Value::Id(id, axis) => (pack(ID, id as u32, u32s, u32s), [axis as u32, 0, 0]),
            Value::SubgroupLane => (pack(LANE, 0, u32s, u32s), none),
            Value::Len(buffer) => (pack(LEN, 0, u32s, u32s), [buffer, 0, 0]),
            Value::Load { buffer, index, ty } => (pack(LOAD, 0, ty, ty), [index.0, buffer, 0]),
            Value::Binary { op, ty, a, b } => (pack(BINARY, op as u32, ty, value.ty()), [a.0, b.0, 0]),
            Value::Unary { op, ty, a } => (pack(UNARY, op as u32, ty, value.ty()), [a.0, 0, 0]),
            Value::Select { ty, cond, a, b } => (pack(SELECT, 0, ty, ty), [cond.0, a.0, b.0]),
            Value::Cast { from, to, a } => (pack(CAST, 0, from, to), [a.0, 0, 0]),
            Value::Bitcast { from, to, a } => (pack(BITCAST, 0, from, to), [a.0, 0, 0]),
            Value::Fma { a, b, c } => (pack(FMA, 0, Type::F32, Type::F32), [a.0, b.0, c.0]),
            Value::Param { item, index, ty } => (pack(PARAM, 0, ty, ty), [item.0, index, 0]),
            Value::Out { item, index, ty } => (pack(OUT, 0, ty, ty), [item.0, index, 0]),
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

    /// The row as a value.
    pub fn get(&self, id: ValueId) -> Value {
        let i = id.index();
        let kind = self.kind[i];
        let [a, b, c] = [0, 1, 2].map(|k: usize| self.args[k][i]);
        let [va, vb, vc] = [a, b, c].map(ValueId);
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
}

const STORE: u32 = 0;
const LOAD_ITEM: u32 = 1;
const ATOMIC: u32 = 2;
const BARRIER: u32 = 3;
const UNIFORM_LOAD: u32 = 4;
const TRAP: u32 = 5;
const BALLOT: u32 = 6;
const SHUFFLE: u32 = 7;
const REDUCE: u32 = 8;
const IF: u32 = 9;
const LOOP: u32 = 10;

const SCOPES: [Scope; 2] = [Scope::Workgroup, Scope::Grid];

impl Items {
    pub(crate) fn push(&mut self, item: &Item, origin: u32, pool: &mut Vec<u32>) {
        let optional = |value: &Option<ValueId>| value.map_or(NONE, |value| value.0);
        let (kind, args, list): (u32, [u32; 4], Vec<u32>) = match item {
            Item::Store { buffer, index, value } => (STORE, [*buffer, index.0, value.0, 0], vec![]),
            Item::Load { buffer, index, version } => (LOAD_ITEM, [*buffer, index.0, *version, 0], vec![]),
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
            LOAD_ITEM => Item::Load { buffer: a, index: ValueId(b), version: c },
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
