//! The memory of the program: what is uploaded, what it works in, what is read back.
//!
//! | buffer | access | length | |
//! |---|---|---|---|
//! | `kind`, `a`, `b`, `c`, `level` | `read` | rows | the columns of [`Values`](vyre_lower::columns::Values) |
//! | `known` | `read` | 2 for each | rows that the declarations say: their numbers and what they are |
//! | `item_kind`, `item_0` to `item_3`, `list`, `pairs` | `read` | items | the columns of [`Items`](vyre_lower::columns::Items) |
//! | `home` | `read` | items | the region of each item |
//! | `owner` | `read` | regions | the item that holds each region, and which of its regions that is, in the highest bit |
//! | `pool` | `read` | pool | lists of the kernel |
//! | `heads`, `alternatives`, `code` | `read` | | the rules as words: see `book` |
//! | `rows` | `scratch` | 4 for each row and constant | kind and arguments, side by side |
//! | `link` | `scratch` | rows and constants | what stands for each row: a row, or for a moment a slot of the table, with [`SLOT`] |
//! | `rank` | `scratch` | rows and constants | the level of each row |
//! | `order` | `scratch` | rows and constants | rows by level, then their numbers without gaps |
//! | `counts`, `begins` | `scratch` | levels for each workgroup, levels + 1 | for sorting rows by level |
//! | `table` | `scratch` | a power of two | rows by what they are |
//! | `maker` | `scratch` | constants | which argument each new constant is |
//! | `slots`, `stands` | `scratch` | pool | the rows of parameters and results, and what is to stand for them |
//! | `result`, `stands_for_result` | `scratch` | items | likewise for the results of effects |
//! | `part_of` | `scratch` | regions | the region that each is a part of |
//! | `loads` | `scratch` | a power of two | loads by what they load |
//! | `needed` | `scratch` | a bit for each row, constant and item | what something needs |
//! | `marks` | `scratch` | [`MARKS`] | counters |
//! | `dense` | `output` | 4 for each row, and an eighth more | the rows that stay |
//! | `fate` | `output` | items | what becomes of each item |
//! | `item_0_after` to `item_3_after`, `pool_after` | `output` | items, pool | items and lists with the numbers of the rows that stay |
//! | `tally` | `output` | [`tally::COUNT`] and rules | how often each thing was done |

use super::book::Book;
use crate::rules::RULES;
use vyre_foundation::build::prelude::*;
use vyre_primitives::{Lanes, Team};

/// What `link` has beside a number of a slot.
pub(super) const SLOT: u32 = 1 << 31;

/// The highest bit of `owner`: the second region of a branch.
pub(super) const SECOND: u32 = 1 << 31;

/// How often rows and items are gone over at the most.
pub(super) const ROUNDS: u32 = crate::MOST_ROUNDS as u32;

/// Counters of the grid.
pub(super) mod mark {
    /// How many constants were made.
    pub(crate) const MADE: u32 = 0;
    /// How many levels there are.
    pub(crate) const DEPTH: u32 = 1;
    /// How often a level was raised.
    pub(crate) const RAISED: u32 = 2;
    /// How much was decided about items.
    pub(crate) const DECIDED: u32 = 3;
}

/// How many counters there are.
pub(super) const MARKS: u32 = 4;

/// What is counted for the caller, before the rules.
pub(crate) mod tally {
    /// Something did not fit its memory: what is read back means nothing.
    pub(crate) const OVERFLOW: u32 = 0;
    /// Rows that stay.
    pub(crate) const STAY: u32 = 1;
    /// As in [`Stats`](crate::Stats).
    pub(crate) const CANONICALISED: u32 = 2;
    pub(crate) const MERGED: u32 = 3;
    pub(crate) const LOADS: u32 = 4;
    pub(crate) const BRANCHES: u32 = 5;
    pub(crate) const LOOPS: u32 = 6;
    pub(crate) const CARRIED: u32 = 7;
    /// How many there are. Rules follow, and folding as one more.
    pub(crate) const COUNT: u32 = 8;
}

type Read = Buffer<u32, access::Read>;
type Scratch = Buffer<u32, access::Scratch>;
type Output = Buffer<u32, access::Output>;

