//! Barriers and uniform loads as statements, and the changes of phase that they allow.

use super::Generator;
use super::literal::constant;
use super::phase::{Buffer, Domain, Mode, Ownership, Phase};
use super::scope::{Level, Variable};
use vyre_foundation::{BinOp, BufferAccess, Expr, MemoryOrdering, Node, Scope, Type};

impl Generator {
    /// A barrier, or a uniform load with a use of its value; then new phases. Nothing under divergent control.
    pub(super) fn synchronise(&mut self, out: &mut Vec<Node>) {
        let scope = match self.control() {
            Level::Grid if self.rng.chance(1, 2) => Scope::Grid,
            Level::Grid | Level::Workgroup => Scope::Workgroup,
            Level::Divergent => return,
        };
        if self.rng.chance(2, 5) {
            return self.uniform_let(scope, out);
        }
        out.push(barrier(scope));
        self.change_phases(scope);
    }

    /// `let v = … uniform_load(…) …;`, where the rest of the statement is already in the new phases.
    pub(super) fn uniform_let(&mut self, scope: Scope, out: &mut Vec<Node>) {
        let sources = self.uniform_sources(scope, None);
        if sources.is_empty() {
            out.push(barrier(scope));
            return self.change_phases(scope);
        }
        let buffer = *self.rng.pick(&sources);
        let ty = self.buffers[buffer].element.value_type();
        let mut level = match scope {
            Scope::Grid => Level::Grid,
            Scope::Workgroup => Level::Workgroup,
        };
        self.effect = false;
        let mut value = self.uniform_load_of(scope, buffer);
        self.change_phases(scope);
        if self.rng.chance(1, 3) {
            // The rest of the statement happens after the load, whichever side it stands on.
            let any = if self.rng.chance(1, 2) { level } else { Level::Divergent };
            level = level.max(any);
            let op = *self.rng.pick(&[BinOp::Add, BinOp::Min, BinOp::Max, BinOp::Sub]);
            value = if self.rng.chance(1, 2) {
                Expr::binary(op, value, self.expr(ty, any, 1))
            } else {
                // On the left only what cannot hold an atomic: it would come before the load.
                let readable = self.variables.readable(ty, any);
                let left = match readable.is_empty() {
                    true => constant(&mut self.rng, ty),
                    false => Expr::var(&self.rng.pick(&readable).name),
                };
                Expr::binary(op, left, value)
            };
        }
        self.open_let(out, ty, level, false, value);
    }

    /// Communication: everybody writes to a buffer, waits, and reads what others wrote.
    pub(super) fn exchange(&mut self, out: &mut Vec<Node>) {
        let control = self.control();
        let usable = |b: &Buffer| match b.access {
            BufferAccess::Workgroup => control <= Level::Workgroup,
            BufferAccess::WriteOnly => false,
            _ => control == Level::Grid,
        };
        let Some(buffer) = self.pick_buffer(|b| b.is_phased() && b.len > 0 && usable(b)) else {
            return self.simple(out);
        };
        let domain = self.phases[buffer].domain;
        if self.phases[buffer].mode == Mode::Shared {
            let owned = Phase::owned(&mut self.rng, domain);
            self.enter_phase(buffer, owned, out);
        }
        self.effect = false;
        let written = self.phases[buffer];
        let write = match written.mode {
            Mode::Gather(_) => Some(Node::eval(self.gather_atomic(buffer, None, 1))),
            _ => self.store_to(buffer, 1),
        };
        out.extend(write);
        self.effect = false;
        let ty = self.buffers[buffer].element.value_type();
        let (level, value) = if self.rng.chance(1, 3) {
            let (scope, level) = match domain {
                Domain::Group => (Scope::Workgroup, Level::Workgroup),
                Domain::Grid | Domain::Slice { .. } => (Scope::Grid, Level::Grid),
            };
            (level, self.uniform_load_of(scope, buffer))
        } else {
            self.enter_phase(buffer, Phase { domain, mode: Mode::Shared }, out);
            let index = match written.mode {
                Mode::Owned(ownership) if self.rng.chance(2, 3) => self.others_index(domain, ownership),
                _ => self.any_index(buffer, Level::Divergent, 1),
            };
            (Level::Divergent, Expr::load(&self.buffers[buffer].name, index))
        };
        let variable = self.open_let(out, ty, level, false, value);
        self.mix(&variable, out);
    }

    /// The index of an element that another invocation owned before the phase became shared.
    fn others_index(&mut self, domain: Domain, ownership: Ownership) -> Expr {
        let (id, count) = match domain {
            Domain::Grid => (self.global_id(), self.shape.total()),
            Domain::Slice { .. } | Domain::Group => (self.local_id(), self.shape.group()),
        };
        // Half of the grid away is another workgroup wherever there is more than one.
        let step = *self.rng.pick(&[1, count / 2, count / 2, count.wrapping_sub(1)]);
        let other = match self.rng.below(3) {
            0 => Expr::sub(Expr::u32(count.wrapping_sub(1)), id),
            _ => Expr::rem(Expr::add(id, Expr::u32(step)), Expr::u32(count)),
        };
        let mut index = ownership.start(other, count);
        if let Domain::Slice { pitch } = domain {
            index = Expr::add(self.slice_start(pitch), index);
        }
        match self.rng.below(u64::from(ownership.pitch)) {
            0 => index,
            part => Expr::add(index, Expr::u32(part as u32)),
        }
    }

    /// Lets buffers enter new phases where a barrier of this scope has just ordered all earlier accesses.
    pub(super) fn change_phases(&mut self, scope: Scope) {
        for i in 0..self.buffers.len() {
            if self.buffers[i].is_phased() && self.rng.chance(1, 2) {
                self.phases[i] = Phase::next(&mut self.rng, &self.buffers[i], self.phases[i], scope);
            }
        }
    }

    /// Waits so that every buffer can return to the phase it had before; nothing if it has not left it.
    pub(super) fn restore_phases(&mut self, before: &[Phase], out: &mut Vec<Node>) {
        let phased = (0..self.buffers.len()).filter(|i| self.buffers[*i].is_phased());
        let needed = phased.filter_map(|i| self.phases[i].change(before[i])).max();
        if let Some(scope) = needed {
            out.push(barrier(scope));
            self.phases.copy_from_slice(before);
        }
    }

    /// Brings a buffer into a phase with a barrier, unless it is in it. False where control forbids the barrier.
    pub(super) fn enter_phase(&mut self, buffer: usize, phase: Phase, out: &mut Vec<Node>) -> bool {
        let Some(scope) = self.phases[buffer].change(phase) else { return true };
        let at_most = match scope {
            Scope::Grid => Level::Grid,
            Scope::Workgroup => Level::Workgroup,
        };
        if self.control() > at_most {
            return false;
        }
        out.push(barrier(scope));
        self.phases[buffer] = phase;
        true
    }

    /// `let name = value;` with a new variable of this type and uniformity, which is given back.
    pub(super) fn open_let(
        &mut self,
        out: &mut Vec<Node>,
        ty: Type,
        level: Level,
        mutable: bool,
        value: Expr,
    ) -> Variable {
        let pick = self.rng.below(24);
        let name = self.variables.fresh_name(pick);
        out.push(Node::let_bind(&name, value));
        let variable = Variable { name, ty, level, mutable };
        self.variables.open(variable.clone());
        variable
    }
}

/// The barrier of a scope.
pub(super) fn barrier(scope: Scope) -> Node {
    match scope {
        Scope::Workgroup => Node::barrier(),
        Scope::Grid => Node::barrier_with_ordering(MemoryOrdering::GridSync),
    }
}
