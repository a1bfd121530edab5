//! Expressions: a tree that people write. Every expression is total.

use crate::ops::{AtomicOp, Axis, BinOp, MemoryOrdering, Scope, SubgroupOp, UnOp};
use crate::{Name, Type};
use std::ops::Deref;
use std::sync::Arc;

/// A constant. Floats compare by bits, and every NaN is the canonical one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Literal {
    /// A truth value.
    Bool(bool),
    /// A `u32`.
    U32(u32),
    /// An `i32`.
    I32(i32),
    /// A `u64`.
    U64(u64),
    /// An `i64`.
    I64(i64),
    /// An `f32`.
    F32(F32),
}

impl Literal {
    /// The type of the constant.
    pub const fn ty(self) -> Type {
        match self {
            Literal::Bool(_) => Type::Bool,
            Literal::U32(_) => Type::U32,
            Literal::I32(_) => Type::I32,
            Literal::U64(_) => Type::U64,
            Literal::I64(_) => Type::I64,
            Literal::F32(_) => Type::F32,
        }
    }

    /// The value as register bits: zero-extended to 64 bits (see [`crate::arith`]).
    pub const fn bits(self) -> u64 {
        match self {
            Literal::Bool(v) => v as u64,
            Literal::U32(v) => v as u64,
            Literal::I32(v) => v as u32 as u64,
            Literal::U64(v) => v,
            Literal::I64(v) => v as u64,
            Literal::F32(v) => v.bits() as u64,
        }
    }

    /// The literal of type `ty` with these register bits; the bits above the type's width are ignored.
    pub fn from_bits(ty: Type, bits: u64) -> Literal {
        match ty {
            Type::Bool => Literal::Bool(bits & 1 != 0),
            Type::U32 => Literal::U32(bits as u32),
            Type::I32 => Literal::I32(bits as u32 as i32),
            Type::U64 => Literal::U64(bits),
            Type::I64 => Literal::I64(bits as i64),
            Type::F32 => Literal::F32(F32::from_bits(bits as u32)),
        }
    }
}

/// The bits of an `f32` constant. Equality and hash are those of the bits, NaN is always `0x7fc00000`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct F32(u32);

impl F32 {
    /// The constant with these bits; a NaN becomes the canonical one.
    pub const fn from_bits(bits: u32) -> F32 {
        F32(crate::arith::canonical_f32(bits))
    }

    /// The bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The number.
    pub const fn value(self) -> f32 {
        f32::from_bits(self.0)
    }
}

/// An operand: a shared expression. Cloning it is cheap, and dropping it needs no stack, however deep it is.
#[derive(Clone)]
pub struct Operand(Option<Arc<Expr>>);

impl Operand {
    /// The expression itself, without copying it where this is the only owner.
    pub fn into_expr(mut self) -> Expr {
        match self.0.take() {
            Some(shared) => Arc::unwrap_or_clone(shared),
            None => unreachable!("an operand is empty only while it is dropped"),
        }
    }
}

impl Deref for Operand {
    type Target = Expr;
    fn deref(&self) -> &Expr {
        match &self.0 {
            Some(expr) => expr,
            None => unreachable!("an operand is empty only while it is dropped"),
        }
    }
}

impl From<Expr> for Operand {
    fn from(expr: Expr) -> Operand {
        Operand(Some(Arc::new(expr)))
    }
}

impl Drop for Operand {
    fn drop(&mut self) {
        let mut pending = Vec::new();
        let mut next = self.0.take();
        while let Some(shared) = next {
            if let Some(mut expr) = Arc::into_inner(shared) {
                expr.for_each_operand_mut(&mut |operand| pending.extend(operand.0.take()));
            }
            next = pending.pop();
        }
    }
}

