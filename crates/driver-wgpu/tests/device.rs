//! What a device is stressed with: large buffers and grids, loss and recovery, many dispatches, many threads.

// Figures are for whoever asks with `--nocapture`.
#![allow(clippy::print_stderr)]

mod common;

use common::{start, words};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use vyre_driver::{
    Action, BackendExt, Batch, CompiledPipeline, Deadline, DispatchConfig, Error, Launch, Memory, Predicate,
    RawHandle, Span, Step, Temporary, VyreBackend,
};
use vyre_driver_wgpu::{WgpuBackend, WgpuOptions};
use vyre_foundation::grid::{self, Grid};
use vyre_foundation::{Layout, Program};

fn program(text: &str) -> Program {
    Program::parse(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

const ADD_ONE: &str = "program add_one {
    workgroup_size 64;
    buffer x: read_write u32[];
    let i = global_id.x;
    x[i] = x[i] + 1;
}";

/// The code of a program, and the grid for so many bytes.
fn code(backend: &WgpuBackend, text: &str, bytes: usize) -> (Arc<dyn CompiledPipeline>, Grid) {
    let program = program(text);
    let pipeline = backend.compile_native(&program, &DispatchConfig::new()).expect("code");
    let layout = Layout::new(&program, &[bytes], &[]).expect("a layout");
    let grid = grid::resolve(&program, &layout, None).expect("a grid");
    (Arc::clone(pipeline.compiled().expect("one launch")), grid)
}

#[test]
fn a_buffer_may_be_longer_than_a_binding() {
    let Some(backend) = start() else { return };
    let bytes: u64 = 300 << 20;
    let elements = (bytes / 4) as u32;
    let mark = program(
        "program mark { workgroup_size 256; buffer x: read_write u32[]; buffer o: output u32[2];
         let all = num_workgroups.x * 256;
         let mut i = global_id.x;
         for k in 0..len(x) / all + 1 {
             if i < len(x) && i % 4096 == 5 { x[i] = i + 1; atomic_add(o[0], 1); }
             if i < len(x) { if x[i] == 0xabababab { atomic_add(o[1], 1); } }
             i = i + all;
         } }",
    );
    let x = backend.allocate(bytes).expect("memory");
    let o = backend.allocate(8).expect("memory");
    let mut batch = Batch::default();
    batch.push(Action::Fill { target: Span::resident(x), byte: 0xab });
    backend.run(batch, Deadline::NEVER).expect("a fill");
    let config = DispatchConfig::new().grid([1024, 1, 1]);
    backend.dispatch_resident_timed(&mark, &[x, o], &config).expect("a launch");
    let marked = elements.div_ceil(4096);
    assert_eq!(backend.download_resident(o).expect("a result"), words(&[marked, elements - marked]));
    for k in [0, 1, 8191, 8192, 16_384, marked - 1] {
        let offset = (u64::from(k) * 4096 + 5) * 4;
        let from = Span { memory: Memory::Resident(x), offset, bytes: 4 };
        let mut batch = Batch::default();
        batch.push(Action::Read { from });
        let read = backend.run(batch, Deadline::NEVER).expect("a read").reads;
        assert_eq!(read, [Some(words(&[k * 4096 + 6]))]);
    }
    backend.free(x).expect("freed");
    backend.free(o).expect("freed");
}

#[test]
fn a_grid_may_be_larger_than_a_dispatch() {
    let Some(backend) = start() else { return };
    for grid in [[70_000, 1, 1], [1, 70_000, 1], [1, 1, 70_000], [2, 3, 65_536]] {
        let count = program(
            "program count { workgroup_size 1, 1, 1; buffer o: output u32[3];
             let g = num_workgroups.x * num_workgroups.y * num_workgroups.z;
             let mine = workgroup_id.x + num_workgroups.x * (workgroup_id.y + num_workgroups.y * workgroup_id.z);
             atomic_add(o[0], 1); atomic_add(o[1], mine); atomic_max(o[2], g); }",
        );
        let all: u32 = grid.iter().product();
        let sum = (0..all).fold(0, u32::wrapping_add);
        let output = backend.dispatch(&count, vec![], &DispatchConfig::new().grid(grid)).expect("a result");
        assert_eq!(output.outputs[0], words(&[all, sum, all]), "{grid:?}");
    }
    let far = program("program far { workgroup_size 1, 1, 1; buffer o: output u32[1]; o[0] = 1; }");
    let config = DispatchConfig::new().grid([u32::MAX; 3]);
    assert_eq!(backend.dispatch(&far, vec![], &config).map(|_| ()).map_err(|e| e.code()), Err("D003"));
}

