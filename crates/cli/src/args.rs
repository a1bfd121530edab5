//! What can be asked for on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Parser, Debug)]
#[command(
    name = "vyre",
    version,
    about = "Write a compute program once, run it anywhere with the same bytes out"
)]
#[command(
    after_help = "Exit codes: 0 done; 1 the program or its input is wrong; 2 wrong usage; 3 the backend is \
                        not available here; 4 the program trapped; 5 it timed out or did not converge"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Compile a program and dispatch it
    Run(Box<RunArgs>),
    /// Report every error of programs, and warn of races that can be proved
    Check(CheckArgs),
    /// Put programs into canonical layout
    Fmt(FmtArgs),
    /// Show the segments and the schedule that grid barriers give where the device does not keep them itself
    Split(SplitArgs),
    /// Print what the optimizer makes of a program
    Opt(OptArgs),
    /// Print what a backend makes of a program
    Emit(EmitArgs),
    /// List the backends, what each has, and why one is missing
    Devices(DevicesArgs),
}

/// Where a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Backend {
    /// The best one that is available
    Auto,
    /// The reference interpreter: slow, and right by definition
    Reference,
    /// All cores of this machine
    Cpu,
    /// A GPU
    Wgpu,
}

impl Backend {
    /// Every backend that can be asked for by name.
    pub(crate) const NAMED: [Backend; 3] = [Backend::Wgpu, Backend::Cpu, Backend::Reference];

    /// Its name; `None` leaves the choice open.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Backend::Auto => None,
            Backend::Reference => Some("reference"),
            Backend::Cpu => Some(vyre_driver_cpu::NAME),
            Backend::Wgpu => Some(vyre_driver_wgpu::NAME),
        }
    }
}

/// How grid barriers are carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Route {
    /// The first that applies
    Auto,
    /// One launch that synchronises inside
    Native,
    /// One launch per segment, buffers stay on the device
    Resident,
    /// One launch per segment, live bytes travel through the host
    Host,
}

/// Whose floating-point arithmetic is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Float {
    /// IEEE-754, the same bytes everywhere
    Exact,
    /// The device's own: other backends may give other bytes
    Native,
}

/// Whether something is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OnOff {
    /// Not at all
    Off,
    /// Where it is worth it
    On,
}

impl From<OnOff> for vyre_driver_cpu::Simd {
    fn from(simd: OnOff) -> vyre_driver_cpu::Simd {
        match simd {
            OnOff::Off => vyre_driver_cpu::Simd::Off,
            OnOff::On => vyre_driver_cpu::Simd::On,
        }
    }
}

/// What `vyre emit` prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Target {
    /// The intermediate form of the CPU backend
    Clif,
    /// The machine code of the CPU backend
    Asm,
    /// The shader of the GPU backend
    Wgsl,
    /// The binary shader of the GPU backend
    Spirv,
}

