//! Prefix sums: for each element, what the elements before it give together.
//!
//! The elements are taken in *tiles* of [`ITEMS`] for each lane, and each workgroup takes a stretch of tiles. A first
//! sweep gives what each workgroup's elements give together; after a grid barrier each workgroup knows what comes before
//! its own, and a second sweep gives the prefixes. So there are two grid barriers whatever the length is, and the last
//! stretch, which nobody comes after, is not swept twice.

use crate::block::{Begin, Block};
use crate::op::{Op, Word};
use crate::reduce::MOST_GROUPS;
use crate::team::{Lanes, Stretch, Team, divide_up};
use vyre_foundation::build::prelude::*;

/// How many elements of a tile a lane has. Many, so that little of the work is between lanes.
pub const ITEMS: u32 = 16;

/// Whether an element itself counts to its prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// It does not: the first prefix is that of nothing.
    Exclusive,
    /// It does: the last prefix is that of all.
    Inclusive,
}

/// An element with what stands before it.
#[derive(Clone, Copy, Debug)]
pub struct Item<T: Word> {
    /// Which one.
    pub index: Value<u32>,
    /// What the input gave for it.
    pub value: Value<T>,
    /// What the elements before it give together.
    pub before: Value<T>,
}

/// The fragment: memory for scans with one operator, for any number of them, one after the other.
///
/// Input and output are closures: values can be computed where they are wanted, and results can go anywhere. The input is
/// evaluated up to three times for each element, so it must give the same each time; the output may overwrite what
/// the input read for the same element.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_foundation::build::prelude::*;
/// use vyre_primitives::{Lanes, Op, Scan, Team};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // The highest water level to the left of each place, in place.
/// let program = vyre_foundation::build::program("highest", |k| {
///     let team = Team::new(k, Lanes::default());
///     let level = k.read_write::<i32>("level");
///     let scan = Scan::new(k, team, "scan", Op::Max);
///     scan.inclusive(k, level.len(), |i| level.load(i), |i, highest| level.store(i, highest));
/// })?;
/// let backend = vyre_driver::acquire("cpu")?;
/// let level = backend.device_buffer_from(&[-3i32, 2, 1, 7, 5])?;
/// backend.dispatch_with_device_buffers(&program, &[&level], &DispatchConfig::new())?;
/// assert_eq!(level.download()?, [-3, 2, 2, 7, 7]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Scan<T: Word> {
    team: Team,
    op: Op,
    block: Block<T>,
    /// What the stretch of each workgroup gives.
    sums: Buffer<T, access::Scratch>,
    total: Buffer<T, access::Scratch>,
}

impl<T: Word> Scan<T> {
    /// Declares the memory: `{name}_sums` and `{name}_total` (scratch), `{name}_part` and `{name}_runs` (workgroup).
    pub fn new(k: &Kernel, team: Team, name: &str, op: Op) -> Scan<T> {
        Scan {
            team,
            op,
            block: Block::new(k, team, name, op),
            sums: k.scratch(format!("{name}_sums")).with_count(MOST_GROUPS),
            total: k.scratch(format!("{name}_total")).with_count(1),
        }
    }

    /// Calls `output` with each index below `n` and its exclusive prefix. Synchronises the grid; `n` is uniform for the
    /// workgroup. See [`each`](Scan::each).
    pub fn exclusive(
        self,
        k: &Kernel,
        n: impl IntoValue<u32>,
        input: impl Fn(Value<u32>) -> Value<T>,
        output: impl FnOnce(Value<u32>, Value<T>),
    ) {
        self.each(k, n, input, |item| output(item.index, item.before));
    }

    /// Calls `output` with each index below `n` and its inclusive prefix. Synchronises the grid; `n` is uniform for the
    /// workgroup. See [`each`](Scan::each).
    pub fn inclusive(
        self,
        k: &Kernel,
        n: impl IntoValue<u32>,
        input: impl Fn(Value<u32>) -> Value<T>,
        output: impl FnOnce(Value<u32>, Value<T>),
    ) {
        self.each(k, n, input, |item| output(item.index, self.op.of(item.before, item.value)));
    }

    /// Calls `output` for each element below `n`. Synchronises the grid; `n` is uniform for the workgroup.
    ///
    /// What was written before is visible to `input` only if a grid barrier stands between. Afterwards what `output`
    /// wrote is visible to all, and every invocation has the [`total`](Scan::total).
    pub fn each(
        self,
        k: &Kernel,
        n: impl IntoValue<u32>,
        input: impl Fn(Value<u32>) -> Value<T>,
        output: impl FnOnce(Item<T>),
    ) {
        let n = n.into_value();
        k.region("vyre_primitives::scan", || {
            // Nothing is one empty tile, so that somebody tells the total.
            let tiles = divide_up(n, self.team.lanes() * ITEMS).max(1);
            let mine = self.team.stretch(tiles, Some(MOST_GROUPS));
            let some = mine.first.lt(mine.end);
            k.if_(some.and(mine.end.lt(tiles)), || self.sum_up(k, mine, &input));
            k.barrier(Scope::Grid);
            k.if_(some, || {
                self.offset(k);
                k.for_named("tile", mine.first, mine.end, |tile| self.tile(k, tile, n, &input, output));
                let is_last = mine.end.eq(tiles).and(self.team.lane().eq(0));
                k.if_(is_last, || self.total.store(0, self.block.carry()));
            });
            k.barrier(Scope::Grid);
        });
    }

