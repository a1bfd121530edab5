//! Rows for several lanes at once.
//!
//! A run that is worth it (see [`choice`](super::choice)) goes over *bundles*: vectors of four lanes that stand side by
//! side on x, one or several at a time so that operations that depend on each other have others between them. What a
//! row is in a bundle follows from its stride (see [`Kernel::stride`](vyre_lower::Kernel::stride)):
//!
//! | stride | form |
//! |---|---|
//! | 0 | one value for all lanes, computed as lane code computes it and splatted where vectors need it |
//! | known | computed for the first lane, as addresses are; where vectors need it: splatted, plus multiples of the stride |
//! | none | *parts*: vectors of 128 bits, each with four lanes, or with two where a lane has 64 bits |
//!
//! Operators that have no vector form are computed lane by lane, by the code that computes them for one lane: the bundle
//! then stands for a *single* lane of it for a while.
//!
//! All lanes of a bundle do each statement together before the next one. Lanes that communicate within a run race, and
//! a lane still sees what it stored itself.

use super::bounds::Access;
use super::lanes::Lane;
use super::ops::is_shift;
use super::slots::{Slot, width};
use super::{Emitter, Keep, Known, Span, clif_type};
use crate::shape::Level;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I8X16, I32, I32X4, I64X2};
use cranelift_codegen::ir::{self, ConstantData, InstBuilder, InstructionData, MemFlagsData, Opcode};
use smallvec::SmallVec;
use vyre_foundation::{BinOp, Literal, Type, UnOp};
use vyre_lower::{RegionId, Value, ValueId};

/// The lanes of a vector.
pub(super) const LANES: u32 = 4;

/// The bytes of a vector.
pub(super) const BYTES: u32 = 16;

/// A row in all lanes of a bundle. Truth values are lanes of 32 bits full of ones or zeros.
pub(super) type Parts = SmallVec<[ir::Value; 4]>;

/// Lanes that code is for at once.
pub(super) struct Bundle {
    /// The first of them.
    first: Lane,
    /// How many vectors of lanes it has.
    vectors: u32,
    /// Which lanes are meant; all of them where there is none.
    pub(super) mask: Option<Parts>,
    /// The one lane that the code at hand is for.
    pub(super) single: Option<u32>,
    /// The part that is computed.
    part: usize,
    /// Whether these lanes are only asked what they are about to do.
    pub(super) is_asked: bool,
    /// The buffers of which what the next bundles read is being fetched; none within branches and loops.
    pub(super) fetched: Option<SmallVec<[u32; 4]>>,
}

/// Whether a value takes 64 bits in a lane.
pub(super) fn is_wide(ty: Type) -> bool {
    width(ty) == 8
}

impl Emitter<'_, '_> {
    /// What a run does for the bundle that begins with this lane.
    pub(super) fn one_bundle(&mut self, first: Lane, vectors: u32, span: Span, keeps: &[Keep]) {
        self.with_bundle(first, vectors, |e| {
            e.vector_span(span);
            // All are read before one is written: they may be each other's.
            let keeps: Vec<&Keep> = keeps.iter().filter(|keep| keep.level == Level::Lane).collect();
            let values: Vec<Parts> = keeps.iter().map(|keep| e.vector(keep.value)).collect();
            for (keep, parts) in keeps.into_iter().zip(values) {
                let slot = e.slot_to_keep(keep);
                e.write_parts(slot, &parts);
            }
        });
    }

    /// Makes code for the bundle that begins with this lane.
    pub(super) fn with_bundle<T>(
        &mut self,
        first: Lane,
        vectors: u32,
        code: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mark = self.log.len();
        self.lane = Some(first);
        let fetched = Some(SmallVec::new());
        self.bundle =
            Some(Bundle { first, vectors, mask: None, single: None, part: 0, is_asked: false, fetched });
        let made = code(self);
        self.lane = None;
        self.bundle = None;
        self.forget(mark);
        made
    }

