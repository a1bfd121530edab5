//! The reference interpreter as a backend: slow, and right by definition.
//!
//! It compiles no code: a pipeline holds its program. Memory is bytes of the host, so launches work on copies of
//! what they bind and write back what they may have stored. Every grid fits one launch.

use crate::backend::{CompiledPipeline, Health, Pending, VyreBackend};
use crate::batch::{Action, Batch, Launch, Memory, Outcome, Predicate, Span, Temporary};
use crate::binding::BindingPlan;
use crate::bytes::{copied, zeros};
use crate::config::{CompileOptions, FloatMode};
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::handle::{Generation, Pins, RawHandle, Residents};
use crate::pipelines::PipelineCache;
use crate::profile::{DeviceProfile, Feature, Limits};
use crate::queue::Queue;
use crate::registry::Registration;
use crate::stop::Stop;
use crate::telemetry::Telemetry;
use crate::unit::Unit;
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use vyre_foundation::grid::Grid;
use vyre_reference::{Prepared, Schedule};

/// The name under which it is registered.
pub(crate) const NAME: &str = "reference";
/// How much memory prepared programs may take, roughly.
const CACHE_BYTES: u64 = 64 << 20;

/// The reference interpreter as a backend.
///
/// ```
/// use vyre_driver::{ReferenceBackend, VyreBackend};
/// assert_eq!(ReferenceBackend::new().profile().backend, "reference");
/// ```
pub struct ReferenceBackend {
    inner: Arc<Inner>,
    queue: Queue<(Batch<'static>, Pins<Bytes>)>,
}

/// Resident memory.
type Bytes = Mutex<Vec<u8>>;

struct Inner {
    profile: DeviceProfile,
    residents: Residents<Bytes>,
    pipelines: PipelineCache,
    telemetry: Telemetry,
}

impl Default for ReferenceBackend {
    fn default() -> ReferenceBackend {
        ReferenceBackend::new()
    }
}

impl ReferenceBackend {
    /// A new instance.
    pub fn new() -> ReferenceBackend {
        let features = [
            Feature::ExactFloats,
            Feature::Atomics64,
            Feature::Orderings,
            Feature::Traps,
            Feature::Interrupts,
            Feature::NativeGridSync,
            Feature::Resident,
            Feature::HostGridSync,
            Feature::HostMemory,
        ];
        let profile = DeviceProfile {
            backend: NAME,
            device: "interpreter".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features: features.into_iter().collect(),
            limits: Limits {
                max_buffer_bytes: isize::MAX as u64,
                max_workgroups: [u32::MAX; 3],
                max_workgroup_invocations: u32::MAX,
                max_workgroup_bytes: u64::from(u32::MAX),
                memory_bytes: None,
                parallelism: 1,
            },
            verdicts: Vec::new(),
        };
        let inner = Arc::new(Inner {
            profile,
            residents: Residents::new(),
            pipelines: PipelineCache::new(CACHE_BYTES),
            telemetry: Telemetry::default(),
        });
        let worker = Arc::clone(&inner);
        let queue = Queue::new(NAME, move |(batch, pins), stop, deadline| {
            worker.execute(batch, pins, stop, deadline)
        });
        ReferenceBackend { inner, queue }
    }
}

impl VyreBackend for ReferenceBackend {
    fn profile(&self) -> &DeviceProfile {
        &self.inner.profile
    }

    fn compile(&self, unit: &Unit, options: &CompileOptions) -> Result<Arc<dyn CompiledPipeline>> {
        self.queue.check_open()?;
        if options.float_mode == FloatMode::Native {
            return Err(self.inner.profile.unsupported("native float mode", Feature::NativeFloats));
        }
        let telemetry = &self.inner.telemetry;
        self.inner.pipelines.get_or_compile(unit, options, telemetry, || {
            let start = Instant::now();
            let pipeline = Pipeline::new(unit)?;
            telemetry.compiles(1);
            telemetry.compile_nanos(start.elapsed().as_nanos() as u64);
            Ok(Arc::new(pipeline) as Arc<dyn CompiledPipeline>)
        })
    }

