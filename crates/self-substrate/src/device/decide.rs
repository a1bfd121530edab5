//! One walk over the items: what is decided about control, and what follows for parameters and results.

use super::memory::{Machine, mark, tally};
use super::sweep::is_constant;
use vyre_foundation::build::prelude::*;
use vyre_foundation::{BinOp, Type};
use vyre_lower::Fate;
use vyre_lower::columns::{item, kind, op};
use vyre_primitives::hash_table;

const LESS: u32 = kind(op::BINARY, BinOp::Lt as u32, Type::U32, Type::Bool);
const SUM: u32 = kind(op::BINARY, BinOp::Add as u32, Type::U32, Type::U32);
const BOTH: u32 = kind(op::BINARY, BinOp::And as u32, Type::Bool, Type::Bool);

/// Whether a condition is decided, and how.
const OPEN: u32 = 2;

impl Machine<'_> {
    /// Goes over all items once. What is decided counts from the next walk on. Synchronises the grid.
    pub(super) fn decide(&self) {
        let k = self.k;
        self.team.for_each(k, self.item_kind.len(), |id| {
            k.if_(self.fate.load(id).eq(Fate::Stays as u32), || {
                let operation = k.let_("operation", self.item_kind.load(id) & 0xff);
                k.if_(operation.eq(item::IF), || self.branch(id));
                k.if_(operation.eq(item::LOOP), || self.repeat(id));
            });
        });
        self.team.for_each(k, self.loads.len(), |slot| self.loads.store(slot, 0));
        k.barrier(Scope::Grid);
        self.equal_loads();
        k.barrier(Scope::Grid);
        self.team.for_each(k, self.pool.len(), |at| self.let_stand(self.slots, self.stands, at));
        let effects = self.item_kind.len();
        self.team.for_each(k, effects, |id| self.let_stand(self.result, self.stands_for_result, id));
        k.barrier(Scope::Grid);
    }

    /// Makes every way to the row that stands for another one hop long, where something was decided. Everybody shortens
    /// at once: what is found on the way is always nearer to the end. Synchronises the grid.
    pub(super) fn shorten(&self, rows: Value<u32>) {
        let k = self.k;
        self.team.for_each(k, rows, |row| {
            let at = k.var("at", row);
            k.for_named("hop", 0, u32::MAX, |_| {
                let next = k.let_("next", self.link.atomic_load(at.get()));
                k.if_(next.eq(at.get()), || k.break_());
                at.set(next);
            });
            k.if_(at.get().ne(row), || self.link.atomic_store(row, at.get()));
        });
        k.barrier(Scope::Grid);
    }

    fn let_stand(
        &self,
        slots: Buffer<u32, access::Scratch>,
        stands: Buffer<u32, access::Scratch>,
        at: Value<u32>,
    ) {
        let by = stands.load(at);
        self.k.if_(by.ne(0), || {
            self.link.store(slots.load(at) - 1, by - 1);
            stands.store(at, 0);
        });
    }

    /// Lets a row stand for the parameter or result of a place in the pool, from the next walk on.
    fn stand_for(&self, at: Value<u32>, by: Value<u32>) {
        let k = self.k;
        let slot = k.let_("slot", self.slots.load(at));
        k.if_(slot.ne(0), || {
            let is_open = self.link.load(slot - 1).eq(slot - 1);
            k.if_(is_open.and((slot - 1).ne(by)), || {
                self.stands.store(at, by + 1);
                self.marks.atomic_add(mark::DECIDED, 1);
            });
        });
    }

    fn settle_fate(&self, id: Value<u32>, fate: impl IntoValue<u32>) {
        self.fate.store(id, fate);
        self.marks.atomic_add(mark::DECIDED, 1);
    }

    /// A row of the pool, as it stands now.
    fn pooled(&self, at: Value<u32>) -> Value<u32> {
        self.resolve(self.pool.load(at))
    }

    /// 0 or 1 where a condition is decided, else [`OPEN`].
    fn decided(&self, condition: Value<u32>) -> Value<u32> {
        let k = self.k;
        let row = k.let_("condition", self.resolve(condition));
        is_constant(self.kind_of(row)).select(self.arg(row, 0).ne(0).cast::<u32>(), OPEN)
    }

    fn branch(&self, id: Value<u32>) {
        let k = self.k;
        let decided = k.let_("decided", self.decided(self.item_args[0].load(id)));
        k.if_(decided.ne(OPEN), || {
            self.count(tally::BRANCHES);
            let holds = decided.eq(1);
            self.settle_fate(id, holds.select(Fate::Then as u32, Fate::Otherwise as u32));
            let done = holds.select(self.item_args[1].load(id), self.item_args[2].load(id));
            self.part_of.store(done, self.home.load(id));
        });
        let begin = k.let_("begin", self.list.load(id));
        k.for_named("pair", 0, self.pairs.load(id), |pair| {
            let at = k.let_("at_pair", begin + pair * 2);
            let (a, b) = (k.let_("a", self.pooled(at)), k.let_("b", self.pooled(at + 1)));
            k.if_(decided.ne(OPEN).or(a.eq(b)), || {
                self.stand_for(at + 1, decided.eq(0).select(b, a));
            });
        });
    }

    fn repeat(&self, id: Value<u32>) {
        let k = self.k;
        let again = self.item_args[2].load(id);
        let runs = k.let_("runs", self.decided(self.item_args[0].load(id)));
        let ends = k.var("ends", self.decided(again).eq(0));
        k.if_(!ends.get(), || ends.set(self.counts_once(id, again)));
        let at_most_once = ends.get().select(Fate::AtMostOnce as u32, Fate::Stays as u32);
        let once = ends.get().select(Fate::Once as u32, Fate::Stays as u32);
        let fate = runs.eq(OPEN).select(at_most_once, runs.eq(0).select(Fate::Gone as u32, once));
        let fate = k.let_("fate_now", fate);
        let begin = k.let_("begin", self.list.load(id));
        k.if_(fate.eq(Fate::Stays as u32), || self.carried(id, begin)).else_(|| {
            self.count(tally::LOOPS);
            self.settle_fate(id, fate);
            k.if_(fate.eq(Fate::Once as u32), || {
                self.part_of.store(self.item_args[1].load(id), self.home.load(id));
            });
            k.for_named("pair", 0, self.pairs.load(id), |pair| {
                let at = k.let_("at_pair", begin + pair * 2);
                let first = k.let_("first_value", self.pooled(at));
                self.stand_for(at, first);
                k.if_(fate.eq(Fate::Gone as u32), || self.stand_for(at + 1, first));
                k.if_(fate.eq(Fate::Once as u32), || self.stand_for(at + 1, self.pooled(at + 1)));
            });
        });
    }

    /// Whether a loop counts from one constant to before another, and there is no number between them.
    fn counts_once(&self, id: Value<u32>, again: Value<u32>) -> Value<bool> {
        let k = self.k;
        let again = k.let_("again", self.resolve(again));
        let is_both = self.kind_of(again).eq(BOTH);
        let found = k.var("counts_once", false);
        k.for_named("half", 0, is_both.select(2u32, 1), |half| {
            let condition = k.var("half_condition", again);
            k.if_(is_both, || condition.set(self.resolve(self.arg(again, half))));
            k.if_(self.kind_of(condition.get()).eq(LESS), || {
                self.starts_at_end(id, condition.get(), found);
            });
        });
        found.get()
    }

    /// The condition is `parameter + 1 < end`, and the parameter's first value is the last one before the end.
    fn starts_at_end(&self, id: Value<u32>, condition: Value<u32>, found: Var<bool>) {
        let k = self.k;
        let next = k.let_("next", self.resolve(self.arg(condition, 0)));
        let end = k.let_("end", self.resolve(self.arg(condition, 1)));
        k.if_(self.kind_of(next).eq(SUM).and(is_constant(self.kind_of(end))), || {
            let parameter = k.let_("parameter", self.resolve(self.arg(next, 0)));
            let one = k.let_("one", self.resolve(self.arg(next, 1)));
            let is_one = is_constant(self.kind_of(one)).and(self.arg(one, 0).eq(1));
            let is_own = (self.kind_of(parameter) & 0xff).eq(op::PARAM).and(self.arg(parameter, 0).eq(id));
            k.if_(is_one.and(is_own), || {
                let at = self.list.load(id) + self.arg(parameter, 1) * 2;
                let from = k.let_("start", self.pooled(at));
                // The sum wraps, as the loop's does: what counts need not be what the guard is about.
                let last = (self.arg(from, 0) + 1).ge(self.arg(end, 0));
                k.if_(is_constant(self.kind_of(from)).and(last), || found.set(true));
            });
        });
    }

    /// Whether a pair goes around a loop and may be spared: its parameter is used and nothing stands for it.
    fn is_open(&self, at: Value<u32>) -> Value<bool> {
        let slot = self.slots.load(at);
        slot.ne(0).and(self.link.load(slot - 1).eq(slot - 1))
    }

    /// What goes around a loop without changing, and what goes around it twice.
    fn carried(&self, id: Value<u32>, begin: Value<u32>) {
        let k = self.k;
        k.for_named("pair", 0, self.pairs.load(id), |pair| {
            let at = k.let_("at_pair", begin + pair * 2);
            k.if_(self.is_open(at), || {
                let (first, next) =
                    (k.let_("first_value", self.pooled(at)), k.let_("next", self.pooled(at + 1)));
                let parameter = self.slots.load(at) - 1;
                k.if_(next.eq(parameter).or(next.eq(first)), || {
                    self.count(tally::CARRIED);
                    self.stand_for(at, first);
                    self.stand_for(at + 1, first);
                })
                .else_(|| self.carried_twice(begin, at, first, next));
            });
        });
    }

    /// Lets the first pair that is always equal to one stand for it.
    fn carried_twice(&self, begin: Value<u32>, at: Value<u32>, first: Value<u32>, next: Value<u32>) {
        let k = self.k;
        k.for_named("before", 0, (at - begin) / 2, |before| {
            let other = k.let_("at_other", begin + before * 2);
            k.if_(self.is_open(other), || {
                let (other_first, other_next) =
                    (k.let_("other_first", self.pooled(other)), k.let_("other_next", self.pooled(other + 1)));
                let is_carried = other_next.eq(self.slots.load(other) - 1);
                let is_same = other_first.eq(first).and(other_next.eq(next)).and(!is_carried);
                k.if_(is_same, || {
                    // A result that nobody uses has no row that another could be.
                    let results = [at, other].map(|at| self.slots.load(at + 1));
                    k.if_(results[0].eq(0).or(results[1].ne(0)), || {
                        self.count(tally::CARRIED);
                        self.stand_for(at, self.slots.load(other) - 1);
                        k.if_(results[1].ne(0), || self.stand_for(at + 1, results[1] - 1));
                    });
                    k.break_();
                });
            });
        });
    }

    /// The region that a region is a part of by now.
    fn merged(&self, region: Value<u32>) -> Value<u32> {
        self.end_of(self.part_of, region)
    }

    /// Whether an item is a load whose result is used and that nothing stands for.
    fn is_open_load(&self, id: Value<u32>) -> Value<bool> {
        let result = self.result.load(id);
        let is_load = (self.item_kind.load(id) & 0xff).eq(item::LOAD);
        is_load.and(result.ne(0)).and(self.link.load(result - 1).eq(result - 1))
    }

    /// Finds loads that were made before, in their region or around it. Synchronises the grid.
    fn equal_loads(&self) {
        let k = self.k;
        let words = |id: Value<u32>| [0, 1, 2].map(|arg| self.item_args[arg].load(id));
        // In which region a load is counted stands in a column that only the end needs: what it will be.
        let place = self.item_args_after[3];
        let index = self.item_args_after[1];
        self.team.for_each(k, self.item_kind.len(), |id| {
            k.if_(self.is_open_load(id), || {
                place.store(id, self.merged(self.home.load(id)));
                index.store(id, self.resolve(self.item_args[1].load(id)));
            });
        });
        k.barrier(Scope::Grid);
        let key = |id: Value<u32>, region: Value<u32>| {
            let [buffer, _, version] = words(id);
            [buffer, index.load(id), version, region]
        };
        let same = |id: Value<u32>, region: Value<u32>, other: Value<u32>| {
            let pairs = key(id, region).into_iter().zip(key(other, place.load(other)));
            pairs.map(|(own, other)| own.eq(other)).reduce(|all, equal| all.and(equal)).unwrap_or(true.into())
        };
        self.team.for_each(k, self.item_kind.len(), |id| {
            k.if_(self.is_open_load(id), || {
                let region = k.let_("area", place.load(id));
                let hash = hash_table::hash(key(id, region));
                hash_table::insert_or_find(k, self.loads, hash, id, |other| same(id, region, other));
            });
        });
        k.barrier(Scope::Grid);
        self.team.for_each(k, self.item_kind.len(), |id| {
            k.if_(self.is_open_load(id), || {
                let region = k.var("area", place.load(id));
                k.for_named("up", 0, u32::MAX, |_| {
                    let here = k.let_("here", region.get());
                    let slot = hash_table::lookup(k, self.loads, hash_table::hash(key(id, here)), |other| {
                        same(id, here, other)
                    });
                    let earlier = k.let_("earlier", self.loads.load(slot) - 1);
                    k.if_(slot.ne(hash_table::NONE).and(earlier.lt(id)), || {
                        self.count(tally::LOADS);
                        self.stands_for_result.store(id, self.result.load(earlier));
                        self.marks.atomic_add(mark::DECIDED, 1);
                        k.break_();
                    });
                    k.if_(here.eq(0), || k.break_());
                    let owner = self.owner.load(here) & (super::memory::SECOND - 1);
                    region.set(self.merged(self.home.load(owner)));
                });
            });
        });
    }
}
