//! One walk over the rows, level by level: canonical form, folding, rules, value numbering.

use super::book::{ALTERNATIVE, ANY_KIND, HEAD, code, first_key, turn};
use super::memory::{Machine, SLOT, mark, tally};
use vyre_foundation::Type;
use vyre_foundation::build::prelude::*;
use vyre_lower::columns::{kind, op};
use vyre_primitives::{Scan, hash_table};

/// The number of an operand that is a constant and no row yet.
const FRESH: u32 = u32::MAX;

/// How often one row is rewritten at the most, and how long code is at the most. Neither is ever reached.
const MOST_REWRITES: u32 = 64;
const MOST_STEPS: u32 = 64;

/// How often levels are raised in one round at the most: a turn reaches all rows that come after their operands.
const RAISES: u32 = 64;

/// The deepest stack of any code.
const STACK: u32 = 8;

/// What a row that is being simplified is, in memory of its invocation.
struct Draft {
    /// Its operands: their rows, kinds and bits where they are constants.
    row: Buffer<u32, access::Local>,
    kind: Buffer<u32, access::Local>,
    bits: Buffer<u64, access::Local>,
    /// What code computes with.
    stack: Buffer<u64, access::Local>,
    /// The operands that code makes.
    next_row: Buffer<u32, access::Local>,
    next_kind: Buffer<u32, access::Local>,
    next_bits: Buffer<u64, access::Local>,
}

/// The parts of the sweep that are declared once.
pub(super) struct Sweep<'m, 'k> {
    m: &'m Machine<'k>,
    scan: Scan<u32>,
    draft: Draft,
}

/// How many arguments of a row are rows, by its kind: two bits for each operation.
pub(super) fn operands(kind: Value<u32>) -> Value<u32> {
    let packed = (op::CONST..=op::OUT).map(|op| (op::operands(op) as u32) << (2 * op)).sum::<u32>();
    Value::from(packed) >> ((kind & 15) * 2) & 3
}

/// Whether a kind is that of a constant.
pub(super) fn is_constant(kind: Value<u32>) -> Value<bool> {
    (kind & 0xff).eq(op::CONST)
}

impl<'m, 'k> Sweep<'m, 'k> {
    pub(super) fn new(m: &'m Machine<'k>, scan: Scan<u32>) -> Sweep<'m, 'k> {
        let k = m.k;
        let draft = Draft {
            row: k.local("draft_row", 3),
            kind: k.local("draft_kind", 3),
            bits: k.local("draft_bits", 3),
            stack: k.local("stack", STACK),
            next_row: k.local("next_row", 3),
            next_kind: k.local("next_kind", 3),
            next_bits: k.local("next_bits", 3),
        };
        Sweep { m, scan, draft }
    }

    /// Goes over all rows once. There are `made` constants already. Synchronises the grid.
    pub(super) fn run(&self, made: Var<u32>) {
        let (m, k) = (self.m, self.m.k);
        self.sort(m.own() + made.get());
        m.team.for_each(k, m.table.len(), |slot| m.table.store(slot, 0));
        let depth = m.marks.grid_uniform_load(mark::DEPTH);
        let first = k.var("first", 0u32);
        k.for_named("level_now", 0, depth, |level| {
            // Also waits for the level before.
            let end = m.begins.grid_uniform_load(level + 1);
            let count = k.let_("count", end - first.get());
            let begin = k.let_("begin", first.get());
            m.team.for_each(k, count, |i| self.simplify(m.order.load(begin + i), level));
            self.constants(made, level);
            m.team.for_each(k, count, |i| self.number(m.order.load(begin + i), level));
            k.barrier(Scope::Grid);
            m.team.for_each(k, count, |i| self.settle(m.order.load(begin + i)));
            first.set(end);
        });
        k.barrier(Scope::Grid);
    }

