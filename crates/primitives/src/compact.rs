//! Stream compaction: the indices for which something holds, without gaps and in order.
//!
//! A scan that counts tells each index that is kept where it goes.

use crate::op::Op;
use crate::scan::Scan;
use crate::team::{Lanes, Team};
use vyre_foundation::build::prelude::*;

/// The fragment: memory for compactions, for any number of them, one after the other.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_foundation::build::prelude::*;
/// use vyre_primitives::{Compact, Lanes, Team};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // The even numbers of `x`.
/// let program = vyre_foundation::build::program("evens", |k| {
///     let team = Team::new(k, Lanes::default());
///     let x = k.read::<u32>("x");
///     let evens = k.write::<u32>("evens");
///     let compact = Compact::new(k, team, "compact");
///     let is_even = |i| (x.load(i) % 2).eq(0);
///     compact.run(k, x.len(), is_even, |i, position| evens.store(position, x.load(i)));
/// })?;
/// let backend = vyre_driver::acquire("cpu")?;
/// let x = backend.device_buffer_from(&[3u32, 4, 8, 1, 6])?;
/// let evens = backend.device_buffer::<u32>(5)?;
/// backend.dispatch_with_device_buffers(&program, &[&x, &evens], &DispatchConfig::new())?;
/// assert_eq!(evens.download()?, [4, 8, 6, 0, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Compact {
    scan: Scan<u32>,
}

impl Compact {
    /// Declares the memory, that of a [`Scan`].
    pub fn new(k: &Kernel, team: Team, name: &str) -> Compact {
        Compact { scan: Scan::new(k, team, name, Op::Sum) }
    }

    /// The same with the memory of a scan that sums, which the program has for other reasons.
    pub fn with(scan: Scan<u32>) -> Compact {
        Compact { scan }
    }

    /// Calls `emit` for each index below `n` that `keep` holds for, with how many of those come before it. Synchronises
    /// the grid; `n` is uniform for the workgroup.
    ///
    /// `keep` is evaluated up to three times for each index and must give the same each time. Afterwards what `emit`
    /// wrote is visible to all, and every invocation has the [`count`](Compact::count).
    pub fn run(
        self,
        k: &Kernel,
        n: impl IntoValue<u32>,
        keep: impl Fn(Value<u32>) -> Value<bool>,
        emit: impl FnOnce(Value<u32>, Value<u32>),
    ) {
        let flag = |i| keep(i).cast::<u32>();
        self.scan.each(k, n, flag, |item| {
            k.if_(item.value.ne(0), || emit(item.index, item.before));
        });
    }

    /// How many the last [`run`](Compact::run) kept.
    #[must_use]
    pub fn count(self) -> Value<u32> {
        self.scan.total()
    }

    /// The same as a value that is uniform for the grid, for conditions around barriers and for counts. Synchronises
    /// the grid, which costs nothing right after a compaction.
    #[must_use]
    pub fn uniform_count(self) -> Value<u32> {
        self.scan.uniform_total()
    }
}

/// The program: which flags are set. It has no parameters that could make it fail.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `flags` | `read` | `u32` | any | 0 leaves an index out, anything else keeps it |
/// | `kept` | `output` | `u32` | that of `flags`, or as many as are wanted | the indices that are kept, ascending, then zeros |
/// | `count` | `output` | `u32` | 1 | how many are kept, also those for which `kept` is too short |
///
/// Any grid will do; without one there is a workgroup for each 256 elements, of which 256 take part.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_primitives::{Lanes, compact};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = vyre_driver::acquire("cpu")?;
/// let flags = backend.device_buffer_from(&[0u32, 1, 0, 7, 1])?;
/// let kept = backend.device_buffer::<u32>(5)?;
/// let count = backend.device_buffer::<u32>(1)?;
/// let program = compact::program(Lanes::default());
/// backend.dispatch_with_device_buffers(&program, &[&flags, &kept, &count], &DispatchConfig::new())?;
/// assert_eq!(kept.download()?, [1, 3, 4, 0, 0]);
/// assert_eq!(count.download()?, [3]);
/// # Ok(())
/// # }
/// ```
pub fn program(lanes: Lanes) -> Program {
    crate::program("compact", |k| {
        let team = Team::new(k, lanes);
        let flags = k.read::<u32>("flags");
        let kept = k.output::<u32>("kept");
        let count = k.output::<u32>("count").with_count(1);
        let compact = Compact::new(k, team, "compact");
        compact.run(k, flags.len(), |i| flags.load(i).ne(0), |i, position| kept.store(position, i));
        team.once(k, || count.store(0, compact.count()));
    })
}

/// The oracle: the indices of the flags that are not 0.
pub fn oracle(flags: &[u32]) -> Vec<u32> {
    (0..).zip(flags).filter(|(_, flag)| **flag != 0).map(|(index, _)| index).collect()
}
