//! Straight runs for four lanes at once.
//!
//! A run without control whose accesses need no check goes over vectors of four lanes that stand side by side on x. What
//! a row is in such a vector follows from its stride (see [`Kernel::stride`](vyre_lower::Kernel::stride)):
//!
//! | stride | form |
//! |---|---|
//! | 0 | one value for all four, computed as lane code computes it and splatted where a vector needs it |
//! | known | computed for the first lane, as addresses are; where a vector needs it: splatted, plus multiples of the stride |
//! | none | a vector: loaded side by side, or made by an operator of vectors |
//!
//! Four lanes do each statement together before the next one. Lanes that communicate within a run race, and a lane still
//! sees what it stored itself.
//!
//! **A vector is one access where the index has stride 1 and is proven to be inside for every lane.** Strides wrap, but
//! these four indices do not: one of them would have to be the largest `u32` and its neighbour 0, and the largest `u32`
//! is inside no buffer, because lengths are `u32` too. So four elements follow each other in memory and all of them are
//! in the buffer.

use super::bounds::Access;
use super::lanes::Lane;
use super::ops::is_shift;
use super::slots::{Key, Slot, width};
use super::{Emitter, Keep, Span, clif_type, key_of};
use crate::shape::Level;
use cranelift_codegen::ir::types::{I32, I32X4};
use cranelift_codegen::ir::{self, ConstantData, InstBuilder, MemFlagsData};
use vyre_foundation::{BinOp, BufferAccess, Element, Type, UnOp};
use vyre_lower::{Item, ItemId, RegionId, Value, ValueId};

/// The lanes of a vector.
pub(super) const LANES: u32 = 4;

/// How many vectors a round of the loop does, by the most rows and items that the run has: short ones leave time between
/// operations that depend on each other, long ones cost time to compile.
const ROUNDS: [(usize, u32); 3] = [(16, 4), (64, 2), (500, 1)];

/// Which runs there are vectors for.
impl Emitter<'_, '_> {
    /// How many vectors a round of a run does; `None` where it goes over single lanes.
    pub(super) fn vectors_a_round(&self, span: Span, keeps: &[Keep]) -> Option<u32> {
        let shape = self.shape;
        if !self.target.vectors || shape.is_large {
            return None;
        }
        let rows = span.positions().flat_map(|position| shape.rows_at(span.region, position));
        let rows: Vec<ValueId> =
            rows.map(|(_, row)| *row).filter(|row| shape.defined[row.index()] == Level::Lane).collect();
        let mut items = (span.start..span.end).map(|position| shape.kernel.item_at(span.region, position));
        let size = rows.len() + items.len();
        let (_, vectors) = ROUNDS.into_iter().find(|(most, _)| size <= *most)?;
        let row_is_vector = |row: &ValueId| {
            let is_kept = self.slots.find(Key::Row(*row)).is_some();
            self.has_vector(*row) && (!is_kept || self.slot_has_vector(*row))
        };
        let keep_is_vector = |keep: &Keep| {
            self.operand_has_vector(keep.value) && self.elements_make_vectors(keep.key, keep.ty)
        };
        let is_vector = rows.iter().filter(|row| !shape.cheap[row.index()]).all(row_is_vector)
            && items.all(|id| self.item_has_vector(id))
            && keeps.iter().filter(|keep| keep.level == Level::Lane).all(keep_is_vector);
        is_vector.then_some(vectors)
    }

    fn item_has_vector(&self, id: ItemId) -> bool {
        match self.shape.kernel.item(id) {
            Item::Load { buffer, index, .. } => {
                let result = self.shape.result(id, 0);
                self.buffer_has_vector(buffer)
                    && (self.is_same(index) || self.is_side_by_side(Access::Item(id), index))
                    && result.is_none_or(|row| self.slot_has_vector(row))
            }
            Item::Store { buffer, index, value } => {
                self.buffer_has_vector(buffer)
                    && self.is_side_by_side(Access::Item(id), index)
                    && self.operand_has_vector(value)
            }
            _ => false,
        }
    }

