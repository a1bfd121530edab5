//! Statements with bodies, and the jumps out of them.
//!
//! A body ends in the phases it began with, and a jump stands only where the phases are those of the loop's
//! head. Control becomes less uniform exactly where the validator says so: in a branch by its condition, in a
//! loop by its bounds and by the `break`s it may hold (decided before the body is made), after a `continue` for
//! the rest of the body. `return` and `trap` leave control as it is.

use super::scope::{Level, Variable};
use super::statement::mixed;
use super::{Generator, OpenLoop};
use vyre_foundation::{Expr, Name, Node, Type};

/// Deeper nesting would use up the statements without showing more.
pub(super) const DEEPEST: usize = 5;

/// Tags and provenance, some of which need escapes in text.
const TEXTS: [&str; 7] =
    ["limit", "overflow", "two words", "quote \" and \\", "line\nbreak\ttab", "größe ∞", ""];

/// How a guarded body ends.
pub(super) enum End {
    Break,
    Continue,
    Return,
    Trap,
}

impl Generator {
    /// Some statements in a scope of their own.
    pub(super) fn body(&mut self) -> Vec<Node> {
        self.body_of(|generator, out| {
            for _ in 0..1 + generator.rng.below(4) {
                if generator.fuel > 0 || out.is_empty() {
                    generator.statement(out);
                }
            }
        })
    }

    /// What `fill` makes, in a scope of its own that ends in the phases it began with.
    pub(super) fn body_of(&mut self, fill: impl FnOnce(&mut Generator, &mut Vec<Node>)) -> Vec<Node> {
        let mark = self.variables.mark();
        let mut out = Vec::new();
        self.bodies.push(self.phases.clone());
        fill(self, &mut out);
        if let Some(before) = self.bodies.pop() {
            self.restore_phases(&before, &mut out);
        }
        self.close_scope(mark, &mut out);
        out
    }

    /// Ends a scope; what it knew goes into the checksum, mostly.
    fn close_scope(&mut self, mark: usize, out: &mut Vec<Node>) {
        for variable in self.variables.since(mark).to_vec() {
            if self.rng.chance(1, 2) {
                self.mix(&variable, out);
            }
        }
        self.variables.close(mark);
    }

    /// `if`, with or without `else`, or a chain.
    pub(super) fn branch(&mut self, out: &mut Vec<Node>) {
        if self.bodies.len() >= DEEPEST {
            return self.simple(out);
        }
        let outer = self.control;
        let links = if self.rng.chance(1, 4) { 2 + self.rng.below(2) } else { 1 };
        let node = self.link(links);
        self.control = outer;
        out.push(node);
    }

    /// One `if` of a chain of this many. Control stays as the condition left it, as for the links after it.
    fn link(&mut self, links: u64) -> Node {
        self.effect = false;
        let level = if self.rng.chance(1, 2) { self.control() } else { self.any_level() };
        let cond = self.condition(level);
        self.control = self.control().max(level);
        let then = if self.rng.chance(1, 20) { Vec::new() } else { self.body() };
        let otherwise = match links {
            1 if self.rng.chance(1, 2) => self.body(),
            1 => Vec::new(),
            _ => vec![self.link(links - 1)],
        };
        Node::if_then_else(cond, then, otherwise)
    }

    fn any_level(&mut self) -> Level {
        *self.rng.pick(&[Level::Grid, Level::Workgroup, Level::Divergent, Level::Divergent])
    }

    /// A condition that often holds for some and not for others.
    fn condition(&mut self, level: Level) -> Expr {
        let id = match level {
            Level::Grid => return self.value(Type::Bool, level),
            Level::Workgroup => Expr::var("wg"),
            Level::Divergent if self.rng.chance(1, 2) => self.global_id(),
            Level::Divergent => self.local_id(),
        };
        if self.rng.chance(1, 2) {
            return self.value(Type::Bool, level);
        }
        let modulus = 2 + self.rng.below(4);
        let class = Expr::u32(self.rng.below(modulus) as u32);
        match self.rng.below(3) {
            0 => Expr::lt(id, self.leaf(Type::U32, level)),
            1 => Expr::ne(Expr::rem(id, Expr::u32(modulus as u32)), class),
            _ => Expr::eq(Expr::rem(id, Expr::u32(modulus as u32)), class),
        }
    }

    /// A block or region.
    pub(super) fn block(&mut self, out: &mut Vec<Node>) {
        if self.bodies.len() >= DEEPEST {
            return self.simple(out);
        }
        let body = self.body().into();
        let generator = self.text();
        out.push(match self.rng.below(3) {
            0 => Node::Block { body },
            1 => Node::Region { generator, source_region: None, body },
            _ => Node::Region { generator, source_region: Some(self.text()), body },
        });
    }

