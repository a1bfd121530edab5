//! The backend suite, and generated programs against the reference: with any number of threads, with every buffer
//! against a page that cannot be touched, with the instructions that every machine has, and lane by lane or in vectors.

use std::sync::Arc;
use vyre_conform::{DEFAULT_SIZE, Device, Executor, Reference, compare, generate};
use vyre_driver_cpu::{CpuBackend, CpuOptions, Instructions, Placement, Simd};
use vyre_reference::Schedule;

fn backend(options: CpuOptions) -> Arc<CpuBackend> {
    // However little there is to do, all threads take part.
    let options = CpuOptions { threads: 8, cache_folder: None, share_from: 0, ..options };
    Arc::new(CpuBackend::with_options(options).expect("a CPU"))
}

fn guarded() -> CpuOptions {
    CpuOptions { placement: Placement::Guarded, ..CpuOptions::default() }
}

fn baseline() -> CpuOptions {
    CpuOptions { instructions: Instructions::Baseline, ..CpuOptions::default() }
}

#[test]
fn the_cpu_passes_the_backend_suite() {
    vyre_conform::suite::assert_passes(&|| backend(CpuOptions::default()));
}

#[test]
fn the_cpu_passes_the_backend_suite_between_guard_pages() {
    vyre_conform::suite::assert_passes(&|| backend(guarded()));
}

#[test]
fn the_cpu_passes_the_backend_suite_in_vectors_only() {
    vyre_conform::suite::assert_passes(&|| backend(CpuOptions { simd: Simd::Always, ..guarded() }));
}

#[test]
fn the_cpu_passes_the_backend_suite_without_extensions() {
    vyre_conform::suite::assert_passes(&|| backend(baseline()));
}

/// `VYRE_CASES=20000 cargo test --release -p vyre-driver-cpu --test suite generated` is the long run.
#[test]
fn generated_programs_give_the_bytes_of_the_reference() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (cases, first) = (number("VYRE_CASES", 200), number("VYRE_SEED", 0));
    let with = |simd, options| backend(CpuOptions { simd, ..options });
    let (lanes, vectors) = (with(Simd::Off, guarded()), with(Simd::Always, guarded()));
    let (guarded, baseline) = (backend(guarded()), with(Simd::Always, baseline()));
    let executors: Vec<Box<dyn Executor>> = vec![
        Box::new(Reference::new(Schedule::InOrder)),
        Box::new(Device::new(guarded.clone()).with_threads(1)),
        Box::new(Device::new(guarded.clone()).with_threads(2)),
        Box::new(Device::new(guarded).with_threads(8)),
        Box::new(Device::new(baseline).with_threads(2)),
        Box::new(Device::new(lanes).with_threads(2)),
        Box::new(Device::new(vectors).with_threads(2)),
    ];
    for seed in first..first + cases {
        let case = generate(seed, DEFAULT_SIZE);
        if let Some(mismatch) = compare(&case, &executors) {
            panic!("seed {seed}: {mismatch}\n{}", case.program);
        }
    }
}
