//! Memory of the device: resident buffers, and a pool for what batches need for a moment.

use crate::gpu::{Gpu, lock};
use std::sync::Mutex;
use vyre_driver::{Error, Result};
use wgpu::BufferUsages;

/// What the size of a buffer is a multiple of. Transfers move words and shaders bind whole elements, so the bytes
/// behind the last one are there, and nobody sees them.
pub(crate) const ALIGNMENT: u64 = 16;

/// The most bytes that wait in the pool.
const MOST_POOLED: u64 = 128 << 20;
/// The largest buffer that is pooled.
const LARGEST_POOLED: u64 = 32 << 20;
/// The smallest buffer of the pool.
const SMALLEST_POOLED: u64 = 256;

/// What a buffer of the pool is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Memory of shaders and of transfers.
    Device,
    /// What the host reads.
    ReadBack,
}

impl Kind {
    fn usage(self) -> BufferUsages {
        match self {
            Kind::Device => {
                BufferUsages::STORAGE
                    | BufferUsages::UNIFORM
                    | BufferUsages::INDIRECT
                    | BufferUsages::COPY_SRC
                    | BufferUsages::COPY_DST
            }
            Kind::ReadBack => BufferUsages::MAP_READ | BufferUsages::COPY_DST,
        }
    }
}

/// A resident buffer.
pub(crate) struct Memory {
    pub(crate) buffer: wgpu::Buffer,
    pub(crate) bytes: u64,
    /// The device that it belongs to.
    pub(crate) epoch: u64,
}

/// Buffers that nobody uses for now, by kind and size.
#[derive(Default)]
pub(crate) struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    buffers: Vec<(Kind, wgpu::Buffer)>,
    bytes: u64,
}

impl Pool {
    /// How many bytes wait in it.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.idle).bytes
    }

    fn take(&self, kind: Kind, bytes: u64) -> Option<wgpu::Buffer> {
        let mut idle = lock(&self.idle);
        // The latest one first: its memory is likely to be near.
        let fits = |(of, buffer): &(Kind, wgpu::Buffer)| *of == kind && buffer.size() == bytes;
        let place = idle.buffers.iter().rposition(fits)?;
        let (_, buffer) = idle.buffers.swap_remove(place);
        idle.bytes -= bytes;
        Some(buffer)
    }

    /// Takes back a buffer that the device is done with.
    pub(crate) fn give_back(&self, kind: Kind, buffer: wgpu::Buffer) {
        let bytes = buffer.size();
        if bytes > LARGEST_POOLED || !bytes.is_power_of_two() {
            return;
        }
        let mut idle = lock(&self.idle);
        idle.bytes += bytes;
        idle.buffers.push((kind, buffer));
        while idle.bytes > MOST_POOLED && !idle.buffers.is_empty() {
            let (_, oldest) = idle.buffers.remove(0);
            idle.bytes -= oldest.size();
        }
    }
}

/// A buffer for a batch.
pub(crate) struct Leased {
    pub(crate) buffer: wgpu::Buffer,
    /// Whether it is new: new buffers are zeros.
    pub(crate) is_fresh: bool,
}

impl Gpu {
    /// New memory, all zeros.
    fn create(&self, kind: Kind, bytes: u64, what: &str) -> Result<wgpu::Buffer> {
        let most = self.max_buffer_bytes();
        if bytes > most {
            return Err(Error::OutOfMemory { what: what.to_owned(), asked: bytes, available: Some(most) });
        }
        let usage = kind.usage();
        let descriptor =
            wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false };
        self.guarded(what, bytes, || Ok(self.device.create_buffer(&descriptor)))
    }

    /// New resident memory.
    pub(crate) fn resident(&self, bytes: u64) -> Result<Memory> {
        let what = "a resident buffer";
        let refuse = || {
            let available = Some(self.max_buffer_bytes());
            Error::OutOfMemory { what: what.to_owned(), asked: bytes, available }
        };
        let padded = bytes.max(1).checked_next_multiple_of(ALIGNMENT).ok_or_else(refuse)?;
        Ok(Memory { buffer: self.create(Kind::Device, padded, what)?, bytes, epoch: self.epoch })
    }

    /// Memory for a batch, at least this large.
    pub(crate) fn lease(&self, kind: Kind, bytes: u64, what: &str) -> Result<Leased> {
        if bytes > LARGEST_POOLED {
            let padded = bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
            return Ok(Leased { buffer: self.create(kind, padded, what)?, is_fresh: true });
        }
        let bytes = bytes.max(SMALLEST_POOLED).next_power_of_two();
        match self.pool.take(kind, bytes) {
            Some(buffer) => Ok(Leased { buffer, is_fresh: false }),
            None => Ok(Leased { buffer: self.create(kind, bytes, what)?, is_fresh: true }),
        }
    }
}
