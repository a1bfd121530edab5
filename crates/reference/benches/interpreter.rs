//! What the interpreter costs: `cargo bench -p vyre-reference`. Best of several runs on one thread.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::time::Instant;
use vyre_foundation::Program;
use vyre_reference::{Options, run};

/// Nanoseconds per unit, the best of several runs.
fn measure(text: &str, inputs: &[Vec<u8>], grid: [u32; 3], units: f64) -> f64 {
    let program = Program::parse(text).expect("the benchmark parses");
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let options = Options { grid: Some(grid), ..Options::default() };
    let once = || {
        let begun = Instant::now();
        run(&program, &inputs, &options).expect("the benchmark runs");
        begun.elapsed().as_nanos() as f64 / units
    };
    (0..7).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn main() {
    const N: usize = 1 << 20;
    let bytes: Vec<u8> = (0..4 * N).map(|i| (i * 7) as u8).collect();
    let xor = "program xor { workgroup_size 64;
        buffer a: read u32[]; buffer b: read u32[]; buffer o: output u32[1048576];
        let i = global_id.x;
        if i < len(a) { o[i] = a[i] ^ b[i]; } }";
    let cost = measure(xor, &[bytes.clone(), bytes], [N as u32 / 64, 1, 1], N as f64);
    println!("guarded xor, 1 M elements: {cost:.1} ns per invocation");
    let iterations = 10_000_000;
    let sum = format!(
        "program sum {{ buffer o: output u32[1]; let mut s = 0;
        for i in 0..{iterations} {{ s = s + i; }} o[0] = s; }}"
    );
    let cost = measure(&sum, &[], [1, 1, 1], f64::from(iterations));
    println!("a loop of one add: {cost:.1} ns per iteration");
    let barriers = 100;
    let rounds = format!(
        "program rounds {{ workgroup_size 64; buffer o: output u32[65536];
        let i = global_id.x; let mut s = i;
        for r in 0..{barriers} {{ o[i] = s; barrier(grid); s = s + o[(i + 1) % 65536]; barrier(grid); }} o[i] = s; }}"
    );
    let cost = measure(&rounds, &[], [1024, 1, 1], f64::from(2 * barriers) * 65536.0);
    println!("grid barriers, 65536 invocations: {cost:.1} ns per invocation and barrier");
}
