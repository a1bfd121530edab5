//! A lock-free hash table that tells which keys are equal.
//!
//! The table holds *ids*, numbers by which the caller knows its keys; the keys themselves stay where they are. A slot is a
//! `u32`: 0 while it is empty, else an id plus 1. Keys are looked for from the slot that their hash names, one slot after
//! the other, so a table that is at most half full is quick; where the caller says so, first in a few slots near another
//! place. A hash alone never decides: the caller's closure compares the keys.
//!
//! A table can be filled by all invocations at once. Of ids with equal keys the smallest stays, so what the table says
//! does not depend on their order; *where* in the table a key is does, if several have the same hash.

use crate::team::{Lanes, Team};
use std::collections::HashMap;
use std::num::NonZeroU32;
use vyre_foundation::build::prelude::*;

/// What stands for a slot or an id where there is none.
pub const NONE: u32 = u32::MAX;

/// Finds the slot of a key, and puts `id` there if that is empty or has a larger id; gives the slot, or [`NONE`] if the
/// table is full of other keys.
///
/// - `table` was zeros at first, and its length is a power of two; of another length some slots stay empty.
/// - Equal keys have equal hashes.
/// - `same(other)` tells whether the key of `other` is that of `id`. The keys were written before the last barrier
///   between the invocations that fill the table.
/// - `id` is less than [`NONE`].
///
/// After the next barrier `table.load(slot) - 1` is the smallest id that was inserted with this key.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_foundation::build::prelude::*;
/// use vyre_primitives::{Lanes, Team, hash_table};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // How many different points there are.
/// let program = vyre_foundation::build::program("points", |k| {
///     let team = Team::new(k, Lanes::default());
///     let (x, y) = (k.read::<u32>("x"), k.read::<u32>("y"));
///     let count = k.output::<u32>("count").with_count(1);
///     let table = k.scratch::<u32>("table").with_count(16);
///     team.for_each(k, x.len(), |i| {
///         let hash = hash_table::hash([x.load(i), y.load(i)]);
///         let same = |j| x.load(i).eq(x.load(j)).and(y.load(i).eq(y.load(j)));
///         hash_table::insert_or_find(k, table, hash, i, same);
///     });
///     k.barrier(Scope::Grid);
///     team.for_each(k, table.len(), |slot| {
///         k.if_(table.load(slot).ne(0), || {
///             count.atomic_add(0, 1);
///         });
///     });
/// })?;
/// let backend = vyre_driver::acquire("cpu")?;
/// let x = backend.device_buffer_from(&[1u32, 2, 1, 1])?;
/// let y = backend.device_buffer_from(&[5u32, 5, 5, 6])?;
/// let count = backend.device_buffer::<u32>(1)?;
/// backend.dispatch_with_device_buffers(&program, &[&x, &y, &count], &DispatchConfig::new())?;
/// assert_eq!(count.download()?, [3]);
/// # Ok(())
/// # }
/// ```
pub fn insert_or_find<A: access::Atomic>(
    k: &Kernel,
    table: Buffer<u32, A>,
    hash: Value<u32>,
    id: Value<u32>,
    same: impl FnOnce(Value<u32>) -> Value<bool>,
) -> Value<u32> {
    insert_or_find_from(k, table, Start { near: hash, hash }, id, same, |_| true.into())
}

/// Where a key is looked for: first in [`NEAR`] slots from a place on, then from the one that its hash names.
///
/// A hash alone leads everywhere: a table that does not fit a cache makes an invocation wait for memory, and takes its slots
/// away from other cores. Keys that are inserted one after the other and have places side by side stay side by side.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The same for equal keys, and the same for few others.
    pub near: Value<u32>,
    /// The same for equal keys.
    pub hash: Value<u32>,
}

/// How many slots are tried near the place of a key.
pub const NEAR: u32 = 8;

