//! Natural Rust on rayon: what the others are compared with.

use crate::cases::Case;
use crate::contender::{Contender, Platform};
use crate::data::{Data, Role};
use anyhow::Result;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::time::{Duration, Instant};

/// A rayon pool for each number of threads.
pub(crate) struct Natural {
    pools: Vec<ThreadPool>,
}

impl Natural {
    /// Pools of so many threads.
    pub(crate) fn new(threads: &[usize]) -> Result<Natural> {
        let pool = |threads: &usize| ThreadPoolBuilder::new().num_threads(*threads).build();
        Ok(Natural { pools: threads.iter().map(pool).collect::<Result<_, _>>()? })
    }
}

impl Platform for Natural {
    fn name(&self) -> &'static str {
        "rust"
    }

    fn about(&self) -> String {
        "natural Rust, rayon".to_owned()
    }

    fn threads(&self) -> Vec<usize> {
        self.pools.iter().map(ThreadPool::current_num_threads).collect()
    }

    fn prepare<'a>(&'a self, case: &'a Case) -> Result<Box<dyn Contender + 'a>> {
        let data = case.buffers.iter().map(|buffer| buffer.initial.clone()).collect();
        Ok(Box::new(Prepared { pools: &self.pools, case, data }))
    }
}

struct Prepared<'a> {
    pools: &'a [ThreadPool],
    case: &'a Case,
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
        pool.install(|| (self.case.natural)(&mut self.data));
        Ok(start.elapsed())
    }

    fn results(&mut self) -> Result<Vec<Vec<u8>>> {
        let results = self.data.iter().zip(&self.case.buffers).filter(|(_, buffer)| buffer.is_result());
        Ok(results.map(|(data, _)| data.bytes().to_vec()).collect())
    }
}
