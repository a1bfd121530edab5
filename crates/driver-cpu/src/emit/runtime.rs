//! What generated code asks of the runtime: fields of the context, the stop flag, and the functions that it calls.

use super::bounds::Access;
use super::slots::Key;
use super::{Emitter, clif_type};
use crate::calls::SubgroupCode;
use crate::context::{Calls, Context, Left, Next};
use crate::shape::{Level, Rounds};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{self, AbiParam, Block, InstBuilder, MemFlagsData};
use std::mem::offset_of;
use vyre_lower::{ItemId, ValueId};

impl Emitter<'_, '_> {
    /// Leaves if work is to stop. The load is atomic so that nothing merges it with an earlier one.
    pub(super) fn check_stop(&mut self) {
        let address = self.context_field(self.target.pointer, offset_of!(Context, stop));
        let flags = MemFlagsData::new().with_notrap().with_aligned();
        let stop = self.b.ins().atomic_load(I32, flags, address);
        self.leave_if(stop);
    }

    /// The same in each round of a loop, unless that makes few.
    pub(super) fn check_stop_in(&mut self, id: ItemId) {
        if !matches!(self.shape.rounds[id.index()], Rounds::Few(_)) {
            self.check_stop();
        }
    }

    /// Says that a block seldom runs, so that it stands behind all others. Not in large kernels: registers are allocated in
    /// one pass from the end there, and what a block needs would take its time in all blocks between.
    pub(super) fn seldom(&mut self, block: Block) {
        if !self.shape.is_large {
            self.b.set_cold_block(block);
        }
    }

    /// Meets the other workers, and leaves if work is to stop. At a barrier of the program it also stops where an
    /// invocation has trapped.
    pub(super) fn meet(&mut self, is_barrier: bool) {
        let pointer = self.target.pointer;
        let is_barrier = self.b.ins().iconst(I32, i64::from(is_barrier));
        let arguments = [self.context, self.worker, is_barrier];
        let leaves = self.call_for(offset_of!(Calls, meet), &[pointer, pointer, I32], I32, &arguments);
        self.leave_if(leaves);
        self.has_read = false;
    }

    /// A barrier of the program with nothing done since the last meeting: only traps before that one matter.
    pub(super) fn meet_again(&mut self) {
        let flags = MemFlagsData::new().with_notrap().with_aligned();
        let trapped = offset_of!(Context, left) + offset_of!(Left, trapped);
        let trapped = self.b.ins().load(I32, flags, self.context, trapped as i32);
        self.leave_if(trapped);
    }

    /// A barrier of the program at which the last to arrive makes one load for all. It is alone then: what the others
    /// wrote is there, and nobody writes until it is done, so that one meeting is enough.
    pub(super) fn load_for_all(&mut self, id: ItemId, buffer: u32, index: ValueId) -> ir::Value {
        let pointer = self.target.pointer;
        let arguments = [self.context, self.worker];
        let next = self.call_for(offset_of!(Calls, arrive), &[pointer, pointer], I32, &arguments);
        let [turn, other, on] = [0; 3].map(|_| self.b.create_block());
        let has_turn = self.b.ins().icmp_imm_u(IntCC::Equal, next, i64::from(Next::Turn as u32));
        self.b.ins().brif(has_turn, turn, &[], other, &[]);
        self.b.switch_to_block(other);
        self.b.ins().brif(next, self.leave, &[], on, &[]);

        self.b.switch_to_block(turn);
        let flags = MemFlagsData::new().with_notrap().with_aligned();
        let loaded = (offset_of!(Context, left) + offset_of!(Left, loaded)) as i32;
        let mark = self.log.len();
        let value = self.load(Access::Item(id), buffer, index);
        self.b.ins().store(flags, value, self.context, loaded);
        self.call(offset_of!(Calls, open), &[pointer], &[self.worker]);
        self.b.ins().jump(on, &[]);
        // What the one has found out for its load the others do not know.
        self.forget(mark);

        self.b.switch_to_block(on);
        self.has_read = false;
        let ty = self.shape.kernel.buffers[buffer as usize].element().value_type();
        self.b.ins().load(clif_type(ty), flags, self.context, loaded)
    }

    /// Leaves where a word is not zero.
    fn leave_if(&mut self, word: ir::Value) {
        let on = self.b.create_block();
        self.b.ins().brif(word, self.leave, &[], on, &[]);
        self.b.switch_to_block(on);
    }

    /// A subgroup operation over the slots of its operands, for all lanes at once.
    pub(super) fn subgroup(&mut self, id: ItemId, code: SubgroupCode) {
        let operands = self.shape.kernel.item(id).operands();
        let mut addresses: Vec<ir::Value> = Vec::new();
        for (i, operand) in (0..).zip(&operands) {
            let ty = self.shape.kernel.value(*operand).ty();
            let slot = self.slots.get(Key::Operand(id, i), ty, Level::Lane, false);
            addresses.push(self.slot_base(slot));
        }
        addresses.resize(2, self.frame);
        let Some(row) = self.shape.result(id, 0) else { return };
        let slot = self.slot_of_row(row, false);
        let result = self.slot_base(slot);
        self.defined_in[row.index()] = self.segment;
        let number = |emitter: &mut Self, n: u32| emitter.b.ins().iconst(I32, i64::from(n));
        let code = number(self, code.number());
        let size = number(self, self.shape.kernel.subgroup_size);
        let lanes = number(self, self.shape.lanes);
        let p = self.target.pointer;
        let arguments = [code, size, lanes, addresses[0], addresses[1], result];
        self.call(offset_of!(Calls, subgroup), &[I32, I32, I32, p, p, p], &arguments);
    }

    /// Calls a function of the context that gives nothing.
    pub(super) fn call(&mut self, function: usize, params: &[ir::Type], arguments: &[ir::Value]) {
        self.call_inst(function, params, None, arguments);
    }

    /// Calls a function of the context for its result.
    pub(super) fn call_for(
        &mut self,
        function: usize,
        params: &[ir::Type],
        result: ir::Type,
        arguments: &[ir::Value],
    ) -> ir::Value {
        let call = self.call_inst(function, params, Some(result), arguments);
        self.b.inst_results(call)[0]
    }

    fn call_inst(
        &mut self,
        function: usize,
        params: &[ir::Type],
        result: Option<ir::Type>,
        arguments: &[ir::Value],
    ) -> ir::Inst {
        let mut signature = ir::Signature::new(self.target.call_conv);
        signature.params.extend(params.iter().map(|ty| AbiParam::new(*ty)));
        signature.returns.extend(result.map(AbiParam::new));
        let signature = self.b.import_signature(signature);
        let offset = offset_of!(Context, calls) + function;
        let address = self.context_field(self.target.pointer, offset);
        self.b.ins().call_indirect(signature, address, arguments)
    }

    /// A field of the context that does not change while code runs.
    pub(super) fn context_field(&mut self, ty: ir::Type, offset: usize) -> ir::Value {
        let flags = MemFlagsData::new().with_notrap().with_aligned().with_readonly().with_can_move();
        self.b.ins().load(ty, flags, self.context, offset as i32)
    }
}