    /// Whether there is a way to compute a row of lane code for a vector of lanes here.
    fn has_vector(&self, row: ValueId) -> bool {
        let kernel = self.shape.kernel;
        let value = kernel.value(row);
        let is_word = |ty: Type| width(ty) == 4;
        let has_form = match value {
            // Each lane has its own `local` memory, whatever is in it.
            Value::Load { buffer, .. } if kernel.buffers[buffer as usize].access() == BufferAccess::Local => {
                false
            }
            _ if self.is_same(row) => return true,
            _ if !is_word(value.ty()) => false,
            _ if kernel.stride(row).is_some() => return true,
            Value::Load { buffer, index, .. } => {
                self.buffer_has_vector(buffer) && self.is_side_by_side(Access::Row(row), index)
            }
            Value::Binary { op, ty, b, .. } => match op {
                BinOp::Div => ty == Type::F32,
                BinOp::Rem | BinOp::MulHi => false,
                _ => is_word(ty) && (!is_shift(op) || self.is_same(b)),
            },
            Value::Unary { op, ty, .. } => match op {
                UnOp::Popcount | UnOp::Clz | UnOp::Ctz | UnOp::ReverseBits => false,
                UnOp::Floor | UnOp::Ceil | UnOp::Trunc | UnOp::Round => self.target.round,
                _ => is_word(ty),
            },
            Value::Cast { from, .. } | Value::Bitcast { from, .. } => is_word(from),
            Value::Fma { .. } => self.target.fma,
            _ => true,
        };
        has_form && value.operands().all(|operand| self.operand_has_vector(operand))
    }

    /// Whether a row is known as a vector where it is used: computed again, or read from its slot. What is computed in
    /// this run is looked at by itself. Rows that are computed again are made of few others.
    fn operand_has_vector(&self, row: ValueId) -> bool {
        if self.shape.cheap[row.index()] {
            return self.has_vector(row);
        }
        self.is_same(row) || self.slot_has_vector(row)
    }

    fn slot_has_vector(&self, row: ValueId) -> bool {
        let value = self.shape.kernel.value(row);
        self.elements_make_vectors(key_of(row, value), value.ty())
    }

    /// Whether the elements of a slot make vectors, or would if there were one.
    fn elements_make_vectors(&self, key: Key, ty: Type) -> bool {
        width(ty) == 4 && self.slots.find(key).is_none_or(|slot| slot.per_lane)
    }

    fn buffer_has_vector(&self, buffer: u32) -> bool {
        let buffer = &self.shape.kernel.buffers[buffer as usize];
        buffer.element().size() == 4 && buffer.access() != BufferAccess::Local
    }

    fn is_side_by_side(&self, access: Access, index: ValueId) -> bool {
        self.proven.contains(&access) && self.shape.kernel.stride(index) == Some(1)
    }

    /// Whether a row is the same in all lanes of a vector.
    fn is_same(&self, row: ValueId) -> bool {
        self.shape.defined[row.index()] < Level::Lane || self.shape.kernel.stride(row) == Some(0)
    }
}

/// The code of such runs.
impl Emitter<'_, '_> {
    /// What a run does for the vector of lanes that begins with this one.
    pub(super) fn one_vector(&mut self, first: Lane, span: Span, keeps: &[Keep]) {
        let mark = self.log.len();
        self.lane = Some(first);
        for position in span.positions() {
            self.vector_rows(span.region, position);
            if position < span.end {
                let item = self.shape.kernel.item_at(span.region, position);
                self.vector_effect(item);
            }
        }
        self.keep(keeps, Level::Lane, Self::vector);
        self.lane = None;
        self.forget(mark);
        self.vectors.clear();
    }

    fn vector_rows(&mut self, region: RegionId, position: u32) {
        let shape = self.shape;
        for (_, row) in shape.rows_at(region, position) {
            if shape.defined[row.index()] < Level::Lane || shape.cheap[row.index()] {
                continue;
            }
            if shape.kernel.stride(*row).is_none() {
                let value = self.compute_vector(*row);
                self.define(*row, value);
                continue;
            }
            let first = self.compute(*row, Self::get);
            self.know(*row, first);
            self.defined_in[row.index()] = self.segment;
            // Only whoever reads it from a slot needs it as a vector for sure.
            if self.slots.find(Key::Row(*row)).is_some() {
                let value = self.vector(*row);
                self.define(*row, value);
            }
        }
    }

