//! Parts of programs that many programs need, written with the typed [builder](vyre_foundation::build).
//!
//! Each module has three things:
//!
//! - a **fragment**: a function or a small struct that writes statements into the program that is being built, so
//!   that larger programs use it in the middle of their own code, also in loops. What it computes on and where
//!   results go are closures;
//! - a **program** made of the fragment, with every buffer documented, that runs on any backend;
//! - an **oracle**: the same in plain sequential Rust.
//!
//! | module | what it computes |
//! |---|---|
//! | [`mod@reduce`] | one value of many: sum, smallest, largest, bitwise and, or, exclusive or |
//! | [`mod@scan`] | for each element, what the elements before it give together |
//! | [`mod@compact`] | the indices for which something holds, without gaps and in order |
//! | [`bitset`] | sets as bits of words: members, and, or, exclusive or, difference, how many |
//! | [`hash_table`] | which keys are equal, by a lock-free table that compares the keys themselves |
//! | [`frontier`] | graph traversal level by level: each round visits what the round before has found |
//! | [`bfs`] | breadth-first search that looks backwards from unvisited nodes where that is less work |
//! | [`reach`] | which nodes each of many sources reaches, 32 sources to a word |
//! | [`components`] | connected components, each labelled with its smallest node |
//!
//! # Grids
//!
//! All of them run on any grid, one workgroup included; how many there are decides about speed only. A few for each core
//! are right on a CPU. The size of a workgroup is fixed when a program is built ([`Lanes`]): a dispatch must not
//! override it. Lengths and counts go up to 2^31.
//!
//! # Synchronisation
//!
//! A fragment whose documentation says that it *synchronises the grid* holds grid barriers and must stand where control
//! is uniform for the grid; one that *synchronises the workgroup* must stand where control is uniform for the workgroup.
//! Counts that they are given must be uniform for the workgroup by the rules of the language: lengths of buffers, loads
//! of `read` buffers, uniform loads, and what is computed of them. Whatever else says nothing works anywhere.
//!
//! ```
//! use vyre_driver::{BackendExt, DispatchConfig};
//! use vyre_foundation::build::prelude::*;
//! use vyre_primitives::{Lanes, Op, Scan, Team};
//! # use vyre_driver_cpu as _;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Where in a text each word begins that `lengths` gives, with one space between two words.
//! let program = vyre_foundation::build::program("begins", |k| {
//!     let team = Team::new(k, Lanes::default());
//!     let lengths = k.read::<u32>("lengths");
//!     let begins = k.write::<u32>("begins");
//!     let scan = Scan::new(k, team, "scan", Op::Sum);
//!     scan.exclusive(k, lengths.len(), |i| lengths.load(i) + 1, |i, before| begins.store(i, before));
//! })?;
//! let backend = vyre_driver::acquire("cpu")?;
//! let lengths = backend.device_buffer_from(&[3u32, 5, 1])?;
//! let begins = backend.device_buffer::<u32>(3)?;
//! backend.dispatch_with_device_buffers(&program, &[&lengths, &begins], &DispatchConfig::new())?;
//! assert_eq!(begins.download()?, [0, 4, 10]);
//! # Ok(())
//! # }
//! ```

pub mod bfs;
pub mod bitset;
mod block;
pub mod compact;
pub mod components;
pub mod frontier;
pub mod graph;
pub mod hash_table;
mod op;
pub mod reach;
pub mod reduce;
pub mod scan;
mod team;

pub use compact::Compact;
pub use frontier::Frontier;
pub use graph::Graph;
pub use op::{Op, Word};
pub use reduce::Reduce;
pub use scan::Scan;
pub use team::{Lanes, Team};

use vyre_foundation::Program;
use vyre_foundation::build::{BuildError, Kernel};

/// A program of this crate. It has no way to fail: its parameters are choices that all give valid programs.
fn program(name: &str, body: impl FnOnce(&Kernel)) -> Program {
    let built: Result<Program, BuildError> = vyre_foundation::build::program(name, body);
    match built {
        Ok(program) => program,
        Err(error) => unreachable!("`{name}` is valid for every parameter: {error}"),
    }
}

/// The Rust in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
