//! Statements about grid barriers: waits in straight code, loops and branches, uniform values that decide them, and
//! state that lives across them.
//!
//! [`super::generate`] makes them now and then; [`super::generate_with_grid_barriers`] makes programs of little
//! else. All need control that is uniform for the grid.

use super::Generator;
use super::control::{DEEPEST, End};
use super::scope::Level;
use super::sync::barrier;
use vyre_foundation::{BinOp, BufferAccess, Expr, Node, Scope, Type};

impl Generator {
    /// A statement that waits for the grid or holds one that does; a simple one where control forbids it.
    pub(super) fn grid_statement(&mut self, out: &mut Vec<Node>) {
        if self.control() != Level::Grid {
            return self.simple(out);
        }
        self.effect = false;
        match self.rng.below(20) {
            0..=3 => self.grid_wait(out),
            4..=6 => self.exchange(out),
            7..=9 => {
                let condition = self.grid_condition();
                self.grid_branch(condition, out);
            }
            10..=12 => self.grid_loop(out),
            13 | 14 => self.loop_until(out),
            15 | 16 => self.plain_loop_decides(out),
            17 => self.kept_in_memory(out),
            18 => self.kept_in_variable(out),
            _ => {
                self.guarded_return(out);
                self.grid_wait(out);
            }
        }
    }

    /// A grid barrier, sometimes two, or a uniform load; then new phases.
    pub(super) fn grid_wait(&mut self, out: &mut Vec<Node>) {
        if self.control() != Level::Grid {
            return self.simple(out);
        }
        self.fuel = self.fuel.saturating_sub(self.cost);
        if self.rng.chance(1, 3) {
            return self.uniform_let(Scope::Grid, out);
        }
        out.push(barrier(Scope::Grid));
        if self.rng.chance(1, 10) {
            out.push(barrier(Scope::Grid));
        }
        self.change_phases(Scope::Grid);
    }

    /// A body that waits for the grid at its beginning, in its middle or at its end.
    fn waiting_body(&mut self) -> Vec<Node> {
        self.body_of(|generator, out| {
            let wait = generator.rng.below(3);
            for part in 0..3 {
                if part == wait {
                    generator.grid_wait(out);
                } else if generator.fuel > 0 && generator.rng.chance(2, 3) {
                    generator.statement(out);
                }
            }
        })
    }

    /// A condition, uniform for the grid, that holds about as often as not.
    fn grid_condition(&mut self) -> Expr {
        match self.rng.below(4) {
            0 => self.value(Type::Bool, Level::Grid),
            1 | 2 => self.uniform_load_condition(),
            _ => {
                let value = self.expr(Type::U32, Level::Grid, 1);
                self.is_in_class(value)
            }
        }
    }

    /// A condition on what a grid `uniform_load` gives.
    fn uniform_load_condition(&mut self) -> Expr {
        self.effect = false;
        let sources = self.uniform_sources(Scope::Grid, None);
        if sources.is_empty() {
            return self.value(Type::Bool, Level::Grid);
        }
        let buffer = *self.rng.pick(&sources);
        let load = self.uniform_load_of(Scope::Grid, buffer);
        let load = match self.buffers[buffer].element.value_type() {
            Type::U32 => load,
            Type::I32 | Type::F32 => Expr::bitcast(Type::U32, load),
            _ => Expr::cast(Type::U32, load),
        };
        self.is_in_class(load)
    }

    /// Whether a number is in one of two or three classes.
    fn is_in_class(&mut self, value: Expr) -> Expr {
        let modulus = 2 + self.rng.below(2) as u32;
        let class = self.rng.below(u64::from(modulus)) as u32;
        // Low bits of floats and addresses are often zero; a product spreads the others.
        let spread = Expr::shr(Expr::mul(value, Expr::u32(0x9e37_79b1)), Expr::u32(16));
        Expr::eq(Expr::rem(spread, Expr::u32(modulus)), Expr::u32(class))
    }

    /// `if` on a uniform condition, with a wait on one side or on both.
    fn grid_branch(&mut self, condition: Expr, out: &mut Vec<Node>) {
        if self.bodies.len() >= DEEPEST {
            return self.grid_wait(out);
        }
        let then = self.waiting_body();
        let otherwise = match self.rng.below(4) {
            0 | 1 => Vec::new(),
            2 => self.body(),
            _ => self.waiting_body(),
        };
        out.push(Node::if_then_else(condition, then, otherwise));
    }

    /// A loop with uniform bounds whose body waits.
    fn grid_loop(&mut self, out: &mut Vec<Node>) {
        if !self.may_loop() {
            return self.grid_wait(out);
        }
        let range = self.bounds(Level::Grid);
        self.loop_of(Level::Grid, Level::Grid, range, Generator::waiting_body, out);
    }

