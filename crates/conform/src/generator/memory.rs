//! Accesses that keep to the phase of their buffer: indices, loads, stores and atomics.

use super::Generator;
use super::phase::{Buffer, Domain, Gather, Mode, Phase};
use super::scope::Level;
use vyre_foundation::{AtomicOp, Axis, BufferAccess, Expr, Literal, MemoryOrdering, Node, Scope, Type};

impl Generator {
    /// The linear id of the invocation in the dispatch.
    pub(super) fn global_id(&mut self) -> Expr {
        if self.shape.is_linear() && self.rng.chance(1, 2) {
            return Expr::invocation_id(Axis::X);
        }
        Expr::var("gid")
    }

    /// The linear id of the invocation in its workgroup.
    pub(super) fn local_id(&mut self) -> Expr {
        let [_, y, z] = self.shape.size.size();
        if y == 1 && z == 1 && self.rng.chance(1, 2) {
            return Expr::local_id(Axis::X);
        }
        Expr::var("lid")
    }

    fn phase(&self, buffer: usize) -> Phase {
        self.phases[buffer]
    }

    /// The first element of the workgroup's slice.
    pub(super) fn slice_start(&self, pitch: u32) -> Expr {
        Expr::mul(Expr::var("wg"), Expr::u32(self.shape.group() * pitch))
    }

    /// The index of an own element of a buffer in an owned phase.
    pub(super) fn own_index(&mut self, buffer: usize) -> Expr {
        let phase = self.phase(buffer);
        let Mode::Owned(ownership) = phase.mode else {
            unreachable!("`{}` is in an owned phase", self.buffers[buffer].name);
        };
        let (id, count) = match phase.domain {
            Domain::Grid => (self.global_id(), self.shape.total()),
            Domain::Slice { .. } | Domain::Group => (self.local_id(), self.shape.group()),
        };
        let mut index = ownership.start(id, count);
        if let Domain::Slice { pitch } = phase.domain {
            index = Expr::add(self.slice_start(pitch), index);
        }
        if ownership.pitch == 1 {
            return index;
        }
        let pitch = u64::from(ownership.pitch);
        let part = match self.rng.below(3) {
            0 => Expr::rem(self.expr(Type::U32, Level::Divergent, 1), Expr::u32(ownership.pitch)),
            _ => Expr::u32(self.rng.below(pitch) as u32),
        };
        Expr::add(index, part)
    }

    /// An index that anybody may load from, at least as uniform as `level`.
    pub(super) fn any_index(&mut self, buffer: usize, level: Level, depth: u32) -> Expr {
        if let Some(Phase { domain: Domain::Slice { pitch }, .. }) = self.phased(buffer) {
            let within = self.expr(Type::U32, level, depth);
            let slice = self.shape.group() * pitch;
            return Expr::add(self.slice_start(pitch), Expr::rem(within, Expr::u32(slice)));
        }
        let name = self.buffers[buffer].name.clone();
        match self.rng.below(10) {
            0 => self.expr(Type::U32, level, depth),
            1 => Expr::u32(self.rng.below(u64::from(self.buffers[buffer].len) + 2) as u32),
            2 => Expr::bit_and(self.expr(Type::U32, level, depth), Expr::u32(7)),
            3 | 4 if level == Level::Divergent => {
                let id = if self.rng.chance(1, 2) { self.global_id() } else { self.local_id() };
                match self.rng.below(4) {
                    0 => id,
                    1 => Expr::add(id, Expr::u32(1)),
                    2 => Expr::sub(id, Expr::u32(1)),
                    _ => Expr::bit_xor(id, Expr::u32(1)),
                }
            }
            _ => Expr::rem(self.expr(Type::U32, level, depth), Expr::buf_len(name)),
        }
    }

