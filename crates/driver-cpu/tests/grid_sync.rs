//! Grid barriers on the CPU by each route: a long chain that stops after the right pass, and what the counters say of a
//! device that works in the memory of the host.

use std::sync::Arc;
use std::time::Instant;
use vyre_driver::{BackendExt, Counters, DispatchConfig, DispatchOutput, Route};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::Program;

fn backend() -> Arc<CpuBackend> {
    let options = CpuOptions { cache_folder: None, ..CpuOptions::default() };
    Arc::new(CpuBackend::with_options(options).expect("a CPU"))
}

fn parse(text: &str) -> Program {
    Program::parse(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Each pass moves what a node knows to the next one, and no further: all have read before one writes.
const CHAIN: &str = "program chain {
    workgroup_size 64;
    buffer x: read_write u32[];
    let i = global_id.x;
    let before = x[i - min(i, 1)];
    barrier(grid);
    if i < len(x) && before > x[i] {
        x[i] = before;
    }
}";

/// The same, again and again until a round changes nothing.
const CHAIN_AT_ONCE: &str = "program chain_at_once {
    workgroup_size 64;
    buffer x: read_write u32[];
    buffer rounds: output u32[1];
    buffer changed: scratch u32[1];
    let i = global_id.x;
    let mut done = 0;
    for round_number in 1..1000000 {
        let before = x[i - min(i, 1)];
        barrier(grid);
        if i < len(x) && before > x[i] {
            x[i] = before;
            atomic_max(changed[0], round_number);
        }
        done = round_number;
        if uniform_load(grid, changed[0]) < round_number {
            break;
        }
    }
    if i == 0 {
        rounds[0] = done;
    }
}";

/// `VYRE_CHAIN=10000 cargo test --release -p vyre-driver-cpu --test grid_sync chain -- --nocapture` is the long run.
#[test]
#[allow(clippy::print_stdout)] // The long run is for its times.
fn a_chain_stops_after_the_right_pass_on_every_route() {
    let nodes: u32 = std::env::var("VYRE_CHAIN").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    let backend = backend();
    let (chain, at_once) = (parse(CHAIN), parse(CHAIN_AT_ONCE));
    let first = words((0..nodes).map(|i| u32::from(i == 0) * 7));
    let last = words((0..nodes).map(|_| 7));
    for route in [Route::Native, Route::Resident, Route::Host] {
        let config = DispatchConfig::new().route(route);
        let begin = Instant::now();
        let fixpoint = config.clone().fixpoint(1_000_000);
        let output = backend.dispatch_borrowed(&chain, &[&first], &fixpoint).expect("a result");
        println!("{nodes} passes by {route}: {:?}", begin.elapsed());
        assert_eq!(output.report.route, route);
        assert_eq!((output.report.passes, output.report.converged), (nodes, Some(true)), "{route}");
        assert!(output.outputs == [last.clone()], "{route}");
        // One pass less does not get there.
        let short = config.clone().fixpoint(nodes - 2);
        let output = backend.dispatch_borrowed(&chain, &[&first], &short).expect("a result");
        assert_eq!((output.report.passes, output.report.converged), (nodes - 2, Some(false)), "{route}");
        let expected = words((0..nodes).map(|i| u32::from(i < nodes - 1) * 7));
        assert!(output.outputs == [expected], "{route}");
        let begin = Instant::now();
        let output = backend.dispatch_borrowed(&at_once, &[&first], &config).expect("a result");
        println!("{nodes} rounds of one dispatch by {route}: {:?}", begin.elapsed());
        assert!(output.outputs == [last.clone(), words([nodes])], "{route}");
    }
}

/// Runs a program by a route. Gives the result and what was counted.
fn counted(text: &str, inputs: &[&[u8]], config: &DispatchConfig) -> (DispatchOutput, Counters) {
    let backend = backend();
    let output = backend.dispatch_borrowed(&parse(text), inputs, config).expect("a result");
    let counters = backend.snapshot_dispatch_telemetry();
    assert_eq!(counters.resident_allocated, counters.resident_freed);
    (output, counters)
}

