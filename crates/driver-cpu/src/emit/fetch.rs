//! Memory that is fetched before it is needed.
//!
//! A run that goes through large buffers side by side waits for memory. The machine sees where it goes and fetches what
//! comes next, but not far enough ahead for vectors of 128 bits: only so many instructions are under way at once, and
//! these cover half of what wider vectors do. So on machines where that was seen a bundle that loads from such a buffer asks
//! for what a bundle some way ahead will load.

use super::Emitter;
use crate::context::{Calls, Context};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder};
use cranelift_codegen::isa::CallConv;
use std::mem::offset_of;
use vyre_foundation::BufferAccess;

/// How far ahead, in bytes.
const AHEAD: i64 = 2048;

/// What is fetched at once, in bytes.
const LINE: i64 = 64;

/// From how many bytes on a buffer is not in a cache that is near: asking for what is there already takes time.
const LARGE: i64 = 16 << 20;

impl Emitter<'_, '_> {
    /// Before a bundle loads elements side by side: asks for those of a later one, unless it has done so for this buffer.
    pub(super) fn fetch_ahead(&mut self, buffer: u32, address: ir::Value) {
        let decl = &self.shape.kernel.buffers[buffer as usize];
        let size = decl.element().size() as i64;
        let bytes = i64::from(self.bundle_lanes()) * size;
        let is_small = decl.count().is_some_and(|count| i64::from(count) * size < LARGE);
        let is_own = matches!(decl.access(), BufferAccess::Workgroup | BufferAccess::Local);
        // In a loop the next bundle is somewhere else in the next round.
        let is_in_loop = self.group_loops > 0;
        if !self.target.fetch || bytes < LINE || is_small || is_own || is_in_loop {
            return;
        }
        let Some(bundle) = self.bundle.as_mut().filter(|bundle| !bundle.is_asked) else { return };
        let Some(fetched) = bundle.fetched.as_mut().filter(|fetched| !fetched.contains(&buffer)) else {
            return;
        };
        fetched.push(buffer);
        let count = self.count(buffer);
        let is_large = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, count, LARGE / size);
        let [fetch, behind] = [0; 2].map(|_| self.b.create_block());
        self.b.ins().brif(is_large, fetch, &[], behind, &[]);
        self.b.switch_to_block(fetch);
        let mut signature = ir::Signature::new(CallConv::PreserveAll);
        signature.params.push(AbiParam::new(self.target.pointer));
        let signature = self.b.import_signature(signature);
        let offset = offset_of!(Context, calls) + offset_of!(Calls, fetch);
        let function = self.context_field(self.target.pointer, offset);
        for line in 0..bytes / LINE {
            let ahead = self.b.ins().iadd_imm_s(address, AHEAD + line * LINE);
            self.b.ins().call_indirect(signature, function, &[ahead]);
        }
        self.b.ins().jump(behind, &[]);
        self.b.switch_to_block(behind);
    }
}