    /// A loop that some iteration leaves, or cuts short, on what a grid `uniform_load` gives.
    fn loop_until(&mut self, out: &mut Vec<Node>) {
        if !self.may_loop() {
            return self.grid_wait(out);
        }
        let range = (Expr::u32(0), Expr::u32(2 + self.rng.below(5) as u32));
        let body = |generator: &mut Generator| {
            generator.body_of(|generator, out| {
                generator.some_statements(out);
                generator.leave_on_data(out);
                generator.some_statements(out);
            })
        };
        self.loop_of(Level::Grid, Level::Grid, range, body, out);
    }

    fn some_statements(&mut self, out: &mut Vec<Node>) {
        for _ in 0..self.rng.below(3) {
            if self.fuel > 0 {
                self.statement(out);
            }
        }
    }

    /// `if … uniform_load(grid, …) … { break; }`, or with `continue`, in the phases of the loop's head.
    fn leave_on_data(&mut self, out: &mut Vec<Node>) {
        if self.control() != Level::Grid {
            return;
        }
        if let Some(before) = self.bodies.last().cloned() {
            self.restore_phases(&before, out);
        }
        let condition = self.uniform_load_condition();
        let end = if self.rng.chance(3, 4) { End::Break } else { End::Continue };
        self.guard(condition, Level::Grid, end, out);
    }

    /// A number that a loop without barriers computes, the same for everybody, decides a branch or a loop with
    /// barriers.
    fn plain_loop_decides(&mut self, out: &mut Vec<Node>) {
        let start = self.leaf(Type::U32, Level::Grid);
        let name = self.open_let(out, Type::U32, Level::Grid, true, start).name;
        let number = || Expr::var(&name);
        let range = self.bounds(Level::Grid);
        let mark = self.variables.mark();
        let pick = self.rng.below(16);
        let counter = self.variables.fresh_name(pick);
        // What stands for an earlier effect keeps uniform loads, which wait, out of the loop.
        self.effect = true;
        let step = self.expr(Type::U32, Level::Grid, 2);
        let grown = Expr::mul(number(), Expr::u32(*self.rng.pick(&[3, 5, 31, 0x9e37_79b1])));
        let value = Expr::add(grown, Expr::bit_xor(step, Expr::var(&counter)));
        let mut body = vec![Node::assign(&name, value)];
        if self.rng.chance(1, 3) {
            let condition = self.is_in_class(number());
            let end = match self.rng.below(3) {
                0 => Node::break_(),
                1 => Node::continue_(),
                _ => Node::assign(&name, Expr::add(number(), Expr::u32(7))),
            };
            let place = self.rng.below(2) as usize;
            body.insert(place, Node::if_then(condition, vec![end]));
        }
        self.variables.close(mark);
        out.push(Node::loop_for(counter, range.0, range.1, body));
        self.effect = false;
        if self.may_loop() && self.rng.chance(1, 2) {
            let spread = Expr::shr(number(), Expr::u32(self.rng.below(4) as u32));
            let range = (Expr::u32(0), Expr::rem(spread, Expr::u32(4)));
            return self.loop_of(Level::Grid, Level::Grid, range, Generator::waiting_body, out);
        }
        let condition = self.is_in_class(number());
        self.grid_branch(condition, out);
    }

    /// An element of a local array or of workgroup memory, stored before a grid barrier and loaded after it.
    fn kept_in_memory(&mut self, out: &mut Vec<Node>) {
        let kept = |access| matches!(access, BufferAccess::Local | BufferAccess::Workgroup);
        let Some(buffer) = self.pick_buffer(|b| kept(b.access) && b.len > 0) else {
            return self.grid_wait(out);
        };
        if self.phased(buffer).is_some() && !self.emit_owned(buffer, out) {
            return;
        }
        self.effect = false;
        out.extend(self.store_to(buffer, 2));
        out.push(barrier(Scope::Grid));
        self.effect = false;
        if let Some(index) = self.load_index(buffer, Level::Divergent, 1) {
            let load = Expr::load(&self.buffers[buffer].name, index);
            let ty = self.buffers[buffer].element.value_type();
            let variable = self.open_let(out, ty, Level::Divergent, false, load);
            self.mix(&variable, out);
        }
    }

    /// A variable set before a wait, and perhaps changed after it, is used after the last.
    fn kept_in_variable(&mut self, out: &mut Vec<Node>) {
        let ty = *self.rng.pick(&Type::ALL);
        let changes = self.rng.chance(1, 2);
        let value = self.mostly_varied(ty, 2);
        let variable = self.open_let(out, ty, Level::Divergent, changes, value);
        self.grid_wait(out);
        if changes {
            self.effect = false;
            let old = Expr::var(&variable.name);
            let new = self.varied(ty, 1);
            let op = if ty == Type::Bool { BinOp::BitXor } else { BinOp::Add };
            out.push(Node::assign(&variable.name, Expr::binary(op, old, new)));
            self.grid_wait(out);
        }
        self.mix(&variable, out);
    }
}
