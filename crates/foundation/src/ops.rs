//! The operators: their spellings and the types they take and give. What they compute is in [`crate::arith`].

use crate::Type;

/// A binary operator. Both operands have one type, shift counts included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum BinOp {
    /// `a + b`; integers wrap.
    Add,
    /// `a - b`; integers wrap.
    Sub,
    /// `a * b`; integers wrap.
    Mul,
    /// `a / b`; truncating, `x / 0 = x`, `MIN / -1 = MIN`.
    Div,
    /// `a % b`; the sign of `a`, `x % 0 = 0`, `MIN % -1 = 0`.
    Rem,
    /// `a & b`, also on `bool`.
    BitAnd,
    /// `a | b`, also on `bool`.
    BitOr,
    /// `a ^ b`, also on `bool`.
    BitXor,
    /// `a << b`; the count modulo the width.
    Shl,
    /// `a >> b`; the count modulo the width; arithmetic on signed types.
    Shr,
    /// `rotl(a, b)`; the count modulo the width.
    RotL,
    /// `rotr(a, b)`; the count modulo the width.
    RotR,
    /// `a == b`.
    Eq,
    /// `a != b`; true when an operand is NaN.
    Ne,
    /// `a < b`; false with NaN.
    Lt,
    /// `a <= b`; false with NaN.
    Le,
    /// `a > b`; false with NaN.
    Gt,
    /// `a >= b`; false with NaN.
    Ge,
    /// `a && b`; both operands are always evaluated.
    And,
    /// `a || b`; both operands are always evaluated.
    Or,
    /// `min(a, b)`: `b` if `b < a` or `a` is NaN, else `a`.
    Min,
    /// `max(a, b)`: `b` if `b > a` or `a` is NaN, else `a`.
    Max,
    /// `abs_diff(a, b)`; the result has the unsigned type of the width.
    AbsDiff,
    /// `sat_add(a, b)`: saturates at the ends of the type.
    SatAdd,
    /// `sat_sub(a, b)`: saturates at the ends of the type.
    SatSub,
    /// `mul_hi(a, b)`: the high half of the full product.
    MulHi,
}

impl BinOp {
    /// Every binary operator, in declaration order.
    pub const ALL: [BinOp; 26] = [
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Div,
        BinOp::Rem,
        BinOp::BitAnd,
        BinOp::BitOr,
        BinOp::BitXor,
        BinOp::Shl,
        BinOp::Shr,
        BinOp::RotL,
        BinOp::RotR,
        BinOp::Eq,
        BinOp::Ne,
        BinOp::Lt,
        BinOp::Le,
        BinOp::Gt,
        BinOp::Ge,
        BinOp::And,
        BinOp::Or,
        BinOp::Min,
        BinOp::Max,
        BinOp::AbsDiff,
        BinOp::SatAdd,
        BinOp::SatSub,
        BinOp::MulHi,
    ];

