//! Bodies and branches: which statements are reached, and what variables hold after them.

use crate::kernel::{Item, ItemId, RegionId, Value, ValueId};
use crate::lower::{LIVE, Lowering, Variable, roomy};
use rustc_hash::FxHashMap;
use vyre_foundation::{Body, Event, Node, Walk};

impl<'p> Lowering<'p> {
    pub(crate) fn body(&mut self, body: &'p Body) {
        let mut opened = Vec::new();
        let waiting = self.waiting.until(body);
        roomy(|| self.statements(body, waiting, &mut opened));
        for name in opened {
            self.names.remove(name);
        }
    }

    /// Statements of a body. `waiting` is how many of them there are up to the last one that ended invocations must reach.
    fn statements(&mut self, nodes: &'p [Node], waiting: usize, opened: &mut Vec<&'p str>) {
        for (i, node) in nodes.iter().enumerate() {
            let rest = &nodes[i + 1..];
            let waiting = waiting.saturating_sub(i + 1);
            let later = self.later;
            // What follows this statement follows everything in it.
            if !later && node.bodies().next().is_some() {
                self.later = waiting > 0;
            }
            self.statement(node, opened);
            self.later = later;
            if self.ended() {
                return self.skip_statements(rest);
            }
            if rest.is_empty() {
                continue;
            }
            let skip = self.loops.last().map(|open| open.skip);
            if let Some(skip) = skip.filter(|skip| self.builder.as_bool(self.values[*skip]) != Some(false)) {
                let go_on = self.builder.not(self.values[skip]);
                let no = self.builder.bool(false);
                return self.guarded(go_on, |this| {
                    this.set(skip, no);
                    roomy(|| this.statements(rest, waiting, opened));
                });
            }
            if !self.is_live() && !self.later && waiting == 0 {
                let live = self.live();
                return self.guarded(live, |this| {
                    this.revive();
                    roomy(|| this.statements(rest, waiting, opened));
                });
            }
        }
    }

    /// Inside an `If` on `live`, every invocation is.
    pub(crate) fn revive(&mut self) {
        let yes = self.builder.bool(true);
        self.set(LIVE, yes);
    }

    /// Whether no invocation reaches what follows in this body.
    pub(crate) fn ended(&self) -> bool {
        let skips =
            self.loops.last().is_some_and(|open| self.builder.as_bool(self.values[open.skip]) == Some(true));
        skips || self.builder.as_bool(self.live()) == Some(false)
    }

    /// Counts statements that are never reached.
    pub(crate) fn skip_statements(&mut self, nodes: &'p [Node]) {
        for node in nodes {
            self.node += 1;
            for body in node.bodies() {
                self.node += Walk::new(body).filter(|event| matches!(event, Event::Node(_))).count();
            }
        }
    }

    /// Runs `body` in a new region; gives the region and what it left in the variables it changed, undone here.
    pub(crate) fn branch(
        &mut self,
        cond: ValueId,
        body: impl FnOnce(&mut Self),
    ) -> (RegionId, FxHashMap<Variable, ValueId>) {
        let outer = self.region;
        // What is known of a constant says nothing about the program.
        let is_news = self.builder.as_bool(cond).is_none() && self.known.insert(cond);
        let (mark, declared) = (self.log.len(), self.values.len());
        self.region = self.builder.region(outer);
        body(self);
        if is_news {
            self.known.remove(&cond);
        }
        let region = std::mem::replace(&mut self.region, outer);
        let mut left = FxHashMap::default();
        while self.log.len() > mark {
            if let Some((variable, old)) = self.log.pop() {
                let now = std::mem::replace(&mut self.values[variable], old);
                if variable < declared {
                    left.entry(variable).or_insert(now);
                }
            }
        }
        // Variables that the branch opened are gone with it.
        self.values.truncate(declared);
        (region, left)
    }

    /// Runs `body` where `cond` holds.
    pub(crate) fn guarded(&mut self, cond: ValueId, body: impl FnOnce(&mut Self)) {
        if self.known.contains(&cond) {
            return body(self);
        }
        if self.is_unreachable(cond) {
            return self.discard(body);
        }
        let then = self.branch(cond, body);
        self.join(cond, then, None, None);
    }

