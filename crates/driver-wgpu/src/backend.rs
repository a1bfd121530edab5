//! The backend itself.

use crate::NAME;
use crate::device::{self, WgpuOptions};
use crate::emit::{Floats, Manner};
use crate::execute::execute;
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::pipeline::WgpuPipeline;
use crate::probe;
use crate::utility::Utilities;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;
use vyre_driver::cache::{CacheError, DiskCache};
use vyre_driver::{
    Batch, CompileOptions, CompiledPipeline, Deadline, DeviceProfile, FloatMode, Generation, Health, Outcome,
    Pending, Pins, PipelineCache, Queue, RawHandle, Residents, Result, Telemetry, Unit, VyreBackend,
};

/// The most that is kept on disk.
const DISK_LIMIT: u64 = 256 << 20;
/// The most code that is kept in memory.
const CODE_LIMIT: u64 = 64 << 20;

/// Runs programs on a device that wgpu reaches.
pub struct WgpuBackend {
    core: Arc<Core>,
    queue: Queue<(Batch<'static>, Pins<Memory>)>,
}

/// What batches in flight need too.
pub(crate) struct Core {
    instance: wgpu::Instance,
    options: WgpuOptions,
    /// The device in use.
    gpu: RwLock<Arc<Gpu>>,
    /// Held by the one who recovers.
    recovery: Mutex<()>,
    profile: DeviceProfile,
    /// What was found out about the device.
    manner: Manner,
    residents: Residents<Memory>,
    pipelines: PipelineCache,
    pub(crate) utilities: Utilities,
    pub(crate) telemetry: Telemetry,
}

vyre_driver::registry::submit! {
    vyre_driver::Registration {
        name: NAME,
        // Below the CPU: only the device itself tells whether it is a GPU or a driver that computes on the CPU, and a
        // rank is known before any device is opened.
        rank: 5,
        summary: "any GPU that Vulkan, Metal or DX12 reaches",
        start: || Ok(Arc::new(WgpuBackend::new()?)),
    }
}

impl Core {
    /// How the device is used for floats of a kind.
    pub(crate) fn manner(&self, mode: FloatMode) -> Manner {
        match mode {
            FloatMode::Exact => self.manner,
            FloatMode::Native => Manner { floats: Floats::NATIVE, ..self.manner },
        }
    }

    /// Holds the resident memory that a batch names.
    pub(crate) fn pin(&self, batch: &Batch<'_>) -> Result<Pins<Memory>> {
        self.residents.pin(batch)
    }