    /// An index that is certainly outside the buffer.
    pub(super) fn outside_index(&mut self, buffer: usize) -> Expr {
        let name = self.buffers[buffer].name.clone();
        match self.rng.below(3) {
            0 => Expr::u32(u32::MAX - self.rng.below(3) as u32),
            1 => Expr::buf_len(name),
            _ => {
                let past = Expr::bit_and(self.expr(Type::U32, Level::Divergent, 1), Expr::u32(15));
                Expr::add(Expr::buf_len(name), past)
            }
        }
    }

    /// The phase of a buffer that has phases.
    pub(super) fn phased(&self, buffer: usize) -> Option<Phase> {
        self.buffers[buffer].is_phased().then(|| self.phase(buffer))
    }

    /// An index at which this invocation may load now, or `None` where the phase allows no load.
    pub(super) fn load_index(&mut self, buffer: usize, level: Level, depth: u32) -> Option<Expr> {
        if self.rng.chance(1, 24) && level == Level::Divergent {
            return Some(self.outside_index(buffer));
        }
        match self.phased(buffer).map(|phase| phase.mode) {
            None | Some(Mode::Shared) => Some(self.any_index(buffer, level, depth)),
            Some(Mode::Owned(_)) => Some(self.own_index(buffer)),
            Some(Mode::Gather(_)) => None,
        }
    }

    /// A load of a value of this type, if a buffer allows one here.
    pub(super) fn load(&mut self, ty: Type, level: Level, depth: u32) -> Option<Expr> {
        let fits = |b: &Buffer| {
            let constant = matches!(b.access, BufferAccess::ReadOnly | BufferAccess::Uniform);
            b.element.value_type() == ty && b.access.allows_load() && (constant || level == Level::Divergent)
        };
        let buffer = self.pick_buffer(fits)?;
        let index = self.load_index(buffer, level, depth)?;
        Some(Expr::load(&self.buffers[buffer].name, index))
    }

    /// One of the buffers that fit.
    pub(super) fn pick_buffer(&mut self, fits: impl Fn(&Buffer) -> bool) -> Option<usize> {
        let found: Vec<usize> = (0..self.buffers.len()).filter(|i| fits(&self.buffers[*i])).collect();
        if found.is_empty() { None } else { Some(*self.rng.pick(&found)) }
    }

    /// A store to this buffer, if its phase allows one.
    pub(super) fn store_to(&mut self, buffer: usize, depth: u32) -> Option<Node> {
        let name = self.buffers[buffer].name.clone();
        let ty = self.buffers[buffer].element.value_type();
        let index = match self.phased(buffer).map(|phase| phase.mode) {
            None => self.any_index(buffer, Level::Divergent, 1),
            Some(_) if self.rng.chance(1, 24) => self.outside_index(buffer),
            Some(Mode::Owned(_)) => self.own_index(buffer),
            Some(_) => return None,
        };
        let value = self.mostly_varied(ty, depth);
        Some(Node::store(name, index, value))
    }

    /// An atomic of any kind on an own element of a buffer in an owned phase.
    pub(super) fn own_atomic(&mut self, buffer: usize, op: AtomicOp, depth: u32) -> Expr {
        let outside = self.rng.chance(1, 16);
        let index = if outside { self.outside_index(buffer) } else { self.own_index(buffer) };
        self.atomic(buffer, op, index, None, depth)
    }

    /// An atomic of the kind that the buffer's gather phase allows; its result must not be used.
    pub(super) fn gather_atomic(&mut self, buffer: usize, wanted: Option<AtomicOp>, depth: u32) -> Expr {
        let Mode::Gather(kinds) = self.phase(buffer).mode else {
            unreachable!("`{}` is in a gather phase", self.buffers[buffer].name);
        };
        let fits = |kind: &Gather| wanted.is_none_or(|op| kind.operations().contains(&op));
        let parities: Vec<usize> = (0..2).filter(|i| fits(&kinds[*i])).collect();
        let parity = *self.rng.pick(&parities);
        let kind = kinds[parity];
        let op = wanted.unwrap_or_else(|| *self.rng.pick(kind.operations()));
        let mut index = self.any_index(buffer, Level::Divergent, 1);
        if kinds[0] != kinds[1] {
            index = match parity {
                0 => Expr::bit_and(index, Expr::u32(!1)),
                _ => Expr::bit_or(index, Expr::u32(1)),
            };
        }
        self.atomic(buffer, op, index, kind.fixed(), depth)
    }

