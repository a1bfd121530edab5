//! The cache as a backend sees it, with other users, processes and broken disks around it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use vyre_driver::cache::{DiskCache, DiskSnapshot, Key};

const LIMIT: u64 = 1 << 20;

fn cache() -> (TempDir, DiskCache) {
    let scratch = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(scratch.path().join("vyre"), LIMIT).unwrap();
    (scratch, cache)
}

fn key(name: &str) -> Key {
    Key::new(&[name.as_bytes()])
}

fn path(cache: &DiskCache, key: &Key) -> PathBuf {
    cache.folder().join(key.to_string())
}

#[test]
fn what_is_stored_is_found_again() {
    let (_scratch, cache) = cache();
    let large = vec![0xa5; 100_000];
    cache.put(&key("empty"), b"");
    cache.put(&key("large"), &large);
    cache.put(&key("twice"), b"first");
    cache.put(&key("twice"), b"second");
    let again = DiskCache::open(cache.folder().to_path_buf(), LIMIT).unwrap();
    for cache in [&cache, &again] {
        assert_eq!(cache.get(&key("empty")).as_deref(), Some(&b""[..]));
        assert_eq!(cache.get(&key("large")).as_deref(), Some(&large[..]));
        assert_eq!(cache.get(&key("twice")).as_deref(), Some(&b"second"[..]));
        assert_eq!(cache.get(&key("none")), None);
    }
    let lookups = DiskSnapshot { hits: 3, misses: 1, ..DiskSnapshot::default() };
    assert_eq!(again.snapshot(), lookups);
    assert_eq!(cache.snapshot(), DiskSnapshot { stored: 4, ..lookups });
}

#[test]
fn a_broken_file_is_rejected_and_removed() {
    let (_scratch, cache) = cache();
    let key = key("k");
    cache.put(&key, b"a small payload");
    let path = path(&cache, &key);
    let whole = fs::read(&path).unwrap();
    let flipped = (0..whole.len()).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    });
    let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
    let longer = [[&whole[..], b"\0"].concat(), [&whole[..], &whole[..]].concat(), vec![0; LIMIT as usize]];
    let mut rejected = 0;
    for bytes in flipped.chain(cut).chain(longer) {
        fs::write(&path, &bytes).unwrap();
        assert_eq!(cache.get(&key), None);
        assert!(!path.exists());
        rejected += 1;
        assert_eq!(cache.snapshot().rejected, rejected);
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(cache.get(&key).as_deref(), Some(&b"a small payload"[..]));
}

#[test]
fn an_entry_of_another_key_or_namespace_is_rejected() {
    let (scratch, cache) = cache();
    let reopen = || DiskCache::open(scratch.path().join("vyre"), LIMIT).unwrap();
    cache.put(&key("a"), b"code of a");
    fs::rename(path(&cache, &key("a")), path(&cache, &key("b"))).unwrap();
    assert_eq!(cache.get(&key("b")), None);
    assert_eq!(cache.snapshot().rejected, 1);

    let one = reopen().with_namespace(b"cpu 1");
    let two = reopen().with_namespace(b"cpu 2");
    one.put(&key("a"), b"code");
    assert!(one.get(&key("a")).is_some());
    assert_eq!(two.get(&key("a")), None);
    assert_eq!(one.get(&key("a")), None);
    assert_eq!((two.snapshot().rejected, one.snapshot().misses), (1, 1));
}

#[test]
fn a_large_entry_is_not_stored() {
    let (_scratch, cache) = cache();
    cache.put(&key("k"), &vec![0; LIMIT as usize / 4]);
    assert_eq!(cache.snapshot(), DiskSnapshot { too_large: 1, ..DiskSnapshot::default() });
    assert_eq!(fs::read_dir(cache.folder()).unwrap().count(), 0);
    let none = DiskCache::open(cache.folder().to_path_buf(), 0).unwrap();
    none.put(&key("k"), b"");
    assert_eq!(none.snapshot().too_large, 1);
    // Nor is one read that a cache with a higher limit has stored.
    cache.put(&key("k"), &[0; 10_000]);
    let lower = DiskCache::open(cache.folder().to_path_buf(), 40_000).unwrap();
    assert_eq!(lower.get(&key("k")), None);
    assert_eq!((lower.snapshot().rejected, cache.snapshot().stored), (1, 1));
}

/// What the files of a folder take on disk, by whole blocks.
fn total(folder: &Path) -> u64 {
    let block =
        |file: std::io::Result<fs::DirEntry>| file.unwrap().metadata().unwrap().len().next_multiple_of(4096);
    fs::read_dir(folder).unwrap().map(block).sum()
}