#[test]
fn a_lost_device_is_recovered() {
    let Some(backend) = start() else { return };
    let add_one = program(ADD_ONE);
    let pipeline = backend.compile_native(&add_one, &DispatchConfig::new()).expect("code");
    let old = backend.allocate_resident(8).expect("memory");
    for round in 1..=2 {
        backend.destroy();
        assert!(backend.device_lost());
        let lost = |result: Result<(), Error>| {
            assert_eq!(result.map_err(|e| e.code().to_owned()), Err("D006".to_owned()))
        };
        lost(backend.allocate_resident(8).map(|_| ()));
        lost(backend.dispatch(&add_one, vec![words(&[1])], &DispatchConfig::new()).map(|_| ()));
        lost(backend.dispatch(&pipeline, vec![words(&[1])], &DispatchConfig::new()).map(|_| ()));
        lost(backend.compile_native(&program("program other { }"), &DispatchConfig::new()).map(|_| ()));
        assert_eq!(backend.try_recover().expect("another device").0, round);
        assert!(!backend.device_lost());
        assert_eq!(backend.download_resident(old).map_err(|e| e.code()), Err("D022"));
        let output =
            backend.dispatch(&pipeline, vec![words(&[1, 2])], &DispatchConfig::new()).expect("a result");
        assert_eq!(output.outputs, [words(&[2, 3])]);
    }
    let new = backend.allocate_resident(8).expect("memory");
    assert_eq!(backend.download_resident(new).expect("zeros"), vec![0; 8]);
}

#[test]
fn a_device_that_is_not_there_is_an_error_with_reasons() {
    if start().is_none() {
        return;
    }
    let options = WgpuOptions { device: Some("no such device".to_owned()), ..WgpuOptions::default() };
    let Err(error) = WgpuBackend::with_options(options) else { panic!("a device of that name") };
    assert_eq!(error.code(), "D014");
    assert!(error.to_string().contains("its name does not contain `no such device`"), "{error}");
}

#[test]
fn launches_of_a_batch_follow_each_other() {
    let Some(backend) = start() else { return };
    let (pipeline, grid) = code(&backend, ADD_ONE, 256);
    let x = backend.allocate(256).expect("memory");
    let launch = || Launch { pipeline: Arc::clone(&pipeline), bindings: vec![Span::resident(x)], grid };
    let mut batch = Batch::default();
    for _ in 0..1000 {
        batch.push(Action::Launch(launch()));
    }
    batch.push(Action::Read { from: Span::resident(x) });
    backend.run(batch.clone(), Deadline::NEVER).expect("a result");
    let begin = Instant::now();
    let read = backend.run(batch, Deadline::NEVER).expect("a result").reads;
    let together = begin.elapsed();
    assert_eq!(read, [Some(words(&[2000; 64]))]);
    let begin = Instant::now();
    for _ in 0..1000 {
        let mut batch = Batch::default();
        batch.push(Action::Launch(launch()));
        backend.run(batch, Deadline::NEVER).expect("a result");
    }
    let alone = begin.elapsed();
    eprintln!("1000 launches: {together:?} in one batch, {alone:?} in 1000");
    assert_eq!(backend.download_resident(x).expect("a result"), words(&[3000; 64]));
}

