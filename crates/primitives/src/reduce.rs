//! Reduction: one value of many.
//!
//! Each workgroup combines a stretch of the elements, then the first one combines what they found. `u32`, `i32`, `u64`
//! and `i64` can be reduced; floats cannot, because the order is not defined and shows in a float's last bits.

use crate::block::{Begin, Block};
use crate::op::{Op, Word};
use crate::team::{Lanes, Team};
use vyre_foundation::build::prelude::*;

/// How many workgroups take part at most.
pub(crate) const MOST_GROUPS: u32 = 256;

/// The fragment: memory for reductions with one operator, for any number of them, one after the other.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_foundation::build::prelude::*;
/// use vyre_primitives::{Lanes, Op, Reduce, Team};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Divides all numbers by the largest.
/// let program = vyre_foundation::build::program("normalise", |k| {
///     let team = Team::new(k, Lanes::default());
///     let x = k.read_write::<u32>("x");
///     let largest = Reduce::new(k, team, "largest", Op::Max);
///     largest.run(k, x.len(), |i| x.load(i));
///     team.for_each(k, x.len(), |i| x.store(i, x.load(i) * 100 / largest.result()));
/// })?;
/// let backend = vyre_driver::acquire("cpu")?;
/// let x = backend.device_buffer_from(&[10u32, 20, 5])?;
/// backend.dispatch_with_device_buffers(&program, &[&x], &DispatchConfig::new())?;
/// assert_eq!(x.download()?, [50, 100, 25]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Reduce<T: Word> {
    team: Team,
    block: Block<T>,
    /// What each workgroup has found.
    sums: Buffer<T, access::Scratch>,
    result: Buffer<T, access::Scratch>,
}

impl<T: Word> Reduce<T> {
    /// Declares the memory: `{name}_sums` and `{name}_result` (scratch), `{name}_part` and `{name}_runs` (workgroup).
    pub fn new(k: &Kernel, team: Team, name: &str, op: Op) -> Reduce<T> {
        Reduce {
            team,
            block: Block::new(k, team, name, op),
            sums: k.scratch(format!("{name}_sums")).with_count(MOST_GROUPS),
            result: k.scratch(format!("{name}_result")).with_count(1),
        }
    }

    /// Combines `input(0)` to `input(n - 1)`. Synchronises the grid; `n` is uniform for the workgroup.
    ///
    /// What was written before is visible to `input` only if a grid barrier stands between. Afterwards every invocation
    /// has the [`result`](Reduce::result).
    pub fn run(self, k: &Kernel, n: impl IntoValue<u32>, input: impl FnOnce(Value<u32>) -> Value<T>) {
        let n = n.into_value();
        k.region("vyre_primitives::reduce", || {
            self.each_group(k, n, input);
            k.barrier(Scope::Grid);
            k.if_(self.team.group().eq(0), || self.combine(k));
            k.barrier(Scope::Grid);
        });
    }

    /// What the elements of this workgroup give.
    fn each_group(self, k: &Kernel, n: Value<u32>, input: impl FnOnce(Value<u32>) -> Value<T>) {
        let (team, block) = (self.team, self.block);
        let mine = team.stretch(team.rows(n), Some(MOST_GROUPS));
        k.if_(mine.first.lt(mine.end), || {
            block.set(block.identity());
            team.each_row(k, mine, n, |i| block.add(input(i)));
            block.fold(k, Begin::Empty);
            team.once_in_group(k, || self.sums.store(team.group(), block.carry()));
        })
        // A workgroup that takes no part may have a number outside: nothing is stored then.
        .else_(|| team.once_in_group(k, || self.sums.store(team.group(), block.identity())));
    }

    /// What the workgroups give together, in one of them.
    fn combine(self, k: &Kernel) {
        let (team, block) = (self.team, self.block);
        let count = team.groups().min(MOST_GROUPS);
        block.set(block.identity());
        team.for_each_in_group(k, count, |group| block.add(self.sums.load(group)));
        block.fold(k, Begin::Empty);
        team.once_in_group(k, || self.result.store(0, block.carry()));
    }

    /// What the last [`run`](Reduce::run) gave; what nothing gives, if it was over nothing.
    #[must_use]
    pub fn result(self) -> Value<T> {
        self.result.load(0)
    }

    /// The same as a value that is uniform for the grid, for conditions around barriers. Synchronises the grid.
    #[must_use]
    pub fn uniform_result(self) -> Value<T> {
        self.result.grid_uniform_load(0)
    }
}

/// The program: reduces a buffer. It cannot fail: every choice of type and operator is a valid program.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `data` | `read` | `T` | any | what to combine |
/// | `result` | `output` | `T` | 1 | what it gives |
///
/// The grid must be given: one workgroup is the default.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_primitives::{Lanes, Op, reduce};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = vyre_driver::acquire("cpu")?;
/// let data = backend.device_buffer_from(&[5i64, -7, 3])?;
/// let result = backend.device_buffer::<i64>(1)?;
/// let program = reduce::program::<i64>(Lanes::default(), Op::Min);
/// let config = DispatchConfig::new().grid([4, 1, 1]);
/// backend.dispatch_with_device_buffers(&program, &[&data, &result], &config)?;
/// assert_eq!(result.download()?, [-7]);
/// # Ok(())
/// # }
/// ```
pub fn program<T: Word>(lanes: Lanes, op: Op) -> Program {
    crate::program(&format!("reduce_{}", op.name()), |k| {
        let team = Team::new(k, lanes);
        let data = k.read::<T>("data");
        let result = k.output::<T>("result").with_count(1);
        let reduce = Reduce::new(k, team, "reduce", op);
        reduce.run(k, data.len(), |i| data.load(i));
        team.once(k, || result.store(0, reduce.result()));
    })
}

/// The oracle: what a sequential loop gives.
pub fn oracle<T: Word>(op: Op, data: &[T]) -> T {
    data.iter().fold(op.identity(), |sum, value| op.combine(sum, *value))
}