    /// What a stretch that is not the last one gives: all of its tiles are full.
    fn sum_up(self, k: &Kernel, mine: Stretch, input: &impl Fn(Value<u32>) -> Value<T>) {
        let (team, block) = (self.team, self.block);
        block.set(block.identity());
        k.for_named("row", mine.first * ITEMS, mine.end * ITEMS, |row| {
            block.add(input(row * team.lanes() + team.lane()));
            // One row after the other, see `Team::each_row`.
            k.barrier(Scope::Workgroup);
        });
        block.fold(k, Begin::Empty);
        team.once_in_group(k, || self.sums.store(team.group(), block.carry()));
    }

    /// Makes what the workgroups before this one give the carry.
    fn offset(self, k: &Kernel) {
        let (team, block) = (self.team, self.block);
        block.set(block.identity());
        team.for_each_in_group(k, team.group(), |group| block.add(self.sums.load(group)));
        block.fold(k, Begin::Empty);
    }

    /// One tile of the second sweep. Each lane goes through elements side by side, twice.
    fn tile(
        self,
        k: &Kernel,
        tile: Value<u32>,
        n: Value<u32>,
        input: &impl Fn(Value<u32>) -> Value<T>,
        output: impl FnOnce(Item<T>),
    ) {
        let (team, op, block) = (self.team, self.op, self.block);
        let base = tile * (team.lanes() * ITEMS);
        let first = team.lane() * ITEMS;
        let end = (first + ITEMS).min(n - base);
        let sum = k.var("sum", block.identity());
        k.for_named("at", first, end, |at| sum.set(op.of(sum.get(), input(base + at))));
        block.set(sum.get());
        block.fold(k, Begin::Carry);
        let before = k.var("before", block.before());
        k.for_named("at", first, end, |at| {
            let index = base + at;
            let (value, so_far) = (input(index), before.get());
            output(Item { index, value, before: so_far });
            before.set(op.of(so_far, value));
        });
    }

    /// What all elements of the last scan give together.
    #[must_use]
    pub fn total(self) -> Value<T> {
        self.total.load(0)
    }

    /// The same as a value that is uniform for the grid, for conditions around barriers and for counts. Synchronises
    /// the grid, which costs nothing right after a scan.
    #[must_use]
    pub fn uniform_total(self) -> Value<T> {
        self.total.grid_uniform_load(0)
    }
}

/// The program: scans a buffer in place. It cannot fail: every choice of type, operator and kind is a valid program.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `data` | `read_write` | `T` | any | the elements, then their prefixes |
/// | `total` | `output` | `T` | 1 | what all elements give together |
///
/// Any grid will do; without one there is a workgroup for each 256 elements, of which 256 take part.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_primitives::{Lanes, Op, scan};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = vyre_driver::acquire("cpu")?;
/// let data = backend.device_buffer_from(&[3u32, 1, 4, 1, 5])?;
/// let total = backend.device_buffer::<u32>(1)?;
/// let program = scan::program::<u32>(Lanes::default(), Op::Sum, scan::Kind::Exclusive);
/// backend.dispatch_with_device_buffers(&program, &[&data, &total], &DispatchConfig::new())?;
/// assert_eq!(data.download()?, [0, 3, 4, 8, 9]);
/// assert_eq!(total.download()?, [14]);
/// # Ok(())
/// # }
/// ```
pub fn program<T: Word>(lanes: Lanes, op: Op, kind: Kind) -> Program {
    let name = match kind {
        Kind::Exclusive => "exclusive",
        Kind::Inclusive => "inclusive",
    };
    crate::program(&format!("{name}_{}", op.name()), |k| {
        let team = Team::new(k, lanes);
        let data = k.read_write::<T>("data");
        let total = k.output::<T>("total").with_count(1);
        let scan = Scan::new(k, team, "scan", op);
        let (n, input) = (data.len(), |i| data.load(i));
        match kind {
            Kind::Exclusive => scan.exclusive(k, n, input, |i, prefix| data.store(i, prefix)),
            Kind::Inclusive => scan.inclusive(k, n, input, |i, prefix| data.store(i, prefix)),
        }
        team.once(k, || total.store(0, scan.total()));
    })
}

/// The oracle: the prefixes and what all elements give together.
pub fn oracle<T: Word>(op: Op, kind: Kind, data: &[T]) -> (Vec<T>, T) {
    let mut sum = op.identity();
    let prefixes = data.iter().map(|value| {
        let before = sum;
        sum = op.combine(sum, *value);
        if kind == Kind::Exclusive { before } else { sum }
    });
    (prefixes.collect(), sum)
}
