//! Which accesses need no check: proven, or guarded once for all lanes of a run.
//!
//! Before a run the code computes, for each access, the largest index that any lane of this workgroup can have there,
//! from what the workgroup knows: its ids, lengths, loop bounds, and the conditions around the access. Where all of
//! these are inside their buffers a version of the run without those checks is taken, else one with all of them.
//!
//! Largest values are 64-bit numbers no larger than the largest `u32`. The operators that are followed only make values
//! smaller where they wrap, so a bound computed without wrapping is right. A difference is followed where a condition says
//! that it does not wrap, as in `if x > 0 { .. a[x - 1] .. }`. Of an `i32` its bits are meant, as a `u32`: what it becomes
//! where it is an index.

use super::conditions::{Terms, compared, comparison, swapped};
use super::{Emitter, Span};
use crate::shape::Level;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{self, InstBuilder};
use vyre_foundation::{BinOp, Element, Literal, Type, UnOp};
use vyre_lower::{Id, Item, ItemId, RegionId, Value, ValueId};

/// The largest index by which a buffer of any length is taken to be accessed inside.
const LIKELY: u64 = u16::MAX as u64;

/// An access to memory: an item, or a row that loads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Access {
    /// A store, load or atomic. Or a branch around some that asks whether an index is inside.
    Item(ItemId),
    /// A load of memory that is never written.
    Row(ValueId),
}

/// A value that no lane exceeds.
#[derive(Clone, Copy)]
enum Largest {
    Known(u64),
    Computed(ir::Value),
}

/// What holds where an access stands: one row is smaller than another, or at most as large.
#[derive(Clone, Copy)]
struct Fact {
    row: ValueId,
    bound: ValueId,
    strict: bool,
    /// Whether they are compared as `i32`.
    signed: bool,
}

/// The search for accesses in a run.
#[derive(Default)]
struct Search {
    facts: Vec<Fact>,
    /// Loops whose parameters are being bounded.
    open: Vec<ItemId>,
    proven: Vec<Access>,
    guarded: Vec<Access>,
    holds: Option<ir::Value>,
    /// Whether conditions are looked at, too.
    with_conditions: bool,
    /// How many rows and items the run has.
    size: usize,
    /// How many rows may still be looked at: conditions can say so much about so many rows that following all of it
    /// would not end.
    budget: u32,
}

/// How many rows are looked at for all accesses of a run.
const BUDGET: u32 = 2000;

/// How many of the facts around an access are looked at, the nearest first.
const NEAREST: usize = 64;

/// How many rows a row may be chosen from to be followed.
const MOST_CHOICES: usize = 8;

/// How deep a bound is followed through operators.
const DEPTH: u32 = 8;

/// The most accesses that are guarded.
const MOST_GUARDED: usize = 64;

/// The largest run that gets a second version, in rows and items.
const LARGE_RUN: usize = 1500;

/// Below this many lanes computing the guard costs more than the checks.
const FEW: u32 = 8;

impl Emitter<'_, '_> {
    /// The accesses of a run that need no check where a condition holds; without a condition, always. If wanted, conditions
    /// around them, too: bundles go on where some of their lanes are outside, single lanes would rather not look at all.
    pub(super) fn guard(
        &mut self,
        span: Span,
        with_conditions: bool,
    ) -> Option<(Vec<Access>, Option<ir::Value>)> {
        let mut search = Search { budget: BUDGET, with_conditions, ..Search::default() };
        self.search(span, &mut search);
        let mut accesses = search.proven;
        let worthwhile = search.size <= LARGE_RUN && self.shape.lanes >= FEW;
        let holds = search.holds.filter(|_| worthwhile);
        if holds.is_some() {
            accesses.extend(search.guarded);
        }
        (!accesses.is_empty()).then_some((accesses, holds))
    }

