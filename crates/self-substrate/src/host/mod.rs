//! The passes on the host: the oracle of the device's, and what small and deep programs get.
//!
//! Rows are gone over level by level ([`levels`]), so every row comes after all it is made of: each is put in canonical
//! form, folded, rewritten by rules, and an equal one is looked for ([`simplify`]). Another walk over the items settles
//! control: branches that are decided, loops that run at most once, what goes around a loop without changing, loads that
//! were made before ([`control`]). What that settles can make rows simpler, so the two take turns until nothing changes.
//! Last, [`liveness`] finds the items that nothing needs.
//!
//! All rows of a level, and all items, are looked at as if at once: nothing that is found about one counts for another in
//! the same walk, but for the region that a load is in: those that stand in the place of a branch or loop count as the one
//! around it at once. So a device that really does so finds the same.

mod control;
mod levels;
mod liveness;
mod simplify;

pub(crate) use control::Control;
pub(crate) use levels::Levels;
pub(crate) use liveness::needed;
pub(crate) use simplify::Simplifier;
