//! Loads, stores and atomics, with their bounds checks, and slots.
//!
//! A load outside gives 0, a store outside is dropped, an atomic outside does nothing: each is a branch that is
//! predicted, unless the index is known to be inside. A clamp would stand on the way from one dependent load to
//! the next. Only large kernels select another address instead: a branch costs them time to compile.

use super::bounds::Access;
use super::slots::{SINK_CELL, Slot, ZERO_CELL, width};
use super::{Emitter, clif_type};
use crate::context::{BOUND_BYTES, Bound, Calls, Context};
use crate::shape::Level;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, I8, I32, I64};
use cranelift_codegen::ir::{self, AtomicRmwOp, InstBuilder, MemFlagsData};
use std::mem::offset_of;
use vyre_foundation::arith::CANONICAL_NAN;
use vyre_foundation::{AtomicOp, BinOp, BufferAccess, Element, MemoryOrdering, Type};
use vyre_lower::{Item, ItemId, Value, ValueId};

impl Emitter<'_, '_> {
    /// An effect of a lane.
    pub(super) fn effect(&mut self, id: ItemId, item: Item) {
        let result = self.act(id, item);
        if let (Some(value), Some(row)) = (result, self.shape.result(id, 0)) {
            self.define(row, value);
        }
    }

    /// What an effect of a lane does, and what it gives.
    pub(super) fn act(&mut self, id: ItemId, item: Item) -> Option<ir::Value> {
        let access = Access::Item(id);
        match item {
            Item::Store { buffer, index, value } => {
                let value = self.get(value);
                self.store(access, buffer, index, value);
                None
            }
            Item::Load { buffer, index, .. } => Some(self.load(access, buffer, index)),
            // An aligned store of this size is atomic. The code generator's own would be ordered too, by a fence.
            Item::Atomic {
                op: AtomicOp::Store,
                ordering: MemoryOrdering::Relaxed,
                buffer,
                index,
                value: Some(value),
                ..
            } => {
                let value = self.get(value);
                self.store(access, buffer, index, value);
                None
            }
            Item::Atomic { op, buffer, index, expected, value, .. } => {
                self.atomic(access, op, buffer, index, expected, value)
            }
            Item::Trap { tag, value } => {
                self.trap(tag, value);
                None
            }
            _ => None,
        }
    }

    fn trap(&mut self, tag: u32, value: ValueId) {
        let value = self.get(value);
        let tag = self.b.ins().iconst(I32, i64::from(tag));
        let mut invocation = self.lane_index();
        if let Some(workgroup) = self.workgroup {
            let first = self.b.ins().imul_imm_s(workgroup.linear, i64::from(self.shape.lanes));
            invocation = self.b.ins().iadd(first, invocation);
        }
        let arguments = [self.context, tag, value, invocation];
        self.call(offset_of!(Calls, trap), &[self.target.pointer, I32, I32, I64], &arguments);
    }

    /// Where a buffer begins.
    fn base(&mut self, buffer: u32) -> ir::Value {
        let number = buffer as usize;
        if let Some(own) = self.slots.own.get(number).copied().flatten() {
            let area = self.area(own.kept);
            let base = self.b.ins().iadd_imm_s(area, i64::from(own.offset));
            if own.stride == 0 {
                return base;
            }
            let lane = self.lane_index();
            let offset = self.b.ins().imul_imm_s(lane, i64::from(own.stride));
            return self.b.ins().iadd(base, offset);
        }
        let bound = self.context_field(self.target.pointer, offset_of!(Context, buffers));
        let flags = MemFlagsData::new().with_notrap().with_aligned().with_readonly().with_can_move();
        let offset = buffer as i32 * BOUND_BYTES + offset_of!(Bound, base) as i32;
        self.b.ins().load(self.target.pointer, flags, bound, offset)
    }

    /// How many elements a buffer has, as 64 bits.
    pub(super) fn count(&mut self, buffer: u32) -> ir::Value {
        if let Some(count) = self.shape.kernel.buffers[buffer as usize].count() {
            return self.b.ins().iconst(I64, i64::from(count));
        }
        let bound = self.context_field(self.target.pointer, offset_of!(Context, buffers));
        let flags = MemFlagsData::new().with_notrap().with_aligned().with_readonly().with_can_move();
        let offset = buffer as i32 * BOUND_BYTES + offset_of!(Bound, count) as i32;
        self.b.ins().load(I64, flags, bound, offset)
    }

