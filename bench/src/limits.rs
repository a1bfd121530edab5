//! What the machine can do at most: how fast memory is, and how many operations vectors do.

use anyhow::Result;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many numbers of 32 bits a vector of the code generator has.
const LANES: f64 = 4.0;

/// How many vector instructions a core begins in each cycle: three on present x86 cores, four on some others.
const UNITS: f64 = 3.0;

/// The most bytes that kernels go through, as a power of two, and the fewest that are told apart.
const LARGEST: u32 = 30;
const SMALLEST: u32 = 20;

/// The speed of the machine with some number of threads.
#[derive(Clone)]
pub(crate) struct Machine {
    /// Bytes per second between the cores and what holds so many bytes, by powers of two: small ones stay in caches.
    bandwidth: Vec<f64>,
    /// Cycles per second of a core.
    pub(crate) frequency: f64,
    pub(crate) threads: usize,
}

impl Machine {
    /// Measures it.
    pub(crate) fn measure(threads: usize) -> Result<Machine> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
        let bandwidth = (SMALLEST..=LARGEST).map(|power| bandwidth(&pool, 1 << power)).collect();
        Ok(Machine { bandwidth, frequency: frequency(), threads })
    }

    /// Operations per second on vectors of all cores.
    pub(crate) fn operations(&self) -> f64 {
        self.frequency * LANES * UNITS * self.threads as f64
    }

    /// Bytes per second for kernels that go through so many.
    pub(crate) fn bandwidth(&self, bytes: u64) -> f64 {
        let power = bytes.max(1).ilog2().clamp(SMALLEST, LARGEST);
        self.bandwidth[(power - SMALLEST) as usize]
    }

    /// Bytes per second between the cores and memory.
    pub(crate) fn memory(&self) -> f64 {
        self.bandwidth(1 << LARGEST)
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

/// Every thread adds one array to another, again and again where they are small. All arrays together have so many bytes.
fn bandwidth(pool: &ThreadPool, bytes: usize) -> f64 {
    const LONG: usize = 1 << LARGEST;
    let n = bytes / (2 * size_of::<f32>()) / pool.current_num_threads();
    let passes = LONG / bytes;
    let arrays = pool.broadcast(|_| Mutex::new((vec![1.0_f32; n], vec![2.0_f32; n])));
    let time = best(|| {
        pool.broadcast(|thread| {
            let mut arrays = arrays[thread.index()].lock().unwrap_or_else(PoisonError::into_inner);
            let (y, x) = &mut *arrays;
            for _ in 0..passes {
                y.iter_mut().zip(black_box(&*x)).for_each(|(y, x)| *y += x);
            }
        });
    });
    black_box(&arrays);
    // One is read, one is read and written.
    (3 * n * size_of::<f32>() * pool.current_num_threads() * passes) as f64 / time.as_secs_f64()
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
