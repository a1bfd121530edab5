//! Loads at places of which something is known: made of ids, lengths and counters, under conditions that compare what
//! they are made of, or carried around loops.
//!
//! A backend leaves out a check where it knows the largest place that there can be. Every statement here gives it
//! something to know, and about as often something that looks the same and is not so: a difference that the condition
//! does not keep from wrapping, a place made of what has been counted with before it became smaller.

use super::Generator;
use super::control::DEEPEST;
use super::phase::{Domain, Mode, Phase};
use super::scope::{Level, Variable};
use vyre_foundation::{BinOp, Expr, Node, Type};

/// How far a loop that looks at many places goes at most.
const FAR: u32 = 20;

impl Generator {
    /// Loads at places of some kind.
    pub(super) fn places(&mut self, out: &mut Vec<Node>) {
        match self.rng.below(6) {
            0 | 1 => self.compared_place(out),
            2 => self.best_place(out),
            3 => self.walked_places(out),
            _ => self.carried_places(out),
        }
    }

    /// What places are made of: mostly small numbers.
    fn part(&mut self, level: Level) -> Expr {
        let readable = self.variables.readable(Type::U32, level);
        match self.rng.below(8) {
            0 | 1 => Expr::u32(self.rng.below(40) as u32),
            2 | 3 if !readable.is_empty() => Expr::var(&self.rng.pick(&readable).name),
            4 if level == Level::Divergent => self.global_id(),
            5 if level == Level::Divergent => self.local_id(),
            6 => self.expr(Type::U32, level, 1),
            _ => self.id(level),
        }
    }

    /// A place made of two parts.
    fn place_of(&mut self, a: Expr, b: Expr) -> Expr {
        let few = 1 + self.rng.below(9) as u32;
        let signed = |value: Expr| Expr::cast(Type::I32, value);
        match self.rng.below(16) {
            0..=3 => Expr::add(a, b),
            4 => Expr::sub(a, b),
            5 => Expr::sub(a, Expr::u32(few)),
            6 => Expr::sub(Expr::sub(b, a), Expr::u32(1)),
            7 => Expr::add(Expr::mul(a, Expr::u32(few)), b),
            8 => Expr::rem(a, if self.rng.chance(1, 2) { b } else { Expr::u32(few * 4) }),
            9 => Expr::shr(Expr::add(a, b), Expr::u32(few - 1)),
            10 => Expr::bit_and(a, if self.rng.chance(1, 2) { b } else { Expr::u32(15) }),
            11 => {
                Expr::binary(*self.rng.pick(&[BinOp::Min, BinOp::Max, BinOp::AbsDiff, BinOp::SatSub]), a, b)
            }
            12 => Expr::select(Expr::lt(a.clone(), b.clone()), a, b),
            13 => Expr::cast(Type::U32, Expr::sub(signed(a), Expr::i32(few as i32))),
            14 => Expr::cast(Type::U32, Expr::sub(signed(b), signed(a))),
            _ => a,
        }
    }

    /// The buffers of which any place may be loaded now.
    fn loadable(&self) -> Vec<usize> {
        let may_load = |i: &usize| {
            let mode = self.phased(*i).map(|Phase { domain, mode }| match domain {
                // Elements of another slice may be being written.
                Domain::Slice { .. } => false,
                Domain::Grid | Domain::Group => mode == Mode::Shared,
            });
            self.buffers[*i].access.allows_load() && mode.unwrap_or(true)
        };
        (0..self.buffers.len()).filter(may_load).collect()
    }

    /// Loads from somewhere at this place, if anything may be loaded from any place now.
    fn load_at(&mut self, place: Expr, out: &mut Vec<Node>) {
        let found = self.loadable();
        if found.is_empty() {
            return;
        }
        let buffer = &self.buffers[*self.rng.pick(&found)];
        let (load, ty) = (Expr::load(&buffer.name, place), buffer.element.value_type());
        let variable = self.open_let(out, ty, Level::Divergent, false, load);
        self.mix(&variable, out);
    }

