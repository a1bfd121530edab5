//! `if` and `for`.

use crate::kernel::{Item, Value, ValueId};
use crate::lower::{LIVE, Lowering, OpenLoop, Variable};
use rustc_hash::FxHashSet;
use vyre_foundation::{BinOp, Body, Event, Literal, Name, Node, Scope, Walk};

impl<'p> Lowering<'p> {
    /// The expressions of a statement, evaluated by everyone; each effect in them by live invocations alone.
    pub(crate) fn for_everyone(&mut self, node: &'p Node) -> Vec<ValueId> {
        self.hoist(node);
        self.guard_each = !self.is_live();
        let values = self.exprs(node);
        self.guard_each = false;
        values
    }

    pub(crate) fn exprs(&mut self, node: &'p Node) -> Vec<ValueId> {
        let mut exprs = Vec::new();
        node.for_each_expr(&mut |expr| exprs.push(expr));
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    /// An `if` or a `for`, with its condition or bounds if they have been evaluated already.
    pub(crate) fn control(&mut self, node: &'p Node, ready: Option<Vec<ValueId>>, divergent: bool) {
        let values = ready.unwrap_or_else(|| self.exprs(node));
        self.uniform = None;
        match node {
            Node::If { then, otherwise, .. } => self.if_statement(values[0], then, otherwise),
            Node::Loop { var, body, .. } => self.for_loop(var, [values[0], values[1]], body, divergent),
            _ => unreachable!("called for control only"),
        }
    }

    pub(crate) fn if_statement(&mut self, cond: ValueId, then: &'p Body, otherwise: &'p Body) {
        let opposite = self.builder.not(cond);
        for (known, taken, passed) in [(cond, then, otherwise), (opposite, otherwise, then)] {
            // A condition that is known here already chooses a branch; the other one is never reached.
            if self.known.contains(&known) {
                if std::ptr::eq(passed, then) {
                    self.skip_statements(passed);
                }
                self.body(taken);
                if std::ptr::eq(passed, otherwise) {
                    self.skip_statements(passed);
                }
                return;
            }
        }
        let then = self.branch(cond, |this| this.body(then));
        let otherwise = self.branch(opposite, |this| this.body(otherwise));
        self.join(cond, then, Some(otherwise), None);
    }

    pub(crate) fn for_loop(
        &mut self,
        name: &'p Name,
        [from, to]: [ValueId; 2],
        body: &'p Body,
        divergent: bool,
    ) {
        let guard = self.builder.binary(BinOp::Lt, from, to);
        let (carried, ends) = self.assigned(body);
        // The item keeps its place; what it is is known after the body.
        let item = self.effect(Item::Barrier { scope: Scope::Workgroup });
        let mut first = vec![from];
        first.extend(carried.iter().map(|variable| self.values[*variable]));
        let no = self.builder.bool(false);
        let (skip, broke) = (self.variable(no), self.variable(no));
        self.loops.push(OpenLoop { skip, broke });
        let later = self.later;
        self.later |= self.waiting.until(body) > 0;
        let mut params = Vec::new();
        let outer = self.region;
        let mark = self.log.len();
        let region = self.builder.region(outer);
        self.region = region;
        for (index, value) in first.iter().enumerate() {
            let ty = self.builder.ty(*value);
            params.push(self.builder.row(Value::Param { item, index: index as u32, ty }, region));
        }
        for (variable, param) in carried.iter().zip(&params[1..]) {
            self.set(*variable, *param);
        }
        if ends && divergent {
            // Only live invocations come here: the guard and `again` see to it.
            self.revive();
        }
        let counter = self.variable(params[0]);
        self.names.insert(name, counter);
        self.body(body);
        self.names.remove(name.as_str());
        let one = self.builder.constant(Literal::U32(1));
        let counted = self.builder.binary(BinOp::Add, params[0], one);
        let more = self.builder.binary(BinOp::Lt, counted, to);
        let mut stays = self.builder.not(self.values[broke]);
        if ends && divergent {
            stays = self.builder.and(stays, self.live());
        }
        let again = match self.builder.as_bool(stays) {
            Some(true) => more,
            _ => self.builder.binary(BinOp::And, more, stays),
        };
        let mut next = vec![counted];
        next.extend(carried.iter().map(|variable| self.values[*variable]));
        self.loops.pop();
        self.later = later;
        self.region = outer;
        while self.log.len() > mark {
            if let Some((variable, old)) = self.log.pop() {
                self.values[variable] = old;
            }
        }
        self.builder.items[item.index()] = Item::Loop { guard, first, body: region, next, again };
        for (i, variable) in carried.iter().enumerate() {
            let ty = self.builder.ty(params[i + 1]);
            let out = Value::Out { item, index: i as u32 + 1, ty };
            let out = self.builder.row(out, outer);
            self.set(*variable, out);
        }
    }

    /// The variables outside a loop that its body assigns, in order, and whether it may end invocations.
    pub(crate) fn assigned(&self, body: &'p Body) -> (Vec<Variable>, bool) {
        let mut carried = FxHashSet::default();
        let mut ends = false;
        for event in Walk::new(body) {
            match event {
                Event::Node(Node::Assign { name, .. }) => carried.extend(self.names.get(name.as_str())),
                Event::Node(Node::Return | Node::Trap { .. }) => ends = true,
                _ => {}
            }
        }
        if ends {
            carried.insert(LIVE);
        }
        let mut carried: Vec<_> = carried.into_iter().collect();
        carried.sort_unstable();
        (carried, ends)
    }
}
