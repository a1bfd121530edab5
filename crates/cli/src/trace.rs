//! A trace of the phases of a run, in the format of Perfetto and chrome://tracing.

use serde_json::json;
use std::time::{Duration, Instant};

/// The phases of a run, as they end.
pub(crate) struct Trace {
    start: Instant,
    phases: Vec<(&'static str, Duration, Duration)>,
}

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace { start: Instant::now(), phases: Vec::new() }
    }

    /// Runs a phase and remembers when it began and how long it took.
    pub(crate) fn phase<R>(&mut self, name: &'static str, body: impl FnOnce() -> R) -> R {
        let begun = self.start.elapsed();
        let result = body();
        self.phases.push((name, begun, self.start.elapsed() - begun));
        result
    }

    /// How long a phase took, in nanoseconds.
    pub(crate) fn nanoseconds(&self, name: &str) -> u64 {
        let phases = self.phases.iter().filter(|(phase, ..)| *phase == name);
        phases.map(|(_, _, took)| took.as_nanos() as u64).sum()
    }

    pub(crate) fn to_json(&self) -> String {
        let event = |(name, begun, took): &(&str, Duration, Duration)| {
            let micros = |time: &Duration| time.as_nanos() as f64 / 1000.0;
            json!({ "name": name, "ph": "X", "pid": 1, "tid": 1, "ts": micros(begun), "dur": micros(took) })
        };
        json!({ "traceEvents": self.phases.iter().map(event).collect::<Vec<_>>() }).to_string()
    }
}