    /// The spelling: an infix sign, or the name of a function.
    pub const fn spelling(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Rem => "%",
            BinOp::BitAnd => "&",
            BinOp::BitOr => "|",
            BinOp::BitXor => "^",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
            BinOp::RotL => "rotl",
            BinOp::RotR => "rotr",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
            BinOp::And => "&&",
            BinOp::Or => "||",
            BinOp::Min => "min",
            BinOp::Max => "max",
            BinOp::AbsDiff => "abs_diff",
            BinOp::SatAdd => "sat_add",
            BinOp::SatSub => "sat_sub",
            BinOp::MulHi => "mul_hi",
        }
    }

    /// How tightly an infix operator binds (higher is tighter), or `None` for one written as a function.
    pub const fn precedence(self) -> Option<u8> {
        Some(match self {
            BinOp::Or => 1,
            BinOp::And => 2,
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => 3,
            BinOp::BitOr => 4,
            BinOp::BitXor => 5,
            BinOp::BitAnd => 6,
            BinOp::Shl | BinOp::Shr => 7,
            BinOp::Add | BinOp::Sub => 8,
            BinOp::Mul | BinOp::Div | BinOp::Rem => 9,
            _ => return None,
        })
    }

    /// Whether the operator compares: its result is a `bool` and it does not chain.
    pub const fn is_comparison(self) -> bool {
        matches!(self, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
    }

    /// The type of the result on operands of type `operand`, or `None` if it does not take them.
    ///
    /// ```
    /// use vyre_foundation::{BinOp, Type};
    /// assert_eq!(BinOp::AbsDiff.result(Type::I32), Some(Type::U32));
    /// assert_eq!(BinOp::Rem.result(Type::F32), None);
    /// ```
    pub const fn result(self, operand: Type) -> Option<Type> {
        let (taken, result) = match self {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Min | BinOp::Max => {
                (!matches!(operand, Type::Bool), operand)
            }
            BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => (!matches!(operand, Type::F32), operand),
            BinOp::Rem
            | BinOp::Shl
            | BinOp::Shr
            | BinOp::RotL
            | BinOp::RotR
            | BinOp::SatAdd
            | BinOp::SatSub
            | BinOp::MulHi => (operand.is_integer(), operand),
            BinOp::AbsDiff => (operand.is_integer(), operand.to_unsigned()),
            BinOp::Eq | BinOp::Ne => (true, Type::Bool),
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => (!matches!(operand, Type::Bool), Type::Bool),
            BinOp::And | BinOp::Or => (matches!(operand, Type::Bool), Type::Bool),
        };
        if taken { Some(result) } else { None }
    }
}

/// A unary operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum UnOp {
    /// `-x`; integers wrap, f32 flips the sign bit.
    Neg,
    /// `!x` on `bool`.
    Not,
    /// `~x` on integers.
    BitNot,
    /// `abs(x)`; `abs(MIN) = MIN`, f32 clears the sign bit.
    Abs,
    /// `popcount(x)`: how many bits are set, a `u32`.
    Popcount,
    /// `clz(x)`: how many leading bits are zero, a `u32`; the width for 0.
    Clz,
    /// `ctz(x)`: how many trailing bits are zero, a `u32`; the width for 0.
    Ctz,
    /// `reverse_bits(x)`.
    ReverseBits,
    /// `sqrt(x)`, correctly rounded.
    Sqrt,
    /// `inverse_sqrt(x)`: `1 / sqrt(x)`, rounded twice.
    InverseSqrt,
    /// `floor(x)`.
    Floor,
    /// `ceil(x)`.
    Ceil,
    /// `trunc(x)`.
    Trunc,
    /// `round(x)`, ties to even.
    Round,
    /// `is_nan(x)`.
    IsNan,
    /// `is_inf(x)`.
    IsInf,
}

impl UnOp {
    /// Every unary operator, in declaration order.
    pub const ALL: [UnOp; 16] = [
        UnOp::Neg,
        UnOp::Not,
        UnOp::BitNot,
        UnOp::Abs,
        UnOp::Popcount,
        UnOp::Clz,
        UnOp::Ctz,
        UnOp::ReverseBits,
        UnOp::Sqrt,
        UnOp::InverseSqrt,
        UnOp::Floor,
        UnOp::Ceil,
        UnOp::Trunc,
        UnOp::Round,
        UnOp::IsNan,
        UnOp::IsInf,
    ];

