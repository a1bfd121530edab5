//! Resident memory: handles that name it, and the table in which a backend keeps it.
//!
//! A handle names its backend instance, the generation of the device and one allocation. Numbers are never used
//! twice, so a handle that was freed, or whose device was recovered, names nothing. The table is shared by all
//! backends: whoever keeps memory in a [`Residents`] has all these checks.

use crate::batch::Batch;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};
use thiserror::Error as ThisError;

/// Counts the recoveries of a device. Handles of an earlier generation are stale.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Generation(pub u64);

/// A name for resident memory. Copying it copies the name, not the memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawHandle {
    instance: u32,
    generation: Generation,
    number: u64,
    bytes: u64,
}

impl RawHandle {
    /// The size of the memory.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }
}

impl fmt::Display for RawHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}.{} ({} bytes)", self.instance, self.number, self.bytes)
    }
}

impl fmt::Debug for RawHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a handle cannot be used so. Memory is never touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ThisError)]
pub enum HandleError {
    /// The memory has been freed.
    #[error("resident buffer {0} has been freed. help: allocate another one")]
    Freed(RawHandle),
    /// It belongs to another backend instance.
    #[error("resident buffer {0} belongs to another backend instance. help: use it where it was allocated")]
    Foreign(RawHandle),
    /// The device was recovered since.
    #[error("resident buffer {0} was lost with its device. help: allocate it again and upload the data")]
    Stale(RawHandle),
    /// A range that leaves the memory.
    #[error(
        "bytes {offset}..{} are not all inside resident buffer {handle}. help: ranges are in bytes and end within the buffer",
        .offset.saturating_add(*.bytes)
    )]
    Range {
        /// The buffer.
        handle: RawHandle,
        /// Where the range starts.
        offset: u64,
        /// How long it is.
        bytes: u64,
    },
    /// Another size than what is bound, uploaded or read needs.
    #[error("resident buffer {handle} is used for {given} bytes where {expected} are needed. help: {help}")]
    Size {
        /// The buffer.
        handle: RawHandle,
        /// How much is needed.
        expected: u64,
        /// How much it would be.
        given: u64,
        /// What to do.
        help: &'static str,
    },
    /// One range in two places of which one is written.
    #[error(
        "resident buffer {0} is bound twice and one of the two is written. help: give the program two buffers, or copy one first"
    )]
    Aliased(RawHandle),
}

impl HandleError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            HandleError::Freed(_) => "D020",
            HandleError::Foreign(_) => "D021",
            HandleError::Stale(_) => "D022",
            HandleError::Range { .. } => "D023",
            HandleError::Size { .. } => "D024",
            HandleError::Aliased(_) => "D025",
        }
    }
}

/// The resident memory of one backend instance. `M` is whatever the backend calls memory.
///
/// Work in flight holds its own reference, so freeing takes effect when the last use has ended.
pub struct Residents<M> {
    instance: u32,
    state: RwLock<State<M>>,
    bytes: AtomicU64,
}

struct State<M> {
    generation: Generation,
    next: u64,
    live: indexmap::IndexMap<u64, (u64, Arc<M>)>,
}

impl<M> Residents<M> {
    /// An empty table for a new backend instance.
    #[allow(clippy::new_without_default)] // Each one is another instance; a default is not.
    pub fn new() -> Residents<M> {
        static INSTANCES: AtomicU32 = AtomicU32::new(1);
        Residents {
            instance: INSTANCES.fetch_add(1, Relaxed),
            state: RwLock::new(State {
                generation: Generation::default(),
                next: 1,
                live: indexmap::IndexMap::new(),
            }),
            bytes: AtomicU64::new(0),
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State<M>> {
        self.state.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State<M>> {
        self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A handle for new memory of this size.
    pub fn insert(&self, bytes: u64, memory: M) -> RawHandle {
        let mut state = self.write();
        let number = state.next;
        state.next += 1;
        state.live.insert(number, (bytes, Arc::new(memory)));
        self.bytes.fetch_add(bytes, Relaxed);
        RawHandle { instance: self.instance, generation: state.generation, number, bytes }
    }

    /// The memory of a handle.
    pub fn get(&self, handle: RawHandle) -> Result<Arc<M>, HandleError> {
        let state = self.read();
        self.check(&state, handle)?;
        let (_, memory) = state.live.get(&handle.number).ok_or(HandleError::Freed(handle))?;
        Ok(Arc::clone(memory))
    }

    /// Proves that a batch can be executed and takes hold of the memory that it names, so that freeing it has to
    /// wait for the batch. Every backend does this first, when a batch is submitted or run.
    pub fn pin(&self, batch: &Batch<'_>) -> Result<Pins<M>, Error> {
        batch.check()?;
        let mut pins = Vec::new();
        for handle in batch.handles() {
            if !pins.iter().any(|(known, _)| *known == handle) {
                pins.push((handle, self.get(handle)?));
            }
        }
        Ok(Pins(pins))
    }

    /// Ends a handle. The memory goes with its last use.
    pub fn remove(&self, handle: RawHandle) -> Result<Arc<M>, HandleError> {
        let mut state = self.write();
        self.check(&state, handle)?;
        let (bytes, memory) = state.live.swap_remove(&handle.number).ok_or(HandleError::Freed(handle))?;
        self.bytes.fetch_sub(bytes, Relaxed);
        Ok(memory)
    }

    fn check(&self, state: &State<M>, handle: RawHandle) -> Result<(), HandleError> {
        if handle.instance != self.instance {
            Err(HandleError::Foreign(handle))
        } else if handle.generation != state.generation {
            Err(HandleError::Stale(handle))
        } else {
            Ok(())
        }
    }

    /// Forgets all memory and starts the next generation.
    pub fn recover(&self) -> Generation {
        let mut state = self.write();
        state.generation.0 += 1;
        state.live.clear();
        self.bytes.store(0, Relaxed);
        state.generation
    }

    /// The generation now.
    pub fn generation(&self) -> Generation {
        self.read().generation
    }

    /// How many bytes are resident.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

/// The resident memory that a batch names, held until the batch is done.
pub struct Pins<M>(Vec<(RawHandle, Arc<M>)>);

impl<M> Pins<M> {
    /// The memory of a handle that the batch names.
    pub fn get(&self, handle: RawHandle) -> Result<&Arc<M>> {
        let found = self.0.iter().find(|(known, _)| *known == handle);
        found.map(|(_, memory)| memory).ok_or(Error::Handle(HandleError::Freed(handle)))
    }
}

/// Checks a range of a handle, before anything is touched.
pub(crate) fn check_range(handle: RawHandle, offset: u64, bytes: u64) -> Result<(), Error> {
    match offset.checked_add(bytes) {
        Some(end) if end <= handle.bytes => Ok(()),
        _ => Err(HandleError::Range { handle, offset, bytes }.into()),
    }
}