#[test]
fn one_process_stays_within_the_limit() {
    let (_scratch, cache) = cache();
    for i in 0..400u32 {
        cache.put(&key(&i.to_string()), &vec![0; 1000 + 37 * i as usize]);
        assert!(total(cache.folder()) <= LIMIT);
    }
    let seen = cache.snapshot();
    let left = fs::read_dir(cache.folder()).unwrap().count() as u64;
    assert_eq!(seen.stored, seen.evicted + left);
    assert!(total(cache.folder()) > LIMIT / 2);
    assert!(cache.get(&key("399")).is_some());
}

#[test]
fn short_processes_stay_near_the_limit() {
    let (_scratch, cache) = cache();
    for i in 0..2000u32 {
        let short = DiskCache::open(cache.folder().to_path_buf(), LIMIT).unwrap();
        short.put(&key(&i.to_string()), &[0; 2000]);
    }
    assert!(total(cache.folder()) <= LIMIT * 3 / 2);
}

#[test]
fn a_folder_that_goes_away_costs_nothing_but_hits() {
    let (_scratch, cache) = cache();
    cache.put(&key("k"), b"p");
    fs::remove_dir_all(cache.folder()).unwrap();
    assert_eq!(cache.get(&key("k")), None);
    cache.put(&key("k"), b"p");
    let seen = cache.snapshot();
    assert_eq!((seen.misses, seen.failed_writes, seen.stored), (1, 1, 1));
}

#[test]
fn something_else_than_a_folder_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    let error = DiskCache::open(file.clone(), LIMIT).unwrap_err();
    assert_eq!((error.code(), error.folder()), ("D040", &*file));
    assert_eq!(
        error.to_string(),
        format!(
            "the cache folder `{}` is not a folder. help: set `VYRE_CACHE_DIR` to a folder of your own, or to nothing to go without",
            file.display()
        )
    );
    let below = DiskCache::open(file.join("below"), LIMIT).unwrap_err();
    assert!(matches!(below.code(), "D043" | "D044"), "{below}");
}

const ROUNDS: u32 = 100;

/// The payload of one writer: a reader can tell whether it is whole and from one writer.
fn payload(writer: u32) -> Vec<u8> {
    vec![writer as u8; 3000 + 1000 * writer as usize]
}

fn store_and_check(cache: &DiskCache, writer: u32) {
    for _ in 0..ROUNDS {
        cache.put(&key("shared"), &payload(writer));
        let found = cache.get(&key("shared")).expect("an entry that is replaced is never missing");
        assert_eq!(found, payload(u32::from(found[0])));
    }
    let seen = cache.snapshot();
    assert_eq!((seen.rejected, seen.failed_writes), (0, 0));
}

#[test]
fn threads_store_one_key_at_once() {
    let (_scratch, cache) = cache();
    let cache = &cache;
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || store_and_check(cache, writer));
        }
    });
    assert_eq!(cache.snapshot().hits, u64::from(4 * ROUNDS));
    assert_eq!(fs::read_dir(cache.folder()).unwrap().count(), 1);
}

const FOLDER: &str = "VYRE_TEST_CACHE_FOLDER";
const WRITER: &str = "VYRE_TEST_CACHE_WRITER";

#[test]
#[ignore = "the other process of `processes_store_one_key_at_once`"]
fn writer_process() {
    let (Some(folder), Ok(writer)) = (std::env::var_os(FOLDER), std::env::var(WRITER)) else { return };
    let cache = DiskCache::open(folder.into(), LIMIT).unwrap();
    store_and_check(&cache, writer.parse().unwrap());
}

