//! Everything that can go wrong between a program and a device, with a stable code and help.

use crate::cache::CacheError;
use crate::grid_sync::Schedule;
use crate::handle::HandleError;
use std::time::Duration;
use thiserror::Error as ThisError;
use vyre_foundation::grid::GridError;
use vyre_foundation::{Diagnostics, InputError};
use vyre_reference::Trap;

/// A result of the driver.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call has no result.
#[derive(Clone, PartialEq, Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The program is not valid.
    #[error("the program is not valid: {0}")]
    InvalidProgram(#[from] Diagnostics),
    /// The inputs or lengths do not fit the program.
    #[error(transparent)]
    InvalidInput(#[from] InputError),
    /// There is no grid.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A setting of the dispatch contradicts itself or the program.
    #[error("{what}. help: {help}")]
    Config {
        /// What is wrong.
        what: String,
        /// How to fix it.
        help: &'static str,
    },
    /// The backend cannot do what the program or the configuration asks for.
    #[error("{feature} is not supported by `{backend}`. help: {help}")]
    Unsupported {
        /// What was asked for.
        feature: String,
        /// Who cannot do it.
        backend: &'static str,
        /// Who can, or what else to do.
        help: String,
    },
    /// There is not so much memory.
    #[error(
        "there is no memory for {what}: {asked} bytes were asked for{}. help: use a smaller grid or shorter buffers",
        .available.map(|n| format!(" and {n} can be had")).unwrap_or_default()
    )]
    OutOfMemory {
        /// What it was for.
        what: String,
        /// How much was asked for.
        asked: u64,
        /// How much there is, where that is known.
        available: Option<u64>,
    },
    /// The dispatch would need more memory than it may use.
    #[error(
        "the dispatch needs {needed} bytes and may use {budget}. help: raise the memory budget, or use shorter buffers or a smaller grid"
    )]
    OverBudget {
        /// How much it needs: outputs, scratch, hidden storage and snapshots.
        needed: u64,
        /// How much it may use.
        budget: u64,
    },
    /// The device is gone.
    #[error("the device of `{backend}` is lost. help: call `try_recover`, then upload the data again")]
    DeviceLost {
        /// Whose device it was.
        backend: &'static str,
    },
    /// The deadline has passed.
    #[error(
        "the dispatch did not end within {limit:?}. help: allow more time, or look for a loop that does not end"
    )]
    Timeout {
        /// The time it was given.
        limit: Duration,
    },
    /// Somebody cancelled it.
    #[error("the dispatch was cancelled. help: keep its handle until the result is there")]
    Cancelled,
    /// The program trapped.
    #[error("the program trapped: {:?} (value {}) in invocation {}. help: the program itself says so; see its `trap` statements", .0.tag, .0.value, .0.invocation)]
    Trap(Trap),
    /// A grid barrier asked to run inside one launch does not fit the device.
    #[error(
        "{workgroups} workgroups cannot meet at a grid barrier inside one launch on `{backend}`. help: let the route be `auto`, or use `resident`"
    )]
    ResidencyExceeded {
        /// Whose limit it is.
        backend: &'static str,
        /// How many workgroups were asked for.
        workgroups: u128,
    },
    /// A fixpoint that must converge did not.
    #[error("the fixpoint did not converge in {passes} passes. help: allow more passes")]
    NotConverged {
        /// How many passes ran.
        passes: u32,
    },
    /// A resident handle is used in a way it cannot be.
    #[error(transparent)]
    Handle(#[from] HandleError),
    /// The folder of compiled programs cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Something went wrong in a part of a program that is run in parts.
    #[error(
        "segment {segment} of {segments}{}: {source}",
        .region.as_ref().map(|region| format!(" (from {region})")).unwrap_or_default()
    )]
    Segment {
        /// Which one, from 1.
        segment: usize,
        /// How many there are.
        segments: usize,
        /// The region of the program that it came from.
        region: Option<String>,
        /// What went wrong.
        source: Box<Error>,
    },
    /// Something went wrong in a step of a batch. Whoever made the batch knows what the step was for.
    #[error("step {step} of the batch: {source}")]
    Step {
        /// The step, from 0.
        step: usize,
        /// What went wrong.
        source: Box<Error>,
    },
    /// A batch contradicts itself: a defect of whoever made it.
    #[error("step {step} of the batch: {what}. help: see the documentation of `Batch`")]
    Batch {
        /// The step, from 0.
        step: usize,
        /// What is wrong with it.
        what: String,
    },
    /// No backend has this name.
    #[error("there is no backend `{name}`. help: there are {known}")]
    UnknownBackend {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No backend meets the requirements.
    #[error(
        "no backend meets the requirements: {reasons}. help: ask for less, or name a backend; `vyre devices` shows what each has"
    )]
    NoBackend {
        /// Why each was passed over.
        reasons: String,
    },
    /// The backend has been shut down.
    #[error("`{backend}` has been shut down. help: acquire it again")]
    ShutDown {
        /// Which one.
        backend: &'static str,
    },
    /// A launch that cannot be stopped still runs, though nobody waits for it any more.
    #[error(
        "a launch whose time was over still runs on the device of `{backend}`. help: try again when it has ended, or call `try_recover`"
    )]
    Busy {
        /// The backend.
        backend: &'static str,
    },
    /// A compiler or device contradicts itself: a defect of vyre or of a driver.
    #[error("internal error: {0}. help: please report the program that shows it")]
    Internal(String),
}

