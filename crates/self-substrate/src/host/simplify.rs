//! One walk over the rows: canonical form, folding, rules, value numbering.

use super::levels::Order;
use crate::row::{Row, is_commutative};
use crate::rules::{INDEX, Instance, Letters, Term};
use crate::stats::Stats;
use vyre_foundation::Type;
use vyre_lower::Edit;
use vyre_lower::columns::op;

/// How often one row is rewritten in one walk at the most. Every rule makes a row lighter, so this is never reached.
const MOST_REWRITES: usize = 64;

/// Rows by what they are, found by their hash and compared.
#[derive(Default)]
struct Table {
    /// Numbers of rows plus one; 0 is free.
    slots: Vec<u32>,
    used: usize,
}

impl Table {
    fn with_room(rows: usize) -> Table {
        Table { slots: vec![0; (rows * 2).next_power_of_two().max(16)], used: 0 }
    }

    fn hash(row: Row) -> u64 {
        let [kind, a, b, c] = <[u32; 4]>::from(row).map(u64::from);
        let mixed = (kind | a << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (b | c << 32);
        let mixed = mixed.wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ mixed >> 32
    }

    /// The number of an equal row, or this one's from now on.
    fn find_or_insert(&mut self, rows: &[[u32; 4]], row: Row, number: u32) -> u32 {
        if self.used * 2 >= self.slots.len() {
            self.grow(rows);
        }
        let mask = self.slots.len() - 1;
        let mut at = Table::hash(row) as usize & mask;
        loop {
            match self.slots[at] {
                0 => {
                    self.slots[at] = number + 1;
                    self.used += 1;
                    return number;
                }
                taken if Row::from(rows[taken as usize - 1]) == row => return taken - 1,
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn grow(&mut self, rows: &[[u32; 4]]) {
        let taken = std::mem::take(&mut self.slots);
        self.slots = vec![0; taken.len() * 2];
        let mask = self.slots.len() - 1;
        for slot in taken.into_iter().filter(|slot| *slot != 0) {
            let mut at = Table::hash(rows[slot as usize - 1].into()) as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }
}

/// What the variables of a rule stand for.
#[derive(Clone, Copy, Default)]
struct Bound {
    any: [Option<u32>; 4],
    constants: [Option<u64>; 4],
}

/// What a rule makes of a row.
enum Rewritten {
    /// A row that exists already.
    Other(u32),
    Row(Row),
}

/// Numbers from this one on stand for constants that a row which is being simplified needs and that are no rows yet.
const FRESH: u32 = u32::MAX - 256;

/// A walk over the rows of an edit.
pub(crate) struct Simplifier<'a> {
    edit: &'a mut Edit,
    stats: &'a mut Stats,
    table: Table,
    /// What the numbers from [`FRESH`] on stand for.
    fresh: Vec<Row>,
}

impl<'a> Simplifier<'a> {
    /// Goes over all rows once, level by level. What is done to a row does not depend on the others of its level, and of
    /// equal rows the first one stays: that of the lowest level and there of the smallest number.
    pub(crate) fn walk(edit: &'a mut Edit, order: &Order, stats: &'a mut Stats) {
        let table = Table::with_room(edit.rows.len());
        let mut simplifier = Simplifier { edit, stats, table, fresh: Vec::new() };
        let mut owners = Vec::new();
        for level in order.levels() {
            for number in level {
                simplifier.simplify(*number, &mut owners);
            }
            for (row, place, constant) in owners.drain(..) {
                let number = simplifier.added(constant);
                simplifier.edit.rows[row as usize][place] = number;
            }
            for number in level {
                simplifier.number(*number);
            }
        }
    }

    fn get(&self, number: u32) -> Row {
        match number.checked_sub(FRESH) {
            Some(fresh) => self.fresh[fresh as usize],
            None => self.edit.rows[number as usize].into(),
        }
    }

    /// Makes a row as simple as it gets. Constants that it needs are put down in `owners`: whose, where, and what.
    fn simplify(&mut self, number: u32, owners: &mut Vec<(u32, usize, Row)>) {
        self.fresh.clear();
        let mut row = self.get(number);
        for operand in row.operands_mut() {
            *operand = self.edit.resolve(*operand);
        }
        for _ in 0..MOST_REWRITES {
            let canonical = row.canonical(|operand| self.get(operand).op() == op::CONST);
            if canonical != row {
                if !self.stats.spend() {
                    break;
                }
                self.stats.canonicalised += 1;
                row = canonical;
            }
            if let Some(folded) = self.folded(row) {
                if !self.stats.spend() {
                    break;
                }
                self.stats.folded += 1;
                row = folded;
                break;
            }
            match self.rewritten(row) {
                None => break,
                Some(Rewritten::Row(simpler)) => row = simpler,
                Some(Rewritten::Other(fresh)) if fresh >= FRESH => row = self.get(fresh),
                Some(Rewritten::Other(other)) => {
                    self.edit.forward[number as usize] = other;
                    return;
                }
            }
        }
        self.edit.rows[number as usize] = row.into();
        for (place, operand) in (1..).zip(row.operands()) {
            if *operand >= FRESH {
                owners.push((number, place, self.get(*operand)));
            }
        }
    }

    /// Finds whether there is an equal row.
    fn number(&mut self, number: u32) {
        if self.edit.forward[number as usize] != number {
            return;
        }
        let row = self.get(number);
        let first = self.table.find_or_insert(&self.edit.rows, row, number);
        if first != number && self.stats.spend() {
            self.edit.forward[number as usize] = first;
            self.stats.merged += 1;
        }
    }

    fn folded(&self, row: Row) -> Option<Row> {
        let operands = row.operands();
        if operands.is_empty() || row.op() == op::LOAD {
            return None;
        }
        let mut bits = [0; 3];
        for (bits, operand) in bits.iter_mut().zip(operands) {
            *bits = self.get(*operand).bits()?;
        }
        row.folded(bits)
    }

    /// What the first rule that fits makes of a row.
    fn rewritten(&mut self, row: Row) -> Option<Rewritten> {
        for instance in INDEX.of(row.kind) {
            let Some(bound) = self.matched(instance, row) else { continue };
            if !self.stats.spend() {
                return None;
            }
            self.stats.fired[instance.number] += 1;
            return Some(self.made(&instance.rule().result, row.ty(), instance.letters, &bound));
        }
        None
    }

    fn matched(&self, instance: &Instance, row: Row) -> Option<Bound> {
        self.operands_match(&instance.rule().pattern, row, instance, Bound::default(), &[])
    }

    /// Whether the operands of a row of the right kind fit, and then what is left to fit.
    fn operands_match(
        &self,
        term: &Term,
        row: Row,
        instance: &Instance,
        bound: Bound,
        rest: &[(&'static Term, u32)],
    ) -> Option<Bound> {
        let with = |pairs: &[(&'static Term, u32)]| {
            let mut todo = [(term_of_nothing(), 0); 8];
            let all = pairs.iter().chain(rest);
            let count = pairs.len() + rest.len();
            assert!(count <= todo.len(), "a pattern of the table has more operands than there is room for");
            todo.iter_mut().zip(all).for_each(|(slot, pair)| *slot = *pair);
            self.all_match(&todo[..count], instance, bound)
        };
        let [x, y, z] = row.args;
        match term {
            Term::Any(_) | Term::Const(_) | Term::Lit(_) => None,
            Term::Binary(operator, ty, a, b) => with(&[(a, x), (b, y)]).or_else(|| {
                let either_way = is_commutative(*operator, ty.of(instance.letters));
                either_way.then(|| with(&[(a, y), (b, x)])).flatten()
            }),
            Term::Unary(_, _, a) | Term::Cast(_, _, a) | Term::Bitcast(_, _, a) => with(&[(a, x)]),
            Term::Select(_, c, a, b) => with(&[(c, x), (a, y), (b, z)]),
            Term::Fma(a, b, c) => with(&[(a, x), (b, y), (c, z)]).or_else(|| with(&[(a, y), (b, x), (c, z)])),
        }
    }

    /// Whether every row fits its term, and the constants are as the rule wants them.
    fn all_match(
        &self,
        todo: &[(&'static Term, u32)],
        instance: &Instance,
        mut bound: Bound,
    ) -> Option<Bound> {
        let [(term, number), rest @ ..] = todo else {
            let constant = |k: u8| bound.constants[usize::from(k)].unwrap_or(0);
            let value = |when: &Term| when.value(Type::Bool, instance.letters, &|_| 0, &constant);
            return instance.rule().when.as_ref().is_none_or(|when| value(when) != 0).then_some(bound);
        };
        let row = self.get(*number);
        match term {
            Term::Any(k) => {
                let slot = &mut bound.any[usize::from(*k)];
                (*slot.get_or_insert(*number) == *number).then_some(())?;
                self.all_match(rest, instance, bound)
            }
            Term::Const(k) => {
                let bits = row.bits()?;
                let slot = &mut bound.constants[usize::from(*k)];
                (*slot.get_or_insert(bits) == bits).then_some(())?;
                self.all_match(rest, instance, bound)
            }
            Term::Lit(lit) => {
                (row.bits()? == lit.bits(row.ty())).then_some(())?;
                self.all_match(rest, instance, bound)
            }
            term => {
                (term.kind(instance.letters) == Some(row.kind)).then_some(())?;
                self.operands_match(term, row, instance, bound, rest)
            }
        }
    }

    /// The result of a rule.
    fn made(&mut self, term: &Term, ty: Type, letters: Letters, bound: &Bound) -> Rewritten {
        if let Term::Any(k) = term {
            return Rewritten::Other(bound.any[usize::from(*k)].unwrap_or(0));
        }
        if term.is_constant() {
            let constant = |k: u8| bound.constants[usize::from(k)].unwrap_or(0);
            return Rewritten::Row(Row::constant(ty, term.value(ty, letters, &|_| 0, &constant)));
        }
        let mut args = [0; 3];
        for (arg, (operand, ty)) in args.iter_mut().zip(term.operands(letters)) {
            *arg = match self.made(operand, ty, letters, bound) {
                Rewritten::Other(row) => row,
                Rewritten::Row(row) => {
                    self.fresh.push(row);
                    FRESH + self.fresh.len() as u32 - 1
                }
            };
        }
        Rewritten::Row(Row { kind: term.kind(letters).unwrap_or(0), args })
    }

    /// The number of a constant.
    fn added(&mut self, row: Row) -> u32 {
        let number = self.edit.rows.len() as u32;
        let known = self.table.find_or_insert(&self.edit.rows, row, number);
        if known == number {
            self.edit.rows.push(row.into());
            self.edit.forward.push(number);
        }
        known
    }
}

/// A term that stands in unused places.
fn term_of_nothing() -> &'static Term {
    &Term::Any(0)
}