    /// An index as 64 bits.
    pub(super) fn index(&mut self, index: ValueId) -> ir::Value {
        if let Value::Id(id, axis) = self.shape.kernel.value(index)
            && let Some(wide) = self.wide_id(id, axis as usize)
        {
            return wide;
        }
        let index = self.get(index);
        match self.extended.get(&index) {
            Some(wide) => *wide,
            None => self.b.ins().uextend(I64, index),
        }
    }

    /// The address of an element, and whether it is inside; `None` where that is known.
    pub(super) fn address(
        &mut self,
        access: Access,
        buffer: u32,
        index: ValueId,
    ) -> (ir::Value, Option<ir::Value>) {
        if self.proven.contains(&access) {
            return (self.address_inside(buffer, index), None);
        }
        let index = self.index(index);
        let count = self.count(buffer);
        let inside = self.icmp(IntCC::UnsignedLessThan, index, count);
        (self.address_of(buffer, index), Some(inside))
    }

    /// The address of an element that is inside. Lanes that a round does one after the other have theirs from the first
    /// of them, where their indices follow each other: those that are all inside do not wrap.
    fn address_inside(&mut self, buffer: u32, index: ValueId) -> ir::Value {
        let follows = self.shape.kernel.stride(index) == Some(1);
        let side = self.side.as_ref().filter(|_| follows);
        if let Some((side, first)) = side.and_then(|side| Some((side, side.first.get(&index)?))) {
            let size = self.shape.kernel.buffers[buffer as usize].element().size() as i64;
            let (number, first) = (i64::from(side.number), *first);
            let address = self.address_of(buffer, first);
            return self.b.ins().iadd_imm_s(address, size * number);
        }
        let is_first = side.is_some_and(|side| side.number == 0);
        let wide = self.index(index);
        if let (true, Some(side)) = (is_first, &mut self.side) {
            side.first.insert(index, wide);
        }
        self.address_of(buffer, wide)
    }

    /// The address of an element.
    pub(super) fn address_of(&mut self, buffer: u32, index: ir::Value) -> ir::Value {
        let size = self.shape.kernel.buffers[buffer as usize].element().size();
        let base = self.base(buffer);
        let offset = match size {
            1 => index,
            size => self.b.ins().ishl_imm_u(index, i64::from(size.trailing_zeros())),
        };
        self.b.ins().iadd(base, offset)
    }

    /// An element, or zero outside the buffer.
    pub(super) fn load(&mut self, access: Access, buffer: u32, index: ValueId) -> ir::Value {
        let element = self.shape.kernel.buffers[buffer as usize].element();
        let flags = self.flags_of(buffer, access);
        let (address, inside) = self.address(access, buffer, index);
        let row = match access {
            Access::Row(row) => Some(row),
            Access::Item(id) => self.shape.result(id, 0),
        };
        let is_index = element == Element::U32 && row.is_some_and(|row| self.shape.is_index(row));
        let Some(inside) = inside else {
            if is_index {
                let wide = self.b.ins().uload32(flags, address, 0);
                return self.narrowed(wide);
            }
            return self.load_element(element, flags, address);
        };
        if self.shape.is_large {
            let zeros = self.b.ins().iadd_imm_s(self.frame, ZERO_CELL);
            let address = self.b.ins().select(inside, address, zeros);
            // It may stand for own memory now. Nobody asks what overlaps where large kernels are compiled.
            let flags = flags.with_alias_region(None);
            return self.load_element(element, flags, address);
        }
        self.load_inside(element, flags, address, inside)
    }

    /// An element where a condition holds, else zero.
    pub(super) fn load_inside(
        &mut self,
        element: Element,
        flags: MemFlagsData,
        address: ir::Value,
        inside: ir::Value,
    ) -> ir::Value {
        // A `u32` may be an index, so it comes as 64 bits.
        let is_index = element == Element::U32;
        let ty = if is_index { I64 } else { clif_type(element.value_type()) };
        let join = self.enter_or_zero(inside, ty);
        let value = match is_index {
            true => self.b.ins().uload32(flags, address, 0),
            false => self.load_element(element, flags, address),
        };
        self.b.ins().jump(join, &[value.into()]);
        self.b.switch_to_block(join);
        let value = self.b.append_block_param(join, ty);
        if is_index { self.narrowed(value) } else { value }
    }

