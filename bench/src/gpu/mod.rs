//! vyre on its wgpu backend against wgpu written by hand: one driver, one run, equal results.

mod batch;
mod hand;

pub(crate) use hand::Wgpu;

use crate::cases::{CASES, Case, Entry};
use crate::contender::Platform;
use crate::measure::{Repeat, Row, measure};
use crate::natural::Natural;
use crate::report::gpu::{EXACT, NATIVE};
use crate::vyre::Vyre;
use anyhow::Result;
use std::sync::Arc;
use vyre_driver::{FloatMode, Optimization};
use vyre_driver_wgpu::{WgpuBackend, WgpuOptions};

/// Turns are short here, and a limit of a tenth needs many of them.
const TURNS: usize = 3;

/// What the names of everything in here begin with; alone it names all of it.
pub(crate) const PREFIX: &str = "gpu";

/// The most that vyre may take, as a multiple of the time of what is written by hand.
fn limit(name: &str) -> Option<f64> {
    match name {
        "bfs" | "hash" | "histogram" | "saxpy" | "nbody" => Some(1.1),
        "batch" | "sequence" => Some(1.3),
        _ => None,
    }
}

/// The cases that have a shader.
fn entries() -> impl Iterator<Item = &'static Entry> {
    CASES.iter().filter(|entry| !entry.has_grid_barriers)
}

/// Everything that can be measured here, with what it shows.
pub(crate) fn names() -> Vec<(String, &'static str)> {
    let cases = entries().map(|entry| (entry.name, entry.what));
    let all = cases.chain(batch::KINDS.iter().map(|kind| (kind.name(), kind.what())));
    all.map(|(name, what)| (format!("{PREFIX}_{name}"), what)).collect()
}

/// Measures what is wanted, by its name, with the limit of each.
pub(crate) fn measure_all(
    wanted: impl Fn(&str) -> bool,
    (scale, reps, threads): (f64, usize, usize),
) -> Result<Vec<(Row, Option<f64>)>> {
    let wanted = |name: &str| wanted(PREFIX) || wanted(&format!("{PREFIX}_{name}"));
    let is_any = entries().any(|entry| wanted(entry.name));
    if !is_any && !batch::KINDS.iter().any(|kind| wanted(kind.name())) {
        return Ok(Vec::new());
    }
    let wgpu = match Wgpu::new(threads) {
        Ok(wgpu) => wgpu,
        // It has been said that there is no device.
        Err(_) => return Ok(Vec::new()),
    };
    let backend = match open(&wgpu) {
        Ok(backend) => backend,
        Err(error) => {
            eprintln!("{PREFIX} is skipped: {error:#}");
            return Ok(Vec::new());
        }
    };
    let platforms = platforms(&wgpu, &backend, threads)?;
    let mut rows = Vec::new();
    for entry in entries().filter(|entry| wanted(entry.name)) {
        eprintln!("measuring {PREFIX}_{} ...", entry.name);
        let case = fitting(entry, scale, wgpu.largest_buffer());
        let row = measure(&case, &platforms, Repeat { turns: TURNS * reps, runs: 1 })?;
        rows.push((row, limit(entry.name)));
    }
    for kind in batch::KINDS.into_iter().filter(|kind| wanted(kind.name())) {
        eprintln!("measuring {PREFIX}_{} ...", kind.name());
        let repeat = Repeat { turns: 3 * TURNS * reps, runs: 1 };
        rows.push((batch::measure(&wgpu, &backend, kind, repeat)?, limit(kind.name())));
    }
    Ok(rows)
}

/// vyre's backend on the device that the hand-written code uses.
fn open(wgpu: &Wgpu) -> Result<Arc<WgpuBackend>> {
    let options = WgpuOptions { device: Some(wgpu.adapter.clone()), cache_folder: None };
    Ok(Arc::new(WgpuBackend::with_options(options)?))
}

/// Natural Rust is first, because the others are compared with it.
fn platforms(wgpu: &Wgpu, backend: &Arc<WgpuBackend>, threads: usize) -> Result<Vec<Box<dyn Platform>>> {
    let vyre = |name: &'static str, floats: FloatMode| {
        let optimization = Optimization::On;
        Box::new(Vyre { backend: Arc::clone(backend), name, floats, optimization, threads: vec![threads] })
    };
    Ok(vec![
        Box::new(Natural::new(&[threads])?),
        Box::new(wgpu.clone()),
        Box::new(wgpu.unchecked()),
        vyre(EXACT, FloatMode::Exact),
        vyre(NATIVE, FloatMode::Native),
    ])
}

/// A case whose buffers shaders can reach whole: vyre would divide larger ones, which by hand nobody does.
fn fitting(entry: &Entry, scale: f64, largest: u64) -> Case {
    let mut scale = scale;
    loop {
        let case = (entry.make)(scale);
        if case.buffers.iter().all(|buffer| buffer.initial.bytes().len() as u64 <= largest) {
            return case;
        }
        scale /= 2.0;
    }
}
