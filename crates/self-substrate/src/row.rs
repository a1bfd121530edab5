//! Rows as the optimizer sees them: a kind and three arguments, whatever they stand for.

use vyre_foundation::{BinOp, Type, UnOp, arith};
use vyre_lower::columns::{self, op};

/// A value row: its kind and its arguments, of which the first few are rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Operation, variant and types; see [`columns::kind`].
    pub kind: u32,
    /// Operands, or the parts of a leaf.
    pub args: [u32; 3],
}

impl From<[u32; 4]> for Row {
    fn from([kind, a, b, c]: [u32; 4]) -> Row {
        Row { kind, args: [a, b, c] }
    }
}

impl From<Row> for [u32; 4] {
    fn from(Row { kind, args: [a, b, c] }: Row) -> [u32; 4] {
        [kind, a, b, c]
    }
}

impl Row {
    /// A constant. A NaN is the canonical one: which NaN an operation gives is no more than an accident of the machine.
    pub fn constant(ty: Type, bits: u64) -> Row {
        let bits = if ty == Type::F32 { u64::from(arith::canonical_f32(bits as u32)) } else { bits };
        Row { kind: columns::kind(op::CONST, 0, ty, ty), args: [bits as u32, (bits >> 32) as u32, 0] }
    }

    /// Its operation.
    pub fn op(self) -> u32 {
        self.kind & 0xff
    }

    /// The number of its operator or id.
    pub fn variant(self) -> usize {
        (self.kind >> 8 & 0xff) as usize
    }

    /// The type of its operands.
    pub fn operand_type(self) -> Type {
        Type::ALL[(self.kind >> 16 & 0xff) as usize]
    }

    /// The type of its value.
    pub fn ty(self) -> Type {
        Type::ALL[(self.kind >> 24) as usize]
    }

    /// Its operands.
    pub fn operands(&self) -> &[u32] {
        &self.args[..op::operands(self.op())]
    }

    /// Its operands, to change them.
    pub fn operands_mut(&mut self) -> &mut [u32] {
        &mut self.args[..op::operands(self.kind & 0xff)]
    }

    /// Its bits, if it is a constant.
    pub fn bits(self) -> Option<u64> {
        (self.op() == op::CONST).then_some(u64::from(self.args[0]) | u64::from(self.args[1]) << 32)
    }

    /// What it is of constant operands; nothing for what is not computed of operands alone.
    pub fn folded(self, [a, b, c]: [u64; 3]) -> Option<Row> {
        let (from, to) = (self.operand_type(), self.ty());
        let bits = match self.op() {
            op::BINARY => arith::binary(BinOp::ALL[self.variant()], from, a, b),
            op::UNARY => arith::unary(UnOp::ALL[self.variant()], from, a),
            op::SELECT => {
                if a != 0 {
                    b
                } else {
                    c
                }
            }
            op::CAST => arith::cast(from, to, a),
            op::BITCAST => arith::bitcast(from, a),
            op::FMA => arith::fma(a, b, c),
            _ => return None,
        };
        Some(Row::constant(to, bits))
    }

    /// The same value in the one form that all such rows have: of operands whose order does not matter the smaller one
    /// comes first, constants come last, and a comparison of two rows is `<` or `<=`.
    pub fn canonical(mut self, is_constant: impl Fn(u32) -> bool) -> Row {
        let [a, b, _] = self.args;
        // Two constants stay as they are: their numbers say nothing, and they are about to be folded.
        let comes_later = |first: bool, second: bool| !second && (first || b < a);
        let swapped = match self.op() {
            op::BINARY => {
                let operator = BinOp::ALL[self.variant()];
                let (first, second) = (is_constant(a), is_constant(b));
                if is_commutative(operator, self.operand_type()) {
                    comes_later(first, second).then_some(operator)
                } else {
                    let is_backward = first || matches!(operator, BinOp::Gt | BinOp::Ge);
                    mirrored(operator).filter(|_| is_backward && !second)
                }
            }
            op::FMA if comes_later(is_constant(a), is_constant(b)) => {
                self.args.swap(0, 1);
                None
            }
            _ => None,
        };
        if let Some(operator) = swapped {
            self.args.swap(0, 1);
            self.kind = columns::kind(op::BINARY, operator as u32, self.operand_type(), self.ty());
        }
        self
    }
}

/// Whether the order of operands does not matter. Of `f32` a sum and a product are the same either way; `min` and
/// `max` are not, for they move the bits of one.
pub fn is_commutative(operator: BinOp, ty: Type) -> bool {
    match operator {
        BinOp::Add | BinOp::Mul | BinOp::Eq | BinOp::Ne | BinOp::And | BinOp::Or => true,
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => true,
        BinOp::Min | BinOp::Max | BinOp::AbsDiff | BinOp::SatAdd | BinOp::MulHi => ty != Type::F32,
        _ => false,
    }
}

/// The comparison that is the same with its operands the other way round.
pub(crate) fn mirrored(operator: BinOp) -> Option<BinOp> {
    Some(match operator {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Gt => BinOp::Lt,
        BinOp::Ge => BinOp::Le,
        _ => return None,
    })
}
