//! Expressions of a wanted type and uniformity.
//!
//! Operands are generated in evaluation order, so that the flag `effect` always says whether something that a
//! uniform load must not follow stands earlier in the statement.

use super::Generator;
use super::literal::{constant, literal};
use super::phase::Mode;
use super::scope::Level;
use vyre_foundation::{AtomicOp, Axis, BinOp, Expr, Scope, SubgroupOp, Type};

impl Generator {
    /// An expression of this type, at least as uniform as `level`, with about `depth` levels of operands.
    pub(super) fn expr(&mut self, ty: Type, level: Level, depth: u32) -> Expr {
        if depth == 0 || self.rng.chance(1, 7) {
            return self.leaf(ty, level);
        }
        let below = depth - 1;
        match self.rng.below(24) {
            0..=8 => {
                let (op, from) = *self.rng.pick(&self.binary[ty as usize]);
                let left = self.expr(from, level, below);
                Expr::binary(op, left, self.expr(from, level, below))
            }
            9 | 10 => {
                let (op, from) = *self.rng.pick(&self.unary[ty as usize]);
                Expr::unary(op, self.expr(from, level, below))
            }
            11 => self.select(ty, level, below),
            12 | 13 => {
                let from = *self.rng.pick(&Type::ALL);
                Expr::cast(ty, self.expr(from, level, below))
            }
            14 => self.bitcast(ty, level, below),
            15 => self.three_operands(ty, level, below),
            16 => self.call(ty, level, below).unwrap_or_else(|| self.leaf(ty, level)),
            17..=20 if !self.pure => {
                self.load(ty, level, below.min(2)).unwrap_or_else(|| self.leaf(ty, level))
            }
            21..=23 if !self.pure => self.effectful(ty, level, below).unwrap_or_else(|| self.leaf(ty, level)),
            _ => self.leaf(ty, level),
        }
    }

    /// Any expression of any depth that suits a statement.
    pub(super) fn value(&mut self, ty: Type, level: Level) -> Expr {
        let depth = 1 + self.rng.below(4) as u32;
        self.expr(ty, level, depth)
    }

    /// A value that differs between invocations, so that it shows who gets whose.
    pub(super) fn varied(&mut self, ty: Type, depth: u32) -> Expr {
        let id = match self.rng.below(3) {
            0 => self.global_id(),
            1 => self.local_id(),
            _ => Expr::var("sum"),
        };
        if ty == Type::Bool {
            let bit = Expr::bit_and(Expr::shr(id, Expr::u32(self.rng.below(3) as u32)), Expr::u32(1));
            return Expr::eq(bit, Expr::u32(1));
        }
        let id = if ty == Type::U32 { id } else { Expr::cast(ty, id) };
        let op = *self.rng.pick(&[BinOp::Add, BinOp::Sub, BinOp::Mul]);
        match self.rng.below(3) {
            0 => id,
            1 => Expr::binary(op, id, constant(&mut self.rng, ty)),
            _ => Expr::binary(op, id, self.expr(ty, Level::Divergent, depth)),
        }
    }

    /// A value, mostly one that differs between invocations.
    pub(super) fn mostly_varied(&mut self, ty: Type, depth: u32) -> Expr {
        if self.rng.chance(2, 3) { self.varied(ty, depth) } else { self.expr(ty, Level::Divergent, depth) }
    }

    /// An expression without operands, or a load with a simple index.
    pub(super) fn leaf(&mut self, ty: Type, level: Level) -> Expr {
        let readable = self.variables.readable(ty, level);
        if !readable.is_empty() && self.rng.chance(3, 5) {
            return Expr::var(&self.rng.pick(&readable).name);
        }
        if self.pure {
            return constant(&mut self.rng, ty);
        }
        if ty == Type::U32 && self.rng.chance(1, 2) {
            return self.id(level);
        }
        if self.rng.chance(1, 4)
            && let Some(load) = self.load(ty, level, 0)
        {
            return load;
        }
        constant(&mut self.rng, ty)
    }

    /// A builtin or a length.
    pub(super) fn id(&mut self, level: Level) -> Expr {
        let axis = match self.rng.below(6) {
            0 => Axis::Y,
            1 => Axis::Z,
            _ => Axis::X,
        };
        let kinds = match level {
            Level::Grid => 3,
            Level::Workgroup => 4,
            Level::Divergent => 7,
        };
        match self.rng.below(kinds) {
            0 => Expr::num_workgroups(axis),
            1 => Expr::SubgroupSize,
            2 => {
                let buffer = self.rng.below(self.buffers.len() as u64) as usize;
                Expr::buf_len(&self.buffers[buffer].name)
            }
            3 => Expr::workgroup_id(axis),
            4 => Expr::local_id(axis),
            5 => Expr::SubgroupLocalId,
            _ => Expr::invocation_id(axis),
        }
    }

    pub(super) fn select(&mut self, ty: Type, level: Level, depth: u32) -> Expr {
        let cond = self.expr(Type::Bool, level, depth);
        let if_true = self.expr(ty, level, depth);
        Expr::select(cond, if_true, self.expr(ty, level, depth))
    }

    fn bitcast(&mut self, ty: Type, level: Level, depth: u32) -> Expr {
        let from = match ty {
            Type::Bool => return Expr::not(self.expr(ty, level, depth)),
            Type::U64 | Type::I64 => *self.rng.pick(&[Type::U64, Type::I64]),
            Type::U32 | Type::I32 | Type::F32 => *self.rng.pick(&[Type::U32, Type::I32, Type::F32]),
        };
        Expr::bitcast(ty, self.expr(from, level, depth))
    }

