//! Takes times: contenders alternate in every repetition, so that what disturbs the machine disturbs all of them.

use crate::cases::{Case, Work};
use crate::contender::{Contender, Platform};
use anyhow::{Context as _, Result};
use std::time::Duration;

/// The times of all contenders for one case.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) size: String,
    pub(crate) work: Work,
    pub(crate) timings: Vec<Timing>,
    /// Platforms that cannot run the case, and why.
    pub(crate) skipped: Vec<(&'static str, String)>,
}

/// The times of one platform with some number of threads.
pub(crate) struct Timing {
    pub(crate) platform: &'static str,
    pub(crate) threads: usize,
    pub(crate) times: Vec<Duration>,
    /// How its results differ from those of natural Rust.
    pub(crate) differs: Option<String>,
}

impl Timing {
    /// The shortest time.
    pub(crate) fn best(&self) -> Duration {
        self.times.iter().copied().min().unwrap_or_default()
    }

    /// The time in the middle.
    pub(crate) fn median(&self) -> Duration {
        median(&self.times)
    }
}

/// The time in the middle; zero where there is none.
pub(crate) fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

impl Row {
    /// The times of a platform, whatever its threads.
    pub(crate) fn of(&self, platform: &str) -> Option<&Timing> {
        self.timings.iter().find(|timing| timing.platform == platform)
    }

    /// The times of a platform with so many threads.
    pub(crate) fn timing(&self, platform: &str, threads: usize) -> Option<&Timing> {
        self.timings.iter().find(|timing| timing.platform == platform && timing.threads == threads)
    }

    /// The shortest time of a platform with so many threads.
    pub(crate) fn best(&self, platform: &str, threads: usize) -> Option<Duration> {
        self.timing(platform, threads).map(Timing::best)
    }

    /// How many times longer a platform takes than natural Rust with the same threads.
    pub(crate) fn ratio(&self, platform: &str, threads: usize) -> Option<f64> {
        quotient(self.best(platform, threads)?, self.best("rust", threads)?)
    }

    /// How many times faster a platform is with so many threads than with one.
    pub(crate) fn speed_up(&self, platform: &str, threads: usize) -> Option<f64> {
        quotient(self.best(platform, 1)?, self.best(platform, threads)?)
    }

    /// The speed-up of vyre by that of natural Rust.
    pub(crate) fn scaling(&self, threads: usize) -> Option<f64> {
        Some(self.speed_up("vyre", threads)? / self.speed_up("rust", threads)?)
    }
}

/// How many times longer one time is than another.
pub(crate) fn quotient(a: Duration, b: Duration) -> Option<f64> {
    (!b.is_zero()).then(|| a.as_secs_f64() / b.as_secs_f64())
}

/// How often a case is run.
#[derive(Clone, Copy)]
pub(crate) struct Repeat {
    /// How often every contender has its turn.
    pub(crate) turns: usize,
    /// How many runs a turn has.
    pub(crate) runs: usize,
}

/// Who takes part: its platform, the numbers of threads it is asked to use, and what is ready to run.
pub(crate) type Entrant<'a> = (&'static str, Vec<usize>, Box<dyn Contender + 'a>);

/// Measures a case on every platform that it concerns and that can run it.
pub(crate) fn measure(case: &Case, platforms: &[Box<dyn Platform>], repeat: Repeat) -> Result<Row> {
    let mut entrants: Vec<Entrant<'_>> = Vec::new();
    let mut skipped = Vec::new();
    for platform in platforms.iter().filter(|platform| platform.concerns(case)) {
        match platform.prepare(case) {
            Ok(contender) => entrants.push((platform.name(), platform.threads(), contender)),
            Err(error) => skipped.push((platform.name(), format!("{error:#}"))),
        }
    }
    let timings = compete(case.name, entrants, repeat)?;
    Ok(Row { name: case.name, size: case.size.clone(), work: case.work, timings, skipped })
}