/// An expression. Operands evaluate left to right and always all of them.
#[derive(Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// The value of a variable, loop variable or parameter.
    Var(Name),
    /// The element at `index`; 0 outside the buffer.
    Load {
        /// The buffer.
        buffer: Name,
        /// A `u32`.
        index: Operand,
    },
    /// The element count of a buffer.
    BufLen {
        /// The buffer.
        buffer: Name,
    },
    /// `global_id`: workgroup id times workgroup size plus local id.
    InvocationId {
        /// The axis.
        axis: Axis,
    },
    /// `workgroup_id`.
    WorkgroupId {
        /// The axis.
        axis: Axis,
    },
    /// `local_id`.
    LocalId {
        /// The axis.
        axis: Axis,
    },
    /// `num_workgroups`.
    NumWorkgroups {
        /// The axis.
        axis: Axis,
    },
    /// `subgroup_lane`: the linear local index modulo the subgroup size.
    SubgroupLocalId,
    /// `subgroup_size`: what the program declares.
    SubgroupSize,
    /// A binary operator on two operands of one type.
    BinOp {
        /// The operator.
        op: BinOp,
        /// Evaluated first.
        left: Operand,
        /// Evaluated second.
        right: Operand,
    },
    /// A unary operator.
    UnOp {
        /// The operator.
        op: UnOp,
        /// Its operand.
        operand: Operand,
    },
    /// `if_true` where `cond` holds, else `if_false`; all three are evaluated.
    Select {
        /// A `bool`.
        cond: Operand,
        /// The value where it holds.
        if_true: Operand,
        /// The value where it does not.
        if_false: Operand,
    },
    /// Conversion between value types.
    Cast {
        /// The type of the result.
        to: Type,
        /// What is converted.
        value: Operand,
    },
    /// The same bits as another type of the same width; a NaN of an `f32` becomes the canonical one.
    Bitcast {
        /// The type of the result.
        to: Type,
        /// What is reinterpreted.
        value: Operand,
    },
    /// `a * b + c` with one rounding.
    Fma {
        /// First factor.
        a: Operand,
        /// Second factor.
        b: Operand,
        /// Addend.
        c: Operand,
    },
    /// An atomic on one element. It acts after its last operand; outside the buffer it gives 0 and changes nothing.
    Atomic {
        /// What it does.
        op: AtomicOp,
        /// The buffer.
        buffer: Name,
        /// A `u32`.
        index: Operand,
        /// The expected value of a compare-exchange, and of nothing else.
        expected: Option<Operand>,
        /// The value; absent for a load only.
        value: Option<Operand>,
        /// The ordering.
        ordering: MemoryOrdering,
    },
    /// A barrier of `scope`, one load that every invocation receives, and a barrier. It happens before the rest
    /// of its statement.
    UniformLoad {
        /// Who waits and receives.
        scope: Scope,
        /// The buffer.
        buffer: Name,
        /// A `u32`, uniform for the scope.
        index: Operand,
    },
    /// One bit per lane of the subgroup; a `u64` when the subgroup size is 64, else a `u32`.
    SubgroupBallot {
        /// A `bool`.
        cond: Operand,
    },
    /// The value of another lane of the subgroup; zero where that lane is absent.
    SubgroupShuffle {
        /// Any type.
        value: Operand,
        /// A `u32`.
        lane: Operand,
    },
    /// The values of all lanes of the subgroup combined.
    SubgroupReduce {
        /// How they are combined.
        op: SubgroupOp,
        /// An integer.
        value: Operand,
    },
    /// A call of a function of the program.
    Call {
        /// The function.
        function: Name,
        /// Its arguments.
        args: Vec<Operand>,
    },
}

impl PartialEq for Operand {
    /// Compares encodings, so that comparing needs no stack, however deep the expressions are.
    fn eq(&self, other: &Operand) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => true,
            _ => crate::wire::expr_bytes(self) == crate::wire::expr_bytes(other),
        }
    }
}

/// Expands to the body of a visitor over the operands of an expression, in evaluation order.
macro_rules! visit_operands {
    ($expr:expr, $visit:ident) => {
        match $expr {
            Expr::Literal(_)
            | Expr::Var(_)
            | Expr::BufLen { .. }
            | Expr::InvocationId { .. }
            | Expr::WorkgroupId { .. }
            | Expr::LocalId { .. }
            | Expr::NumWorkgroups { .. }
            | Expr::SubgroupLocalId
            | Expr::SubgroupSize => {}
            Expr::Load { index, .. } | Expr::UniformLoad { index, .. } => $visit(index),
            Expr::UnOp { operand, .. } => $visit(operand),
            Expr::Cast { value, .. } | Expr::Bitcast { value, .. } | Expr::SubgroupReduce { value, .. } => {
                $visit(value)
            }
            Expr::SubgroupBallot { cond } => $visit(cond),
            Expr::BinOp { left, right, .. } => {
                $visit(left);
                $visit(right);
            }
            Expr::SubgroupShuffle { value, lane } => {
                $visit(value);
                $visit(lane);
            }
            Expr::Select { cond, if_true, if_false } => {
                $visit(cond);
                $visit(if_true);
                $visit(if_false);
            }
            Expr::Fma { a, b, c } => {
                $visit(a);
                $visit(b);
                $visit(c);
            }
            Expr::Atomic { index, expected, value, .. } => {
                $visit(index);
                if let Some(expected) = expected {
                    $visit(expected);
                }
                if let Some(value) = value {
                    $visit(value);
                }
            }
            Expr::Call { args, .. } => {
                for arg in args {
                    $visit(arg);
                }
            }
        }
    };
}

