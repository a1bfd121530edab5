//! Runs generated code over a grid, on the workers of the pool.

use crate::calls;
use crate::context::{Bound, Context};
use crate::memory::{Memory, Placement};
use crate::pipeline::CpuPipeline;
use crate::pool::{Pool, Team};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use vyre_driver::{Deadline, Error, Result, Stop, Trap};
use vyre_foundation::grid::Grid;

/// A launch in progress. Generated code sees the context; what it calls finds the rest behind it.
#[repr(C)]
struct Launch<'a> {
    context: Context,
    stop: &'a Stop,
    trapped: AtomicBool,
    /// Whether one had trapped when all met. Only the last to arrive says so: a worker that still leaves one barrier
    /// must not see the traps before the next one, or it would leave undone what may trap at a smaller invocation.
    ended: AtomicBool,
    /// Whether a barrier was called off.
    broken: AtomicBool,
    /// The smallest invocation that trapped, with its tag and value.
    trap: Mutex<Option<(u64, u32, u32)>>,
}

// SAFETY: buffers and storage are shared by the workers as the program says; the rest is atomic or locked.
unsafe impl Sync for Launch<'_> {}

/// Into how many parts the work of each thread is cut, so that a thread that is late leaves its parts to others.
const PARTS: u64 = 16;

/// The stack that every thread has left for sure.
const SMALL_STACK: usize = 64 << 10;

/// The stack for what code calls.
const CALLS: usize = 64 << 10;

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
        let members = self.members(pipeline, grid, total);
        let what = "what workgroups keep between grid barriers";
        let kept_bytes = total.saturating_mul(pipeline.kept_bytes);
        let kept = Memory::zeroed(kept_bytes, self.placement, what)?;
        let frames = if pipeline.frame_bytes == 0 { 0 } else { members };
        let frame = |_| Memory::zeroed(pipeline.frame_bytes, self.placement, "workgroup and local memory");
        let frames = (0..frames).map(frame).collect::<Result<Vec<Memory>>>()?;
        let chunk = (total / (members as u64 * PARTS)).clamp(1, 1 << 20) as u32;
        let launch = Launch {
            context: Context {
                buffers: buffers.as_ptr(),
                workgroups: grid.workgroups(),
                chunk,
                total,
                next: AtomicU64::new(0),
                stop: stop.flag(),
                kept: kept.start(),
                calls: calls::table(sync, trap),
            },
            stop,
            trapped: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            trap: Mutex::new(None),
        };
        let entry = pipeline.code.entry();
        let stack = pipeline.stack_bytes as usize;
        self.pool.run(members, &|team: &Team, member: usize| {
            let frame = frames.get(member).map_or(std::ptr::null_mut(), Memory::start);
            let context: *const Launch<'_> = &launch;
            let team: *const Team = team;
            // SAFETY: the code was made for this context: it stays inside the buffers, the frame and what is kept,
            // which all live until the run ends, and calls only what the context names.
            let work = || unsafe { entry(context.cast(), frame, team.cast()) };
            // Code of huge programs keeps more values than the stack of a thread takes.
            if stack > SMALL_STACK {
                stacker::maybe_grow(stack + CALLS, stack + 2 * CALLS, work)
            } else {
                work()
            }
        });
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

    /// How many threads take part.
    fn members(&self, pipeline: &CpuPipeline, grid: Grid, total: u64) -> usize {
        let invocations: u64 = grid.workgroup_size().iter().map(|n| u64::from(*n)).product();
        let work = total.saturating_mul(invocations).saturating_mul(u64::from(pipeline.weight.max(1)));
        if work < self.share_from && !pipeline.segmented {
            return 1;
        }
        self.threads.min(usize::try_from(total).unwrap_or(usize::MAX)).max(1)
    }
}

/// Waits for the other workers. The last one hands out the workgroups anew and, at a barrier of the program, ends the
/// launch if an invocation has trapped.
///
/// # Safety
/// Called by generated code with what it was given.
unsafe extern "C" fn sync(context: *const Context, team: *const c_void, is_barrier: u32) -> u32 {
    // SAFETY: the context is the first field of a launch, and both live until the run ends.
    let (launch, team) = unsafe { (&*context.cast::<Launch<'_>>(), &*team.cast::<Team>()) };
    let goes_on = team.barrier_with(launch.stop.flag(), || {
        launch.context.next.store(0, Ordering::Relaxed);
        let ended = is_barrier != 0 && launch.trapped.load(Ordering::Relaxed);
        launch.ended.store(ended, Ordering::Relaxed);
    });
    if !goes_on {
        launch.broken.store(true, Ordering::Relaxed);
    }
    u32::from(!goes_on || launch.ended.load(Ordering::Relaxed))
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
