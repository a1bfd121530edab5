//! The passes on a device against those on the host: the same kernels, and the same counts of what was done.
//!
//! `VYRE_CASES=10000 cargo test --release -p vyre-self-substrate --test device` is the long run; `VYRE_SEED` is where it
//! begins.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use vyre_conform::{DEFAULT_SIZE, generate};
use vyre_driver::{
    Batch, CompileOptions, CompiledPipeline, Deadline, DeviceProfile, Feature, Generation, Health,
    Optimization, Outcome, Pending, RawHandle, ReferenceBackend, Result, Telemetry, Unit, VyreBackend,
};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::rng::SplitMix64;
use vyre_foundation::{Axis, BinOp, BufferDecl, Element, Literal, Program, Type};
use vyre_lower::{Id, Item, Kernel, KernelBuilder, Value, lower, raise};
use vyre_self_substrate::{Device, Options, Stats, device, optimize};

fn cpu_backend(threads: usize) -> CpuBackend {
    let options = CpuOptions { threads, cache_folder: None, share_from: 0, ..CpuOptions::default() };
    CpuBackend::with_options(options).expect("a CPU")
}

fn cpu(threads: usize) -> Device {
    Device::new(Arc::new(cpu_backend(threads)))
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

fn same(device: &Device, kernel: &Kernel, what: &str) {
    let host = optimize(kernel, &Options::default());
    let found = device.optimize(kernel, Optimization::On).unwrap_or_else(|error| panic!("{what}: {error}"));
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

/// All programs below a folder.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(programs(&path)),
            false if path.extension().is_some_and(|ending| ending == "vyre") => found.push(path),
            false => {}
        }
    }
    found
}

#[test]
fn test_files_and_examples_become_the_same() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let backend = cpu(2);
    let mut count = 0;
    for path in ["tests/files", "examples"].iter().flat_map(|folder| programs(&root.join(folder))) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let valid = Program::parse(&text).ok().filter(|program| program.validate().is_ok());
        if let Some(program) = valid {
            same(&backend, &lower(&program), &path.display().to_string());
            count += 1;
        }
    }
    assert!(count > 400, "only {count} programs were found");
}

/// Rows in layers, of which some are equal, some fold, and many are rewritten; the last layer is stored.
fn layers(rows: usize, depth: usize) -> Kernel {
    let mut rng = SplitMix64::new((rows + depth) as u64);
    let mut builder = KernelBuilder::new();
    let index = builder.value(Value::Id(Id::Invocation, Axis::X));
    let ty = Type::U32;
    let mut layer: Vec<_> = (0..rows / depth)
        .map(|i| {
            let index = builder.value(Value::Const(Literal::U32(i as u32)));
            builder.value(Value::Load { buffer: 0, index, ty })
        })
        .collect();
    for _ in 1..depth {
        layer = (0..layer.len())
            .map(|i| {
                let far = layer[rng.below(layer.len() as u64) as usize];
                let few = builder.value(Value::Const(Literal::U32(rng.below(9) as u32)));
                let ops = [BinOp::BitXor, BinOp::Mul, BinOp::Add, BinOp::Sub, BinOp::Min, BinOp::Shl];
                let op = ops[rng.below(6) as usize];
                let b = if rng.below(2) == 0 { few } else { far };
                builder.value(Value::Binary { op, ty, a: layer[i], b })
            })
            .collect();
    }
    for value in layer {
        builder.item(KernelBuilder::ENTRY, Item::Store { buffer: 1, index, value }, 0);
    }
    let buffers = vec![BufferDecl::read("x", Element::U32), BufferDecl::output("o", Element::U32)];
    builder.finish("layers".into(), 1.into(), 32, buffers, &[])
}

#[test]
fn wide_and_deep_kernels_become_the_same() {
    let backends = [cpu(1), cpu(2)];
    for (rows, depth) in [(30_000, 3), (30_000, 100), (5_000, 2_500), (2_000, 2_000)] {
        let kernel = layers(rows, depth);
        for backend in &backends {
            same(backend, &kernel, &format!("{rows} rows, {depth} deep"));
        }
    }
}

#[test]
fn the_optimizer_improves_itself() {
    let own = lower(device::program());
    let improved = optimize(&own, &Options::default());
    assert!(improved.stats.after[0] < improved.stats.before[0], "{:?}", improved.stats);
    let backend = cpu(2);
    same(&backend, &own, "its own program");
    // The program as it is written does the same as the improved one, which everybody gets.
    let kernel = layers(5_000, 20);
    let [on, off] =
        [Optimization::On, Optimization::Off].map(|own| backend.optimize(&kernel, own).expect("it runs"));
    assert_eq!((&on.kernel, counts(&on.stats)), (&off.kernel, counts(&off.stats)));
}

#[test]
fn the_reference_runs_the_passes_too() {
    for seed in [3, 4] {
        same(
            &Device::new(Arc::new(ReferenceBackend::new())),
            &lower(&generate(seed, 12).program),
            &format!("seed {seed}"),
        );
    }
}

#[test]
fn a_call_is_one_launch() {
    let backend = Arc::new(cpu_backend(2));
    let device = Device::new(Arc::clone(&backend) as Arc<dyn VyreBackend>);
    let kernel = lower(&generate(7, DEFAULT_SIZE).program);
    device.optimize(&kernel, Optimization::On).expect("it runs");
    let before = backend.telemetry().snapshot();
    device.optimize(&kernel, Optimization::On).expect("it runs");
    let after = backend.telemetry().snapshot();
    assert_eq!(after.launches - before.launches, 1);
    // The device works in the memory of the host: columns are not copied, and what is read back are the outputs.
    assert_eq!(after.bytes_uploaded - before.bytes_uploaded, 0);
    assert_eq!((after.grid_sync_splits, after.compiles), (before.grid_sync_splits, before.compiles));
}