    /// Whether it is known that the condition does not hold here.
    fn is_unreachable(&mut self, cond: ValueId) -> bool {
        let opposite = self.builder.not(cond);
        self.known.contains(&opposite)
    }

    /// Lowers what is never reached, for the count of its statements alone.
    fn discard(&mut self, body: impl FnOnce(&mut Self)) {
        let never = self.builder.bool(false);
        let mark = self.builder.mark();
        self.branch(never, body);
        self.builder.forget(mark);
    }

    /// Runs `body` where `cond` holds, and gives its value; zero where it does not hold.
    pub(crate) fn guarded_value(
        &mut self,
        cond: ValueId,
        body: impl FnOnce(&mut Self) -> Option<ValueId>,
    ) -> Option<ValueId> {
        if self.known.contains(&cond) {
            return body(self);
        }
        if self.is_unreachable(cond) {
            let mut ty = None;
            self.discard(|this| ty = body(this).map(|value| this.builder.ty(value)));
            return ty.map(|ty| self.builder.zero(ty));
        }
        let mut value = None;
        let then = self.branch(cond, |this| value = body(this));
        self.join(cond, then, None, value)
    }

    /// Puts an `If` over two branches that have been lowered, and merges what they left.
    pub(crate) fn join(
        &mut self,
        cond: ValueId,
        (then, then_left): (RegionId, FxHashMap<Variable, ValueId>),
        otherwise: Option<(RegionId, FxHashMap<Variable, ValueId>)>,
        value: Option<ValueId>,
    ) -> Option<ValueId> {
        let (otherwise, else_left) = match otherwise {
            Some(branch) => branch,
            None => (self.builder.region(self.region), FxHashMap::default()),
        };
        let mut changed: Vec<Variable> = then_left.keys().chain(else_left.keys()).copied().collect();
        changed.sort_unstable();
        changed.dedup();
        let empty = [then, otherwise].iter().all(|r| self.builder.regions[r.index()].items.is_empty());
        let item = ItemId(self.builder.items.len() as u32);
        let mut yields = Vec::new();
        let ended = |left: &FxHashMap<Variable, ValueId>| {
            left.get(&LIVE).is_some_and(|live| self.builder.as_bool(*live) == Some(false))
        };
        let (then_ended, else_ended) = (ended(&then_left), ended(&else_left));
        for variable in changed {
            let old = self.values[variable];
            let mut a = then_left.get(&variable).copied().unwrap_or(old);
            let mut b = else_left.get(&variable).copied().unwrap_or(old);
            // A branch that ends every invocation contributes nothing: those that took it go on as if they had
            // taken the other one, so that they compute what uniform control decides on.
            // Where the other one's value cannot be had here, any value that differs between nobody does.
            if variable != LIVE && then_ended {
                let is_there = self.builder.exists_in(b, self.region);
                a = if is_there { b } else { self.builder.zero(self.builder.ty(a)) };
            } else if variable != LIVE && else_ended {
                let is_there = self.builder.exists_in(a, self.region);
                b = if is_there { a } else { self.builder.zero(self.builder.ty(b)) };
            }
            let merged = self.merge(cond, item, (a, b), &mut yields);
            self.set(variable, merged);
        }
        let value = value.map(|a| {
            let zero = self.builder.zero(self.builder.ty(a));
            self.merge(cond, item, (a, zero), &mut yields)
        });
        if !empty {
            self.effect(Item::If { cond, then, otherwise, yields });
        }
        value
    }

    /// The value after two branches that leave `a` and `b`.
    pub(crate) fn merge(
        &mut self,
        cond: ValueId,
        item: ItemId,
        (a, b): (ValueId, ValueId),
        yields: &mut Vec<(ValueId, ValueId)>,
    ) -> ValueId {
        if a == b {
            return a;
        }
        if [a, b].iter().all(|value| self.builder.exists_in(*value, self.region)) {
            return self.builder.select(cond, a, b);
        }
        let index = yields.len() as u32;
        yields.push((a, b));
        let ty = self.builder.ty(a);
        self.builder.row(Value::Out { item, index, ty }, self.region)
    }
}