    /// `fma` or `clamp`.
    pub(super) fn three_operands(&mut self, ty: Type, level: Level, depth: u32) -> Expr {
        if ty == Type::Bool {
            return self.select(ty, level, depth);
        }
        let a = self.expr(ty, level, depth);
        let b = self.expr(ty, level, depth);
        let c = self.expr(ty, level, depth);
        if ty == Type::F32 && self.rng.chance(2, 3) { Expr::fma(a, b, c) } else { Expr::clamp(a, b, c) }
    }

    /// A call of a function with this result, if there is one.
    pub(super) fn call(&mut self, ty: Type, level: Level, depth: u32) -> Option<Expr> {
        let fitting: Vec<_> = self.functions.iter().filter(|f| f.result_type == ty).cloned().collect();
        if fitting.is_empty() {
            return None;
        }
        let function = self.rng.pick(&fitting);
        let args: Vec<_> =
            function.params.iter().map(|(_, ty)| self.expr(*ty, level, depth.min(2))).collect();
        Some(Expr::call(&function.name, args))
    }

    /// A uniform load, a subgroup operation or an atomic with a determined result.
    fn effectful(&mut self, ty: Type, level: Level, depth: u32) -> Option<Expr> {
        match self.rng.below(3) {
            0 => self.uniform_load(ty, level),
            1 if level == Level::Divergent && self.control() <= Level::Workgroup => {
                self.subgroup(ty, depth.min(2))
            }
            _ if level == Level::Divergent => self.atomic_value(ty, depth.min(2)),
            _ => None,
        }
    }

    fn uniform_load(&mut self, ty: Type, level: Level) -> Option<Expr> {
        if self.effect {
            return None;
        }
        let scope = match (self.control(), level) {
            (Level::Grid, Level::Grid) => Scope::Grid,
            (Level::Grid, _) if self.rng.chance(1, 2) => Scope::Grid,
            (Level::Grid | Level::Workgroup, Level::Workgroup | Level::Divergent) => Scope::Workgroup,
            _ => return None,
        };
        let sources = self.uniform_sources(scope, Some(ty));
        if sources.is_empty() {
            return None;
        }
        let buffer = *self.rng.pick(&sources);
        Some(self.uniform_load_of(scope, buffer))
    }

    fn subgroup(&mut self, ty: Type, depth: u32) -> Option<Expr> {
        let ballot = if self.shape.subgroup == 64 { Type::U64 } else { Type::U32 };
        let expr = match self.rng.below(3) {
            0 if ty == ballot => Expr::subgroup_ballot(self.mostly_varied(Type::Bool, depth)),
            1 if ty.is_integer() => {
                let op = *self.rng.pick(&SubgroupOp::ALL);
                Expr::subgroup_reduce(op, self.mostly_varied(ty, depth))
            }
            _ => self.shuffle(ty, depth),
        };
        self.effect = true;
        Some(expr)
    }

    /// A shuffle from a near lane, any lane or no lane at all.
    pub(super) fn shuffle(&mut self, ty: Type, depth: u32) -> Expr {
        let value = self.mostly_varied(ty, depth);
        let lane = match self.rng.below(4) {
            0 => Expr::bit_xor(Expr::SubgroupLocalId, Expr::u32(1 << self.rng.below(6))),
            1 => Expr::rem(self.expr(Type::U32, Level::Divergent, 1), Expr::SubgroupSize),
            2 => Expr::u32(self.rng.below(70) as u32),
            _ => self.expr(Type::U32, Level::Divergent, 1),
        };
        self.effect = true;
        Expr::subgroup_shuffle(value, lane)
    }

    /// An atomic whose value is determined: on an own element, or with the result masked away.
    fn atomic_value(&mut self, ty: Type, depth: u32) -> Option<Expr> {
        let buffer = self.pick_buffer(|b| b.atomics && b.element.value_type() == ty)?;
        match self.phased(buffer)?.mode {
            Mode::Owned(_) => {
                let op = *self.rng.pick(&AtomicOp::ALL[..10]);
                Some(self.own_atomic(buffer, op, depth))
            }
            Mode::Shared => {
                let index = self.any_index(buffer, Level::Divergent, 1);
                self.effect = true;
                Some(Expr::atomic_load(&self.buffers[buffer].name, index))
            }
            Mode::Gather([even, odd]) => {
                // A store is no value, so the kind that stores is used for its effect only.
                if even.fixed().is_some() || odd.fixed().is_some() {
                    return None;
                }
                let unknown = self.gather_atomic(buffer, None, depth);
                Some(self.masked(unknown, ty))
            }
        }
    }

    /// A determined value that is computed from one that depends on the order of invocations.
    fn masked(&mut self, unknown: Expr, ty: Type) -> Expr {
        let zero = Expr::Literal(vyre_foundation::Literal::from_bits(ty, 0));
        match self.rng.below(4) {
            0 => Expr::bit_and(unknown, zero),
            1 => Expr::mul(unknown, zero),
            2 => Expr::select(Expr::bool(false), unknown, Expr::Literal(literal(&mut self.rng, ty))),
            _ => Expr::shl(Expr::bit_and(zero, unknown), Expr::Literal(literal(&mut self.rng, ty))),
        }
    }
}
