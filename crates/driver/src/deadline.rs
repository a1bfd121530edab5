//! When a call gives up.

use crate::error::Error;
use std::time::{Duration, Instant};

/// A point in time after which a call returns [`Error::Timeout`], or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deadline {
    end: Option<(Instant, Duration)>,
}

impl Deadline {
    /// No deadline.
    pub const NEVER: Deadline = Deadline { end: None };

    /// The deadline that is this long away. One that is further away than time goes is none.
    pub fn after(limit: Duration) -> Deadline {
        Deadline { end: Instant::now().checked_add(limit).map(|end| (end, limit)) }
    }

    /// When it is, if there is one.
    pub fn instant(self) -> Option<Instant> {
        self.end.map(|(end, _)| end)
    }

    /// Whether it has passed.
    pub fn has_passed(self) -> bool {
        self.instant().is_some_and(|end| Instant::now() >= end)
    }

    /// How long is left; `None` without a deadline.
    pub fn remaining(self) -> Option<Duration> {
        self.instant().map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// What a call that has passed it returns.
    pub fn error(self) -> Error {
        Error::Timeout { limit: self.end.map_or(Duration::ZERO, |(_, limit)| limit) }
    }
}
