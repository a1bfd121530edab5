//! Columns that stay on a device between calls.
//!
//! A device that works in the memory of the host borrows columns. To any other one they are uploaded: the rules, which are
//! the same for every kernel, and the columns of a kernel, which may be optimised again. So it keeps what it got. Columns
//! are found by a hash of what they hold, a cryptographic one: no two that differ have the same. Those that were used
//! longest ago go when there are too many.

use std::sync::{Arc, Mutex, PoisonError};
use vyre_driver::{BackendExt, DeviceBuffer, DeviceMemory, Generation, RawHandle, Result, VyreBackend};

/// The most bytes that are kept, and the most columns: all of them are looked at to find one.
const MOST_BYTES: u64 = 256 << 20;
const MOST_COLUMNS: usize = 256;

/// A column on the device.
#[derive(Clone)]
struct Column {
    content: blake3::Hash,
    memory: Arc<DeviceBuffer<u32>>,
}

/// The columns that a device keeps.
#[derive(Default)]
pub(super) struct Kept(Mutex<Columns>);

#[derive(Default)]
struct Columns {
    /// How often the device had been recovered when it got them: with a device, what it keeps is lost.
    generation: Generation,
    /// The last one used last.
    all: Vec<Column>,
}

impl Kept {
    /// Memory of the device with these words each. What is not there yet is uploaded, all of it at once.
    pub(super) fn columns(
        &self,
        backend: &Arc<dyn VyreBackend>,
        words: &[&[u32]],
    ) -> Result<Vec<Arc<DeviceBuffer<u32>>>> {
        let mut columns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = backend.health().generation;
        if std::mem::replace(&mut columns.generation, generation) != generation {
            columns.all.clear();
        }
        let kept = &mut columns.all;
        let mut used: Vec<Column> = Vec::with_capacity(words.len());
        let mut uploads: Vec<(RawHandle, &[u8])> = Vec::new();
        for words in words {
            let bytes = bytemuck::cast_slice(words);
            let content = blake3::hash(bytes);
            let found = used.iter().chain(kept.iter()).find(|column| column.content == content).cloned();
            let column = match found {
                Some(column) => column,
                None => {
                    let memory = Arc::new(backend.device_buffer(words.len())?);
                    uploads.push((memory.handle(), bytes));
                    Column { content, memory }
                }
            };
            used.push(column);
        }
        backend.upload_resident_many(&uploads)?;
        let memory = used.iter().map(|column| Arc::clone(&column.memory)).collect();
        kept.retain(|column| !used.iter().any(|other| other.content == column.content));
        for column in used {
            if !kept.iter().any(|other| other.content == column.content) {
                kept.push(column);
            }
        }
        let mut bytes: u64 = kept.iter().map(|column| column.memory.handle().bytes()).sum();
        while bytes > MOST_BYTES || kept.len() > MOST_COLUMNS {
            bytes -= kept.remove(0).memory.handle().bytes();
        }
        Ok(memory)
    }
}
