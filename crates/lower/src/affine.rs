//! How rows change from one lane to the next.
//!
//! The *stride* of a row is what its value grows by, wrapping, from a lane to the one whose `local_id.x` is one more and
//! whose other ids are the same. It compares two lanes that both compute the row, in the same iteration of every loop
//! around it; lanes in different iterations are not compared. So a parameter of a loop has a stride where its first and
//! its next values have the same, whatever makes lanes leave; the result has one only where all of them leave together.
//! A stride of 0 says that the row is the same for all lanes that stand side by side, whatever its type; others are of
//! integers alone. A row that is not a parameter or a result has a stride only where all its operands have one, so
//! it can be computed for the first of some lanes without knowing anything else about them.
//!
//! The search is optimistic: a row may have any stride until something says which one it has, and two that disagree are
//! none. No row changes its mind more than twice, so the cost is linear in the kernel.

use crate::columns::{NO_STRIDE, Values, op};
use crate::flow::Flow;
use crate::kernel::{Id, Item, Value, ValueId};
use std::cell::LazyCell;
use vyre_foundation::{Axis, BinOp, Type, UnOp};

/// What is known about the stride of a row, from nothing to too much.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stride {
    /// Nothing speaks against any stride yet.
    Any,
    By(i32),
    None,
}

/// The stride of each row, as it stands in its column.
pub(crate) fn strides<F: FnOnce() -> Flow>(
    values: &Values,
    items: &[(Item, u32)],
    flow: &LazyCell<Flow, F>,
) -> Vec<u32> {
    let mut affine = Affine { values, items, strides: vec![Stride::Any; values.len()] };
    let mut pending = Vec::new();
    for row in 0..values.len() as u32 {
        affine.strides[row as usize] = affine.stride(values.get(ValueId(row)));
        // Of what these are made may come later.
        if values.is_slot(row as usize) {
            pending.push(row);
        }
    }
    while let Some(row) = pending.pop() {
        let stride = affine.stride(values.get(ValueId(row)));
        let known = &mut affine.strides[row as usize];
        if stride != *known {
            *known = stride;
            pending.extend_from_slice(flow.users(row));
        }
    }
    let column = |stride: Stride| match stride {
        Stride::By(by) => by as u32,
        Stride::Any | Stride::None => NO_STRIDE,
    };
    affine.strides.into_iter().map(column).collect()
}

struct Affine<'k> {
    values: &'k Values,
    items: &'k [(Item, u32)],
    strides: Vec<Stride>,
}

