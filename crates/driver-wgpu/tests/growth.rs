//! Many dispatches leave nothing behind. Alone in its process, whose memory it looks at.

// Figures are for whoever asks with `--nocapture`.
#![allow(clippy::print_stderr)]

mod common;

use common::{start, words};
use std::time::Instant;
use vyre_driver::{BackendExt, DispatchConfig};
use vyre_foundation::Program;

/// How much memory the process has, in bytes; 0 where nobody tells.
fn resident_set() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[test]
fn many_dispatches_leave_nothing_behind() {
    let Some(backend) = start() else { return };
    let text = "program add_one {
        workgroup_size 64;
        buffer x: read_write u32[];
        let i = global_id.x;
        x[i] = x[i] + 1;
    }";
    let add_one = Program::parse(text).expect("a program");
    let pipeline = backend.compile_native(&add_one, &DispatchConfig::new()).expect("code");
    let run = |times: u32| {
        for i in 0..times {
            let output =
                backend.dispatch(&pipeline, vec![words(&[i, 7])], &DispatchConfig::new()).expect("a result");
            assert_eq!(output.outputs, [words(&[i + 1, 8])]);
        }
        backend.pooled_bytes()
    };
    let before = (run(100), resident_set());
    let begin = Instant::now();
    let after = (run(10_000), resident_set());
    let each = begin.elapsed() / 10_000;
    eprintln!("a dispatch of two elements takes {each:?}");
    assert_eq!(before.0, after.0, "the pool has grown");
    assert!(after.1 < before.1 + (16 << 20), "memory grew from {} to {}", before.1, after.1);
    let counters = backend.snapshot_dispatch_telemetry();
    assert_eq!(counters.resident_allocated, counters.resident_freed);
    assert_eq!(counters.launches, 10_100);
}
