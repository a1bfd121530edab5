//! A compiled program: its kernel, and a shader for each way in which its slots have been bound.

use crate::NAME;
use crate::emit::{self, ENTRY, Floats, Form, Manner, exchange_bytes, is_watched, parameter_words};
use crate::gpu::{Gpu, lock};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vyre_driver::cache::Key;
use vyre_driver::{BindingPlan, CompiledPipeline, Error, Result, Unit};
use vyre_foundation::grid::Grid;
use vyre_foundation::{BufferAccess, BufferDecl};
use vyre_lower::{Kernel, legalize, lower};
use wgpu::{BindingType, BufferBindingType, ShaderStages};

/// naga and drivers walk nested blocks by recursion: what they need at most, and how much is mapped where less is left.
pub(crate) const STACK: (usize, usize) = (24 << 20, 64 << 20);

/// How many shaders of a program are kept. Most have one.
const MOST_VARIANTS: usize = 8;
/// The most rows and items of a kernel: a driver takes minutes for that many.
const MOST_ROWS: usize = 1 << 21;
/// The most bytes of arrays that an invocation has for itself: drivers keep them on stacks.
const MOST_LOCAL: u64 = 64 << 10;

/// A program compiled for a device.
pub(crate) struct WgpuPipeline {
    unit: Unit,
    /// The backend that it was compiled by.
    pub(crate) backend_id: u64,
    /// The kernel with operations that the device does, where the unit's own has others.
    legal: Option<Kernel>,
    manner: Manner,
    fits_natively: bool,
    code_bytes: u64,
    variants: Mutex<Variants>,
}

/// The shaders of one device. They are made again when the device is another one.
#[derive(Default)]
struct Variants {
    epoch: u64,
    made: FxHashMap<Form, Arc<Variant>>,
}

/// A shader that can be launched.
pub(crate) struct Variant {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
    /// Whether it has one more binding, for the word that says that a loop was cut off.
    pub(crate) is_watched: bool,
    /// A number that no other one has.
    pub(crate) id: u64,
    code_bytes: u64,
}

/// Code that outlives the process.
struct Kept {
    key: Key,
    cache: wgpu::PipelineCache,
    /// What was there.
    found: Option<Vec<u8>>,
}

impl Kept {
    /// Keeps what the driver gives back, unless it was there.
    fn keep(self, gpu: &Gpu) {
        let given = self.cache.get_data().filter(|data| self.found.as_ref() != Some(data));
        if let (Some(data), Some(disk)) = (given, &gpu.disk) {
            disk.put(&self.key, &data);
        }
    }
}

impl WgpuPipeline {
    /// Compiles a program in the form that most launches use.
    pub(crate) fn compile(gpu: &Gpu, unit: &Unit, manner: Manner) -> Result<WgpuPipeline> {
        check_workgroup(gpu, unit)?;
        let legal = legal_kernel(unit, manner.floats);
        check_kernel(gpu, legal.as_ref().unwrap_or_else(|| unit.kernel()))?;
        let mut pipeline = WgpuPipeline {
            unit: unit.clone(),
            backend_id: gpu.backend_id,
            legal,
            manner,
            fits_natively: !unit.needs().grid_sync,
            code_bytes: 0,
            variants: Mutex::default(),
        };
        let slots = unit.bindings().slots().len();
        pipeline.code_bytes = pipeline.variant(gpu, vec![1; slots], vec![false; slots])?.code_bytes;
        Ok(pipeline)
    }

    /// The shader for slots with so many bindings each, some of which begin behind the beginning of what is bound;
    /// compiled now if it was not before.
    pub(crate) fn variant(&self, gpu: &Gpu, windows: Vec<u32>, shifted: Vec<bool>) -> Result<Arc<Variant>> {
        let window_bits = gpu.limits.max_storage_buffer_binding_size.ilog2();
        let form = Form { windows, shifted, window_bits, manner: self.manner };
        // Held while it is compiled: others that want the same shader would only compile it too.
        let mut variants = lock(&self.variants);
        if variants.epoch != gpu.epoch {
            *variants = Variants { epoch: gpu.epoch, made: FxHashMap::default() };
        }
        if let Some(made) = variants.made.get(&form) {
            return Ok(Arc::clone(made));
        }
        if variants.made.len() >= MOST_VARIANTS {
            variants.made.clear();
        }
        let made = Arc::new(stacker::maybe_grow(STACK.0, STACK.1, || self.build(gpu, &form))?);
        variants.made.insert(form, Arc::clone(&made));
        Ok(made)
    }

