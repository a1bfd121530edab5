//! Runs a plan: uploads what the host gives, records and submits the ops, waits once, and reads what comes back.

use crate::NAME;
use crate::backend::Core;
use crate::gpu::{Gpu, lock};
use crate::memory::{Kind, Memory};
use crate::plan::{ARGUMENT_BYTES, Counts, DATA, Plan, Planner, Range, Reading, Source, Spot};
use crate::record::Recorder;
use crate::timer::{TIME_BYTES, Timer};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use vyre_driver::{Batch, Deadline, Error, Outcome, Pins, Result, Stop};
use wgpu::{MapMode, SubmissionIndex};

/// After so many dispatches what has been recorded is submitted: the device then works while the rest is recorded, and
/// a batch that nobody wants any more ends soon.
const DISPATCHES: usize = 256;
/// How many submissions of a batch the device has at once.
const IN_FLIGHT: usize = 3;

/// Executes a batch that was checked, over the resident memory that is held for it.
pub(crate) fn execute(
    core: &Core,
    batch: &Batch<'_>,
    pins: &Pins<Memory>,
    stop: &Stop,
    deadline: Deadline,
) -> Result<Outcome> {
    stop.check(deadline)?;
    let gpu = core.gpu();
    gpu.ready(stop, deadline)?;
    let _running = gpu.running();
    let plan = Planner::new(core, &gpu, pins).plan(batch)?;
    let timer = plan.times_at.and_then(|_| gpu.timer());
    let (back, in_flight) = (Vec::new(), VecDeque::new());
    let mut run = Run { core, gpu: &gpu, plan, back, timer, in_flight, stop, deadline };
    let result = run.run();
    match &result {
        Ok(_) => run.give_back(),
        // Nobody uses the buffers of the batch again: the device may still do so.
        Err(_) if !run.in_flight.is_empty() => gpu.abandon(),
        Err(_) => {}
    }
    result
}

/// A batch under way.
struct Run<'r> {
    core: &'r Core,
    gpu: &'r Gpu,
    plan: Plan<'r>,
    /// Memory that the host maps.
    back: Vec<wgpu::Buffer>,
    timer: Option<Timer>,
    in_flight: VecDeque<SubmissionIndex>,
    stop: &'r Stop,
    deadline: Deadline,
}