#[test]
fn processes_store_one_key_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    // Not made yet: the processes also race for making it.
    let folder = scratch.path().join("a").join("vyre");
    let start = |writer: u32| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer_process", "--ignored"])
            .env(FOLDER, &folder)
            .env(WRITER, writer.to_string())
            .output()
            .unwrap()
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|writer| scope.spawn(move || start(writer))).collect();
        for run in runs {
            let output = run.join().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
        }
    });
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[cfg(unix)]
mod rights {
    use super::*;
    use rustix::process::geteuid;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn what_is_made_is_for_the_owner_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a").join("b");
        let cache = DiskCache::open(folder.clone(), LIMIT).unwrap();
        cache.put(&key("k"), b"p");
        assert_eq!(mode(&scratch.path().join("a")), 0o700);
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&path(&cache, &key("k"))), 0o600);
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("vyre");
        fs::create_dir(&folder).unwrap();
        symlink(&folder, scratch.path().join("link")).unwrap();
        for bits in [0o770, 0o720, 0o702, 0o777, 0o1777] {
            set_mode(&folder, bits);
            let error = DiskCache::open(folder.clone(), LIMIT).unwrap_err();
            assert_eq!(error.code(), "D041", "{bits:o}");
            let text = error.to_string();
            assert!(text.contains(&format!("(mode {bits:04o}). help: `chmod go-w '")), "{text}");
            assert_eq!(DiskCache::open(scratch.path().join("link"), LIMIT).unwrap_err().code(), "D041");
        }
        for bits in [0o700, 0o755] {
            set_mode(&folder, bits);
            DiskCache::open(folder.clone(), LIMIT).unwrap();
        }
    }

    #[test]
    fn a_link_is_resolved_once() {
        let scratch = tempfile::tempdir().unwrap();
        let (folder, link) = (scratch.path().join("vyre"), scratch.path().join("link"));
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o700);
        symlink(&folder, &link).unwrap();
        let cache = DiskCache::open(link.clone(), LIMIT).unwrap();
        assert_eq!(cache.folder(), folder.canonicalize().unwrap());
        fs::remove_file(&link).unwrap();
        cache.put(&key("k"), b"p");
        assert!(cache.get(&key("k")).is_some());

        symlink(scratch.path().join("nothing"), &link).unwrap();
        assert_eq!(DiskCache::open(link, LIMIT).unwrap_err().code(), "D043");
    }

    /// Root can give a folder away; everybody else does not own the root of the file system.
    #[test]
    fn a_folder_of_someone_else_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = if geteuid().is_root() {
            let folder = scratch.path().join("vyre");
            drop(DiskCache::open(folder.clone(), LIMIT).unwrap());
            chown(&folder, Some(12345), None).unwrap();
            folder
        } else {
            PathBuf::from("/")
        };
        let error = DiskCache::open(folder, LIMIT).unwrap_err();
        assert_eq!(error.code(), "D042", "{error}");
    }

    #[test]
    fn an_entry_that_others_may_write_is_rejected() {
        let (_scratch, cache) = cache();
        for bits in [0o660, 0o602, 0o666] {
            cache.put(&key("k"), b"p");
            assert!(cache.get(&key("k")).is_some());
            let path = path(&cache, &key("k"));
            set_mode(&path, bits);
            assert_eq!(cache.get(&key("k")), None, "{bits:o}");
            assert!(!path.exists());
        }
        assert_eq!(cache.snapshot().rejected, 3);
    }

    /// Only root can give a file away; for everybody else the judgement itself has a test beside it.
    #[test]
    fn an_entry_of_someone_else_is_rejected() {
        if !geteuid().is_root() {
            return;
        }
        let (_scratch, cache) = cache();
        cache.put(&key("k"), b"p");
        chown(path(&cache, &key("k")), Some(12345), None).unwrap();
        assert_eq!(cache.get(&key("k")), None);
        assert_eq!(cache.snapshot().rejected, 1);
    }

    #[test]
    fn an_entry_that_is_no_plain_file_is_rejected() {
        let (scratch, cache) = cache();
        let (key, outside) = (key("k"), scratch.path().join("outside"));
        cache.put(&key, b"p");
        let path = path(&cache, &key);
        fs::rename(&path, &outside).unwrap();
        symlink(&outside, &path).unwrap();
        assert_eq!(cache.get(&key), None);
        // The link is gone, what it showed is not.
        assert!(path.symlink_metadata().is_err() && outside.exists());

        let pipe = Command::new("mkfifo").arg(&path).status();
        if pipe.is_ok_and(|status| status.success()) {
            assert_eq!(cache.get(&key), None);
            assert!(!path.exists());
        }
        fs::create_dir(&path).unwrap();
        assert_eq!(cache.get(&key), None);
        assert!(cache.snapshot().rejected >= 2);
    }

    /// A link under the name of an entry is replaced, not written through.
    #[test]
    fn a_link_is_not_written_through() {
        let (scratch, cache) = cache();
        let outside = scratch.path().join("outside");
        fs::write(&outside, "precious").unwrap();
        symlink(&outside, path(&cache, &key("k"))).unwrap();
        cache.put(&key("k"), b"p");
        assert_eq!(fs::read(&outside).unwrap(), b"precious");
        assert!(cache.get(&key("k")).is_some());
    }

    /// Rights do not stop root, so for root the folder is one that goes away (a test of its own).
    #[test]
    fn a_folder_that_cannot_be_written_can_be_read() {
        if geteuid().is_root() {
            return;
        }
        let (_scratch, cache) = cache();
        cache.put(&key("k"), b"p");
        set_mode(cache.folder(), 0o500);
        let again = DiskCache::open(cache.folder().to_path_buf(), LIMIT).unwrap();
        again.put(&key("l"), b"p");
        assert!(again.get(&key("k")).is_some());
        set_mode(cache.folder(), 0o700);
        assert_eq!(again.snapshot(), DiskSnapshot { hits: 1, failed_writes: 1, ..DiskSnapshot::default() });
    }
}