    /// Goes on where a condition holds only; the block where both ways meet again, with zero from the other one. That
    /// stands away from where the code mostly goes.
    fn enter_or_zero(&mut self, inside: ir::Value, ty: ir::Type) -> ir::Block {
        let [then, outside, join] = [0; 3].map(|_| self.b.create_block());
        self.b.ins().brif(inside, then, &[], outside, &[]);
        self.b.switch_to_block(outside);
        self.seldom(outside);
        // A constant would be made before a loop around this and take a register all through it.
        let flags = MemFlagsData::new().with_notrap().with_aligned();
        let zero = self.b.ins().load(ty, flags, self.context, offset_of!(Context, zero) as i32);
        self.b.ins().jump(join, &[zero.into()]);
        self.b.switch_to_block(then);
        join
    }

    fn store(&mut self, access: Access, buffer: u32, index: ValueId, value: ir::Value) {
        let element = self.shape.kernel.buffers[buffer as usize].element();
        let flags = self.flags_of(buffer, access);
        let (address, inside) = self.address(access, buffer, index);
        let (Some(inside), true) = (inside, self.shape.is_large) else {
            let join = self.enter(inside);
            self.store_element(element, flags, address, value);
            return self.leave(join);
        };
        let sink = self.b.ins().iadd_imm_s(self.frame, SINK_CELL);
        let address = self.b.ins().select(inside, address, sink);
        self.store_element(element, flags.with_alias_region(None), address, value);
    }

    /// Goes on where a condition holds only; the block where both ways meet again.
    fn enter(&mut self, inside: Option<ir::Value>) -> Option<ir::Block> {
        let inside = inside?;
        let [then, join] = [0; 2].map(|_| self.b.create_block());
        self.b.ins().brif(inside, then, &[], join, &[]);
        self.b.switch_to_block(then);
        Some(join)
    }

    fn leave(&mut self, join: Option<ir::Block>) {
        if let Some(join) = join {
            self.b.ins().jump(join, &[]);
            self.b.switch_to_block(join);
        }
    }

    /// How a buffer is accessed.
    pub(super) fn flags_of(&self, buffer: u32, access: Access) -> MemFlagsData {
        let number = buffer as usize;
        let flags = if self.slots.own[number].is_some() { self.own_flags } else { self.flags[number] };
        // A row loads memory that is never written.
        match access {
            Access::Row(_) => flags.with_readonly(),
            Access::Item(_) => flags,
        }
    }

    pub(super) fn load_element(
        &mut self,
        element: Element,
        flags: MemFlagsData,
        address: ir::Value,
    ) -> ir::Value {
        match element {
            Element::U8 => self.b.ins().uload8(I32, flags, address, 0),
            Element::I8 => self.b.ins().sload8(I32, flags, address, 0),
            Element::U16 => self.b.ins().uload16(I32, flags, address, 0),
            Element::I16 => self.b.ins().sload16(I32, flags, address, 0),
            Element::U32 | Element::I32 => self.b.ins().load(I32, flags, address, 0),
            Element::U64 | Element::I64 => self.b.ins().load(I64, flags, address, 0),
            Element::F32 => self.b.ins().load(F32, flags, address, 0),
            Element::F16 => {
                let half = self.b.ins().uload16(I32, flags, address, 0);
                let bits = self.call_for(offset_of!(Calls, widen), &[I32], I32, &[half]);
                self.as_f32(bits)
            }
            Element::BF16 => {
                let half = self.b.ins().uload16(I32, flags, address, 0);
                let bits = self.b.ins().ishl_imm_u(half, 16);
                self.as_f32(bits)
            }
        }
    }

    fn store_element(&mut self, element: Element, flags: MemFlagsData, address: ir::Value, value: ir::Value) {
        if element == Element::F32 && !self.shape.is_large {
            return self.store_floats(flags, address, &[value]);
        }
        match element {
            Element::U8 | Element::I8 => self.b.ins().istore8(flags, value, address, 0),
            Element::U16 | Element::I16 => self.b.ins().istore16(flags, value, address, 0),
            Element::U32 | Element::I32 | Element::U64 | Element::I64 => {
                self.b.ins().store(flags, value, address, 0)
            }
            Element::F32 => {
                let bits = self.canonical(value);
                self.b.ins().store(flags, bits, address, 0)
            }
            Element::F16 => {
                let bits = self.as_bits(value);
                let half = self.call_for(offset_of!(Calls, narrow), &[I32], I32, &[bits]);
                self.b.ins().istore16(flags, half, address, 0)
            }
            Element::BF16 => {
                let half = self.narrow_bf16(value);
                self.b.ins().istore16(flags, half, address, 0)
            }
        };
    }

