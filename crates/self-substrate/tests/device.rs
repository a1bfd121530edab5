//! The passes on a device against those on the host: the same kernels, and the same counts of what was done.
//!
//! `VYRE_CASES=10000 cargo test --release -p vyre-self-substrate --test device` is the long run; `VYRE_SEED` is where it
//! begins.

use vyre_conform::{DEFAULT_SIZE, generate};
use vyre_driver::{ReferenceBackend, VyreBackend};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::Program;
use vyre_lower::{Kernel, lower, raise};
use vyre_self_substrate::{Options, Stats, device, optimize, optimize_on};

fn cpu(threads: usize) -> CpuBackend {
    let options = CpuOptions { threads, cache_folder: None, share_from: 0, ..CpuOptions::default() };
    CpuBackend::with_options(options).expect("a CPU")
}

/// What was done, without where and how long.
fn counts(stats: &Stats) -> Vec<usize> {
    let own = [
        stats.canonicalised,
        stats.folded,
        stats.merged,
        stats.loads,
        stats.branches,
        stats.loops,
        stats.carried,
    ];
    [&stats.before[..], &stats.after, &own, &stats.fired].concat()
}

fn same(backend: &dyn VyreBackend, kernel: &Kernel, what: &str) {
    let host = optimize(kernel, &Options::default());
    let found = optimize_on(backend, kernel).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(found.stats.device.is_some(), "{what}: it did not run on the device");
    assert!(
        found.kernel == host.kernel,
        "{what}\n{}\nhost:\n{}\ndevice:\n{}",
        raise(kernel),
        raise(&host.kernel),
        raise(&found.kernel)
    );
    assert_eq!(counts(&found.stats), counts(&host.stats), "{what}\n{}", raise(kernel));
}

#[test]
fn generated_kernels_become_the_same() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let (seed, count) = (number("VYRE_SEED").unwrap_or(0), number("VYRE_CASES").unwrap_or(200));
    let backends = [cpu(1), cpu(2)];
    for seed in seed..seed + count {
        let kernel = lower(&generate(seed, DEFAULT_SIZE).program);
        same(&backends[(seed % 2) as usize], &kernel, &format!("seed {seed}"));
    }
}
