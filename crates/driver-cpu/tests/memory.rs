//! Inputs that are only read are used where they are. Alone in its process, because it looks at the peak of it.

#![cfg(target_os = "linux")]

use vyre_driver::{BackendExt, DispatchConfig};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::Program;

/// The most memory that the process has had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kilobytes << 10
}

#[test]
fn a_gibibyte_of_inputs_is_not_copied() {
    let text = "program p {
        workgroup_size 64;
        buffer a: read u32[];
        buffer b: read u32[];
        buffer o: output u32[4096];
        let each = len(a) / 4096;
        let mut sum = 0;
        for i in 0..each { sum = sum + a[global_id.x * each + i] * b[global_id.x * each + i]; }
        o[global_id.x] = sum;
    }";
    let program = Program::parse(text).expect("a program");
    let options = CpuOptions { cache_folder: None, ..CpuOptions::default() };
    let backend = CpuBackend::with_options(options).expect("a CPU");
    let half = vec![1u8; 512 << 20];
    let before = peak();
    let output =
        backend.dispatch_borrowed(&program, &[&half, &half], &DispatchConfig::new()).expect("a result");
    let raised = peak() - before;
    let each = (half.len() / 4 / 4096) as u32;
    let sum = 0x0101_0101u32.wrapping_mul(0x0101_0101).wrapping_mul(each);
    assert!(output.outputs[0].chunks(4).all(|bytes| bytes == sum.to_le_bytes()));
    assert!(raised <= output.outputs[0].len() as u64 + (64 << 20), "the peak rose by {raised} bytes");
}
