//! The vyre program: what a person writes, what it means and how it is checked.
//!
//! A [`Program`] is a tree made for people: buffers, pure functions and one body of statements. It comes from
//! the [text format](text), from the typed [builder](build), from the constructors of [`Program`], [`Node`] and
//! [`Expr`], or from the binary [wire] form, and goes back to each of them without loss. [`validate()`] proves that it is well formed:
//! names, types, limits and the uniformity of control around barriers. [`arith`] and [`element`] define what
//! each operation computes; everything that executes programs is measured against them.
//!
//! This crate executes nothing. The interpreter that defines the meaning of a whole program is
//! `vyre-reference`.

pub mod arith;
mod bind;
mod buffer;
pub mod build;
pub mod diagnostic;
pub mod element;
mod expr;
pub mod float_env;
pub mod grid;
mod name;
mod node;
mod ops;
mod program;
pub mod rng;
mod source;
mod stats;
pub mod text;
mod types;
pub mod validate;
mod walk;
pub mod wire;

pub use bind::{InputError, Layout};
pub use buffer::{BufferAccess, BufferDecl};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use expr::{Expr, F32, Literal, Operand};
pub use name::{Name, RESERVED, is_identifier, is_reserved, nearest};
pub use node::{Body, Node};
pub use ops::{AtomicOp, Axis, BinOp, MemoryOrdering, Scope, SubgroupOp, UnOp};
pub use program::{Function, Program, ProgramHash, WorkgroupSize};
pub use source::{SourceMap, Span};
pub use stats::Stats;
pub use types::{Element, Type};
pub use validate::validate;
pub use walk::{Event, Walk};
