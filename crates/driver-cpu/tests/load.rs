//! Many callers at once, work that nobody waits for, and programs that do not end.

use std::sync::Arc;
use std::time::{Duration, Instant};
use vyre_driver::{BackendExt, Deadline, DispatchConfig, Error, VyreBackend};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::Program;

fn backend(threads: usize) -> Arc<CpuBackend> {
    let options = CpuOptions { threads, cache_folder: None, share_from: 0, ..CpuOptions::default() };
    Arc::new(CpuBackend::with_options(options).expect("a CPU"))
}

fn program(text: &str) -> Program {
    Program::parse(text).expect("a program")
}

/// Two nested loops of all `u32`s: longer than anybody waits.
fn endless() -> Program {
    program(
        "program endless {
            workgroup_size 4;
            buffer o: output u32[64];
            let mut sum = 0;
            for i in 0..4294967295 { for j in 0..4294967295 { sum = sum * 31 + (i ^ j); } }
            o[global_id.x] = sum;
        }",
    )
}

/// `VYRE_DISPATCHES=100000 cargo test --release -p vyre-driver-cpu --test load` is the long run.
#[test]
fn eight_threads_share_one_backend() {
    let count = std::env::var("VYRE_DISPATCHES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000u32);
    let backend = backend(4);
    let text = "program p {
        workgroup_size 8;
        buffer a: read u32[];
        buffer o: output u32[64];
        workgroup shared: u32[8];
        shared[local_id.x] = a[0] + global_id.x;
        barrier(workgroup);
        o[global_id.x] = shared[7 - local_id.x];
    }";
    let pipeline = backend.compile_native(&program(text), &DispatchConfig::new()).expect("compiled");
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            let (backend, pipeline) = (&backend, &pipeline);
            scope.spawn(move || {
                for i in 0..count {
                    let seed = thread * count + i;
                    let output = backend
                        .dispatch_borrowed(pipeline, &[&seed.to_le_bytes()], &DispatchConfig::new())
                        .expect("a result");
                    let expected = (0..64u32).flat_map(|g| (seed + (g / 8 * 8 + 7 - g % 8)).to_le_bytes());
                    assert!(output.outputs[0].iter().copied().eq(expected));
                }
            });
        }
    });
    let counters = backend.telemetry().snapshot();
    assert_eq!(counters.launches, 8 * u64::from(count));
    assert_eq!(counters.resident_allocated, counters.resident_freed);
}

#[test]
fn a_program_that_does_not_end_times_out() {
    let backend = backend(2);
    let limit = Duration::from_millis(100);
    backend.prepare(&endless(), &DispatchConfig::new()).expect("compiled");
    let start = Instant::now();
    let error =
        backend.dispatch(&endless(), vec![], &DispatchConfig::new().timeout(limit)).expect_err("no end");
    assert_eq!(error, Error::Timeout { limit });
    assert!(start.elapsed() >= limit);
    assert!(start.elapsed() < Duration::from_secs(2), "took {:?}", start.elapsed());
}

#[test]
fn work_that_was_stopped_reports_no_trap() {
    let text = "program p {
        buffer o: output u32[4];
        if global_id.x == 0 { trap(\"first\", 1); }
        for i in 0..4294967295 { for j in 0..4294967295 { o[global_id.x] = i ^ j; } }
    }";
    let limit = Duration::from_millis(100);
    let error = backend(1).dispatch(&program(text), vec![], &DispatchConfig::new().timeout(limit));
    assert_eq!(error.expect_err("no end"), Error::Timeout { limit });
}

/// What each lane has for itself begins as zeros: here 1 GB, once for each of 256 lanes.
#[test]
fn arrays_of_lanes_time_out() {
    let text = "program p {
        workgroup_size 256;
        local a: u32[0x10000000];
        buffer o: output u32[256];
        a[global_id.x * 77] = global_id.x;
        o[global_id.x] = a[o[0]];
    }";
    let limit = Duration::from_millis(50);
    let start = Instant::now();
    let error = backend(1).dispatch(&program(text), vec![], &DispatchConfig::new().timeout(limit));
    assert_eq!(error.expect_err("it takes longer"), Error::Timeout { limit });
    assert!(start.elapsed() < Duration::from_secs(2), "took {:?}", start.elapsed());
}

