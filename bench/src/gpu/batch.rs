//! Many small steps in one batch, each of which reads what the one before wrote: what recording and ordering cost.

use super::hand::{USAGE, Wgpu};
use crate::cases::Work;
use crate::contender::Contender;
use crate::measure::{Entrant, Repeat, Row, compete};
use crate::report::gpu::EXACT;
use anyhow::{Context as _, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vyre_driver::{
    Action, BackendExt, Batch, Deadline, DispatchConfig, Launch, Pipeline, RawHandle, ResidentStep, Span,
    VyreBackend,
};
use vyre_driver_wgpu::WgpuBackend;
use vyre_foundation::grid::{self, Grid};
use vyre_foundation::{Layout, Program};

/// An even number: the results end up where the inputs were.
const STEPS: usize = 1000;
const ELEMENTS: usize = 4096;
const WORKGROUPS: u32 = 64;

/// How a user gives vyre the steps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// As a batch that the caller makes.
    Batch,
    /// As a sequence of two dispatches, repeated.
    Sequence,
}

pub(super) const KINDS: [Kind; 2] = [Kind::Batch, Kind::Sequence];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Batch => "batch",
            Kind::Sequence => "sequence",
        }
    }

    pub(super) fn what(self) -> &'static str {
        match self {
            Kind::Batch => "1000 small dependent steps in one batch",
            Kind::Sequence => "the same as a repeated sequence of dispatches",
        }
    }
}

/// Measures the steps. Everything from the first one being recorded to the device being idle is timed.
pub(super) fn measure(wgpu: &Wgpu, backend: &Arc<WgpuBackend>, kind: Kind, repeat: Repeat) -> Result<Row> {
    let entrants: Vec<Entrant<'_>> = vec![
        ("rust", vec![1], Box::new(ByRust(first()))),
        ("wgpu", vec![1], Box::new(ByHand::new(wgpu)?)),
        (EXACT, vec![1], Box::new(ByVyre::new(backend, kind)?)),
    ];
    let timings = compete(kind.name(), entrants, repeat)?;
    let size = format!("{STEPS} steps of {ELEMENTS} u32");
    Ok(Row { name: kind.name(), size, work: Work::default(), timings, skipped: Vec::new() })
}

/// What the two buffers hold at first.
fn first() -> [Vec<u32>; 2] {
    [(0..ELEMENTS as u32).collect(), vec![0; ELEMENTS]]
}

fn bytes(values: &[u32]) -> &[u8] {
    bytemuck::cast_slice(values)
}

struct ByRust([Vec<u32>; 2]);

impl Contender for ByRust {
    fn reset(&mut self) -> Result<()> {
        self.0 = first();
        Ok(())
    }

    fn run(&mut self, _threads: usize) -> Result<Duration> {
        let start = Instant::now();
        let [source, result] = &mut self.0;
        for _ in 0..STEPS {
            for (result, source) in result.iter_mut().zip(&*source) {
                *result = source.wrapping_mul(3).wrapping_add(1);
            }
            std::mem::swap(source, result);
        }
        Ok(start.elapsed())
    }

    fn results(&mut self) -> Result<Vec<Vec<u8>>> {
        Ok(self.0.iter().map(|values| bytes(values).to_vec()).collect())
    }
}

struct ByHand<'a> {
    wgpu: &'a Wgpu,
    pipeline: wgpu::ComputePipeline,
    /// From the first buffer to the second one, and back.
    groups: [wgpu::BindGroup; 2],
    buffers: [wgpu::Buffer; 2],
}

impl ByHand<'_> {
    fn new(wgpu: &Wgpu) -> Result<ByHand<'_>> {
        let pipeline = wgpu.pipeline(include_str!("../../kernels/step.wgsl"))?;
        let buffers = first().map(|values| wgpu.buffer(bytes(&values).len() as u64, USAGE));
        let [a, b] = &buffers;
        let groups = [wgpu.bind(&pipeline, &[a, b]), wgpu.bind(&pipeline, &[b, a])];
        Ok(ByHand { wgpu, pipeline, groups, buffers })
    }
}

