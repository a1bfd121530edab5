//! Bytes of the host whose number comes from a program or an input: getting them can fail.

use crate::error::{Error, Result};

/// `bytes` zeros, or an error where there is not so much memory.
pub(crate) fn zeros(bytes: u64, what: &str) -> Result<Vec<u8>> {
    let mut memory = reserved(bytes, what)?;
    memory.resize(bytes as usize, 0);
    Ok(memory)
}

/// A copy, or an error where there is not so much memory.
pub(crate) fn copied(bytes: &[u8], what: &str) -> Result<Vec<u8>> {
    let mut memory = reserved(bytes.len() as u64, what)?;
    memory.extend_from_slice(bytes);
    Ok(memory)
}

fn reserved(bytes: u64, what: &str) -> Result<Vec<u8>> {
    let mut memory = Vec::new();
    let reserved = usize::try_from(bytes).ok().and_then(|bytes| memory.try_reserve_exact(bytes).ok());
    let error = || Error::OutOfMemory { what: what.to_owned(), asked: bytes, available: None };
    reserved.ok_or_else(error).map(|()| memory)
}
