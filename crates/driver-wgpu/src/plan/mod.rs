//! From a batch to what a device can do: native transfers, and dispatches with their bindings and parameters.
//!
//! A plan is made as a whole before anything is submitted, so that all that the host gives travels in one upload.
//! Three buffers are its own: the *data* that the host gives (parameters, lists, small inputs), the *words* that
//! predicates ask (small temporaries live there), and the *arguments* of indirect dispatches.

mod bind;
mod control;
mod range;
mod read;
mod transfer;

pub(crate) use range::Range;
pub(crate) use read::{Reading, Source, Spot};

use crate::NAME;
use crate::backend::Core;
use crate::gpu::Gpu;
use crate::memory::{ALIGNMENT, Kind, Memory};
use crate::pipeline::{Variant, WgpuPipeline};
use crate::timer;
use bind::Group;
use control::Control;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::sync::Arc;
use vyre_driver::{
    Action, Batch, Error, HandleError, Launch, Memory as Named, Pins, RawHandle, Result, Span, Step,
    Temporary,
};

/// The buffer of what the host gives.
pub(crate) const DATA: usize = 0;
/// The buffer of words that predicates ask.
pub(crate) const WORDS: usize = 1;
/// The buffer of arguments of indirect dispatches.
pub(crate) const ARGUMENTS: usize = 2;
/// How many buffers are the plan's own.
const OWN: usize = 3;
/// The words of an argument: three counts, and whether the step runs.
pub(crate) const ARGUMENT_BYTES: u64 = 16;

/// Inputs of at most so many bytes travel with the data.
const SMALL_INPUT: u64 = 16 << 10;
/// Zeroed temporaries of at most so many bytes live among the words, unless a program binds them.
const SMALL_ZEROED: u64 = 4 << 10;

/// Something that a device does.
pub(crate) enum Op {
    /// Zeros whole words.
    Clear(Range),
    /// Copies whole words to another buffer.
    Copy {
        from: Range,
        to: Range,
    },
    /// Copies whole words to where the host reads them.
    ReadBack {
        from: Range,
        to: Spot,
    },
    Dispatch(Dispatch),
    /// Decides which later steps run.
    Control(usize),
}

/// A launch of a shader.
pub(crate) struct Dispatch {
    pub(crate) shader: Arc<Variant>,
    /// The number of its bind group.
    pub(crate) group: usize,
    /// Where its parameters are in the data.
    pub(crate) parameters: u32,
    pub(crate) workgroups: [u32; 3],
    /// Its argument, if it depends on a predicate.
    pub(crate) argument: Option<u32>,
    /// What it touches, with whether it writes.
    ranges: Arc<[(Range, bool)]>,
}

/// What is counted when a step has run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) launches: u64,
    pub(crate) uploaded: u64,
}

/// What a device is to do for a batch.
pub(crate) struct Plan<'b> {
    pub(crate) ops: Vec<Op>,
    pub(crate) controls: Vec<Control>,
    /// The plan's own buffers.
    own: Vec<wgpu::Buffer>,
    /// The others.
    others: Vec<wgpu::Buffer>,
    /// Those that go back to the pool.
    pub(crate) leased: Vec<usize>,
    /// Those that are zeroed first.
    pub(crate) cleared: Vec<usize>,
    /// What the host gives, by its place.
    pub(crate) data: Vec<u8>,
    /// What the host gives directly.
    pub(crate) writes: Vec<(Range, &'b [u8])>,
    pub(crate) groups: Vec<Group>,
    /// The sizes of the buffers that the host reads.
    pub(crate) back: Vec<u64>,
    pub(crate) readings: Vec<Reading>,
    /// What is counted in any case.
    pub(crate) counts: Counts,
    /// What is counted where a step ran, by its argument.
    pub(crate) conditional: Vec<(u32, Counts)>,
    /// Where the arguments are read, if something depends on them.
    pub(crate) arguments_at: Option<Spot>,
    /// The buffer of the word that says that a loop was cut off, if a kernel is watched, and where it is read.
    pub(crate) cut: Option<usize>,
    pub(crate) cut_at: Option<Spot>,
    /// Where times are read, if the device tells them.
    pub(crate) times_at: Option<Spot>,
}