/// The arguments of `vyre run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The program, a .vyre text
    pub file: PathBuf,
    /// Where to run it
    #[arg(long, value_enum, default_value = "auto")]
    pub backend: Backend,
    /// A part of the name of the device: `vyre devices` lists them; means `--backend wgpu`
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// An input, in one of the forms that `values::parse` reads
    #[arg(long = "in", value_name = "NAME=VALUE", value_parser = pair)]
    #[arg(help = "An input: [1,2,3], @file.bin, @file.npy, zeros:N, iota:N, fill:V:N or random:SEED:N")]
    pub inputs: Vec<(String, String)>,
    /// Writes an output to a file: NumPy if it ends in .npy, otherwise raw little-endian
    #[arg(long = "out", value_name = "NAME=PATH", value_parser = pair)]
    pub outputs: Vec<(String, String)>,
    /// The element count of an output or scratch buffer whose count is open
    #[arg(long = "len", value_name = "NAME=N", value_parser = length)]
    pub lengths: Vec<(String, u32)>,
    /// The number of workgroups on each axis
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = grid)]
    pub grid: Option<[u32; 3]>,
    /// Repeat the program until it changes nothing, at most N times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub fixpoint: Option<u32>,
    /// Fail with exit code 5 when the fixpoint has not converged
    #[arg(long, requires = "fixpoint")]
    pub require_convergence: bool,
    /// How to carry out grid barriers
    #[arg(long, value_enum, default_value = "auto")]
    pub route: Route,
    /// Optimise the program before it runs; the bytes are the same. On by default, but not for the reference
    #[arg(long, overrides_with = "no_optimize")]
    pub optimize: bool,
    /// Run the program as it is written
    #[arg(long)]
    pub no_optimize: bool,
    /// Give up after this time, such as 5s or 200ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Use at most this many threads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// Let code for CPUs compute several invocations at once; the bytes are the same
    #[arg(long, value_enum)]
    pub simd: Option<OnOff>,
    /// Whose floating-point arithmetic to use
    #[arg(long, value_enum, default_value = "exact")]
    pub float: Float,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write a trace for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The programs
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FmtArgs {
    /// The programs; - reads standard input and prints
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing; fail if a file is not in canonical layout
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Args, Debug)]
pub(crate) struct EmitArgs {
    /// The program, a .vyre text
    pub(crate) file: PathBuf,
    /// What to print
    #[arg(long, value_enum)]
    pub(crate) target: Target,
    /// Let code for CPUs compute several invocations at once
    #[arg(long, value_enum, default_value = "on")]
    pub(crate) simd: OnOff,
    /// Take the program as it is written
    #[arg(long)]
    pub(crate) no_optimize: bool,
    /// Write it to a file
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct OptArgs {
    /// The program, a .vyre text
    pub(crate) file: PathBuf,
    /// Print what was done instead: rows and items after each pass, and how often each rule was applied
    #[arg(long)]
    pub(crate) stats: bool,
    /// Print what changed instead, against the program that comes back when nothing is optimised
    #[arg(long, conflicts_with = "stats")]
    pub(crate) diff: bool,
    /// Run the passes on this device, where they are programs of the language; else on the host. The result is the same
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["opt_fuel", "dump"])]
    pub(crate) backend: Option<Backend>,
    /// Stop after N changes: between two numbers of which only the larger gives a wrong program stands the wrong change
    #[arg(long, value_name = "N")]
    pub(crate) opt_fuel: Option<u64>,
    /// Write the program after each pass to a file in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dump: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "diff")]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SplitArgs {
    /// The program, a .vyre text
    pub(crate) file: PathBuf,
    /// Print a graph in the language of Graphviz
    #[arg(long, conflicts_with_all = ["json", "programs"])]
    pub(crate) dot: bool,
    /// Print the programs of the segments
    #[arg(long, conflicts_with = "json")]
    pub(crate) programs: bool,
    /// Take the program as it is written
    #[arg(long)]
    pub(crate) no_optimize: bool,
    /// The number of workgroups on each axis: says how many bytes this grid needs
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = grid)]
    pub(crate) grid: Option<[u32; 3]>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DevicesArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected NAME=VALUE, such as a=[1,2,3]".to_owned()),
    }
}

fn length(text: &str) -> Result<(String, u32), String> {
    let (name, value) = pair(text)?;
    let count = value.parse().map_err(|_| format!("`{value}` is not a number of elements"))?;
    Ok((name, count))
}

fn grid(text: &str) -> Result<[u32; 3], String> {
    let parts: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match parts.as_deref() {
        Ok([x]) => Ok([*x, 1, 1]),
        Ok([x, y]) => Ok([*x, *y, 1]),
        Ok([x, y, z]) => Ok([*x, *y, *z]),
        _ => Err("expected one to three numbers of workgroups, such as 16 or 4,4".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time with a unit, such as 5s, 200ms or 1m".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
    Duration::try_from_secs_f64(number * scale).map_err(|error| error.to_string())
}
