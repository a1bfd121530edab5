//! The contract between vyre programs and every device.
//!
//! [`VyreBackend`] is what a backend must do: ten methods over a few plain types. A [`Unit`] is a valid program, a
//! [`Batch`] a list of steps over memory, a [`CompiledPipeline`] what a launch runs.

mod backend;
mod batch;
mod binding;
pub mod cache;
mod config;
mod deadline;
mod error;
mod handle;
mod pipelines;
mod profile;
mod queue;
mod stop;
mod telemetry;
mod unit;

pub use backend::{CompiledPipeline, Health, Pending, VyreBackend};
pub use batch::{Action, Batch, Launch, Memory, Outcome, Predicate, Span, Step, Temporary};
pub use binding::BindingPlan;
pub use config::{CompileOptions, DispatchConfig, FloatMode, Route};
pub use deadline::Deadline;
pub use error::{Error, Result, Trap};
pub use handle::{Generation, HandleError, RawHandle, Residents};
pub use pipelines::{CacheUse, PipelineCache};
pub use profile::{DeviceProfile, Feature, Features, Limits};
pub use queue::Queue;
pub use stop::Stop;
pub use telemetry::{Counters, Telemetry, process_telemetry};
pub use unit::Unit;
