//! The backend suite, and generated programs against the reference.

mod common;

use common::start;
use std::sync::Arc;
use vyre_conform::{DEFAULT_SIZE, Device, Executor, Reference, compare, generate, suite};
use vyre_driver::VyreBackend;
use vyre_driver_wgpu::WgpuBackend;
use vyre_reference::Schedule;

#[test]
fn the_device_passes_the_backend_suite() {
    if start().is_none() {
        return;
    }
    let only = std::env::var("VYRE_CHECK").unwrap_or_default();
    let begin: &suite::Start<'_> =
        &|| -> Arc<dyn VyreBackend> { Arc::new(WgpuBackend::new().expect("a device")) };
    let mut failed = Vec::new();
    for check in suite::checks() {
        if !check.name.contains(&only) {
            continue;
        }
        if let Err(why) = (check.run)(begin) {
            failed.push(format!("{}: {why}", check.name));
        }
    }
    assert!(failed.is_empty(), "{} checks failed:\n{}", failed.len(), failed.join("\n"));
}

/// `VYRE_CASES=20000 cargo test --release -p vyre-driver-wgpu --test suite generated` is the long run.
#[test]
fn generated_programs_give_the_bytes_of_the_reference() {
    let Some(backend) = start() else { return };
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (cases, first) = (number("VYRE_CASES", 100), number("VYRE_SEED", 0));
    let executors: Vec<Box<dyn Executor>> =
        vec![Box::new(Reference::new(Schedule::InOrder)), Box::new(Device::new(backend))];
    for seed in first..first + cases {
        let case = generate(seed, DEFAULT_SIZE);
        if let Some(mismatch) = compare(&case, &executors) {
            panic!("seed {seed}: {mismatch}\n{}", case.program);
        }
    }
}