    /// Stores floats or vectors of them that follow each other, every NaN as the canonical one. That there is one is rare,
    /// so a branch costs less than selections.
    pub(super) fn store_floats(&mut self, flags: MemFlagsData, address: ir::Value, values: &[ir::Value]) {
        // Two values are compared at once: that either is NaN makes them unordered.
        let pair = |pair: &[ir::Value]| {
            self.b.ins().fcmp(FloatCC::Unordered, pair[0], pair.get(1).copied().unwrap_or(pair[0]))
        };
        let pairs: Vec<ir::Value> = values.chunks(2).map(pair).collect();
        let mut nan = pairs[1..].iter().fold(pairs[0], |nan, other| self.b.ins().bor(nan, *other));
        if self.is_vector(values[0]) {
            nan = self.b.ins().vany_true(nan);
        }
        let [rare, usual, join] = [0; 3].map(|_| self.b.create_block());
        self.seldom(rare);
        self.b.ins().brif(nan, rare, &[], usual, &[]);
        self.b.switch_to_block(rare);
        for (offset, value) in (0..).step_by(16).zip(values) {
            let canonical = self.canonical(*value);
            self.b.ins().store(flags, canonical, address, offset);
        }
        self.b.ins().jump(join, &[]);
        self.b.switch_to_block(usual);
        for (offset, value) in (0..).step_by(16).zip(values) {
            self.b.ins().store(flags, *value, address, offset);
        }
        self.b.ins().jump(join, &[]);
        self.b.switch_to_block(join);
    }