    fn vector_effect(&mut self, id: ItemId) {
        let access = Access::Item(id);
        match self.shape.kernel.item(id) {
            Item::Store { buffer, index, value } => {
                let value = self.vector(value);
                let flags = self.flags_of(buffer, access);
                let (address, _) = self.address(access, buffer, index);
                if self.shape.kernel.buffers[buffer as usize].element() == Element::F32 {
                    self.store_f32(flags, address, value);
                } else {
                    self.b.ins().store(flags, value, address, 0);
                }
            }
            Item::Load { buffer, index, .. } => {
                let ty = self.shape.kernel.buffers[buffer as usize].element().value_type();
                let value = if self.is_same(index) {
                    let one = self.load(access, buffer, index);
                    self.splat(ty, one)
                } else {
                    self.load_vector(access, buffer, index)
                };
                if let Some(row) = self.shape.result(id, 0) {
                    self.define(row, value);
                }
            }
            _ => {}
        }
    }

    /// A row's value for the vector at hand.
    fn vector(&mut self, row: ValueId) -> ir::Value {
        if let Some(value) = self.vectors.get(&row) {
            return *value;
        }
        let ty = self.shape.kernel.value(row).ty();
        let value = match self.shape.kernel.stride(row) {
            _ if self.is_same(row) => {
                let one = self.get(row);
                self.splat(ty, one)
            }
            Some(stride) => {
                let first = self.get(row);
                let first = self.splat(ty, first);
                let steps = self.multiples(stride);
                self.b.ins().iadd(first, steps)
            }
            None if self.shape.cheap[row.index()] => self.compute_vector(row),
            None => {
                let slot = self.slot_elsewhere(row);
                self.read_vector(slot)
            }
        };
        self.know(row, value);
        value
    }

    fn compute_vector(&mut self, row: ValueId) -> ir::Value {
        match self.shape.kernel.value(row) {
            Value::Load { buffer, index, .. } => self.load_vector(Access::Row(row), buffer, index),
            Value::SubgroupLane => {
                let lane = self.lane_index();
                let lane = self.b.ins().ireduce(I32, lane);
                let (first, steps) = (self.splat(Type::U32, lane), self.multiples(1));
                let lanes = self.b.ins().iadd(first, steps);
                let most = self.number_like(lanes, i64::from(self.shape.kernel.subgroup_size - 1));
                self.b.ins().band(lanes, most)
            }
            _ => self.compute(row, Self::vector),
        }
    }

    /// Loads elements that follow each other, the first one at the index of the first lane.
    fn load_vector(&mut self, access: Access, buffer: u32, index: ValueId) -> ir::Value {
        let ty = self.shape.kernel.buffers[buffer as usize].element().value_type();
        let flags = self.flags_of(buffer, access);
        let (address, _) = self.address(access, buffer, index);
        self.load_lanes(ty, flags, address, 0)
    }

    /// Loads a vector. Before AVX, instructions take operands from aligned addresses only. The compiler heeds that but for
    /// comparisons of floats, so what they compare is loaded as integers, by an instruction of its own.
    fn load_lanes(&mut self, ty: Type, flags: MemFlagsData, address: ir::Value, offset: i32) -> ir::Value {
        if ty == Type::F32 && !self.target.unaligned {
            let bits = self.b.ins().load(I32X4, flags, address, offset);
            return self.as_f32(bits);
        }
        self.b.ins().load(vector_type(ty), flags, address, offset)
    }

    fn read_vector(&mut self, slot: Slot) -> ir::Value {
        let address = self.slot_address(slot);
        let value = self.load_lanes(slot.ty, self.own_flags, address, slot.offset);
        if slot.ty == Type::Bool { self.cast(Type::U32, Type::Bool, value) } else { value }
    }

    /// A value of one lane in all lanes of a vector.
    fn splat(&mut self, ty: Type, value: ir::Value) -> ir::Value {
        let value = if ty == Type::Bool {
            let number = self.b.ins().uextend(I32, value);
            self.b.ins().ineg(number)
        } else {
            value
        };
        self.b.ins().splat(vector_type(ty), value)
    }

    /// 0, 1, 2 and 3 times a number.
    fn multiples(&mut self, stride: i32) -> ir::Value {
        let bytes: Vec<u8> = (0..LANES as i32).flat_map(|k| stride.wrapping_mul(k).to_le_bytes()).collect();
        let constant = self.b.func.dfg.constants.insert(ConstantData::from(bytes.as_slice()));
        self.b.ins().vconst(I32X4, constant)
    }
}

/// How a value stands in a vector; truth values are lanes full of ones or zeros.
fn vector_type(ty: Type) -> ir::Type {
    let lane = if ty == Type::Bool { I32 } else { clif_type(ty) };
    lane.by(LANES).unwrap_or(lane)
}
