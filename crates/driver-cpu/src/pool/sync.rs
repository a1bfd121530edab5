//! What the pool takes from the standard library, or from the model checker when it is built for one.
//!
//! The model checker explores every order of the operations it is shown. It knows neither clocks nor the cost
//! of falling asleep, so the functions here that do, [`spin`], [`spin_for`] and [`wait_briefly`], become a single
//! look and a plain wait: every path then goes through the blocking code, which is the part that can be wrong.

use std::sync::PoisonError;
use std::time::Duration;
#[cfg(not(loom))]
use std::time::Instant;

#[cfg(loom)]
pub(super) use loom::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle},
};
#[cfg(not(loom))]
pub(super) use std::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle},
};

/// Locks `mutex`. No code that can panic runs under the pool's locks, so poisoning says nothing here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until `bell` rings, or for no reason: the caller looks again.
pub(super) fn wait<'a, T>(bell: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    bell.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until `bell` rings, or for a millisecond, or for no reason: the caller looks again.
#[cfg(not(loom))]
pub(super) fn wait_briefly<'a, T>(bell: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    bell.wait_timeout(guard, Duration::from_millis(1)).unwrap_or_else(PoisonError::into_inner).0
}

/// Sleeps until `bell` rings.
#[cfg(loom)]
pub(super) fn wait_briefly<'a, T>(bell: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    wait(bell, guard)
}

/// How many looks keep the core before the others offer it: what is awaited mostly happens within a microsecond on
/// another one. The later looks offer the core, because there may be fewer cores than threads and the awaited one
/// may be waiting for ours.
#[cfg(not(loom))]
const HOLDING_THE_CORE: u32 = 64;

/// Looks until `look` succeeds, for a few microseconds, and gives what the last look gave.
///
/// The bound is a number of looks, not a time, so that it costs no clock.
#[cfg(not(loom))]
pub(super) fn spin<T, E>(mut look: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    const OFFERING_THE_CORE: u32 = 16;
    for turn in 0..HOLDING_THE_CORE + OFFERING_THE_CORE {
        let seen = look();
        if seen.is_ok() {
            return seen;
        }
        pause(turn);
    }
    look()
}

/// Looks once.
#[cfg(loom)]
pub(super) fn spin<T, E>(mut look: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    look()
}

/// Looks until `done`, at most for so long.
#[cfg(not(loom))]
pub(super) fn spin_for(limit: Duration, done: impl Fn() -> bool) {
    let start = Instant::now();
    let mut turn = 0;
    while !done() && start.elapsed() < limit {
        pause(turn);
        turn += 1;
    }
}

/// Looks once.
#[cfg(loom)]
pub(super) fn spin_for(_limit: Duration, done: impl Fn() -> bool) {
    done();
}

#[cfg(not(loom))]
fn pause(turn: u32) {
    if turn < HOLDING_THE_CORE { std::hint::spin_loop() } else { std::thread::yield_now() }
}