/// A CPU that says that its memory is not the host's.
struct Apart {
    cpu: CpuBackend,
    profile: DeviceProfile,
}

impl Apart {
    fn new() -> Apart {
        let cpu = cpu_backend(2);
        let features =
            cpu.profile().features.iter().filter(|feature| *feature != Feature::HostMemory).collect();
        let profile = DeviceProfile { features, ..cpu.profile().clone() };
        Apart { cpu, profile }
    }
}

impl VyreBackend for Apart {
    fn profile(&self) -> &DeviceProfile {
        &self.profile
    }
    fn compile(&self, unit: &Unit, options: &CompileOptions) -> Result<Arc<dyn CompiledPipeline>> {
        self.cpu.compile(unit, options)
    }
    fn allocate(&self, bytes: u64) -> Result<RawHandle> {
        self.cpu.allocate(bytes)
    }
    fn free(&self, handle: RawHandle) -> Result<()> {
        self.cpu.free(handle)
    }
    fn submit(&self, batch: Batch<'static>) -> Result<Box<dyn Pending>> {
        self.cpu.submit(batch)
    }
    fn run(&self, batch: Batch<'_>, deadline: Deadline) -> Result<Outcome> {
        self.cpu.run(batch, deadline)
    }
    fn telemetry(&self) -> &Telemetry {
        self.cpu.telemetry()
    }
    fn health(&self) -> Health {
        self.cpu.health()
    }
    fn recover(&self) -> Result<Generation> {
        self.cpu.recover()
    }
    fn shutdown(&self, deadline: Deadline) -> Result<()> {
        self.cpu.shutdown(deadline)
    }
}

#[test]
fn columns_are_uploaded_once() {
    let backend = Arc::new(Apart::new());
    let device = Device::new(Arc::clone(&backend) as Arc<dyn VyreBackend>);
    let uploaded = |kernel: &Kernel| {
        let before = backend.telemetry().snapshot();
        same(&device, kernel, "a kernel on a device with memory of its own");
        let after = backend.telemetry().snapshot();
        assert_eq!(after.launches - before.launches, 1);
        after.bytes_uploaded - before.bytes_uploaded
    };
    let [first, second] = [7, 8].map(|seed| lower(&generate(seed, DEFAULT_SIZE).program));
    let bytes = [&first, &first, &second, &first, &second].map(uploaded);
    assert!(bytes[0] > bytes[2] && bytes[2] > 0, "the second kernel finds the rules there: {bytes:?}");
    assert_eq!([bytes[1], bytes[3], bytes[4]], [0; 3], "what is there is not uploaded again");
    // What was there is lost with the device.
    backend.recover().expect("it recovers");
    assert_eq!([&first, &first].map(uploaded), [bytes[0], 0]);
    drop(device);
    let counters = backend.telemetry().snapshot();
    assert_eq!(counters.resident_allocated, counters.resident_freed, "all of it is given back");
}

#[test]
fn what_carries_too_much_is_left_to_the_host() {
    let mut text = String::from("program p { buffer x: read_write u32[]; ");
    (0..300).for_each(|i| text += &format!("let v{i} = x[{i}]; "));
    text += "for k in 0..x[9] { ";
    (0..300).for_each(|i| text += &format!("v{i} = v{i} * {} + v{}; ", i + 3, (i + 1) % 300));
    text += "} ";
    (0..300).for_each(|i| text += &format!("x[{i}] = v{i}; "));
    let kernel = lower(&Program::parse(&(text + "}")).expect("it parses"));
    let found = cpu(1).optimize(&kernel, Optimization::On).expect("it runs");
    assert_eq!(found.stats.device, None);
    assert_eq!(found.kernel, optimize(&kernel, &Options::default()).kernel);
}

#[test]
fn levels_that_rise_too_far_are_left_to_the_host() {
    // Each loop runs once, so what it leaves is made of what the one before leaves.
    let mut text = String::from("program p { buffer x: read_write u32[]; let mut a = x[0]; ");
    (0..200).for_each(|i| text += &format!("for k{i} in 0..1 {{ a = a * a + {}; }} ", i + 3));
    let kernel = lower(&Program::parse(&(text + "x[0] = a; }")).expect("it parses"));
    let found = cpu(2).optimize(&kernel, Optimization::On).expect("it runs");
    assert_eq!(found.stats.device, None);
    assert_eq!(found.kernel, optimize(&kernel, &Options::default()).kernel);
}

#[test]
fn deep_nests_are_left_to_the_host() {
    // What follows an early return is nested in a branch.
    let nested = |returns: usize| {
        let mut text = String::from("program p { buffer x: read_write u32[]; let i = global_id.x; ");
        (0..returns).for_each(|k| text += &format!("if x[i] == {k} {{ return; }} "));
        lower(&Program::parse(&(text + "x[i] = x[i] + 1; }")).expect("it parses"))
    };
    let device = cpu(2);
    same(&device, &nested(200), "branches in branches");
    let kernel = nested(2000);
    let found = device.optimize(&kernel, Optimization::On).expect("it runs");
    assert_eq!(found.stats.device, None);
    assert_eq!(found.stats.loads, 2000, "nothing is stored between the loads");
    assert_eq!(found.kernel, optimize(&kernel, &Options::default()).kernel);
}
