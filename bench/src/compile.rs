//! How long it takes from text to code, and to a first result.

use crate::cases;
use crate::contender::Platform;
use crate::vyre::Vyre;
use anyhow::Result;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use vyre_driver::{CompileOptions, Unit, VyreBackend as _};
use vyre_foundation::Program;
use vyre_self_substrate::{Options, optimize};

/// How often vyre compiles: this takes little time, so the median means something.
const COMPILES: usize = 50;

/// The times of compiling the saxpy program.
pub(crate) struct Compile {
    /// Each part of the way, with the times it took: starting a backend, and then from text to code.
    pub(crate) parts: Vec<(&'static str, Vec<Duration>)>,
    /// From text to code.
    pub(crate) total: Vec<Duration>,
    /// From text to a first result, by platform.
    pub(crate) first_result: Vec<(&'static str, Vec<Duration>)>,
    /// From text to code for programs of so many operations: one after the other, in branches in a loop, and of every kind.
    pub(crate) sizes: Vec<(usize, [Vec<Duration>; 3])>,
}

/// The operations of the programs that show how time grows.
const SIZES: [usize; 8] = [50, 100, 500, 1000, 2000, 4000, 16_000, 64_000];

/// A program of so many operations, one after the other.
fn straight(operations: usize) -> String {
    let mut body = String::new();
    for k in 0..operations / 3 {
        let _ = writeln!(body, "v = (v ^ v >> {}) * {};", k % 31 + 1, 2 * k + 3);
    }
    program(&body)
}

/// A program of so many operations in branches in a loop.
fn branching(operations: usize) -> String {
    let mut body = String::from("for k in 0..len(x) {\n");
    for k in 0..operations / 7 {
        let _ = writeln!(
            body,
            "if (v >> {}) % 2 == 0 {{ v = v * {} + k; }} else {{ v = v ^ v >> {}; }}",
            k % 32,
            2 * k + 3,
            k % 31 + 1
        );
    }
    program(&(body + "}"))
}

/// A program of so many operations with loops, branches and atomics, and sums of them that are used at its end.
fn mixed(operations: usize) -> String {
    let mut body = String::from("let mut s = 0; let mut t = 0;\n");
    for k in 0..operations / 12 {
        let _ = writeln!(
            body,
            "for j in 0..x[i] {{ v = v * {k} + j; }} if x[i + {k}] > v {{ s = s + v; y[i] = s; }} else {{ t = t ^ v; }} \
             t = t + atomic_add(y[{k}], t);"
        );
    }
    program(&(body + "v = s + t;"))
}

fn program(body: &str) -> String {
    format!(
        "program sized {{ workgroup_size 64; buffer x: read u32[]; buffer y: output u32[];\n\
         let i = global_id.x; if i < len(y) {{ let mut v = x[i];\n{body}\ny[i] = v; }} }}"
    )
}

/// How long it takes from texts to code. Every time has a backend of its own.
fn sizes(threads: &[usize], repetitions: usize) -> Result<Vec<(usize, [Vec<Duration>; 3])>> {
    let mut sizes = Vec::new();
    for operations in SIZES {
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..repetitions {
            let texts = [straight(operations), branching(operations), mixed(operations)];
            for (times, text) in times.iter_mut().zip(texts) {
                let vyre = Vyre::new(threads)?;
                let start = Instant::now();
                let unit = Unit::new(Program::parse(&text)?)?.optimized();
                vyre.backend.compile(&unit, &CompileOptions::default())?;
                times.push(start.elapsed());
            }
        }
        sizes.push((operations, times));
    }
    Ok(sizes)
}

/// Measures compilation. Every time has a backend of its own, which has compiled nothing before.
pub(crate) fn measure(
    threads: &[usize],
    platforms: &[Box<dyn Platform>],
    repetitions: usize,
) -> Result<Compile> {
    let case = cases::small_saxpy();
    let names = ["backend", "parse", "validate", "lower", "optimize", "generate"];
    let mut parts: Vec<(&'static str, Vec<Duration>)> = names.map(|name| (name, Vec::new())).into();
    let mut total = Vec::new();
    for _ in 0..COMPILES {
        let start = Instant::now();
        let vyre = Vyre::new(threads)?;
        let ready = Instant::now();
        let program = Program::parse(case.text.vyre)?;
        let parsed = Instant::now();
        let unit = Unit::new(program)?;
        let validated = Instant::now();
        unit.kernel();
        let lowered = Instant::now();
        std::hint::black_box(optimize(unit.kernel(), &Options::default()));
        let optimized = Instant::now();
        let unit = unit.optimized();
        unit.kernel();
        let generating = Instant::now();
        vyre.backend.compile(&unit, &CompileOptions::default())?;
        let generation = generating.elapsed();
        let times = [start, ready, parsed, validated, lowered, optimized];
        let spans = times.windows(2).map(|pair| pair[1] - pair[0]).chain([generation]);
        parts.iter_mut().zip(spans).for_each(|((_, part), span)| part.push(span));
        total.push(optimized - ready + generation);
    }

    let mut first_result: Vec<(&'static str, Vec<Duration>)> = vec![("vyre", Vec::new())];
    let is_other =
        |platform: &dyn Platform| !["vyre", "rust"].contains(&platform.name()) && platform.concerns(&case);
    let others = || platforms.iter().filter(|platform| is_other(&***platform));
    first_result.extend(others().map(|platform| (platform.name(), Vec::new())));
    for _ in 0..repetitions {
        let vyre = Vyre::new(threads)?;
        let fresh: [&dyn Platform; 1] = [&vyre];
        let all = fresh.into_iter().chain(others().map(|platform| &**platform));
        for (platform, (_, times)) in all.zip(&mut first_result) {
            let most = platform.threads().into_iter().max().unwrap_or(1);
            let start = Instant::now();
            platform.prepare(&case)?.run(most)?;
            times.push(start.elapsed());
        }
    }
    Ok(Compile { parts, total, first_result, sizes: sizes(threads, repetitions)? })
}
