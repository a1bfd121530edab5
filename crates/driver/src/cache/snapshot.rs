//! What has happened in a cache.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What one [`DiskCache`](super::DiskCache) has seen since it was opened. Each `get` counts as exactly one of
/// hit, miss and rejection, each `put` as exactly one of stored, failed and too large.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DiskSnapshot {
    /// Entries found and believed.
    pub hits: u64,
    /// Lookups that found no entry.
    pub misses: u64,
    /// Entries found but not believed: corrupt, made by another build, or open to others. They are removed.
    pub rejected: u64,
    /// Entries written.
    pub stored: u64,
    /// Entries that could not be written.
    pub failed_writes: u64,
    /// Entries not written because one would take more than a quarter of the cache.
    pub too_large: u64,
    /// Entries removed to make room.
    pub evicted: u64,
}

#[derive(Default, Debug)]
pub(super) struct Counters {
    pub(super) hits: Counter,
    pub(super) misses: Counter,
    pub(super) rejected: Counter,
    pub(super) stored: Counter,
    pub(super) failed_writes: Counter,
    pub(super) too_large: Counter,
    pub(super) evicted: Counter,
}

#[derive(Default, Debug)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn count(&self) {
        self.add(1);
    }

    pub(super) fn add(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Counters {
    pub(super) fn snapshot(&self) -> DiskSnapshot {
        DiskSnapshot {
            hits: self.hits.read(),
            misses: self.misses.read(),
            rejected: self.rejected.read(),
            stored: self.stored.read(),
            failed_writes: self.failed_writes.read(),
            too_large: self.too_large.read(),
            evicted: self.evicted.read(),
        }
    }
}
