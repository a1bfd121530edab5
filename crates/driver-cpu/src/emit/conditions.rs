//! Conditions: how they are taken apart, what they say about the rows in them, and how code branches on them.

use super::Emitter;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder};
use vyre_foundation::{BinOp, Type, UnOp};
use vyre_lower::{Kernel, Value, ValueId};

/// What holds where a condition holds, or does not.
pub(super) struct Terms {
    /// Conditions that hold then, or do not: parts that have no parts.
    pub(super) leaves: Vec<(ValueId, bool)>,
    /// And those that are made of others, the condition itself first.
    made: Vec<(ValueId, bool)>,
    /// Whether the leaves together say all that the condition says.
    pub(super) is_all: bool,
}

/// The most parts into which a condition is taken apart.
const MOST: usize = 32;

/// What a condition is made of.
enum Parts {
    Leaf,
    Negation(ValueId),
    /// Both hold where it holds.
    Both(ValueId, ValueId),
    /// One holds where it holds.
    Either(ValueId, ValueId),
}

fn parts(kernel: &Kernel, cond: ValueId) -> Parts {
    match kernel.value(cond) {
        Value::Unary { op: UnOp::Not, a, .. } => Parts::Negation(a),
        Value::Binary { op: BinOp::And | BinOp::BitAnd, ty: Type::Bool, a, b } => Parts::Both(a, b),
        Value::Binary { op: BinOp::Or | BinOp::BitOr, ty: Type::Bool, a, b } => Parts::Either(a, b),
        _ => Parts::Leaf,
    }
}

impl Terms {
    /// What a condition says where it holds, or does not.
    pub(super) fn of(kernel: &Kernel, cond: ValueId, holds: bool) -> Terms {
        let mut terms = Terms { leaves: Vec::new(), made: Vec::new(), is_all: true };
        let mut pending = vec![(cond, holds)];
        while let Some((cond, holds)) = pending.pop() {
            if terms.leaves.len() + terms.made.len() >= MOST {
                terms.is_all = false;
                break;
            }
            match (parts(kernel, cond), holds) {
                (Parts::Negation(a), _) => pending.push((a, !holds)),
                (Parts::Both(a, b), true) | (Parts::Either(a, b), false) => {
                    pending.extend([(b, holds), (a, holds)])
                }
                _ => {
                    terms.leaves.push((cond, holds));
                    continue;
                }
            }
            terms.made.push((cond, holds));
        }
        terms
    }

    /// Whether a condition is known to hold, or not to.
    fn decides(&self, cond: ValueId) -> Option<bool> {
        let known = self.leaves.iter().chain(&self.made);
        known.into_iter().find(|(other, _)| *other == cond).map(|(_, holds)| *holds)
    }

    /// The row that a row equals where these hold: selections by a known condition are decided.
    pub(super) fn resolve(&self, kernel: &Kernel, mut row: ValueId) -> ValueId {
        while let Value::Select { mut cond, a, b, .. } = kernel.value(row) {
            let mut is_negated = false;
            while let Parts::Negation(inner) = parts(kernel, cond) {
                (cond, is_negated) = (inner, !is_negated);
            }
            row = match self.decides(cond) {
                Some(holds) if holds != is_negated => a,
                Some(_) => b,
                None => break,
            };
        }
        row
    }
}

/// The comparison by order, or for equality, that a leaf makes of two `u32` rows, such that it holds.
pub(super) fn comparison(kernel: &Kernel, leaf: (ValueId, bool)) -> Option<(BinOp, ValueId, ValueId)> {
    let (op, ty, a, b) = compared(kernel, leaf)?;
    (ty == Type::U32 && op != BinOp::Ne).then_some((op, a, b))
}

/// The comparison that a leaf makes of two rows of a type, such that it holds.
pub(super) fn compared(kernel: &Kernel, leaf: (ValueId, bool)) -> Option<(BinOp, Type, ValueId, ValueId)> {
    let Value::Binary { op, ty, a, b } = kernel.value(leaf.0) else { return None };
    let opposite = match op {
        BinOp::Lt => BinOp::Ge,
        BinOp::Le => BinOp::Gt,
        BinOp::Gt => BinOp::Le,
        BinOp::Ge => BinOp::Lt,
        BinOp::Eq => BinOp::Ne,
        BinOp::Ne => BinOp::Eq,
        _ => return None,
    };
    Some((if leaf.1 { op } else { opposite }, ty, a, b))
}

/// The same comparison with its operands swapped.
pub(super) fn swapped(op: BinOp) -> BinOp {
    match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Gt => BinOp::Lt,
        BinOp::Ge => BinOp::Le,
        other => other,
    }
}

/// How deep a condition is turned into branches.
const DEPTH: u32 = 8;

/// A block with the values of its parameters.
pub(super) type Way<'a> = (Block, &'a [BlockArg]);

impl Emitter<'_, '_> {
    /// Goes one way where a condition holds and another where it does not. Conditions that are made of others become
    /// branches of their own: each is a comparison that the branch does by itself.
    pub(super) fn go(&mut self, cond: ValueId, then: Way<'_>, otherwise: Way<'_>) {
        self.go_by(cond, then, otherwise, DEPTH);
    }

    fn go_by(&mut self, cond: ValueId, then: Way<'_>, otherwise: Way<'_>, depth: u32) {
        let parts = if depth == 0 { Parts::Leaf } else { parts(self.shape.kernel, cond) };
        match parts {
            Parts::Negation(a) => self.go_by(a, otherwise, then, depth - 1),
            Parts::Both(a, b) => {
                let both = self.b.create_block();
                self.go_by(a, (both, &[]), otherwise, depth - 1);
                self.second(both, b, then, otherwise, depth - 1);
            }
            Parts::Either(a, b) => {
                let neither = self.b.create_block();
                self.go_by(a, then, (neither, &[]), depth - 1);
                self.second(neither, b, then, otherwise, depth - 1);
            }
            Parts::Leaf => {
                let cond = self.get(cond);
                self.b.ins().brif(cond, then.0, then.1, otherwise.0, otherwise.1);
            }
        }
    }

    /// The second part of a condition, in a block of its own. What is computed there is not known elsewhere.
    fn second(&mut self, block: Block, cond: ValueId, then: Way<'_>, otherwise: Way<'_>, depth: u32) {
        self.b.switch_to_block(block);
        let mark = self.log.len();
        self.go_by(cond, then, otherwise, depth);
        self.forget(mark);
    }
}
