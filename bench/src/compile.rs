//! How long it takes from text to code, and to a first result.

use crate::cases;
use crate::contender::Platform;
use crate::vyre::Vyre;
use anyhow::Result;
use std::time::{Duration, Instant};
use vyre_driver::{CompileOptions, Unit, VyreBackend as _};
use vyre_foundation::Program;

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
}

/// Measures compilation. Every time has a backend of its own, which has compiled nothing before.
pub(crate) fn measure(
    threads: &[usize],
    platforms: &[Box<dyn Platform>],
    repetitions: usize,
) -> Result<Compile> {
    let case = cases::small_saxpy();
    let names = ["backend", "parse", "validate", "lower", "generate"];
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
        vyre.backend.compile(&unit, &CompileOptions::default())?;
        let generated = Instant::now();
        let times = [start, ready, parsed, validated, lowered, generated];
        for ((_, part), pair) in parts.iter_mut().zip(times.windows(2)) {
            part.push(pair[1] - pair[0]);
        }
        total.push(generated - ready);
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
    Ok(Compile { parts, total, first_result })
}