/// A workgroup without loops can take long too.
#[test]
fn many_lanes_of_straight_code_time_out() {
    let statements: String =
        (0..4000).map(|i| format!("x = x * {} + a[x % 64] / (x | 1);\n", 2 * i + 3)).collect();
    let text = format!(
        "program p {{
            workgroup_size 65536;
            buffer a: read u32[64];
            buffer o: output u32[65536];
            let mut x = global_id.x;
            {statements}
            o[global_id.x] = x;
        }}"
    );
    let (backend, program, input) = (backend(1), program(&text), [1u8; 256]);
    backend.prepare(&program, &DispatchConfig::new()).expect("compiled");
    let config = DispatchConfig::new().timeout(Duration::from_millis(20));
    let start = Instant::now();
    let error = backend.dispatch_borrowed(&program, &[&input], &config).expect_err("too long");
    assert_eq!(error.code(), "D007");
    assert!(start.elapsed() < Duration::from_secs(1), "took {:?}", start.elapsed());
}

/// Conditions that say much about many rows do not make compiling them endless.
#[test]
fn many_facts_compile_soon() {
    let names: Vec<String> = (0..9).map(|i| format!("v{i}")).collect();
    let lets: String = (0..9).map(|i| format!("let v{i} = a[global_id.x + {i}];\n")).collect();
    let mut body = String::from("o[global_id.x] = t[v0] + t[v4] + t[v8];");
    for a in &names {
        let others = names.iter().filter(|b| *b != a).map(|b| format!("{a} <= {b}"));
        body = format!("if {} {{ {body} }}", others.collect::<Vec<_>>().join(" && "));
    }
    let text = format!(
        "program p {{
            workgroup_size 16;
            buffer a: read u32[];
            buffer t: read u32[];
            buffer o: output u32[16];
            {lets}
            {body}
        }}"
    );
    let start = Instant::now();
    backend(1).prepare(&program(&text), &DispatchConfig::new()).expect("compiled");
    assert!(start.elapsed() < Duration::from_secs(5), "took {:?}", start.elapsed());
}

#[test]
fn dropping_a_pending_dispatch_stops_its_work() {
    let backend = backend(2);
    let pending = backend.dispatch_async(&endless(), vec![], &DispatchConfig::new()).expect("started");
    while backend.telemetry().snapshot().launches == 0 {
        std::thread::yield_now();
    }
    assert!(!pending.is_ready());
    drop(pending);
    backend.shutdown(Deadline::after(Duration::from_secs(5))).expect("the work has stopped");
}

/// Loops that are each too short to look whether work is to stop.
#[test]
fn nested_loops_of_few_rounds_stop_in_time() {
    let constant = "program p { workgroup_size 4; buffer o: output u32[4]; let mut acc = global_id.x;
        for a in 0..200 { for b in 0..200 { for c in 0..200 { for d in 0..1000 {
            acc = (acc ^ (a + b + c + d)) * 747796405;
        } } } }
        o[global_id.x] = acc; }";
    let counted = "program p { workgroup_size 4; buffer n: read u32[]; buffer o: output u32[4];
        let mut acc = global_id.x;
        for a in 0..n[0] { for b in 0..n[0] { for c in 0..n[0] { for d in 0..n[0] { for e in 0..n[0] {
            acc = (acc ^ (a + b + c + d + e)) * 747796405;
        } } } } }
        o[global_id.x] = acc; }";
    let config = DispatchConfig::new().timeout(Duration::from_millis(50));
    for (text, inputs) in [(constant, vec![]), (counted, vec![200u32.to_le_bytes().to_vec()])] {
        let begin = Instant::now();
        let error = backend(1).dispatch(&program(text), inputs, &config).expect_err("far too much to do");
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    }
}

/// A loop that could be made row by row, but would need an array for each lane at once.
#[test]
fn large_local_arrays_are_for_one_lane_at_a_time() {
    let text = "program p { workgroup_size 1024; buffer o: output u32[4096]; local own: u32[600000];
        own[5] = global_id.x;
        for k in 0..4 { o[global_id.x + k * 1024] = own[5] + k; } }";
    let program = Program::parse(text).expect("a program");
    backend(1).compile_native_shared(&program, &DispatchConfig::new()).expect("there is room");
}