    /// The sum of a buffer as far as each invocation is itself, so that the last round of one is the first that goes
    /// outside for another.
    fn walked_places(&mut self, out: &mut Vec<Node>) {
        let found = self.loadable();
        if found.is_empty() || self.cost > 1 || !self.may_loop() {
            return self.simple(out);
        }
        let buffer = &self.buffers[*self.rng.pick(&found)];
        let (name, ty) = (buffer.name.clone(), buffer.element.value_type());
        let sum = self.open_let(out, ty, Level::Divergent, true, Expr::cast(ty, Expr::u32(0)));
        let id = if self.rng.chance(1, 2) { self.global_id() } else { self.local_id() };
        let few = self.rng.below(3) as u32;
        let far = Expr::u32(FAR * 10);
        let to = match self.rng.below(5) {
            0 | 1 => Expr::min(Expr::add(id.clone(), Expr::u32(few)), far),
            2 => Expr::min(Expr::min(id.clone(), Expr::buf_len(&name)), far),
            3 => Expr::rem(id.clone(), Expr::u32(FAR)),
            _ => Expr::min(Expr::sub(id.clone(), Expr::u32(few)), far),
        };
        let counter = self.variables.fresh_name(u64::MAX);
        let place = Expr::add(Expr::var(&counter), Expr::u32(self.rng.below(3) as u32));
        let place = if self.rng.chance(2, 3) { Expr::var(&counter) } else { place };
        let next = Expr::add(Expr::var(&sum.name), Expr::load(&name, place));
        let walk = Node::loop_for(counter, Expr::u32(0), to, vec![Node::assign(&sum.name, next)]);
        out.push(match self.rng.below(3) {
            0 => Node::if_then(Expr::lt(id, Expr::buf_len(&name)), vec![walk]),
            _ => walk,
        });
        self.mix(&sum, out);
    }

    /// A place under a condition that compares what it is made of.
    fn compared_place(&mut self, out: &mut Vec<Node>) {
        if self.bodies.len() >= DEEPEST {
            return self.simple(out);
        }
        // What stands for an earlier effect keeps uniform loads, which wait, out of places.
        self.effect = true;
        let [a, b] = [(); 2].map(|()| {
            let value = self.part(Level::Divergent);
            Expr::var(&self.open_place(Level::Divergent, value, out).name)
        });
        let mut cond = self.comparison(a.clone(), b.clone());
        if self.rng.chance(1, 3) {
            let other = self.comparison(b.clone(), a.clone());
            cond = if self.rng.chance(2, 3) { Expr::and(cond, other) } else { Expr::or(cond, other) };
        }
        let outer = std::mem::replace(&mut self.control, Level::Divergent);
        let [then, otherwise] = [(); 2].map(|()| {
            let place = self.place_of(a.clone(), b.clone());
            self.body_of(|generator, out| generator.load_at(place, out))
        });
        self.control = outer;
        let otherwise = if self.rng.chance(1, 2) { otherwise } else { Vec::new() };
        out.push(Node::if_then_else(cond, then, otherwise));
    }

    fn comparison(&mut self, a: Expr, b: Expr) -> Expr {
        let ops = [BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge, BinOp::Ne, BinOp::Eq];
        let op = *self.rng.pick(&ops);
        let few = self.rng.below(20) as u32;
        match self.rng.below(6) {
            0 => Expr::binary(op, a, Expr::u32(few)),
            1 => Expr::binary(op, Expr::add(a, Expr::u32(few)), b),
            2 => Expr::binary(op, Expr::cast(Type::I32, a), Expr::i32(few as i32 - 4)),
            3 => Expr::binary(op, Expr::cast(Type::I32, a), Expr::cast(Type::I32, b)),
            4 => {
                let buffer = self.rng.below(self.buffers.len() as u64) as usize;
                Expr::binary(op, a, Expr::buf_len(&self.buffers[buffer].name))
            }
            _ => Expr::binary(op, a, b),
        }
    }