    /// The bits of a float, every NaN the canonical one.
    pub(super) fn canonical(&mut self, value: ir::Value) -> ir::Value {
        let bits = self.as_bits(value);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, value, value);
        let canonical = self.number_like(bits, i64::from(CANONICAL_NAN));
        self.choose(nan, canonical, bits)
    }

    /// The upper half of a float, rounded to nearest even.
    fn narrow_bf16(&mut self, value: ir::Value) -> ir::Value {
        let bits = self.as_bits(value);
        let upper = self.b.ins().ushr_imm_u(bits, 16);
        let odd = self.b.ins().band_imm_u(upper, 1);
        let rounded = self.b.ins().iadd_imm_s(bits, 0x7fff);
        let rounded = self.b.ins().iadd(rounded, odd);
        let half = self.b.ins().ushr_imm_u(rounded, 16);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, value, value);
        let canonical = self.b.ins().iconst(I32, i64::from(CANONICAL_NAN >> 16));
        self.b.ins().select(nan, canonical, half)
    }

    fn atomic(
        &mut self,
        access: Access,
        op: AtomicOp,
        buffer: u32,
        index: ValueId,
        expected: Option<ValueId>,
        value: Option<ValueId>,
    ) -> Option<ir::Value> {
        let decl = &self.shape.kernel.buffers[buffer as usize];
        let (element, own) = (decl.element(), decl.access() == BufferAccess::Workgroup);
        let ty = clif_type(element.value_type());
        let zero = self.zero(ty);
        let expected = expected.map_or(zero, |row| self.get(row));
        let value = value.map_or(zero, |row| self.get(row));
        let flags = self.flags_of(buffer, access).with_aligned();
        let (address, inside) = self.address(access, buffer, index);
        let join = inside.map(|inside| self.enter_or_zero(inside, ty));
        let old = if own {
            // One thread runs a whole workgroup, so nobody comes between.
            let old = self.b.ins().load(ty, flags, address, 0);
            let new = self.combine(op, element.value_type(), old, expected, value);
            if op != AtomicOp::Load {
                self.b.ins().store(flags, new, address, 0);
            }
            old
        } else {
            self.shared_atomic(op, element.value_type(), flags, address, expected, value)
        };
        let Some(join) = join else { return Some(old) };
        self.b.ins().jump(join, &[old.into()]);
        self.b.switch_to_block(join);
        Some(self.b.append_block_param(join, ty))
    }

    fn shared_atomic(
        &mut self,
        op: AtomicOp,
        ty: Type,
        flags: MemFlagsData,
        address: ir::Value,
        expected: ir::Value,
        value: ir::Value,
    ) -> ir::Value {
        let signed = ty.is_signed();
        let rmw = match op {
            AtomicOp::Add => AtomicRmwOp::Add,
            AtomicOp::Sub => AtomicRmwOp::Sub,
            AtomicOp::Min if signed => AtomicRmwOp::Smin,
            AtomicOp::Min => AtomicRmwOp::Umin,
            AtomicOp::Max if signed => AtomicRmwOp::Smax,
            AtomicOp::Max => AtomicRmwOp::Umax,
            AtomicOp::And => AtomicRmwOp::And,
            AtomicOp::Or => AtomicRmwOp::Or,
            AtomicOp::Xor => AtomicRmwOp::Xor,
            AtomicOp::Exchange => AtomicRmwOp::Xchg,
            AtomicOp::CompareExchange => return self.b.ins().atomic_cas(flags, address, expected, value),
            AtomicOp::Load => return self.b.ins().atomic_load(clif_type(ty), flags, address),
            AtomicOp::Store => {
                self.b.ins().atomic_store(flags, value, address);
                return value;
            }
        };
        self.b.ins().atomic_rmw(clif_type(ty), flags, rmw, address, value)
    }

    /// What an atomic leaves in memory.
    pub(super) fn combine(
        &mut self,
        op: AtomicOp,
        ty: Type,
        old: ir::Value,
        expected: ir::Value,
        value: ir::Value,
    ) -> ir::Value {
        let binary = match op {
            AtomicOp::Add => BinOp::Add,
            AtomicOp::Sub => BinOp::Sub,
            AtomicOp::Min => BinOp::Min,
            AtomicOp::Max => BinOp::Max,
            AtomicOp::And => BinOp::BitAnd,
            AtomicOp::Or => BinOp::BitOr,
            AtomicOp::Xor => BinOp::BitXor,
            AtomicOp::Exchange | AtomicOp::Store => return value,
            AtomicOp::Load => return old,
            AtomicOp::CompareExchange => {
                let equal = self.icmp(IntCC::Equal, old, expected);
                return self.b.ins().select(equal, value, old);
            }
        };
        self.integer(binary, ty, old, value)
    }

    /// The start of the frame or of what the workgroup keeps.
    fn area(&mut self, kept: bool) -> ir::Value {
        if !kept {
            return self.frame;
        }
        match self.workgroup.and_then(|workgroup| workgroup.kept) {
            Some(start) => start,
            // At the level of the grid: that of the first workgroup. Whoever reads there waits for the others before
            // anybody writes again.
            None => self.context_field(self.target.pointer, offset_of!(Context, kept)),
        }
    }

    /// Where a slot begins.
    pub(super) fn slot_base(&mut self, slot: Slot) -> ir::Value {
        let area = self.area(slot.kept);
        self.b.ins().iadd_imm_s(area, i64::from(slot.offset))
    }

    /// The address of the element of a slot that the code at hand means.
    pub(super) fn slot_address(&mut self, slot: Slot) -> ir::Value {
        let area = self.area(slot.kept);
        if !slot.per_lane || self.level() < Level::Lane {
            return area;
        }
        let lane = self.lane_index();
        let offset = self.b.ins().imul_imm_s(lane, i64::from(width(slot.ty)));
        self.b.ins().iadd(area, offset)
    }

    pub(super) fn read_slot(&mut self, slot: Slot) -> ir::Value {
        let address = self.slot_address(slot);
        if slot.ty == Type::Bool {
            let word = self.b.ins().load(I32, self.own_flags, address, slot.offset);
            return self.b.ins().ireduce(I8, word);
        }
        self.b.ins().load(clif_type(slot.ty), self.own_flags, address, slot.offset)
    }

    /// Writes a slot.
    pub(super) fn write_slot(&mut self, slot: Slot, value: ir::Value) {
        let address = self.slot_address(slot);
        let value = if slot.ty == Type::Bool { self.cast(Type::Bool, Type::U32, value) } else { value };
        self.b.ins().store(self.own_flags, value, address, slot.offset);
    }
}
