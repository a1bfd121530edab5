//! Loads, stores and atomics of bundles.
//!
//! An access is one of three kinds. With an index that is the same in all lanes it is one load for all of them. With
//! indices that follow each other it is a load or store of vectors, or an exchange of them where nobody wants what an atomic
//! gives. With any others it is done lane by lane.
//!
//! **One check serves all lanes.** Indices that follow each other are all inside where the first one plus the number of
//! lanes, as 64 bits, is: they do not wrap then, because lengths are `u32`. Others are compared as vectors. Where a lane
//! fails, and only there, lanes are looked at one by one.
//!
//! **Lanes that are not meant** read what they like, as long as it is in the buffer, and write nothing. What is proven of
//! an access holds for lanes that are meant alone. Code under a mask runs for some lane, or, in every other round of a short
//! loop, has run for one the round before: so a lane that is not meant reads element 0, which such a proof says there is. It
//! writes by a branch around the store, never by writing back what it has read: another workgroup may have written since.

use super::Emitter;
use super::bounds::Access;
use super::vectors::{BYTES, LANES, Parts, is_wide};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I32, I32X4, I64, I64X2, I128};
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, MemFlagsData};
use vyre_foundation::{AtomicOp, BinOp, BufferAccess, Element, Literal, MemoryOrdering, Type};
use vyre_lower::{Item, ItemId, Value, ValueId};

impl Emitter<'_, '_> {
    /// An effect of the lanes that are meant.
    pub(super) fn vector_effect(&mut self, id: ItemId, item: Item) {
        let result = match item {
            Item::Load { buffer, index, .. } => Some(self.load_parts(Access::Item(id), buffer, index)),
            Item::Store { buffer, index, value } if self.is_stored_side_by_side(buffer, index) => {
                let element = self.shape.kernel.buffers[buffer as usize].element();
                let flags = self.flags_of(buffer, Access::Item(id));
                let parts = self.vector(value);
                let store = |e: &mut Self, address| e.store_side(element, flags, address, &parts);
                self.act_side(id, &item, (buffer, index), false, store);
                None
            }
            Item::Atomic { buffer, index, .. }
                if self.is_loaded_side(&item)
                    && self.bundle.as_ref().is_some_and(|bundle| bundle.is_asked) =>
            {
                Some(self.load_parts(Access::Item(id), buffer, index))
            }
            Item::Atomic { op, buffer, index, value: Some(value), .. } if self.is_updated_side(id) => {
                let parts = self.vector(value);
                self.update_side(id, op, (buffer, index), &parts);
                None
            }
            _ => self.effect_by_lane(id, &item),
        };
        if let (Some(parts), Some(row)) = (result, self.shape.result(id, 0)) {
            self.define_parts(row, parts);
        }
    }

    /// An effect, lane by lane, and what it gives if somebody wants that.
    fn effect_by_lane(&mut self, id: ItemId, item: &Item) -> Option<Parts> {
        let result = self.shape.result(id, 0);
        let ty = result.map(|row| self.shape.kernel.value(row).ty());
        let bits = self.mask().map(|mask| self.mask_bits(&mask));
        let mut values = Vec::new();
        for number in 0..self.bundle_lanes() {
            let mark = self.log.len();
            let join = bits.as_ref().map(|bits| {
                let bit = self.b.ins().band_imm_u(bits[(number / LANES) as usize], 1 << (number % LANES));
                let [meant, join] = [0; 2].map(|_| self.b.create_block());
                let zero: Option<BlockArg> = ty.map(|ty| self.zero(super::clif_type(ty)).into());
                self.b.ins().brif(bit, meant, &[], join, zero.as_slice());
                self.b.switch_to_block(meant);
                join
            });
            let given = self.with_lane(number, |e| e.act(id, item.clone()));
            let value = given.zip(ty).map(|(value, _)| value);
            let Some(join) = join else {
                values.extend(value);
                continue;
            };
            let value: Option<BlockArg> = value.map(BlockArg::from);
            self.b.ins().jump(join, value.as_slice());
            self.forget(mark);
            self.b.switch_to_block(join);
            values.extend(ty.map(|ty| self.b.append_block_param(join, super::clif_type(ty))));
        }
        ty.map(|ty| self.build(ty, &values))
    }