#[test]
fn predicates_of_launches_are_exact() {
    let Some(backend) = start() else { return };
    let (pipeline, grid) = code(&backend, ADD_ONE, 256);
    let x = backend.allocate(256).expect("memory");
    let before = backend.snapshot_dispatch_telemetry().launches;
    let mut batch = Batch::default();
    let halt = batch.temporary(Temporary::Zeroed { bytes: 4 });
    let limit = batch.temporary(Temporary::Initial(words(&[7; 64]).into()));
    let when = |word, holds| Some(Predicate { word, holds });
    for k in 0..40 {
        let differs = batch.temporary(Temporary::Zeroed { bytes: 4 });
        let launch = Launch { pipeline: Arc::clone(&pipeline), bindings: vec![Span::resident(x)], grid };
        batch.steps.push(Step { action: Action::Launch(launch), when: when(halt, false) });
        let compare = Action::Compare { a: Span::resident(x), b: limit, differs };
        batch.steps.push(Step { action: compare, when: when(halt, false) });
        let fill = Action::Fill { target: halt, byte: 1 };
        batch.steps.push(Step { action: fill, when: when(differs, false) });
        if k % 13 == 0 {
            // Whoever watches does not change what happens.
            batch.push(Action::Read { from: halt });
        }
    }
    batch.push(Action::Read { from: Span::resident(x) });
    let reads = backend.run(batch.clone(), Deadline::NEVER).expect("a result").reads;
    assert_eq!(reads[4], Some(words(&[7; 64])));
    assert_eq!(reads[..2], [Some(words(&[0])), Some(words(&[0x0101_0101]))]);
    assert_eq!(backend.snapshot_dispatch_telemetry().launches - before, 7);
    let begin = Instant::now();
    backend.run(batch, Deadline::NEVER).expect("a result");
    eprintln!("40 passes with predicates: {:?}", begin.elapsed());
}

#[test]
fn ranges_of_one_buffer_may_be_read_and_written() {
    let Some(backend) = start() else { return };
    let shift = "program shift { workgroup_size 64; buffer a: read u32[]; buffer b: read_write u32[];
        let i = global_id.x; b[i] = a[i] + 1; }";
    let program = program(shift);
    let pipeline = backend.compile_native(&program, &DispatchConfig::new()).expect("code");
    let pipeline = pipeline.compiled().expect("one launch");
    let layout = Layout::new(&program, &[40, 40], &[]).expect("a layout");
    let grid = grid::resolve(&program, &layout, None).expect("a grid");
    let x = backend.allocate(400).expect("memory");
    let part = |offset| Span { memory: Memory::Resident(x), offset, bytes: 40 };
    let mut batch = Batch::default();
    for k in 0..9 {
        let bindings = vec![part(k * 40), part(k * 40 + 40)];
        batch.push(Action::Launch(Launch { pipeline: Arc::clone(pipeline), bindings, grid }));
    }
    batch.push(Action::Read { from: part(360) });
    let reads = backend.run(batch, Deadline::NEVER).expect("a result").reads;
    assert_eq!(reads, [Some(words(&[9; 10]))]);
}

#[test]
fn threads_share_a_device() {
    let Some(backend) = start() else { return };
    let shared = backend.allocate(4 * 64).expect("memory");
    let add = program(
        "program add { workgroup_size 64; buffer x: read_write u32[]; atomic_add(x[global_id.x], 1); }",
    );
    let pipeline = backend.compile_native(&add, &DispatchConfig::new()).expect("code");
    thread::scope(|scope| {
        for seed in 0..6u32 {
            let (backend, pipeline) = (&backend, &pipeline);
            scope.spawn(move || {
                let own: RawHandle = backend.allocate(256).expect("memory");
                for i in 0..100 {
                    let config = DispatchConfig::new();
                    backend.dispatch_resident_timed(pipeline, &[own], &config).expect("a result");
                    backend.dispatch_resident_timed(pipeline, &[shared], &config).expect("a result");
                    let pending = backend.dispatch_async(pipeline, vec![words(&[seed, i])], &config);
                    let output = pending.expect("a dispatch").await_result().expect("a result");
                    assert_eq!(output.outputs, [words(&[seed + 1, i + 1])]);
                }
                assert_eq!(backend.download_resident(own).expect("a result"), words(&[100; 64]));
                backend.free(own).expect("freed");
            });
        }
    });
    assert_eq!(backend.download_resident(shared).expect("a result"), words(&[600; 64]));
}

