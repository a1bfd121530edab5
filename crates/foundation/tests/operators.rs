//! The arithmetic of the crate against an oracle that shares nothing with it.
//!
//! `arith` and `element` compute with native Rust numbers. The oracle here computes with integers
//! alone: floats are taken apart into sign, significand and exponent, the exact result is formed,
//! and it is rounded once ([`exact`]); integers go through bit loops, 32-bit limbs and 128 bits
//! ([`integers`]). What an operator takes and gives is written down a second time in [`table`],
//! from the specification.
//!
//! Every operator runs on the full cross product of the edge values of each type it takes, then on
//! pseudo-random operands: 200,000 per operator and type, or as many as the environment variable
//! `VYRE_CASES` says (`VYRE_CASES=20000000 cargo test --release --test operators`). The seeds are
//! fixed, so a failure comes back; it names the operator, the type, the operand bits and both
//! results.

#[path = "operators/edges.rs"]
mod edges;
#[path = "operators/exact.rs"]
mod exact;
#[path = "operators/integers.rs"]
mod integers;
#[path = "operators/known.rs"]
mod known;
#[path = "operators/memory.rs"]
mod memory;
#[path = "operators/oracle.rs"]
mod oracle;
#[path = "operators/random.rs"]
mod random;
#[path = "operators/report.rs"]
mod report;
#[path = "operators/table.rs"]
mod table;
#[path = "operators/values.rs"]
mod values;
#[path = "operators/wide.rs"]
mod wide;