/// Takes the times of all entrants. The first one gives the results that the others are compared with: after a first
/// run that is not timed, and after the last one.
pub(crate) fn compete(name: &str, mut entrants: Vec<Entrant<'_>>, repeat: Repeat) -> Result<Vec<Timing>> {
    let mut turns: Vec<(usize, Timing)> = Vec::new();
    for (number, (platform, all_threads, _)) in entrants.iter().enumerate() {
        for threads in all_threads {
            let timing = Timing { platform, threads: *threads, times: Vec::new(), differs: None };
            turns.push((number, timing));
        }
    }

    let mut expected = None;
    for (number, timing) in &mut turns {
        let contender = &mut *entrants[*number].2;
        let doing = || format!("{name} on {} with {} threads", timing.platform, timing.threads);
        contender.reset().and_then(|()| contender.run(timing.threads)).with_context(doing)?;
        let results = contender.results().with_context(doing)?;
        match &expected {
            None => expected = Some(results),
            Some(expected) => timing.differs = difference(&results, expected),
        }
    }
    let expected = expected.context("there is nobody to measure")?;

    let count = turns.len();
    for turn in 0..repeat.turns {
        for place in 0..count {
            // Another one begins each time.
            let (number, timing) = &mut turns[(place + turn) % count];
            let contender = &mut *entrants[*number].2;
            take_turn(contender, timing, repeat.runs)
                .with_context(|| format!("{name} on {}", timing.platform))?;
            if turn + 1 == repeat.turns && timing.differs.is_none() {
                timing.differs = difference(&contender.results()?, &expected);
            }
        }
    }
    Ok(turns.into_iter().map(|(_, timing)| timing).collect())
}

fn take_turn(contender: &mut dyn Contender, timing: &mut Timing, runs: usize) -> Result<()> {
    contender.reset()?;
    for _ in 0..runs {
        timing.times.push(contender.run(timing.threads)?);
    }
    Ok(())
}

/// Where results first differ from what they should be.
pub(crate) fn difference(found: &[Vec<u8>], expected: &[Vec<u8>]) -> Option<String> {
    if found.len() != expected.len() {
        return Some(format!("{} results instead of {}", found.len(), expected.len()));
    }
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        if found == expected {
            continue;
        }
        if found.len() != expected.len() {
            return Some(format!("result {number}: {} bytes instead of {}", found.len(), expected.len()));
        }
        let words = || found.chunks(4).zip(expected.chunks(4));
        let first = words().position(|(a, b)| a != b).unwrap_or(0);
        let count = words().filter(|(a, b)| a != b).count();
        let (a, b) = words().nth(first).unwrap_or_default();
        return Some(format!(
            "result {number}: {count} of {} words differ, first word {first}: {a:02x?} instead of {b:02x?}",
            found.len().div_ceil(4)
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::CASES;
    use crate::natural::Natural;
    use crate::opencl::OpenCl;
    use crate::vyre::Vyre;

    #[test]
    fn differences_are_found() {
        let expected = vec![vec![1, 2, 3, 4, 5, 6, 7, 8]];
        assert_eq!(difference(&expected.clone(), &expected), None);
        let found = vec![vec![1, 2, 3, 4, 5, 6, 7, 9]];
        let difference = difference(&found, &expected).unwrap();
        assert!(difference.starts_with("result 0: 1 of 2 words differ, first word 1"), "{difference}");
    }

    /// Every case gives the bytes of natural Rust on vyre, and on OpenCL where it is installed.
    #[test]
    fn results_are_equal() {
        let threads = [1, 2];
        let mut platforms: Vec<Box<dyn Platform>> =
            vec![Box::new(Natural::new(&threads).unwrap()), Box::new(Vyre::new(&threads).unwrap())];
        if let Ok(opencl) = OpenCl::new(2) {
            platforms.push(Box::new(opencl));
        }
        for entry in CASES {
            let case = (entry.make)(0.002);
            let row = measure(&case, &platforms, Repeat { turns: 1, runs: 1 }).unwrap();
            let must = |platform: &str| platform != "opencl" || !case.text.has_grid_barriers();
            let unexcused = row.skipped.iter().find(|(platform, _)| must(platform));
            assert_eq!(unexcused, None, "{}", entry.name);
            for timing in &row.timings {
                assert_eq!(timing.differs, None, "{} on {}", entry.name, timing.platform);
            }
        }
    }
}
