//! The passes on the host: the oracle of the device's, and what small and deep programs get.
//!
//! Rows are numbered so that operands come first, so one walk in that order sees every row after all it is made of:
//! it puts each row in canonical form, folds it, applies rules and finds whether an equal row came before
//! ([`simplify`]). Another walk over the items settles control: branches that are decided, loops that run at most once,
//! what goes around a loop without changing, loads that were made before ([`control`]). What that settles can make rows
//! simpler, so the two take turns until nothing changes. Last, [`liveness`] finds the items that nothing needs.

mod control;
mod liveness;
mod simplify;

pub(crate) use control::Control;
pub(crate) use liveness::needed;
pub(crate) use simplify::Simplifier;
