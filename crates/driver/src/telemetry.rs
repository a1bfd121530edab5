//! Counts of what a backend has done.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What has been done so far, by one backend instance or by all of the process.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Each counter with its stable name, for export.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }

        /// Counters that any thread may advance.
        #[derive(Debug, Default)]
        pub struct Telemetry {
            $($name: AtomicU64,)*
        }

        impl Telemetry {
            const fn zero() -> Telemetry {
                Telemetry { $($name: AtomicU64::new(0),)* }
            }

            $(
                $(#[$doc])*
                /// Adds to this counter, and to that of the process.
                pub fn $name(&self, count: u64) {
                    self.$name.fetch_add(count, Relaxed);
                    PROCESS.$name.fetch_add(count, Relaxed);
                }
            )*

            /// What they are now.
            pub fn snapshot(&self) -> Counters {
                Counters { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Programs launched.
    launches,
    /// Bytes that callers gave.
    bytes_in,
    /// Bytes that callers got.
    bytes_out,
    /// Bytes copied to the device.
    bytes_uploaded,
    /// Bytes copied from the device.
    bytes_downloaded,
    /// Bytes allocated for resident buffers.
    resident_allocated,
    /// Bytes of resident buffers that were freed.
    resident_freed,
    /// Output buffers of callers that were filled in place.
    outputs_reused,
    /// Output buffers that were made.
    outputs_appended,
    /// Dispatches whose grid barriers were not left to the device.
    grid_sync_splits,
    /// Segments of such dispatches that were launched.
    grid_sync_segments,
    /// Grid barriers that such dispatches passed.
    grid_sync_points,
    /// Passes of fixpoints.
    passes,
    /// Programs compiled.
    compiles,
    /// How long that took.
    compile_nanos,
    /// Compiled programs found in memory.
    memory_hits,
    /// Compiled programs not found in memory.
    memory_misses,
    /// Compiled programs found on disk.
    disk_hits,
    /// Compiled programs not found on disk.
    disk_misses,
    /// Compiled programs put into the cache in memory.
    pipelines_kept,
    /// Compiled programs that have left the cache in memory.
    pipelines_dropped,
    /// Bytes of code put into the cache in memory.
    code_kept,
    /// Bytes of code that have left the cache in memory.
    code_dropped,
    /// Bytes of compiled code made.
    code_allocated,
    /// Bytes of compiled code that were freed.
    code_freed,
}

static PROCESS: Telemetry = Telemetry::zero();

/// What all backends of the process have done.
pub fn process_telemetry() -> Counters {
    PROCESS.snapshot()
}