#[test]
fn only_what_is_written_is_copied_on_the_resident_route() {
    // Inputs that are only read are read where they are.
    let text = "program counted {
        workgroup_size 4;
        buffer n: uniform u32[1];
        buffer a: read u32[8];
        buffer x: read_write u32[8];
        buffer o: output u32[8];
        let i = global_id.x;
        for k in 0..n[0] {
            o[i] = x[(i + 1) % 8] + k * a[i];
            barrier(grid);
            x[i] = o[(i + 1) % 8];
            barrier(grid);
        }
    }";
    for rounds in [1, 10, 1000] {
        let config = DispatchConfig::new().route(Route::Resident);
        let (output, counters) = counted(text, &[&words([rounds]), &[1; 32], &[0; 32]], &config);
        assert_eq!(output.report.route, Route::Resident);
        assert_eq!((counters.bytes_uploaded, counters.bytes_downloaded), (32, 64), "{rounds} rounds");
    }
    let first = words((0..31).map(|i| u32::from(i == 0)));
    let config = DispatchConfig::new().route(Route::Resident).fixpoint(1000);
    let (output, counters) = counted(CHAIN, &[&first], &config);
    assert_eq!(output.report.passes, 31);
    assert_eq!((counters.bytes_uploaded, counters.bytes_downloaded), (124, 124 + 4 * 31));
    let (output, counters) = counted(CHAIN_AT_ONCE, &[&first], &DispatchConfig::new().route(Route::Resident));
    assert_eq!(output.outputs[1], words([31]));
    assert_eq!((counters.bytes_uploaded, counters.bytes_downloaded), (124, 124 + 4 + 4 * 31));
}

#[test]
fn a_launch_moves_what_its_segment_uses_on_the_host_route() {
    const LARGE: usize = 1 << 20;
    let mut body = String::new();
    for segment in 0..10 {
        let write = match segment {
            4 => "large[i] = large[i] + small[i];",
            _ => "small[i] = small[i] + len(large);",
        };
        body += &format!("{write}\n barrier(grid);\n");
    }
    let text = format!(
        "program ten {{ workgroup_size 4; buffer large: read_write u32[]; buffer small: read_write u32[8];
         let i = global_id.x; if i >= 8 {{ return; }} {body} }}"
    );
    let config = DispatchConfig::new().route(Route::Host).grid([2, 1, 1]);
    let (output, counters) = counted(&text, &[&vec![1; LARGE], &[0; 32]], &config);
    assert_eq!((output.report.route, output.report.segments), (Route::Host, 10));
    assert_eq!(&output.outputs[1], &words([9 * (LARGE as u32 / 4); 8]));
    let (large, rest) = (LARGE as u64, 10 * 1024);
    let (up, down) = (counters.bytes_uploaded, counters.bytes_downloaded);
    assert!((large..large + rest).contains(&up), "{up} bytes went up");
    assert!((large..large + rest).contains(&down), "{down} bytes came down");
}

#[test]
fn hidden_storage_counts_where_it_is_used() {
    let text = "program held { workgroup_size 4; buffer x: read_write u32[400]; let i = global_id.x;
        let y = x[i]; let mut z = x[i + 1]; barrier(grid); x[399 - i] = y;
        if z > 3 { z = z + 1; } barrier(grid); x[i] = z; }";
    let (backend, held, input) = (backend(), parse(text), vec![3; 1600]);
    for route in [Route::Resident, Route::Host] {
        let config = DispatchConfig::new().route(route);
        let before = backend.snapshot_dispatch_telemetry();
        let result = backend.dispatch_borrowed(&held, &[&input], &config.clone().memory_budget(1600 + 3199));
        let text = result.expect_err("too little").to_string();
        assert!(text.contains("needs ") && text.contains(" may use 4799"), "{text}");
        assert_eq!(backend.snapshot_dispatch_telemetry().launches, before.launches);
        backend.dispatch_borrowed(&held, &[&input], &config.memory_budget(64 << 10)).expect("a result");
    }
}
