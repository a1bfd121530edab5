//! Sets of small numbers as bits of words: number `i` is bit `i % 32` of word `i / 32`.
//!
//! Numbers beyond the last word are in no set: testing gives false, adding and removing do nothing.

use crate::op::Op;
use crate::reduce::Reduce;
use crate::team::{Lanes, Team};
use vyre_foundation::build::prelude::*;

/// How two sets become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Algebra {
    /// What is in both.
    And,
    /// What is in one of them.
    Or,
    /// What is in exactly one of them.
    Xor,
    /// What is in the first and not in the second.
    AndNot,
}

impl Algebra {
    /// All of them.
    pub const ALL: [Algebra; 4] = [Algebra::And, Algebra::Or, Algebra::Xor, Algebra::AndNot];

    /// One word, in a program.
    pub fn of(self, a: Value<u32>, b: Value<u32>) -> Value<u32> {
        match self {
            Algebra::And => a & b,
            Algebra::Or => a | b,
            Algebra::Xor => a ^ b,
            Algebra::AndNot => a & !b,
        }
    }

    /// One word, on the host.
    pub fn combine(self, a: u32, b: u32) -> u32 {
        match self {
            Algebra::And => a & b,
            Algebra::Or => a | b,
            Algebra::Xor => a ^ b,
            Algebra::AndNot => a & !b,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Algebra::And => "and",
            Algebra::Or => "or",
            Algebra::Xor => "xor",
            Algebra::AndNot => "and_not",
        }
    }
}

/// Where a number is: its word, and the bit in it.
fn place(i: Value<u32>) -> (Value<u32>, Value<u32>) {
    (i / 32, Value::from(1) << (i % 32))
}

/// Whether `i` is in a set that nobody changes before the next barrier.
///
/// ```
/// use vyre_foundation::build::prelude::*;
/// use vyre_primitives::{Lanes, Team, bitset};
///
/// vyre_foundation::build::program("keep", |k| {
///     let team = Team::new(k, Lanes::default());
///     let (set, x) = (k.read::<u32>("set"), k.read_write::<u32>("x"));
///     team.for_each(k, x.len(), |i| {
///         k.if_(!bitset::test(set, i), || x.store(i, 0));
///     });
/// })?;
/// # Ok::<(), BuildError>(())
/// ```
#[must_use]
pub fn test<A: access::Load>(set: Buffer<u32, A>, i: impl IntoValue<u32>) -> Value<bool> {
    let (word, bit) = place(i.into_value());
    (set.load(word) & bit).ne(0)
}

/// Whether `i` is in a set that others may change meanwhile.
#[must_use]
pub fn test_shared<A: access::Atomic>(set: Buffer<u32, A>, i: impl IntoValue<u32>) -> Value<bool> {
    let (word, bit) = place(i.into_value());
    (set.atomic_load(word) & bit).ne(0)
}

/// Adds `i`; gives whether it was missing. Of several invocations that add it, one is told so.
pub fn set<A: access::Atomic>(set: Buffer<u32, A>, i: impl IntoValue<u32>) -> Value<bool> {
    let i = i.into_value();
    let (word, bit) = place(i);
    // An atomic outside the buffer gives 0.
    (set.atomic_or(word, bit) & bit).eq(0).and(word.lt(set.len()))
}

/// Removes `i`; gives whether it was there. Of several invocations that remove it, one is told so.
pub fn clear<A: access::Atomic>(set: Buffer<u32, A>, i: impl IntoValue<u32>) -> Value<bool> {
    let (word, bit) = place(i.into_value());
    (set.atomic_and(word, !bit) & bit).ne(0)
}

/// Makes `out` the combination of `a` and `b`, over the words of `out`. `out` may be one of them. Synchronises the
/// workgroup; others see the result after a grid barrier.
pub fn combine<A, B, C>(
    k: &Kernel,
    team: Team,
    algebra: Algebra,
    a: Buffer<u32, A>,
    b: Buffer<u32, B>,
    out: Buffer<u32, C>,
) where
    A: access::Load,
    B: access::Load,
    C: access::Store + access::Shared,
{
    team.for_each(k, out.len(), |word| out.store(word, algebra.of(a.load(word), b.load(word))));
}

/// Counts the members, which `sum`, a sum, then has as its result. Synchronises the grid.
pub fn count<A: access::Load>(k: &Kernel, sum: Reduce<u32>, set: Buffer<u32, A>) {
    sum.run(k, set.len(), |word| set.load(word).popcount());
}

