//! What the optimizer is worth: kernels that were written without a thought of speed, as they are and optimised.

pub(crate) mod count;
mod kernels;

use crate::cases::{Case, scaled};
use crate::contender::Platform as _;
use crate::measure::{self, Repeat, Row, Timing};
use crate::vyre::Vyre;
use anyhow::{Context as _, Result};
use count::Counter;
use kernels::{KERNELS, Kernel};
use std::time::{Duration, Instant};
use vyre_driver::{CompileOptions, Optimization, Unit, VyreBackend as _};
use vyre_driver_cpu::CpuBackend;
use vyre_foundation::{Name, Program};
use vyre_self_substrate::{Options, optimize};

/// The names of the two contenders.
pub(crate) const PLAIN: &str = "plain";
pub(crate) const OPTIMISED: &str = "optimised";

/// What the set must reach, in the geometric mean: how many times fewer operations, how many times longer to compile at
/// the most, and how many times faster.
pub(crate) const FEWER_OPERATIONS: f64 = 2.0;
pub(crate) const LONGER_TO_COMPILE: f64 = 1.2;
pub(crate) const FASTER: f64 = 1.2;

/// How many invocations there are in a run of the reference, and of the code: images are 512 x 512.
const SMALL: usize = 2048;
const LARGE: usize = 1 << 18;

/// How often each kernel is compiled in a turn, and run.
const COMPILES: usize = 5;
const RUNS: usize = 4;

/// One kernel, as it is and optimised.
pub(crate) struct Gain {
    /// The operations that the reference executes.
    pub(crate) operations: [u64; 2],
    /// From flat form to code: compiling alone, and optimising and compiling.
    pub(crate) compile: [Vec<Duration>; 2],
    /// What of the second is optimising.
    pub(crate) optimize: Vec<Duration>,
    /// The times of the code on one thread.
    pub(crate) row: Row,
    /// The instructions of a launch of the code, where they could be counted.
    pub(crate) instructions: Option<[u64; 2]>,
}

impl Gain {
    /// How many times fewer operations the reference executes.
    pub(crate) fn fewer_operations(&self) -> f64 {
        self.operations[0] as f64 / self.operations[1].max(1) as f64
    }

    /// How many times longer it takes to compile, by the best times.
    pub(crate) fn longer_to_compile(&self) -> Option<f64> {
        let [plain, optimised] = &self.compile;
        measure::quotient(*optimised.iter().min()?, *plain.iter().min()?)
    }

    /// How many times faster it runs, by the best times and by the medians.
    pub(crate) fn faster(&self) -> Option<[f64; 2]> {
        let (plain, optimised) = (self.row.of(PLAIN)?, self.row.of(OPTIMISED)?);
        let best = measure::quotient(plain.best(), optimised.best())?;
        Some([best, measure::quotient(plain.median(), optimised.median())?])
    }

    /// How many times fewer instructions a launch executes.
    pub(crate) fn fewer_instructions(&self) -> Option<f64> {
        self.instructions.map(|[plain, optimised]| plain as f64 / optimised.max(1) as f64)
    }
}

