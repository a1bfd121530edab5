//! Passes as programs of the language, over the columns of a kernel.
//!
//! Rows are gone over level by level: all rows of a level at once, after those that they are made of. `order` holds the
//! numbers of the rows by level, `levels` where each level begins in it, and at last how many rows there are.

use vyre_foundation::Program;
use vyre_foundation::build::BuildError;
use vyre_foundation::build::prelude::*;
use vyre_lower::columns::op;
use vyre_primitives::{Lanes, Team, hash_table};

/// Value numbering: for each row the smallest one that equals it, where operands that are equal count as the same.
///
/// | buffer | access | length | |
/// |---|---|---|---|
/// | `kind` | `read` | rows | as in [`Values`](vyre_lower::columns::Values) |
/// | `a`, `b`, `c` | `read_write` | rows | arguments; those that are rows become those that stand for them |
/// | `order`, `levels` | `read` | rows, levels + 1 | rows by level |
/// | `slot` | `scratch` | rows | where each row is in the table |
/// | `table` | `scratch` | a power of two, at least twice the rows | see [`hash_table`] |
/// | `number` | `output` | rows | what stands for each row |
///
/// All elements are `u32`. There are two barriers of the grid for each level. The result does not depend on the grid: of
/// equal rows the smallest number wins.
pub fn numbering() -> Result<Program, BuildError> {
    vyre_foundation::build::program("numbering", |k| {
        let team = Team::new(k, Lanes::default());
        let kind = k.read::<u32>("kind");
        let args = ["a", "b", "c"].map(|name| k.read_write::<u32>(name));
        let (order, levels) = (k.read::<u32>("order"), k.read::<u32>("levels"));
        let (slot, table) = (k.scratch::<u32>("slot"), k.scratch::<u32>("table"));
        let number = k.output::<u32>("number");
        let stands_for = |row: Value<u32>| table.load(slot.load(row)) - 1;
        k.for_named("level", 0, levels.len() - 1, |level| {
            let first = k.let_("first", levels.load(level));
            let count = k.let_("count", levels.load(level + 1) - first);
            team.for_each(k, count, |i| {
                let row = k.let_("row", order.load(first + i));
                let operands = k.let_("operands", operands(kind.load(row)));
                for (j, arg) in (0..).zip(args) {
                    k.if_(operands.gt(j), || arg.store(row, stands_for(arg.load(row))));
                }
            });
            k.barrier(Scope::Grid);
            team.for_each(k, count, |i| {
                let row = k.let_("row", order.load(first + i));
                let key = |row| [kind.load(row), args[0].load(row), args[1].load(row), args[2].load(row)];
                let own = key(row);
                let same = |other| {
                    let pairs = own.into_iter().zip(key(other));
                    pairs.fold(Value::from(true), |all, (own, other)| all.and(own.eq(other)))
                };
                slot.store(row, hash_table::insert_or_find(k, table, hash_table::hash(own), row, same));
            });
            k.barrier(Scope::Grid);
        });
        team.for_each(k, kind.len(), |row| number.store(row, stands_for(row)));
    })
}

/// How many arguments of a row are rows, by its kind: two bits for each operation.
fn operands(kind: Value<u32>) -> Value<u32> {
    let packed = (op::CONST..=op::OUT).map(|op| (op::operands(op) as u32) << (2 * op)).sum::<u32>();
    Value::from(packed) >> ((kind & 15) * 2) & 3
}
