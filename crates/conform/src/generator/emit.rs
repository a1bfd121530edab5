//! One statement, or a few, for a feature of the catalogue.

use super::Generator;
use super::feature::Feature;
use super::phase::{Mode, Phase};
use super::scope::Level;
use vyre_foundation::{AtomicOp, BufferAccess, Element, Expr, Node, Scope, Type};

impl Generator {
    /// Works the feature into the program here. False where control or a phase forbids it; at the top level of
    /// the entry body, where control is uniform, it always succeeds.
    pub(super) fn emit(&mut self, feature: Feature, out: &mut Vec<Node>) -> bool {
        self.effect = false;
        let level = Level::Divergent;
        let (ty, value) = match feature {
            Feature::Declare(..) | Feature::Empty(_) => return true,
            Feature::Load(access, element) => return self.emit_load(access, element, out),
            Feature::Store(access, element) => return self.emit_store(access, element, out),
            Feature::Atomic(op, access, element) => return self.emit_atomic(op, access, element, out),
            Feature::UniformLoad(scope, access, element) => {
                return self.emit_uniform_load(scope, access, element, out);
            }
            Feature::Ordering(op, ordering) => {
                let Some(buffer) = self.find_buffer(BufferAccess::Output, Element::U32) else { return false };
                if !self.emit_owned(buffer, out) {
                    return false;
                }
                let atomic = self.own_atomic(buffer, op, 1).with_ordering(ordering);
                out.push(Node::eval(atomic));
                return true;
            }
            Feature::Ballot | Feature::Shuffle(_) | Feature::Reduce(..) => {
                return self.emit_subgroup(feature, out);
            }
            Feature::Length(access) => {
                let Some(buffer) = self.pick_buffer(|b| b.access == access) else { return false };
                (Type::U32, Expr::buf_len(&self.buffers[buffer].name))
            }
            Feature::Function(ty) => {
                let Some(call) = self.call(ty, level, 2) else { return false };
                (ty, call)
            }
            operator => self.operator(operator, level),
        };
        self.open_let(out, ty, level, false, value);
        true
    }

    /// The type and the expression of a feature that is an operator or a constant.
    fn operator(&mut self, feature: Feature, level: Level) -> (Type, Expr) {
        match feature {
            Feature::Binary(op, from) => {
                let left = self.expr(from, level, 1);
                let value = Expr::binary(op, left, self.expr(from, level, 1));
                (op.result(from).unwrap_or(from), value)
            }
            Feature::Unary(op, from) => {
                (op.result(from).unwrap_or(from), Expr::unary(op, self.expr(from, level, 1)))
            }
            Feature::Select(ty) => (ty, self.select(ty, level, 1)),
            Feature::Clamp(ty) => {
                let [x, lo, hi] = std::array::from_fn(|_| self.expr(ty, level, 1));
                (ty, Expr::clamp(x, lo, hi))
            }
            Feature::Cast(from, to) => (to, Expr::cast(to, self.expr(from, level, 1))),
            Feature::Bitcast(from, to) => (to, Expr::bitcast(to, self.expr(from, level, 1))),
            Feature::Fma => {
                let [a, b, c] = std::array::from_fn(|_| self.expr(Type::F32, level, 1));
                (Type::F32, Expr::fma(a, b, c))
            }
            Feature::Constant(literal) => (literal.ty(), Expr::Literal(literal)),
            other => unreachable!("{other:?} is no operator"),
        }
    }

    fn find_buffer(&mut self, access: BufferAccess, element: Element) -> Option<usize> {
        self.pick_buffer(|b| (b.access, b.element) == (access, element))
    }

    /// Brings the buffer into an owned phase. False where control forbids the barrier.
    pub(super) fn emit_owned(&mut self, buffer: usize, out: &mut Vec<Node>) -> bool {
        let now = self.phases[buffer];
        if matches!(now.mode, Mode::Owned(_)) {
            return true;
        }
        let owned = Phase::owned(&mut self.rng, now.domain);
        self.enter_phase(buffer, owned, out)
    }

    fn emit_load(&mut self, access: BufferAccess, element: Element, out: &mut Vec<Node>) -> bool {
        let Some(buffer) = self.find_buffer(access, element) else { return false };
        if let Some(Phase { domain, mode: Mode::Gather(_) }) = self.phased(buffer)
            && !self.enter_phase(buffer, Phase { domain, mode: Mode::Shared }, out)
        {
            return false;
        }
        let Some(index) = self.load_index(buffer, Level::Divergent, 1) else { return false };
        let load = Expr::load(&self.buffers[buffer].name, index);
        self.open_let(out, element.value_type(), Level::Divergent, false, load);
        true
    }

    fn emit_store(&mut self, access: BufferAccess, element: Element, out: &mut Vec<Node>) -> bool {
        let Some(buffer) = self.find_buffer(access, element) else { return false };
        if self.phased(buffer).is_some() && !self.emit_owned(buffer, out) {
            return false;
        }
        let store = self.store_to(buffer, 2);
        let made = store.is_some();
        out.extend(store);
        made
    }

    fn emit_atomic(
        &mut self,
        op: AtomicOp,
        access: BufferAccess,
        element: Element,
        out: &mut Vec<Node>,
    ) -> bool {
        let Some(buffer) = self.find_buffer(access, element) else { return false };
        let gathers = match self.phases[buffer].mode {
            Mode::Gather(kinds) => kinds.iter().any(|kind| kind.operations().contains(&op)),
            _ => false,
        };
        if gathers {
            let atomic = self.gather_atomic(buffer, Some(op), 2);
            out.push(Node::eval(atomic));
            return true;
        }
        if !self.emit_owned(buffer, out) {
            return false;
        }
        let atomic = self.own_atomic(buffer, op, 2);
        if op == AtomicOp::Store || self.rng.chance(1, 4) {
            out.push(Node::eval(atomic));
        } else {
            self.open_let(out, element.value_type(), Level::Divergent, false, atomic);
        }
        true
    }

    fn emit_uniform_load(
        &mut self,
        scope: Scope,
        access: BufferAccess,
        element: Element,
        out: &mut Vec<Node>,
    ) -> bool {
        let level = match scope {
            Scope::Grid => Level::Grid,
            Scope::Workgroup => Level::Workgroup,
        };
        if self.control() > level {
            return false;
        }
        let Some(buffer) = self.find_buffer(access, element) else { return false };
        if !self.uniform_sources(scope, None).contains(&buffer) {
            let shared = Phase { domain: self.phases[buffer].domain, mode: Mode::Shared };
            if !self.enter_phase(buffer, shared, out) {
                return false;
            }
        }
        let load = self.uniform_load_of(scope, buffer);
        self.open_let(out, element.value_type(), level, false, load);
        self.change_phases(scope);
        true
    }

    fn emit_subgroup(&mut self, feature: Feature, out: &mut Vec<Node>) -> bool {
        if self.control() > Level::Workgroup {
            return false;
        }
        let ballot = if self.shape.subgroup == 64 { Type::U64 } else { Type::U32 };
        let (ty, value) = match feature {
            Feature::Shuffle(ty) => (ty, self.shuffle(ty, 1)),
            Feature::Reduce(op, ty) => (ty, Expr::subgroup_reduce(op, self.mostly_varied(ty, 1))),
            _ => (ballot, Expr::subgroup_ballot(self.mostly_varied(Type::Bool, 1))),
        };
        self.open_let(out, ty, Level::Divergent, false, value);
        true
    }
}
