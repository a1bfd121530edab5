//! What an entry is found by.

use std::fmt;

/// The name of an entry: a hash of everything that the compiled bytes depend on.
///
/// ```
/// use vyre_driver::cache::Key;
///
/// let key = Key::new(&[b"program", b"options"]);
/// assert_eq!(key, Key::new(&[b"program", b"options"]));
/// assert_ne!(key, Key::new(&[b"programopt", b"ions"]));
/// assert_eq!(key.to_string().len(), 64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a list of parts. Two lists give the same key only if they are equal part by part.
    pub fn new(parts: &[&[u8]]) -> Key {
        Key(digest("vyre pipeline cache: key", parts))
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A number that is spread evenly over all keys.
    pub(super) fn spread(&self) -> u64 {
        self.0.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// 64 lower-case hexadecimal digits.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// The hash of a list of parts, each preceded by its length, for one purpose.
pub(super) fn digest(purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(purpose);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}
