//! Compiled programs on disk: found by the next backend, never run when they are not whole, refused where others may
//! write.

use std::path::{Path, PathBuf};
use vyre_driver::{BackendExt, Counters, DispatchConfig, Feature, VyreBackend};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::Program;

const TEXT: &str = "program p { buffer o: output u32[4]; o[global_id.x] = global_id.x * 3 + 1; }";

fn options(folder: &Path) -> CpuOptions {
    CpuOptions { threads: 1, cache_folder: Some(folder.to_owned()), ..CpuOptions::default() }
}

/// Runs the program on a new backend and says what that took.
fn run(folder: &Path) -> Counters {
    let backend = CpuBackend::with_options(options(folder)).expect("a CPU");
    let program = Program::parse(TEXT).expect("a program");
    let output = backend.dispatch(&program, vec![], &DispatchConfig::new()).expect("a result");
    let expected: Vec<u8> = [1u32, 4, 7, 10].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(output.outputs, [expected]);
    backend.telemetry().snapshot()
}

fn entry(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.next().expect("an entry")
}

#[test]
fn the_next_backend_compiles_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("cache");
    let first = run(&folder);
    assert_eq!((first.compiles, first.disk_hits, first.disk_misses), (1, 0, 1));
    let second = run(&folder);
    assert_eq!((second.compiles, second.disk_hits, second.disk_misses), (0, 1, 0));
}

#[test]
fn a_flipped_byte_anywhere_leads_to_compilation() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("cache");
    run(&folder);
    let path = entry(&folder);
    let good = std::fs::read(&path).expect("an entry");
    assert!(good.len() > 300, "the entry holds the code");
    for i in 0..good.len() {
        let mut bad = good.clone();
        bad[i] ^= 1 << (i % 8);
        std::fs::write(&path, &bad).expect("written");
        let counters = run(&folder);
        assert_eq!((counters.compiles, counters.disk_hits), (1, 0), "byte {i}");
        assert!(std::fs::read(&path).expect("an entry") == good, "byte {i}: the entry is whole again");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    for mode in [0o770, 0o707, 0o777] {
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).expect("changed");
        let error = CpuBackend::with_options(options(folder.path())).err().expect("refused");
        assert_eq!(error.code(), "D041", "{mode:o}: {error}");
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).expect("changed");
    run(folder.path());
}

#[test]
fn where_there_can_be_no_folder_programs_run_without_one() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let backend = CpuBackend::with_options(options(&file.path().join("cache"))).expect("a CPU");
    assert!(!backend.supports(Feature::DiskCache));
    let program = Program::parse(TEXT).expect("a program");
    backend.dispatch(&program, vec![], &DispatchConfig::new()).expect("a result");
}
