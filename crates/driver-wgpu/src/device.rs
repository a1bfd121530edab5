//! Which device: the adapters of this machine, the best one first, with why each other one was passed over.

use crate::NAME;
use crate::gpu::{self, Gpu};
use crate::timer;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_driver::cache::DiskCache;
use vyre_driver::{DeviceProfile, Error, Feature, Features, Limits, Result};
use wgpu::{AdapterInfo, DeviceType};

/// How a wgpu backend is set up. The default takes the best device there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WgpuOptions {
    /// A part of the name of the device, in any case.
    pub device: Option<String>,
    /// Where it is kept what devices can do; nowhere without one.
    pub cache_folder: Option<PathBuf>,
}

impl Default for WgpuOptions {
    fn default() -> WgpuOptions {
        WgpuOptions { device: None, cache_folder: DiskCache::default_folder() }
    }
}

/// The drivers of this machine. Validation is ours: programs are checked before they are compiled, and the arguments
/// of indirect dispatches are written by our own kernels.
pub(crate) fn instance() -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::PRIMARY;
    descriptor.flags = wgpu::InstanceFlags::DISCARD_HAL_LABELS;
    // Where the driver tells how much memory there is, running out of it is an error before it is a lost device.
    descriptor.memory_budget_thresholds.for_resource_creation = Some(95);
    wgpu::Instance::new(descriptor)
}

/// Opens the best device that the options allow.
pub(crate) fn open(
    instance: &wgpu::Instance,
    options: &WgpuOptions,
    disk: Option<&Arc<DiskCache>>,
) -> Result<Gpu> {
    let (device, queue, info) = find(instance, options, None)?;
    let mut gpu = Gpu::new(device, queue, info, next_id());
    gpu.disk = disk.cloned();
    Ok(gpu)
}

/// Opens the same device once more. Another one would have to be tried out first, and so would its programs.
pub(crate) fn reopen(instance: &wgpu::Instance, options: &WgpuOptions, lost: &Gpu) -> Result<Gpu> {
    let (device, queue, info) = find(instance, options, Some(&lost.name()))?;
    let mut gpu = Gpu::new(device, queue, info, lost.backend_id);
    gpu.disk.clone_from(&lost.disk);
    gpu.epoch = lost.epoch + 1;
    Ok(gpu)
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn find(
    instance: &wgpu::Instance,
    options: &WgpuOptions,
    only: Option<&str>,
) -> Result<(wgpu::Device, wgpu::Queue, AdapterInfo)> {
    let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
    adapters.sort_by_key(|adapter| rank(adapter.get_info().device_type));
    let mut reasons = Vec::new();
    for adapter in &adapters {
        let info = adapter.get_info();
        let is_other = only.is_some_and(|name| name != gpu::name(&info));
        let refused = match lacking(adapter, &info, options) {
            Some(reason) => reason,
            None if is_other => "it is not the device that was lost".to_owned(),
            None => match request(adapter) {
                Ok((device, queue)) => return Ok((device, queue, info)),
                Err(error) => error.to_string(),
            },
        };
        reasons.push(format!("`{}` ({}): {refused}", info.name, info.backend));
    }
    if reasons.is_empty() {
        reasons.push("this machine has no driver for Vulkan, Metal or DX12".to_owned());
    }
    Err(Error::NoBackend { reasons: reasons.join("; ") })
}

/// Real devices come first; a driver that computes on the CPU will do where there is no other.
fn rank(device: DeviceType) -> u32 {
    match device {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}

/// Why an adapter cannot be used, if so.
fn lacking(adapter: &wgpu::Adapter, info: &AdapterInfo, options: &WgpuOptions) -> Option<String> {
    if let Some(wanted) = &options.device
        && !info.name.to_lowercase().contains(&wanted.to_lowercase())
    {
        return Some(format!("its name does not contain `{wanted}`"));
    }
    if !adapter.features().contains(wgpu::Features::SHADER_INT64) {
        return Some("it has no 64-bit integers".to_owned());
    }
    let flags = adapter.get_downlevel_capabilities().flags;
    let needed = wgpu::DownlevelFlags::COMPUTE_SHADERS | wgpu::DownlevelFlags::INDIRECT_EXECUTION;
    (!flags.contains(needed)).then(|| "it has no compute shaders or no indirect dispatches".to_owned())
}

fn request(adapter: &wgpu::Adapter) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    let wanted = wgpu::Features::SHADER_INT64
        | wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS
        | wgpu::Features::PIPELINE_CACHE
        | timer::NEEDED;
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("vyre"),
        required_features: adapter.features() & wanted,
        required_limits: adapter.limits(),
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..Default::default()
    };
    pollster::block_on(adapter.request_device(&descriptor))
}

/// What users are told about a device.
pub(crate) fn profile(gpu: &Gpu) -> DeviceProfile {
    let AdapterInfo { name, driver, driver_info, backend, .. } = &gpu.info;
    let mut features: Features =
        [Feature::ExactFloats, Feature::NativeFloats, Feature::Resident, Feature::HostGridSync]
            .into_iter()
            .collect();
    if gpu.device.features().contains(wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS) {
        features = features.with(Feature::Atomics64);
    }
    if gpu.device.features().contains(timer::NEEDED) {
        features = features.with(Feature::Timestamps);
    }
    if gpu.keeps_code() {
        features = features.with(Feature::DiskCache);
    }
    let limits = &gpu.limits;
    // wgpu does not tell how many lanes a device has; those of a workgroup are what it surely runs at once.
    let parallelism = match gpu.info.device_type {
        DeviceType::Cpu => std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        _ => limits.max_compute_invocations_per_workgroup,
    };
    DeviceProfile {
        backend: NAME,
        device: name.clone(),
        version: format!("{} ({backend}, {driver} {driver_info})", env!("CARGO_PKG_VERSION")),
        features,
        limits: Limits {
            max_buffer_bytes: gpu.max_buffer_bytes(),
            max_workgroups: [u32::MAX; 3],
            max_workgroup_invocations: limits.max_compute_invocations_per_workgroup,
            max_workgroup_bytes: u64::from(limits.max_compute_workgroup_storage_size),
            memory_bytes: None,
            parallelism,
        },
        verdicts: Vec::new(),
    }
}