    /// How many lanes the bundle has.
    pub(super) fn bundle_lanes(&self) -> u32 {
        self.bundle.as_ref().map_or(1, |bundle| bundle.vectors * LANES)
    }

    /// How many parts a value has.
    pub(super) fn part_count(&self, ty: Type) -> usize {
        (self.bundle_lanes() * width(ty) / BYTES) as usize
    }

    /// Which lanes are meant, where these are not all.
    pub(super) fn mask(&self) -> Option<Parts> {
        self.bundle.as_ref().and_then(|bundle| bundle.mask.clone())
    }

    /// From now on these lanes are meant.
    pub(super) fn set_mask(&mut self, mask: Option<Parts>) {
        if let Some(bundle) = &mut self.bundle {
            bundle.mask = mask;
        }
    }

    /// Whether a row is the same in all lanes of a bundle.
    pub(super) fn is_same(&self, row: ValueId) -> bool {
        self.shape.defined[row.index()] < Level::Lane || self.shape.kernel.stride(row) == Some(0)
    }

    /// Whether all that is known of a row is its value in the first lane.
    pub(super) fn is_first_only(&self, row: ValueId) -> bool {
        self.is_same(row) || self.shape.kernel.stride(row).is_some()
    }

    /// Makes code for one lane of the bundle, as if there were no bundle.
    pub(super) fn with_lane<T>(&mut self, number: u32, code: impl FnOnce(&mut Self) -> T) -> T {
        let Some(first) = self.bundle.as_ref().map(|bundle| bundle.first) else { return code(self) };
        let mut lane = first;
        lane.ids[0] = self.b.ins().iadd_imm_s(first.ids[0], i64::from(number));
        self.lane = Some(lane);
        self.set_single(Some(number));
        let made = code(self);
        self.set_single(None);
        self.lane = Some(first);
        made
    }

    fn set_single(&mut self, single: Option<u32>) {
        if let Some(bundle) = &mut self.bundle {
            bundle.single = single;
        }
    }

    /// A row's value in one lane of the bundle.
    pub(super) fn get_single(&mut self, row: ValueId, number: u32) -> ir::Value {
        let lane = self.lane;
        self.lane = self.bundle.as_ref().map(|bundle| bundle.first);
        self.set_single(None);
        let ty = self.shape.kernel.value(row).ty();
        let value = if self.is_same(row) {
            self.get(row)
        } else if let Some(stride) = self.shape.kernel.stride(row) {
            let first = self.get(row);
            self.b.ins().iadd_imm_s(first, i64::from(stride) * i64::from(number))
        } else {
            let parts = self.vector(row);
            self.extract(ty, &parts, number)
        };
        self.lane = lane;
        self.set_single(Some(number));
        value
    }

    /// A row's value in all lanes of the bundle.
    pub(super) fn vector(&mut self, row: ValueId) -> Parts {
        if let Some(parts) = self.vectors.get(&row) {
            return parts.clone();
        }
        let ty = self.shape.kernel.value(row).ty();
        let parts = if self.is_same(row) {
            let one = self.get(row);
            self.splat_parts(ty, one)
        } else if let Some(stride) = self.shape.kernel.stride(row) {
            let first = self.get(row);
            let first = self.splat(ty, first);
            (0..self.part_count(ty))
                .map(|part| {
                    let steps = self.multiples(ty, stride, part);
                    self.b.ins().iadd(first, steps)
                })
                .collect()
        } else if self.shape.cheap[row.index()] {
            self.compute_parts(row)
        } else {
            let slot = self.slot_elsewhere(row);
            self.read_parts(slot)
        };
        self.know_parts(row, parts.clone());
        parts
    }

    fn know_parts(&mut self, row: ValueId, parts: Parts) {
        self.vectors.insert(row, parts);
        self.log.push(Known::Lanes(row));
    }

    /// Makes a row known that is defined here, and keeps it if somebody needs it elsewhere.
    pub(super) fn define_parts(&mut self, row: ValueId, parts: Parts) {
        self.defined_in[row.index()] = self.segment;
        if let Some(slot) = self.slot_to_write(row) {
            self.write_parts(slot, &parts);
        }
        self.know_parts(row, parts);
    }