impl Expr {
    /// Visits the operands in evaluation order.
    pub fn for_each_operand<'a>(&'a self, visit: &mut dyn FnMut(&'a Operand)) {
        visit_operands!(self, visit)
    }

    fn for_each_operand_mut(&mut self, visit: &mut dyn FnMut(&mut Operand)) {
        visit_operands!(self, visit)
    }

    /// Visits the expression and everything in it, without recursion, in no particular order.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        let mut pending = vec![self];
        while let Some(expr) = pending.pop() {
            visit(expr);
            expr.for_each_operand(&mut |operand| pending.push(operand));
        }
    }

    /// Whether the test holds for the expression or anything in it.
    pub fn any(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |expr| found = found || test(expr));
        found
    }

    /// The same expression with each operand replaced by what `replace` makes of it.
    pub fn map_operands(mut self, replace: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        self.for_each_operand_mut(&mut |operand| {
            let taken = Operand(operand.0.take()).into_expr();
            operand.0 = Some(Arc::new(replace(taken)));
        });
        self
    }

    /// The buffer it names, if any.
    pub fn buffer(&self) -> Option<&Name> {
        match self {
            Expr::Load { buffer, .. }
            | Expr::BufLen { buffer }
            | Expr::Atomic { buffer, .. }
            | Expr::UniformLoad { buffer, .. } => Some(buffer),
            _ => None,
        }
    }
}

/// Constructors. Names and operands convert by themselves.
impl Expr {
    /// A `bool` constant.
    pub fn bool(value: bool) -> Expr {
        Expr::Literal(Literal::Bool(value))
    }

    /// A `u32` constant.
    pub fn u32(value: u32) -> Expr {
        Expr::Literal(Literal::U32(value))
    }

    /// An `i32` constant.
    pub fn i32(value: i32) -> Expr {
        Expr::Literal(Literal::I32(value))
    }

    /// A `u64` constant.
    pub fn u64(value: u64) -> Expr {
        Expr::Literal(Literal::U64(value))
    }

    /// An `i64` constant.
    pub fn i64(value: i64) -> Expr {
        Expr::Literal(Literal::I64(value))
    }

    /// An `f32` constant; a NaN becomes the canonical one.
    pub fn f32(value: f32) -> Expr {
        Expr::Literal(Literal::F32(F32::from_bits(value.to_bits())))
    }

    /// The value of a variable.
    pub fn var(name: impl Into<Name>) -> Expr {
        Expr::Var(name.into())
    }

    /// A load.
    pub fn load(buffer: impl Into<Name>, index: Expr) -> Expr {
        Expr::Load { buffer: buffer.into(), index: index.into() }
    }

    /// The element count of a buffer.
    pub fn buf_len(buffer: impl Into<Name>) -> Expr {
        Expr::BufLen { buffer: buffer.into() }
    }

    /// `global_id` on an axis.
    pub fn invocation_id(axis: Axis) -> Expr {
        Expr::InvocationId { axis }
    }

    /// `workgroup_id` on an axis.
    pub fn workgroup_id(axis: Axis) -> Expr {
        Expr::WorkgroupId { axis }
    }

    /// `local_id` on an axis.
    pub fn local_id(axis: Axis) -> Expr {
        Expr::LocalId { axis }
    }

    /// `num_workgroups` on an axis.
    pub fn num_workgroups(axis: Axis) -> Expr {
        Expr::NumWorkgroups { axis }
    }

    /// A binary operator.
    pub fn binary(op: BinOp, left: Expr, right: Expr) -> Expr {
        Expr::BinOp { op, left: left.into(), right: right.into() }
    }

    /// A unary operator.
    pub fn unary(op: UnOp, operand: Expr) -> Expr {
        Expr::UnOp { op, operand: operand.into() }
    }

    /// `select(cond, if_true, if_false)`.
    pub fn select(cond: Expr, if_true: Expr, if_false: Expr) -> Expr {
        Expr::Select { cond: cond.into(), if_true: if_true.into(), if_false: if_false.into() }
    }

    /// A conversion to `to`.
    pub fn cast(to: Type, value: Expr) -> Expr {
        Expr::Cast { to, value: value.into() }
    }

    /// The bits of `value` as `to`.
    pub fn bitcast(to: Type, value: Expr) -> Expr {
        Expr::Bitcast { to, value: value.into() }
    }

    /// `fma(a, b, c)`.
    pub fn fma(a: Expr, b: Expr, c: Expr) -> Expr {
        Expr::Fma { a: a.into(), b: b.into(), c: c.into() }
    }

