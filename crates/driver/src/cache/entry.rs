//! The bytes of one entry.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic |
//! | 4 | format version |
//! | 32 | build identity |
//! | 32 | key |
//! | 8 | payload length |
//! | … | payload |
//! | 32 | blake3 over everything before it |
//!
//! Numbers are little-endian. A reader knows what the head must be before it reads it, down to the length,
//! which follows from the size of the file.

use super::key::{Key, digest};
use std::io::{self, Read, Write};

const MAGIC: [u8; 8] = *b"vyre\0pc\n";
const VERSION: u32 = 1;
const HEAD: usize = 8 + 4 + 32 + 32 + 8;
const CHECKSUM: usize = blake3::OUT_LEN;

/// How much longer an entry is than its payload.
pub(super) const OVERHEAD: u64 = (HEAD + CHECKSUM) as u64;

/// Who made an entry: this version of vyre for this kind of machine, and what the caller adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity([u8; 32]);

impl Identity {
    pub(super) fn new(namespace: &[u8]) -> Identity {
        Identity::of_version(env!("CARGO_PKG_VERSION"), namespace)
    }

    pub(super) fn of_version(version: &str, namespace: &[u8]) -> Identity {
        let machine = [std::env::consts::ARCH.as_bytes(), std::env::consts::OS.as_bytes()];
        let parts = [version.as_bytes(), machine[0], machine[1], namespace];
        Identity(digest("vyre pipeline cache: build identity", &parts))
    }
}

/// Writes an entry.
pub(super) fn write(to: &mut impl Write, identity: &Identity, key: &Key, payload: &[u8]) -> io::Result<()> {
    let head = head(identity, key, payload.len() as u64);
    to.write_all(&head)?;
    to.write_all(payload)?;
    to.write_all(checksum(&head, payload).as_bytes())
}

/// The payload of an entry in a file of `length` bytes, if it is whole and the one that is looked for.
pub(super) fn read(from: &mut impl Read, length: u64, identity: &Identity, key: &Key) -> Option<Vec<u8>> {
    let expected = head(identity, key, length.checked_sub(OVERHEAD)?);
    let mut found = [0; HEAD];
    from.read_exact(&mut found).ok()?;
    if found != expected {
        return None;
    }
    let rest = length - HEAD as u64;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(rest).ok()?).ok()?;
    // One byte more than there should be shows a file that has grown.
    from.take(rest + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 != rest {
        return None;
    }
    let (payload, sum) = bytes.split_last_chunk::<CHECKSUM>()?;
    if checksum(&expected, payload) != *sum {
        return None;
    }
    bytes.truncate(bytes.len() - CHECKSUM);
    Some(bytes)
}

fn head(identity: &Identity, key: &Key, payload: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let mut rest = &mut head[..];
    for field in [&MAGIC[..], &VERSION.to_le_bytes(), &identity.0, key.as_bytes(), &payload.to_le_bytes()] {
        let (place, after) = rest.split_at_mut(field.len());
        place.copy_from_slice(field);
        rest = after;
    }
    head
}

fn checksum(head: &[u8; HEAD], payload: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(head).update(payload).finalize()
}