    fn search(&mut self, span: Span, search: &mut Search) {
        let shape = self.shape;
        for position in span.positions() {
            for (_, row) in shape.rows_at(span.region, position) {
                search.size += 1;
                if let (Value::Load { buffer, index, .. }, Level::Lane) =
                    (shape.kernel.value(*row), shape.defined[row.index()])
                {
                    self.consider(Access::Row(*row), buffer, index, search);
                }
            }
            if position == span.end {
                break;
            }
            search.size += 1;
            let id = shape.kernel.item_at(span.region, position);
            match shape.kernel.item(id) {
                Item::Store { buffer, index, .. }
                | Item::Load { buffer, index, .. }
                | Item::Atomic { buffer, index, .. } => {
                    self.consider(Access::Item(id), buffer, index, search)
                }
                Item::If { cond, then, otherwise, .. } => {
                    if search.with_conditions {
                        self.consider_condition(id, search);
                    }
                    for (region, holds) in [(then, true), (otherwise, false)] {
                        let known = search.facts.len();
                        self.facts(cond, holds, &mut search.facts);
                        self.search_region(region, search);
                        search.facts.truncate(known);
                    }
                }
                Item::Loop { guard, first, body, next, again } => {
                    let known = search.facts.len();
                    self.loop_facts(id, guard, &first, &next, again, &mut search.facts);
                    self.search_region(body, search);
                    search.facts.truncate(known);
                }
                _ => {}
            }
        }
    }

    fn search_region(&mut self, region: RegionId, search: &mut Search) {
        let end = self.shape.kernel.item_count(region);
        stacker::maybe_grow(64 << 10, 1 << 20, || self.search(Span { region, start: 0, end }, search));
    }

    /// Decides about one access.
    fn consider(&mut self, access: Access, buffer: u32, index: ValueId, search: &mut Search) {
        if search.guarded.len() >= MOST_GUARDED || search.size > LARGE_RUN || self.proven.contains(&access) {
            return;
        }
        let Some(largest) = self.largest(index, DEPTH, search) else { return };
        let count = self.shape.kernel.buffers[buffer as usize].count();
        if let (Largest::Known(largest), Some(count)) = (largest, count) {
            if largest < u64::from(count) {
                search.proven.push(access);
            }
            return;
        }
        // Nearly no buffer is that long, and where the guard fails all that is guarded is checked.
        if matches!(largest, Largest::Known(largest) if largest > LIKELY) {
            return;
        }
        let count = self.count(buffer);
        self.guard_by(access, largest, count, search);
    }

    /// Decides about the condition of a branch: whether it says that an index is inside a buffer, for the only arm there is.
    fn consider_condition(&mut self, id: ItemId, search: &mut Search) {
        let Some((row, bound)) = self.usual_condition(id) else { return };
        if search.guarded.len() < MOST_GUARDED
            && search.size <= LARGE_RUN
            && let Some(largest) = self.largest(row, DEPTH, search)
        {
            let bound = self.index(bound);
            self.guard_by(Access::Item(id), largest, bound, search);
        }
    }

    /// An index and the length of a buffer, where a branch asks whether the one is less than the other. That the id of a
    /// lane is less is left to the loop over lanes.
    pub(super) fn usual_condition(&self, id: ItemId) -> Option<(ValueId, ValueId)> {
        let kernel = self.shape.kernel;
        let Item::If { cond, otherwise, .. } = kernel.item(id) else { return None };
        let (BinOp::Lt, row, bound) = comparison(kernel, (cond, true))? else { return None };
        let is_made = !matches!(kernel.value(row), Value::Id(..)) && kernel.stride(row).is_some();
        let is_length = matches!(kernel.value(bound), Value::Len(_));
        let is_alone = kernel.item_count(otherwise) == 0 && self.shape.result_count(id) == 0;
        (is_made && is_length && is_alone).then_some((row, bound))
    }

    /// Guards something by that a value which no lane exceeds is less than a bound.
    fn guard_by(&mut self, access: Access, largest: Largest, bound: ir::Value, search: &mut Search) {
        let largest = self.materialise(largest);
        let inside = self.icmp(IntCC::UnsignedLessThan, largest, bound);
        search.holds = Some(match search.holds {
            Some(others) => self.b.ins().band(others, inside),
            None => inside,
        });
        search.guarded.push(access);
    }

    /// What a condition says about rows where it holds, or does not.
    fn facts(&self, cond: ValueId, holds: bool, facts: &mut Vec<Fact>) {
        let kernel = self.shape.kernel;
        for leaf in Terms::of(kernel, cond, holds).leaves {
            let Some((op, ty @ (Type::U32 | Type::I32), a, b)) = compared(kernel, leaf) else { continue };
            let signed = ty.is_signed();
            for (op, row, bound) in [(op, a, b), (swapped(op), b, a)] {
                match op {
                    BinOp::Lt => facts.push(Fact { row, bound, strict: true, signed }),
                    BinOp::Le | BinOp::Eq => facts.push(Fact { row, bound, strict: false, signed }),
                    BinOp::Ne if !signed && self.number(row) == Some(0) => {
                        facts.push(Fact { row, bound, strict: true, signed })
                    }
                    _ => {}
                }
            }
        }
    }

