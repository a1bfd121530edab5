//! Sets stop flags when their time has come. One thread for all launches of a backend, asleep until the next
//! deadline, started with the first one.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;
use vyre_driver::{Deadline, Stop};

/// Watches deadlines.
#[derive(Default)]
pub(crate) struct Timer {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What is watched, the next deadline first. The number tells equal deadlines apart.
    watched: BTreeMap<(Instant, u64), Stop>,
    next: u64,
    started: bool,
    ended: bool,
}

/// A deadline that is watched until this is dropped.
pub(crate) struct Watch<'a> {
    timer: &'a Timer,
    key: Option<(Instant, u64)>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timer {
    /// Sets the flag when the deadline has passed, unless the watch ends before.
    pub(crate) fn watch(&self, deadline: Deadline, stop: &Stop) -> Watch<'_> {
        let Some(end) = deadline.instant() else { return Watch { timer: self, key: None } };
        let mut state = self.shared.lock();
        let key = (end, state.next);
        state.next += 1;
        state.watched.insert(key, stop.clone());
        let is_next = state.watched.first_key_value().is_some_and(|(first, _)| *first == key);
        if !state.started {
            let shared = Arc::clone(&self.shared);
            // Without a thread deadlines are still checked between launches.
            let name = "vyre-cpu-timer".to_owned();
            state.started = thread::Builder::new().name(name).spawn(move || shared.watch()).is_ok();
        } else if is_next {
            self.shared.changed.notify_one();
        }
        Watch { timer: self, key: Some(key) }
    }
}

impl Shared {
    fn watch(&self) {
        let mut state = self.lock();
        while !state.ended {
            let Some((end, _)) = state.watched.first_key_value().map(|(key, _)| *key) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = end.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            } else if let Some((_, stop)) = state.watched.pop_first() {
                stop.time_out();
            }
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.timer.shared.lock().watched.remove(&key);
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_one();
    }
}