impl Plan<'_> {
    /// A buffer by its number.
    pub(crate) fn buffer(&self, number: usize) -> &wgpu::Buffer {
        match number.checked_sub(OWN) {
            None => &self.own[number],
            Some(other) => &self.others[other],
        }
    }
}

/// Where memory of the batch is.
#[derive(Clone, Copy)]
struct Place {
    buffer: usize,
    offset: u64,
    bytes: u64,
}

/// Makes a plan.
pub(crate) struct Planner<'b> {
    core: &'b Core,
    gpu: &'b Gpu,
    pins: &'b Pins<Memory>,
    plan: Plan<'b>,
    temporaries: Vec<Place>,
    residents: FxHashMap<RawHandle, Place>,
    parameters: FxHashMap<Vec<u32>, u32>,
    groups: FxHashMap<Group, usize>,
    /// The dispatches of the step under way.
    pending: Vec<Dispatch>,
    /// What is bound for slots without elements, by whether they are written.
    nothing: [Option<usize>; 2],
    arguments: u32,
    /// How many bytes the words take, and how many of them the batch itself.
    words: u64,
    named_words: u64,
    /// What was last read of each buffer, where, and by which op.
    taken: FxHashMap<usize, (Range, Spot, usize)>,
    /// The first step behind which there are only reads.
    tail: usize,
}

impl<'b> Planner<'b> {
    pub(crate) fn new(core: &'b Core, gpu: &'b Gpu, pins: &'b Pins<Memory>) -> Planner<'b> {
        Planner {
            core,
            gpu,
            pins,
            plan: Plan {
                ops: Vec::new(),
                controls: Vec::new(),
                own: Vec::new(),
                others: Vec::new(),
                leased: Vec::new(),
                cleared: Vec::new(),
                data: Vec::new(),
                writes: Vec::new(),
                groups: Vec::new(),
                back: Vec::new(),
                readings: Vec::new(),
                counts: Counts::default(),
                conditional: Vec::new(),
                arguments_at: None,
                cut: None,
                cut_at: None,
                times_at: None,
            },
            temporaries: Vec::new(),
            residents: FxHashMap::default(),
            parameters: FxHashMap::default(),
            groups: FxHashMap::default(),
            pending: Vec::new(),
            nothing: [None; 2],
            arguments: 0,
            words: 0,
            named_words: 0,
            taken: FxHashMap::default(),
            tail: 0,
        }
    }

    /// The plan of a batch that was checked.
    pub(crate) fn plan(mut self, batch: &'b Batch<'_>) -> Result<Plan<'b>> {
        self.place_temporaries(batch)?;
        let is_read = |step: &Step<'_>| matches!(step.action, Action::Read { .. });
        self.tail = batch.steps.iter().rposition(|step| !is_read(step)).map_or(0, |last| last + 1);
        for (number, step) in batch.steps.iter().enumerate() {
            self.step(number, step).map_err(|error| error.at_step(number))?;
        }
        self.finish()?;
        Ok(self.plan)
    }

    fn step(&mut self, number: usize, step: &'b Step<'_>) -> Result<()> {
        let mut counts = Counts::default();
        match &step.action {
            Action::Fill { target, byte } => self.fill(*target, *byte, step.when)?,
            Action::Write { target, bytes } => {
                counts.uploaded = target.bytes;
                self.write(*target, bytes, step.when.is_none())?;
            }
            Action::Copy { from, to } => {
                let (from, to) = (self.range(*from)?, self.range(*to)?);
                self.copy(from, to, step.when.is_none())?;
            }
            Action::Compare { a, b, differs } => self.compare(*a, *b, *differs)?,
            Action::Read { from } => self.read(*from, step.when, number >= self.tail)?,
            Action::Launch(launch) => {
                counts.launches = 1;
                self.launch(launch)?;
            }
        }
        self.flush(step.when, counts)
    }

