//! What all passes of the optimizer cost on the host and on the device, and where the one overtakes the other.

mod rows;
pub(crate) mod spirv;

use crate::memory;
use anyhow::{Context as _, Result, bail};
use rows::Rows;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vyre_driver::Optimization;
use vyre_driver::registry::optimizer;
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_self_substrate::{Device, Options, optimize};

/// The shapes that are measured: rows, and in how many layers.
const SHAPES: [(usize, usize); 12] = [
    (100, 10),
    (1_000, 10),
    (10_000, 10),
    (10_000, 200),
    (100_000, 10),
    (100_000, 200),
    (1_000_000, 10),
    (1_000_000, 200),
    (1_000_000, 2_000),
    (1_000_000, 20_000),
    (1_000_000, 1_000_000),
    (10_000_000, 200),
];

/// From how many rows on two turns are enough.
const MANY: usize = 2_000_000;

/// From how many levels on the device is not asked: it takes a barrier and more for each.
const DEEP: usize = 100_000;

/// How long optimising a kernel took, and what it took of memory.
pub(crate) struct Passes {
    /// The rows of the kernel, and its levels.
    pub(crate) rows: usize,
    pub(crate) levels: usize,
    pub(crate) host: Vec<Duration>,
    /// By the number of threads: from kernel to kernel, and the dispatch alone.
    pub(crate) device: Vec<(usize, Vec<[Duration; 2]>)>,
    /// By the device with all threads, whose own program was not optimised: the dispatch alone.
    pub(crate) not_improved: Vec<Duration>,
    /// Wherever the optimizer itself chooses.
    pub(crate) chosen: Vec<Duration>,
    /// The most bytes that were allocated at a time, on the host and on the device.
    pub(crate) bytes: [u64; 2],
}

/// Measures all shapes.
pub(crate) fn measure(threads: &[usize], turns: usize) -> Result<Vec<Passes>> {
    let devices: Vec<(usize, Device)> = threads
        .iter()
        .map(|threads| {
            let options = CpuOptions { threads: *threads, ..CpuOptions::default() };
            Ok((*threads, Device::new(Arc::new(CpuBackend::with_options(options)?))))
        })
        .collect::<Result<_>>()?;
    SHAPES.into_iter().map(|(rows, layers)| passes(&devices, rows, layers, turns)).collect()
}

fn passes(devices: &[(usize, Device)], rows: usize, layers: usize, turns: usize) -> Result<Passes> {
    let kernel = Rows::new(rows, layers).kernel();
    let chosen = optimizer().context("no optimizer is linked in")?;
    let turns = if rows > MANY { turns.min(2) } else { turns };
    let mut passes = Passes {
        rows: kernel.values.len(),
        levels: layers,
        host: Vec::new(),
        device: devices.iter().map(|(threads, _)| (*threads, Vec::new())).collect(),
        not_improved: Vec::new(),
        chosen: Vec::new(),
        bytes: [0; 2],
    };
    for _ in 0..turns {
        let begun = Instant::now();
        let (host, bytes) = memory::most(|| optimize(&kernel, &Options::default()));
        passes.host.push(begun.elapsed());
        passes.bytes[0] = bytes;
        let begun = Instant::now();
        let improved = (chosen.optimize)(&kernel);
        passes.chosen.push(begun.elapsed());
        if improved != host.kernel {
            bail!("{rows} rows are not optimised as on the host");
        }
        if layers > DEEP {
            continue;
        }
        for ((_, device), (_, times)) in devices.iter().zip(&mut passes.device) {
            let begun = Instant::now();
            let (found, bytes) = memory::most(|| device.optimize(&kernel, Optimization::On));
            let found = found?;
            let all = begun.elapsed();
            passes.bytes[1] = bytes;
            times.push([all, found.stats.passes[0].time]);
            if found.kernel != host.kernel || found.stats.device.is_none() {
                bail!("{rows} rows are not optimised by the device as on the host");
            }
        }
        if let Some((_, device)) = devices.last() {
            let found = device.optimize(&kernel, Optimization::Off)?;
            passes.not_improved.push(found.stats.passes[0].time);
        }
    }
    Ok(passes)
}