    /// The spelling: a prefix sign, or the name of a function.
    pub const fn spelling(self) -> &'static str {
        match self {
            UnOp::Neg => "-",
            UnOp::Not => "!",
            UnOp::BitNot => "~",
            UnOp::Abs => "abs",
            UnOp::Popcount => "popcount",
            UnOp::Clz => "clz",
            UnOp::Ctz => "ctz",
            UnOp::ReverseBits => "reverse_bits",
            UnOp::Sqrt => "sqrt",
            UnOp::InverseSqrt => "inverse_sqrt",
            UnOp::Floor => "floor",
            UnOp::Ceil => "ceil",
            UnOp::Trunc => "trunc",
            UnOp::Round => "round",
            UnOp::IsNan => "is_nan",
            UnOp::IsInf => "is_inf",
        }
    }

    /// Whether the operator is written as a prefix sign.
    pub const fn is_prefix(self) -> bool {
        matches!(self, UnOp::Neg | UnOp::Not | UnOp::BitNot)
    }

    /// The type of the result on an operand of type `operand`, or `None` if it does not take it.
    pub const fn result(self, operand: Type) -> Option<Type> {
        let (taken, result) = match self {
            UnOp::Neg | UnOp::Abs => (operand.is_signed(), operand),
            UnOp::Not => (matches!(operand, Type::Bool), Type::Bool),
            UnOp::BitNot | UnOp::ReverseBits => (operand.is_integer(), operand),
            UnOp::Popcount | UnOp::Clz | UnOp::Ctz => (operand.is_integer(), Type::U32),
            UnOp::Sqrt | UnOp::InverseSqrt | UnOp::Floor | UnOp::Ceil | UnOp::Trunc | UnOp::Round => {
                (matches!(operand, Type::F32), Type::F32)
            }
            UnOp::IsNan | UnOp::IsInf => (matches!(operand, Type::F32), Type::Bool),
        };
        if taken { Some(result) } else { None }
    }
}

/// What an atomic does with the element. Each but `Store` gives the old value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum AtomicOp {
    /// Adds, wrapping.
    Add,
    /// Subtracts, wrapping.
    Sub,
    /// Keeps the smaller value.
    Min,
    /// Keeps the larger value.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Writes the new value.
    Exchange,
    /// Writes the new value where the old one equals the expected one; never fails spuriously.
    CompareExchange,
    /// Reads.
    Load,
    /// Writes; it is no value.
    Store,
}

impl AtomicOp {
    /// Every atomic operation, in declaration order.
    pub const ALL: [AtomicOp; 11] = [
        AtomicOp::Add,
        AtomicOp::Sub,
        AtomicOp::Min,
        AtomicOp::Max,
        AtomicOp::And,
        AtomicOp::Or,
        AtomicOp::Xor,
        AtomicOp::Exchange,
        AtomicOp::CompareExchange,
        AtomicOp::Load,
        AtomicOp::Store,
    ];

    /// The function's name in the text format.
    pub const fn spelling(self) -> &'static str {
        match self {
            AtomicOp::Add => "atomic_add",
            AtomicOp::Sub => "atomic_sub",
            AtomicOp::Min => "atomic_min",
            AtomicOp::Max => "atomic_max",
            AtomicOp::And => "atomic_and",
            AtomicOp::Or => "atomic_or",
            AtomicOp::Xor => "atomic_xor",
            AtomicOp::Exchange => "atomic_exchange",
            AtomicOp::CompareExchange => "atomic_compare_exchange",
            AtomicOp::Load => "atomic_load",
            AtomicOp::Store => "atomic_store",
        }
    }

    /// Whether it takes an expected value.
    pub const fn takes_expected(self) -> bool {
        matches!(self, AtomicOp::CompareExchange)
    }

    /// Whether it takes a value: each but `Load`.
    pub const fn takes_value(self) -> bool {
        !matches!(self, AtomicOp::Load)
    }
}