    /// The last counter of a loop for which something held, or something made of it.
    fn best_place(&mut self, out: &mut Vec<Node>) {
        if !self.may_loop() {
            return self.simple(out);
        }
        self.effect = true;
        let start = if self.rng.chance(1, 2) { Expr::u32(0) } else { self.part(Level::Divergent) };
        let best = self.open_place(Level::Divergent, start, out);
        let to = self.part(Level::Grid);
        let to =
            if self.rng.chance(1, 2) { Expr::rem(to, Expr::u32(FAR)) } else { Expr::min(to, Expr::u32(FAR)) };
        let from = Expr::u32(self.rng.below(3) as u32);
        let body = |generator: &mut Generator| {
            generator.body_of(|generator, out| {
                generator.effect = true;
                let Some(counter) = generator.variables.since(0).last().map(|v| Expr::var(&v.name)) else {
                    return;
                };
                let lane = generator.part(Level::Divergent);
                let cond = generator.comparison(Expr::mul(lane, Expr::u32(7)), counter.clone());
                let next = match generator.rng.below(4) {
                    0 => generator.place_of(counter, Expr::var(&best.name)),
                    _ => counter,
                };
                if generator.rng.chance(1, 3) {
                    let kept = Expr::select(cond, next, Expr::var(&best.name));
                    out.push(Node::assign(&best.name, kept));
                } else {
                    out.push(Node::if_then(cond, vec![Node::assign(&best.name, next)]));
                }
                if generator.rng.chance(1, 3) {
                    generator.load_at(Expr::var(&best.name), out);
                }
            })
        };
        let level = self.control();
        self.loop_of(level, Level::Grid, (from, to), body, out);
        let other = self.part(Level::Divergent);
        let place = self.place_of(Expr::var(&best.name), other);
        self.load_at(place, out);
    }

    /// Places that go around a loop while what they were made of changes; barriers in it, where they may stand.
    fn carried_places(&mut self, out: &mut Vec<Node>) {
        if !self.may_loop() {
            return self.simple(out);
        }
        self.effect = true;
        let control = self.control();
        let level = control.max(*self.rng.pick(&[Level::Grid, Level::Workgroup, Level::Divergent]));
        let start = self.part(level);
        let count = self.open_place(level, start, out);
        let first = if self.rng.chance(1, 2) { Expr::u32(0) } else { self.part(Level::Divergent) };
        let place = self.open_place(Level::Divergent, first, out);
        let range = (Expr::u32(0), Expr::u32(2 + self.rng.below(4) as u32));
        let body = |generator: &mut Generator| {
            generator.body_of(|generator, out| {
                for _ in 0..3 + generator.rng.below(4) {
                    generator.effect = true;
                    match generator.rng.below(7) {
                        0 | 1 => generator.load_at(Expr::var(&place.name), out),
                        2 | 3 => generator.set_place(&place, &count, out),
                        4 if control < Level::Divergent => generator.synchronise(out),
                        _ => generator.change_count(&count, out),
                    }
                }
            })
        };
        self.loop_of(control, Level::Grid, range, body, out);
        self.load_at(Expr::var(&place.name), out);
    }

    /// `let mut` of a place or of what places are made of.
    fn open_place(&mut self, level: Level, value: Expr, out: &mut Vec<Node>) -> Variable {
        self.open_let(out, Type::U32, level, true, value)
    }

    /// Gives a place a new value, for all invocations or for some, once or in a loop of its own.
    fn set_place(&mut self, place: &Variable, count: &Variable, out: &mut Vec<Node>) {
        // Under a condition only its name may stand: it may hold what needs all invocations.
        let other = self.part(Level::Divergent);
        let other = Expr::var(&self.open_place(Level::Divergent, other, out).name);
        let next = self.place_of(Expr::var(&count.name), other.clone());
        let set = Node::assign(&place.name, next);
        match self.rng.below(4) {
            0 => {
                let cond = self.comparison(other, Expr::var(&count.name));
                out.push(Node::if_then(cond, vec![set]));
            }
            1 => {
                let pick = self.rng.below(16);
                let counter = self.variables.fresh_name(pick);
                let to = Expr::rem(other, Expr::u32(3));
                out.push(Node::loop_for(counter, Expr::u32(0), to, vec![set]));
            }
            _ => out.push(set),
        }
    }

    /// Gives what places are made of a new value, mostly a smaller one.
    fn change_count(&mut self, count: &Variable, out: &mut Vec<Node>) {
        let old = || Expr::var(&count.name);
        let few = Expr::u32(1 + self.rng.below(5) as u32);
        let next = match self.rng.below(6) {
            0 | 1 => Expr::div(old(), few),
            2 => Expr::sub(old(), few),
            3 => Expr::add(old(), few),
            4 => Expr::rem(Expr::mul(old(), few), Expr::u32(FAR)),
            _ => self.part(count.level),
        };
        if count.level >= self.control() {
            out.push(Node::assign(&count.name, next));
        }
    }
}