    /// Raises the levels of rows above those of all that they are made of. Where that takes too many turns, as rows are far
    /// from being in order, it is left to the host.
    pub(super) fn raise(&self, rows: Value<u32>) {
        let (m, k) = (self.m, self.m.k);
        let most = m.begins.len() - 1;
        // Constants that were made in the round before had the level in which they were made.
        m.team.for_each(k, rows - m.own(), |i| m.rank.store(m.own() + i, 0));
        let before = k.var("before", m.marks.grid_uniform_load(mark::RAISED));
        k.for_named("turn", 0, RAISES, |turn| {
            m.team.for_each(k, rows, |row| {
                k.if_(m.link.load(row).eq(row), || {
                    let least = k.var("least", 0u32);
                    let operands = k.let_("operands", operands(m.kind_of(row)));
                    k.for_named("operand", 0, operands, |operand| {
                        let other = m.resolve(m.arg(row, operand));
                        least.set(least.get().max(m.rank.atomic_load(other) + 1));
                    });
                    k.if_(m.rank.atomic_load(row).lt(least.get()).and(least.get().lt(most)), || {
                        m.rank.atomic_store(row, least.get());
                        m.marks.atomic_add(mark::RAISED, 1);
                    });
                    k.if_(least.get().ge(most), || m.overflow());
                });
            });
            let now = m.marks.grid_uniform_load(mark::RAISED);
            k.if_(now.eq(before.get()), || k.break_());
            before.set(now);
            k.if_(turn.eq(RAISES - 1), || m.overflow());
        });
    }

    /// Sorts the rows that nothing else stands for by level.
    fn sort(&self, rows: Value<u32>) {
        let (m, k) = (self.m, self.m.k);
        let groups = m.team.groups();
        let most = m.begins.len() - 1;
        m.team.for_each(k, m.counts.len(), |i| m.counts.store(i, 0));
        k.barrier(Scope::Grid);
        let mine = k.let_("mine", m.team.group() * most);
        m.team.for_each(k, rows, |row| {
            k.if_(m.link.load(row).eq(row), || {
                let level = k.let_("rank", m.rank.load(row));
                m.counts.atomic_add(mine + level, 1);
                k.if_(m.marks.atomic_load(mark::DEPTH).le(level), || {
                    m.marks.atomic_max(mark::DEPTH, level + 1);
                });
            });
        });
        let depth = m.marks.grid_uniform_load(mark::DEPTH);
        let count_of = |i: Value<u32>| i % groups * most + i / groups;
        self.scan.each(
            k,
            depth * groups,
            |i| m.counts.load(count_of(i)),
            |item| {
                m.counts.store(count_of(item.index), item.before);
                k.if_((item.index % groups).eq(0), || m.begins.store(item.index / groups, item.before));
            },
        );
        m.team.once(k, || m.begins.store(depth, self.scan.total()));
        m.team.for_each(k, rows, |row| {
            k.if_(m.link.load(row).eq(row), || {
                let place = m.counts.atomic_add(mine + m.rank.load(row), 1);
                m.order.store(place, row);
            });
        });
    }

    /// Makes a row as simple as it gets.
    fn simplify(&self, row: Value<u32>, level: Value<u32>) {
        let (m, k) = (self.m, self.m.k);
        let row = k.let_("row", row);
        let own_kind = k.var("own_kind", m.kind_of(row));
        let count = operands(own_kind.get());
        k.if_(count.ne(0), || {
            for operand in 0..3 {
                let argument = m.arg(row, operand);
                k.if_(count.gt(operand), || {
                    let other = k.let_("other", m.resolve(argument));
                    let kind = k.let_("other_kind", m.kind_of(other));
                    self.draft.row.store(operand, other);
                    self.draft.kind.store(operand, kind);
                    k.if_(is_constant(kind), || self.draft.bits.store(operand, self.bits_of(other)));
                })
                .else_(|| {
                    self.draft.row.store(operand, argument);
                    self.draft.kind.store(operand, ANY_KIND);
                });
            }
            let forwarded = k.var("forwarded", false);
            k.for_named("rewrite", 0, MOST_REWRITES, |_| self.rewrite(row, own_kind, forwarded));
            k.if_(!forwarded.get(), || self.write(row, own_kind.get(), level));
        });
    }

