//! The contract between vyre programs and every device.
//!
//! [`VyreBackend`] is what a backend must do: ten methods over a few plain types. A [`Unit`] is a valid program, a
//! [`Batch`] a list of steps over memory, a [`CompiledPipeline`] what a launch runs. [`Residents`], [`Queue`] and
//! [`PipelineCache`] do for every backend what is the same on all of them.
//!
//! [`BackendExt`] is what every user gets. Nobody implements it.
//!
//! ```
//! use vyre_driver::{BackendExt, DispatchConfig, acquire};
//! use vyre_foundation::Program;
//!
//! let program = Program::parse("program p { buffer o: output u32[4]; o[global_id.x] = global_id.x; }").unwrap();
//! let backend = acquire("reference")?;
//! let output = backend.dispatch(&program, vec![], &DispatchConfig::new())?;
//! assert_eq!(output.outputs[0][12..], [3, 0, 0, 0]);
//! # Ok::<(), vyre_driver::Error>(())
//! ```

mod backend;
mod batch;
mod binding;
mod bytes;
pub mod cache;
mod config;
mod deadline;
mod device_buffer;
mod engine;
mod error;
mod ext;
pub mod grid_sync;
mod handle;
mod output;
mod pending;
mod pipeline;
mod pipelines;
mod plan;
mod profile;
mod queue;
mod reference;
pub mod registry;
mod resident;
mod stop;
mod telemetry;
mod unit;

pub use backend::{CompiledPipeline, Health, Pending, VyreBackend};
pub use batch::{Action, Batch, Launch, Memory, Outcome, Predicate, Span, Step, Temporary};
pub use binding::BindingPlan;
pub use config::{CompileOptions, DispatchConfig, FloatMode, Optimization, Route};
pub use deadline::Deadline;
pub use device_buffer::{DeviceBuffer, DeviceElement, DeviceMemory};
pub use error::{Error, Result};
pub use ext::BackendExt;
pub use handle::{Generation, HandleError, Pins, RawHandle, Residents};
pub use output::{DispatchOutput, DispatchReport, PipelineCacheSnapshot, Timing};
pub use pending::PendingDispatch;
pub use pipeline::{Pipeline, Work};
pub use pipelines::{CacheUse, PipelineCache};
pub use profile::{DeviceProfile, Feature, Features, Limits, Verdict};
pub use queue::Queue;
pub use reference::ReferenceBackend;
pub use registry::{Acquired, Optimizer, Registration, Requirements, acquire, acquire_preferred};
pub use resident::{ResidentRange, ResidentStep};
pub use stop::Stop;
pub use telemetry::{Counters, Telemetry, process_telemetry};
pub use unit::{Needs, Unit};
pub use vyre_reference::Trap;
