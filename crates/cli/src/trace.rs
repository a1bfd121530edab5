//! A trace of where the time goes, in the format of Perfetto and chrome://tracing.
//!
//! A [`Recorder`] listens to the spans of every crate of vyre, on every thread, from when it is installed. Without
//! one, spans cost a look at a flag.

use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// More than this are counted, not kept.
const MOST_EVENTS: usize = 1 << 19;

/// What every crate of vyre calls its spans after.
const OURS: &str = "vyre";

/// Records spans.
pub(crate) struct Recorder {
    start: Instant,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Open>>,
    ended: Mutex<Ended>,
}

/// A span that somebody holds.
struct Open {
    name: &'static str,
    arguments: Map<String, Value>,
    holders: usize,
}

/// A stay of a thread in a span.
struct Stay {
    name: &'static str,
    arguments: Map<String, Value>,
    thread: u64,
    begun: Duration,
    took: Duration,
}

impl Stay {
    fn to_json(&self) -> Value {
        json!({
            "name": self.name, "cat": OURS, "ph": "X", "pid": 1, "tid": self.thread,
            "ts": micros(self.begun), "dur": micros(self.took), "args": self.arguments,
        })
    }
}

#[derive(Default)]
struct Ended {
    stays: Vec<Stay>,
    left_out: u64,
    threads: Vec<(u64, String)>,
}

thread_local! {
    /// The spans that this thread is in, with when it entered each.
    static ENTERED: RefCell<Vec<(u64, Duration)>> = const { RefCell::new(Vec::new()) };
    /// The number of this thread; 0 until it has one.
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

impl Recorder {
    fn new() -> Recorder {
        Recorder {
            start: Instant::now(),
            next: AtomicU64::new(1),
            open: Mutex::default(),
            ended: Mutex::default(),
        }
    }

    /// Listens from now on, until the process ends.
    pub(crate) fn install() -> Arc<Recorder> {
        let recorder = Arc::new(Recorder::new());
        // Somebody else may listen already; then the trace stays empty.
        let _ = tracing::subscriber::set_global_default(Arc::clone(&recorder));
        recorder
    }

    /// What was recorded.
    pub(crate) fn to_json(&self) -> String {
        let ended = lock(&self.ended);
        let process = json!({ "name": "process_name", "ph": "M", "pid": 1, "args": { "name": "vyre" } });
        let named = ended.threads.iter().map(|(thread, name)| {
            json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": { "name": name } })
        });
        let stays = ended.stays.iter().map(Stay::to_json);
        let events = std::iter::once(process).chain(named).chain(stays);
        let events: Vec<String> = events.map(|event| event.to_string()).collect();
        let other = json!({ "left_out": ended.left_out });
        format!(
            "{{\"displayTimeUnit\":\"ms\",\"otherData\":{other},\"traceEvents\":[\n{}\n]}}\n",
            events.join(",\n")
        )
    }

    /// The number of the calling thread.
    fn thread(&self, ended: &mut Ended) -> u64 {
        let known = THREAD.get();
        if known != 0 {
            return known;
        }
        let number = ended.threads.len() as u64 + 1;
        THREAD.set(number);
        let thread = std::thread::current();
        ended.threads.push((number, thread.name().unwrap_or("worker").to_owned()));
        number
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with(OURS)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let number = self.next.fetch_add(1, Relaxed);
        let mut arguments = Arguments::default();
        span.record(&mut arguments);
        let open = Open { name: span.metadata().name(), arguments: arguments.0, holders: 1 };
        lock(&self.open).insert(number, open);
        Id::from_u64(number)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut arguments = Arguments::default();
        values.record(&mut arguments);
        if let Some(open) = lock(&self.open).get_mut(&span.into_u64()) {
            open.arguments.append(&mut arguments.0);
        }
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        let now = self.start.elapsed();
        ENTERED.with_borrow_mut(|entered| entered.push((span.into_u64(), now)));
    }

    fn exit(&self, span: &Id) {
        let now = self.start.elapsed();
        let number = span.into_u64();
        let begun = ENTERED.with_borrow_mut(|entered| {
            let place = entered.iter().rposition(|(other, _)| *other == number)?;
            Some(entered.remove(place).1)
        });
        let Some(begun) = begun else { return };
        let open = lock(&self.open);
        let Some(open) = open.get(&number) else { return };
        let mut ended = lock(&self.ended);
        if ended.stays.len() >= MOST_EVENTS {
            ended.left_out += 1;
            return;
        }
        let thread = self.thread(&mut ended);
        let (name, arguments, took) = (open.name, open.arguments.clone(), now - begun);
        ended.stays.push(Stay { name, arguments, thread, begun, took });
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(open) = lock(&self.open).get_mut(&span.into_u64()) {
            open.holders += 1;
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut open = lock(&self.open);
        let Some(held) = open.get_mut(&span.into_u64()) else { return false };
        held.holders -= 1;
        held.holders == 0 && open.remove(&span.into_u64()).is_some()
    }
}

/// The fields of a span as JSON.
#[derive(Default)]
struct Arguments(Map<String, Value>);

impl Arguments {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Arguments {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_nested_and_carry_their_thread_and_fields() {
        let recorder = Arc::new(Recorder::new());
        tracing::subscriber::with_default(Arc::clone(&recorder), || {
            let outer = tracing::info_span!("outer", count = 3, name = "x", late = tracing::field::Empty);
            let _in_outer = outer.enter();
            tracing::debug_span!("inner").in_scope(|| {});
            outer.record("late", true);
            tracing::info_span!(target: "elsewhere", "foreign").in_scope(|| {});
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            let other = move || {
                tracing::dispatcher::with_default(&dispatch, || tracing::info_span!("other").in_scope(|| {}));
            };
            std::thread::Builder::new().name("helper".to_owned()).spawn(other).unwrap().join().unwrap();
        });
        let trace: Value = serde_json::from_str(&recorder.to_json()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let find = |name: &str| events.iter().find(|event| event["name"] == name);
        let (outer, inner, other) = (find("outer").unwrap(), find("inner").unwrap(), find("other").unwrap());
        assert_eq!(outer["args"], json!({ "count": 3, "name": "x", "late": true }));
        let end = |event: &Value| event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap();
        assert!(outer["ts"].as_f64() <= inner["ts"].as_f64() && end(inner) <= end(outer));
        assert_eq!(outer["tid"], inner["tid"]);
        assert_ne!(outer["tid"], other["tid"]);
        assert!(find("foreign").is_none());
        let named = |event: &&Value| event["ph"] == "M" && event["args"]["name"] == "helper";
        assert_eq!(events.iter().find(named).map(|event| &event["tid"]), Some(&other["tid"]));
        assert!(lock(&recorder.open).is_empty());
    }
}