    fn build(&self, gpu: &Gpu, form: &Form) -> Result<Variant> {
        // One more for the word of a watched kernel.
        let bindings: u64 = 1 + form.windows.iter().map(|windows| u64::from(*windows)).sum::<u64>();
        let most = gpu.limits.max_storage_buffers_per_shader_stage;
        if bindings > u64::from(most) {
            return Err(Error::Unsupported {
                feature: format!("a program that binds {bindings} ranges of memory"),
                backend: NAME,
                help: format!("this device takes {most}: use fewer buffers, or shorter ones"),
            });
        }
        let kernel = self.legal.as_ref().unwrap_or_else(|| self.unit.kernel());
        let is_watched = is_watched(kernel, form.manner.quirks);
        let module = emit::emit(kernel, form)?;
        let code_bytes = estimate(&module);
        gpu.guarded("a compiled program", code_bytes, || {
            let layout = self.layout(gpu, form, is_watched);
            let kept = self.kept(gpu, form);
            let cache = kept.as_ref().map(|kept| &kept.cache);
            let pipeline = build_pipeline(gpu, module, &layout, cache);
            kept.into_iter().for_each(|kept| kept.keep(gpu));
            Ok(Variant { pipeline, layout, is_watched, id: next_id(), code_bytes })
        })
    }

    /// The code of an earlier process, where the driver gives it back and there is a place for it.
    fn kept(&self, gpu: &Gpu, form: &Form) -> Option<Kept> {
        let disk = gpu.disk.as_ref().filter(|_| gpu.keeps_code())?;
        let form = format!("{form:?}");
        let key = Key::new(&[b"shader", self.unit.hash().as_bytes(), form.as_bytes(), gpu.name().as_bytes()]);
        let found = disk.get(&key);
        let descriptor =
            wgpu::PipelineCacheDescriptor { label: None, data: found.as_deref(), fallback: true };
        // SAFETY: what the folder holds under this key was given by the same driver: the folder is the user's own, and
        // an entry is believed only if it is whole.
        let cache = unsafe { gpu.device.create_pipeline_cache(&descriptor) };
        Some(Kept { key, cache, found })
    }

    /// Binding 0 is the parameters; then the windows of each slot, and the word of a watched kernel.
    fn layout(&self, gpu: &Gpu, form: &Form, is_watched: bool) -> wgpu::BindGroupLayout {
        let slots = self.unit.bindings().slots();
        let parameters = std::num::NonZeroU64::new(parameter_words(slots.len()) as u64 * 4);
        let mut types = vec![(BufferBindingType::Uniform, true, parameters)];
        for (slot, windows) in slots.iter().zip(&form.windows) {
            let read_only = !slot.access().allows_store();
            types.extend((0..*windows).map(|_| (BufferBindingType::Storage { read_only }, false, None)));
        }
        if is_watched {
            types.push((BufferBindingType::Storage { read_only: false }, false, None));
        }
        let entry = |(binding, (ty, has_dynamic_offset, min_binding_size))| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: ShaderStages::COMPUTE,
            ty: BindingType::Buffer { ty, has_dynamic_offset, min_binding_size },
            count: None,
        };
        let entries: Vec<_> = (0..).zip(types).map(entry).collect();
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
        gpu.device.create_bind_group_layout(&descriptor)
    }
}

/// The kernel of a program in which only those float operations are left that the device does; none where the unit's
/// own kernel is that.
pub(crate) fn legal_kernel(unit: &Unit, floats: Floats) -> Option<Kernel> {
    unit.needs().floats.then(|| lower(&legalize(unit.code(), &floats.legal)))
}

