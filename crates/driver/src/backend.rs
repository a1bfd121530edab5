//! The required half of the contract: what a backend must do.

use crate::batch::{Batch, Outcome};
use crate::binding::BindingPlan;
use crate::config::CompileOptions;
use crate::deadline::Deadline;
use crate::error::Result;
use crate::handle::{Generation, RawHandle};
use crate::profile::DeviceProfile;
use crate::telemetry::Telemetry;
use crate::unit::Unit;
use std::any::Any;
use std::sync::Arc;
use std::task::Waker;
use vyre_foundation::grid::Grid;

/// Whether a device can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Health {
    /// Whether the device is lost.
    pub lost: bool,
    /// How often it was recovered.
    pub generation: Generation,
}

/// A device that runs programs: a pure function from a valid program and input bytes to output bytes, equal to the
/// reference bit for bit. Any number of threads may use one backend at once.
///
/// Users call [`crate::BackendExt`], which every backend has. A backend keeps its memory in
/// [`crate::Residents`], its pipelines in [`crate::PipelineCache`] and its submissions in [`crate::Queue`], so
/// that the rules about them are the same everywhere.
pub trait VyreBackend: Send + Sync {
    /// What it is and can do.
    fn profile(&self) -> &DeviceProfile;

    /// Compiles a program, or finds it compiled. Code is freed with the last reference to it.
    fn compile(&self, unit: &Unit, options: &CompileOptions) -> Result<Arc<dyn CompiledPipeline>>;

    /// New resident memory, all zeros.
    fn allocate(&self, bytes: u64) -> Result<RawHandle>;

    /// Frees resident memory. It takes effect after the work in flight.
    fn free(&self, handle: RawHandle) -> Result<()>;

    /// Starts a batch and returns at once. Batches of one thread run in the order in which it submits them.
    fn submit(&self, batch: Batch<'static>) -> Result<Box<dyn Pending>>;

    /// Runs a batch, after those that the same thread has submitted, and waits for it. On an error nothing that the
    /// batch allocated is left.
    fn run(&self, batch: Batch<'_>, deadline: Deadline) -> Result<Outcome>;

    /// Counts what it does. The backend counts launches, transfers, resident memory and compilation; what callers
    /// give and get is counted for it.
    fn telemetry(&self) -> &Telemetry;

    /// Whether the device is there.
    fn health(&self) -> Health;

    /// Takes the device into use again. All handles become stale.
    fn recover(&self) -> Result<Generation>;

    /// Refuses further work and waits for the work in flight.
    fn shutdown(&self, deadline: Deadline) -> Result<()>;
}

/// References to a backend are backends too.
macro_rules! forward {
    ($($reference:ty),*) => {$(
        impl<B: VyreBackend + ?Sized> VyreBackend for $reference {
            fn profile(&self) -> &DeviceProfile {
                (**self).profile()
            }
            fn compile(&self, unit: &Unit, options: &CompileOptions) -> Result<Arc<dyn CompiledPipeline>> {
                (**self).compile(unit, options)
            }
            fn allocate(&self, bytes: u64) -> Result<RawHandle> {
                (**self).allocate(bytes)
            }
            fn free(&self, handle: RawHandle) -> Result<()> {
                (**self).free(handle)
            }
            fn submit(&self, batch: Batch<'static>) -> Result<Box<dyn Pending>> {
                (**self).submit(batch)
            }
            fn run(&self, batch: Batch<'_>, deadline: Deadline) -> Result<Outcome> {
                (**self).run(batch, deadline)
            }
            fn telemetry(&self) -> &Telemetry {
                (**self).telemetry()
            }
            fn health(&self) -> Health {
                (**self).health()
            }
            fn recover(&self) -> Result<Generation> {
                (**self).recover()
            }
            fn shutdown(&self, deadline: Deadline) -> Result<()> {
                (**self).shutdown(deadline)
            }
        }
    )*};
}

forward!(&B, Arc<B>);

/// A program compiled for one backend.
pub trait CompiledPipeline: Any + Send + Sync {
    /// What a launch binds.
    fn plan(&self) -> &BindingPlan;

    /// How much memory a launch on this grid needs beyond what it binds.
    fn hidden_bytes(&self, grid: Grid) -> u64;

    /// Whether the grid barriers of the program, if any, can be kept inside one launch on this grid.
    fn fits_natively(&self, grid: Grid) -> bool;

    /// The size of the code.
    fn code_bytes(&self) -> u64;
}

/// A batch that was submitted. Dropping it cancels the batch.
pub trait Pending: Send + Sync {
    /// Whether the result is there.
    fn is_ready(&self) -> bool;

    /// Asks the batch to stop. Its result is then an error, unless it was done already.
    fn cancel(&self);

    /// Waits for the result until a deadline. Afterwards the result is gone.
    fn wait(&self, deadline: Deadline) -> Result<Outcome>;

    /// Whom to wake when the result is there.
    fn wake(&self, waker: &Waker);
}