impl Affine<'_> {
    fn of(&self, row: ValueId) -> Stride {
        self.strides[row.index()]
    }

    /// The stride of a row by what is known of those it is made of.
    fn stride(&self, value: Value) -> Stride {
        match value {
            Value::Id(Id::Invocation | Id::Local, Axis::X) => Stride::By(1),
            Value::Const(_) | Value::Id(..) | Value::Len(_) => Stride::By(0),
            Value::SubgroupLane => Stride::None,
            Value::Binary { op, ty, a, b } if ty.is_integer() => self.binary(op, ty, a, b),
            Value::Unary { op: UnOp::Neg | UnOp::BitNot, ty, a } if ty.is_integer() => {
                scaled(self.of(a), -1, ty)
            }
            Value::Cast { from, to, a } | Value::Bitcast { from, to, a }
                if from.is_integer() && to.is_integer() && to.bits() <= from.bits() =>
            {
                scaled(self.of(a), 1, to)
            }
            Value::Select { cond, a, b, .. } => where_same([cond].map(|row| self.of(row)), self.either(a, b)),
            Value::Param { item, index, .. } => match &self.items[item.index()].0 {
                Item::Loop { first, next, .. } => self.either(first[index as usize], next[index as usize]),
                _ => Stride::None,
            },
            Value::Out { item, index, .. } => self.result(&self.items[item.index()].0, index as usize),
            _ => value.operands().map(|row| same(self.of(row))).fold(Stride::By(0), both),
        }
    }

    fn result(&self, item: &Item, k: usize) -> Stride {
        match item {
            Item::If { cond, yields, .. } => {
                where_same([self.of(*cond)], self.either(yields[k].0, yields[k].1))
            }
            Item::Loop { guard, first, next, again, .. } => {
                where_same([*guard, *again].map(|row| self.of(row)), self.either(first[k], next[k]))
            }
            Item::UniformLoad { .. } => Stride::By(0),
            // What other invocations may write, they may write between the loads of two lanes.
            _ => Stride::None,
        }
    }

    fn binary(&self, op: BinOp, ty: Type, a: ValueId, b: ValueId) -> Stride {
        let (by_a, by_b) = (self.of(a), self.of(b));
        let found = match op {
            BinOp::Add => Some(sum(by_a, by_b, ty)),
            BinOp::Sub => Some(sum(by_a, scaled(by_b, -1, ty), ty)),
            BinOp::Mul => {
                let by_factor =
                    |stride, factor: ValueId| Some(scaled(stride, self.constant(factor)? as i64, ty));
                by_factor(by_a, b).or_else(|| by_factor(by_b, a))
            }
            BinOp::Shl => {
                let power = |count: u64| 1 << (count as u32 & (ty.bits() - 1));
                self.constant(b).map(|count| scaled(by_a, power(count), ty))
            }
            _ => None,
        };
        found.unwrap_or_else(|| both(same(by_a), same(by_b)))
    }

    fn constant(&self, row: ValueId) -> Option<u64> {
        // Looked at first: large kernels have their columns far from each other.
        let is_constant = self.values.kind[row.index()] & 0xff == op::CONST;
        match is_constant.then(|| self.values.get(row)) {
            Some(Value::Const(literal)) => Some(literal.bits()),
            _ => None,
        }
    }

    /// The stride of what is one row or another.
    fn either(&self, a: ValueId, b: ValueId) -> Stride {
        match (self.of(a), self.of(b)) {
            (Stride::Any, other) | (other, Stride::Any) => other,
            (a, b) => both(a, b),
        }
    }
}

/// The stride that two have in common, once both are known.
fn both(a: Stride, b: Stride) -> Stride {
    match (a, b) {
        (Stride::None, _) | (_, Stride::None) => Stride::None,
        (Stride::Any, _) | (_, Stride::Any) => Stride::Any,
        (a, b) => {
            if a == b {
                a
            } else {
                Stride::None
            }
        }
    }
}

/// The stride of what only knows whether its operand is the same in all lanes.
fn same(stride: Stride) -> Stride {
    match stride {
        Stride::By(0) | Stride::Any => stride,
        _ => Stride::None,
    }
}

/// A stride that holds where some conditions are the same in all lanes.
fn where_same<const N: usize>(conds: [Stride; N], then: Stride) -> Stride {
    conds.into_iter().fold(then, |then, cond| match (same(cond), then) {
        (Stride::None, _) | (_, Stride::None) => Stride::None,
        (Stride::Any, _) => Stride::Any,
        (Stride::By(_), then) => then,
    })
}

fn sum(a: Stride, b: Stride, ty: Type) -> Stride {
    match (a, b) {
        (Stride::By(a), Stride::By(b)) => wrapped(i64::from(a) + i64::from(b), ty),
        (Stride::None, _) | (_, Stride::None) => Stride::None,
        _ => Stride::Any,
    }
}

fn scaled(stride: Stride, factor: i64, ty: Type) -> Stride {
    match stride {
        Stride::By(by) => wrapped(i64::from(by).wrapping_mul(factor), ty),
        other => other,
    }
}

/// A stride of a row of integers, which wraps as they do, if it fits its column.
fn wrapped(by: i64, ty: Type) -> Stride {
    let by = if ty.bits() == 32 { i64::from(by as i32) } else { by };
    match i32::try_from(by) {
        Ok(by) if by as u32 != NO_STRIDE => Stride::By(by),
        _ => Stride::None,
    }
}