/// A batch that keeps the device busy for long, and memory that it uses. Each launch takes long, but no loop does.
fn long_batch(backend: &WgpuBackend) -> (Batch<'static>, RawHandle) {
    let spin = "program spin { workgroup_size 64; buffer x: read_write u32[];
        for k in 0..30000 { atomic_add(x[0], k); } }";
    let (pipeline, grid) = code(backend, spin, 4 << 15);
    let x = backend.allocate(4 << 15).expect("memory");
    let mut batch = Batch::default();
    for _ in 0..100 {
        let launch = Launch { pipeline: Arc::clone(&pipeline), bindings: vec![Span::resident(x)], grid };
        batch.push(Action::Launch(launch));
    }
    (batch, x)
}

#[test]
fn a_device_that_is_lost_at_work_is_recovered_at_once() {
    let Some(backend) = start() else { return };
    let (batch, _) = long_batch(&backend);
    let pending = backend.submit(batch).expect("it runs");
    std::thread::sleep(Duration::from_millis(100));
    let begin = Instant::now();
    backend.destroy();
    assert_eq!(pending.wait(Deadline::NEVER).map_err(|e| e.code()), Err("D006"));
    backend.try_recover().expect("another device");
    assert!(begin.elapsed() < Duration::from_secs(2), "it took {:?}", begin.elapsed());
    let output = backend.dispatch(&program(ADD_ONE), vec![words(&[1])], &DispatchConfig::new());
    assert_eq!(output.expect("a result").outputs, [words(&[2])]);
}

#[test]
fn a_batch_ends_at_its_deadline_and_the_device_works_on() {
    let Some(backend) = start() else { return };
    let (batch, x) = long_batch(&backend);
    let limit = Duration::from_millis(200);
    let begin = Instant::now();
    let result = backend.run(batch, Deadline::after(limit));
    assert_eq!(result, Err(Error::Timeout { limit }));
    assert!(begin.elapsed() < limit + Duration::from_secs(1), "it took {:?}", begin.elapsed());
    // What the device has been given takes seconds. Until it is done no more is taken, unless the device is recovered.
    let mut busy = Batch::default();
    busy.push(Action::Read { from: Span::resident(x) });
    assert_eq!(backend.run(busy, Deadline::NEVER).map_err(|e| e.code()), Err("D016"));
    backend.try_recover().expect("another device");
    let output = backend.dispatch(&program(ADD_ONE), vec![words(&[1])], &DispatchConfig::new());
    assert_eq!(output.expect("a result").outputs, [words(&[2])]);
}

/// Counts the rounds of two loops in each other.
const ROUNDS: &str = "program rounds {
    workgroup_size 8;
    buffer n: read u32[2];
    buffer o: output u32[8];
    let mut sum = 0;
    for i in 0..n[0] + local_id.x {
        for j in 0..n[1] {
            sum = sum * 5 + 1 ^ i + j;
        }
    }
    o[local_id.x] = sum;
}";

#[test]
fn a_long_loop_is_right_or_refused() {
    let Some(backend) = start() else { return };
    let rounds = program(ROUNDS);
    let reference = vyre_driver::ReferenceBackend::new();
    for n in [[10, 10], [200, 300], [1, 100_000], [100_000, 1], [400, 400]] {
        let config = DispatchConfig::new().grid([1, 1, 1]);
        let expected = reference.dispatch(&rounds, vec![words(&n)], &config).expect("a result").outputs;
        match backend.dispatch(&rounds, vec![words(&n)], &config) {
            Ok(output) => assert_eq!(output.outputs, expected, "{n:?}"),
            Err(error) => {
                assert!(n[0] * n[1] > 50_000, "{n:?}: {error}");
                assert_eq!(error.code(), "D003", "{error}");
            }
        }
    }
}