    /// The same for a row of which the first lane says all.
    pub(super) fn define_first(&mut self, row: ValueId, first: ir::Value) {
        self.know(row, first);
        self.defined_in[row.index()] = self.segment;
        if let Some(slot) = self.slot_to_write(row) {
            let parts = self.vector(row);
            self.write_parts(slot, &parts);
        }
    }

    /// Computes the rows of lane code before an item.
    pub(super) fn vector_rows(&mut self, region: RegionId, position: u32) {
        let shape = self.shape;
        for (_, row) in shape.rows_at(region, position) {
            if shape.defined[row.index()] < Level::Lane || shape.cheap[row.index()] {
                continue;
            }
            if shape.kernel.stride(*row).is_some() {
                let first = self.compute(*row, Self::get);
                self.define_first(*row, first);
            } else {
                let parts = self.compute_parts(*row);
                self.define_parts(*row, parts);
            }
        }
    }

    fn compute_parts(&mut self, row: ValueId) -> Parts {
        let value = self.shape.kernel.value(row);
        match value {
            Value::Load { buffer, index, .. } => self.load_parts(Access::Row(row), buffer, index),
            Value::SubgroupLane => self.subgroup_lanes(),
            _ if !self.has_vector_form(value) => self.one_by_one(row),
            Value::Binary { op: op @ (BinOp::Div | BinOp::Rem), ty, a, b } if ty != Type::F32 => {
                self.divide_by_power(op == BinOp::Div, ty, a, b)
            }
            Value::Binary { op: BinOp::Ne, ty, a, b } if is_wide(ty) => self.differ(a, b),
            Value::Binary { ty, .. } if is_wide(ty) && value.ty() == Type::Bool => {
                let masks = self.by_parts(ty, row);
                self.narrow_masks(&masks)
            }
            Value::Select { cond, a, b, ty } if is_wide(ty) => {
                let [cond, a, b] = [cond, a, b].map(|row| self.vector(row));
                self.choose_parts(ty, &cond, &a, &b)
            }
            Value::Cast { from, to, a } if is_wide(from) != is_wide(to) => self.cast_width(from, to, a),
            _ => self.by_parts(value.ty(), row),
        }
    }

    /// Computes each part of parts as one lane is computed.
    fn by_parts(&mut self, ty: Type, row: ValueId) -> Parts {
        let count = self.part_count(ty);
        let compute = |part: usize| {
            self.set_part(part);
            self.compute(row, Self::part)
        };
        (0..count).map(compute).collect()
    }

    /// The part at hand of an operand.
    fn part(&mut self, row: ValueId) -> ir::Value {
        let part = self.bundle.as_ref().map_or(0, |bundle| bundle.part);
        let parts = self.vector(row);
        // Others may have been computed for it.
        self.set_part(part);
        parts[part]
    }

    fn set_part(&mut self, part: usize) {
        if let Some(bundle) = &mut self.bundle {
            bundle.part = part;
        }
    }

    /// Whether an operator has a form for vectors.
    pub(super) fn has_vector_form(&self, value: Value) -> bool {
        match value {
            Value::Binary { op: BinOp::Div, ty: Type::F32, .. } => true,
            Value::Binary { op: BinOp::Div | BinOp::Rem, ty, b, .. } => {
                !ty.is_signed() && self.power_of_two(b).is_some()
            }
            Value::Binary { op: BinOp::MulHi, .. } => false,
            Value::Binary { op, b, .. } => !is_shift(op) || self.is_same(b),
            Value::Unary { op: UnOp::Popcount | UnOp::Clz | UnOp::Ctz | UnOp::ReverseBits, .. } => false,
            Value::Unary { op: UnOp::Floor | UnOp::Ceil | UnOp::Trunc | UnOp::Round, .. } => {
                self.target.round
            }
            Value::Cast { from: Type::F32, to, .. } => !is_wide(to),
            Value::Cast { from, to: Type::F32, .. } => !is_wide(from),
            Value::Fma { .. } => self.target.fma,
            _ => true,
        }
    }

