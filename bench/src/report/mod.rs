//! What was measured, for people and for programs.

pub(crate) mod gpu;
pub(crate) mod json;
pub(crate) mod limits;
mod optimisation;
pub(crate) mod svg;
pub(crate) mod table;

use crate::compile::Compile;
use crate::contender::Platform;
use crate::limits::Machine;
use crate::measure::Row;
use crate::optimisation::{Gain, OPTIMISED};
use crate::optimizer::Passes;
use crate::optimizer::spirv::Beside;
use crate::routes;

/// Everything that was measured.
pub(crate) struct Report {
    pub(crate) setting: Setting,
    pub(crate) rows: Vec<Row>,
    /// What the machine can do, where that was asked for.
    pub(crate) machine: Option<Machine>,
    /// Grid barriers, and how many of them a run has.
    pub(crate) gridsync: Option<(Row, usize)>,
    /// Launches of one workgroup.
    pub(crate) dispatch: Option<Row>,
    pub(crate) compile: Option<Compile>,
    /// Passes of the optimizer.
    pub(crate) passes: Vec<Passes>,
    /// All passes of the optimizer beside those of `spirv-opt`.
    pub(crate) beside: Vec<Beside>,
    /// The optimisation set.
    pub(crate) gains: Vec<Gain>,
    /// vyre on wgpu against wgpu by hand, with the most that vyre may take where there is a limit. Empty without the
    /// feature `wgpu`.
    pub(crate) gpu: Vec<(Row, Option<f64>)>,
}

impl Report {
    /// Every row.
    pub(crate) fn all_rows(&self) -> impl Iterator<Item = &Row> {
        let gridsync = self.gridsync.iter().map(|(row, _)| row);
        let gpu = self.gpu.iter().map(|(row, _)| row);
        let gains = self.gains.iter().map(|gain| &gain.row);
        self.rows.iter().chain(gridsync).chain(&self.dispatch).chain(gains).chain(gpu)
    }

    /// Whether vyre could run everything and gives the results of natural Rust, and optimised those of the program as
    /// it was written. What the others give is shown, but
    /// they do not promise equal bytes.
    pub(crate) fn is_right(&self) -> bool {
        let must_run = |platform: &str| ["vyre", "rust", OPTIMISED, gpu::EXACT].contains(&platform);
        let must_be_right = |platform: &str| must_run(platform) || routes::is_route(platform);
        self.all_rows().all(|row| {
            row.timings.iter().all(|timing| timing.differs.is_none() || !must_be_right(timing.platform))
                && !row.skipped.iter().any(|(platform, _)| must_run(platform))
        })
    }
}

/// Under what circumstances.
pub(crate) struct Setting {
    pub(crate) scale: f64,
    pub(crate) repetitions: usize,
    pub(crate) threads: usize,
    /// Name and description of each platform.
    pub(crate) platforms: Vec<(&'static str, String)>,
    /// How many cores the process may use.
    pub(crate) cores: usize,
    /// What else was running at the start, where the system says so.
    pub(crate) load: Option<f64>,
    /// Whether natural Rust may use the instructions of this machine.
    pub(crate) native: bool,
}

impl Setting {
    pub(crate) fn new(
        scale: f64,
        repetitions: usize,
        threads: usize,
        platforms: &[Box<dyn Platform>],
    ) -> Setting {
        Setting {
            scale,
            repetitions,
            threads,
            platforms: platforms.iter().map(|platform| (platform.name(), platform.about())).collect(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load: load(),
            native: is_native(),
        }
    }

    /// Prints it before the work begins.
    pub(crate) fn print(&self) {
        for (name, about) in &self.platforms {
            println!("{name:<8} {about}");
        }
        let load = self.load.map_or(String::new(), |load| format!(", load {load:.2} at the start"));
        println!("{} cores{load}; best of {}; scale {}", self.cores, self.repetitions, self.scale);
        if !self.native {
            println!("warning: built without `-C target-cpu=native`; run cargo in this crate's own folder");
        }
        if let Some(load) = self.load.filter(|load| *load > 0.5) {
            println!("warning: something else is running (load {load:.2}); times will be too long");
        }
    }
}

/// The load of the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// Whether this was built for a machine like this one.
fn is_native() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        cfg!(target_feature = "avx2") || !std::arch::is_x86_feature_detected!("avx2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        true
    }
}
