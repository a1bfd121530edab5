//! What cannot be seen from outside: the bytes of an entry, making room, and where the folder belongs.

use super::entry::{self, Identity, OVERHEAD};
use super::folder::{Habit, default_folder};
use super::{DiskCache, Key, evict};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

fn entry_bytes(identity: &Identity, key: &Key, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    entry::write(&mut bytes, identity, key, payload).unwrap();
    bytes
}

fn read(bytes: &[u8], identity: &Identity, key: &Key) -> Option<Vec<u8>> {
    entry::read(&mut &bytes[..], bytes.len() as u64, identity, key)
}

fn cache(limit: u64) -> (TempDir, DiskCache) {
    let scratch = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(scratch.path().join("vyre"), limit).unwrap();
    (scratch, cache)
}

fn set_age(path: &Path, age: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

const HOUR: Duration = Duration::from_secs(60 * 60);

#[test]
fn an_entry_is_read_as_it_was_written() {
    let (identity, key) = (Identity::new(b"n"), Key::new(&[b"k"]));
    for payload in [&b""[..], b"x", &[7; 5000]] {
        let bytes = entry_bytes(&identity, &key, payload);
        assert_eq!(bytes.len() as u64, payload.len() as u64 + OVERHEAD);
        assert_eq!(read(&bytes, &identity, &key).as_deref(), Some(payload));
    }
}

#[test]
fn every_bit_of_an_entry_counts() {
    let (identity, key) = (Identity::new(b"n"), Key::new(&[b"k"]));
    let bytes = entry_bytes(&identity, &key, b"a small payload");
    for at in 0..bytes.len() {
        for flip in 1..=u8::MAX {
            let mut broken = bytes.clone();
            broken[at] ^= flip;
            assert_eq!(read(&broken, &identity, &key), None, "byte {at} ^ {flip:#x}");
        }
    }
}

#[test]
fn an_entry_has_one_length() {
    let (identity, key) = (Identity::new(b"n"), Key::new(&[b"k"]));
    let bytes = entry_bytes(&identity, &key, b"a small payload");
    for length in 0..bytes.len() {
        assert_eq!(read(&bytes[..length], &identity, &key), None, "{length} bytes");
        // A file that is cut or that grows between the look at its size and the reading of it.
        let size = bytes.len() as u64;
        assert_eq!(entry::read(&mut &bytes[..length], size, &identity, &key), None, "{length} of {size}");
        assert_eq!(entry::read(&mut &bytes[..], length as u64, &identity, &key), None, "{size} for {length}");
    }
    let longer = [&bytes[..], b"\0"].concat();
    assert_eq!(read(&longer, &identity, &key), None);
    assert_eq!(entry::read(&mut &longer[..], bytes.len() as u64, &identity, &key), None);
    assert_eq!(entry::read(&mut &bytes[..], u64::MAX, &identity, &key), None);
}

#[test]
fn an_entry_of_another_maker_is_not_read() {
    let (identity, key) = (Identity::of_version("1.0.0", b"n"), Key::new(&[b"k"]));
    let bytes = entry_bytes(&identity, &key, b"p");
    assert!(read(&bytes, &identity, &key).is_some());
    assert_eq!(read(&bytes, &Identity::of_version("1.0.1", b"n"), &key), None);
    assert_eq!(read(&bytes, &Identity::of_version("1.0.0", b"m"), &key), None);
    assert_eq!(read(&bytes, &Identity::of_version("1.0.0", b""), &key), None);
    assert_eq!(read(&bytes, &identity, &Key::new(&[b"l"])), None);
}

#[test]
fn keys_tell_parts_apart() {
    let lists: [&[&[u8]]; 7] = [&[], &[b""], &[b"", b""], &[b"a"], &[b"a", b""], &[b"", b"a"], &[b"ab"]];
    for (i, a) in lists.iter().enumerate() {
        for (j, b) in lists.iter().enumerate() {
            assert_eq!(Key::new(a) == Key::new(b), i == j, "{a:?} {b:?}");
        }
    }
}

/// A key that changed would leave every cache of every user unused. This is what it is.
#[test]
fn keys_are_stable() {
    assert_eq!(
        Key::new(&[b"program", b"options"]).to_string(),
        "78e408304468aa0226f4f367886e4f7828e75b664d9557dffad9ed8460078245"
    );
}

#[test]
fn what_was_used_last_stays() {
    let (_scratch, cache) = cache(1 << 30);
    let keys: Vec<Key> = (0..8u8).map(|i| Key::new(&[&[i]])).collect();
    // A small file takes a whole block.
    let size = 4096;
    // In the order of their ages 0 is the youngest, and not in the order of their names.
    for (age, key) in (0..).zip(&keys) {
        cache.put(key, &[0; 100]);
        set_age(&cache.folder().join(key.to_string()), HOUR * (age + 2));
    }
    assert_eq!(evict::trim(cache.folder(), 8 * size), 0);
    assert_eq!(evict::trim(cache.folder(), 8 * size - 1), 1);
    assert_eq!(cache.get(&keys[7]), None);
    // Use makes 6 young again.
    assert!(cache.get(&keys[6]).is_some());
    assert_eq!(evict::trim(cache.folder(), 3 * size), 4);
    let left: Vec<bool> = keys.iter().map(|key| cache.get(key).is_some()).collect();
    assert_eq!(left, [true, true, false, false, false, false, true, false]);
    assert_eq!(evict::trim(cache.folder(), 0), 3);
}

#[test]
fn use_is_recorded_once_an_hour() {
    let (_scratch, cache) = cache(1 << 20);
    let key = Key::new(&[b"k"]);
    cache.put(&key, b"p");
    let path = cache.folder().join(key.to_string());
    let age = || SystemTime::now().duration_since(fs::metadata(&path).unwrap().modified().unwrap()).unwrap();
    set_age(&path, HOUR / 2);
    assert!(cache.get(&key).is_some());
    assert!(age() >= HOUR / 2);
    set_age(&path, HOUR * 2);
    assert!(cache.get(&key).is_some());
    assert!(age() < HOUR / 2);
    // A mark in the future would protect the entry for good.
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() + HOUR).unwrap();
    assert!(cache.get(&key).is_some());
    assert!(fs::metadata(&path).unwrap().modified().unwrap() <= SystemTime::now());
}