impl Error {
    /// What a backend returns for a pipeline that another one compiled.
    pub fn foreign_pipeline(backend: &str) -> Error {
        let what = format!("the pipeline was not compiled by `{backend}`");
        Error::Config { what, help: "compile the program on the backend that runs it" }
    }

    /// The same, and that it went wrong in a step of a batch. What ends the whole dispatch is left as it is.
    #[must_use]
    pub fn at_step(self, step: usize) -> Error {
        match self {
            Error::Trap(_) | Error::Timeout { .. } | Error::Cancelled | Error::DeviceLost { .. } => self,
            source => Error::Step { step, source: Box::new(source) },
        }
    }

    /// The same, and that it went wrong in a segment.
    pub(crate) fn in_segment(self, segment: usize, schedule: &Schedule) -> Error {
        let segments = schedule.segments();
        let region = segments.get(segment).and_then(|segment| segment.origin()).map(str::to_owned);
        Error::Segment { segment: segment + 1, segments: segments.len(), region, source: Box::new(self) }
    }

    /// What went wrong, wherever it did.
    pub fn root(&self) -> &Error {
        match self {
            Error::Segment { source, .. } | Error::Step { source, .. } => source.root(),
            error => error,
        }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::InvalidProgram(found) => found.iter().next().map_or("D001", |d| d.code()),
            Error::InvalidInput(error) => error.code(),
            Error::Grid(error) => error.code(),
            Error::Config { .. } => "D002",
            Error::Unsupported { .. } => "D003",
            Error::OutOfMemory { .. } => "D004",
            Error::OverBudget { .. } => "D005",
            Error::DeviceLost { .. } => "D006",
            Error::Timeout { .. } => "D007",
            Error::Cancelled => "D008",
            Error::Trap(_) => "D009",
            Error::ResidencyExceeded { .. } => "D010",
            Error::NotConverged { .. } => "D011",
            Error::Batch { .. } => "D012",
            Error::UnknownBackend { .. } => "D013",
            Error::NoBackend { .. } => "D014",
            Error::ShutDown { .. } => "D015",
            Error::Busy { .. } => "D016",
            Error::Segment { source, .. } | Error::Step { source, .. } => source.code(),
            Error::Handle(error) => error.code(),
            Error::Cache(error) => error.code(),
            Error::Internal(_) => "D099",
        }
    }
}
