//! The ten methods.

use crate::device::{Block, Device, MEMORY};
use crate::execute::execute;
use std::sync::Arc;
use std::time::Instant;
use vyre_driver::{
    Batch, BindingPlan, CompileOptions, CompiledPipeline, Deadline, DeviceProfile, Error, Feature,
    Generation, Health, Limits, Outcome, Pending, Pins, PipelineCache, Queue, RawHandle, Registration,
    Residents, Result, Telemetry, Unit, VyreBackend,
};
use vyre_foundation::grid::Grid;
use vyre_reference::Prepared;

/// How many workgroups the device runs at once.
const CORES: u128 = 8;

/// The toy device as a backend.
pub struct ToyBackend {
    shared: Arc<Shared>,
    queue: Queue<(Batch<'static>, Pins<Block>)>,
}

/// What batches in flight need too.
pub(crate) struct Shared {
    profile: DeviceProfile,
    device: Arc<Device>,
    residents: Residents<Block>,
    pipelines: PipelineCache,
    pub(crate) telemetry: Telemetry,
}

vyre_driver::registry::submit! {
    Registration {
        name: "toy",
        rank: -100,
        summary: "a toy device, as an example",
        start: || Ok(Arc::new(ToyBackend::new())),
    }
}

impl Shared {
    pub(crate) fn allocate(&self, bytes: u64) -> Result<Block> {
        self.device.allocate(bytes).map_err(|available| Error::OutOfMemory {
            what: "a buffer".to_owned(),
            asked: bytes,
            available: Some(available),
        })
    }
}

impl Default for ToyBackend {
    fn default() -> ToyBackend {
        ToyBackend::new()
    }
}

impl ToyBackend {
    /// A new instance, with a device of its own.
    pub fn new() -> ToyBackend {
        let features = [
            Feature::ExactFloats,
            Feature::Traps,
            Feature::Interrupts,
            Feature::NativeGridSync,
            Feature::Resident,
        ];
        let profile = DeviceProfile {
            backend: "toy",
            device: "toy device".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features: features.into_iter().collect(),
            limits: Limits {
                max_buffer_bytes: MEMORY,
                max_workgroups: [u32::MAX; 3],
                max_workgroup_invocations: 1024,
                max_workgroup_bytes: 64 << 10,
                memory_bytes: Some(MEMORY),
                parallelism: 1,
            },
            verdicts: Vec::new(),
        };
        let shared = Arc::new(Shared {
            profile,
            device: Arc::default(),
            residents: Residents::new(),
            pipelines: PipelineCache::new(16 << 20),
            telemetry: Telemetry::default(),
        });
        let worker = Arc::clone(&shared);
        let queue = Queue::new("toy", move |(batch, pins), stop, deadline| {
            execute(&worker, batch, &pins, stop, deadline)
        });
        ToyBackend { shared, queue }
    }
}

impl VyreBackend for ToyBackend {
    fn profile(&self) -> &DeviceProfile {
        &self.shared.profile
    }

    fn compile(&self, unit: &Unit, options: &CompileOptions) -> Result<Arc<dyn CompiledPipeline>> {
        self.queue.check_open()?;
        let telemetry = &self.shared.telemetry;
        self.shared.pipelines.get_or_compile(unit, options, telemetry, || {
            let start = Instant::now();
            let pipeline = ToyPipeline::compile(unit)?;
            telemetry.compiles(1);
            telemetry.compile_nanos(start.elapsed().as_nanos() as u64);
            Ok(Arc::new(pipeline))
        })
    }

    fn allocate(&self, bytes: u64) -> Result<RawHandle> {
        self.queue.check_open()?;
        let block = self.shared.allocate(bytes)?;
        self.shared.telemetry.resident_allocated(bytes);
        Ok(self.shared.residents.insert(bytes, block))
    }

    fn free(&self, handle: RawHandle) -> Result<()> {
        self.shared.residents.remove(handle)?;
        self.shared.telemetry.resident_freed(handle.bytes());
        Ok(())
    }

    fn submit(&self, batch: Batch<'static>) -> Result<Box<dyn Pending>> {
        let pins = self.shared.residents.pin(&batch)?;
        let deadline = batch.deadline;
        self.queue.submit((batch, pins), deadline)
    }

    fn run(&self, batch: Batch<'_>, deadline: Deadline) -> Result<Outcome> {
        let pins = self.shared.residents.pin(&batch)?;
        self.queue.run(deadline, |stop| execute(&self.shared, batch, &pins, stop, deadline))
    }

    fn telemetry(&self) -> &Telemetry {
        &self.shared.telemetry
    }

    fn health(&self) -> Health {
        Health { lost: false, generation: self.shared.residents.generation() }
    }

    fn recover(&self) -> Result<Generation> {
        self.shared.telemetry.resident_freed(self.shared.residents.bytes());
        Ok(self.shared.residents.recover())
    }

    fn shutdown(&self, deadline: Deadline) -> Result<()> {
        self.queue.shutdown(deadline)
    }
}

/// "Machine code": what the processor of the device interprets.
pub(crate) struct ToyPipeline {
    pub(crate) plan: BindingPlan,
    pub(crate) code: Prepared,
    bytes: u64,
}

impl ToyPipeline {
    fn compile(unit: &Unit) -> Result<ToyPipeline> {
        let program = vyre_lower::raise(unit.kernel());
        let code = Prepared::new(&program).map_err(|error| Error::Internal(error.to_string()))?;
        let bytes = 1024 + 64 * program.stats().expressions;
        Ok(ToyPipeline { plan: BindingPlan::of(unit.program()), code, bytes })
    }
}

impl CompiledPipeline for ToyPipeline {
    fn plan(&self) -> &BindingPlan {
        &self.plan
    }

    fn hidden_bytes(&self, _grid: Grid) -> u64 {
        0
    }

    fn fits_natively(&self, grid: Grid) -> bool {
        grid.workgroup_count() <= CORES
    }

    fn code_bytes(&self) -> u64 {
        self.bytes
    }
}
