//! The CPU backend of vyre: any machine, nothing to install, all cores.
//!
//! A kernel becomes one function of machine code (`shape` says how it is laid out), each worker of a pool calls
//! it once per launch, and each takes workgroups from its share and then from the others'.

mod backend;
mod calls;
mod code;
mod compile;
mod context;
mod emit;
mod execute;
mod faults;
mod launch;
mod memory;
mod pipeline;
mod pool;
mod shape;
mod shares;
mod timer;

pub use backend::{CpuBackend, CpuOptions};
pub use compile::{Instructions, Listing, Simd};
pub use memory::Placement;

/// The name of the backend.
pub const NAME: &str = "cpu";

#[cfg(test)]
mod tests;
