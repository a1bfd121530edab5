//! vyre: compute programs that give the same bytes everywhere.
//!
//! Write a program with the typed [builder](build), or as text ([`Program::parse`]); pick a backend; run; read back:
//!
//! ```
//! use vyre::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let program = vyre::program("saxpy", |k| {
//!     let (x, y) = (k.read::<f32>("x"), k.read_write::<f32>("y"));
//!     let i = k.global_id().x;
//!     k.if_(i.lt(y.len()), || y.store(i, 2.0 * x.load(i) + y.load(i)));
//! })?;
//! let backend = vyre::backend()?;
//! let x = backend.device_buffer_from(&[1.0f32, 2.0, 3.0])?;
//! let y = backend.device_buffer_from(&[10.0f32, 20.0, 30.0])?;
//! backend.dispatch_with_device_buffers(&program, &[&x, &y], &DispatchConfig::new())?;
//! assert_eq!(y.download()?, [12.0, 24.0, 36.0]);
//! # Ok(())
//! # }
//! ```
//!
//! What was built is an ordinary program, and prints as one:
//!
//! ```
//! # use vyre::prelude::*;
//! let program = vyre::program("double", |k| {
//!     let x = k.read_write::<u32>("x");
//!     let i = k.global_id().x;
//!     x.store(i, x.load(i) * 2);
//! })?;
//! assert_eq!(
//!     program.to_string(),
//!     "program double {
//!     buffer x: read_write u32[];
//!
//!     x[global_id.x] = x[global_id.x] * 2;
//! }
//! "
//! );
//! # Ok::<(), BuildError>(())
//! ```
//!
//! [`BackendExt`] has everything that a backend gives its users: dispatches over bytes, asynchronous ones, resident
//! memory, compiled pipelines, telemetry.

pub use vyre_driver::{
    BackendExt, DeviceBuffer, DispatchConfig, Error, Requirements, VyreBackend, acquire, acquire_preferred,
};
pub use vyre_foundation::Program;
pub use vyre_foundation::build::{self, BuildError, program};

use std::sync::Arc;
// A backend is known once its crate is linked in, and so is the optimizer.
use vyre_driver_cpu as _;
use vyre_self_substrate as _;

/// The best backend that this machine has. Never the reference: that is `acquire("reference")`.
pub fn backend() -> Result<Arc<dyn VyreBackend>, Error> {
    Ok(acquire_preferred(&Requirements::new())?.backend)
}

/// What programs written in Rust need.
pub mod prelude {
    pub use vyre_driver::{BackendExt, DeviceBuffer, DispatchConfig};
    pub use vyre_foundation::build::prelude::*;
}

/// The Rust in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
