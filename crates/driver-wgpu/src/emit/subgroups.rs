//! Subgroup operations through workgroup memory: a device may choose subgroups of any size, a program has one.
//!
//! Every invocation of the workgroup takes part, also those that have ended, with values that change nothing. Each puts
//! its value where the others find it; barriers before and after keep one exchange from the next.

use super::{Emitter, Value, scalar};
use naga::{GlobalVariable, Handle, LocalVariable, Scalar, ScalarKind, Statement};
use vyre_driver::Result;
use vyre_foundation::{BinOp, Scope, SubgroupOp, Type};
use vyre_lower::{Item, Kernel, ValueId};

/// How much workgroup memory the subgroup operations of a kernel take.
pub(crate) fn exchange_bytes(kernel: &Kernel) -> u64 {
    let lanes = kernel.workgroup_size.invocations();
    let mut widths = [0, 0];
    for item in kernel.region_ids().flat_map(|region| kernel.region(region)) {
        let ty = match kernel.item(item) {
            Item::Ballot { .. } => Type::Bool,
            Item::Shuffle { value, .. } | Item::Reduce { value, .. } => kernel.value(value).ty(),
            _ => continue,
        };
        let is_wide = ty.bits() == 64;
        widths[usize::from(is_wide)] = if is_wide { 8 } else { 4 };
    }
    lanes * (widths[0] + widths[1])
}

