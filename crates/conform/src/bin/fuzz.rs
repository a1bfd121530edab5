//! Long runs of everything that `vyre-conform` checks.
//!
//! ```text
//! fuzz roundtrip N    N programs through text, layout and wire, unchanged
//! fuzz schedules N    N programs under many schedules and both forms, equal bytes; coverage must be complete
//! fuzz text N         N hostile texts: parsing and validating ends soon, without a panic
//! fuzz bytes N        N hostile encodings: decoding and validating ends soon, without a panic
//! fuzz backend NAME N N programs on a backend and on the reference, equal bytes
//! fuzz show SEED      the case of a seed as a test file
//!
//! --seed S      the first seed (default 0); the others follow
//! --size N      about how many statements a program has (default 40)
//! --orders N    how many schedules (default 8)
//! --threads A,B the thread limits under which a backend runs each program (default: its own)
//! --routes A,B  the routes by which a backend runs each program: auto (default), native, resident, host
//! --simd A,B    how the CPU computes lanes: on (default), off, always
//! --optimize A,B  whether programs are optimised first: on (default), off
//! --grid-barriers  programs dense in grid barriers, on up to 10,000 workgroups; a seed then means another program
//! --out DIR     where reduced failures are written (default: they are printed)
//! --corpus DIR  test files to mutate (default: tests/files of this repository)
//! ```
//! Progress goes to standard error, the summary to standard output. The exit code is 1 if anything failed and 2
//! if the arguments are wrong. A seed always means the same program, so a failure is repeated with
//! `--seed` and N = 1.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vyre_conform::{
    Case, Coverage, DEFAULT_SIZE, Device, Executor, Failure, Observed, Reference, ThroughText, ThroughWire,
    compare, generate, generate_with_grid_barriers, hostile, is_deterministic, reduce, reduce_unordered,
    roundtrip, schedules, test_file,
};
use vyre_driver::{Optimization, Route, VyreBackend};
use vyre_driver_cpu::{CpuBackend, CpuOptions, Simd};
// Registers itself.
use vyre_driver_wgpu as _;
use vyre_reference::Schedule;
use vyre_self_substrate as _;

/// After this many failures a run ends: they are likely one bug.
const MOST_FAILURES: u64 = 10;
/// One input that takes longer than this hangs.
const HANG: Duration = Duration::from_secs(600);