    fn bits_of(&self, row: Value<u32>) -> Value<u64> {
        let [low, high] = [0, 1].map(|half| self.m.arg(row, half).cast::<u64>());
        low | high << 32u64
    }

    /// Where the words of a kind begin in `heads`: see [`Book::key`](super::book::Book).
    fn head(&self, kind: Value<u32>) -> Value<u32> {
        let operation = kind & 0xff;
        let converts = operation.eq(op::CAST).or(operation.eq(op::BITCAST));
        let which = converts.select(kind >> 24, kind >> 8 & 0xff);
        let first = (op::UNARY..=op::FMA).fold(Value::from(first_key(op::BINARY)), |first, other| {
            operation.eq(other).select(first_key(other), first)
        });
        // What is not computed of operands alone lies outside of the table, where all words are 0.
        let none = operation.lt(op::BINARY).or(operation.gt(op::FMA));
        let key = first + which * Type::ALL.len() as u32 + (kind >> 16 & 0xff);
        none.select(first_key(op::OUT), key) * HEAD
    }

    /// Puts the draft in canonical form.
    fn put_in_order(&self, own_kind: Var<u32>) {
        let (m, k) = (self.m, self.m.k);
        let draft = &self.draft;
        let at = k.let_("head", self.head(own_kind.get()));
        let when = k.let_("when", m.heads.load(at + 3));
        k.if_(when.ne(turn::NEVER), || {
            let constant = [0, 1].map(|operand| is_constant(draft.kind.load(operand)));
            let larger = draft.row.load(1).lt(draft.row.load(0));
            let is_due = when.eq(turn::ALWAYS).or(constant[0]).or(when.eq(turn::ORDER).and(larger));
            k.if_(is_due.and(!constant[1]), || {
                m.count(tally::CANONICALISED);
                own_kind.set(m.heads.load(at + 2));
                for buffer in [draft.row, draft.kind] {
                    let [first, second] = [k.let_("first", buffer.load(0)), k.let_("second", buffer.load(1))];
                    buffer.store(0, second);
                    buffer.store(1, first);
                }
                draft.bits.store(1, draft.bits.load(0));
            });
        });
    }

    /// Rewrites the draft once, or leaves the loop.
    fn rewrite(&self, row: Value<u32>, own_kind: Var<u32>, forwarded: Var<bool>) {
        let (m, k) = (self.m, self.m.k);
        self.put_in_order(own_kind);
        let at = k.let_("head", self.head(own_kind.get()));
        let (first, count) = (k.let_("first", m.heads.load(at)), k.let_("count", m.heads.load(at + 1)));
        let kinds = [0, 1, 2].map(|operand| k.let_("has", self.draft.kind.load(operand)));
        let hit = k.var("hit", false);
        k.for_named("alternative", 0, count, |i| {
            let at = k.let_("at_alternative", first + i * ALTERNATIVE);
            let fits = kinds.into_iter().zip(0..).map(|(kind, operand)| {
                let need = m.alternatives.load(at + operand);
                need.eq(ANY_KIND).or(need.eq(kind))
            });
            let fits = fits.reduce(|all, fit| all.and(fit)).unwrap_or(true.into());
            k.if_(fits, || {
                self.interpret(row, m.alternatives.load(at + 3), own_kind, (hit, forwarded));
                k.if_(hit.get(), || {
                    m.count(m.alternatives.load(at + 4) + tally::COUNT);
                    k.break_();
                });
            });
        });
        k.if_((!hit.get()).or(forwarded.get()), || k.break_());
    }