    /// `clamp(x, lo, hi)`, which is `min(max(x, lo), hi)`.
    pub fn clamp(x: Expr, lo: Expr, hi: Expr) -> Expr {
        Expr::min(Expr::max(x, lo), hi)
    }

    /// A relaxed atomic with one value: each operation but `Load` and `CompareExchange`.
    pub fn atomic(op: AtomicOp, buffer: impl Into<Name>, index: Expr, value: Expr) -> Expr {
        Expr::Atomic {
            op,
            buffer: buffer.into(),
            index: index.into(),
            expected: None,
            value: Some(value.into()),
            ordering: MemoryOrdering::Relaxed,
        }
    }

    /// A relaxed atomic load.
    pub fn atomic_load(buffer: impl Into<Name>, index: Expr) -> Expr {
        Expr::Atomic {
            op: AtomicOp::Load,
            buffer: buffer.into(),
            index: index.into(),
            expected: None,
            value: None,
            ordering: MemoryOrdering::Relaxed,
        }
    }

    /// A relaxed compare-exchange.
    pub fn atomic_compare_exchange(buffer: impl Into<Name>, index: Expr, expected: Expr, new: Expr) -> Expr {
        Expr::Atomic {
            op: AtomicOp::CompareExchange,
            buffer: buffer.into(),
            index: index.into(),
            expected: Some(expected.into()),
            value: Some(new.into()),
            ordering: MemoryOrdering::Relaxed,
        }
    }

    /// The same atomic with another ordering; any other expression as it is.
    pub fn with_ordering(mut self, new: MemoryOrdering) -> Expr {
        if let Expr::Atomic { ordering, .. } = &mut self {
            *ordering = new;
        }
        self
    }

    /// `uniform_load(scope, buffer[index])`.
    pub fn uniform_load(scope: Scope, buffer: impl Into<Name>, index: Expr) -> Expr {
        Expr::UniformLoad { scope, buffer: buffer.into(), index: index.into() }
    }

    /// `subgroup_ballot(cond)`.
    pub fn subgroup_ballot(cond: Expr) -> Expr {
        Expr::SubgroupBallot { cond: cond.into() }
    }

    /// `subgroup_shuffle(value, lane)`.
    pub fn subgroup_shuffle(value: Expr, lane: Expr) -> Expr {
        Expr::SubgroupShuffle { value: value.into(), lane: lane.into() }
    }

    /// A reduction over the subgroup.
    pub fn subgroup_reduce(op: SubgroupOp, value: Expr) -> Expr {
        Expr::SubgroupReduce { op, value: value.into() }
    }

    /// A call of a function of the program.
    pub fn call(function: impl Into<Name>, args: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::Call { function: function.into(), args: args.into_iter().map(Operand::from).collect() }
    }
}

/// One constructor per operator.
macro_rules! operator_constructors {
    ($($name:ident => $op:ident),* $(,)?; $($uname:ident => $uop:ident),* $(,)?) => {
        /// Constructors of the operators.
        #[allow(clippy::should_implement_trait)] // `Expr::add(a, b)` builds a node; it does not add.
        impl Expr {
            $(
                #[doc = concat!("[`BinOp::", stringify!($op), "`] of two expressions.")]
                pub fn $name(left: Expr, right: Expr) -> Expr {
                    Expr::binary(BinOp::$op, left, right)
                }
            )*
            $(
                #[doc = concat!("[`UnOp::", stringify!($uop), "`] of an expression.")]
                pub fn $uname(operand: Expr) -> Expr {
                    Expr::unary(UnOp::$uop, operand)
                }
            )*
        }
    };
}

operator_constructors! {
    add => Add, sub => Sub, mul => Mul, div => Div, rem => Rem,
    bit_and => BitAnd, bit_or => BitOr, bit_xor => BitXor,
    shl => Shl, shr => Shr, rotl => RotL, rotr => RotR,
    eq => Eq, ne => Ne, lt => Lt, le => Le, gt => Gt, ge => Ge,
    and => And, or => Or, min => Min, max => Max,
    abs_diff => AbsDiff, sat_add => SatAdd, sat_sub => SatSub, mul_hi => MulHi;
    neg => Neg, not => Not, bit_not => BitNot, abs => Abs, popcount => Popcount, clz => Clz, ctz => Ctz,
    reverse_bits => ReverseBits, sqrt => Sqrt, inverse_sqrt => InverseSqrt, floor => Floor, ceil => Ceil,
    trunc => Trunc, round => Round, is_nan => IsNan, is_inf => IsInf,
}
