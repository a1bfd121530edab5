//! Statements without bodies, and the checksum that makes their values visible in an output.

use super::literal::constant;
use super::phase::{Buffer, Mode, Phase};
use super::scope::{Level, Variable};
use super::{Emphasis, Generator};
use vyre_foundation::{BufferAccess, Element, Expr, Node, Type};

impl Generator {
    /// Any statement that may stand here.
    pub(super) fn statement(&mut self, out: &mut Vec<Node>) {
        self.fuel = self.fuel.saturating_sub(self.cost);
        self.effect = false;
        if self.rng.chance(1, 4)
            && let Some(feature) = self.features.pop()
        {
            if !self.emit(feature, out) {
                self.features.insert(0, feature);
            }
            return;
        }
        if self.traps && self.rng.chance(1, 8) {
            return self.trap(out);
        }
        // Most of what can go wrong at a barrier goes wrong in loops and branches.
        if !self.bodies.is_empty() && self.control() < Level::Divergent && self.rng.chance(1, 3) {
            return if self.rng.chance(1, 2) { self.synchronise(out) } else { self.exchange(out) };
        }
        if self.emphasis == Emphasis::GridBarriers && self.control() == Level::Grid && self.rng.chance(3, 5) {
            return self.grid_statement(out);
        }
        match self.rng.below(55) {
            0..=16 => self.simple(out),
            17..=21 => self.branch(out),
            22..=25 => self.for_loop(out),
            26 | 27 => self.block(out),
            28..=33 => self.synchronise(out),
            34..=37 => self.jump(out),
            38 => self.guarded_return(out),
            39 => self.trap(out),
            40 => self.swap(out),
            41 => self.borrow_uniform(out),
            42 => self.evaluate(out),
            43..=47 => self.exchange(out),
            48 | 49 => self.grid_statement(out),
            50..=52 => self.places(out),
            53 => self.long_loop(out),
            _ => {
                let variables: Vec<_> = self.variables.since(0).to_vec();
                let variable = self.rng.pick(&variables).clone();
                self.mix(&variable, out);
            }
        }
    }

    /// A statement that neither branches nor waits.
    pub(super) fn simple(&mut self, out: &mut Vec<Node>) {
        self.effect = false;
        match self.rng.below(16) {
            0..=3 => {
                let ty = *self.rng.pick(&Type::ALL);
                self.declare_variable(out, ty);
            }
            4..=8 => self.assign(out),
            9..=12 => self.store(out),
            _ => self.atomic_statement(out),
        }
    }

    /// `let` of a variable of this type.
    pub(super) fn declare_variable(&mut self, out: &mut Vec<Node>, ty: Type) {
        self.effect = false;
        let mutable = self.rng.chance(2, 3);
        let any = *self.rng.pick(&[Level::Grid, Level::Workgroup, Level::Divergent, Level::Divergent]);
        // A variable that no assignment could reach here need not be mutable.
        let level = if mutable { any.max(self.control()) } else { any };
        let value = self.value(ty, level);
        self.open_let(out, ty, level, mutable, value);
    }

    fn assign(&mut self, out: &mut Vec<Node>) {
        let control = self.control();
        let assignable = self.variables.assignable(control);
        let target: Variable = (*self.rng.pick(&assignable)).clone();
        let value =
            if self.rng.chance(1, 2) { self.update(&target) } else { self.value(target.ty, target.level) };
        out.push(Node::assign(&target.name, value));
    }

    /// A new value of a variable that depends on its old one: an accumulator in a loop.
    pub(super) fn update(&mut self, target: &Variable) -> Expr {
        let same: Vec<_> =
            self.binary[target.ty as usize].iter().filter(|(_, from)| *from == target.ty).collect();
        let (op, _) = **self.rng.pick(&same);
        let old = Expr::var(&target.name);
        let other = self.value(target.ty, target.level);
        if self.rng.chance(3, 4) { Expr::binary(op, old, other) } else { Expr::binary(op, other, old) }
    }

    fn store(&mut self, out: &mut Vec<Node>) {
        let depth = 1 + self.rng.below(3) as u32;
        if let Some(buffer) = self.pick_buffer(|b| b.access.allows_store()) {
            out.extend(self.store_to(buffer, depth));
        }
    }

    fn atomic_statement(&mut self, out: &mut Vec<Node>) {
        let Some(buffer) = self.pick_buffer(|b| b.atomics) else { return };
        let expr = match self.phases[buffer].mode {
            Mode::Gather(_) => self.gather_atomic(buffer, None, 2),
            Mode::Owned(_) => {
                let op = *self.rng.pick(&vyre_foundation::AtomicOp::ALL);
                self.own_atomic(buffer, op, 2)
            }
            Mode::Shared => return,
        };
        out.push(Node::eval(expr));
    }