    /// Runs the code of an alternative: see [`code`].
    fn interpret(
        &self,
        row: Value<u32>,
        begin: Value<u32>,
        own_kind: Var<u32>,
        (hit, forwarded): (Var<bool>, Var<bool>),
    ) {
        let (m, k) = (self.m, self.m.k);
        let (pc, sp) = (k.var("pc", begin), k.var("sp", 0u32));
        k.for_named("step", 0, MOST_STEPS, |_| {
            let word = k.let_("word", m.code.load(pc.get()));
            let (operation, near) = (word & 0xff, word >> 8 & 15);
            k.if_(operation.lt(code::PUSH), || self.compare(word, pc))
                .else_if(|| operation.lt(code::OTHER), || self.compute(word, pc, sp))
                .else_if(
                    || operation.eq(code::OTHER),
                    || {
                        hit.set(true);
                        self.let_stand(row, near, own_kind, forwarded);
                        k.break_();
                    },
                )
                .else_(|| {
                    hit.set(true);
                    self.make(pc.get(), word >> 8, own_kind);
                    k.break_();
                });
        });
    }

    /// Goes on behind an instruction of so many words if something holds; else leaves the loop.
    fn go_on_if(&self, holds: Value<bool>, pc: Var<u32>, words: u32) {
        self.m.k.if_(!holds, || self.m.k.break_());
        pc.set(pc.get() + words);
    }

    /// The number in the two words behind an instruction.
    fn literal(&self, pc: Var<u32>) -> Value<u64> {
        let [low, high] = [1, 2].map(|ahead| self.m.code.load(pc.get() + ahead).cast::<u64>());
        low | high << 32u64
    }

    /// Compares what stands at places.
    fn compare(&self, word: Value<u32>, pc: Var<u32>) {
        let (m, k) = (self.m, self.m.k);
        let (operation, near, far) = (word & 0xff, word >> 8 & 15, word >> 12 & 15);
        k.if_(operation.eq(code::SAME), || {
            let (near, far) = (self.row_at(near), self.row_at(far));
            // Two constants that are no rows yet are not the same row.
            self.go_on_if(near.eq(far).and(near.ne(FRESH)), pc, 1);
        })
        .else_if(
            || operation.eq(code::KIND),
            || {
                let kind = m.code.load(pc.get() + 1);
                self.go_on_if(m.kind_of(self.row_at(near)).eq(kind), pc, 2);
            },
        )
        .else_if(
            || operation.eq(code::BITS),
            || {
                self.go_on_if(self.bits_at(near).eq(self.literal(pc)), pc, 3);
            },
        )
        .else_(|| self.go_on_if(self.bits_at(near).eq(self.bits_at(far)), pc, 1));
    }

    /// Computes on the stack.
    fn compute(&self, word: Value<u32>, pc: Var<u32>, sp: Var<u32>) {
        let (m, k) = (self.m, self.m.k);
        let (operation, near) = (word & 0xff, word >> 8 & 15);
        let push = |value: Value<u64>, words: u32| {
            self.draft.stack.store(sp.get(), value);
            sp.set(sp.get() + 1);
            pc.set(pc.get() + words);
        };
        k.if_(operation.eq(code::PUSH), || push(self.bits_at(near), 1))
            .else_if(|| operation.eq(code::LITERAL), || push(self.literal(pc), 3))
            .else_if(
                || operation.eq(code::COMPUTE),
                || {
                    let bottom = k.let_("bottom", sp.get() - (word >> 8));
                    let operands = [0, 1, 2].map(|i| k.let_("operand", self.draft.stack.load(bottom + i)));
                    let result = m.book.arithmetic.compute(k, m.code.load(pc.get() + 1), operands);
                    sp.set(bottom);
                    push(result, 2);
                },
            )
            .else_(|| {
                sp.set(sp.get() - 1);
                self.go_on_if(self.draft.stack.load(sp.get()).ne(0u64), pc, 1);
            });
    }

