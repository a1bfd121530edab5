//! How long the device works on a batch, where it can tell: a time at the beginning and at the end of each command
//! buffer.

use crate::gpu::{Gpu, lock};
use wgpu::{BufferUsages, CommandEncoder, Features, QuerySet};

/// How many command buffers of a batch are timed. Longer batches tell no time.
const TIMED: u32 = 32;
/// What the times of a batch take.
pub(crate) const TIME_BYTES: u64 = TIMED as u64 * 16;

/// What a device must have to tell times.
pub(crate) const NEEDED: Features =
    Features::TIMESTAMP_QUERY.union(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);

/// Times of one batch.
pub(crate) struct Timer {
    times: QuerySet,
    resolved: wgpu::Buffer,
    /// How many command buffers have begun.
    begun: u32,
}

impl Gpu {
    /// A timer, where the device tells times.
    pub(crate) fn timer(&self) -> Option<Timer> {
        if !self.device.features().contains(NEEDED) {
            return None;
        }
        if let Some(timer) = lock(&self.timers).pop() {
            return Some(Timer { begun: 0, ..timer });
        }
        let make = || {
            let times = self.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: 2 * TIMED,
            });
            let resolved = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: TIME_BYTES,
                usage: BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            });
            Ok(Timer { times, resolved, begun: 0 })
        };
        // Without one there is no time to tell, and nothing else is amiss.
        self.guarded("a timer", TIME_BYTES, make).ok()
    }
}

impl Timer {
    pub(crate) fn begin(&mut self, encoder: &mut CommandEncoder) {
        if self.begun < TIMED {
            encoder.write_timestamp(&self.times, 2 * self.begun);
        }
        self.begun = self.begun.saturating_add(1);
    }

    pub(crate) fn end(&self, encoder: &mut CommandEncoder) {
        if let Some(last) = self.begun.checked_sub(1).filter(|last| *last < TIMED) {
            encoder.write_timestamp(&self.times, 2 * last + 1);
        }
    }

    /// Brings the times to where the host reads them.
    pub(crate) fn tell(&self, encoder: &mut CommandEncoder, to: &wgpu::Buffer, offset: u64) {
        if self.begun <= TIMED {
            encoder.resolve_query_set(&self.times, 0..2 * self.begun, &self.resolved, 0);
            encoder.copy_buffer_to_buffer(&self.resolved, 0, to, offset, u64::from(self.begun) * 16);
        }
    }

    /// The time of all command buffers together, from the bytes that the host reads.
    pub(crate) fn nanos(&self, bytes: &[u8], period: f32) -> Option<u64> {
        if self.begun > TIMED {
            return None;
        }
        let time = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or(0);
        let pairs = bytes.chunks_exact(16).take(self.begun as usize);
        let ticks = pairs.map(|pair| time(&pair[8..]).saturating_sub(time(&pair[..8])));
        Some((ticks.sum::<u64>() as f64 * f64::from(period)) as u64)
    }
}