    pub(crate) fn gpu(&self) -> Arc<Gpu> {
        Arc::clone(&self.gpu.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Opens the folder in which it is kept what devices can do, and their code. Where there can be none, each process begins
/// anew.
fn open_disk(folder: &std::path::Path) -> Result<Option<DiskCache>> {
    match DiskCache::open(folder.to_owned(), DISK_LIMIT) {
        Ok(disk) => Ok(Some(disk.with_namespace(concat!("wgpu ", env!("CARGO_PKG_VERSION")).as_bytes()))),
        Err(error @ (CacheError::Create { .. } | CacheError::Examine { .. })) => {
            tracing::warn!(%error, "nothing is kept");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

impl WgpuBackend {
    /// A backend on the best device there is.
    pub fn new() -> Result<WgpuBackend> {
        WgpuBackend::with_options(WgpuOptions::default())
    }

    /// A backend with these options.
    pub fn with_options(options: WgpuOptions) -> Result<WgpuBackend> {
        let instance = device::instance();
        let disk = options.cache_folder.as_deref().map(open_disk).transpose()?.flatten().map(Arc::new);
        let gpu = device::open(&instance, &options, disk.as_ref())?;
        let mut core = Core {
            profile: device::profile(&gpu),
            manner: Manner::PLAIN,
            gpu: RwLock::new(Arc::new(gpu)),
            instance,
            options,
            recovery: Mutex::default(),
            residents: Residents::new(),
            pipelines: PipelineCache::new(CODE_LIMIT),
            utilities: Utilities::default(),
            telemetry: Telemetry::default(),
        };
        core.manner = probe::manner(&core)?;
        core.profile.verdicts = probe::verdicts(core.manner, core.gpu().info.backend);
        // What the trials did is nobody's business.
        core.telemetry = Telemetry::default();
        let core = Arc::new(core);
        let worker = Arc::clone(&core);
        let queue = Queue::new(NAME, move |(batch, pins): (Batch<'static>, Pins<Memory>), stop, deadline| {
            execute(&worker, &batch, &pins, stop, deadline)
        });
        Ok(WgpuBackend { core, queue })
    }

    #[cfg(test)]
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Loses the device on purpose, as a driver that crashes would: for tests of what happens then.
    pub fn destroy(&self) {
        self.core.gpu().destroy();
    }

    /// How many bytes of device memory wait to be used again.
    pub fn pooled_bytes(&self) -> u64 {
        self.core.gpu().pool.bytes()
    }
}

impl VyreBackend for WgpuBackend {
    fn profile(&self) -> &DeviceProfile {
        &self.core.profile
    }

    fn compile(&self, unit: &Unit, options: &CompileOptions) -> Result<Arc<dyn CompiledPipeline>> {
        self.queue.check_open()?;
        let core = &self.core;
        core.pipelines.get_or_compile(unit, options, &core.telemetry, || {
            let _span = tracing::debug_span!("compile", program = %unit.program().name()).entered();
            let start = Instant::now();
            let gpu = core.gpu();
            gpu.check()?;
            let pipeline = WgpuPipeline::compile(&gpu, unit, core.manner(options.float_mode))?;
            core.telemetry.compiles(1);
            core.telemetry.compile_nanos(start.elapsed().as_nanos() as u64);
            Ok(Arc::new(pipeline))
        })
    }

    fn allocate(&self, bytes: u64) -> Result<RawHandle> {
        self.queue.check_open()?;
        // Held until the handle is there: it then belongs to the generation of its device.
        let gpu = self.core.gpu.read().unwrap_or_else(PoisonError::into_inner);
        gpu.check()?;
        let memory = gpu.resident(bytes)?;
        self.core.telemetry.resident_allocated(bytes);
        Ok(self.core.residents.insert(bytes, memory))
    }

    fn free(&self, handle: RawHandle) -> Result<()> {
        // Held, so that a recovery does not count the bytes as its own.
        let _gpu = self.core.gpu.read().unwrap_or_else(PoisonError::into_inner);
        self.core.residents.remove(handle)?;
        self.core.telemetry.resident_freed(handle.bytes());
        Ok(())
    }

    fn submit(&self, batch: Batch<'static>) -> Result<Box<dyn Pending>> {
        let pins = self.core.residents.pin(&batch)?;
        let deadline = batch.deadline;
        self.queue.submit((batch, pins), deadline)
    }

    fn run(&self, batch: Batch<'_>, deadline: Deadline) -> Result<Outcome> {
        let pins = self.core.residents.pin(&batch)?;
        self.queue.run(deadline, |stop| execute(&self.core, &batch, &pins, stop, deadline))
    }

    fn telemetry(&self) -> &Telemetry {
        &self.core.telemetry
    }

    fn health(&self) -> Health {
        Health { lost: self.core.gpu().is_lost(), generation: self.core.residents.generation() }
    }

    fn recover(&self) -> Result<Generation> {
        let core = &self.core;
        let _only = core.recovery.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = core.gpu();
        let opened = Arc::new(device::reopen(&core.instance, &core.options, &lost)?);
        let mut gpu = core.gpu.write().unwrap_or_else(PoisonError::into_inner);
        core.telemetry.resident_freed(core.residents.bytes());
        let generation = core.residents.recover();
        let old = std::mem::replace(&mut *gpu, opened);
        drop(gpu);
        // Closing a device may take a while, and nobody else has to wait for it.
        drop(old);
        Ok(generation)
    }

    fn shutdown(&self, deadline: Deadline) -> Result<()> {
        self.queue.shutdown(deadline)
    }
}
