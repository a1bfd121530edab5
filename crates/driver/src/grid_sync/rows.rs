//! Rows that segments are made of besides those of the kernel: which invocation this is, and values as words.

use vyre_foundation::{Axis, BinOp, Literal, Type, WorkgroupSize};
use vyre_lower::{Id, KernelBuilder, Value, ValueId};

/// Makes rows of a segment.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) builder: KernelBuilder,
}

impl Rows {
    pub(super) fn u32(&mut self, number: u32) -> ValueId {
        self.builder.value(Value::Const(Literal::U32(number)))
    }

    fn ty(&self, row: ValueId) -> Type {
        self.builder.get(row).ty()
    }

    pub(super) fn binary(&mut self, op: BinOp, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.builder.value(Value::Binary { op, ty, a, b })
    }

    pub(super) fn select(&mut self, cond: ValueId, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.builder.value(Value::Select { ty, cond, a, b })
    }

    pub(super) fn cast(&mut self, a: ValueId, to: Type) -> ValueId {
        let from = self.ty(a);
        self.builder.value(Value::Cast { from, to, a })
    }

    fn bitcast(&mut self, a: ValueId, to: Type) -> ValueId {
        let from = self.ty(a);
        if from == to { a } else { self.builder.value(Value::Bitcast { from, to, a }) }
    }

    fn id(&mut self, id: Id, axis: Axis) -> ValueId {
        self.builder.value(Value::Id(id, axis))
    }

    /// `a + b * by`, as it stands in a sum over axes.
    fn step(&mut self, a: ValueId, b: ValueId, by: ValueId) -> ValueId {
        let product = self.binary(BinOp::Mul, b, by);
        self.binary(BinOp::Add, a, product)
    }

    /// The linear number of the lane in its workgroup.
    pub(super) fn lane(&mut self, size: WorkgroupSize) -> ValueId {
        let [x, y, z] = size.size();
        let mut lane = self.id(Id::Local, Axis::X);
        for (count, before, axis) in [(y, x, Axis::Y), (z, x * y, Axis::Z)] {
            if count > 1 {
                let (id, before) = (self.id(Id::Local, axis), self.u32(before));
                lane = self.step(lane, id, before);
            }
        }
        lane
    }

    /// The linear number of the workgroup.
    pub(super) fn workgroup(&mut self) -> ValueId {
        let [x, y, z] = Axis::ALL.map(|axis| self.id(Id::Workgroup, axis));
        let [columns, rows] = [Axis::X, Axis::Y].map(|axis| self.id(Id::NumWorkgroups, axis));
        let row = self.step(y, z, rows);
        self.step(x, row, columns)
    }

    /// The linear number of the invocation.
    pub(super) fn invocation(&mut self, size: WorkgroupSize) -> ValueId {
        let (lane, workgroup) = (self.lane(size), self.workgroup());
        let lanes = self.u32(size.invocations() as u32);
        self.step(lane, workgroup, lanes)
    }

    /// How many invocations there are.
    pub(super) fn invocations(&mut self, size: WorkgroupSize) -> ValueId {
        let lanes = self.u32(size.invocations() as u32);
        Axis::ALL.into_iter().fold(lanes, |product, axis| {
            let count = self.id(Id::NumWorkgroups, axis);
            self.binary(BinOp::Mul, product, count)
        })
    }

    /// The words of a value, the lower one first.
    pub(super) fn split(&mut self, value: ValueId) -> Vec<ValueId> {
        match self.ty(value) {
            Type::Bool => vec![self.cast(value, Type::U32)],
            Type::U64 | Type::I64 => {
                let value = self.bitcast(value, Type::U64);
                let by = self.builder.value(Value::Const(Literal::U64(32)));
                let upper = self.binary(BinOp::Shr, value, by);
                vec![self.cast(value, Type::U32), self.cast(upper, Type::U32)]
            }
            _ => vec![self.bitcast(value, Type::U32)],
        }
    }

    /// A value from its words. A `bool` stays a word.
    pub(super) fn join(&mut self, words: &[ValueId], ty: Type) -> ValueId {
        match (words, ty) {
            ([lower, upper], _) => {
                let [lower, upper] = [*lower, *upper].map(|word| self.cast(word, Type::U64));
                let by = self.builder.value(Value::Const(Literal::U64(32)));
                let upper = self.binary(BinOp::Shl, upper, by);
                let whole = self.binary(BinOp::BitOr, lower, upper);
                self.bitcast(whole, ty)
            }
            ([word, ..], Type::Bool) => *word,
            ([word, ..], _) => self.bitcast(*word, ty),
            ([], _) => self.u32(0),
        }
    }
}
