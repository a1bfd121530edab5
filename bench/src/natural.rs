//! Natural Rust on rayon: what the others are compared with. And Rust with vectors by hand, where there is one.

use crate::cases::{self, Case};
use crate::contender::{Contender, Platform};
use crate::data::{Data, Role};
use anyhow::{Context as _, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::time::{Duration, Instant};

/// A rayon pool for each number of threads.
pub(crate) struct Natural {
    pools: Vec<ThreadPool>,
    is_by_hand: bool,
}

impl Natural {
    /// Pools of so many threads.
    pub(crate) fn new(threads: &[usize]) -> Result<Natural> {
        let pool = |threads: &usize| ThreadPoolBuilder::new().num_threads(*threads).build();
        Ok(Natural { pools: threads.iter().map(pool).collect::<Result<_, _>>()?, is_by_hand: false })
    }

    /// The same for what is written by hand with vectors of AVX2.
    pub(crate) fn by_hand(threads: &[usize]) -> Result<Natural> {
        anyhow::ensure!(cases::has_avx2(), "this machine has no AVX2");
        Ok(Natural { is_by_hand: true, ..Natural::new(threads)? })
    }

    fn code(&self, case: &Case) -> Option<fn(&mut [Data])> {
        if self.is_by_hand { case.by_hand } else { Some(case.natural) }
    }
}

impl Platform for Natural {
    fn name(&self) -> &'static str {
        if self.is_by_hand { "avx2" } else { "rust" }
    }

    fn about(&self) -> String {
        let what = if self.is_by_hand { "Rust with vectors of AVX2 by hand" } else { "natural Rust" };
        format!("{what}, rayon")
    }

    fn concerns(&self, case: &Case) -> bool {
        self.code(case).is_some()
    }

    fn threads(&self) -> Vec<usize> {
        self.pools.iter().map(ThreadPool::current_num_threads).collect()
    }

    fn prepare<'a>(&'a self, case: &'a Case) -> Result<Box<dyn Contender + 'a>> {
        let data = case.buffers.iter().map(|buffer| buffer.initial.clone()).collect();
        let code = self.code(case).context("nobody has written it by hand")?;
        Ok(Box::new(Prepared { pools: &self.pools, case, code, data }))
    }
}

struct Prepared<'a> {
    pools: &'a [ThreadPool],
    case: &'a Case,
    code: fn(&mut [Data]),
    data: Vec<Data>,
}

impl Contender for Prepared<'_> {
    fn reset(&mut self) -> Result<()> {
        for (data, buffer) in self.data.iter_mut().zip(&self.case.buffers) {
            if buffer.role != Role::Input {
                data.copy_from(&buffer.initial);
            }
        }
        Ok(())
    }

    fn run(&mut self, threads: usize) -> Result<Duration> {
        let pool = self.pools.iter().find(|pool| pool.current_num_threads() == threads);
        let pool = pool.ok_or_else(|| anyhow::anyhow!("there is no pool of {threads} threads"))?;
        let start = Instant::now();
        pool.install(|| (self.code)(&mut self.data));
        Ok(start.elapsed())
    }

    fn results(&mut self) -> Result<Vec<Vec<u8>>> {
        let results = self.data.iter().zip(&self.case.buffers).filter(|(_, buffer)| buffer.is_result());
        Ok(results.map(|(data, _)| data.bytes().to_vec()).collect())
    }
}
