//! Making room: old entries and forgotten temporaries.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How the names of files end that are still being written.
pub(super) const TEMPORARY: &str = ".tmp";

/// After which time a temporary belongs to a process that has died.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);

/// What file systems give files in.
const BLOCK: u64 = 4096;

/// About what a file of so many bytes takes on disk: most entries are small, and none takes less than a block.
pub(super) fn footprint(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK).saturating_mul(BLOCK)
}

struct Entry {
    used: SystemTime,
    path: PathBuf,
    bytes: u64,
}

/// Removes forgotten temporaries, then the entries that were not used for longest until all that is left takes
/// at most `keep` bytes. Returns how many entries that were. Files that the cache has not made are left alone.
pub(super) fn trim(folder: &Path, keep: u64) -> u64 {
    let mut entries = entries(folder, SystemTime::now());
    let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    if total <= keep {
        return 0;
    }
    entries.sort_unstable_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
    let mut evicted = 0;
    for entry in entries {
        if total <= keep {
            break;
        }
        match fs::remove_file(&entry.path) {
            Ok(()) => evicted += 1,
            // Another process was faster.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => continue,
        }
        total -= entry.bytes;
    }
    evicted
}

/// The entries of the folder. Forgotten temporaries are removed on the way, others count as nothing.
fn entries(folder: &Path, now: SystemTime) -> Vec<Entry> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let mut entries = Vec::new();
    for file in listing.flatten() {
        let name = file.file_name();
        let (entry, temporary) = (is_entry(&name), is_temporary(&name));
        if !entry && !temporary {
            continue;
        }
        let Some((metadata, used)) = file.metadata().ok().and_then(times) else { continue };
        if entry {
            entries.push(Entry { used, path: file.path(), bytes: footprint(metadata.len()) });
        } else if now.duration_since(used).unwrap_or_else(|ahead| ahead.duration()) > FORGOTTEN {
            // Nobody waits for this file; if it cannot be removed now, the next pass tries again.
            fs::remove_file(file.path()).ok();
        }
    }
    entries
}

fn times(metadata: Metadata) -> Option<(Metadata, SystemTime)> {
    let used = metadata.modified().ok()?;
    (!metadata.is_dir()).then_some((metadata, used))
}

fn is_entry(name: &OsStr) -> bool {
    is_hex(name.as_encoded_bytes(), 64)
}

fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes().strip_suffix(TEMPORARY.as_bytes()).is_some_and(|stem| is_hex(stem, 32))
}

fn is_hex(name: &[u8], digits: usize) -> bool {
    name.len() == digits && name.iter().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}
