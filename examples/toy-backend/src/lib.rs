//! How to write a vyre backend: a toy device with memory of its own. See the README for the tour.
//!
//! Linking this crate registers the backend:
//!
//! ```
//! use vyre_driver::{BackendExt, DispatchConfig, acquire};
//! use vyre_foundation::Program;
//! # use vyre_toy_backend as _;
//!
//! let toy = acquire("toy")?;
//! let program = Program::parse("program p { buffer o: output u32[1]; o[0] = 7; }").unwrap();
//! assert_eq!(toy.dispatch(&program, vec![], &DispatchConfig::new())?.outputs, [[7, 0, 0, 0]]);
//! # Ok::<(), vyre_driver::Error>(())
//! ```

mod backend;
mod device;
mod execute;

pub use backend::ToyBackend;
