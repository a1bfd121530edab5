//! Bytes of the host whose number comes from a program or an input: getting them can fail.

use crate::error::{Error, Result};
use std::alloc::{Layout, alloc_zeroed};

/// `bytes` zeros, or an error where there is not so much memory.
pub(crate) fn zeros(bytes: u64, what: &str) -> Result<Vec<u8>> {
    let full = || Error::OutOfMemory { what: what.to_owned(), asked: bytes, available: None };
    let layout = usize::try_from(bytes).ok().and_then(|bytes| Layout::array::<u8>(bytes).ok());
    let layout = layout.ok_or_else(full)?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // Zeroed by the allocator: large memory is not touched before it is used.
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(full());
    }
    // SAFETY: the allocation has this layout, and all bytes are initialised.
    Ok(unsafe { Vec::from_raw_parts(start, layout.size(), layout.size()) })
}

/// A copy, or an error where there is not so much memory.
pub(crate) fn copied(bytes: &[u8], what: &str) -> Result<Vec<u8>> {
    let mut memory = Vec::new();
    let asked = bytes.len() as u64;
    let full = |_| Error::OutOfMemory { what: what.to_owned(), asked, available: None };
    memory.try_reserve_exact(bytes.len()).map_err(full)?;
    memory.extend_from_slice(bytes);
    Ok(memory)
}
