//! What generated code gets: one context per launch, shared by the workers, from which it takes every address.
//!
//! Code holds no address of its own, so it can be kept on disk as it is.

use crate::pool::Team;
use crate::shares::Place;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A bound buffer, as generated code sees it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Bound {
    /// The first byte.
    pub(crate) base: *mut u8,
    /// How many elements there are.
    pub(crate) count: u64,
}

/// The size of a [`Bound`].
pub(crate) const BOUND_BYTES: i32 = size_of::<Bound>() as i32;

/// What the workers of a launch share.
#[repr(C)]
pub(crate) struct Context {
    /// The buffers, by their numbers; those that are not bound are empty.
    pub(crate) buffers: *const Bound,
    /// The workgroups on each axis.
    pub(crate) workgroups: [u32; 3],
    /// Not zero when work is to stop.
    pub(crate) stop: *const AtomicU32,
    /// What workgroups keep across grid barriers, one after the other.
    pub(crate) kept: *mut u8,
    /// Zero, for loads outside of buffers.
    pub(crate) zero: u64,
    /// The functions that generated code calls.
    pub(crate) calls: Calls,
    /// What the last to arrive at a meeting left for all.
    pub(crate) left: Left,
}

/// What the last to arrive at a meeting left for all. It stays until all have arrived at the next one. Everything
/// else in the context never changes, so this has a cache line of its own.
#[repr(C, align(128))]
#[derive(Default)]
pub(crate) struct Left {
    /// Whether an invocation had trapped when all met. Nobody may look at the traps themselves: one who still leaves
    /// the meeting would see those that come after it, and leave undone what may trap at a smaller invocation.
    pub(crate) trapped: AtomicU32,
    /// What a `uniform_load` gave.
    pub(crate) loaded: AtomicU64,
}

/// What a worker has for itself. Generated code passes it on and reads one field.
#[repr(C)]
pub(crate) struct Worker<'a> {
    /// The workgroup behind the last of those taken.
    pub(crate) end: u64,
    /// Where it is among the shares.
    pub(crate) place: Place,
    /// Whom it meets.
    pub(crate) team: &'a Team,
}

/// What [`Calls::take`] gives when all workgroups are taken.
pub(crate) const NONE_LEFT: u64 = u64::MAX;

/// What [`Calls::arrive`] tells a worker to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Next {
    /// To go on.
    GoOn = 0,
    /// To leave.
    Leave = 1,
    /// To have its turn while the others wait, and then to call [`Calls::open`].
    Turn = 2,
}

/// The functions that generated code calls, by address.
#[repr(C)]
pub(crate) struct Calls {
    /// Takes workgroups: gives the first, and the one behind the last in the worker; [`NONE_LEFT`] at the end.
    pub(crate) take: unsafe extern "C" fn(*const Context, *mut Worker<'_>) -> u64,
    /// Meets the other workers, at a barrier of the program or not; not 0 when the worker is to leave.
    pub(crate) meet: unsafe extern "C" fn(*const Context, *mut Worker<'_>, u32) -> u32,
    /// Meets the other workers at a barrier of the program at which one has a turn of its own: a [`Next`].
    pub(crate) arrive: unsafe extern "C" fn(*const Context, *mut Worker<'_>) -> u32,
    /// Ends the turn.
    pub(crate) open: unsafe extern "C" fn(*mut Worker<'_>),
    /// Notes a trap: tag, value, linear invocation.
    pub(crate) trap: unsafe extern "C" fn(*const Context, u32, u32, u64),
    /// Has the machine fetch a line of memory that will be needed soon. It changes no register.
    pub(crate) fetch: unsafe extern "C" fn(*const u8),
    /// Fills memory with zeros.
    pub(crate) zero: unsafe extern "C" fn(*const Context, *mut u8, u64),
    /// A subgroup operation: what, subgroup size, lanes, operand, second operand, result.
    pub(crate) subgroup: unsafe extern "C" fn(u32, u32, u32, *const u8, *const u8, *mut u8),
    /// The element of an `f16` as `f32` bits.
    pub(crate) widen: extern "C" fn(u32) -> u32,
    /// The `f16` nearest to `f32` bits.
    pub(crate) narrow: extern "C" fn(u32) -> u32,
    /// `a * b + c`, rounded once.
    pub(crate) fma: extern "C" fn(u32, u32, u32) -> u32,
    /// Rounds `f32` bits: floor, ceil, trunc, nearest.
    pub(crate) round: extern "C" fn(u32, u32) -> u32,
}