/// How a reduction over a subgroup combines values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum SubgroupOp {
    /// Wrapping sum.
    Add,
    /// Wrapping product.
    Mul,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl SubgroupOp {
    /// Every reduction, in declaration order.
    pub const ALL: [SubgroupOp; 7] = [
        SubgroupOp::Add,
        SubgroupOp::Mul,
        SubgroupOp::Min,
        SubgroupOp::Max,
        SubgroupOp::And,
        SubgroupOp::Or,
        SubgroupOp::Xor,
    ];

    /// The function's name in the text format.
    pub const fn spelling(self) -> &'static str {
        match self {
            SubgroupOp::Add => "subgroup_add",
            SubgroupOp::Mul => "subgroup_mul",
            SubgroupOp::Min => "subgroup_min",
            SubgroupOp::Max => "subgroup_max",
            SubgroupOp::And => "subgroup_and",
            SubgroupOp::Or => "subgroup_or",
            SubgroupOp::Xor => "subgroup_xor",
        }
    }

    /// The binary operator that combines two values.
    pub const fn combine(self) -> BinOp {
        match self {
            SubgroupOp::Add => BinOp::Add,
            SubgroupOp::Mul => BinOp::Mul,
            SubgroupOp::Min => BinOp::Min,
            SubgroupOp::Max => BinOp::Max,
            SubgroupOp::And => BinOp::BitAnd,
            SubgroupOp::Or => BinOp::BitOr,
            SubgroupOp::Xor => BinOp::BitXor,
        }
    }
}

/// The ordering of an atomic or of a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum MemoryOrdering {
    /// No ordering beyond the atomic itself. The default of atomics; works on every backend.
    Relaxed,
    /// Later accesses stay after it.
    Acquire,
    /// Earlier accesses stay before it.
    Release,
    /// Both.
    AcqRel,
    /// Sequentially consistent. For a barrier: the workgroup waits and its earlier writes become visible to it.
    SeqCst,
    /// Only for barriers: waits for every invocation of the dispatch and makes every earlier write visible to all.
    GridSync,
}

impl MemoryOrdering {
    /// Every ordering, in declaration order.
    pub const ALL: [MemoryOrdering; 6] = [
        MemoryOrdering::Relaxed,
        MemoryOrdering::Acquire,
        MemoryOrdering::Release,
        MemoryOrdering::AcqRel,
        MemoryOrdering::SeqCst,
        MemoryOrdering::GridSync,
    ];

    /// The spelling as an argument of an atomic.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryOrdering::Relaxed => "relaxed",
            MemoryOrdering::Acquire => "acquire",
            MemoryOrdering::Release => "release",
            MemoryOrdering::AcqRel => "acq_rel",
            MemoryOrdering::SeqCst => "seq_cst",
            MemoryOrdering::GridSync => "grid_sync",
        }
    }

    /// The ordering of an atomic with this spelling.
    pub fn from_atomic_name(name: &str) -> Option<MemoryOrdering> {
        MemoryOrdering::ALL[..5].iter().copied().find(|o| o.name() == name)
    }

    /// Whether an atomic may have it: a load releases nothing, a store acquires nothing.
    pub const fn is_legal_for(self, op: AtomicOp) -> bool {
        match self {
            MemoryOrdering::GridSync => false,
            MemoryOrdering::Relaxed | MemoryOrdering::SeqCst => true,
            MemoryOrdering::Acquire => !matches!(op, AtomicOp::Store),
            MemoryOrdering::Release => !matches!(op, AtomicOp::Load),
            MemoryOrdering::AcqRel => !matches!(op, AtomicOp::Store | AtomicOp::Load),
        }
    }
}

/// Which invocations a barrier or uniform load waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Scope {
    /// The invocations of one workgroup.
    Workgroup,
    /// Every invocation of the dispatch.
    Grid,
}

impl Scope {
    /// The spelling in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Workgroup => "workgroup",
            Scope::Grid => "grid",
        }
    }
}

/// One of the three axes of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Axis {
    /// The fastest axis.
    X,
    /// The middle axis.
    Y,
    /// The slowest axis.
    Z,
}

impl Axis {
    /// The axes, fastest first.
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

    /// The spelling in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        }
    }

    /// The position in a three-component vector.
    pub const fn index(self) -> usize {
        self as usize
    }
}