    /// Computes a row lane by lane.
    fn one_by_one(&mut self, row: ValueId) -> Parts {
        let ty = self.shape.kernel.value(row).ty();
        let lanes = 0..self.bundle_lanes();
        let values: Vec<ir::Value> =
            lanes.map(|number| self.with_lane(number, |e| e.compute(row, Self::get))).collect();
        self.build(ty, &values)
    }

    fn subgroup_lanes(&mut self) -> Parts {
        let lane = self.lane_index();
        let lane = self.b.ins().ireduce(I32, lane);
        let lanes = self.steps_from(lane);
        let most = self.number_like(lanes[0], i64::from(self.shape.kernel.subgroup_size - 1));
        lanes.into_iter().map(|lanes| self.b.ins().band(lanes, most)).collect()
    }

    fn power_of_two(&self, row: ValueId) -> Option<u64> {
        let Value::Const(literal @ (Literal::U32(_) | Literal::U64(_))) = self.shape.kernel.value(row) else {
            return None;
        };
        literal.bits().is_power_of_two().then(|| literal.bits())
    }

    /// A quotient or rest of division by a power of two.
    fn divide_by_power(&mut self, quotient: bool, ty: Type, a: ValueId, b: ValueId) -> Parts {
        let power = self.power_of_two(b).unwrap_or(1);
        let parts = self.vector(a);
        let divide = |a: &ir::Value| {
            if quotient {
                let by = self.b.ins().iconst(I32, i64::from(power.trailing_zeros()));
                self.b.ins().ushr(*a, by)
            } else {
                let rest = self.number_of(ty, *a, power - 1);
                self.b.ins().band(*a, rest)
            }
        };
        parts.iter().map(divide).collect()
    }

    fn number_of(&mut self, ty: Type, like: ir::Value, number: u64) -> ir::Value {
        let number = if is_wide(ty) { number as i64 } else { i64::from(number as u32) };
        self.number_like(like, number)
    }

    /// A conversion between lanes of 32 and of 64 bits.
    fn cast_width(&mut self, from: Type, to: Type, a: ValueId) -> Parts {
        let parts = self.vector(a);
        if to == Type::Bool {
            let masks: Parts = parts.iter().map(|part| self.cast(from, to, *part)).collect();
            return self.narrow_masks(&masks);
        }
        if is_wide(from) {
            return self.narrow_parts(&parts);
        }
        let wide = self.widen_parts(from == Type::Bool || from.is_signed(), &parts);
        if from == Type::Bool { wide.iter().map(|part| self.cast(from, to, *part)).collect() } else { wide }
    }

    /// Lanes of 32 bits as lanes of 64.
    fn widen_parts(&mut self, signed: bool, parts: &Parts) -> Parts {
        let mut wide = Parts::new();
        for part in parts {
            if let (true, Some(halves)) = (signed, self.wide_masks.get(part)) {
                wide.extend(*halves);
                continue;
            }
            wide.push(match signed {
                true => self.b.ins().swiden_low(*part),
                false => self.b.ins().uwiden_low(*part),
            });
            wide.push(match signed {
                true => self.b.ins().swiden_high(*part),
                false => self.b.ins().uwiden_high(*part),
            });
        }
        wide
    }

    /// One value or another in each lane.
    pub(super) fn choose_parts(&mut self, ty: Type, mask: &Parts, a: &Parts, b: &Parts) -> Parts {
        let mask = if is_wide(ty) { self.widen_parts(true, mask) } else { mask.clone() };
        (0..a.len()).map(|part| self.choose_or_keep(mask[part], a[part], b[part])).collect()
    }