impl Contender for ByHand<'_> {
    fn reset(&mut self) -> Result<()> {
        for (buffer, values) in self.buffers.iter().zip(first()) {
            self.wgpu.queue.write_buffer(buffer, 0, bytes(&values));
        }
        self.wgpu.queue.submit([]);
        self.wgpu.wait()
    }

    fn run(&mut self, _threads: usize) -> Result<Duration> {
        let start = Instant::now();
        let mut encoder = self.wgpu.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&self.pipeline);
            for group in self.groups.iter().cycle().take(STEPS) {
                pass.set_bind_group(0, group, &[]);
                pass.dispatch_workgroups(WORKGROUPS, 1, 1);
            }
        }
        self.wgpu.queue.submit([encoder.finish()]);
        self.wgpu.wait()?;
        Ok(start.elapsed())
    }

    fn results(&mut self) -> Result<Vec<Vec<u8>>> {
        self.buffers.iter().map(|buffer| self.wgpu.read(buffer)).collect()
    }
}

struct ByVyre<'a> {
    backend: &'a Arc<WgpuBackend>,
    kind: Kind,
    pipeline: Pipeline,
    config: DispatchConfig,
    grid: Grid,
    handles: Vec<RawHandle>,
}

impl ByVyre<'_> {
    fn new(backend: &Arc<WgpuBackend>, kind: Kind) -> Result<ByVyre<'_>> {
        let program = Program::parse(include_str!("../../kernels/step.vyre"))?;
        let layout = Layout::new(&program, &[4 * ELEMENTS; 2], &[])?;
        let grid = grid::resolve(&program, &layout, Some([WORKGROUPS, 1, 1]))?;
        let config = DispatchConfig::new().grid([WORKGROUPS, 1, 1]);
        let pipeline = backend.compile_native(&program, &config)?;
        let mut made = ByVyre { backend, kind, pipeline, config, grid, handles: Vec::new() };
        for values in first() {
            made.handles.push(backend.allocate_resident(bytes(&values).len() as u64)?);
        }
        Ok(made)
    }

    fn run_batch(&self, there: &[RawHandle], back: &[RawHandle]) -> Result<()> {
        let pipeline = self.pipeline.compiled().context("the steps are one launch each")?;
        let mut batch = Batch::default();
        for handles in [there, back].into_iter().cycle().take(STEPS) {
            let bindings = handles.iter().map(|handle| Span::resident(*handle)).collect();
            batch.push(Action::Launch(Launch { pipeline: Arc::clone(pipeline), bindings, grid: self.grid }));
        }
        self.backend.run(batch, Deadline::NEVER)?;
        Ok(())
    }

    fn run_sequence(&self, there: &[RawHandle], back: &[RawHandle]) -> Result<()> {
        let step = |handles| ResidentStep::new(&self.pipeline, handles, &self.config);
        let steps = [step(there), step(back)];
        let rounds = (STEPS / steps.len()) as u32;
        let mut none = Vec::new();
        self.backend.dispatch_resident_repeated_sequence_read_ranges_into(&steps, rounds, &[], &mut none)?;
        Ok(())
    }
}

impl Contender for ByVyre<'_> {
    fn reset(&mut self) -> Result<()> {
        for (handle, values) in self.handles.iter().zip(first()) {
            self.backend.upload_resident(*handle, bytes(&values))?;
        }
        Ok(())
    }

    fn run(&mut self, _threads: usize) -> Result<Duration> {
        let there = &self.handles;
        let back: Vec<RawHandle> = there.iter().rev().copied().collect();
        let start = Instant::now();
        match self.kind {
            Kind::Batch => self.run_batch(there, &back)?,
            Kind::Sequence => self.run_sequence(there, &back)?,
        }
        Ok(start.elapsed())
    }

    fn results(&mut self) -> Result<Vec<Vec<u8>>> {
        let read = |handle: &RawHandle| self.backend.download_resident(*handle);
        Ok(self.handles.iter().map(read).collect::<Result<_, _>>()?)
    }
}

impl Drop for ByVyre<'_> {
    fn drop(&mut self) {
        for handle in &self.handles {
            // Freeing what was just in use can only fail if the backend is gone.
            let _ = self.backend.free_resident(*handle);
        }
    }
}