    fn text(&mut self) -> Name {
        Name::from(*self.rng.pick(&TEXTS))
    }

    /// A loop with few iterations, uniform or divergent.
    pub(super) fn for_loop(&mut self, out: &mut Vec<Node>) {
        if !self.may_loop() {
            return self.simple(out);
        }
        let here = self.control();
        let level = if self.rng.chance(3, 5) { here } else { here.max(self.any_level()) };
        let bounds = if self.rng.chance(1, 2) { Level::Grid } else { level };
        let range = self.bounds(bounds);
        self.loop_of(level, bounds, range, Generator::body, out);
    }

    /// Whether a loop here is neither nested too deep nor run too often.
    pub(super) fn may_loop(&self) -> bool {
        self.bodies.len() < DEEPEST && self.cost <= 4
    }

    /// A loop over this range, whose bounds are as uniform as `bounds` and whose body runs under control of `level`.
    pub(super) fn loop_of(
        &mut self,
        level: Level,
        bounds: Level,
        (from, to): (Expr, Expr),
        body: impl FnOnce(&mut Generator) -> Vec<Node>,
        out: &mut Vec<Node>,
    ) {
        let outer = std::mem::replace(&mut self.control, level);
        self.loops.push(OpenLoop { level, rest: Level::Grid, bodies: self.bodies.len() });
        let cost = self.cost;
        self.cost *= 2;
        let mark = self.variables.mark();
        let pick = self.rng.below(16);
        let var = self.variables.fresh_name(pick);
        self.variables.open(Variable { name: var.clone(), ty: Type::U32, level: bounds, mutable: false });
        let mut body = body(self);
        if self.rng.chance(3, 4) {
            // How often the body runs, and for which values, shows in the checksum.
            body.insert(0, Node::assign("sum", mixed(Expr::var(&var))));
        }
        if self.rng.chance(1, 10) {
            self.last_jump(&mut body);
        }
        self.variables.close(mark);
        self.cost = cost;
        self.loops.pop();
        self.control = outer;
        out.push(Node::loop_for(var, from, to, body));
    }

    /// An unconditional jump at the end of a loop body, and statements that nobody reaches.
    fn last_jump(&mut self, body: &mut Vec<Node>) {
        let breaks = self.loops.last().is_some_and(|open| self.control() <= open.level);
        body.push(if breaks && self.rng.chance(1, 2) { Node::break_() } else { Node::continue_() });
        self.unreached(None, body);
    }

    /// Statements that nobody reaches, some of them under a condition: the variable that has just been true, if there is
    /// one.
    fn unreached(&mut self, held: Option<Expr>, body: &mut Vec<Node>) {
        let cond = held.unwrap_or_else(|| Expr::lt(Expr::var("gid"), Expr::u32(3)));
        let grown = mixed(Expr::var("gid"));
        let set = Node::assign("sum", grown);
        // A name of its own: what the body has opened is not visible here, but the scope is the same.
        let counter = self.variables.fresh_name(u64::MAX);
        let count = Expr::u32(self.rng.below(4) as u32);
        match self.rng.below(5) {
            0 => body.push(Node::loop_for(counter, Expr::u32(0), count, Vec::new())),
            1 => body.push(Node::loop_for(counter, Expr::u32(0), count, vec![set])),
            2 => {
                let inner = vec![Node::if_then(cond, vec![Node::break_()]), set];
                body.push(Node::loop_for(counter, Expr::u32(0), count, inner));
            }
            3 => body.push(Node::if_then_else(cond, vec![set.clone(), Node::return_()], vec![set])),
            _ => body.push(set),
        }
    }

    /// The bounds of a loop: at most four iterations, sometimes none.
    pub(super) fn bounds(&mut self, level: Level) -> (Expr, Expr) {
        let count = 1 + self.rng.below(4) as u32;
        match self.rng.below(12) {
            0..=3 => (Expr::u32(0), Expr::u32(count)),
            4 => {
                let first = self.rng.below(100) as u32;
                (Expr::u32(first), Expr::u32(first + count))
            }
            5 | 6 => (Expr::u32(0), Expr::rem(self.value(Type::U32, level), Expr::u32(count + 1))),
            7 => (Expr::rem(self.value(Type::U32, level), Expr::u32(count)), Expr::u32(count)),
            8 => {
                let from = Expr::bit_and(self.value(Type::U32, level), Expr::u32(3));
                (from, Expr::bit_and(self.value(Type::U32, level), Expr::u32(3)))
            }
            9 => (Expr::u32(5), Expr::u32(self.rng.below(6) as u32)),
            10 => (Expr::u32(u32::MAX - count), Expr::u32(u32::MAX)),
            _ => {
                let readable = self.variables.readable(Type::U32, level);
                let from = match readable.is_empty() {
                    true => Expr::u32(u32::MAX - 1),
                    false => Expr::var(&self.rng.pick(&readable).name),
                };
                (from.clone(), Expr::add(from, Expr::u32(2)))
            }
        }
    }