    /// Whether lanes of 64 bits differ. There is an instruction for equal ones only, and what it gives is turned over where
    /// it is narrow already.
    fn differ(&mut self, a: ValueId, b: ValueId) -> Parts {
        let [a, b] = [a, b].map(|row| self.vector(row));
        let equal: Parts = a.iter().zip(&b).map(|(a, b)| self.icmp(IntCC::Equal, *a, *b)).collect();
        let narrow = self.narrow_masks(&equal);
        let turn = |(narrow, equal): (&ir::Value, &[ir::Value])| {
            let differ = self.b.ins().bnot(*narrow);
            let wide = [equal[0], equal[1]].map(|part| self.b.ins().bnot(part));
            self.wide_masks.insert(differ, wide);
            differ
        };
        narrow.iter().zip(equal.chunks_exact(2)).map(turn).collect()
    }

    /// One value or another in each lane. What is the other with something added is that with the mask of it added.
    fn choose_or_keep(&mut self, mask: ir::Value, a: ir::Value, b: ir::Value) -> ir::Value {
        let dfg = &self.b.func.dfg;
        if let Some(inst) = dfg.value_def(a).inst()
            && let InstructionData::Binary { opcode: Opcode::Iadd, args: [x, y] } = dfg.insts[inst]
            && let Some(added) = if x == b { Some(y) } else { (y == b).then_some(x) }
        {
            // A lane of a mask that is set is a number, too: less by one than zero.
            if self.immediate(added) == Some(1) {
                return self.b.ins().isub(b, mask);
            }
            let added = self.b.ins().band(added, mask);
            return self.b.ins().iadd(b, added);
        }
        self.choose(mask, a, b)
    }

    /// The lower halves of lanes of 64 bits.
    fn narrow_parts(&mut self, parts: &Parts) -> Parts {
        let places: Vec<u8> = (0..4u8).flat_map(|lane| (0..4).map(move |byte| lane * 8 + byte)).collect();
        let places = self.b.func.dfg.immediates.push(ConstantData::from(places.as_slice()));
        let halves = |pair: &[ir::Value]| {
            let [low, high] = [pair[0], pair[1]].map(|part| self.retype(I8X16, part));
            let bytes = self.b.ins().shuffle(low, high, places);
            self.retype(I32X4, bytes)
        };
        parts.chunks_exact(2).map(halves).collect()
    }

    /// Truth values of lanes of 64 bits. They are often wanted in such lanes again.
    fn narrow_masks(&mut self, masks: &Parts) -> Parts {
        let narrow = self.narrow_parts(masks);
        for (narrow, wide) in narrow.iter().zip(masks.chunks_exact(2)) {
            self.wide_masks.insert(*narrow, [wide[0], wide[1]]);
        }
        narrow
    }

    /// The bits of a vector as another one.
    pub(super) fn retype(&mut self, ty: ir::Type, value: ir::Value) -> ir::Value {
        let flags = MemFlagsData::new().with_endianness(ir::Endianness::Little);
        self.b.ins().bitcast(ty, flags, value)
    }

    /// One lane of parts.
    pub(super) fn extract(&mut self, ty: Type, parts: &Parts, number: u32) -> ir::Value {
        let lanes = BYTES / width(ty);
        let lane = self.b.ins().extractlane(parts[(number / lanes) as usize], (number % lanes) as u8);
        if ty != Type::Bool {
            return lane;
        }
        let bit = self.b.ins().band_imm_u(lane, 1);
        self.b.ins().ireduce(I8, bit)
    }

    /// The parts that some lanes make.
    pub(super) fn build(&mut self, ty: Type, lanes: &[ir::Value]) -> Parts {
        let vector = vector_type(ty);
        let whole: Vec<ir::Value> = lanes.iter().map(|lane| self.whole(ty, *lane)).collect();
        let join = |lanes: &[ir::Value]| {
            let first = self.b.ins().scalar_to_vector(vector, lanes[0]);
            let with = |e: &mut Self, parts, (number, lane): (usize, ir::Value)| {
                e.b.ins().insertlane(parts, lane, number as u8)
            };
            (1..).zip(lanes[1..].iter().copied()).fold(first, |parts, lane| with(self, parts, lane))
        };
        whole.chunks_exact((BYTES / width(ty)) as usize).map(join).collect()
    }

