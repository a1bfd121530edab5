//! The cache itself.

use super::access;
use super::entry::{self, Identity};
use super::error::CacheError;
use super::evict::{self, TEMPORARY};
use super::folder::{self, Habit};
use super::key::Key;
use super::snapshot::{Counters, DiskSnapshot};
use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// The largest entry, as a fraction of the limit.
const LARGEST: u64 = 4;

/// What is kept free by a look through the folder, and stored until the next one, as a fraction of the limit.
const SLACK: u64 = 16;

/// How exactly the time of last use is recorded.
const USED: Duration = Duration::from_secs(60 * 60);

/// A folder of compiled pipelines that processes of one user share.
///
/// Any number of threads and processes may use one folder at once. An entry appears under its name whole or
/// not at all.
///
/// The folder is looked through only after something was stored, once for about every sixteenth of the limit;
/// then the entries that were not used for longest go until a sixteenth is free. So one process stays within
/// the limit, and many short-lived ones do so on average.
#[derive(Debug)]
pub struct DiskCache {
    folder: PathBuf,
    limit: u64,
    identity: Identity,
    counters: Counters,
    /// The bytes stored since the folder was last looked through.
    unseen: AtomicU64,
    /// Held while the folder is looked through.
    trimming: Mutex<()>,
    /// Tells the temporaries of this cache from those of all others.
    instance: u64,
    temporaries: AtomicU64,
}

impl DiskCache {
    /// Opens a folder, and makes it for the current user alone if it is missing. The entries together take at
    /// most about `limit_bytes` of the disk, in whole blocks of 4 KiB, a single one at most a quarter of it.
    ///
    /// A folder that is owned by someone else or that group or world may write is refused. A link is resolved
    /// once, here, and its target is held to the same.
    ///
    /// ```
    /// use vyre_driver::cache::DiskCache;
    ///
    /// let scratch = tempfile::tempdir().unwrap();
    /// let file = scratch.path().join("file");
    /// std::fs::write(&file, "").unwrap();
    /// assert_eq!(DiskCache::open(file, 1 << 20).unwrap_err().code(), "D040");
    /// ```
    pub fn open(folder: PathBuf, limit_bytes: u64) -> Result<DiskCache, CacheError> {
        Ok(DiskCache {
            folder: folder::prepare(&folder)?,
            limit: limit_bytes,
            identity: Identity::new(b""),
            counters: Counters::default(),
            unseen: AtomicU64::new(0),
            trimming: Mutex::new(()),
            instance: RandomState::new().hash_one(std::process::id()),
            temporaries: AtomicU64::new(0),
        })
    }

    /// Where the cache belongs: `$VYRE_CACHE_DIR` if it is set, and nowhere if that is empty; else a folder
    /// `vyre` where the system keeps caches: `$XDG_CACHE_HOME` or `~/.cache`, on macOS `~/Library/Caches`, on
    /// Windows `%LOCALAPPDATA%`.
    ///
    /// ```
    /// use vyre_driver::cache::DiskCache;
    ///
    /// match DiskCache::default_folder() {
    ///     Some(folder) => println!("compiled pipelines are kept in {}", folder.display()),
    ///     None => println!("compiled pipelines are not kept"),
    /// }
    /// ```
    pub fn default_folder() -> Option<PathBuf> {
        folder::default_folder(Habit::HERE, std::env::var_os)
    }

    /// The same cache for entries of one maker. `namespace` says all of its identity that the version of this
    /// crate does not, such as the version of a backend and of its code generator; entries of any other are
    /// not believed.
    ///
    /// Entries of two namespaces under the same [`Key`] replace each other, so what tells them apart belongs
    /// into the key too.
    #[must_use]
    pub fn with_namespace(self, namespace: &[u8]) -> DiskCache {
        DiskCache { identity: Identity::new(namespace), ..self }
    }

