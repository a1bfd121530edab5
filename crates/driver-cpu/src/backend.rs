//! The backend itself.

use crate::compile::{Compiler, Instructions, Listing, Simd};
use crate::memory::{Memory, Placement};
use crate::pipeline::{CpuPipeline, Stored};
use crate::pool::Pool;
use crate::timer::Timer;
use std::sync::Arc;
use std::time::Instant;
use vyre_driver::cache::{CacheError, DiskCache, Key};
use vyre_driver::{
    Batch, CompileOptions, CompiledPipeline, Deadline, DeviceProfile, Feature, Features, Generation, Health,
    Limits, Outcome, Pending, Pins, PipelineCache, Queue, RawHandle, Residents, Result, Telemetry, Unit,
    VyreBackend,
};

/// How a CPU backend is set up. The default uses all cores and the user's cache folder.
#[derive(Clone, Debug)]
pub struct CpuOptions {
    /// The most threads that work at once.
    pub threads: usize,
    /// Which instructions code may use.
    pub instructions: Instructions,
    /// Whether code computes several lanes at once.
    pub simd: Simd,
    /// Where memory comes from.
    pub placement: Placement,
    /// The folder of compiled programs; `None` keeps none on disk.
    pub cache_folder: Option<std::path::PathBuf>,
    /// A launch of fewer operations than about this many stays on the thread that asks for it: waking others would
    /// cost more, and so would meeting them at every grid barrier.
    pub share_from: u64,
}

impl Default for CpuOptions {
    fn default() -> CpuOptions {
        CpuOptions {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            instructions: Instructions::default(),
            simd: Simd::default(),
            placement: Placement::default(),
            cache_folder: DiskCache::default_folder(),
            share_from: 1 << 15,
        }
    }
}

impl CpuOptions {
    pub(crate) fn is_guarded(&self) -> bool {
        self.placement == Placement::Guarded
    }
}

/// The most code that is kept in memory.
const CODE_LIMIT: u64 = 64 << 20;

/// The most code that is kept on disk.
const DISK_LIMIT: u64 = 256 << 20;

/// Runs programs on the cores of this machine.
pub struct CpuBackend {
    core: Arc<Core>,
    queue: Queue<(Batch<'static>, Pins<Memory>)>,
}

/// What launches need, shared with the threads that run submitted batches.
pub(crate) struct Core {
    pub(crate) options: CpuOptions,
    pub(crate) residents: Residents<Memory>,
    pub(crate) pool: Pool,
    pub(crate) timer: Timer,
    pub(crate) telemetry: Arc<Telemetry>,
    compiler: Compiler,
    fingerprint: String,
    pipelines: PipelineCache,
    disk: Option<DiskCache>,
    profile: DeviceProfile,
}

impl CpuBackend {
    /// A backend with the default options.
    pub fn new() -> Result<CpuBackend> {
        CpuBackend::with_options(CpuOptions::default())
    }

    /// A backend with these options.
    pub fn with_options(options: CpuOptions) -> Result<CpuBackend> {
        let compiler = Compiler::new(options.instructions, options.simd)?;
        let fingerprint = compiler.fingerprint();
        let disk = options.cache_folder.as_deref().map(open_disk).transpose()?.flatten();
        let threads = options.threads.max(1);
        let options = CpuOptions { threads, ..options };
        let core = Arc::new(Core {
            residents: Residents::new(),
            pool: Pool::new(threads),
            timer: Timer::default(),
            telemetry: Arc::default(),
            profile: profile(&options, disk.is_some()),
            compiler,
            fingerprint,
            pipelines: PipelineCache::new(CODE_LIMIT),
            disk,
            options,
        });
        let executor = Arc::clone(&core);
        let queue =
            Queue::new(crate::NAME, move |(batch, pins): (Batch<'static>, Pins<Memory>), stop, deadline| {
                executor.execute(batch, &pins, stop, deadline)
            });
        Ok(CpuBackend { core, queue })
    }

