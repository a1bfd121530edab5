//! Measures vyre against natural Rust, OpenCL and wgpu: on equal inputs, in one run, with results
//! compared byte for byte. `README.md` says how to read what it prints.

mod cases;
mod compile;
mod contender;
mod data;
#[cfg(feature = "wgpu")]
mod gpu;
mod limits;
mod measure;
mod memory;
mod natural;
mod opencl;
mod optimisation;
mod optimizer;
mod report;
mod routes;
mod vyre;

use anyhow::{Context as _, Result, bail};
use cases::CASES;
use clap::{Parser, ValueEnum};
use contender::Platform;
use measure::{Repeat, Row};
use report::{Report, Setting};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use vyre_driver::Optimization;

/// Measures vyre against natural Rust, OpenCL and wgpu.
#[derive(Parser)]
struct Args {
    /// Lists what can be measured.
    #[arg(long)]
    list: bool,
    /// Measures only these, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Makes every input so many times as large.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    scale: f64,
    /// How often each contender runs each kernel.
    #[arg(long, default_value_t = 7, value_name = "N")]
    reps: usize,
    /// The threads of the parallel runs.
    #[arg(long, default_value_t = 2, value_name = "N")]
    threads: usize,
    /// Writes all figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draws the ratios as a chart.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Measures what the machine can do, and draws how near vyre comes to it.
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// Does not count instructions, which takes longest in the optimisation set.
    #[arg(long)]
    no_counts: bool,
    /// Only launches a kernel of the optimisation set, for tools that look at the process.
    #[arg(long, value_name = "KERNEL")]
    count: Option<String>,
    /// Whether the kernel of `--count` is optimised.
    #[arg(long, value_name = "on|off", default_value = "on", requires = "count")]
    optimize: Switch,
    /// How often the kernel of `--count` is launched.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "count")]
    launches: usize,
}