    /// What holds of the parameters of a loop in its body: a bound that the first value meets, and that every next one
    /// meets or the loop ends.
    fn loop_facts(
        &self,
        id: ItemId,
        guard: ValueId,
        first: &[ValueId],
        next: &[ValueId],
        again: ValueId,
        facts: &mut Vec<Fact>,
    ) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.facts(guard, true, &mut before);
        self.facts(again, true, &mut after);
        for fact in after.into_iter().filter(|fact| !fact.signed) {
            for k in (0..next.len()).filter(|k| next[*k] == fact.row) {
                let Some(row) = self.shape.param(id, k) else { continue };
                // What stays the same around the loop is not a parameter or made of one: it stands outside.
                let outside = self.shape.is_outside(fact.bound, id);
                let met = before.iter().any(|other| {
                    let is_same = other.row == first[k] && other.bound == fact.bound && !other.signed;
                    is_same && (other.strict || !fact.strict)
                });
                if outside && (met || self.is_less(first[k], fact.bound, fact.strict)) {
                    facts.push(Fact { row, ..fact });
                }
            }
        }
    }

    /// Whether one constant is smaller than another, or at most as large.
    fn is_less(&self, a: ValueId, b: ValueId, strict: bool) -> bool {
        match (self.number(a), self.number(b)) {
            (Some(a), Some(b)) => a < b || !strict && a == b,
            _ => false,
        }
    }

    fn number(&self, row: ValueId) -> Option<u64> {
        match self.shape.kernel.value(row) {
            Value::Const(literal @ (Literal::U32(_) | Literal::I32(_))) => Some(literal.bits()),
            _ => None,
        }
    }

    /// Whether a condition says that a row is at least as large as a number.
    fn is_at_least(&self, row: ValueId, least: u64, facts: &[Fact]) -> bool {
        facts.iter().rev().take(NEAREST).filter(|fact| fact.bound == row).any(|fact| {
            let Some(number) = self.number(fact.row) else { return false };
            let is_negative = fact.signed && number > i32::MAX as u64;
            !is_negative && number + u64::from(fact.strict) >= least
        })
    }

    /// The largest value of a row in this workgroup, if something can be said about it.
    fn largest(&mut self, row: ValueId, depth: u32, search: &mut Search) -> Option<Largest> {
        if let Some(number) = self.number(row) {
            return Some(Largest::Known(number));
        }
        let value = self.shape.kernel.value(row);
        if !matches!(value.ty(), Type::U32 | Type::I32) || depth == 0 || search.budget == 0 {
            return None;
        }
        search.budget -= 1;
        // What a workgroup computes in a loop may have been larger when something was carried to this iteration.
        let is_the_same = search.open.iter().all(|open| self.shape.is_outside(row, *open));
        if self.shape.defined[row.index()] < Level::Lane && is_the_same {
            let shared = self.get(row);
            return Some(Largest::Computed(self.b.ins().uextend(I64, shared)));
        }
        let mut found = self.largest_of(row, value, depth - 1, search);
        let near = search.facts.iter().rev().take(NEAREST);
        let facts: Vec<Fact> = near.filter(|fact| fact.row == row && !fact.signed).copied().collect();
        for fact in facts {
            let Some(bound) = self.largest(fact.bound, depth - 1, search) else { continue };
            let bound = if fact.strict { self.less(bound, 1) } else { bound };
            found = Some(match found {
                Some(other) => self.smaller(other, bound),
                None => bound,
            });
        }
        found
    }

    /// The largest value by what the row is.
    fn largest_of(&mut self, row: ValueId, value: Value, depth: u32, search: &mut Search) -> Option<Largest> {
        let size = self.shape.kernel.workgroup_size.size();
        match value {
            Value::Id(Id::Local, axis) => Some(Largest::Known(u64::from(size[axis as usize]) - 1)),
            Value::Id(Id::Invocation, axis) => {
                let base = self.workgroup?.base[axis as usize];
                let last = self.b.ins().iadd_imm_s(base, i64::from(size[axis as usize]) - 1);
                Some(Largest::Computed(last))
            }
            Value::SubgroupLane => Some(Largest::Known(u64::from(self.shape.kernel.subgroup_size) - 1)),
            Value::Load { buffer, .. } => self.largest_element(buffer),
            Value::Binary { op, ty, a, b } if ty == Type::U32 || is_same_unsigned(op) => {
                self.largest_binary(op, a, b, depth, search)
            }
            Value::Unary { op: UnOp::Popcount | UnOp::Clz | UnOp::Ctz, .. } => Some(Largest::Known(64)),
            Value::Select { a, b, .. } => {
                let (a, b) = (self.largest(a, depth, search)?, self.largest(b, depth, search)?);
                Some(self.larger(a, b))
            }
            Value::Cast { from: Type::Bool, .. } => Some(Largest::Known(1)),
            // It has the same bits: this takes nothing of the depth.
            Value::Cast { from: Type::U32 | Type::I32, a, .. } => self.largest(a, depth + 1, search),
            Value::Param { item, index, .. } | Value::Out { item, index, .. } => {
                self.largest_result(row, item, index as usize, depth, search)
            }
            _ => None,
        }
    }

    /// The largest value of a result or parameter: the larger one of what it can be.
    fn largest_result(
        &mut self,
        row: ValueId,
        item: ItemId,
        index: usize,
        depth: u32,
        search: &mut Search,
    ) -> Option<Largest> {
        if search.open.contains(&item) {
            return None;
        }
        // What is known here of this iteration need not have been so in the one before, nor in the other arm.
        let outside = std::mem::take(&mut search.facts);
        search.open.push(item);
        let found = match self.shape.kernel.item(item) {
            Item::Load { buffer, .. } => self.largest_element(buffer),
            Item::If { yields, .. } => {
                let (a, b) = yields[index];
                self.largest_of_all(&[a, b], depth, search)
            }
            Item::Loop { guard, first, next, again, .. } => {
                let start = self.largest(first[index], depth, search);
                let mut others = self.choices(next[index]);
                others.retain(|other| *other != row && Some(*other) != self.shape.param(item, index));
                // What is known of its parameters is so in every iteration. Only what is chosen itself is followed: what
                // can be made of a counter is seldom worth a guard.
                self.loop_facts(item, guard, &first, &next, again, &mut search.facts);
                search.facts.retain(|fact| others.contains(&fact.row));
                let next = self.largest_of_all(&others, depth, search);
                match others.as_slice() {
                    // It never changes.
                    [] => start,
                    _ => start.zip(next).map(|(a, b)| self.larger(a, b)),
                }
            }
            _ => None,
        };
        search.open.pop();
        search.facts = outside;
        found
    }

    /// The larger one of the largest values of some rows.
    fn largest_of_all(&mut self, rows: &[ValueId], depth: u32, search: &mut Search) -> Option<Largest> {
        let mut largest = None;
        for row in rows {
            let other = self.largest(*row, depth, search)?;
            largest = Some(largest.map_or(other, |largest| self.larger(largest, other)));
        }
        largest
    }

    /// The rows one of which a row is, as far as it is a choice between others.
    fn choices(&self, row: ValueId) -> Vec<ValueId> {
        let mut rows = vec![row];
        let mut at = 0;
        while at < rows.len() {
            match self.shape.kernel.value(rows[at]) {
                Value::Select { a, b, .. } if rows.len() < MOST_CHOICES => {
                    rows[at] = a;
                    rows.push(b);
                }
                _ => at += 1,
            }
        }
        rows
    }

    fn largest_element(&self, buffer: u32) -> Option<Largest> {
        match self.shape.kernel.buffers[buffer as usize].element() {
            Element::U8 => Some(Largest::Known(u64::from(u8::MAX))),
            Element::U16 => Some(Largest::Known(u64::from(u16::MAX))),
            _ => None,
        }
    }

    fn largest_binary(
        &mut self,
        op: BinOp,
        a: ValueId,
        b: ValueId,
        depth: u32,
        search: &mut Search,
    ) -> Option<Largest> {
        let constant = self.number(b);
        match op {
            // Bits that are set in one of two numbers are not more than their sum.
            BinOp::Add | BinOp::BitOr | BinOp::BitXor => {
                let (a, b) = (self.largest(a, depth, search)?, self.largest(b, depth, search)?);
                Some(self.combine_largest(a, b, u64::saturating_add, |e, a, b| e.b.ins().iadd(a, b)))
            }
            BinOp::Sub => {
                let by = constant.filter(|by| self.is_at_least(a, *by, &search.facts))?;
                let a = self.largest(a, depth, search)?;
                Some(self.less(a, by))
            }
            BinOp::Mul => {
                let (a, b) = (self.largest(a, depth, search)?, self.largest(b, depth, search)?);
                Some(self.combine_largest(a, b, u64::saturating_mul, |e, a, b| e.b.ins().imul(a, b)))
            }
            BinOp::Shl => {
                let (a, by) = (self.largest(a, depth, search)?, Largest::Known(1 << (constant? & 31)));
                Some(self.combine_largest(a, by, u64::saturating_mul, |e, a, b| e.b.ins().imul(a, b)))
            }
            BinOp::Shr => match (self.largest(a, depth, search), constant) {
                (Some(Largest::Known(a)), Some(by)) => Some(Largest::Known(a >> (by & 31))),
                (Some(Largest::Computed(a)), Some(by)) => {
                    Some(Largest::Computed(self.b.ins().ushr_imm_u(a, (by & 31) as i64)))
                }
                (None, Some(by)) => Some(Largest::Known(u64::from(u32::MAX >> (by & 31)))),
                (a, None) => a,
            },
            BinOp::Min | BinOp::BitAnd => {
                match (self.largest(a, depth, search), self.largest(b, depth, search)) {
                    (Some(a), Some(b)) => Some(self.smaller(a, b)),
                    (a, b) => a.or(b),
                }
            }
            BinOp::Max | BinOp::AbsDiff => {
                let (a, b) = (self.largest(a, depth, search)?, self.largest(b, depth, search)?);
                Some(self.larger(a, b))
            }
            // A divisor of 0 gives the dividend, and 0 as the rest.
            BinOp::Div if constant.is_some_and(|by| by > 0) => match self.largest(a, depth, search) {
                Some(Largest::Computed(a)) => Some(Largest::Computed(a)),
                Some(Largest::Known(a)) => Some(Largest::Known(a / constant?)),
                None => Some(Largest::Known(u64::from(u32::MAX) / constant?)),
            },
            BinOp::Div | BinOp::SatSub => self.largest(a, depth, search),
            BinOp::Rem => {
                let rest = self.largest(b, depth, search).map(|divisor| self.less(divisor, 1));
                match (self.largest(a, depth, search), rest) {
                    (Some(a), Some(rest)) => Some(self.smaller(a, rest)),
                    (a, rest) => a.or(rest),
                }
            }
            _ => None,
        }
    }

    /// A bound from two bounds, no larger than a `u32`. Two of these do not overflow 64 bits.
    fn combine_largest(
        &mut self,
        a: Largest,
        b: Largest,
        known: impl Fn(u64, u64) -> u64,
        computed: impl Fn(&mut Self, ir::Value, ir::Value) -> ir::Value,
    ) -> Largest {
        if let (Largest::Known(a), Largest::Known(b)) = (a, b) {
            return Largest::Known(known(a, b).min(u64::from(u32::MAX)));
        }
        let (a, b) = (self.materialise(a), self.materialise(b));
        let result = computed(self, a, b);
        let most = self.b.ins().iconst(I64, i64::from(u32::MAX));
        Largest::Computed(self.b.ins().umin(result, most))
    }

    fn smaller(&mut self, a: Largest, b: Largest) -> Largest {
        if let (Largest::Known(a), Largest::Known(b)) = (a, b) {
            return Largest::Known(a.min(b));
        }
        let (a, b) = (self.materialise(a), self.materialise(b));
        Largest::Computed(self.b.ins().umin(a, b))
    }

    fn larger(&mut self, a: Largest, b: Largest) -> Largest {
        if let (Largest::Known(a), Largest::Known(b)) = (a, b) {
            return Largest::Known(a.max(b));
        }
        let (a, b) = (self.materialise(a), self.materialise(b));
        Largest::Computed(self.b.ins().umax(a, b))
    }

    /// A bound made less by a number. Below 0 there is nothing, and nothing that would have it is reached.
    fn less(&mut self, bound: Largest, by: u64) -> Largest {
        match bound {
            Largest::Known(bound) => Largest::Known(bound.saturating_sub(by)),
            Largest::Computed(bound) => {
                let least = self.b.ins().iconst(I64, by as i64);
                let bound = self.b.ins().umax(bound, least);
                Largest::Computed(self.b.ins().iadd_imm_s(bound, -(by as i64)))
            }
        }
    }

    fn materialise(&mut self, largest: Largest) -> ir::Value {
        match largest {
            Largest::Known(number) => self.b.ins().iconst(I64, number as i64),
            Largest::Computed(value) => value,
        }
    }
}

/// Whether an operator computes the same bits of `i32` and `u32`.
fn is_same_unsigned(op: BinOp) -> bool {
    use BinOp::{Add, BitAnd, BitOr, BitXor, Mul, Shl, Sub};
    matches!(op, Add | Sub | Mul | Shl | BitAnd | BitOr | BitXor)
}
