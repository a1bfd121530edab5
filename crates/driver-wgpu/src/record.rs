//! Records ops into command buffers. Dispatches that follow each other share a pass.

use crate::gpu::Gpu;
use crate::plan::{ARGUMENT_BYTES, ARGUMENTS, DATA, Dispatch, Op, Plan, Range};
use crate::timer::Timer;
use std::num::NonZeroU64;
use wgpu::{BindGroupEntry, BindingResource, BufferBinding, CommandBuffer, CommandEncoder, ComputePass};

/// Command buffers in the making.
pub(crate) struct Recorder<'r> {
    gpu: &'r Gpu,
    plan: &'r Plan<'r>,
    /// What the host maps.
    back: &'r [wgpu::Buffer],
    /// Bind groups by their numbers, made when they are first used.
    groups: Vec<Option<wgpu::BindGroup>>,
    /// Before the encoder: a pass ends before its commands do.
    pass: Option<ComputePass<'static>>,
    encoder: CommandEncoder,
    timer: Option<&'r mut Timer>,
    dispatches: usize,
    /// The shader that is set in the pass.
    shader: Option<u64>,
}

impl<'r> Recorder<'r> {
    /// A recorder that begins with what is to be zeroed.
    pub(crate) fn new(
        gpu: &'r Gpu,
        plan: &'r Plan<'r>,
        back: &'r [wgpu::Buffer],
        mut timer: Option<&'r mut Timer>,
    ) -> Recorder<'r> {
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        if let Some(timer) = &mut timer {
            timer.begin(&mut encoder);
        }
        for number in &plan.cleared {
            encoder.clear_buffer(plan.buffer(*number), 0, None);
        }
        let groups = vec![None; plan.groups.len()];
        Recorder { gpu, plan, back, groups, pass: None, encoder, timer, dispatches: 0, shader: None }
    }

    /// How many dispatches have been recorded since the last command buffer.
    pub(crate) fn dispatches(&self) -> usize {
        self.dispatches
    }

    /// What has been recorded, when there is more to come.
    pub(crate) fn piece(&mut self) -> CommandBuffer {
        self.end_pass();
        self.dispatches = 0;
        let mut next = self.gpu.device.create_command_encoder(&Default::default());
        if let Some(timer) = &mut self.timer {
            timer.end(&mut self.encoder);
            timer.begin(&mut next);
        }
        std::mem::replace(&mut self.encoder, next).finish()
    }

    /// What has been recorded, when that is all.
    pub(crate) fn finish(mut self) -> CommandBuffer {
        self.end_pass();
        if let (Some(timer), Some(spot)) = (&self.timer, self.plan.times_at) {
            timer.end(&mut self.encoder);
            timer.tell(&mut self.encoder, &self.back[spot.buffer], spot.offset);
        }
        self.encoder.finish()
    }

    pub(crate) fn record(&mut self, op: &Op) {
        match op {
            Op::Clear(range) => {
                self.end_pass();
                self.encoder.clear_buffer(self.plan.buffer(range.buffer), range.offset, Some(range.bytes));
            }
            Op::Copy { from, to } => self.copy(*from, *to),
            Op::ReadBack { from, to } => {
                self.end_pass();
                let (source, target) = (self.plan.buffer(from.buffer), &self.back[to.buffer]);
                self.encoder.copy_buffer_to_buffer(source, from.offset, target, to.offset, from.bytes);
            }
            Op::Dispatch(dispatch) => self.dispatch(dispatch),
            Op::Control(number) => {
                let control = &self.plan.controls[*number];
                control.copies.iter().for_each(|(from, to)| self.copy(*from, *to));
                control.dispatches.iter().for_each(|dispatch| self.dispatch(dispatch));
            }
        }
    }

    fn copy(&mut self, from: Range, to: Range) {
        self.end_pass();
        let (source, target) = (self.plan.buffer(from.buffer), self.plan.buffer(to.buffer));
        self.encoder.copy_buffer_to_buffer(source, from.offset, target, to.offset, from.bytes);
    }

    fn end_pass(&mut self) {
        self.pass = None;
        self.shader = None;
    }

    fn dispatch(&mut self, dispatch: &Dispatch) {
        self.dispatches += 1;
        self.make_group(dispatch);
        let encoder = &mut self.encoder;
        let pass = self
            .pass
            .get_or_insert_with(|| encoder.begin_compute_pass(&Default::default()).forget_lifetime());
        if self.shader != Some(dispatch.shader.id) {
            pass.set_pipeline(&dispatch.shader.pipeline);
            self.shader = Some(dispatch.shader.id);
        }
        pass.set_bind_group(0, &self.groups[dispatch.group], &[dispatch.parameters]);
        match dispatch.argument {
            None => {
                let [x, y, z] = dispatch.workgroups;
                pass.dispatch_workgroups(x, y, z);
            }
            Some(number) => {
                let arguments = self.plan.buffer(ARGUMENTS);
                pass.dispatch_workgroups_indirect(arguments, u64::from(number) * ARGUMENT_BYTES);
            }
        }
    }

    fn make_group(&mut self, dispatch: &Dispatch) {
        if self.groups[dispatch.group].is_some() {
            return;
        }
        let group = &self.plan.groups[dispatch.group];
        let parameters = (DATA, 0, group.parameter_bytes);
        let all = std::iter::once(&parameters).chain(&group.bindings);
        let entry = |(binding, (buffer, offset, bytes)): (u32, &(usize, u64, u64))| BindGroupEntry {
            binding,
            resource: BindingResource::Buffer(BufferBinding {
                buffer: self.plan.buffer(*buffer),
                offset: *offset,
                size: NonZeroU64::new(*bytes),
            }),
        };
        let entries: Vec<_> = (0..).zip(all).map(entry).collect();
        let layout = &dispatch.shader.layout;
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout, entries: &entries };
        self.groups[dispatch.group] = Some(self.gpu.device.create_bind_group(&descriptor));
    }
}