    /// Lets the row at a place stand for one, or makes it the constant that is there and no row yet.
    fn let_stand(&self, row: Value<u32>, place: Value<u32>, own_kind: Var<u32>, forwarded: Var<bool>) {
        let (m, k) = (self.m, self.m.k);
        let other = k.let_("other", self.row_at(place));
        k.if_(other.eq(FRESH), || {
            own_kind.set(self.draft.kind.load(place & 3));
            self.draft.bits.store(0, self.draft.bits.load(place & 3));
        })
        .else_(|| {
            m.link.store(row, other);
            forwarded.set(true);
        });
    }

    /// The row at a place: an operand, or an operand of that.
    fn row_at(&self, place: Value<u32>) -> Value<u32> {
        let (m, k) = (self.m, self.m.k);
        let operand = k.let_("place_row", self.draft.row.load(place & 3));
        let found = k.var("found", operand);
        k.if_((place >> 2).ne(3), || found.set(m.arg(operand, place >> 2)));
        found.get()
    }

    /// The bits of the constant at a place.
    fn bits_at(&self, place: Value<u32>) -> Value<u64> {
        let k = self.m.k;
        let found = k.var("found_bits", self.draft.bits.load(place & 3));
        k.if_((place >> 2).ne(3), || found.set(self.bits_of(self.row_at(place))));
        found.get()
    }

    /// Makes the draft what code says: see [`code::ROW`].
    fn make(&self, pc: Value<u32>, count: Value<u32>, own_kind: Var<u32>) {
        let (m, k) = (self.m, self.m.k);
        let draft = &self.draft;
        let used = k.var("used", 0u32);
        k.for_named("operand", 0, 3, |operand| {
            draft.next_row.store(operand, 0);
            draft.next_kind.store(operand, ANY_KIND);
            k.if_(operand.lt(count), || {
                let at = k.let_("at_operand", pc + 2 + operand * 2);
                let (place, kind) = (m.code.load(at), k.let_("constant_kind", m.code.load(at + 1)));
                k.if_(kind.eq(ANY_KIND), || {
                    let other = k.let_("other", self.row_at(place));
                    draft.next_row.store(operand, other);
                    k.if_((place >> 2).eq(3), || {
                        draft.next_kind.store(operand, draft.kind.load(place & 3));
                        draft.next_bits.store(operand, draft.bits.load(place & 3));
                    })
                    .else_(|| {
                        let kind = k.let_("other_kind", m.kind_of(other));
                        draft.next_kind.store(operand, kind);
                        k.if_(is_constant(kind), || draft.next_bits.store(operand, self.bits_of(other)));
                    });
                })
                .else_(|| {
                    let bits = k.var("bits", draft.stack.load(used.get()));
                    k.if_(kind.eq(constant(Type::F32)), || {
                        bits.set(bits.get().cast::<u32>().bitcast::<f32>().bitcast::<u32>().cast::<u64>());
                    });
                    used.set(used.get() + 1);
                    draft.next_row.store(operand, FRESH);
                    draft.next_kind.store(operand, kind);
                    draft.next_bits.store(operand, bits.get());
                });
            });
        });
        k.for_named("operand", 0, 3, |operand| {
            draft.row.store(operand, draft.next_row.load(operand));
            draft.kind.store(operand, draft.next_kind.load(operand));
            draft.bits.store(operand, draft.next_bits.load(operand));
        });
        own_kind.set(m.code.load(pc + 1));
    }