fn build_pipeline(
    gpu: &Gpu,
    module: naga::Module,
    layout: &wgpu::BindGroupLayout,
    cache: Option<&wgpu::PipelineCache>,
) -> wgpu::ComputePipeline {
    let source = wgpu::ShaderSource::Naga(Cow::Owned(module));
    let descriptor = wgpu::ShaderModuleDescriptor { label: None, source };
    // SAFETY: the emitter checks every index against the length of its slot, guards every division, and its loops
    // count to a bound.
    let module = unsafe {
        gpu.device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
    };
    let of_pipeline = wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(layout)],
        immediate_size: 0,
    };
    let of_pipeline = gpu.device.create_pipeline_layout(&of_pipeline);
    gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&of_pipeline),
        module: &module,
        entry_point: Some(ENTRY),
        compilation_options: wgpu::PipelineCompilationOptions {
            zero_initialize_workgroup_memory: true,
            ..Default::default()
        },
        cache,
    })
}

/// About how large the code of a module is. Drivers do not tell.
fn estimate(module: &naga::Module) -> u64 {
    let functions = module.functions.iter().map(|(_, function)| function);
    let functions = functions.chain(module.entry_points.iter().map(|entry| &entry.function));
    let expressions: usize = functions.map(|function| function.expressions.len()).sum();
    (256 << 10) + 512 * expressions as u64
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Refuses a workgroup that the device cannot run.
fn check_workgroup(gpu: &Gpu, unit: &Unit) -> Result<()> {
    let size = unit.program().workgroup_size().size();
    let limits = &gpu.limits;
    let most = [
        limits.max_compute_workgroup_size_x,
        limits.max_compute_workgroup_size_y,
        limits.max_compute_workgroup_size_z,
    ];
    let refuse = |feature: String, help: String| Err(Error::Unsupported { feature, backend: NAME, help });
    if size.iter().zip(most).any(|(asked, most)| *asked > most) {
        let help = format!("this device takes at most {most:?} on the three axes");
        return refuse(format!("a workgroup of {size:?} invocations"), help);
    }
    let invocations: u64 = size.iter().map(|n| u64::from(*n)).product();
    let most = limits.max_compute_invocations_per_workgroup;
    if invocations > u64::from(most) {
        return refuse(format!("a workgroup of {invocations} invocations"), format!("use at most {most}"));
    }
    Ok(())
}

/// Refuses what a driver would not survive or not tell.
fn check_kernel(gpu: &Gpu, kernel: &Kernel) -> Result<()> {
    let refuse = |feature: String, help: String| Err(Error::Unsupported { feature, backend: NAME, help });
    let rows = kernel.values.len() + kernel.items.len();
    if rows > MOST_ROWS {
        let feature = format!("a program of {rows} operations");
        return refuse(
            feature,
            format!("shaders have at most {MOST_ROWS}: make several of it, or use `cpu`"),
        );
    }
    // Narrow elements of an invocation have a word each, those of a workgroup share words.
    let bytes = |access: BufferAccess, narrowest: u64| {
        let ours = kernel.buffers.iter().filter(move |buffer| buffer.access() == access);
        let size = move |buffer: &BufferDecl| {
            let size = (buffer.element().size() as u64).max(narrowest);
            (u64::from(buffer.count().unwrap_or(0)) * size).next_multiple_of(4)
        };
        ours.map(size).sum::<u64>()
    };
    let local = bytes(BufferAccess::Local, 4);
    if local > MOST_LOCAL {
        let help = format!("use at most {MOST_LOCAL}, or scratch memory");
        return refuse(format!("{local} bytes of local arrays in an invocation"), help);
    }
    let workgroup = bytes(BufferAccess::Workgroup, 1) + exchange_bytes(kernel);
    let most = u64::from(gpu.limits.max_compute_workgroup_storage_size);
    if workgroup > most {
        let help = format!("use at most {most}; subgroup operations take some of it for each lane");
        return refuse(format!("workgroup memory of {workgroup} bytes"), help);
    }
    Ok(())
}

impl CompiledPipeline for WgpuPipeline {
    fn plan(&self) -> &BindingPlan {
        self.unit.bindings()
    }

    fn hidden_bytes(&self, _grid: Grid) -> u64 {
        0
    }

    fn fits_natively(&self, _grid: Grid) -> bool {
        self.fits_natively
    }

    fn code_bytes(&self) -> u64 {
        self.code_bytes
    }
}