    /// Whether an item is an atomic load of elements side by side. A vector in memory is not read at once, but each of its
    /// elements is, and where loads are not ordered nobody may rely on more. As the code generator may take one such load
    /// for another, they are for lanes that are asked, which go on from a load of their own.
    pub(super) fn is_loaded_side(&self, item: &Item) -> bool {
        matches!(item, Item::Atomic { op: AtomicOp::Load, ordering: MemoryOrdering::Relaxed, index, .. }
            if self.shape.kernel.stride(*index) == Some(1))
    }

    /// A number with a bit for each lane of a mask.
    pub(super) fn lane_bits(&mut self, mask: &Parts) -> ir::Value {
        let bits = self.mask_bits(mask);
        let first = bits[0];
        (1..).zip(&bits[1..]).fold(first, |all, (part, bits)| {
            let bits = self.b.ins().ishl_imm_u(*bits, part * i64::from(LANES));
            self.b.ins().bor(all, bits)
        })
    }

    /// For each part of a mask a number with a bit for each lane.
    fn mask_bits(&mut self, mask: &Parts) -> Vec<ir::Value> {
        mask.iter().map(|part| self.b.ins().vhigh_bits(I32, *part)).collect()
    }

    /// An element for each lane, or zero outside the buffer.
    pub(super) fn load_parts(&mut self, access: Access, buffer: u32, index: ValueId) -> Parts {
        let element = self.shape.kernel.buffers[buffer as usize].element();
        if self.is_same(index) {
            let one = self.load(access, buffer, index);
            return self.splat_parts(element.value_type(), one);
        }
        let Some(stride) = self.shape.kernel.stride(index) else {
            return if self.is_mostly_side_by_side(index) && element != Element::F16 {
                self.load_mostly_side(access, buffer, index)
            } else {
                self.gather(access, buffer, index)
            };
        };
        if stride != 1 || element == Element::F16 {
            return self.load_strided(access, buffer, index, stride);
        }
        let flags = self.flags_of(buffer, access);
        let (address, _) = self.address(access, buffer, index);
        if self.proven.contains(&access) && self.mask().is_none() {
            self.fetch_ahead(buffer, address);
            return self.load_side(element, flags, address);
        }
        let inside = self.is_inside(buffer, index, 1);
        let load = |e: &mut Self| e.load_side(element, flags, address);
        self.either(element.value_type(), (inside, true), load, |e| e.load_checked(access, buffer, index))
    }

    /// Whether indices that follow each other by a stride are all inside, and none wraps.
    fn is_inside(&mut self, buffer: u32, index: ValueId, stride: i32) -> ir::Value {
        let first = self.index(index);
        let others = i64::from(self.bundle_lanes()) - 1;
        let last = self.b.ins().iadd_imm_s(first, i64::from(stride) * others);
        let count = self.count(buffer);
        // A negative number is a large one without its sign.
        let last = self.icmp(IntCC::UnsignedLessThan, last, count);
        if stride > 0 {
            return last;
        }
        let first = self.icmp(IntCC::UnsignedLessThan, first, count);
        self.b.ins().band(first, last)
    }

    /// Whether an index is one that follows that of its neighbour and is then kept within something, as on a ring: in
    /// most bundles nothing happens to it.
    pub(super) fn is_mostly_side_by_side(&self, index: ValueId) -> bool {
        let follows = |row: ValueId| self.shape.kernel.stride(row) == Some(1);
        match self.shape.kernel.value(index) {
            Value::Binary { op: BinOp::Rem, a, b, .. } => follows(a) && self.is_same(b),
            Value::Binary { op: BinOp::BitAnd | BinOp::Min | BinOp::Max, a, b, .. } => {
                follows(a) && self.is_same(b) || follows(b) && self.is_same(a)
            }
            Value::Select { a, b, .. } => follows(a) || follows(b),
            _ => false,
        }
    }

