//! What a grid with barriers keeps between them: what really lives across, and nothing for alignment.

use vyre_driver::{BackendExt, CompileOptions, DispatchConfig, Unit, VyreBackend};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::grid::{self, Grid};
use vyre_foundation::{Layout, Program};

const THREADS: usize = 2;
const MIB: u64 = 1 << 20;

fn backend() -> CpuBackend {
    let options = CpuOptions { threads: THREADS, cache_folder: None, ..CpuOptions::default() };
    CpuBackend::with_options(options).expect("a CPU")
}

/// A program of a workgroup size over `a: read_write u32[]`, `x: read u32[]` and `n: uniform u32[1]`.
fn program(size: u32, body: &str) -> Program {
    let text = format!(
        "program p {{
            workgroup_size {size};
            buffer a: read_write u32[];
            buffer x: read u32[];
            buffer n: uniform u32[1];
            let i = global_id.x;
            {body}
        }}"
    );
    Program::parse(&text).expect("a program")
}

/// The hidden bytes of a program on so many workgroups.
fn hidden(backend: &CpuBackend, size: u32, workgroups: u32, body: &str) -> u64 {
    let unit = Unit::new(program(size, body)).expect("a valid program");
    let pipeline = backend.compile(&unit, &CompileOptions::default()).expect("code");
    let layout = Layout::new(unit.program(), &[16, 16, 4], &[]).expect("a layout");
    let grid: Grid = grid::resolve(unit.program(), &layout, Some([workgroups, 1, 1])).expect("a grid");
    pipeline.hidden_bytes(grid)
}

/// One value that lives across a barrier.
const ONE: &str = "let v = a[i]; barrier(grid); a[i + 1] = v;";

/// The same where invocations may have returned.
const RETURNING: &str = "let v = a[i]; if v == 7 { return; } barrier(grid); a[i + 1] = v;";

#[test]
fn a_live_word_takes_four_bytes_an_invocation() {
    let backend = backend();
    for size in [1, 32, 64] {
        let workgroups = 1_000_000;
        let invocations = u64::from(size) * u64::from(workgroups);
        let one = hidden(&backend, size, workgroups, ONE);
        assert!((4 * invocations..=4 * invocations + MIB).contains(&one), "{size}: {one}");
        let returning = hidden(&backend, size, workgroups, RETURNING);
        assert!(returning <= 8 * invocations + MIB, "{size}: {returning}");
    }
}

#[test]
fn only_what_lives_across_is_kept() {
    let backend = backend();
    let per_workgroup = |size: u32, body: &str| {
        (hidden(&backend, size, 1 << 20, body) - hidden(&backend, size, 0, body)) >> 20
    };
    // Used in one segment only, or computed again from what does not change.
    assert_eq!(per_workgroup(64, "let v = a[i]; a[i] = v * v + v; barrier(grid); a[i] = a[i + 1] * i;"), 0);
    assert_eq!(per_workgroup(64, "for s in 0..n[0] { a[i] = a[i + 1] + x[i]; barrier(grid); }"), 0);
    // The same for all of the grid, and for a workgroup.
    assert_eq!(per_workgroup(64, "let v = n[0] / 3; a[i] = v; barrier(grid); a[i + 1] = v;"), 0);
    for size in [2, 64] {
        let body = "let v = workgroup_id.x / (n[0] + 3); a[i] = v; barrier(grid); a[i + 1] = v;";
        assert_eq!(per_workgroup(size, body), 4, "{size}");
    }
    // Words of different sizes leave no gaps: 4 and 8 bytes for each lane, rounded up once for the workgroup.
    let body = "let p = a[i]; let mut q = u64(p); if p > 3 { a[i] = 1; q = u64(a[i + 1]); }
                barrier(grid); a[i + 2] = p + u32(q);";
    assert_eq!([1, 3, 64].map(|size| per_workgroup(size, body)), [16, 40, 768]);
}

#[test]
fn what_is_kept_comes_back() {
    let backend = backend();
    for size in [1, 3, 32, 64] {
        let body = "let p = x[i] * x[i] + a[i]; let q = u64(p) * u64(128); let b = a[i] > 3;
                    barrier(grid); if b { a[i] = p + u32(q); }";
        let a: Vec<u32> = (0..size * 5).collect();
        let x: Vec<u32> = a.iter().map(|v| v ^ 5).collect();
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let expected: Vec<u32> = a
            .iter()
            .zip(&x)
            .map(|(a, x)| {
                let p = x * x + a;
                if *a > 3 { p + (u64::from(p) * 128) as u32 } else { *a }
            })
            .collect();
        let inputs = [bytes(&a), bytes(&x), bytes(&[1])];
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let output = backend.dispatch_borrowed(&program(size, body), &inputs, &DispatchConfig::new());
        assert_eq!(output.expect("a result").outputs, [bytes(&expected)], "{size}");
    }
}
