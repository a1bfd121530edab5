//! Generated programs, differential testing and reduction of failing programs.
//!
//! - [`generate`] makes a [`Case`] from a seed: a valid, deterministic program with its inputs and grid;
//!   [`generate_with_grid_barriers`] one that is full of grid barriers.
//! - [`Coverage`] says what a set of programs uses of the language and what it lacks.
//! - [`compare`] runs a case on several [`Executor`]s and gives the first [`Mismatch`].
//! - [`reduce`] shrinks a failing case, and [`test_file`] writes it as a test.
//! - [`Device`] is any backend as an [`Executor`], and [`suite`] checks the whole contract of a backend.
//! - [`roundtrip`] and [`hostile`] check the text and wire forms, with programs and with arbitrary input.
//!
//! The binary `fuzz` puts these together for long runs.
//!
//! ```
//! use vyre_conform::{DEFAULT_SIZE, compare, generate, schedules};
//! let case = generate(1, DEFAULT_SIZE);
//! assert!(compare(&case, &schedules(1, 8)).is_none());
//! ```

mod case;
mod coverage;
mod device;
mod differential;
mod generator;
pub mod hostile;
mod reduce;
pub mod roundtrip;
mod skew;
pub mod suite;
mod testfile;
mod typing;

pub use case::Case;
pub use coverage::Coverage;
pub use device::Device;
pub use differential::{
    Executor, Failure, Mismatch, Observed, Reference, Skewed, ThroughText, ThroughWire, compare,
    is_deterministic, schedules,
};
pub use generator::{DEFAULT_SIZE, generate, generate_with_grid_barriers};
pub use reduce::{reduce, reduce_unordered};
pub use testfile::{test_file, write_test_file};
