//! The flag that ends work before its end.

use crate::deadline::Deadline;
use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Asks work in flight to end. Clones share one flag; whoever sets it first gives the reason.
///
/// The flag is one word that stays where it is for as long as a clone lives, so that generated code can be given
/// its address and a timer can set it: [`Stop::RUN`] until somebody wants the work to end. It orders nothing:
/// whoever reads it only decides whether to go on.
///
/// ```
/// use vyre_driver::{Deadline, Error, Stop};
/// let stop = Stop::new();
/// let inside = stop.clone();
/// assert_eq!(inside.check(Deadline::NEVER), Ok(()));
/// stop.cancel();
/// stop.time_out();
/// assert_eq!(inside.check(Deadline::NEVER), Err(Error::Cancelled));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicU32>);

impl Stop {
    /// The value of the flag while the work may go on.
    pub const RUN: u32 = 0;
    /// The value of the flag after the deadline.
    pub const TIMEOUT: u32 = 1;
    /// The value of the flag when nobody wants the result.
    pub const CANCELLED: u32 = 2;

    /// A flag that lets work run.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Ends the work because nobody wants its result.
    pub fn cancel(&self) {
        self.set(Stop::CANCELLED);
    }

    /// Ends the work because its time is over.
    pub fn time_out(&self) {
        self.set(Stop::TIMEOUT);
    }

    fn set(&self, reason: u32) {
        // The first reason stays; that a later one is lost is the point.
        let _ = self.0.compare_exchange(Stop::RUN, reason, Relaxed, Relaxed);
    }

    /// Whether the work is to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed) != Stop::RUN
    }

    /// The flag itself, for code that polls it.
    pub fn flag(&self) -> &AtomicU32 {
        &self.0
    }

    /// The error that work returns once it is to end. Sets the flag where the deadline has passed, so that
    /// everybody who shares it sees that too.
    pub fn check(&self, deadline: Deadline) -> Result<()> {
        if deadline.has_passed() {
            self.time_out();
        }
        match self.0.load(Relaxed) {
            Stop::RUN => Ok(()),
            Stop::TIMEOUT => Err(deadline.error()),
            _ => Err(Error::Cancelled),
        }
    }
}