    /// An expression whose value nobody takes.
    fn evaluate(&mut self, out: &mut Vec<Node>) {
        let ty = *self.rng.pick(&Type::ALL);
        let value = match self.call(ty, Level::Divergent, 1) {
            Some(call) => call,
            None if self.control() <= Level::Workgroup => self.shuffle(ty, 1),
            None => return,
        };
        out.push(Node::eval(value));
    }

    /// Exchanges two variables through a third: in a loop, values that a wrong order of copies would lose.
    fn swap(&mut self, out: &mut Vec<Node>) {
        let control = self.control();
        let assignable = self.variables.assignable(control);
        let pairs: Vec<_> = assignable
            .iter()
            .flat_map(|a| assignable.iter().map(move |b| (*a, *b)))
            .filter(|(a, b)| a.name != b.name && a.ty == b.ty && a.level == b.level)
            .collect();
        if pairs.is_empty() {
            return;
        }
        let (a, b) = *self.rng.pick(&pairs);
        let (a, b) = (a.clone(), b.clone());
        let kept = Expr::var(&self.open_let(out, a.ty, a.level, false, Expr::var(&a.name)).name);
        out.push(Node::assign(&a.name, Expr::var(&b.name)));
        out.push(Node::assign(&b.name, kept));
    }

    /// Gives a uniform variable a divergent value for a moment: it is uniform again after the next assignment.
    fn borrow_uniform(&mut self, out: &mut Vec<Node>) {
        let control = self.control();
        let assignable = self.variables.assignable(control);
        let uniform: Vec<_> = assignable.into_iter().filter(|v| v.level < Level::Divergent).collect();
        if uniform.is_empty() {
            return;
        }
        let variable: Variable = (*self.rng.pick(&uniform)).clone();
        let divergent = self.value(variable.ty, Level::Divergent);
        out.push(Node::assign(&variable.name, divergent));
        self.mix(&variable, out);
        out.push(Node::assign(&variable.name, constant(&mut self.rng, variable.ty)));
    }

    /// Adds the value of a variable to the checksum.
    pub(super) fn mix(&mut self, variable: &Variable, out: &mut Vec<Node>) {
        let value = Expr::var(&variable.name);
        out.push(Node::assign("sum", mixed(bits(value, variable.ty))));
    }

    /// The end of the program: all that it knows goes into the checksum, and that into an output.
    pub(super) fn checksum(&mut self, out: &mut Vec<Node>) {
        for variable in self.variables.since(0).to_vec() {
            if variable.name != "sum" && (variable.mutable || self.rng.chance(1, 2)) {
                self.mix(&variable, out);
            }
        }
        for i in 0..self.buffers.len() {
            let returned = self.buffers[i].access.produces_output();
            if !returned && self.buffers[i].access.allows_store() && self.rng.chance(2, 3) {
                self.mix_element(i, out);
            }
        }
        let is_main = |b: &Buffer| b.access == BufferAccess::Output && b.element == Element::U32;
        if let Some(main) = self.pick_buffer(is_main) {
            self.emit_owned(main, out);
            let index = self.own_index(main);
            out.push(Node::store(&self.buffers[main].name, index, Expr::var("sum")));
        }
    }

    /// Adds an element of memory that is not returned to the checksum.
    fn mix_element(&mut self, buffer: usize, out: &mut Vec<Node>) {
        self.effect = false;
        if let Some(Phase { domain, mode: Mode::Gather(_) }) = self.phased(buffer) {
            self.enter_phase(buffer, Phase { domain, mode: Mode::Shared }, out);
        }
        if let Some(index) = self.load_index(buffer, Level::Divergent, 1) {
            let load = Expr::load(&self.buffers[buffer].name, index);
            let ty = self.buffers[buffer].element.value_type();
            let variable = self.open_let(out, ty, Level::Divergent, false, load);
            self.mix(&variable, out);
        }
    }
}

/// The checksum with these bits added.
pub(super) fn mixed(bits: Expr) -> Expr {
    Expr::bit_xor(Expr::rotl(Expr::var("sum"), Expr::u32(5)), bits)
}

/// The value as a `u32` in which every bit of it counts.
fn bits(value: Expr, ty: Type) -> Expr {
    let folded =
        |value: Expr| Expr::cast(Type::U32, Expr::bit_xor(value.clone(), Expr::shr(value, Expr::u64(32))));
    match ty {
        Type::Bool => Expr::cast(Type::U32, value),
        Type::U32 => value,
        Type::I32 | Type::F32 => Expr::bitcast(Type::U32, value),
        Type::U64 => folded(value),
        Type::I64 => folded(Expr::bitcast(Type::U64, value)),
    }
}
