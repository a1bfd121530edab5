//! Rows to optimise: in layers, all of them needed in the end.

use vyre_foundation::{Axis, BinOp, BufferDecl, Element, Literal, Type, rng::SplitMix64};
use vyre_lower::{Id, Item, Kernel, KernelBuilder, Value, ValueId};

/// The second operand of a row.
#[derive(Clone, Copy)]
pub(super) enum Far {
    /// A row of the layer before.
    Row(usize),
    Number(u32),
}

/// One row. The first operand is the row at the same place in the layer before, so all rows are needed in the end.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) op: BinOp,
    pub(super) near: usize,
    pub(super) far: Far,
}

/// The largest number that rows are made with.
pub(super) const NUMBERS: u32 = 8;

/// Rows in layers over a first layer of loads.
pub(super) struct Rows {
    /// How many rows a layer has.
    pub(super) width: usize,
    /// The rows after the first layer. Operands are numbered from the first layer on.
    pub(super) rows: Vec<Row>,
}

impl Rows {
    /// So many rows in so many layers.
    pub(super) fn new(count: usize, layers: usize) -> Rows {
        let mut rng = SplitMix64::new((count + layers) as u64);
        let width = (count / layers).max(1);
        let mut rows = Vec::new();
        for near in 0..count - width {
            let before = near / width * width;
            let op = *rng.pick(&[BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::BitXor]);
            let far = if rng.chance(1, 2) {
                Far::Number(1 + rng.below(u64::from(NUMBERS)) as u32)
            } else {
                Far::Row(before + rng.below(width as u64) as usize)
            };
            rows.push(Row { op, near, far });
        }
        Rows { width, rows }
    }

    /// A kernel of these rows, whose last layer is stored.
    pub(super) fn kernel(&self) -> Kernel {
        let mut builder = KernelBuilder::new();
        let place = builder.value(Value::Id(Id::Invocation, Axis::X));
        let mut rows: Vec<ValueId> = Vec::new();
        for k in 0..self.width as u32 {
            let index = builder.value(Value::Const(Literal::U32(k)));
            rows.push(builder.value(Value::Load { buffer: 0, index, ty: Type::U32 }));
        }
        for Row { op, near, far } in &self.rows {
            let b = match far {
                Far::Row(far) => rows[*far],
                Far::Number(number) => builder.value(Value::Const(Literal::U32(*number))),
            };
            rows.push(builder.value(Value::Binary { op: *op, ty: Type::U32, a: rows[*near], b }));
        }
        for value in rows.split_off(self.rows.len()) {
            builder.item(KernelBuilder::ENTRY, Item::Store { buffer: 1, index: place, value }, 0);
        }
        let buffers = vec![BufferDecl::read("x", Element::U32), BufferDecl::output("o", Element::U32)];
        builder.finish("rows".into(), 1.into(), 32, buffers, &[])
    }
}
