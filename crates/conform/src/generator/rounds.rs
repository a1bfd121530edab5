//! Loops of many rounds that do nothing but compute, and that invocations leave at different times.
//!
//! Other loops have few rounds, so that programs end soon. What a backend does only for loops that go on for long, or for
//! the last invocations in them, needs some of these.

use super::Generator;
use super::scope::{Level, Variable};
use super::statement::mixed;
use vyre_foundation::{Expr, Node, Type};

impl Generator {
    /// A loop of up to some hundred rounds over variables of its own.
    pub(super) fn long_loop(&mut self, out: &mut Vec<Node>) {
        // Bodies in loops would make it too many.
        if self.cost > 1 || !self.may_loop() {
            return self.simple(out);
        }
        let mut own = Vec::new();
        for _ in 0..1 + self.rng.below(3) {
            let any = *self.rng.pick(&Type::ALL);
            let ty = *self.rng.pick(&[Type::U64, Type::U64, Type::I64, Type::U32, any]);
            let value = self.mostly_varied(ty, 1);
            own.push(self.open_let(out, ty, Level::Divergent, true, value));
        }
        let many = 20 + self.rng.below(150) as u32;
        let counter = self.variables.fresh_name(u64::MAX);
        let mark = self.variables.mark();
        self.variables.open(Variable {
            name: counter.clone(),
            ty: Type::U32,
            level: Level::Grid,
            mutable: false,
        });
        let mut body = Vec::new();
        for variable in &own {
            let value = self.next_round(variable);
            body.push(Node::assign(&variable.name, value));
        }
        if self.rng.chance(1, 3) {
            body.push(Node::assign("sum", mixed(Expr::var(&counter))));
        }
        for _ in 0..1 + self.rng.below(2) {
            let leaves = self.leaves(&own, &counter, many);
            let at = self.rng.below(body.len() as u64 + 1) as usize;
            body.insert(at, Node::if_then(leaves, vec![Node::break_()]));
        }
        self.variables.close(mark);
        out.push(Node::loop_for(counter, Expr::u32(0), Expr::u32(many), body));
        for variable in &own {
            self.mix(variable, out);
        }
    }

    /// The next value of a variable, without effects.
    fn next_round(&mut self, variable: &Variable) -> Expr {
        let was_pure = std::mem::replace(&mut self.pure, true);
        let next = match self.rng.below(3) {
            0 => self.value(variable.ty, Level::Divergent),
            _ => self.update(variable),
        };
        // The same in all lanes, and made of what is not.
        let base = Expr::sub(self.global_id(), self.local_id());
        let next = match variable.ty {
            Type::Bool => next,
            ty if self.rng.chance(1, 5) => Expr::add(next, Expr::cast(ty, base)),
            _ => next,
        };
        let level = *self.rng.pick(&[Level::Grid, Level::Divergent]);
        let load = if self.rng.chance(1, 3) { self.load(variable.ty, level, 1) } else { None };
        self.pure = was_pure;
        match load {
            Some(load) => {
                let some = Expr::lt(Expr::rem(Expr::var("gid"), Expr::u32(5)), Expr::u32(3));
                Expr::select(some, load, next)
            }
            None => next,
        }
    }

    /// When an invocation leaves: mostly at a time of its own, and many of them early.
    fn leaves(&mut self, own: &[Variable], counter: &str, many: u32) -> Expr {
        let count = Expr::var(counter);
        let id = if self.rng.chance(1, 2) { self.global_id() } else { self.local_id() };
        let few = 2 + self.rng.below(7) as u32;
        match self.rng.below(5) {
            0 | 1 => {
                // One of a few stays for long.
                let stays = Expr::eq(Expr::rem(id, Expr::u32(few)), Expr::u32(self.rng.below(2) as u32));
                let early = Expr::ge(count.clone(), Expr::u32(self.rng.below(20) as u32));
                let late = Expr::ge(count, Expr::u32(20 + self.rng.below(u64::from(many)) as u32));
                Expr::or(late, Expr::and(Expr::not(stays), early))
            }
            2 => Expr::ge(count, Expr::mul(id, Expr::u32(few))),
            3 => Expr::ge(Expr::mul(count, Expr::u32(few)), Expr::bit_xor(id, Expr::u32(85))),
            _ => {
                let variable = self.rng.pick(own).clone();
                let bits = Expr::cast(Type::U32, Expr::var(&variable.name));
                Expr::eq(Expr::bit_and(bits, Expr::u32((1 << few) - 1)), Expr::u32(1))
            }
        }
    }
}
