//! vyre: compute programs that give the same bytes everywhere.
//!
//! Programs are written as text ([`Program::parse`]) or in Rust with the typed [builder](build):
//!
//! ```
//! use vyre::prelude::*;
//!
//! let program = vyre::program("saxpy", |k| {
//!     k.workgroup_size(64);
//!     let x = k.read::<f32>("x");
//!     let y = k.read_write::<f32>("y");
//!     let i = k.global_id().x;
//!     k.if_(i.lt(y.len()), || y.store(i, 2.0 * x.load(i) + y.load(i)));
//! })?;
//! assert_eq!(
//!     program.to_string(),
//!     "program saxpy {
//!     workgroup_size 64;
//!
//!     buffer x: read f32[];
//!     buffer y: read_write f32[];
//!
//!     if global_id.x < len(y) {
//!         y[global_id.x] = 2.0 * x[global_id.x] + y[global_id.x];
//!     }
//! }
//! "
//! );
//! # Ok::<(), BuildError>(())
//! ```

pub mod build;

pub use build::{BuildError, program};
pub use vyre_foundation::Program;

/// What programs written in Rust need.
pub mod prelude {
    pub use crate::build::{Buffer, BuildError, Function, IntoValue, Kernel, Value, Var, access, bf16, f16};
    pub use vyre_foundation::{MemoryOrdering, Program, Scope};
}
