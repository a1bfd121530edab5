//! Machine code in memory: written once, then executable and never writable again.

use crate::context::{Context, Worker};
use crate::faults;
use memmap2::{Mmap, MmapMut};
use std::io;
use std::sync::Arc;
use vyre_driver::Telemetry;

/// What a kernel is called as: context, frame of the worker, worker.
pub(crate) type Entry = unsafe extern "C" fn(*const Context, *mut u8, *mut Worker<'_>);

/// Executable code of one kernel, freed when dropped.
pub(crate) struct Code {
    mapping: Mmap,
    length: usize,
    telemetry: Arc<Telemetry>,
}

impl Code {
    /// Makes machine code executable.
    pub(crate) fn new(bytes: &[u8], telemetry: Arc<Telemetry>) -> io::Result<Code> {
        if faults::strikes() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let mut writable = MmapMut::map_anon(bytes.len().max(1))?;
        writable[..bytes.len()].copy_from_slice(bytes);
        let mapping = writable.make_exec()?;
        // SAFETY: the range is the mapping's.
        unsafe { icache::clear_cache(mapping.as_ptr().cast(), mapping.len())? };
        icache::pipeline_flush_mt()?;
        telemetry.code_allocated(bytes.len() as u64);
        Ok(Code { mapping, length: bytes.len(), telemetry })
    }

    /// The function. It may be called for as long as `self` lives.
    pub(crate) fn entry(&self) -> Entry {
        // SAFETY: the mapping begins with a function of this signature: the compiler made it so, or it comes from a
        // private cache entry whose checksum holds.
        unsafe { std::mem::transmute::<*const u8, Entry>(self.mapping.as_ptr()) }
    }

    /// How many bytes of machine code there are.
    pub(crate) fn length(&self) -> u64 {
        self.length as u64
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        self.telemetry.code_freed(self.length());
    }
}