    /// A value as it stands in a lane of a vector.
    fn whole(&mut self, ty: Type, value: ir::Value) -> ir::Value {
        if ty != Type::Bool {
            return value;
        }
        let number = self.b.ins().uextend(I32, value);
        self.b.ins().ineg(number)
    }

    /// A value of one lane in all lanes of a vector.
    pub(super) fn splat(&mut self, ty: Type, value: ir::Value) -> ir::Value {
        let value = self.whole(ty, value);
        self.b.ins().splat(vector_type(ty), value)
    }

    pub(super) fn splat_parts(&mut self, ty: Type, value: ir::Value) -> Parts {
        let vector = self.splat(ty, value);
        SmallVec::from_elem(vector, self.part_count(ty))
    }

    /// Numbers that follow each other, from one on.
    pub(super) fn steps_from(&mut self, first: ir::Value) -> Parts {
        let first = self.splat(Type::U32, first);
        (0..self.part_count(Type::U32))
            .map(|part| {
                let steps = self.multiples(Type::U32, 1, part);
                self.b.ins().iadd(first, steps)
            })
            .collect()
    }

    /// Multiples of a number, for the lanes of a part.
    fn multiples(&mut self, ty: Type, stride: i32, part: usize) -> ir::Value {
        let lanes = (BYTES / width(ty)) as i64;
        let numbers = (0..lanes).map(|lane| (part as i64 * lanes + lane).wrapping_mul(i64::from(stride)));
        let bytes: Vec<u8> = if is_wide(ty) {
            numbers.flat_map(i64::to_le_bytes).collect()
        } else {
            numbers.flat_map(|number| (number as i32).to_le_bytes()).collect()
        };
        let constant = self.b.func.dfg.constants.insert(ConstantData::from(bytes.as_slice()));
        self.b.ins().vconst(vector_type(ty), constant)
    }

    /// Loads a vector. Before AVX, instructions take operands from aligned addresses only. The compiler heeds that but for
    /// comparisons of floats, so what they compare is loaded as integers, by an instruction of its own.
    pub(super) fn load_lanes(
        &mut self,
        ty: Type,
        flags: MemFlagsData,
        address: ir::Value,
        offset: i32,
    ) -> ir::Value {
        if ty == Type::F32 && !self.target.unaligned {
            let bits = self.b.ins().load(I32X4, flags, address, offset);
            return self.as_f32(bits);
        }
        self.b.ins().load(vector_type(ty), flags, address, offset)
    }

    fn read_parts(&mut self, slot: Slot) -> Parts {
        let address = self.slot_address(slot);
        let count = self.part_count(slot.ty);
        let read = |part: usize| {
            let offset = slot.offset + (part as u32 * BYTES) as i32;
            let value = self.load_lanes(slot.ty, self.own_flags, address, offset);
            if slot.ty == Type::Bool { self.cast(Type::U32, Type::Bool, value) } else { value }
        };
        (0..count).map(read).collect()
    }

    /// Writes a slot for all lanes of the bundle, whose elements stand side by side.
    fn write_parts(&mut self, slot: Slot, parts: &Parts) {
        let address = self.slot_address(slot);
        for (part, value) in (0..).zip(parts) {
            let value = if slot.ty == Type::Bool { self.cast(Type::Bool, Type::U32, *value) } else { *value };
            self.b.ins().store(self.own_flags, value, address, slot.offset + part * BYTES as i32);
        }
    }
}

/// How a value stands in a vector; truth values are lanes full of ones or zeros.
pub(super) fn vector_type(ty: Type) -> ir::Type {
    match ty {
        Type::Bool => I32X4,
        Type::U64 | Type::I64 => I64X2,
        _ => clif_type(ty).by(LANES).unwrap_or(I32X4),
    }
}
