//! wgpu, for example on a software Vulkan driver, with shaders written by hand.
//!
//! The driver decides how many threads it uses; `main` asks Mesa's software driver for as many as the others get.

use crate::cases::Case;
use crate::contender::{Contender, Platform};
use crate::data;
use anyhow::{Context as _, Result, anyhow, ensure};
use std::time::{Duration, Instant};

/// The most workgroups on one axis. Shaders add up both axes.
const AXIS: usize = 65535;

/// A wgpu device.
#[derive(Clone)]
pub(crate) struct Wgpu {
    about: String,
    threads: usize,
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    /// Whether wgpu adds its own checks of indices and loops to shaders, as it does unless told otherwise.
    is_checked: bool,
    /// The name of the device.
    pub(super) adapter: String,
}

impl Wgpu {
    /// A software device where there is one, because the others run on the CPU; any device otherwise.
    pub(crate) fn new(threads: usize) -> Result<Wgpu> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        let is_software = |adapter: &wgpu::Adapter| adapter.get_info().device_type == wgpu::DeviceType::Cpu;
        let adapter = adapters
            .iter()
            .find(|adapter| is_software(adapter))
            .or(adapters.first())
            .context("no adapter")?;
        // 64-bit integers are needed by some kernels; without them these fail alone.
        let descriptor = wgpu::DeviceDescriptor {
            required_features: adapter.features() & wgpu::Features::SHADER_INT64,
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
        let info = adapter.get_info();
        let about = format!("wgpu, {:?}, {}, {} {}", info.backend, info.name, info.driver, info.driver_info);
        Ok(Wgpu { about, threads, device, queue, is_checked: true, adapter: info.name })
    }

    /// The same device, with no more checks in shaders than are written there.
    pub(super) fn unchecked(&self) -> Wgpu {
        Wgpu { is_checked: false, about: format!("{}, unchecked", self.about), ..self.clone() }
    }

    /// The largest buffer that a shader can reach.
    pub(super) fn largest_buffer(&self) -> u64 {
        let limits = self.device.limits();
        limits.max_storage_buffer_binding_size.min(limits.max_buffer_size)
    }

    pub(super) fn wait(&self) -> Result<()> {
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(())
    }

    /// Compiles a shader, with what is wrong with it as an error.
    pub(super) fn pipeline(&self, shader: &str) -> Result<wgpu::ComputePipeline> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let source = wgpu::ShaderSource::Wgsl(shader.into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: None, source };
        let module = if self.is_checked {
            self.device.create_shader_module(descriptor)
        } else {
            let checks = wgpu::ShaderRuntimeChecks::unchecked();
            // SAFETY: the shaders are those of this crate; with the buffers of their cases they stay inside them, and
            // their loops end.
            unsafe { self.device.create_shader_module_trusted(descriptor, checks) }
        };
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        match pollster::block_on(scope.pop()) {
            None => Ok(pipeline),
            Some(error) => Err(anyhow!("the shader is refused: {error}")),
        }
    }

    pub(super) fn buffer(&self, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    }

    /// A bind group of whole buffers.
    pub(super) fn bind(
        &self,
        pipeline: &wgpu::ComputePipeline,
        buffers: &[&wgpu::Buffer],
    ) -> wgpu::BindGroup {
        let resources = buffers.iter().map(|buffer| buffer.as_entire_binding());
        let entries: Vec<_> = (0..)
            .zip(resources)
            .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
            .collect();
        let layout = &pipeline.get_bind_group_layout(0);
        self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries })
    }

    /// The bytes of a buffer.
    pub(super) fn read(&self, buffer: &wgpu::Buffer) -> Result<Vec<u8>> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = self.buffer(buffer.size(), usage);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
        self.queue.submit([encoder.finish()]);
        // Whether it could be mapped shows when the range is asked for.
        staging.map_async(wgpu::MapMode::Read, .., |_| {});
        self.wait()?;
        Ok(staging.get_mapped_range(..)?.to_vec())
    }
}

/// How buffers are used.
pub(super) const USAGE: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_DST).union(wgpu::BufferUsages::COPY_SRC);

impl Platform for Wgpu {
    fn name(&self) -> &'static str {
        if self.is_checked { "wgpu" } else { "unchecked" }
    }

    fn about(&self) -> String {
        self.about.clone()
    }

    fn threads(&self) -> Vec<usize> {
        vec![self.threads]
    }

    fn prepare<'a>(&'a self, case: &'a Case) -> Result<Box<dyn Contender + 'a>> {
        let limit = self.largest_buffer();
        for buffer in &case.buffers {
            let bytes = buffer.initial.bytes().len() as u64;
            ensure!(bytes <= limit, "a buffer has {bytes} bytes where the device allows {limit}");
        }
        let pipeline = self.pipeline(case.text.others()?.wgsl)?;
        let size = |buffer: &data::Buffer| buffer.initial.bytes().len() as u64;
        let buffers: Vec<_> = case.buffers.iter().map(|buffer| self.buffer(size(buffer), USAGE)).collect();
        let bindings = self.bind(&pipeline, &buffers.iter().collect::<Vec<_>>());
        let prepared = Prepared { wgpu: self, case, pipeline, bindings, buffers };
        prepared.write(|_| true)?;
        Ok(Box::new(prepared))
    }
}

struct Prepared<'a> {
    wgpu: &'a Wgpu,
    case: &'a Case,
    pipeline: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
    buffers: Vec<wgpu::Buffer>,
}

impl Prepared<'_> {
    fn write(&self, which: impl Fn(&data::Buffer) -> bool) -> Result<()> {
        let buffers = self.buffers.iter().zip(&self.case.buffers);
        for (device, buffer) in buffers.filter(|(_, buffer)| which(buffer)) {
            self.wgpu.queue.write_buffer(device, 0, buffer.initial.bytes());
        }
        self.wgpu.queue.submit([]);
        self.wgpu.wait()
    }
}

impl Contender for Prepared<'_> {
    fn reset(&mut self) -> Result<()> {
        self.write(data::Buffer::is_result)
    }

    fn run(&mut self, _threads: usize) -> Result<Duration> {
        let [x, y] = self.case.workgroups;
        // Shaders of one axis: as few rows as there can be; the last one may be longer than needed, which they guard
        // against.
        let rows = if y > 1 { y } else { x.div_ceil(AXIS) };
        let columns = if y > 1 { x } else { x.div_ceil(rows) };
        let start = Instant::now();
        let mut encoder = self.wgpu.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.bindings, &[]);
            pass.dispatch_workgroups(columns as u32, rows as u32, 1);
        }
        self.wgpu.queue.submit([encoder.finish()]);
        self.wgpu.wait()?;
        Ok(start.elapsed())
    }

    fn results(&mut self) -> Result<Vec<Vec<u8>>> {
        let results = self.buffers.iter().zip(&self.case.buffers).filter(|(_, buffer)| buffer.is_result());
        results.map(|(device, _)| self.wgpu.read(device)).collect()
    }
}
