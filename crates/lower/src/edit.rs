//! Kernels made of rows and items rather than of a program: for whoever cuts a kernel up or puts one together.

use crate::build::Builder;
use crate::finish;
use crate::kernel::{Item, ItemId, Kernel, Origin, RegionId, Value, ValueId};
use vyre_foundation::{BufferDecl, Name, Type, WorkgroupSize};

/// Puts a kernel together, item by item. Equal pure rows are one row, whatever nothing uses is dropped at the end,
/// and rows and items get their canonical numbers then.
///
/// Whoever uses it keeps what a kernel promises: operands exist where they are used, and types fit.
///
/// ```
/// use vyre_foundation::{BufferDecl, Element, Literal};
/// use vyre_lower::{Item, KernelBuilder, Value, raise};
///
/// let mut builder = KernelBuilder::new();
/// let index = builder.value(Value::Const(Literal::U32(0)));
/// let value = builder.value(Value::Const(Literal::U32(7)));
/// builder.item(KernelBuilder::ENTRY, Item::Store { buffer: 0, index, value }, 0);
/// let buffers = vec![BufferDecl::output("o", Element::U32).with_count(1)];
/// let kernel = builder.finish("seven".into(), 1.into(), 32, buffers, &[]);
/// assert!(raise(&kernel).to_string().contains("o[0] = 7;"));
/// ```
pub struct KernelBuilder {
    builder: Builder,
}

impl Default for KernelBuilder {
    fn default() -> KernelBuilder {
        KernelBuilder::new()
    }
}

impl KernelBuilder {
    /// The entry region.
    pub const ENTRY: RegionId = Builder::ROOT;

    /// A kernel without items.
    pub fn new() -> KernelBuilder {
        KernelBuilder { builder: Builder::new() }
    }

    /// A new region inside another one. It belongs to the next `If` or `Loop` that names it.
    pub fn region(&mut self, parent: RegionId) -> RegionId {
        self.builder.region(parent)
    }

    /// The row of a pure value.
    pub fn value(&mut self, value: Value) -> ValueId {
        self.builder.value(value)
    }

    /// What a row is.
    pub fn get(&self, row: ValueId) -> Value {
        self.builder.get(row)
    }

    /// Puts an item at the end of a region. It came from the origin of this number; 0 is none.
    pub fn item(&mut self, region: RegionId, item: Item, origin: u32) -> ItemId {
        self.builder.item(region, item, origin)
    }

    /// Says what an item is that was put in its place before that was known.
    pub fn replace(&mut self, id: ItemId, item: Item) {
        self.builder.items[id.index()] = item;
    }

    /// The row of a parameter of a loop, in its body.
    pub fn param(&mut self, item: ItemId, index: u32, ty: Type, body: RegionId) -> ValueId {
        self.leaf(Value::Param { item, index, ty }, body)
    }

    /// The row of a result of an item, in the region where the item stands.
    pub fn out(&mut self, item: ItemId, index: u32, ty: Type, region: RegionId) -> ValueId {
        self.leaf(Value::Out { item, index, ty }, region)
    }

    fn leaf(&mut self, value: Value, region: RegionId) -> ValueId {
        self.builder.find(&value).unwrap_or_else(|| self.builder.row(value, region))
    }

    /// The kernel.
    pub fn finish(
        mut self,
        name: Name,
        workgroup_size: WorkgroupSize,
        subgroup_size: u32,
        buffers: Vec<BufferDecl>,
        origins: &[Origin],
    ) -> Kernel {
        let parts = finish::finish(&mut self.builder, origins, &[], &buffers);
        Kernel {
            name,
            workgroup_size,
            subgroup_size,
            buffers,
            tags: parts.tags,
            origins: parts.origins,
            values: parts.values,
            items: parts.items,
            regions: parts.regions,
            pool: parts.pool,
        }
    }
}