struct Arguments {
    command: String,
    number: u64,
    seed: u64,
    size: u32,
    orders: usize,
    out: Option<PathBuf>,
    corpus: PathBuf,
    /// The backend, for that command.
    backend: String,
    threads: Vec<usize>,
    routes: Vec<Route>,
    /// How the CPU computes lanes.
    simd: Vec<Simd>,
    /// Whether programs are optimised.
    optimization: Vec<Optimization>,
    /// Whether programs are dense in grid barriers.
    grid_barriers: bool,
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!(
                "fuzz: {problem}\nhelp: fuzz roundtrip|schedules|text|bytes|show N, or fuzz backend NAME N [--seed S] [--size N] [--orders N] [--threads A,B] [--routes A,B] [--simd A,B] [--optimize on,off] [--grid-barriers] [--out DIR] [--corpus DIR]"
            );
            return ExitCode::from(2);
        }
    };
    let mut run =
        Run { arguments, started: Instant::now(), failures: 0, done: 0, slowest: (Duration::ZERO, 0) };
    watch();
    let passed = match run.arguments.command.as_str() {
        "roundtrip" => run.roundtrip(),
        "schedules" => run.schedules(),
        "text" => run.text(),
        "bytes" => run.bytes(),
        "backend" => run.backend(),
        _ => run.show(),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let command = given.next().ok_or("no command")?;
        if !["roundtrip", "schedules", "text", "bytes", "backend", "show"].contains(&command.as_str()) {
            return Err(format!("unknown command `{command}`"));
        }
        let backend = match command.as_str() {
            "backend" => given.next().ok_or("the name of a backend is missing")?,
            _ => String::new(),
        };
        let number = parsed(given.next())?;
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files");
        let mut arguments = Arguments {
            command,
            number,
            seed: 0,
            size: DEFAULT_SIZE,
            orders: 8,
            out: None,
            corpus,
            backend,
            threads: Vec::new(),
            routes: vec![Route::Auto],
            simd: vec![Simd::On],
            optimization: vec![Optimization::On],
            grid_barriers: false,
        };
        while let Some(option) = given.next() {
            if option == "--grid-barriers" {
                arguments.grid_barriers = true;
                continue;
            }
            let value = given.next();
            match option.as_str() {
                "--seed" => arguments.seed = parsed(value)?,
                "--size" => arguments.size = parsed(value)?,
                "--orders" => arguments.orders = parsed(value)?,
                "--threads" => {
                    let limits = value.ok_or("`--threads` needs numbers")?;
                    let limits = limits.split(',').map(|limit| parsed(Some(limit.to_owned())));
                    arguments.threads = limits.collect::<Result<_, _>>()?;
                }
                "--routes" => {
                    let names = value.ok_or("`--routes` needs names")?;
                    arguments.routes = names.split(',').map(route).collect::<Result<_, _>>()?;
                }
                "--simd" => {
                    let names = value.ok_or("`--simd` needs names")?;
                    arguments.simd = names.split(',').map(simd).collect::<Result<_, _>>()?;
                }
                "--optimize" => {
                    let names = value.ok_or("`--optimize` needs names")?;
                    arguments.optimization = names.split(',').map(optimization).collect::<Result<_, _>>()?;
                }
                "--out" => arguments.out = Some(value.ok_or("`--out` needs a directory")?.into()),
                "--corpus" => arguments.corpus = value.ok_or("`--corpus` needs a directory")?.into(),
                other => return Err(format!("unknown option `{other}`")),
            }
        }
        Ok(arguments)
    }

    /// The case of a seed.
    fn case(&self, seed: u64) -> Case {
        if self.grid_barriers {
            generate_with_grid_barriers(seed, self.size)
        } else {
            generate(seed, self.size)
        }
    }

    /// A seed with the option that it needs to mean the same program.
    fn described(&self, seed: u64) -> String {
        format!("{seed}{}", if self.grid_barriers { " with --grid-barriers" } else { "" })
    }
}

fn parsed<T: FromStr>(value: Option<String>) -> Result<T, String> {
    let value = value.ok_or("a number is missing")?;
    value.parse().map_err(|_| format!("`{value}` is not a number that fits"))
}

/// The seed being checked, plus one; 0 before the first.
static CURRENT: AtomicU64 = AtomicU64::new(0);

/// Ends the process where one input takes too long, and says which.
fn watch() {
    std::thread::spawn(|| {
        let mut last = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let current = CURRENT.load(Ordering::Relaxed);
            if current != last.0 {
                last = (current, Instant::now());
            } else if current != 0 && last.1.elapsed() > HANG {
                eprintln!("seed {} has taken {HANG:?} and does not end", current - 1);
                exit(1);
            }
        }
    });
}

struct Run {
    arguments: Arguments,
    started: Instant,
    failures: u64,
    done: u64,
    /// How long the slowest seed took, and which it is.
    slowest: (Duration, u64),
}

impl Run {
    /// Calls `check` for each seed until too many have failed.
    fn each(&mut self, mut check: impl FnMut(&mut Run, u64)) {
        let mut shown = Instant::now();
        let first = self.arguments.seed;
        for seed in (0..self.arguments.number).map(|i| first.wrapping_add(i)) {
            CURRENT.store(seed.wrapping_add(1), Ordering::Relaxed);
            let start = Instant::now();
            check(self, seed);
            self.done += 1;
            self.slowest = self.slowest.max((start.elapsed(), seed));
            if shown.elapsed() > Duration::from_secs(5) {
                shown = Instant::now();
                let (done, total) = (self.done, self.arguments.number);
                eprintln!("{done} of {total}, {} failures, {:.0?}", self.failures, self.started.elapsed());
            }
            if self.failures >= MOST_FAILURES {
                eprintln!("stopping after {MOST_FAILURES} failures");
                break;
            }
        }
        CURRENT.store(0, Ordering::Relaxed);
    }

    fn summary(&self, what: &str) -> bool {
        let took = self.started.elapsed();
        println!("{}: {} {what}, {} failures, {took:.1?}", self.arguments.command, self.done, self.failures);
        println!("the slowest was seed {} with {:.1?}", self.slowest.1, self.slowest.0);
        self.failures == 0
    }