    /// A conditional `break` or `continue` of the innermost loop.
    pub(super) fn jump(&mut self, out: &mut Vec<Node>) {
        let control = self.control();
        let Some(open) = self.loops.last() else { return self.simple(out) };
        // Whoever does not jump must still be able to return to the phases of each body he is in.
        if self.bodies[open.bodies..].iter().any(|phases| *phases != self.phases) {
            return self.simple(out);
        }
        let level = open.level;
        if control <= level && self.rng.chance(1, 2) {
            let cond = self.condition(level);
            return self.guard(cond, level, End::Break, out);
        }
        let any = self.any_level();
        let cond = self.condition(any);
        self.guard(cond, any, End::Continue, out);
        if let Some(open) = self.loops.last_mut() {
            open.rest = open.rest.max(any).max(control);
        }
    }

    /// `return` for some invocations, for whole workgroups, or for those past the end of a buffer.
    pub(super) fn guarded_return(&mut self, out: &mut Vec<Node>) {
        let (cond, level) = match self.rng.below(4) {
            0 => {
                let buffer = self.rng.below(self.buffers.len() as u64) as usize;
                (Expr::ge(self.global_id(), Expr::buf_len(&self.buffers[buffer].name)), Level::Divergent)
            }
            1 => (Expr::eq(Expr::var("wg"), Expr::u32(self.rng.below(4) as u32)), Level::Workgroup),
            _ => {
                let modulus = 3 + self.rng.below(9);
                let class = Expr::u32(self.rng.below(modulus) as u32);
                (Expr::eq(Expr::rem(self.global_id(), Expr::u32(modulus as u32)), class), Level::Divergent)
            }
        };
        self.guard(cond, level, End::Return, out);
    }

    /// A trap: in most programs one that never happens, in some a rare one.
    pub(super) fn trap(&mut self, out: &mut Vec<Node>) {
        let cond = if self.traps {
            let modulus = 5 + self.rng.below(40);
            let class = Expr::u32(self.rng.below(modulus) as u32);
            let mine = Expr::eq(Expr::rem(self.global_id(), Expr::u32(modulus as u32)), class);
            if self.rng.chance(1, 2) {
                mine
            } else {
                Expr::and(mine, self.expr(Type::Bool, Level::Divergent, 2))
            }
        } else {
            Expr::gt(self.global_id(), Expr::u32(u32::MAX - 5))
        };
        self.guard(cond, Level::Divergent, End::Trap, out);
    }

    /// `if cond { …; end }`, sometimes with statements after the end that nobody reaches. Now and then the end always
    /// comes, or the condition is asked twice.
    pub(super) fn guard(&mut self, cond: Expr, level: Level, end: End, out: &mut Vec<Node>) {
        let is_always = match end {
            End::Break | End::Continue => self.rng.chance(1, 12),
            End::Return => !self.bodies.is_empty() && self.rng.chance(1, 24),
            End::Trap => false,
        };
        let is_twice = self.rng.chance(1, 8);
        let mut cond = if is_always { Expr::bool(true) } else { cond };
        if is_twice {
            cond = Expr::var(&self.open_let(out, Type::Bool, level, false, cond).name);
        }
        let outer = self.control;
        self.control = self.control().max(level);
        let mark = self.variables.mark();
        let mut body = Vec::new();
        for _ in 0..self.rng.below(3) {
            self.simple(&mut body);
        }
        self.close_scope(mark, &mut body);
        self.effect = false;
        let end = match end {
            End::Break => Node::break_(),
            End::Continue => Node::continue_(),
            End::Return => Node::return_(),
            End::Trap => {
                let tag = self.text();
                Node::trap(tag, self.value(Type::U32, Level::Divergent))
            }
        };
        body.push(if is_twice { Node::if_then(cond.clone(), vec![end]) } else { end });
        if is_twice || self.rng.chance(1, 5) {
            self.unreached(is_twice.then(|| cond.clone()), &mut body);
        }
        self.control = outer;
        out.push(Node::if_then(cond, body));
    }
}
