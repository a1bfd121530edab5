//! What is needed, found from the effects on, and the rows that stay, without gaps.

use super::memory::{Machine, SECOND, tally};
use super::sweep::operands;
use vyre_foundation::build::prelude::*;
use vyre_lower::Fate;
use vyre_lower::columns::{NONE, item, op};
use vyre_primitives::frontier::Round;
use vyre_primitives::{Compact, Frontier, bitset};

/// Which arguments of an item are rows, by its kind: four bits for each operation.
fn row_arguments(kind: Value<u32>) -> Value<u32> {
    let packed = (item::STORE..=item::LOOP).map(|op| u64::from(item::rows(op)) << (4 * op)).sum::<u64>();
    (Value::from(packed) >> ((kind & 0xff) * 4).cast::<u64>()).cast::<u32>() & 15
}

/// Whether an item has an effect that others see, by its kind: a bit for each operation.
fn has_effect(kind: Value<u32>) -> Value<bool> {
    let packed = (item::STORE..=item::LOOP).map(|op| u32::from(item::has_effect(op)) << op).sum::<u32>();
    (Value::from(packed) >> (kind & 0xff) & 1).ne(0)
}

impl Machine<'_> {
    /// Rows and constants that there is room for: items are numbered after them.
    fn most_rows(&self) -> Value<u32> {
        self.link.len()
    }

    /// Finds what is needed, lets the other items go, and writes down the rows that stay. Synchronises the grid.
    pub(super) fn finish(&self, frontier: Frontier, compact: Compact, rows: Value<u32>) {
        let k = self.k;
        let items = self.item_kind.len();
        frontier.run(
            k,
            |round| {
                self.team.for_each(k, items, |id| {
                    k.if_(has_effect(self.item_kind.load(id)), || {
                        k.if_(self.is_reached(id), || self.need(round, self.most_rows() + id));
                    });
                });
            },
            |round, node| {
                k.if_(node.lt(self.most_rows()), || self.visit_row(round, node))
                    .else_(|| self.visit_item(round, node - self.most_rows()));
            },
        );
        // Put down first, in a column that is filled at the end: others look at the fates around them.
        let goes = self.item_args_after[0];
        self.team.for_each(k, items, |id| {
            let fate = self.fate.load(id);
            let stays = fate.eq(Fate::Stays as u32).or(fate.eq(Fate::AtMostOnce as u32));
            k.if_(stays.and(!self.is_needed(self.most_rows() + id)), || {
                goes.store(id, self.is_reached(id).cast::<u32>());
            });
        });
        k.barrier(Scope::Grid);
        self.team.for_each(k, items, |id| {
            k.if_(goes.load(id).ne(0), || self.fate.store(id, Fate::Gone as u32));
        });
        // Sorting is over: the numbers of the rows that stay take its place.
        compact.run(k, rows, |row| self.is_needed(row), |row, number| self.order.store(row, number));
        self.team.once(k, || self.tally.store(tally::STAY, compact.count()));
        self.team.for_each(k, rows, |row| {
            k.if_(self.is_needed(row), || self.write_dense(row));
        });
        self.renumber(items);
    }

    fn is_needed(&self, node: Value<u32>) -> Value<bool> {
        (self.needed.load(node >> 5) >> (node & 31) & 1).ne(0)
    }

    fn need(&self, round: Round, node: Value<u32>) {
        let k = self.k;
        // Looked at first: many rows are needed more than once, and writing would take the word away from other cores.
        k.if_(!bitset::test_shared(self.needed, node), || {
            k.if_(bitset::set(self.needed, node), || round.push(k, node));
        });
    }

    fn need_row(&self, round: Round, row: Value<u32>) {
        self.need(round, self.resolve(row));
    }

    fn visit_row(&self, round: Round, row: Value<u32>) {
        let k = self.k;
        let kind = k.let_("kind", self.kind_of(row));
        k.for_named("operand", 0, operands(kind), |operand| self.need_row(round, self.arg(row, operand)));
        let operation = kind & 0xff;
        k.if_(operation.eq(op::PARAM).or(operation.eq(op::OUT)), || {
            let id = k.let_("item", self.arg(row, 0));
            self.need(round, self.most_rows() + id);
            k.if_(self.pairs.load(id).ne(0), || {
                let at = k.let_("at_pair", self.list.load(id) + self.arg(row, 1) * 2);
                k.for_named("half", 0, 2, |half| self.need_row(round, self.pool.load(at + half)));
            });
        });
    }

    fn visit_item(&self, round: Round, id: Value<u32>) {
        let k = self.k;
        let kind = k.let_("kind", self.item_kind.load(id));
        let asks = k.var("asks", row_arguments(kind));
        // A loop that runs at most once asks nothing at its end.
        k.if_(self.fate.load(id).eq(Fate::AtMostOnce as u32), || asks.set(1));
        for (i, column) in (0..).zip(self.item_args) {
            let row = k.let_("argument", column.load(id));
            k.if_((asks.get() >> i & 1).ne(0).and(row.ne(NONE)), || self.need_row(round, row));
        }
        let region = k.var("area", self.home.load(id));
        k.for_named("up", 0, u32::MAX, |_| {
            k.if_(region.get().eq(0), || k.break_());
            let owner = k.let_("owner_item", self.owner.load(region.get()) & (SECOND - 1));
            k.if_(self.is_passed_through(owner), || region.set(self.home.load(owner))).else_(|| {
                self.need(round, self.most_rows() + owner);
                k.break_();
            });
        });
    }

    /// Whether what stands in control stands in its place.
    fn is_passed_through(&self, control: Value<u32>) -> Value<bool> {
        let fate = self.fate.load(control);
        fate.eq(Fate::Then as u32).or(fate.eq(Fate::Otherwise as u32)).or(fate.eq(Fate::Once as u32))
    }

    /// Whether no decision leaves out where an item stands, or itself.
    fn is_reached(&self, id: Value<u32>) -> Value<bool> {
        let k = self.k;
        let reached = k.var("reached", self.fate.load(id).ne(Fate::Gone as u32));
        let region = k.var("area", self.home.load(id));
        k.for_named("up", 0, u32::MAX, |_| {
            k.if_(region.get().eq(0).or(!reached.get()), || k.break_());
            let owner = k.let_("owner", self.owner.load(region.get()));
            let (control, is_second) = (owner & (SECOND - 1), owner.ge(SECOND));
            let fate = k.let_("fate_here", self.fate.load(control));
            let never = is_second.select(Fate::Then as u32, Fate::Otherwise as u32);
            k.if_(fate.eq(Fate::Gone as u32).or(fate.eq(never)), || reached.set(false));
            region.set(self.home.load(control));
        });
        reached.get()
    }

    /// The new number of a row; 0 for what nothing needs.
    fn new_number(&self, row: Value<u32>) -> Value<u32> {
        let k = self.k;
        let row = k.let_("resolved", self.resolve(row));
        self.is_needed(row).select(self.order.load(row), 0)
    }

    fn write_dense(&self, row: Value<u32>) {
        let k = self.k;
        let kind = k.let_("kind", self.kind_of(row));
        let count = k.let_("operands", operands(kind));
        let at = k.let_("at_dense", self.order.load(row) * 4);
        self.dense.store(at, kind);
        k.for_named("operand", 0, 3, |operand| {
            let argument = k.var("argument", self.arg(row, operand));
            k.if_(operand.lt(count), || argument.set(self.new_number(argument.get())));
            self.dense.store(at + 1 + operand, argument.get());
        });
    }

    /// Items and lists with the new numbers of rows.
    fn renumber(&self, items: Value<u32>) {
        let k = self.k;
        self.team.for_each(k, self.pool.len(), |at| self.pool_after.store(at, self.pool.load(at)));
        k.barrier(Scope::Grid);
        self.team.for_each(k, items, |id| {
            let mask = k.let_("mask", row_arguments(self.item_kind.load(id)));
            for (i, (before, after)) in (0..).zip(self.item_args.into_iter().zip(self.item_args_after)) {
                let argument = k.var("argument", before.load(id));
                let is_row = (mask >> i & 1).ne(0).and(argument.get().ne(NONE));
                k.if_(is_row, || argument.set(self.new_number(argument.get())));
                after.store(id, argument.get());
            }
            let begin = k.let_("begin", self.list.load(id));
            k.for_named("entry", begin, begin + self.pairs.load(id) * 2, |at| {
                self.pool_after.store(at, self.new_number(self.pool.load(at)));
            });
        });
    }
}