    fn launch(&mut self, launch: &Launch) -> Result<()> {
        let pipeline: &dyn Any = &*launch.pipeline;
        let Some(pipeline) = pipeline.downcast_ref::<WgpuPipeline>() else {
            return Err(Error::foreign_pipeline(NAME));
        };
        if pipeline.backend_id != self.gpu.backend_id {
            return Err(Error::foreign_pipeline(NAME));
        }
        let ranges: Vec<Range> =
            launch.bindings.iter().map(|span| self.range(*span)).collect::<Result<_>>()?;
        self.dispatch(pipeline, &ranges, launch.grid.workgroups())
    }

    /// Memory of a batch. What the host gives is copied once.
    fn place_temporaries(&mut self, batch: &'b Batch<'_>) -> Result<()> {
        let bound = bound_temporaries(batch);
        for (number, temporary) in batch.temporaries.iter().enumerate() {
            let bytes = temporary.bytes();
            let place = match temporary {
                Temporary::Zeroed { .. } if bytes <= SMALL_ZEROED && !bound[number] => {
                    let offset = self.words;
                    self.words += bytes.next_multiple_of(ALIGNMENT);
                    Place { buffer: WORDS, offset, bytes }
                }
                Temporary::Zeroed { .. } => {
                    let buffer = self.lease(bytes, true)?;
                    Place { buffer, offset: 0, bytes }
                }
                Temporary::Borrowed(given) if bytes <= SMALL_INPUT => {
                    let offset = self.append(given, ALIGNMENT, 0)?;
                    Place { buffer: DATA, offset, bytes }
                }
                Temporary::Borrowed(given) | Temporary::Initial(given) => {
                    let buffer = self.lease(bytes, false)?;
                    let target = Range { room: 3, ..Range::new(buffer, 0, bytes) };
                    self.give(target, given)?;
                    Place { buffer, offset: 0, bytes }
                }
            };
            if !matches!(temporary, Temporary::Zeroed { .. }) {
                self.plan.counts.uploaded += bytes;
            }
            self.temporaries.push(place);
        }
        self.named_words = self.words;
        Ok(())
    }

    /// A buffer of the pool, by its number.
    fn lease(&mut self, bytes: u64, is_zeroed: bool) -> Result<usize> {
        let leased = self.gpu.lease(Kind::Device, bytes, "a buffer of the dispatch")?;
        let number = self.add(leased.buffer);
        self.plan.leased.push(number);
        if is_zeroed && !leased.is_fresh {
            self.plan.cleared.push(number);
        }
        Ok(number)
    }

    fn add(&mut self, buffer: wgpu::Buffer) -> usize {
        self.plan.others.push(buffer);
        OWN + self.plan.others.len() - 1
    }

    /// Adds bytes to the data, at an offset that is this much more than a multiple of an alignment.
    fn append(&mut self, bytes: &[u8], alignment: u64, phase: u64) -> Result<u64> {
        let data = &mut self.plan.data;
        let offset = (data.len() as u64).next_multiple_of(alignment) + phase;
        let end = (offset + bytes.len() as u64).next_multiple_of(4);
        let full = |_| {
            let asked = bytes.len() as u64;
            Error::OutOfMemory { what: "a copy of an input".to_owned(), asked, available: None }
        };
        data.try_reserve((end - data.len() as u64) as usize).map_err(full)?;
        data.resize(offset as usize, 0);
        data.extend_from_slice(bytes);
        data.resize(end as usize, 0);
        Ok(offset)
    }

