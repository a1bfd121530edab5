//! Which memory a launch needs: one binding per buffer that the whole grid shares.

use vyre_foundation::{BufferDecl, Program};

/// The buffers of a program that a launch binds, in declaration order. Workgroup and local memory is the
/// backend's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindingPlan {
    slots: Vec<BufferDecl>,
}

impl BindingPlan {
    /// The plan of a program.
    pub fn of(program: &Program) -> BindingPlan {
        let shared = program.buffers().iter().filter(|buffer| buffer.access().is_shared_by_grid());
        BindingPlan { slots: shared.cloned().collect() }
    }

    /// What each binding is for.
    pub fn slots(&self) -> &[BufferDecl] {
        &self.slots
    }
}