#[test]
fn forgotten_temporaries_are_removed_and_nothing_else() {
    let (_scratch, cache) = cache(1 << 20);
    let stem = "0123456789abcdef0123456789abcdef";
    let old = [format!("{stem}.tmp"), format!("{stem}.txt"), "notes.tmp".to_owned(), stem.to_uppercase()];
    for name in &old {
        fs::write(cache.folder().join(name), "half").unwrap();
        set_age(&cache.folder().join(name), HOUR * 2);
    }
    let young = format!("f{}.tmp", &stem[1..]);
    fs::write(cache.folder().join(&young), "half").unwrap();
    fs::create_dir(cache.folder().join("e".repeat(64))).unwrap();
    cache.trim();
    assert_eq!(evict::trim(cache.folder(), 0), 0);
    assert!(!cache.folder().join(&old[0]).exists());
    for kept in old[1..].iter().chain([&young, &"e".repeat(64)]) {
        assert!(cache.folder().join(kept).exists(), "{kept}");
    }
}

#[test]
fn a_failed_write_leaves_no_temporary() {
    let (_scratch, cache) = cache(1 << 20);
    let key = Key::new(&[b"k"]);
    // A folder that is not empty stands where the entry should be, which stops every user.
    fs::create_dir_all(cache.folder().join(key.to_string()).join("x")).unwrap();
    cache.put(&key, b"p");
    assert_eq!(cache.get(&key), None);
    let seen = cache.snapshot();
    assert_eq!((seen.stored, seen.failed_writes, seen.rejected), (0, 1, 1));
    assert_eq!(fs::read_dir(cache.folder()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn owners_and_rights_are_judged() {
    use super::access::{Distrust, judge};
    for mode in [0o100_600, 0o100_644, 0o40_700, 0o40_755, 0o40_500] {
        assert_eq!(judge(1000, mode, 1000), None, "{mode:o}");
        assert_eq!(judge(0, mode, 1000), Some(Distrust::Owner { owner: 0, user: 1000 }));
        assert_eq!(judge(1000, mode, 0), Some(Distrust::Owner { owner: 1000, user: 0 }));
    }
    for mode in [0o720, 0o702, 0o777, 0o1777, 0o620] {
        assert_eq!(judge(0, 0o40_000 | mode, 0), Some(Distrust::Writable { mode }));
    }
}

/// An absolute path on this system.
fn base(name: &str) -> PathBuf {
    Path::new(if cfg!(windows) { "C:\\" } else { "/" }).join(name)
}

fn chosen(habit: Habit, variables: &[(&str, PathBuf)]) -> Option<PathBuf> {
    let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
    default_folder(habit, value)
}

#[test]
fn the_default_folder_follows_the_system() {
    let all = [("XDG_CACHE_HOME", base("x")), ("HOME", base("h")), ("LOCALAPPDATA", base("l"))];
    assert_eq!(chosen(Habit::Xdg, &all), Some(base("x").join("vyre")));
    assert_eq!(chosen(Habit::Xdg, &all[1..]), Some(base("h").join(".cache").join("vyre")));
    assert_eq!(chosen(Habit::MacOs, &all), Some(base("h").join("Library").join("Caches").join("vyre")));
    assert_eq!(chosen(Habit::Windows, &all), Some(base("l").join("vyre")));
    for habit in [Habit::Xdg, Habit::MacOs, Habit::Windows] {
        assert_eq!(chosen(habit, &[]), None);
        let own = |value: PathBuf| [&[("VYRE_CACHE_DIR", value)], &all[..]].concat();
        assert_eq!(chosen(habit, &own(base("own"))), Some(base("own")));
        assert_eq!(chosen(habit, &own(PathBuf::from("near"))), Some(PathBuf::from("near")));
        assert_eq!(chosen(habit, &own(PathBuf::new())), None);
    }
}

#[test]
fn a_relative_base_is_no_base() {
    let relative = [("XDG_CACHE_HOME", PathBuf::from("x")), ("HOME", base("h"))];
    assert_eq!(chosen(Habit::Xdg, &relative), Some(base("h").join(".cache").join("vyre")));
    let nothing = [("XDG_CACHE_HOME", PathBuf::new()), ("HOME", PathBuf::new())];
    assert_eq!(chosen(Habit::Xdg, &nothing), None);
}