    fn atomic(
        &mut self,
        buffer: usize,
        op: AtomicOp,
        index: Expr,
        fixed: Option<(Literal, Literal)>,
        depth: u32,
    ) -> Expr {
        let name = self.buffers[buffer].name.clone();
        let ty = self.buffers[buffer].element.value_type();
        let mut operand = |literal: Option<Literal>| match literal {
            Some(literal) => Expr::Literal(literal),
            None => self.mostly_varied(ty, depth),
        };
        let expr = match op {
            AtomicOp::Load => Expr::atomic_load(name, index),
            AtomicOp::CompareExchange => {
                let expected = operand(fixed.map(|(expected, _)| expected));
                let value = operand(fixed.map(|(_, value)| value));
                Expr::atomic_compare_exchange(name, index, expected, value)
            }
            _ => Expr::atomic(op, name, index, operand(fixed.map(|(_, value)| value))),
        };
        self.effect = true;
        let ordering = self.ordering(op);
        expr.with_ordering(ordering)
    }

    fn ordering(&mut self, op: AtomicOp) -> MemoryOrdering {
        if !self.orderings || self.rng.chance(1, 2) {
            return MemoryOrdering::Relaxed;
        }
        let legal: Vec<_> = MemoryOrdering::ALL.into_iter().filter(|o| o.is_legal_for(op)).collect();
        *self.rng.pick(&legal)
    }

    /// The buffers that a uniform load of this scope may read here.
    pub(super) fn uniform_sources(&self, scope: Scope, ty: Option<Type>) -> Vec<usize> {
        let fits = |i: &usize| {
            let buffer = &self.buffers[*i];
            let ty_fits = ty.is_none_or(|ty| buffer.element.value_type() == ty);
            ty_fits && buffer.access.allows_load() && self.uniform_loadable(scope, *i)
        };
        (0..self.buffers.len()).filter(fits).collect()
    }

    /// Whether the barriers of a uniform load of this scope order it with everything done to the buffer.
    fn uniform_loadable(&self, scope: Scope, buffer: usize) -> bool {
        match (self.buffers[buffer].access, scope) {
            (BufferAccess::Local | BufferAccess::WriteOnly, _) => false,
            (BufferAccess::Workgroup, scope) => scope == Scope::Workgroup,
            (BufferAccess::ReadOnly | BufferAccess::Uniform, _) | (_, Scope::Grid) => true,
            // Only the own workgroup waits: other workgroups must be unable to write the element.
            (_, Scope::Workgroup) => {
                let phase = self.phase(buffer);
                matches!(phase.domain, Domain::Slice { .. }) || phase.mode == Mode::Shared
            }
        }
    }

    /// A uniform load of an element of this buffer. The caller has checked control and phase.
    pub(super) fn uniform_load_of(&mut self, scope: Scope, buffer: usize) -> Expr {
        // Its index stands before it in the statement and may hold no other uniform load.
        self.effect = true;
        let level = match scope {
            Scope::Grid => Level::Grid,
            Scope::Workgroup => Level::Workgroup,
        };
        let slice = matches!(self.phased(buffer), Some(Phase { domain: Domain::Slice { .. }, .. }));
        let index = if slice && scope == Scope::Grid {
            // A slice depends on the workgroup, which is not uniform for the grid.
            Expr::rem(self.expr(Type::U32, level, 1), Expr::buf_len(&self.buffers[buffer].name))
        } else {
            self.any_index(buffer, level, 1)
        };
        Expr::uniform_load(scope, &self.buffers[buffer].name, index)
    }
}