/// As [`insert_or_find`], but from the place of the key on, and a larger id with an equal key gives way only if
/// `gives_way(other)` holds, which is the same for all that are inserted between two barriers: it is how what came before
/// the last barrier stays.
pub fn insert_or_find_from<A: access::Atomic>(
    k: &Kernel,
    table: Buffer<u32, A>,
    start: Start,
    id: Value<u32>,
    same: impl FnOnce(Value<u32>) -> Value<bool>,
    gives_way: impl FnOnce(Value<u32>) -> Value<bool>,
) -> Value<u32> {
    let found = k.var("slot", NONE);
    let entry = id + 1;
    each_slot(k, table, start, |slot| {
        let there = k.var("there", table.atomic_load(slot));
        // Looked at first: most slots on the way are taken, and writing would take them away from other cores.
        k.if_(there.get().eq(0), || there.set(table.atomic_compare_exchange(slot, 0, entry)));
        k.if_(there.get().eq(0), || {
            found.set(slot);
            k.break_();
        });
        k.if_(same(there.get() - 1), || {
            k.if_(entry.lt(there.get()), || {
                k.if_(gives_way(there.get() - 1), || {
                    table.atomic_min(slot, entry);
                });
            });
            found.set(slot);
            k.break_();
        });
    });
    found.get()
}

/// Finds the slot of a key in a table that nobody fills any more; gives the slot, or [`NONE`] if the key is not there.
///
/// `same(id)` tells whether the key of `id` is the one that is looked for.
pub fn lookup<A: access::Load>(
    k: &Kernel,
    table: Buffer<u32, A>,
    hash: Value<u32>,
    same: impl FnOnce(Value<u32>) -> Value<bool>,
) -> Value<u32> {
    let found = k.var("slot", NONE);
    each_slot(k, table, Start { near: hash, hash }, |slot| {
        let there = table.load(slot);
        k.if_(there.eq(0), || k.break_());
        k.if_(same(there - 1), || {
            found.set(slot);
            k.break_();
        });
    });
    found.get()
}

/// Goes through the slots, each at least once.
fn each_slot<A: access::Access>(
    k: &Kernel,
    table: Buffer<u32, A>,
    start: Start,
    body: impl FnOnce(Value<u32>),
) {
    let mask = table.len() - 1;
    // Of a table without slots there are none.
    k.for_named("step", 0, table.len() + table.len().min(NEAR), |step| {
        body((step.lt(NEAR).select(start.near, start.hash) + step) & mask);
    });
}

/// A hash of some words. It is the same as [`hash_of`] on the host.
pub fn hash(words: impl IntoIterator<Item = Value<u32>>) -> Value<u32> {
    finish(words.into_iter().fold(Value::from(SEED), mix))
}

/// A hash of some words, on the host.
pub fn hash_of(words: &[u32]) -> u32 {
    let mixed = words.iter().fold(SEED, |hash, word| {
        (hash ^ word).wrapping_mul(FACTORS[0]).rotate_left(15).wrapping_mul(FACTORS[1])
    });
    let once = (mixed ^ (mixed >> 15)).wrapping_mul(FACTORS[2]);
    once ^ (once >> 16)
}

const SEED: u32 = 0x2545_f491;
/// Odd, so that multiplying loses nothing.
const FACTORS: [u32; 3] = [0x9e37_79b1, 0xc2b2_ae3d, 0x27d4_eb2f];

fn mix(hash: Value<u32>, word: Value<u32>) -> Value<u32> {
    ((hash ^ word) * FACTORS[0]).rotl(15) * FACTORS[1]
}

fn finish(mixed: Value<u32>) -> Value<u32> {
    let once = (mixed ^ (mixed >> 15)) * FACTORS[2];
    once ^ (once >> 16)
}

/// Keys of some words each, one after the other in a buffer.
#[derive(Clone, Copy)]
struct Keys<A: access::Load> {
    data: Buffer<u32, A>,
    words: u32,
}

impl<A: access::Load> Keys<A> {
    fn count(self) -> Value<u32> {
        self.data.len() / self.words
    }

    fn word(self, key: Value<u32>, word: Value<u32>) -> Value<u32> {
        self.data.load(key * self.words + word)
    }

    fn hash(self, k: &Kernel, key: Value<u32>) -> Value<u32> {
        let mixed = k.var("hash", SEED);
        k.for_named("word", 0, self.words, |word| mixed.set(mix(mixed.get(), self.word(key, word))));
        finish(mixed.get())
    }