    /// The real path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was stored under this key. An entry that is not exactly that is removed.
    ///
    /// ```
    /// use vyre_driver::cache::{DiskCache, Key};
    ///
    /// let scratch = tempfile::tempdir().unwrap();
    /// let cache = DiskCache::open(scratch.path().join("vyre"), 1 << 20).unwrap();
    /// let key = Key::new(&[b"k"]);
    /// cache.put(&key, b"code");
    /// std::fs::write(cache.folder().join(key.to_string()), "other code").unwrap();
    /// assert_eq!(cache.get(&key), None);
    /// assert_eq!(cache.snapshot().rejected, 1);
    /// ```
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        match self.read(&path, key) {
            Ok(Some(payload)) => {
                self.counters.hits.count();
                Some(payload)
            }
            Ok(None) => {
                self.counters.misses.count();
                None
            }
            Err(Rejected) => {
                self.counters.rejected.count();
                // What cannot be removed is rejected again next time.
                fs::remove_file(&path).ok();
                None
            }
        }
    }

    /// Stores bytes under a key, in place of what was there. Whether that worked shows only in the
    /// [`snapshot`](DiskCache::snapshot): a cache that cannot be written is no reason to stop.
    ///
    /// ```
    /// use vyre_driver::cache::{DiskCache, Key};
    ///
    /// let scratch = tempfile::tempdir().unwrap();
    /// let cache = DiskCache::open(scratch.path().join("vyre"), 1 << 20).unwrap();
    /// cache.put(&Key::new(&[b"k"]), b"code");
    /// cache.put(&Key::new(&[b"l"]), &vec![0; 1 << 20]);
    /// assert_eq!((cache.snapshot().stored, cache.snapshot().too_large), (1, 1));
    /// ```
    pub fn put(&self, key: &Key, bytes: &[u8]) {
        let size = (bytes.len() as u64).saturating_add(entry::OVERHEAD);
        if size > self.largest() {
            self.counters.too_large.count();
            return;
        }
        if self.write(key, bytes).is_err() {
            self.counters.failed_writes.count();
            return;
        }
        self.counters.stored.count();
        if self.is_trim_due(key, evict::footprint(size)) {
            self.trim();
        }
    }

    /// What has happened since the cache was opened.
    ///
    /// ```
    /// use vyre_driver::cache::{DiskCache, Key};
    ///
    /// let scratch = tempfile::tempdir().unwrap();
    /// let cache = DiskCache::open(scratch.path().join("vyre"), 1 << 20).unwrap();
    /// cache.get(&Key::new(&[]));
    /// assert_eq!(cache.snapshot().misses, 1);
    /// ```
    pub fn snapshot(&self) -> DiskSnapshot {
        self.counters.snapshot()
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(key.to_string())
    }

    fn largest(&self) -> u64 {
        self.limit / LARGEST
    }

    fn read(&self, path: &Path, key: &Key) -> Result<Option<Vec<u8>>, Rejected> {
        let mut file = match access::open_entry(path) {
            Ok(file) => file,
            Err(error) => return why_not_opened(path, &error),
        };
        // Of the open file, not of the path: nobody can put another one in its place in between.
        let metadata = file.metadata().map_err(|_| Rejected)?;
        let trusted = metadata.is_file() && access::distrust(&metadata).is_none();
        if !trusted || metadata.len() > self.largest() {
            return Err(Rejected);
        }
        let payload = entry::read(&mut file, metadata.len(), &self.identity, key).ok_or(Rejected)?;
        record_use(&file, &metadata);
        Ok(Some(payload))
    }

    /// Nothing is synchronised to the disk: an entry that a power failure has torn fails its checksum.
    fn write(&self, key: &Key, bytes: &[u8]) -> io::Result<()> {
        let number = self.temporaries.fetch_add(1, Relaxed);
        let temporary = self.folder.join(format!("{:016x}{number:016x}{TEMPORARY}", self.instance));
        let mut file = access::create_private_file(&temporary)?;
        let written = entry::write(&mut file, &self.identity, key, bytes);
        drop(file);
        let stored = written.and_then(|()| fs::rename(&temporary, self.path(key)));
        if stored.is_err() {
            // If this fails too, a later look through the folder finds the file.
            fs::remove_file(&temporary).ok();
        }
        stored
    }

    /// Whether it is time to look through the folder. A process that stores little would never see enough by
    /// itself, so some keys say it is, as many as it takes to have their bytes seen on average.
    fn is_trim_due(&self, key: &Key, size: u64) -> bool {
        let interval = (self.limit / SLACK).max(1);
        let unseen = self.unseen.fetch_add(size, Relaxed).saturating_add(size);
        unseen >= interval || key.spread() % interval < size
    }

    pub(super) fn trim(&self) {
        // One thread at a time is enough.
        let Ok(_guard) = self.trimming.try_lock() else { return };
        self.unseen.store(0, Relaxed);
        let evicted = evict::trim(&self.folder, self.limit - self.limit / SLACK);
        self.counters.evicted.add(evicted);
    }
}

/// An entry that must not be used.
struct Rejected;

/// Tells a missing entry, and a passing failure to open one, from an entry that is of no use.
fn why_not_opened(path: &Path, error: &io::Error) -> Result<Option<Vec<u8>>, Rejected> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(None),
        io::ErrorKind::PermissionDenied => Err(Rejected),
        _ => match fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.is_file() => Err(Rejected),
            _ => Ok(None),
        },
    }
}

/// Marks an entry as used now, if the mark it has is old or lies in the future.
fn record_use(file: &File, metadata: &Metadata) {
    let now = SystemTime::now();
    let recent = metadata.modified().is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age < USED));
    if !recent {
        // Without the mark the entry is only evicted earlier than it should be.
        file.set_modified(now).ok();
    }
}
