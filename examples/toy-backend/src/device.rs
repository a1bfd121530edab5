//! The device: memory that only it can address. A real one would be reached through a driver.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much memory the device has.
pub(crate) const MEMORY: u64 = 64 << 20;

/// A device.
#[derive(Default)]
pub(crate) struct Device {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Grows up to [`MEMORY`].
    memory: Vec<u8>,
    /// Unused ranges below the end of `memory`, as (address, length).
    holes: Vec<(usize, usize)>,
}

/// Memory of a device. It is given back when it is dropped.
pub(crate) struct Block {
    device: Arc<Device>,
    address: usize,
    bytes: usize,
}

impl Device {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Zeroed memory, or how much there is at most.
    pub(crate) fn allocate(self: &Arc<Device>, bytes: u64) -> Result<Block, u64> {
        let mut state = self.lock();
        let left = MEMORY - state.memory.len() as u64;
        let fits = |hole: &(usize, usize)| hole.1 as u64 >= bytes;
        let address = if let Some(place) = state.holes.iter().position(fits) {
            let (address, length) = state.holes.swap_remove(place);
            let rest = length - bytes as usize;
            if rest > 0 {
                state.holes.push((address + bytes as usize, rest));
            }
            state.memory[address..address + bytes as usize].fill(0);
            address
        } else if bytes <= left {
            let address = state.memory.len();
            state.memory.resize(address + bytes as usize, 0);
            address
        } else {
            let largest = state.holes.iter().map(|hole| hole.1 as u64).max().unwrap_or(0);
            return Err(left.max(largest));
        };
        Ok(Block { device: Arc::clone(self), address, bytes: bytes as usize })
    }
}

impl Block {
    /// Copies bytes of the block to the host.
    pub(crate) fn read(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let start = self.address + offset as usize;
        self.device.lock().memory[start..start + bytes as usize].to_vec()
    }

    /// Copies bytes of the host into the block.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        let start = self.address + offset as usize;
        self.device.lock().memory[start..start + bytes.len()].copy_from_slice(bytes);
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut state = self.device.lock();
        if self.address + self.bytes == state.memory.len() {
            state.memory.truncate(self.address);
        } else if self.bytes > 0 {
            state.holes.push((self.address, self.bytes));
        }
        // Whatever is unused at the end is not needed either.
        while let Some(place) = state.holes.iter().position(|hole| hole.0 + hole.1 == state.memory.len()) {
            let (address, _) = state.holes.swap_remove(place);
            state.memory.truncate(address);
        }
    }
}