/// The program under construction and its memory.
pub(super) struct Machine<'k> {
    pub(super) k: &'k Kernel,
    pub(super) team: Team,
    pub(super) book: &'k Book,
    pub(super) kind: Read,
    pub(super) args: [Read; 3],
    pub(super) level: Read,
    pub(super) known: Read,
    pub(super) item_kind: Read,
    pub(super) item_args: [Read; 4],
    pub(super) list: Read,
    pub(super) pairs: Read,
    pub(super) home: Read,
    pub(super) owner: Read,
    pub(super) pool: Read,
    pub(super) heads: Read,
    pub(super) alternatives: Read,
    pub(super) code: Read,
    pub(super) rows: Scratch,
    pub(super) link: Scratch,
    pub(super) rank: Scratch,
    pub(super) order: Scratch,
    pub(super) counts: Scratch,
    pub(super) begins: Scratch,
    pub(super) table: Scratch,
    pub(super) maker: Scratch,
    pub(super) slots: Scratch,
    pub(super) stands: Scratch,
    pub(super) result: Scratch,
    pub(super) stands_for_result: Scratch,
    pub(super) part_of: Scratch,
    pub(super) loads: Scratch,
    pub(super) needed: Scratch,
    pub(super) marks: Scratch,
    pub(super) dense: Output,
    pub(super) fate: Output,
    pub(super) item_args_after: [Output; 4],
    pub(super) pool_after: Output,
    pub(super) tally: Output,
    /// What the workgroup has counted.
    pub(super) own_tally: Buffer<u32, access::Workgroup>,
}

impl<'k> Machine<'k> {
    /// Declares the memory.
    pub(super) fn new(k: &'k Kernel, book: &'k Book) -> Machine<'k> {
        let team = Team::new(k, Lanes::default());
        let counted = tally::COUNT + RULES.len() as u32 + 1;
        Machine {
            k,
            team,
            book,
            kind: k.read("kind"),
            args: ["a", "b", "c"].map(|name| k.read(name)),
            level: k.read("level"),
            known: k.read("known"),
            item_kind: k.read("item_kind"),
            item_args: ["item_0", "item_1", "item_2", "item_3"].map(|name| k.read(name)),
            list: k.read("list"),
            pairs: k.read("pairs"),
            home: k.read("home"),
            owner: k.read("owner"),
            pool: k.read("pool"),
            heads: k.read("heads"),
            alternatives: k.read("alternatives"),
            code: k.read("code"),
            rows: k.scratch("rows"),
            link: k.scratch("link"),
            rank: k.scratch("rank"),
            order: k.scratch("order"),
            counts: k.scratch("counts"),
            begins: k.scratch("begins"),
            table: k.scratch("table"),
            maker: k.scratch("maker"),
            slots: k.scratch("slots"),
            stands: k.scratch("stands"),
            result: k.scratch("result"),
            stands_for_result: k.scratch("stands_for_result"),
            part_of: k.scratch("part_of"),
            loads: k.scratch("loads"),
            needed: k.scratch("needed"),
            marks: k.scratch("marks").with_count(MARKS),
            dense: k.output("dense"),
            fate: k.output("fate"),
            item_args_after: ["item_0_after", "item_1_after", "item_2_after", "item_3_after"]
                .map(|name| k.output(name)),
            pool_after: k.output("pool_after"),
            tally: k.output("tally").with_count(counted),
            own_tally: k.workgroup("own_tally", counted),
        }
    }

    /// How many rows the kernel has.
    pub(super) fn own(&self) -> Value<u32> {
        self.kind.len()
    }

    /// Counts something.
    pub(super) fn count(&self, what: impl IntoValue<u32>) {
        self.own_tally.atomic_add(what, 1);
    }

    /// Says that something did not fit.
    pub(super) fn overflow(&self) {
        self.tally.atomic_store(tally::OVERFLOW, 1);
    }

    /// Adds what the workgroup has counted to what all have.
    pub(super) fn tell(&self) {
        self.k.barrier(Scope::Workgroup);
        self.team.for_each_in_group(self.k, self.own_tally.len(), |what| {
            let count = self.own_tally.load(what);
            self.k.if_(count.ne(0), || {
                self.tally.atomic_add(what, count);
            });
        });
    }

    /// The row that stands for a row.
    pub(super) fn resolve(&self, row: Value<u32>) -> Value<u32> {
        self.end_of(self.link, row)
    }

    /// Where a way ends: each place says the next one, the last one itself.
    pub(super) fn end_of(&self, next: Scratch, from: Value<u32>) -> Value<u32> {
        let k = self.k;
        let at = k.var("at", from);
        k.for_named("hop", 0, u32::MAX, |_| {
            let to = k.let_("to_next", next.load(at.get()));
            k.if_(to.eq(at.get()), || k.break_());
            at.set(to);
        });
        at.get()
    }

    /// The kind of a row.
    pub(super) fn kind_of(&self, row: Value<u32>) -> Value<u32> {
        self.rows.load(row * 4)
    }

    /// An argument of a row.
    pub(super) fn arg(&self, row: Value<u32>, which: impl IntoValue<u32>) -> Value<u32> {
        self.rows.load(row * 4 + 1 + which.into_value())
    }
}