    fn roundtrip(&mut self) -> bool {
        self.each(|run, seed| {
            let case = run.arguments.case(seed);
            if let Err(problem) = roundtrip::check(&case.program) {
                run.failed(seed, &case, &problem, &mut |case| roundtrip::check(&case.program).is_err());
            }
        });
        self.summary("programs through text, layout and wire")
    }

    fn schedules(&mut self) -> bool {
        let mut coverage = Coverage::default();
        let mut traps = 0;
        self.each(|run, seed| {
            let case = run.arguments.case(seed);
            coverage.add_case(&case);
            let executors = executors(seed, run.arguments.orders);
            if let Some(mismatch) = compare(&case, &executors) {
                let text = mismatch.to_string();
                run.failed(seed, &case, &text, &mut |case| compare(case, &executors).is_some());
            }
            let observed = Reference::new(Schedule::InOrder).run(&case);
            traps += u64::from(matches!(observed, Ok(Observed::Trap { .. })));
        });
        println!("{coverage}");
        println!("{traps} programs trapped");
        self.summary(&format!("programs under {} schedules", self.arguments.orders))
            && coverage.missing().is_empty()
    }

    /// The backend under each thread limit against the reference. Backends are those that are linked in.
    fn backend(&mut self) -> bool {
        let devices = match devices(&self.arguments) {
            Ok(devices) => devices,
            Err(error) => {
                eprintln!("{error}");
                return false;
            }
        };
        let unsupported = Arc::new(AtomicU64::new(0));
        let mut executors: Vec<Box<dyn Executor>> = vec![Box::new(Reference::new(Schedule::InOrder))];
        for device in devices {
            executors.push(Box::new(Counted { device, unsupported: Arc::clone(&unsupported) }));
        }
        self.each(|run, seed| {
            let case = run.arguments.case(seed);
            if let Some(mismatch) = compare(&case, &executors) {
                let text = mismatch.to_string();
                run.failed(seed, &case, &text, &mut |case| compare(case, &executors).is_some());
            }
        });
        let unsupported = unsupported.load(Ordering::Relaxed);
        println!("{unsupported} runs needed more than `{}` has", self.arguments.backend);
        self.summary(&format!("programs on `{}` and on the reference", self.arguments.backend))
    }

    fn text(&mut self) -> bool {
        let corpus = hostile::Corpus::read(&self.arguments.corpus).unwrap_or_default();
        eprintln!("{} files to mutate", corpus.len());
        self.each(|run, seed| {
            let text = hostile::text(seed, &corpus);
            if let Err(problem) = hostile::check_text(&text) {
                run.input_failed(seed, &problem, text.as_bytes(), "txt");
            }
        });
        self.summary("texts")
    }

    fn bytes(&mut self) -> bool {
        self.each(|run, seed| {
            let bytes = hostile::bytes(seed);
            if let Err(problem) = hostile::check_bytes(&bytes) {
                run.input_failed(seed, &problem, &bytes, "wire");
            }
        });
        self.summary("encodings")
    }

    fn show(&self) -> bool {
        let case = self.arguments.case(self.arguments.number);
        match Reference::new(Schedule::InOrder).run(&case) {
            Ok(observed) => {
                println!(
                    "{}",
                    test_file(
                        &case,
                        &observed,
                        &format!("Seed {}.", self.arguments.described(self.arguments.number))
                    )
                );
                true
            }
            Err(failure) => {
                println!("{}\n{failure}", case.program);
                false
            }
        }
    }

    /// Reports a failing case, reduces it and writes it as a test.
    fn failed(&mut self, seed: u64, case: &Case, problem: &str, fails: &mut dyn FnMut(&Case) -> bool) {
        self.failures += 1;
        println!("seed {seed}: {problem}");
        CURRENT.store(0, Ordering::Relaxed);
        let ordered = is_deterministic(case, Duration::from_secs(10));
        let small = if ordered { reduce(case, fails) } else { reduce_unordered(case, fails) };
        let comment = format!(
            "Found by fuzzing, seed {}: {}",
            self.arguments.described(seed),
            problem.lines().next().unwrap_or("")
        );
        let text = match Reference::new(Schedule::InOrder).run(&small) {
            Ok(observed) => test_file(&small, &observed, &comment),
            Err(failure) => format!("// {comment}\n// {failure}\n{}", small.program),
        };
        self.write(&format!("{}_{seed}.vyre", self.arguments.command), text.as_bytes());
    }

