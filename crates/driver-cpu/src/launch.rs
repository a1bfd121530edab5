//! Runs generated code over a grid, on the workers of the pool.

use crate::calls;
use crate::context::{Bound, Calls, Context, Left, NONE_LEFT, Next, Worker};
use crate::memory::{Memory, Placement};
use crate::pipeline::CpuPipeline;
use crate::pool::{Arrival, Pool, Team};
use crate::shares::{Place, Shares};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use vyre_driver::{Deadline, Error, Result, Stop, Trap};
use vyre_foundation::grid::Grid;

/// A launch in progress. Generated code sees the context; what it calls finds the rest behind it.
#[repr(C)]
struct Launch<'a> {
    context: Context,
    stop: &'a Stop,
    shares: Shares,
    trapped: AtomicBool,
    /// Whether a barrier was called off.
    broken: AtomicBool,
    /// The smallest invocation that trapped, with its tag and value.
    trap: Mutex<Option<(u64, u32, u32)>>,
}

// SAFETY: buffers and storage are shared by the workers as the program says; the rest is atomic or locked.
unsafe impl Sync for Launch<'_> {}

/// Into how many parts the work of each thread is cut, so that a thread that is late leaves its parts to others.
const PARTS: u64 = 64;

/// The operations that taking a part is worth: a microsecond or less.
const PART: u64 = 1 << 14;

/// The most workgroups of a part.
const MAX_PART: u64 = 1 << 20;

/// The stack that every thread has left for sure.
const SMALL_STACK: usize = 64 << 10;

/// The stack for what code calls.
const OTHERS_STACK: usize = 64 << 10;

/// What runs launches.
pub(crate) struct Launcher<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) placement: Placement,
    pub(crate) threads: usize,
    /// Below this many operations a launch is not worth waking anybody for.
    pub(crate) share_from: u64,
}

impl Launcher<'_> {
    /// Runs a program over a grid. `bindings` are those of the plan: first byte and size of each.
    pub(crate) fn launch(
        &self,
        pipeline: &CpuPipeline,
        bindings: &[(*mut u8, u64)],
        grid: Grid,
        stop: &Stop,
        deadline: Deadline,
    ) -> Result<()> {
        let Ok(total) = u64::try_from(grid.workgroup_count()) else {
            return Err(Error::Unsupported {
                feature: format!("a grid of {} workgroups", grid.workgroup_count()),
                backend: crate::NAME,
                help: "let each invocation do more".to_owned(),
            });
        };
        stop.check(deadline)?;
        if total == 0 {
            return Ok(());
        }
        let none = Bound { base: std::ptr::without_provenance_mut(16), count: 0 };
        let mut buffers = vec![none; pipeline.buffers];
        for ((number, slot), (base, bytes)) in pipeline.bound.iter().zip(pipeline.plan.slots()).zip(bindings)
        {
            buffers[*number] = Bound { base: *base, count: bytes / slot.element().size() as u64 };
        }
        let work = work(pipeline, grid, total);
        let members = self.members(work, total);
        let what = "what workgroups keep between grid barriers";
        let kept_bytes = total.saturating_mul(pipeline.kept_bytes);
        let kept = Memory::zeroed(kept_bytes, self.placement, what)?;
        let frames = if pipeline.frame_bytes == 0 { 0 } else { members };
        let frame = |_| Memory::zeroed(pipeline.frame_bytes, self.placement, "workgroup and local memory");
        let frames = (0..frames).map(frame).collect::<Result<Vec<Memory>>>()?;
        let launch = Launch {
            context: Context {
                buffers: buffers.as_ptr(),
                workgroups: grid.workgroups(),
                stop: stop.flag(),
                kept: kept.start(),
                zero: 0,
                calls: CALLS,
                left: Left::default(),
            },
            stop,
            shares: Shares::new(total, members, part(work, members, total)),
            trapped: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            trap: Mutex::new(None),
        };
        let entry = pipeline.code.entry();
        let stack = pipeline.stack_bytes as usize;
        let job = |team: &Team, member: usize| {
            let frame = frames.get(member).map_or(std::ptr::null_mut(), Memory::start);
            let context: *const Launch<'_> = &launch;
            let mut worker = Worker { end: 0, place: Place::of(member), team };
            // SAFETY: the code was made for this context: it stays inside the buffers, the frame and what is kept,
            // which all live until the run ends, and calls only what the context names.
            let mut work = || unsafe { entry(context.cast(), frame, &mut worker) };
            // Code of huge programs keeps more values than the stack of a thread takes.
            if stack > SMALL_STACK {
                stacker::maybe_grow(stack + OTHERS_STACK, stack + 2 * OTHERS_STACK, work)
            } else {
                work()
            }
        };
        // Helpers that come too late for the first barrier come too late for all of them.
        if pipeline.segmented {
            self.pool.run_together(members, &job)
        } else {
            self.pool.run(members, &job)
        }
        // Work that was stopped has not done all that could trap.
        stop.check(deadline)?;
        if let Some((invocation, tag, value)) = *launch.trap.lock().unwrap_or_else(PoisonError::into_inner) {
            let tag = pipeline.tags.get(tag as usize).cloned();
            let tag = tag.ok_or_else(|| Error::Internal("a trap without a tag".to_owned()))?;
            return Err(Error::Trap(Trap { tag, value, invocation }));
        }
        if launch.broken.load(Ordering::Relaxed) {
            return Err(Error::Internal("workers did not meet at a grid barrier".to_owned()));
        }
        Ok(())
    }

    /// How many threads take part. A launch with grid barriers is no other: where there is so little to do in a segment,
    /// meeting at its end takes longer than doing it alone.
    fn members(&self, work: u64, total: u64) -> usize {
        if work < self.share_from {
            return 1;
        }
        self.threads.min(usize::try_from(total).unwrap_or(usize::MAX)).max(1)
    }
}