    /// The code of a program, as text for people.
    pub fn listing(&self, unit: &Unit, listing: Listing) -> Result<String> {
        self.core.compiler.listing(unit.kernel(), listing)
    }
}

/// Opens the folder of compiled programs. Where there can be none, as on a read-only disk, programs are compiled by each
/// process; one that others may write to is refused.
fn open_disk(folder: &std::path::Path) -> Result<Option<DiskCache>> {
    match DiskCache::open(folder.to_owned(), DISK_LIMIT) {
        Ok(disk) => Ok(Some(disk)),
        Err(error @ (CacheError::Create { .. } | CacheError::Examine { .. })) => {
            tracing::warn!(%error, "compiled programs are not kept");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn profile(options: &CpuOptions, on_disk: bool) -> DeviceProfile {
    let features: Features = [
        Feature::ExactFloats,
        Feature::NativeFloats,
        Feature::Atomics64,
        Feature::Orderings,
        Feature::Traps,
        Feature::Interrupts,
        Feature::NativeGridSync,
        Feature::Resident,
        Feature::HostGridSync,
        Feature::HostMemory,
        Feature::Timestamps,
    ]
    .into_iter()
    .collect();
    DeviceProfile {
        backend: crate::NAME,
        device: format!("{} threads, {}", options.threads, std::env::consts::ARCH),
        version: format!("{} (cranelift {})", env!("CARGO_PKG_VERSION"), cranelift_codegen::VERSION),
        features: if on_disk { features.with(Feature::DiskCache) } else { features },
        limits: Limits {
            max_buffer_bytes: isize::MAX as u64,
            max_workgroups: [u32::MAX; 3],
            max_workgroup_invocations: vyre_foundation::validate::limits::WORKGROUP as u32,
            max_workgroup_bytes: i32::MAX as u64,
            memory_bytes: None,
            parallelism: options.threads as u32,
        },
        verdicts: Vec::new(),
    }
}

impl Core {
    fn compile(&self, unit: &Unit, options: &CompileOptions) -> Result<Arc<dyn CompiledPipeline>> {
        let span = tracing::debug_span!("compile", program = %unit.program().name());
        let _entered = span.enter();
        let key = self.disk.as_ref().map(|disk| {
            let mode = options.float_mode.to_string();
            (disk, Key::new(&[unit.hash().as_bytes(), mode.as_bytes(), self.fingerprint.as_bytes()]))
        });
        let found = key.as_ref().and_then(|(disk, key)| Stored::from_bytes(&disk.get(key)?));
        if key.is_some() {
            match &found {
                Some(_) => self.telemetry.disk_hits(1),
                None => self.telemetry.disk_misses(1),
            }
        }
        let stored = match found {
            Some(stored) => stored,
            None => {
                let stored = self.build(unit)?;
                if let Some((disk, key)) = &key {
                    disk.put(key, &stored.to_bytes());
                }
                stored
            }
        };
        let telemetry = Arc::clone(&self.telemetry);
        Ok(Arc::new(CpuPipeline::new(unit, stored, self.options.threads, telemetry)?))
    }

    fn build(&self, unit: &Unit) -> Result<Stored> {
        let start = Instant::now();
        let kernel = unit.kernel();
        let compiled = self.compiler.compile(kernel)?;
        self.telemetry.compiles(1);
        self.telemetry.compile_nanos(start.elapsed().as_nanos() as u64);
        Ok(Stored { compiled, tags: kernel.tags.clone() })
    }
}

impl VyreBackend for CpuBackend {
    fn profile(&self) -> &DeviceProfile {
        &self.core.profile
    }

    fn compile(&self, unit: &Unit, options: &CompileOptions) -> Result<Arc<dyn CompiledPipeline>> {
        self.queue.check_open()?;
        let core = &self.core;
        core.pipelines.get_or_compile(unit, options, &core.telemetry, || core.compile(unit, options))
    }

    fn allocate(&self, bytes: u64) -> Result<RawHandle> {
        self.queue.check_open()?;
        let memory = Memory::resident(bytes, self.core.options.placement)?;
        self.core.telemetry.resident_allocated(bytes);
        Ok(self.core.residents.insert(bytes, memory))
    }

    fn free(&self, handle: RawHandle) -> Result<()> {
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
        self.queue.run(deadline, |stop| self.core.execute(batch, &pins, stop, deadline))
    }

    fn telemetry(&self) -> &Telemetry {
        &self.core.telemetry
    }

    fn health(&self) -> Health {
        Health { lost: false, generation: self.core.residents.generation() }
    }

    fn recover(&self) -> Result<Generation> {
        let lost = self.core.residents.bytes();
        let generation = self.core.residents.recover();
        self.core.telemetry.resident_freed(lost);
        Ok(generation)
    }

    fn shutdown(&self, deadline: Deadline) -> Result<()> {
        self.queue.shutdown(deadline)
    }
}

vyre_driver::registry::submit! {
    vyre_driver::Registration {
        name: crate::NAME,
        rank: 10,
        summary: "all cores of this machine, with nothing installed",
        start: || Ok(Arc::new(CpuBackend::new()?)),
    }
}