    /// Reports a failing input and writes it as it is.
    fn input_failed(&mut self, seed: u64, problem: &str, input: &[u8], extension: &str) {
        self.failures += 1;
        println!("seed {seed}: {problem}");
        self.write(&format!("{}_{seed}.{extension}", self.arguments.command), input);
    }

    fn write(&self, name: &str, contents: &[u8]) {
        let Some(directory) = &self.arguments.out else {
            return println!("{}", String::from_utf8_lossy(&contents[..contents.len().min(4000)]));
        };
        let path = directory.join(name);
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, contents));
        match written {
            Ok(()) => println!("  written to {}", path.display()),
            Err(error) => println!("  {} could not be written: {error}", path.display()),
        }
    }
}

/// A backend that counts the cases for which it lacks something.
struct Counted {
    device: Device,
    unsupported: Arc<AtomicU64>,
}

impl Executor for Counted {
    fn name(&self) -> String {
        self.device.name()
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let result = self.device.run(case);
        let lacks = matches!(result, Err(Failure::Unsupported(_)));
        self.unsupported.fetch_add(u64::from(lacks), Ordering::Relaxed);
        result
    }
}

/// A backend, on the CPU one for each way to compute lanes, under each thread limit and by each route. The CPU shares
/// out launches however small they are, and keeps nothing on disk.
fn devices(arguments: &Arguments) -> Result<Vec<Device>, vyre_driver::Error> {
    let backends: Vec<Arc<dyn VyreBackend>> = match arguments.backend.as_str() {
        "cpu" => {
            let default = CpuOptions::default();
            let threads = arguments.threads.iter().copied().max().unwrap_or(default.threads);
            let options = CpuOptions { threads, share_from: 0, cache_folder: None, ..default };
            let start = |simd: &Simd| -> Result<Arc<dyn VyreBackend>, vyre_driver::Error> {
                Ok(Arc::new(CpuBackend::with_options(CpuOptions { simd: *simd, ..options.clone() })?))
            };
            arguments.simd.iter().map(start).collect::<Result<_, _>>()?
        }
        name => vec![vyre_driver::acquire(name)?],
    };
    let mut devices = Vec::new();
    for backend in backends {
        let device = Device::new(backend);
        let mut limited: Vec<Device> =
            arguments.threads.iter().map(|limit| device.clone().with_threads(*limit)).collect();
        if limited.is_empty() {
            limited.push(device);
        }
        for route in &arguments.routes {
            for optimization in &arguments.optimization {
                let ways = limited.iter().map(|device| device.clone().with_route(*route));
                devices.extend(ways.map(|device| device.with_optimization(*optimization)));
            }
        }
    }
    Ok(devices)
}

fn simd(name: &str) -> Result<Simd, String> {
    match name {
        "off" => Ok(Simd::Off),
        "on" => Ok(Simd::On),
        "always" => Ok(Simd::Always),
        other => Err(format!("`--simd` is off, on or always, not `{other}`")),
    }
}

fn optimization(name: &str) -> Result<Optimization, String> {
    match name {
        "off" => Ok(Optimization::Off),
        "on" => Ok(Optimization::On),
        other => Err(format!("`--optimize` is off or on, not `{other}`")),
    }
}

fn route(name: &str) -> Result<Route, String> {
    let routes = [Route::Auto, Route::Native, Route::Resident, Route::Host];
    let found = routes.into_iter().find(|route| route.to_string() == name);
    found.ok_or_else(|| format!("there is no route `{name}`"))
}

/// The reference under this many schedules, and on the program after a trip through text and wire.
fn executors(seed: u64, orders: usize) -> Vec<Box<dyn Executor>> {
    let mut executors = schedules(seed, orders);
    executors.push(Box::new(ThroughText));
    executors.push(Box::new(ThroughWire));
    executors
}