    /// Where a range is.
    fn range(&mut self, span: Span) -> Result<Range> {
        let place = match span.memory {
            Named::Temporary(number) => self.temporaries[number],
            Named::Resident(handle) => self.resident(handle)?,
        };
        let (offset, bytes) = (place.offset + span.offset, span.bytes);
        let is_last = span.offset + span.bytes == place.bytes;
        let end = offset + bytes;
        let room = if is_last { end.next_multiple_of(4) - end } else { 0 };
        Ok(Range { buffer: place.buffer, offset, bytes, room })
    }

    fn resident(&mut self, handle: RawHandle) -> Result<Place> {
        if let Some(place) = self.residents.get(&handle) {
            return Ok(*place);
        }
        let memory = self.pins.get(handle)?;
        if memory.epoch != self.gpu.epoch {
            return Err(HandleError::Stale(handle).into());
        }
        let (bytes, buffer) = (memory.bytes, memory.buffer.clone());
        let place = Place { buffer: self.add(buffer), offset: 0, bytes };
        self.residents.insert(handle, place);
        Ok(place)
    }

    /// Settles what could not be known before: the controls, and the sizes of the plan's own buffers.
    fn finish(&mut self) -> Result<()> {
        if !self.plan.conditional.is_empty() {
            let bytes = u64::from(self.arguments) * ARGUMENT_BYTES;
            let spot = self.spot(bytes);
            self.plan.ops.push(Op::ReadBack { from: Range::new(ARGUMENTS, 0, bytes), to: spot });
            self.plan.arguments_at = Some(spot);
        }
        if let Some(buffer) = self.plan.cut {
            let spot = self.spot(4);
            self.plan.ops.push(Op::ReadBack { from: Range::new(buffer, 0, 4), to: spot });
            self.plan.cut_at = Some(spot);
        }
        let launches = self.plan.counts.launches > 0 || !self.plan.conditional.is_empty();
        if launches && self.gpu.device.features().contains(timer::NEEDED) {
            self.plan.times_at = Some(self.spot(timer::TIME_BYTES));
        }
        self.settle_controls()?;
        // Whatever is bound of the data ends inside it.
        let padded = self.plan.data.len().next_multiple_of(ALIGNMENT as usize);
        self.plan.data.resize(padded, 0);
        let sizes = [padded as u64, self.words, u64::from(self.arguments) * ARGUMENT_BYTES];
        for (number, bytes) in sizes.into_iter().enumerate() {
            let leased = self.gpu.lease(Kind::Device, bytes, "a batch")?;
            self.plan.own.push(leased.buffer);
            self.plan.leased.push(number);
            if number == WORDS && !leased.is_fresh && self.words > 0 {
                self.plan.cleared.push(number);
            }
        }
        Ok(())
    }

    /// Whether an op after this one writes a range, or, if that is asked, reads it.
    fn is_touched_since(&self, op: usize, range: Range, also_read: bool) -> bool {
        let later = self.plan.ops.get(op + 1..).unwrap_or_default();
        later.iter().any(|op| match op {
            Op::Clear(cleared) => cleared.overlaps(range),
            Op::Copy { from, to } => to.overlaps(range) || also_read && from.overlaps(range),
            Op::ReadBack { from, .. } => also_read && from.overlaps(range),
            Op::Dispatch(dispatch) => dispatch
                .ranges
                .iter()
                .any(|(used, is_written)| (*is_written || also_read) && used.overlaps(range)),
            // Only the last control is asked for, and none comes after it.
            Op::Control(_) => true,
        })
    }
}

/// Which temporaries a program binds.
fn bound_temporaries(batch: &Batch<'_>) -> Vec<bool> {
    let mut bound = vec![false; batch.temporaries.len()];
    for step in &batch.steps {
        let Action::Launch(launch) = &step.action else { continue };
        for span in &launch.bindings {
            if let Named::Temporary(number) = span.memory {
                bound[number] = true;
            }
        }
    }
    bound
}
