//! What a dispatch gives besides its effects.

use crate::config::Route;
use std::time::Duration;
use vyre_foundation::grid::Grid;

/// What a dispatch gives.
#[derive(Clone, PartialEq, Debug)]
pub struct DispatchOutput {
    /// The bytes of the returned buffers, in declaration order.
    pub outputs: Vec<Vec<u8>>,
    /// How it ran.
    pub report: DispatchReport,
}

/// How a dispatch ran.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DispatchReport {
    /// The backend that ran it.
    pub backend: &'static str,
    /// How its grid barriers ran; native where it is one launch.
    pub route: Route,
    /// Of how many segments it is made; 1 where it is one launch.
    pub segments: u32,
    /// The grid.
    pub grid: Grid,
    /// How many passes ran.
    pub passes: u32,
    /// Whether the last pass changed nothing; `None` without a fixpoint.
    pub converged: Option<bool>,
    /// How long it took, from a call that asks for it.
    pub timing: Option<Timing>,
}

/// How long a dispatch took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// From the call to the result.
    pub total: Duration,
    /// The part before anything was sent to the device: finding or making code, and planning.
    pub prepare: Duration,
    /// The launches on the device, where it can tell.
    pub device: Option<Duration>,
}

/// The compiled programs of a backend instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipelineCacheSnapshot {
    /// Compiled programs found in memory.
    pub hits: u64,
    /// Compiled programs not found in memory.
    pub misses: u64,
    /// Compiled programs found on disk.
    pub disk_hits: u64,
    /// Compiled programs not found on disk.
    pub disk_misses: u64,
    /// Compiled programs kept in memory.
    pub entries: u64,
    /// The bytes of their code.
    pub bytes: u64,
}
