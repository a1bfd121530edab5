//! From a kernel to a naga module.
//!
//! Group 0 is all that a shader binds. Binding 0 is a uniform buffer, the *parameters* of a launch, an array of
//! `vec4<u32>`:
//!
//! | words | what |
//! |---|---|
//! | 0, 1, 2 | the workgroups of the whole grid on each axis |
//! | 3 | zero, which the driver cannot know |
//! | 4, 5, 6 | the first workgroup of this launch on each axis |
//! | 7 | unused |
//! | 8 + 2k | where slot k begins in what is bound for it, in elements |
//! | 9 + 2k | how many elements slot k has |
//!
//! From binding 1 on the slots follow, in the order of the binding plan, each with as many storage bindings as it has
//! windows. A slot larger than a binding may be is bound in windows of one size; the element decides which is used.

use vyre_driver::{Error, Result};
use vyre_lower::Kernel;

/// The entry point of every module.
pub(crate) const ENTRY: &str = "main";

/// What decides how a kernel is emitted, beside the kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Form {
    /// How many bindings each slot takes, at least one.
    pub(crate) windows: Vec<u32>,
    /// The size of a window of a slot that has several, as a power of two of bytes.
    pub(crate) window_bits: u32,
    /// Whether floats are the device's own.
    pub(crate) native_floats: bool,
}

/// How many words the parameters of a launch with so many slots take, a multiple of four.
pub(crate) fn parameter_words(slots: usize) -> usize {
    (8 + 2 * slots).next_multiple_of(4)
}

/// The module of a kernel that has no traps and no grid barriers.
pub(crate) fn emit(kernel: &Kernel, form: &Form) -> Result<naga::Module> {
    let _ = (kernel, form);
    Err(Error::Internal("not written yet".to_owned()))
}