/// The program: combines a set with another one. It cannot fail: every operation is a valid program.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `a` | `read_write` | `u32` | any | the first set, then the result |
/// | `b` | `read` | `u32` | any | the second set; where it is shorter nothing is in it |
///
/// Any grid will do; without one there is a workgroup for each 256 words.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_primitives::{Lanes, bitset};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = vyre_driver::acquire("cpu")?;
/// let a = backend.device_buffer_from(&[0b1100u32, 1])?;
/// let b = backend.device_buffer_from(&[0b1010u32])?;
/// let program = bitset::algebra_program(Lanes::default(), bitset::Algebra::AndNot);
/// backend.dispatch_with_device_buffers(&program, &[&a, &b], &DispatchConfig::new())?;
/// assert_eq!(a.download()?, [0b0100, 1]);
/// # Ok(())
/// # }
/// ```
pub fn algebra_program(lanes: Lanes, algebra: Algebra) -> Program {
    crate::program(&format!("bitset_{}", algebra.name()), |k| {
        let team = Team::new(k, lanes);
        let (a, b) = (k.read_write::<u32>("a"), k.read::<u32>("b"));
        combine(k, team, algebra, a, b, a);
    })
}

/// What happens to numbers that are listed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// They are added.
    Set,
    /// They are removed.
    Clear,
}

/// The program: adds numbers to a set or removes them, and tells which made a difference. It cannot fail: both changes
/// are valid programs.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `numbers` | `read` | `u32` | any | which numbers, in any order, also several times |
/// | `bits` | `read_write` | `u32` | any | the set |
/// | `changed` | `output` | `u32` | 1 | by how many members the set has grown or shrunk |
///
/// Any grid will do; without one there is a workgroup for each 256 words.
pub fn change_program(lanes: Lanes, change: Change) -> Program {
    let name = if change == Change::Set { "bitset_set" } else { "bitset_clear" };
    crate::program(name, |k| {
        let team = Team::new(k, lanes);
        let numbers = k.read::<u32>("numbers");
        let bits = k.read_write::<u32>("bits");
        let changed = k.output::<u32>("changed").with_count(1);
        team.for_each(k, numbers.len(), |i| {
            let number = numbers.load(i);
            let differs = match change {
                Change::Set => set(bits, number),
                Change::Clear => clear(bits, number),
            };
            k.if_(differs, || {
                changed.atomic_add(0, 1);
            });
        });
    })
}

/// The program: which numbers are in a set. It has no parameters that could make it fail.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `numbers` | `read` | `u32` | any | which numbers |
/// | `bits` | `read` | `u32` | any | the set |
/// | `found` | `write` | `u32` | that of `numbers` | 1 for each number that is in it, else 0 |
///
/// Any grid will do; without one there is a workgroup for each 256 numbers.
pub fn test_program(lanes: Lanes) -> Program {
    crate::program("bitset_test", |k| {
        let team = Team::new(k, lanes);
        let (numbers, bits) = (k.read::<u32>("numbers"), k.read::<u32>("bits"));
        let found = k.write::<u32>("found");
        team.for_each(k, numbers.len(), |i| found.store(i, test(bits, numbers.load(i)).cast::<u32>()));
    })
}

/// The program: how many members a set has. It has no parameters that could make it fail.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `bits` | `read` | `u32` | any | the set |
/// | `count` | `output` | `u32` | 1 | how many members it has |
///
/// The grid must be given: one workgroup is the default.
pub fn count_program(lanes: Lanes) -> Program {
    crate::program("bitset_count", |k| {
        let team = Team::new(k, lanes);
        let bits = k.read::<u32>("bits");
        let result = k.output::<u32>("count").with_count(1);
        let sum = Reduce::new(k, team, "members", Op::Sum);
        count(k, sum, bits);
        team.once(k, || result.store(0, sum.result()));
    })
}

/// The oracle of [`algebra_program`]: what `a` becomes.
pub fn algebra_oracle(algebra: Algebra, a: &[u32], b: &[u32]) -> Vec<u32> {
    let b = b.iter().copied().chain(std::iter::repeat(0));
    a.iter().zip(b).map(|(a, b)| algebra.combine(*a, b)).collect()
}

/// The oracle of [`change_program`]: changes the set and gives by how many members.
pub fn change_oracle(change: Change, numbers: &[u32], bits: &mut [u32]) -> u32 {
    let before = count_oracle(bits);
    for number in numbers {
        let bit = 1 << (number % 32);
        if let Some(word) = bits.get_mut(*number as usize / 32) {
            *word = if change == Change::Set { *word | bit } else { *word & !bit };
        }
    }
    count_oracle(bits).abs_diff(before)
}

/// The oracle of [`test_program`]: whether a number is in a set.
pub fn test_oracle(bits: &[u32], number: u32) -> bool {
    bits.get(number as usize / 32).is_some_and(|word| word >> (number % 32) & 1 == 1)
}

/// The oracle of [`count_program`]: how many members a set has.
pub fn count_oracle(bits: &[u32]) -> u32 {
    bits.iter().map(|word| word.count_ones()).sum()
}