/// About how many operations a grid does.
fn work(pipeline: &CpuPipeline, grid: Grid, total: u64) -> u64 {
    let invocations: u64 = grid.workgroup_size().iter().map(|n| u64::from(*n)).product();
    total.saturating_mul(invocations).saturating_mul(u64::from(pipeline.weight.max(1)))
}

/// How many workgroups a worker takes at once: a part of its share, or more where that is hardly any work.
fn part(work: u64, members: usize, total: u64) -> u64 {
    let share = total / members as u64;
    let worthwhile = PART / (work / total).max(1);
    (share / PARTS).max(worthwhile.min(share)).clamp(1, MAX_PART)
}

/// The functions that generated code calls.
const CALLS: Calls = Calls {
    take,
    meet,
    arrive,
    open,
    trap,
    fetch: calls::fetch,
    zero: calls::zero,
    subgroup: calls::subgroup,
    widen: calls::widen,
    narrow: calls::narrow,
    fma: calls::fma,
    round: calls::round,
};

/// What generated code was given.
///
/// # Safety
/// As for the functions that generated code calls: the context is that of a launch, the worker that of the caller, and
/// both live until the run ends.
unsafe fn given<'a>(
    context: *const Context,
    worker: *mut Worker<'a>,
) -> (&'a Launch<'a>, &'a mut Worker<'a>) {
    // SAFETY: the context is the first field of a launch, and the worker belongs to the thread that calls.
    unsafe { (&*context.cast::<Launch<'_>>(), &mut *worker) }
}

/// Takes workgroups of the segment at hand.
///
/// # Safety
/// Called by generated code with what it was given.
unsafe extern "C" fn take(context: *const Context, worker: *mut Worker<'_>) -> u64 {
    // SAFETY: as promised.
    let (launch, worker) = unsafe { given(context, worker) };
    let Some((first, end)) = launch.shares.take(&mut worker.place) else { return NONE_LEFT };
    worker.end = end;
    first
}

/// Meets the other workers. At a barrier of the program the launch ends if an invocation has trapped.
///
/// # Safety
/// Called by generated code with what it was given.
unsafe extern "C" fn meet(context: *const Context, worker: *mut Worker<'_>, is_barrier: u32) -> u32 {
    // SAFETY: as promised.
    let (launch, worker) = unsafe { given(context, worker) };
    launch.shares.renew_own(&worker.place);
    let goes_on = worker.team.barrier_with(launch.stop.flag(), || launch.prepare_next(worker));
    launch.after(worker, goes_on, is_barrier != 0) as u32
}

/// Meets the other workers at a barrier of the program, before a turn in generated code.
///
/// # Safety
/// Called by generated code with what it was given.
unsafe extern "C" fn arrive(context: *const Context, worker: *mut Worker<'_>) -> u32 {
    // SAFETY: as promised.
    let (launch, worker) = unsafe { given(context, worker) };
    launch.shares.renew_own(&worker.place);
    let arrival = worker.team.arrive(launch.stop.flag());
    if arrival == Arrival::Last {
        launch.prepare_next(worker);
    }
    let next = launch.after(worker, arrival != Arrival::Off, true);
    let next = match (arrival, next) {
        (Arrival::Last, Next::GoOn) => Next::Turn,
        (Arrival::Last, _) => {
            worker.team.open();
            next
        }
        _ => next,
    };
    next as u32
}

/// Ends the turn that [`arrive`] gave.
///
/// # Safety
/// Called by generated code with what it was given.
unsafe extern "C" fn open(worker: *mut Worker<'_>) {
    // SAFETY: as promised.
    unsafe { (*worker).team.open() }
}

impl Launch<'_> {
    /// What the last to arrive does for the next segment, alone.
    fn prepare_next(&self, worker: &Worker<'_>) {
        self.shares.renew_absent(&worker.place, worker.team.members());
        // It is mostly as it was. Writing would take it away from the others, who are about to read it.
        let (left, trapped) = (&self.context.left.trapped, u32::from(self.trapped.load(Ordering::Relaxed)));
        if left.load(Ordering::Relaxed) != trapped {
            left.store(trapped, Ordering::Relaxed);
        }
    }

    /// What each does after a meeting, or one that was called off.
    fn after(&self, worker: &mut Worker<'_>, goes_on: bool, is_barrier: bool) -> Next {
        worker.place.next();
        if !goes_on {
            self.broken.store(true, Ordering::Relaxed);
            return Next::Leave;
        }
        let trapped = self.context.left.trapped.load(Ordering::Relaxed) != 0;
        if is_barrier && trapped { Next::Leave } else { Next::GoOn }
    }
}

/// Notes that an invocation trapped. The smallest one is kept.
///
/// # Safety
/// Called by generated code with what it was given.
unsafe extern "C" fn trap(context: *const Context, tag: u32, value: u32, invocation: u64) {
    // SAFETY: the context is the first field of a launch, which lives until the run ends.
    let launch = unsafe { &*context.cast::<Launch<'_>>() };
    launch.trapped.store(true, Ordering::Relaxed);
    let mut smallest = launch.trap.lock().unwrap_or_else(PoisonError::into_inner);
    if smallest.is_none_or(|(other, ..)| invocation < other) {
        *smallest = Some((invocation, tag, value));
    }
}