    fn allocate(&self, bytes: u64) -> Result<RawHandle> {
        self.queue.check_open()?;
        let memory = zeros(bytes, "a resident buffer")?;
        self.inner.telemetry.resident_allocated(bytes);
        Ok(self.inner.residents.insert(bytes, Mutex::new(memory)))
    }

    fn free(&self, handle: RawHandle) -> Result<()> {
        self.inner.residents.remove(handle)?;
        self.inner.telemetry.resident_freed(handle.bytes());
        Ok(())
    }

    fn submit(&self, batch: Batch<'static>) -> Result<Box<dyn Pending>> {
        let pins = self.inner.residents.pin(&batch)?;
        let deadline = batch.deadline;
        self.queue.submit((batch, pins), deadline)
    }

    fn run(&self, batch: Batch<'_>, deadline: Deadline) -> Result<Outcome> {
        let pins = self.inner.residents.pin(&batch)?;
        self.queue.run(deadline, |stop| self.inner.execute(batch, pins, stop, deadline))
    }

    fn telemetry(&self) -> &Telemetry {
        &self.inner.telemetry
    }

    fn health(&self) -> Health {
        Health { lost: false, generation: self.inner.residents.generation() }
    }

    fn recover(&self) -> Result<Generation> {
        self.inner.telemetry.resident_freed(self.inner.residents.bytes());
        Ok(self.inner.residents.recover())
    }

    fn shutdown(&self, deadline: Deadline) -> Result<()> {
        self.queue.shutdown(deadline)
    }
}

inventory::submit! {
    Registration {
        name: NAME,
        rank: i32::MIN,
        summary: "the interpreter that defines what programs mean",
        start: || Ok(Arc::new(ReferenceBackend::new())),
    }
}

/// A program for the interpreter.
struct Pipeline {
    plan: BindingPlan,
    prepared: Prepared,
    bytes: u64,
}

impl Pipeline {
    fn new(unit: &Unit) -> Result<Pipeline> {
        // Not everything that a kernel can do is a program that one may write: it can nest deeper.
        let prepared = Prepared::new(unit.code()).or_else(|_| Prepared::new(unit.program()));
        let prepared = prepared.map_err(|error| Error::Internal(error.to_string()))?;
        let bytes = 1024 + 64 * prepared.program().stats().expressions;
        Ok(Pipeline { plan: BindingPlan::of(unit.program()), prepared, bytes })
    }
}

impl CompiledPipeline for Pipeline {
    fn plan(&self) -> &BindingPlan {
        &self.plan
    }

    fn hidden_bytes(&self, _grid: Grid) -> u64 {
        0
    }

    fn fits_natively(&self, _grid: Grid) -> bool {
        true
    }

    fn code_bytes(&self) -> u64 {
        self.bytes
    }
}

/// The memory that a batch works on.
struct Work<'a> {
    temporaries: Vec<Cow<'a, [u8]>>,
    pins: Pins<Bytes>,
}

