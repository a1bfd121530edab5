//! What generated code gets: one context per launch, shared by the workers, from which it takes every address.
//!
//! Code holds no address of its own, so it can be kept on disk as it is.

use std::ffi::c_void;
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
    /// How many workgroups a worker claims at once.
    pub(crate) chunk: u32,
    /// All workgroups.
    pub(crate) total: u64,
    /// The next workgroup that nobody has claimed.
    pub(crate) next: AtomicU64,
    /// Not zero when work is to stop.
    pub(crate) stop: *const AtomicU32,
    /// What workgroups keep across grid barriers, one after the other.
    pub(crate) kept: *mut u8,
    /// The functions that generated code calls.
    pub(crate) calls: Calls,
}

/// The functions that generated code calls, by address.
#[repr(C)]
pub(crate) struct Calls {
    /// Waits for all workers, at a barrier of the program or not; not 0 when work is to stop.
    pub(crate) sync: unsafe extern "C" fn(*const Context, *const c_void, u32) -> u32,
    /// Notes a trap: tag, value, linear invocation.
    pub(crate) trap: unsafe extern "C" fn(*const Context, u32, u32, u64),
    /// Fills memory with zeros.
    pub(crate) zero: unsafe extern "C" fn(*mut u8, u64),
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