/// On or off.
#[derive(Clone, Copy, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl Args {
    /// Whether something is to be measured.
    fn is_wanted(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// What is measured beside the cases.
const DISPATCH: (&str, &str) = ("dispatch", "median latency of a launch of one workgroup");
const GRIDSYNC: (&str, &str) = ("gridsync", "what a grid barrier costs, by each route");
const COMPILE: (&str, &str) =
    ("compile", "from the text of saxpy to code and to a first result, and of longer programs to code");

const OPTIMIZER: (&str, &str) = ("optimizer", "all passes on the host, on the device and beside spirv-opt");
const OPTIMISATION: (&str, &str) =
    ("optimisation", "naive kernels as they are and optimised: operations, compiling, running, instructions");

/// How many launches of one workgroup a turn has.
const LAUNCHES: usize = 1000;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all results of vyre and natural Rust are the same.
fn run(args: &Args) -> Result<bool> {
    if args.list {
        list();
        return Ok(true);
    }
    check(args)?;
    if let Some(name) = &args.count {
        let optimization = match args.optimize {
            Switch::On => Optimization::On,
            Switch::Off => Optimization::Off,
        };
        optimisation::count::launch(name, optimization, args.launches)?;
        return Ok(true);
    }
    let wanted = |name: &str| args.is_wanted(name);
    limit_others(args.threads);
    let mut threads = vec![1, args.threads];
    threads.dedup();
    let platforms = platforms(&threads)?;
    let setting = Setting::new(args.scale, args.reps, args.threads, &platforms);
    setting.print();

    let machine = args.limits.as_ref().map(|_| limits::Machine::measure(args.threads)).transpose()?;
    let mut rows = Vec::new();
    for entry in CASES.iter().filter(|entry| wanted(entry.name)) {
        eprintln!("measuring {} ...", entry.name);
        let case = (entry.make)(args.scale);
        rows.push(note(measure::measure(&case, &platforms, Repeat { turns: args.reps, runs: 1 })?));
    }
    let gridsync = if wanted(GRIDSYNC.0) {
        eprintln!("measuring {} ...", GRIDSYNC.0);
        let repeat = Repeat { turns: args.reps, runs: 1 };
        let row = note(measure::measure(&cases::grid_barriers(args.scale), &platforms, repeat)?);
        Some((row, cases::barriers(args.scale)))
    } else {
        None
    };
    let dispatch = if wanted(DISPATCH.0) {
        eprintln!("measuring {} ...", DISPATCH.0);
        let repeat = Repeat { turns: args.reps, runs: LAUNCHES };
        Some(note(measure::measure(&cases::one_workgroup(), &platforms, repeat)?))
    } else {
        None
    };
    let compile = if wanted(COMPILE.0) {
        eprintln!("measuring {} ...", COMPILE.0);
        Some(compile::measure(&threads, &platforms, args.reps)?)
    } else {
        None
    };

    let (passes, beside) = if wanted(OPTIMIZER.0) {
        eprintln!("measuring {} ...", OPTIMIZER.0);
        (optimizer::measure(&threads, args.reps)?, optimizer::spirv::measure(args.reps)?)
    } else {
        (Vec::new(), Vec::new())
    };

    let gains = if wanted(OPTIMISATION.0) {
        eprintln!("measuring {} ...", OPTIMISATION.0);
        optimisation::measure(args.scale, args.reps, !args.no_counts)?
    } else {
        Vec::new()
    };

    let gpu = measure_gpu(args)?;

    let report = Report { setting, rows, machine, gridsync, dispatch, compile, passes, beside, gains, gpu };
    print!("{}", report::table::render(&report));
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report::json::render(&report))?;
        fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &args.svg {
        let text = report::svg::render(&report);
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let (Some(path), Some(machine)) = (&args.limits, &report.machine) {
        let text = report::limits::chart(&report::limits::limits(&report.rows, machine), machine);
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(report.is_right())
}

fn list() {
    let cases = CASES.iter().map(|entry| (entry.name, entry.what));
    for (name, what) in cases.chain([GRIDSYNC, DISPATCH, COMPILE, OPTIMIZER, OPTIMISATION]) {
        println!("{name:<14} {what}");
    }
    for (name, what) in gpu_names() {
        println!("{name:<14} on wgpu, against code by hand: {what}");
    }
}

/// What there is to measure on wgpu, against code by hand.
#[cfg(feature = "wgpu")]
fn gpu_names() -> Vec<(String, &'static str)> {
    gpu::names()
}

#[cfg(not(feature = "wgpu"))]
fn gpu_names() -> Vec<(String, &'static str)> {
    Vec::new()
}

/// vyre on wgpu against wgpu by hand, with the limit of each.
#[cfg(feature = "wgpu")]
fn measure_gpu(args: &Args) -> Result<Vec<(Row, Option<f64>)>> {
    let rows = gpu::measure_all(|name| args.is_wanted(name), (args.scale, args.reps, args.threads))?;
    Ok(rows.into_iter().map(|(row, limit)| (note(row), limit)).collect())
}

#[cfg(not(feature = "wgpu"))]
fn measure_gpu(_: &Args) -> Result<Vec<(Row, Option<f64>)>> {
    Ok(Vec::new())
}

fn check(args: &Args) -> Result<()> {
    if !(args.scale > 0.0 && args.scale <= 16.0) {
        bail!("the scale is more than 0 and at most 16");
    }
    if args.reps == 0 || args.threads == 0 {
        bail!("the repetitions and threads are at least 1");
    }
    let others = [GRIDSYNC.0, DISPATCH.0, COMPILE.0, OPTIMIZER.0, OPTIMISATION.0];
    let cases = CASES.iter().map(|entry| entry.name).chain(others);
    let mut known: Vec<String> = cases.map(str::to_owned).collect();
    #[cfg(feature = "wgpu")]
    known.push(gpu::PREFIX.to_owned());
    known.extend(gpu_names().into_iter().map(|(name, _)| name));
    if let Some(name) = args.only.iter().find(|only| !known.contains(only)) {
        bail!("there is no `{name}`; there are: {}", known.join(", "));
    }
    Ok(())
}

/// Says at once who could not run a case.
fn note(row: Row) -> Row {
    for (platform, why) in &row.skipped {
        eprintln!("  {platform} skips {}: {why}", row.name);
    }
    row
}

/// All that can be compared here. Natural Rust is first, because the others are compared with it.
fn platforms(threads: &[usize]) -> Result<Vec<Box<dyn Platform>>> {
    let most = threads.iter().copied().max().unwrap_or(1);
    let mut platforms: Vec<Box<dyn Platform>> =
        vec![Box::new(natural::Natural::new(threads)?), Box::new(vyre::Vyre::new(threads)?)];
    for route in routes::OTHERS {
        platforms.push(Box::new(routes::Routed::new(threads, route)?));
    }
    match natural::Natural::by_hand(threads) {
        Ok(by_hand) => platforms.push(Box::new(by_hand)),
        Err(error) => eprintln!("avx2 is skipped: {error:#}"),
    }
    match opencl::OpenCl::new(most) {
        Ok(opencl) => platforms.push(Box::new(opencl)),
        Err(error) => eprintln!("opencl is skipped: {error:#}"),
    }
    #[cfg(feature = "wgpu")]
    match gpu::Wgpu::new(most) {
        Ok(wgpu) => platforms.push(Box::new(wgpu)),
        Err(error) => eprintln!("wgpu is skipped: {error:#}"),
    }
    #[cfg(not(feature = "wgpu"))]
    eprintln!("wgpu is skipped: built without the feature `wgpu`");
    Ok(platforms)
}

/// Asks the other runtimes for as many threads as vyre and Rust get, and to compile every time. What the caller
/// has set stays as it is.
fn limit_others(threads: usize) {
    let threads = threads.to_string();
    let settings = [
        // PoCL, up to version 3 and from version 4 on.
        ("POCL_MAX_PTHREAD_COUNT", threads.as_str()),
        ("POCL_CPU_MAX_CU_COUNT", threads.as_str()),
        ("POCL_KERNEL_CACHE", "0"),
        // Mesa's software driver.
        ("LP_NUM_THREADS", threads.as_str()),
        ("MESA_SHADER_CACHE_DISABLE", "true"),
    ];
    for (name, value) in settings {
        if std::env::var_os(name).is_none() {
            // SAFETY: no other thread has been started yet.
            unsafe { std::env::set_var(name, value) };
        }
    }
}