impl<'a> Work<'a> {
    fn new(temporaries: Vec<Temporary<'a>>, pins: Pins<Bytes>) -> Result<Work<'a>> {
        let place = |temporary| {
            Ok(match temporary {
                Temporary::Zeroed { bytes } => Cow::Owned(zeros(bytes, "a buffer of the dispatch")?),
                Temporary::Borrowed(bytes) | Temporary::Initial(bytes @ Cow::Owned(_)) => bytes,
                Temporary::Initial(Cow::Borrowed(bytes)) => {
                    Cow::Owned(copied(bytes, "a buffer of the dispatch")?)
                }
            })
        };
        Ok(Work { temporaries: temporaries.into_iter().map(place).collect::<Result<_>>()?, pins })
    }

    /// Looks at a range.
    fn with<R>(&self, span: Span, look: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let range = span.offset as usize..(span.offset + span.bytes) as usize;
        Ok(match span.memory {
            Memory::Temporary(number) => look(&self.temporaries[number][range]),
            Memory::Resident(handle) => {
                let memory = self.pins.get(handle)?.lock().unwrap_or_else(PoisonError::into_inner);
                look(&memory[range])
            }
        })
    }

    /// Changes a range.
    fn change<R>(&mut self, span: Span, change: impl FnOnce(&mut [u8]) -> R) -> Result<R> {
        let range = span.offset as usize..(span.offset + span.bytes) as usize;
        Ok(match span.memory {
            // Nothing borrowed is written, so this copies nothing.
            Memory::Temporary(number) => change(&mut self.temporaries[number].to_mut()[range]),
            Memory::Resident(handle) => {
                let mut memory = self.pins.get(handle)?.lock().unwrap_or_else(PoisonError::into_inner);
                change(&mut memory[range])
            }
        })
    }

    fn copy(&self, span: Span) -> Result<Vec<u8>> {
        self.with(span, |bytes| copied(bytes, "a copy of a buffer"))?
    }

    fn holds(&self, when: Predicate) -> Result<bool> {
        let set = self.with(when.word, |bytes| bytes.iter().any(|byte| *byte != 0))?;
        Ok(set == when.holds)
    }
}

impl Inner {
    /// Executes a batch that has been checked.
    fn execute(
        &self,
        batch: Batch<'_>,
        pins: Pins<Bytes>,
        stop: &Stop,
        deadline: Deadline,
    ) -> Result<Outcome> {
        let mut work = tracing::debug_span!("upload").in_scope(|| Work::new(batch.temporaries, pins))?;
        let mut outcome = Outcome::default();
        for (number, step) in batch.steps.into_iter().enumerate() {
            stop.check(deadline)?;
            let runs = step.when.map_or(Ok(true), |when| work.holds(when))?;
            match step.action {
                Action::Read { .. } if !runs => outcome.reads.push(None),
                _ if !runs => {}
                Action::Fill { target, byte } => work.change(target, |bytes| bytes.fill(byte))?,
                Action::Write { target, bytes } => {
                    self.telemetry.bytes_uploaded(target.bytes);
                    work.change(target, |place| place.copy_from_slice(&bytes))?;
                }
                Action::Copy { from, to } => {
                    let bytes = work.copy(from)?;
                    work.change(to, |place| place.copy_from_slice(&bytes))?;
                }
                Action::Compare { a, b, differs } => {
                    let bytes = work.copy(a)?;
                    if work.with(b, |other| *other != *bytes)? {
                        work.change(differs, |word| word.copy_from_slice(&1u32.to_le_bytes()))?;
                    }
                }
                Action::Read { from } => {
                    self.telemetry.bytes_downloaded(from.bytes);
                    outcome.reads.push(Some(work.copy(from)?));
                }
                Action::Launch(launch) => {
                    let launched = self.launch(&mut work, &launch, stop, deadline);
                    launched.map_err(|error| error.at_step(number))?;
                }
            }
        }
        Ok(outcome)
    }

    fn launch(&self, work: &mut Work<'_>, launch: &Launch, stop: &Stop, deadline: Deadline) -> Result<()> {
        let pipeline: &dyn Any = &*launch.pipeline;
        let pipeline = pipeline.downcast_ref::<Pipeline>().ok_or_else(|| Error::foreign_pipeline(NAME))?;
        self.telemetry.launches(1);
        let copies = launch.bindings.iter().map(|span| work.copy(*span));
        let mut memory: Vec<Vec<u8>> = copies.collect::<Result<_>>()?;
        let stopped = || stop.check(deadline).is_err();
        let result = pipeline.prepared.launch(&mut memory, launch.grid, Schedule::InOrder, &stopped);
        result.map_err(|error| match error {
            vyre_reference::Error::Trap(trap) => Error::Trap(trap),
            vyre_reference::Error::OutOfMemory { what, bytes } => {
                Error::OutOfMemory { what, asked: bytes, available: None }
            }
            vyre_reference::Error::Timeout => stop.check(deadline).err().unwrap_or(Error::Cancelled),
            other => Error::Internal(other.to_string()),
        })?;
        for ((slot, span), bytes) in pipeline.plan.slots().iter().zip(&launch.bindings).zip(memory) {
            if slot.access().allows_store() {
                work.change(*span, |place| place.copy_from_slice(&bytes))?;
            }
        }
        Ok(())
    }
}