/// What stands in the middle of factors.
pub(crate) fn geometric_mean(factors: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = factors.into_iter().map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

/// Measures the whole set.
pub(crate) fn measure(scale: f64, turns: usize, counts: bool) -> Result<Vec<Gain>> {
    let skipped = |error: &anyhow::Error| eprintln!("  instructions are not counted: {error:#}");
    let counter = if counts { Counter::find().inspect_err(skipped).ok() } else { None };
    let mut gains = Vec::new();
    for kernel in KERNELS {
        eprintln!("  {} ...", kernel.name);
        let invocations = scaled(LARGE, scale, 1024);
        let gain =
            gain(kernel, invocations, turns, counter.as_ref()).with_context(|| kernel.name.to_owned())?;
        gains.push(gain);
    }
    Ok(gains)
}

fn gain(kernel: &Kernel, invocations: usize, turns: usize, counter: Option<&Counter>) -> Result<Gain> {
    let (operations, differs) = operations(&kernel.case(SMALL))?;
    let (compile, optimize) = compile(&kernel.case(SMALL), turns)?;
    let mut row = run(&kernel.case(invocations), turns)?;
    for timing in row.timings.iter_mut().filter(|timing| timing.platform == OPTIMISED) {
        timing.differs = differs.clone().or_else(|| timing.differs.take());
    }
    let instructions = counter.map(|counter| counter.count(kernel.name)).transpose()?;
    Ok(Gain { operations, compile, optimize, row, instructions })
}

/// The operations of the program as it was written and of what the optimizer makes of it, and how results differ: those
/// of the second and those of its code from those of the first.
fn operations(case: &Case) -> Result<([u64; 2], Option<String>)> {
    let unit = Unit::new(Program::parse(case.text.vyre)?)?;
    let optimised = unit.optimized();
    let declared = unit.program().buffers().iter().filter(|buffer| buffer.access().is_shared_by_grid());
    let mut options = vyre_reference::Options { grid: Some(case.grid()?), ..Default::default() };
    let mut inputs: Vec<&[u8]> = Vec::new();
    for (declared, buffer) in declared.zip(&case.buffers) {
        if declared.consumes_input() {
            inputs.push(buffer.initial.bytes());
        } else {
            let length: (Name, u32) = (declared.name().clone(), u32::try_from(buffer.initial.len())?);
            options.lengths.push(length);
        }
    }
    let plain = vyre_reference::run(unit.program(), &inputs, &options)?;
    let improved = vyre_reference::run(optimised.code(), &inputs, &options)?;
    let on_cpu = {
        let vyre = contender(Optimization::On)?;
        let mut prepared = vyre.prepare(case)?;
        prepared.run(1)?;
        prepared.results()?
    };
    let differs = measure::difference(&improved.outputs, &plain.outputs)
        .or_else(|| measure::difference(&on_cpu, &plain.outputs));
    Ok(([plain.operations, improved.operations], differs))
}

/// How long it takes from flat form to code: alone, and with the optimizer, with its part. Every time has a backend of its
/// own, which has compiled nothing before.
fn compile(case: &Case, turns: usize) -> Result<([Vec<Duration>; 2], Vec<Duration>)> {
    let program = Program::parse(case.text.vyre)?;
    let mut times = [Vec::new(), Vec::new()];
    let mut optimizing = Vec::new();
    for turn in 0..turns * COMPILES {
        let unit = Unit::new(program.clone())?;
        let improved = unit.optimized();
        // Both are lowered before times are taken.
        let kernel = unit.kernel();
        improved.kernel();
        for place in 0..2 {
            let vyre = Vyre::new(&[1])?;
            let begun = Instant::now();
            let which = (place + turn) % 2;
            if which == 0 {
                vyre.backend.compile(&unit, &CompileOptions::default())?;
            } else {
                std::hint::black_box(optimize(kernel, &Options::default()));
                optimizing.push(begun.elapsed());
                vyre.backend.compile(&improved, &CompileOptions::default())?;
            }
            times[which].push(begun.elapsed());
        }
    }
    Ok((times, optimizing))
}

/// The times of the code on one thread.
fn run(case: &Case, turns: usize) -> Result<Row> {
    let contenders = [contender(Optimization::Off)?, contender(Optimization::On)?];
    let mut entrants = Vec::new();
    for vyre in &contenders {
        entrants.push((vyre.name, vec![1], vyre.prepare(case)?));
    }
    // What is changed in place is put back before each run.
    let repeat = Repeat { turns: turns * RUNS, runs: 1 };
    let timings: Vec<Timing> = measure::compete(case.name, entrants, repeat)?;
    Ok(Row { name: case.name, size: case.size.clone(), work: case.work, timings, skipped: Vec::new() })
}

/// vyre on one thread, with or without the optimizer.
fn contender(optimization: Optimization) -> Result<Vyre<CpuBackend>> {
    let name = if optimization == Optimization::On { OPTIMISED } else { PLAIN };
    Ok(Vyre { name, optimization, ..Vyre::new(&[1])? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric_mean([]), None);
        let mean = geometric_mean([2.0, 8.0]).unwrap();
        assert!((mean - 4.0).abs() < 1e-9, "{mean}");
    }

    /// Every kernel gives the same bytes optimised. That it takes fewer operations is a figure of the report: a branch
    /// that became a choice computes both sides, so single kernels may take more.
    #[test]
    fn results_are_equal() {
        for kernel in KERNELS {
            let (_, differs) = operations(&kernel.case(1024)).unwrap();
            assert_eq!(differs, None, "{}", kernel.name);
            let row = run(&kernel.case(8192), 1).unwrap();
            assert!(row.timings.iter().all(|timing| timing.differs.is_none()), "{}", kernel.name);
        }
    }
}
