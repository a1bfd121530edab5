//! Compiled pipelines on disk.
//!
//! Code is executed from this cache, so an entry is believed only if it is owned by the current user, writable
//! by nobody else, made by the same build for the same key, and whole to the last bit. Everything else is
//! removed and compiled again. Nothing here can fail a dispatch: after [`DiskCache::open`], whatever goes wrong
//! is a number in the [`DiskSnapshot`].
//!
//! ```
//! use vyre_driver::cache::{DiskCache, Key};
//!
//! # let scratch = tempfile::tempdir().unwrap();
//! # let folder = scratch.path().join("vyre");
//! let cache = DiskCache::open(folder, 64 << 20)?.with_namespace(b"cpu 0.1.0");
//! let key = Key::new(&[b"program hash", b"options", b"device"]);
//! assert_eq!(cache.get(&key), None);
//! cache.put(&key, b"machine code");
//! assert_eq!(cache.get(&key).as_deref(), Some(&b"machine code"[..]));
//! # Ok::<(), vyre_driver::cache::CacheError>(())
//! ```

mod access;
mod disk;
mod entry;
mod error;
mod evict;
mod folder;
mod key;
mod snapshot;
#[cfg(test)]
mod tests;

pub use disk::DiskCache;
pub use error::CacheError;
pub use key::Key;
pub use snapshot::DiskSnapshot;