    /// Writes the draft down, with the constants that it needs.
    fn write(&self, row: Value<u32>, own_kind: Value<u32>, level: Value<u32>) {
        let (m, k) = (self.m, self.m.k);
        m.rows.store(row * 4, own_kind);
        k.if_(is_constant(own_kind), || self.write_constant(row, own_kind, self.draft.bits.load(0))).else_(
            || {
                k.for_named("operand", 0, 3, |operand| {
                    let argument = k.var("argument", self.draft.row.load(operand));
                    k.if_(argument.get().eq(FRESH), || {
                        let made = k.let_("made", m.marks.atomic_add(mark::MADE, 1));
                        let number = k.let_("number", m.own() + made);
                        k.if_(made.lt(m.maker.len()), || {
                            self.write_constant(
                                number,
                                self.draft.kind.load(operand),
                                self.draft.bits.load(operand),
                            );
                            m.link.store(number, number);
                            m.rank.store(number, level);
                            m.maker.store(made, row * 4 + 1 + operand);
                        })
                        .else_(|| m.overflow());
                        argument.set(number);
                    });
                    m.rows.store(row * 4 + 1 + operand, argument.get());
                });
            },
        );
    }

    fn write_constant(&self, row: Value<u32>, kind: Value<u32>, bits: Value<u64>) {
        let words = [kind, bits.cast(), (bits >> 32u64).cast(), 0.into()];
        for (i, word) in (0..).zip(words) {
            self.m.rows.store(row * 4 + i, word);
        }
    }

    /// Finds equal ones among the constants that this level has made, and lets rows have those that stay. Synchronises the
    /// grid.
    fn constants(&self, made: Var<u32>, level: Value<u32>) {
        let (m, k) = (self.m, self.m.k);
        let now = m.marks.grid_uniform_load(mark::MADE).min(m.maker.len());
        k.if_(now.ne(made.get()), || {
            let (first, count) = (made.get(), now - made.get());
            m.team.for_each(k, count, |i| self.number(m.own() + first + i, level));
            k.barrier(Scope::Grid);
            m.team.for_each(k, count, |i| {
                let constant = k.let_("made_constant", m.own() + first + i);
                let link = m.link.load(constant);
                // One that found no slot is what it is; the overflow has been told.
                let first_of_equal = link.ge(SLOT).select(m.table.load(link & (SLOT - 1)) - 1, constant);
                m.link.store(constant, first_of_equal);
                m.rows.store(m.maker.load(first + i), first_of_equal);
            });
            k.barrier(Scope::Grid);
        });
        made.set(now);
    }

    /// Finds whether there is an equal row.
    fn number(&self, row: Value<u32>, level: Value<u32>) {
        let (m, k) = (self.m, self.m.k);
        let row = k.let_("row", row);
        k.if_(m.link.load(row).eq(row), || {
            let own = [0, 1, 2, 3].map(|i| k.let_("own_word", m.rows.load(row * 4 + i)));
            let same = |other: Value<u32>| {
                let words = own.into_iter().zip(0..);
                let equal = words.map(|(own, i)| own.eq(m.rows.load(other * 4 + i)));
                equal.reduce(|all, equal| all.and(equal)).unwrap_or(true.into())
            };
            // What came first stays, and constants come before the rows of their level.
            let gives_way = |other: Value<u32>| {
                let is_row = row.ge(m.own()).or(other.lt(m.own()));
                is_row.and(m.rank.load(other).eq(level))
            };
            // There are two slots for a row. Equal rows have equal operands, and few rows have the same first one.
            let start = hash_table::Start { near: own[1] * 2, hash: hash_table::hash(own) };
            let slot = hash_table::insert_or_find_from(k, m.table, start, row, same, gives_way);
            k.if_(slot.eq(hash_table::NONE), || m.overflow()).else_(|| m.link.store(row, SLOT | slot));
        });
    }

    /// Writes down which row stands for one that was numbered.
    fn settle(&self, row: Value<u32>) {
        let (m, k) = (self.m, self.m.k);
        let row = k.let_("row", row);
        let link = k.let_("link", m.link.load(row));
        k.if_(link.ge(SLOT), || {
            let first = k.let_("first", m.table.load(link & (SLOT - 1)) - 1);
            m.link.store(row, first);
            k.if_(first.ne(row), || m.count(tally::MERGED));
        });
    }
}

/// The kind of a constant.
pub(super) const fn constant(ty: Type) -> u32 {
    kind(op::CONST, 0, ty, ty)
}
