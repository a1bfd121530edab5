//! What the machine can do at most: how fast memory is, and how many operations vectors do.

use anyhow::Result;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How many numbers of 32 bits a vector of the code generator has.
const LANES: f64 = 4.0;

/// How many vector instructions a core begins in each cycle: three on present x86 cores, four on some others.
const UNITS: f64 = 3.0;

/// The speed of the machine with some number of threads.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    /// Bytes per second between memory and all cores.
    pub(crate) bandwidth: f64,
    /// Cycles per second of a core.
    pub(crate) frequency: f64,
    pub(crate) threads: usize,
}

impl Machine {
    /// Measures it.
    pub(crate) fn measure(threads: usize) -> Result<Machine> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
        Ok(Machine { bandwidth: pool.install(bandwidth), frequency: frequency(), threads })
    }

    /// Operations per second on vectors of all cores.
    pub(crate) fn operations(&self) -> f64 {
        self.frequency * LANES * UNITS * self.threads as f64
    }
}

/// The fastest of a few turns.
fn best(mut turn: impl FnMut()) -> Duration {
    let time = |()| {
        let start = Instant::now();
        turn();
        start.elapsed()
    };
    std::iter::repeat_n((), 7).map(time).min().unwrap_or_default()
}

/// Two arrays are read and one is written, none of which fits a cache.
fn bandwidth() -> f64 {
    const N: usize = 64 << 20;
    const CHUNK: usize = 1 << 14;
    let (mut y, x) = (vec![1.0_f32; N], vec![2.0_f32; N]);
    let time = best(|| {
        y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
        });
    });
    black_box(y);
    (N * 12) as f64 / time.as_secs_f64()
}

/// A chain of operations each of which waits for the one before: an exclusive or takes a cycle, a product three.
fn frequency() -> f64 {
    const STEPS: u64 = 20_000_000;
    const CYCLES: u64 = 4;
    let time = best(|| {
        let number = (0..black_box(STEPS)).fold(1_u64, |x, k| (x ^ k).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        black_box(number);
    });
    (STEPS * CYCLES) as f64 / time.as_secs_f64()
}