impl Emitter<'_> {
    fn lanes(&self) -> u32 {
        self.kernel.workgroup_size.invocations() as u32
    }

    /// Workgroup memory with a place per lane, of words or of double words.
    fn exchange(&mut self, is_wide: bool) -> Handle<GlobalVariable> {
        if let Some(known) = self.exchange[usize::from(is_wide)] {
            return known;
        }
        let scalar = if is_wide { Scalar::U64 } else { Scalar::U32 };
        let ty = self.b.array_type(scalar, false, Some(self.lanes()));
        let memory = self.b.workgroup(if is_wide { "exchange64" } else { "exchange32" }, ty);
        self.exchange[usize::from(is_wide)] = Some(memory);
        memory
    }

    /// Puts the value of each lane where the others find it.
    fn offer(&mut self, value: Value, ty: Type) -> Result<Handle<GlobalVariable>> {
        let memory = self.exchange(ty.bits() == 64);
        let offered = match ty {
            Type::Bool => {
                let (one, zero) = (self.b.u32(1), self.b.u32(0));
                self.b.select(value, one, zero)
            }
            Type::I32 | Type::I64 => self.b.bits_as(value, ScalarKind::Uint),
            _ => value,
        };
        let base = self.b.global_value(memory);
        let pointer = self.b.access(base, self.arguments.index);
        self.b.store(pointer, offered);
        self.barrier(Scope::Workgroup)?;
        Ok(memory)
    }

    /// What a lane offered, by its number in the workgroup.
    fn offered(&mut self, memory: Handle<GlobalVariable>, lane: Value, ty: Type) -> Value {
        let base = self.b.global_value(memory);
        let pointer = self.b.access(base, lane);
        let bits = self.b.load(pointer);
        match ty {
            Type::Bool => {
                let zero = self.b.u32(0);
                self.b.binary(naga::BinaryOperator::NotEqual, bits, zero)
            }
            Type::I32 | Type::I64 => self.b.bits_as(bits, ScalarKind::Sint),
            _ => bits,
        }
    }

    /// The first lane of the subgroup of this one.
    fn first_lane(&mut self) -> Value {
        let mask = self.b.u32(!(self.kernel.subgroup_size - 1));
        self.b.and(self.arguments.index, mask)
    }

    /// The value of another lane of the subgroup; zero of one that is not there.
    pub(super) fn shuffle(&mut self, value: ValueId, lane: ValueId) -> Result<Value> {
        let ty = self.kernel.value(value).ty();
        let (value, lane) = (self.get(value)?, self.get(lane)?);
        let memory = self.offer(value, ty)?;
        let first = self.first_lane();
        let size = self.b.u32(self.kernel.subgroup_size);
        let lanes = self.b.u32(self.lanes());
        let is_one = self.b.less(lane, size);
        let wanted = self.b.add(first, lane);
        let is_there = self.b.less(wanted, lanes);
        let is_there = self.b.both(is_one, is_there);
        let safe = self.b.select(is_there, wanted, self.arguments.index);
        let found = self.offered(memory, safe, ty);
        let zero = self.zero_of(ty);
        let result = self.b.select(is_there, found, zero);
        self.barrier(Scope::Workgroup)?;
        Ok(result)
    }

    pub(super) fn ballot(&mut self, cond: ValueId) -> Result<Value> {
        let cond = self.get(cond)?;
        let wide = self.kernel.subgroup_size == 64;
        let ty = if wide { Type::U64 } else { Type::U32 };
        let zero = self.zero_of(ty);
        self.fold(cond, Type::Bool, (ty, zero), &mut |emitter, votes, vote, lane| {
            let one = if wide { emitter.b.u64(1) } else { emitter.b.u32(1) };
            let zero = emitter.zero_of(ty);
            let bit = emitter.b.shl(one, lane);
            let bit = emitter.b.select(vote, bit, zero);
            emitter.b.or(votes, bit)
        })
    }

    pub(super) fn reduce(&mut self, op: SubgroupOp, value: ValueId) -> Result<Value> {
        let ty = self.kernel.value(value).ty();
        let value = self.get(value)?;
        let op = op.combine();
        let begin = self.identity(op, ty);
        self.fold(value, ty, (ty, begin), &mut |emitter, sum, offered, _| {
            emitter.integer_binary(op, ty, sum, offered, vyre_lower::Value::SubgroupLane)
        })
    }

    /// The value that changes nothing.
    fn identity(&mut self, op: BinOp, ty: Type) -> Value {
        let ones = if ty.bits() == 64 { u64::MAX } else { u64::from(u32::MAX) };
        let sign = 1u64 << (ty.bits() - 1);
        let bits = match (op, ty.is_signed()) {
            (BinOp::Mul, _) => 1,
            (BinOp::BitAnd, _) | (BinOp::Min, false) => ones,
            (BinOp::Min, true) => ones ^ sign,
            (BinOp::Max, true) => sign,
            _ => 0,
        };
        self.constant(vyre_foundation::Literal::from_bits(ty, bits))
    }

    /// Goes over what the lanes of the subgroup offer, from the first one on.
    fn fold(
        &mut self,
        value: Value,
        ty: Type,
        (gives, begin): (Type, Value),
        step: &mut dyn FnMut(&mut Self, Value, Value, Value) -> Value,
    ) -> Result<Value> {
        let memory = self.offer(value, ty)?;
        let first = self.first_lane();
        let result_type = self.b.scalar_type(scalar(gives));
        let word = self.b.scalar_type(Scalar::U32);
        let (sum, lane): (Handle<LocalVariable>, _) = (self.b.local(result_type), self.b.local(word));
        let zero = self.b.u32(0);
        self.b.store_local(sum, begin);
        self.b.store_local(lane, zero);
        let watched = self.begin_watch();
        self.b.open();
        let (so_far, here) = (self.b.load_local(sum), self.b.load_local(lane));
        let place = self.b.add(first, here);
        let offered = self.offered(memory, place, ty);
        let next = step(self, so_far, offered, here);
        self.b.store_local(sum, next);
        let one = self.b.u32(1);
        let after = self.b.add(here, one);
        self.b.store_local(lane, after);
        // The last subgroup of a workgroup may have fewer lanes.
        let (size, lanes) = (self.b.u32(self.kernel.subgroup_size), self.b.u32(self.lanes()));
        let place = self.b.add(first, after);
        let (in_subgroup, in_workgroup) = (self.b.less(after, size), self.b.less(place, lanes));
        let again = self.b.both(in_subgroup, in_workgroup);
        self.note_round(watched, again);
        let done = self.b.not(again);
        let body = self.b.close();
        self.b.push(Statement::Loop { body, continuing: naga::Block::new(), break_if: Some(done) });
        self.end_watch(watched);
        let result = self.b.load_local(sum);
        self.barrier(Scope::Workgroup)?;
        Ok(result)
    }
}