    /// What follows that of its neighbour and is then taken modulo a power of two, and the last index of that ring.
    fn ring(&self, index: ValueId) -> Option<(ValueId, u32)> {
        let kernel = self.shape.kernel;
        let word = |row: ValueId| match kernel.value(row) {
            Value::Const(Literal::U32(word)) => Some(word),
            _ => None,
        };
        let (row, last) = match kernel.value(index) {
            Value::Binary { op: BinOp::BitAnd, a, b, .. } => {
                word(b).map(|last| (a, last)).or_else(|| word(a).map(|last| (b, last)))?
            }
            Value::Binary { op: BinOp::Rem, a, b, .. } => (a, word(b)?.checked_sub(1)?),
            _ => return None,
        };
        let is_ring = last.checked_add(1).is_some_and(u32::is_power_of_two);
        (is_ring && kernel.stride(row) == Some(1)).then_some((row, last))
    }

    /// Elements that follow each other where their indices do, and others.
    fn load_mostly_side(&mut self, access: Access, buffer: u32, index: ValueId) -> Parts {
        let decl = &self.shape.kernel.buffers[buffer as usize];
        let (element, count) = (decl.element(), decl.count());
        let flags = self.flags_of(buffer, access);
        let others = i64::from(self.bundle_lanes()) - 1;
        let ring = self.ring(index);
        let (first, last, mut cond) = if let Some((row, end)) = ring {
            let row = self.index(row);
            let first = self.b.ins().band_imm_u(row, i64::from(end));
            let last = self.b.ins().iadd_imm_s(first, others);
            (first, last, self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, last, i64::from(end)))
        } else {
            let at = self.vector(index);
            let short = self.extract(Type::U32, &at, 0);
            let steps = self.steps_from(short);
            let equal: Parts =
                at.iter().zip(steps).map(|(at, step)| self.icmp(IntCC::Equal, *at, step)).collect();
            let first = self.b.ins().uextend(I64, short);
            (first, self.b.ins().iadd_imm_s(first, others), self.all(&equal))
        };
        let is_inside = ring.zip(count).is_some_and(|((_, end), count)| end < count);
        if !is_inside {
            let count = self.count(buffer);
            let inside = self.icmp(IntCC::UnsignedLessThan, last, count);
            cond = self.b.ins().band(cond, inside);
        }
        let address = self.address_of(buffer, first);
        let load = |e: &mut Self| e.load_side(element, flags, address);
        self.either(element.value_type(), (cond, true), load, |e| e.gather(access, buffer, index))
    }

    /// Elements at a distance from each other. Where no index wraps their addresses are known from the first one.
    fn load_strided(&mut self, access: Access, buffer: u32, index: ValueId, stride: i32) -> Parts {
        let element = self.shape.kernel.buffers[buffer as usize].element();
        let (ty, flags) = (element.value_type(), self.flags_of(buffer, access));
        let (address, _) = self.address(access, buffer, index);
        let inside = self.is_inside(buffer, index, stride);
        let distance = i64::from(stride) * element.size() as i64;
        let load = |e: &mut Self| {
            let lanes = 0..i64::from(e.bundle_lanes());
            let one = |e: &mut Self, number| {
                let address = e.b.ins().iadd_imm_s(address, distance * number);
                e.load_element(element, flags, address)
            };
            let values: Vec<ir::Value> = lanes.map(|number| one(e, number)).collect();
            e.build(ty, &values)
        };
        self.either(ty, (inside, true), load, |e| e.load_checked(access, buffer, index))
    }

    /// One way to get parts where a condition holds, or does not, as it mostly is, else another. What one of them finds out
    /// the code behind does not know.
    fn either(
        &mut self,
        ty: Type,
        (cond, holds): (ir::Value, bool),
        usual: impl FnOnce(&mut Self) -> Parts,
        rare: impl FnOnce(&mut Self) -> Parts,
    ) -> Parts {
        let [then, otherwise, join] = [0; 3].map(|_| self.b.create_block());
        self.seldom(otherwise);
        let [yes, no] = if holds { [then, otherwise] } else { [otherwise, then] };
        self.b.ins().brif(cond, yes, &[], no, &[]);
        let mark = self.log.len();
        self.b.switch_to_block(then);
        let parts = usual(self);
        self.jump_with(join, &parts);
        self.forget(mark);
        self.b.switch_to_block(otherwise);
        let parts = rare(self);
        self.jump_with(join, &parts);
        self.forget(mark);
        self.b.switch_to_block(join);
        self.append_parts(join, ty)
    }

    /// Elements, each looked at by itself whether it is inside.
    fn load_checked(&mut self, access: Access, buffer: u32, index: ValueId) -> Parts {
        let ty = self.shape.kernel.buffers[buffer as usize].element().value_type();
        let was_proven = self.proven.remove(&access);
        let lanes = 0..self.bundle_lanes();
        let values: Vec<ir::Value> =
            lanes.map(|number| self.with_lane(number, |e| e.load(access, buffer, index))).collect();
        if was_proven {
            self.proven.insert(access);
        }
        self.build(ty, &values)
    }

    /// Elements that stand anywhere.
    fn gather(&mut self, access: Access, buffer: u32, index: ValueId) -> Parts {
        let ty = self.shape.kernel.buffers[buffer as usize].element().value_type();
        let is_proven = self.proven.contains(&access);
        let Some(mask) = self.mask() else {
            if is_proven {
                let lanes = 0..self.bundle_lanes();
                let values: Vec<ir::Value> =
                    lanes.map(|number| self.with_lane(number, |e| e.load(access, buffer, index))).collect();
                let parts = self.build(ty, &values);
                return self.made_here(ty, &parts);
            }
            let at = self.vector(index);
            return self.gather_where_inside(access, buffer, &at);
        };
        let at = self.vector(index);
        let at: Parts = at.iter().zip(&mask).map(|(at, mask)| self.b.ins().band(*at, *mask)).collect();
        if is_proven {
            let parts = self.gather_at(access, buffer, &at);
            return self.made_here(ty, &parts);
        }
        self.gather_where_inside(access, buffer, &at)
    }

    /// Parts that are made where the code is now. The code generator would make them where they are used, and every lane that
    /// was loaded would take a register until then; a way around, which nobody takes, keeps them here.
    fn made_here(&mut self, ty: Type, parts: &Parts) -> Parts {
        let [never, behind] = [0; 2].map(|_| self.b.create_block());
        let args: Vec<BlockArg> = parts.iter().map(|part| BlockArg::from(*part)).collect();
        // The context is somewhere, and the code generator does not know that.
        self.b.ins().brif(self.context, behind, &args, never, &[]);
        self.b.switch_to_block(never);
        self.seldom(never);
        let zero = self.zero(super::clif_type(ty));
        let zeros = self.splat_parts(ty, zero);
        self.jump_with(behind, &zeros);
        self.b.switch_to_block(behind);
        self.append_parts(behind, ty)
    }

    fn gather_where_inside(&mut self, access: Access, buffer: u32, at: &Parts) -> Parts {
        let element = self.shape.kernel.buffers[buffer as usize].element();
        let count = self.count(buffer);
        let short = self.b.ins().ireduce(I32, count);
        let counts = self.splat(Type::U32, short);
        // That no lane is outside takes fewer instructions than that all are inside.
        let largest = self.fold(at, |e, a, b| e.b.ins().umax(a, b));
        let outside = self.icmp(IntCC::UnsignedGreaterThanOrEqual, largest, counts);
        let outside = self.b.ins().vany_true(outside);
        let ty = element.value_type();
        self.either(
            ty,
            (outside, false),
            |e| e.gather_at(access, buffer, at),
            |e| {
                let lanes = 0..e.bundle_lanes();
                let one = |e: &mut Self, number| {
                    let (index, address) = e.address_at(buffer, at, number);
                    let inside = e.icmp(IntCC::UnsignedLessThan, index, count);
                    let flags = e.flags_of(buffer, access);
                    e.load_inside(element, flags, address, inside)
                };
                let values: Vec<ir::Value> = lanes.map(|number| one(e, number)).collect();
                e.build(ty, &values)
            },
        )
    }

    /// Elements at places that are inside.
    fn gather_at(&mut self, access: Access, buffer: u32, at: &Parts) -> Parts {
        let element = self.shape.kernel.buffers[buffer as usize].element();
        let flags = self.flags_of(buffer, access);
        let lanes = 0..self.bundle_lanes();
        let one = |number| {
            let (_, address) = self.address_at(buffer, at, number);
            self.load_element(element, flags, address)
        };
        let values: Vec<ir::Value> = lanes.map(one).collect();
        self.build(element.value_type(), &values)
    }

    /// The index of a lane, as 64 bits, and the address that it means.
    fn address_at(&mut self, buffer: u32, at: &Parts, number: u32) -> (ir::Value, ir::Value) {
        let index = self.extract(Type::U32, at, number);
        let index = self.b.ins().uextend(I64, index);
        (index, self.address_of(buffer, index))
    }

    /// Elements that follow each other.
    fn load_side(&mut self, element: Element, flags: MemFlagsData, address: ir::Value) -> Parts {
        let ty = element.value_type();
        let bytes = BYTES as i32 * element.size() as i32 / if is_wide(ty) { 8 } else { 4 };
        let count = self.part_count(ty) as i32;
        let one = |part: i32| {
            let offset = part * bytes;
            match element {
                Element::U32 | Element::I32 | Element::F32 | Element::U64 | Element::I64 => {
                    self.load_lanes(ty, flags, address, offset)
                }
                Element::U16 => self.b.ins().uload16x4(flags, address, offset),
                Element::I16 => self.b.ins().sload16x4(flags, address, offset),
                Element::F16 => unreachable!("halves are loaded lane by lane"),
                Element::BF16 => {
                    let halves = self.b.ins().uload16x4(flags, address, offset);
                    let by = self.b.ins().iconst(I32, 16);
                    let bits = self.b.ins().ishl(halves, by);
                    self.as_f32(bits)
                }
                Element::U8 | Element::I8 => {
                    let four = self.b.ins().load(I32, flags, address, offset);
                    let four = self.b.ins().scalar_to_vector(I32X4, four);
                    let four = self.retype(I8X16, four);
                    if element == Element::U8 {
                        let halves = self.b.ins().uwiden_low(four);
                        self.b.ins().uwiden_low(halves)
                    } else {
                        let halves = self.b.ins().swiden_low(four);
                        self.b.ins().swiden_low(halves)
                    }
                }
            }
        };
        (0..count).map(one).collect()
    }

    /// Whether stores of lanes are one of vectors.
    pub(super) fn is_stored_side_by_side(&self, buffer: u32, index: ValueId) -> bool {
        let element = self.shape.kernel.buffers[buffer as usize].element();
        self.shape.kernel.stride(index) == Some(1) && !matches!(element, Element::F16 | Element::BF16)
    }

    /// Whether atomics of lanes are one of vectors: where nobody wants to know what was there before.
    pub(super) fn is_updated_side(&self, id: ItemId) -> bool {
        let kernel = self.shape.kernel;
        let Item::Atomic { op, buffer, index, .. } = kernel.item(id) else { return false };
        let has_form = match op {
            AtomicOp::Add | AtomicOp::Sub | AtomicOp::Min | AtomicOp::Max => true,
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => true,
            AtomicOp::Exchange | AtomicOp::CompareExchange | AtomicOp::Load | AtomicOp::Store => false,
        };
        let is_own = kernel.buffers[buffer as usize].access() == BufferAccess::Workgroup;
        has_form
            && kernel.stride(index) == Some(1)
            && self.shape.result(id, 0).is_none()
            && (is_own || self.target.exchange_vectors)
    }

    /// Updates an element for each lane that is meant, a vector of them at once: others see it happen to each of them.
    fn update_side(&mut self, id: ItemId, op: AtomicOp, (buffer, index): (u32, ValueId), parts: &Parts) {
        let decl = &self.shape.kernel.buffers[buffer as usize];
        let (ty, is_own) = (decl.element().value_type(), decl.access() == BufferAccess::Workgroup);
        let flags = self.flags_of(buffer, Access::Item(id));
        let update = |e: &mut Self, address: ir::Value| {
            for (offset, value) in (0..).step_by(BYTES as usize).zip(parts) {
                let old = e.load_lanes(ty, flags, address, offset);
                if is_own {
                    let new = e.combine(op, ty, old, old, *value);
                    e.b.ins().store(flags, new, address, offset);
                } else {
                    let address = e.b.ins().iadd_imm_s(address, i64::from(offset));
                    e.exchange_until(flags, address, old, |e, old| e.combine(op, ty, old, old, *value));
                }
            }
        };
        let item = self.shape.kernel.item(id);
        self.act_side(id, &item, (buffer, index), !is_own, update);
    }

    /// Replaces a vector by another one that is made of it, when nobody comes between.
    fn exchange_until(
        &mut self,
        flags: MemFlagsData,
        address: ir::Value,
        old: ir::Value,
        make: impl FnOnce(&mut Self, ir::Value) -> ir::Value,
    ) {
        let ty = self.b.func.dfg.value_type(old);
        let [again, done] = [0; 2].map(|_| self.b.create_block());
        self.b.ins().jump(again, &[old.into()]);
        self.b.switch_to_block(again);
        let old = self.b.append_block_param(again, ty);
        let new = make(self, old);
        let [old, new] = [old, new].map(|vector| self.retype(I128, vector));
        let seen = self.b.ins().atomic_cas(flags.with_aligned(), address, old, new);
        let is_same = self.icmp(IntCC::Equal, seen, old);
        let seen = self.retype(ty, seen);
        self.b.ins().brif(is_same, done, &[], again, &[seen.into()]);
        self.b.switch_to_block(done);
    }

    /// Acts on elements that follow each other at once, where all lanes are meant, all are inside, and vectors are aligned
    /// if they must be; else lane by lane.
    fn act_side(
        &mut self,
        id: ItemId,
        item: &Item,
        (buffer, index): (u32, ValueId),
        must_align: bool,
        act: impl FnOnce(&mut Self, ir::Value),
    ) {
        let access = Access::Item(id);
        let first = self.index(index);
        let address = self.address_of(buffer, first);
        let inside = (!self.proven.contains(&access)).then(|| self.is_inside(buffer, index, 1));
        let all = self.mask().map(|mask| self.all(&mask));
        let aligned = must_align.then(|| {
            let rest = self.b.ins().band_imm_u(address, i64::from(BYTES - 1));
            self.b.ins().icmp_imm_u(IntCC::Equal, rest, 0)
        });
        let conditions = [inside, all, aligned].into_iter().flatten();
        let Some(cond) = conditions.reduce(|a, b| self.b.ins().band(a, b)) else {
            return act(self, address);
        };
        let [then, otherwise, join] = [0; 3].map(|_| self.b.create_block());
        self.b.ins().brif(cond, then, &[], otherwise, &[]);
        let mark = self.log.len();
        self.b.switch_to_block(then);
        act(self, address);
        self.b.ins().jump(join, &[]);
        self.forget(mark);
        self.b.switch_to_block(otherwise);
        self.effect_by_lane(id, item);
        self.b.ins().jump(join, &[]);
        self.forget(mark);
        self.b.switch_to_block(join);
    }

    /// Stores elements that follow each other.
    fn store_side(&mut self, element: Element, flags: MemFlagsData, address: ir::Value, parts: &Parts) {
        if element == Element::F32 {
            return self.store_floats(flags, address, parts);
        }
        for (part, value) in (0..).zip(parts) {
            let at = BYTES as i32 * part;
            match element {
                Element::U16 | Element::I16 => {
                    let halves = self.lower_halves(*value);
                    let halves = self.retype(I64X2, halves);
                    let halves = self.b.ins().extractlane(halves, 0);
                    self.b.ins().store(flags, halves, address, at / 2);
                }
                Element::U8 | Element::I8 => {
                    let most = self.number_like(*value, 0xff);
                    let low = self.b.ins().band(*value, most);
                    let halves = self.b.ins().snarrow(low, low);
                    let bytes = self.b.ins().unarrow(halves, halves);
                    let bytes = self.retype(I32X4, bytes);
                    let bytes = self.b.ins().extractlane(bytes, 0);
                    self.b.ins().store(flags, bytes, address, at / 4);
                }
                _ => {
                    self.b.ins().store(flags, *value, address, at);
                }
            }
        }
    }

    /// The lower 16 bits of each lane, in the lower half of a vector.
    fn lower_halves(&mut self, value: ir::Value) -> ir::Value {
        let by = self.b.ins().iconst(I32, 16);
        let up = self.b.ins().ishl(value, by);
        // With the sign of its lower half each lane fits 16 bits, so that nothing saturates.
        let number = self.b.ins().sshr(up, by);
        self.b.ins().snarrow(number, number)
    }
}