impl Run<'_> {
    fn run(&mut self) -> Result<Outcome> {
        if self.plan.ops.is_empty() && self.plan.writes.is_empty() {
            return self.collect(&[]);
        }
        for number in 0..self.plan.back.len() {
            let leased = self.gpu.lease(Kind::ReadBack, self.plan.back[number], "what is read")?;
            self.back.push(leased.buffer);
        }
        tracing::debug_span!("upload").in_scope(|| {
            let bytes = self.plan.data.len() as u64;
            self.gpu.guarded("an upload", bytes, || {
                self.upload();
                Ok(())
            })
        })?;
        self.count(self.plan.counts);
        let gpu = self.gpu;
        gpu.guarded("a batch", 0, || self.submit_all())?;
        let mapped = self.map(&self.back)?;
        self.collect(&mapped)
    }

    fn count(&self, counts: Counts) {
        self.core.telemetry.launches(counts.launches);
        self.core.telemetry.bytes_uploaded(counts.uploaded);
    }

    fn upload(&self) {
        for (range, bytes) in &self.plan.writes {
            self.gpu.queue.write_buffer(self.plan.buffer(range.buffer), range.offset, bytes);
        }
        if !self.plan.data.is_empty() {
            self.gpu.queue.write_buffer(self.plan.buffer(DATA), 0, &self.plan.data);
        }
    }

    /// Records everything and submits it piece by piece.
    fn submit_all(&mut self) -> Result<()> {
        let Run { gpu, plan, back, timer, in_flight, stop, deadline, .. } = self;
        let mut recorder = Recorder::new(gpu, plan, back, timer.as_mut());
        for op in &plan.ops {
            if recorder.dispatches() >= DISPATCHES {
                in_flight.push_back(gpu.submit(recorder.piece()));
                stop.check(*deadline)?;
                if in_flight.len() >= IN_FLIGHT
                    && let Some(oldest) = in_flight.front()
                {
                    gpu.wait(oldest, stop, *deadline)?;
                    in_flight.pop_front();
                }
            }
            recorder.record(op);
        }
        in_flight.push_back(gpu.submit(recorder.finish()));
        Ok(())
    }

    /// Maps buffers once the last submission is done.
    fn map(&self, buffers: &[wgpu::Buffer]) -> Result<Vec<wgpu::BufferView>> {
        let outcomes: Arc<Mutex<Vec<bool>>> = Arc::default();
        for buffer in buffers {
            let outcomes = Arc::clone(&outcomes);
            buffer.map_async(MapMode::Read, .., move |result| lock(&outcomes).push(result.is_ok()));
        }
        if let Some(last) = self.in_flight.back() {
            self.gpu.wait(last, self.stop, self.deadline)?;
        }
        // Another thread may have polled, and may not have come to tell yet.
        while lock(&outcomes).len() < buffers.len() {
            self.gpu.attend()?;
            self.gpu.check()?;
            self.stop.check(self.deadline)?;
            std::thread::yield_now();
        }
        if lock(&outcomes).contains(&false) {
            self.gpu.check()?;
            return Err(Error::Internal("what was read cannot be mapped".to_owned()));
        }
        let wrong = |error: wgpu::MapRangeError| Error::Internal(error.to_string());
        buffers.iter().map(|buffer| buffer.get_mapped_range(..).map_err(wrong)).collect()
    }

    /// What the caller gets, and what is counted.
    fn collect(&self, mapped: &[wgpu::BufferView]) -> Result<Outcome> {
        let _span = tracing::debug_span!("read_back").entered();
        if self.plan.cut_at.is_some_and(|spot| word(mapped, spot) != 0) {
            return Err(Error::Unsupported {
                feature: "a loop of so many rounds in one invocation".to_owned(),
                backend: NAME,
                help: "the driver cuts loops off after some tens of thousands of rounds: let more invocations do less each, or use another device".to_owned(),
            });
        }
        if let Some(arguments) = self.plan.arguments_at {
            for (number, counts) in &self.plan.conditional {
                let ran = u64::from(*number) * ARGUMENT_BYTES + 12;
                if word(mapped, Spot { offset: arguments.offset + ran, ..arguments }) != 0 {
                    self.count(*counts);
                }
            }
        }
        let is_given =
            |reading: &Reading| reading.when.is_none_or(|(spot, holds)| (word(mapped, spot) != 0) == holds);
        let given: Vec<bool> = self.plan.readings.iter().map(is_given).collect();
        let mut reads = Vec::with_capacity(given.len());
        for (reading, is_given) in self.plan.readings.iter().zip(&given) {
            if !is_given {
                reads.push(None);
                continue;
            }
            self.core.telemetry.bytes_downloaded(reading.bytes);
            reads.push(Some(match &reading.source {
                Source::Copied(spot) => copy_out(mapped, *spot, reading.bytes)?,
                Source::Deferred(range) => self.fetch(*range)?,
            }));
        }
        Ok(Outcome { reads, device_nanos: self.device_nanos(mapped) })
    }

    /// How long the device worked, where it tells.
    fn device_nanos(&self, mapped: &[wgpu::BufferView]) -> Option<u64> {
        let (timer, spot) = (self.timer.as_ref()?, self.plan.times_at?);
        let at = spot.offset as usize;
        let bytes = mapped.get(spot.buffer)?.get(at..at + TIME_BYTES as usize)?;
        timer.nanos(bytes, self.gpu.queue.get_timestamp_period())
    }

    /// Reads a range now that the batch is done.
    fn fetch(&self, range: Range) -> Result<Vec<u8>> {
        let from = range.outward(4);
        let leased = self.gpu.lease(Kind::ReadBack, from.bytes, "what is read")?;
        let index = self.gpu.guarded("what is read", from.bytes, || {
            let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
            let source = self.plan.buffer(from.buffer);
            encoder.copy_buffer_to_buffer(source, from.offset, &leased.buffer, 0, from.bytes);
            Ok(self.gpu.submit(encoder.finish()))
        })?;
        self.gpu.wait(&index, self.stop, self.deadline)?;
        let mapped = self.map(std::slice::from_ref(&leased.buffer))?;
        let spot = Spot { buffer: 0, offset: range.offset - from.offset };
        let bytes = copy_out(&mapped, spot, range.bytes)?;
        drop(mapped);
        leased.buffer.unmap();
        self.gpu.pool.give_back(Kind::ReadBack, leased.buffer);
        Ok(bytes)
    }

    /// Gives the buffers of a batch that is done back to the pool.
    fn give_back(&mut self) {
        lock(&self.gpu.timers).extend(self.timer.take());
        for number in &self.plan.leased {
            self.gpu.pool.give_back(Kind::Device, self.plan.buffer(*number).clone());
        }
        for buffer in &self.back {
            buffer.unmap();
            self.gpu.pool.give_back(Kind::ReadBack, buffer.clone());
        }
    }
}

fn word(mapped: &[wgpu::BufferView], spot: Spot) -> u32 {
    let at = spot.offset as usize;
    let bytes = mapped.get(spot.buffer).and_then(|view| view.get(at..at + 4));
    bytes.map_or(0, |bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn copy_out(mapped: &[wgpu::BufferView], spot: Spot, bytes: u64) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    if bytes == 0 {
        return Ok(copy);
    }
    let full = |_| Error::OutOfMemory { what: "a result".to_owned(), asked: bytes, available: None };
    copy.try_reserve_exact(bytes as usize).map_err(full)?;
    let (start, end) = (spot.offset as usize, (spot.offset + bytes) as usize);
    let missing = || Error::Internal("what was read is not there".to_owned());
    copy.extend_from_slice(
        mapped.get(spot.buffer).and_then(|view| view.get(start..end)).ok_or_else(missing)?,
    );
    Ok(copy)
}