    fn same<B: access::Load>(
        self,
        k: &Kernel,
        key: Value<u32>,
        others: Keys<B>,
        other: Value<u32>,
    ) -> Value<bool> {
        let same = k.var("same", true);
        k.for_named("word", 0, self.words, |word| {
            k.if_(self.word(key, word).ne(others.word(other, word)), || {
                same.set(false);
                k.break_();
            });
        });
        same.get()
    }
}

/// The program: for each key, the first one that equals it. It cannot fail: every number of words gives a valid program.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `keys` | `read` | `u32` | `words` for each key | the keys, one after the other |
/// | `table` | `output` | `u32` | a power of two, best twice the number of keys | for [`find_program`] |
/// | `first` | `output` | `u32` | one for each key | the smallest index of an equal key |
///
/// With a table of fewer slots than there are different keys, those that find no place get [`NONE`]; which these are may
/// differ from run to run.
///
/// Any grid will do; without one there is a workgroup for each 256 slots.
///
/// ```
/// use std::num::NonZeroU32;
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_primitives::{Lanes, hash_table};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = vyre_driver::acquire("cpu")?;
/// let keys = backend.device_buffer_from(&[7u32, 1, 8, 1, 7, 1])?;
/// let table = backend.device_buffer::<u32>(8)?;
/// let first = backend.device_buffer::<u32>(3)?;
/// let program = hash_table::distinct_program(Lanes::default(), NonZeroU32::MIN.saturating_add(1));
/// backend.dispatch_with_device_buffers(&program, &[&keys, &table, &first], &DispatchConfig::new())?;
/// assert_eq!(first.download()?, [0, 1, 0]);
/// # Ok(())
/// # }
/// ```
pub fn distinct_program(lanes: Lanes, words: NonZeroU32) -> Program {
    crate::program("distinct", |k| {
        let team = Team::new(k, lanes);
        let keys = Keys { data: k.read::<u32>("keys"), words: words.get() };
        let (table, first) = (k.output::<u32>("table"), k.output::<u32>("first"));
        let n = keys.count();
        team.for_each(k, n, |i| {
            let slot = insert_or_find(k, table, keys.hash(k, i), i, |other| keys.same(k, i, keys, other));
            first.store(i, slot);
        });
        k.barrier(Scope::Grid);
        // Where there is no slot, the load is outside and gives 0, which becomes `NONE`.
        team.for_each(k, n, |i| first.store(i, table.load(first.load(i)) - 1));
    })
}

/// The program: looks keys up in a table that [`distinct_program`] has made. It cannot fail: every number of words gives
/// a valid program.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `keys` | `read` | `u32` | `words` for each key | the keys that the table was made of |
/// | `table` | `read` | `u32` | a power of two | the table |
/// | `queries` | `read` | `u32` | `words` for each query | what is looked for |
/// | `found` | `write` | `u32` | one for each query | the smallest index of an equal key, or [`NONE`] |
///
/// Any grid will do; without one there is a workgroup for each 256 queries.
pub fn find_program(lanes: Lanes, words: NonZeroU32) -> Program {
    crate::program("find", |k| {
        let team = Team::new(k, lanes);
        let keys = Keys { data: k.read::<u32>("keys"), words: words.get() };
        let table = k.read::<u32>("table");
        let queries = Keys { data: k.read::<u32>("queries"), words: words.get() };
        let found = k.write::<u32>("found");
        team.for_each(k, queries.count(), |i| {
            let slot = lookup(k, table, queries.hash(k, i), |id| queries.same(k, i, keys, id));
            found.store(i, table.load(slot) - 1);
        });
    })
}

/// The oracle of [`distinct_program`] with a table that is large enough.
pub fn distinct_oracle(keys: &[u32], words: NonZeroU32) -> Vec<u32> {
    let mut first = HashMap::new();
    let keys = (0..).zip(keys.chunks_exact(words.get() as usize));
    keys.map(|(i, key)| *first.entry(key).or_insert(i)).collect()
}

/// The oracle of [`find_program`].
pub fn find_oracle(keys: &[u32], queries: &[u32], words: NonZeroU32) -> Vec<u32> {
    let width = words.get() as usize;
    let mut first = HashMap::new();
    for (i, key) in (0..).zip(keys.chunks_exact(width)) {
        first.entry(key).or_insert(i);
    }
    queries.chunks_exact(width).map(|query| first.get(query).copied().unwrap_or(NONE)).collect()
}