#[test]
fn deep_nesting_is_right() {
    let Some(backend) = start() else { return };
    for depth in [20, 60, 70, 120] {
        let mut body = "o[lane] = o[lane] + 1; total = total + atomic_add(sum[0], 1) * 0 + 1;".to_owned();
        for level in (0..depth).rev() {
            let otherwise = format!("o[lane] = o[lane] + {level} * 1000; total = total + {level};");
            body = format!("if lane < x[{level}] {{ o[lane] = o[lane] + 1; {body} }} else {{ {otherwise} }}");
            if level == depth / 2 {
                body = format!("for k in 0..2 {{ {body} }}");
            }
        }
        let text = format!(
            "program deep {{ workgroup_size 8; buffer x: read u32[240]; buffer o: output u32[8]; buffer sum: output u32[1]; buffer t: output u32[8]; let lane = local_id.x; let mut total = 0; {body} t[lane] = total; }}"
        );
        let deep = program(&text);
        let config = DispatchConfig::new().grid([1, 1, 1]);
        // Fewer lanes go in the deeper it is.
        let limits: Vec<u32> = (0..240).map(|level| 9u32.saturating_sub(level * 8 / depth)).collect();
        let inputs = || vec![words(&limits)];
        let expected =
            vyre_driver::ReferenceBackend::new().dispatch(&deep, inputs(), &config).expect("a result");
        let given = backend.dispatch(&deep, inputs(), &config).expect("a result");
        assert_eq!(given.outputs, expected.outputs, "depth {depth}");
    }
}

#[test]
fn a_second_backend_finds_what_the_first_has_kept() {
    if start().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let options = || WgpuOptions { cache_folder: Some(folder.path().join("vyre")), ..WgpuOptions::default() };
    let run = || {
        let backend = WgpuBackend::with_options(options()).expect("a device");
        let output = backend.dispatch(&program(ADD_ONE), vec![words(&[1, 2])], &DispatchConfig::new());
        assert_eq!(output.expect("a result").outputs, [words(&[2, 3])]);
        backend.profile().clone()
    };
    let first = run();
    let entries = || {
        let entries = std::fs::read_dir(folder.path().join("vyre")).expect("the folder");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    if first.features.has(vyre_driver::Feature::DiskCache) {
        assert!(!entries().is_empty());
    }
    assert_eq!(run(), first);
    // What is damaged is made again.
    for path in entries().into_iter().filter(|path| path.is_file()) {
        std::fs::write(path, b"damaged").expect("a file");
    }
    assert_eq!(run(), first);
}

#[test]
fn a_pipeline_belongs_to_its_backend() {
    let (Some(first), Some(second)) = (start(), start()) else { return };
    let pipeline = first.compile_native(&program(ADD_ONE), &DispatchConfig::new()).expect("code");
    let result = second.dispatch(&pipeline, vec![words(&[1])], &DispatchConfig::new());
    assert_eq!(result.map_err(|error| error.code().to_owned()).err().as_deref(), Some("D002"));
}

#[test]
fn what_a_driver_would_not_survive_is_refused() {
    let Some(backend) = start() else { return };
    for text in [
        "program large { buffer o: output u32[1]; local l: u32[1000000]; l[o[0]] = 1; o[0] = l[0]; }",
        "program both { workgroup_size 1024; buffer o: output u32[1024]; workgroup w: u32[8192];
         w[local_id.x] = 1; o[local_id.x] = subgroup_add(w[local_id.x]); }",
    ] {
        let result = backend.dispatch(&program(text), vec![], &DispatchConfig::new().grid([1, 1, 1]));
        assert_eq!(result.map_err(|error| error.code().to_owned()).err().as_deref(), Some("D003"), "{text}");
    }
    // The loops of subgroup operations count too.
    let text = "program folds { workgroup_size 64; subgroup_size 64; buffer n: read u32[1]; buffer o: output u32[64];
         let mut sum = 0; for k in 0..1100 { sum = sum + subgroup_add(n[0] + k); } o[local_id.x] = sum; }";
    let config = DispatchConfig::new().grid([1, 1, 1]);
    let expected = vyre_driver::ReferenceBackend::new().dispatch(&program(text), vec![words(&[1])], &config);
    match backend.dispatch(&program(text), vec![words(&[1])], &config) {
        Ok(output) => assert_eq!(output.outputs, expected.expect("a result").outputs),
        Err(error) => assert_eq!(error.code(), "D003", "{error}"),
    }
}
