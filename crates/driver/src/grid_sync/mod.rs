//! Grid barriers without the device's help: a program becomes segments, and one engine runs them.
//!
//! [`try_split_on_grid_sync`] turns a program into a [`Schedule`]: launches of segments, loops and branches that the
//! engine carries out, and hidden storage for what invocations hold across a barrier. `README.md` beside this file
//! explains what is saved, why a barrier in a loop cannot be skipped or deadlock, and how convergence is decided.
//!
//! | module | what it holds |
//! |---|---|
//! | `shape` | the grid level of a kernel: places between barriers, and the control that holds barriers |
//! | `origins`, `crossing` | which values each part needs from those before it, and which are computed again |
//! | `slots` | where what crosses is kept |
//! | `cut`, `rows` | segments as kernels of their own |
//! | `planner`, `schedule`, `show` | the schedule, and how it is drawn |
//! | `formula`, `facts`, `machine` | uniform values as the engine computes them, and its way through a schedule |
//! | `resident`, `host` | the engine over memory of the device, and over memory of the host |

mod crossing;
mod cut;
mod facts;
mod formula;
mod host;
mod machine;
mod origins;
mod planner;
mod resident;
mod rows;
mod schedule;
mod shape;
mod show;
mod slots;

pub(crate) use facts::Facts;
pub use formula::Formula;
pub(crate) use host::Stage;
pub(crate) use machine::Machine;
pub(crate) use resident::Position;
pub use schedule::{Binding, Carried, Extent, Given, Hidden, Node, Purpose, Schedule, Segment, Storage};
pub use show::Traffic;

use crate::error::Result;
use crate::unit::Unit;
use std::sync::Arc;
use vyre_foundation::Program;

/// Whether a program holds a grid barrier: `barrier(grid)` or a grid `uniform_load`.
///
/// ```
/// use vyre_driver::grid_sync::contains_grid_sync;
/// use vyre_foundation::Program;
/// let program = Program::parse("program p { buffer o: output u32[1]; barrier(grid); o[0] = 1; }").unwrap();
/// assert!(contains_grid_sync(&program));
/// ```
pub fn contains_grid_sync(program: &Program) -> bool {
    program.stats().grid_barriers > 0
}

/// The schedule of a program, without a device. A program without grid barriers is one segment.
///
/// ```
/// use vyre_driver::grid_sync::try_split_on_grid_sync;
/// use vyre_foundation::Program;
/// let text = "program p { buffer o: read_write u32[]; let i = global_id.x; let x = o[i];
///     barrier(grid); o[(i + 1) % len(o)] = x; }";
/// let schedule = try_split_on_grid_sync(&Program::parse(text).unwrap())?;
/// assert_eq!(schedule.segments().len(), 2);
/// // One word per invocation is held across the barrier.
/// assert_eq!(schedule.hidden().iter().map(|hidden| hidden.bytes).sum::<u64>(), 4);
/// # Ok::<(), vyre_driver::Error>(())
/// ```
pub fn try_split_on_grid_sync(program: &Program) -> Result<Arc<Schedule>> {
    Unit::of(program)?.schedule()
}

/// The programs of a schedule's segments. Each takes what it reads and returns what it may have written, so that whoever
/// carries the bytes from one to the next, in the order that the schedule says, has run the program.
pub fn plan_host_grid_sync_segment_programs(program: &Program) -> Result<Vec<Program>> {
    let schedule = try_split_on_grid_sync(program)?;
    Ok(schedule.segments().iter().map(|segment| segment.program().clone()).collect())
}

/// Plans a program that was validated.
pub(crate) fn plan(unit: &Unit) -> Result<Schedule> {
    planner::plan(unit.program(), unit.kernel())
}
