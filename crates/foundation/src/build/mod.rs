//! A typed builder: programs written in Rust.
//!
//! [`program`] runs a closure that describes the program. Types are Rust's: a [`Value<f32>`](Value) has the
//! operators that `f32` has in the language, a [`Buffer`] the accesses that its declaration allows, and most
//! mistakes do not compile. The rest comes back as a [`BuildError`] that names the line of the Rust source.
//!
//! # What happens when
//!
//! A program behaves as if each line of Rust took place where it is called:
//!
//! - A [`load`](Buffer::load) and a variable's [`get`](Var::get) give the value **of that moment**. Used twice or
//!   after a store, it is still that value.
//! - Atomics, uniform loads and subgroup operations act **once, where they are called**, whether or not the
//!   result is used.
//! - Operators are pure, so where they are computed does not show. A value that is used more than once gets a
//!   `let` where it was made and is computed once; so do parts of very large expressions, and what is made outside
//!   a loop and used inside it. Squaring a value a hundred times in a Rust loop gives a hundred short lines.
//! - What nothing uses is left out, except for effects.
//!
//! ```
//! let program = vyre_foundation::build::program("swap", |k| {
//!     let x = k.read_write::<u32>("x");
//!     let (a, b) = (x.load(0), x.load(1));
//!     x.store(0, b);
//!     x.store(1, a);
//! })?;
//! assert_eq!(
//!     program.to_string(),
//!     "program swap {
//!     buffer x: read_write u32[];
//!
//!     let x_1 = x[0];
//!     x[0] = x[1];
//!     x[1] = x_1;
//! }
//! "
//! );
//! # Ok::<(), vyre_foundation::build::BuildError>(())
//! ```
//!
//! Rust's own `if`, `for` and functions run while the program is built: a Rust loop repeats statements. A loop
//! *in* the program is [`Kernel::for_`], a branch is [`Kernel::if_`].
//!
//! # Scopes and names
//!
//! A value can be used in the body in which it was made and in the bodies inside that one. To carry one out of
//! a body, set a [`Kernel::var`].
//!
//! Names of buffers and functions are the program's interface and stand as they are given. Names of variables are
//! wishes: one that is taken gets a number, so that a Rust function may be called twice. Names that are made
//! up are never those that a user gave anywhere, nor reserved words.
//!
//! # Handles
//!
//! Values, variables, buffers and functions are `Copy` and carry no lifetime, so that helper functions read like
//! arithmetic: `fn lerp(a: Value<f32>, b: Value<f32>, t: Value<f32>) -> Value<f32>`. They are numbers into
//! the program that is being built on this thread. A handle that reaches another program is a mistake that the other
//! build reports.

mod branch;
mod buffer;
mod emit;
mod error;
mod function;
mod kernel;
mod operators;
mod plan;
mod scalar;
mod state;
mod value;

pub use branch::Branch;
pub use buffer::{Buffer, access};
pub use error::{BuildError, Mistake, What};
pub use function::{Function, FunctionBody};
pub use half::{bf16, f16};
pub use kernel::{Axes, Kernel, Var};
pub use scalar::{AtomicElement, Bits, Integer, IntoValue, Number, SameBits, Scalar, Signed, Storable};
pub use value::Value;

use crate::{Name, Program};
use state::{Open, State};

/// What programs written in Rust need.
pub mod prelude {
    pub use super::{Buffer, BuildError, Function, IntoValue, Kernel, Value, Var, access, bf16, f16};
    pub use crate::{MemoryOrdering, Program, Scope};
}

/// Builds a program and validates it.
///
/// ```
/// use vyre_foundation::build::prelude::*;
///
/// fn lerp(a: Value<f32>, b: Value<f32>, t: Value<f32>) -> Value<f32> {
///     (b - a).fma(t, a)
/// }
///
/// let program = vyre_foundation::build::program("blend", |k| {
///     k.workgroup_size(64);
///     let (a, b) = (k.read::<f32>("a"), k.read::<f32>("b"));
///     let out = k.write::<f32>("out");
///     let i = k.global_id().x;
///     out.store(i, lerp(a.load(i), b.load(i), 0.25.into()));
/// })?;
/// assert_eq!(Program::parse(&program.to_string()), Ok(program));
/// # Ok::<(), BuildError>(())
/// ```
pub fn program(name: impl Into<Name>, body: impl FnOnce(&Kernel)) -> Result<Program, BuildError> {
    let (open, build) = Open::new(name.into());
    body(&Kernel::new(build));
    match open.finish() {
        Some(state) => finish(state),
        None => Err(BuildError::new(vec![Mistake::new(What::OtherBuild, None)])),
    }
}

fn finish(mut state: State) -> Result<Program, BuildError> {
    let lanes = state.subgroup_size;
    let ballots = std::mem::take(&mut state.ballots);
    for (_, at) in ballots.into_iter().filter(|(wide, _)| *wide != (lanes == 64)) {
        state.mistake(What::BallotWidth { lanes }, at);
    }
    if !state.mistakes.is_empty() {
        return Err(BuildError::new(state.mistakes));
    }
    let (program, lines) = emit::emit(&state);
    match program.validate() {
        Ok(()) => Ok(program),
        Err(found) => Err(BuildError::invalid(&program, &found, &lines)),
    }
}
