//! Which types each operator takes and what it gives: the table of the specification's page on
//! expressions, written down row by row and independently of `BinOp::result` and `UnOp::result`.

use vyre_foundation::{BinOp, Type, UnOp};

/// The four integer types.
pub(crate) const INTEGERS: [Type; 4] = [Type::U32, Type::I32, Type::U64, Type::I64];
const INTEGERS_AND_F32: [Type; 5] = [Type::U32, Type::I32, Type::U64, Type::I64, Type::F32];
const INTEGERS_AND_BOOL: [Type; 5] = [Type::Bool, Type::U32, Type::I32, Type::U64, Type::I64];
const SIGNED: [Type; 3] = [Type::I32, Type::I64, Type::F32];

/// What an operator gives.
enum Gives {
    /// The operands' type.
    Same,
    /// The unsigned type of the operands' width.
    Unsigned,
    /// This type.
    Always(Type),
}

impl Gives {
    fn on(self, taken: &[Type], ty: Type) -> Option<Type> {
        let result = match (self, ty) {
            (Gives::Always(result), _) => result,
            (Gives::Unsigned, Type::I32) => Type::U32,
            (Gives::Unsigned, Type::I64) => Type::U64,
            (Gives::Unsigned | Gives::Same, _) => ty,
        };
        taken.contains(&ty).then_some(result)
    }
}

/// The type of `a op b` on operands of type `ty`; `None` where the operator does not take them.
pub(crate) fn binary(op: BinOp, ty: Type) -> Option<Type> {
    let (taken, gives): (&[Type], Gives) = match op {
        // + - *
        BinOp::Add | BinOp::Sub | BinOp::Mul => (&INTEGERS_AND_F32, Gives::Same),
        // / %
        BinOp::Div => (&INTEGERS_AND_F32, Gives::Same),
        BinOp::Rem => (&INTEGERS, Gives::Same),
        // & | ^ ~
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => (&INTEGERS_AND_BOOL, Gives::Same),
        // << >> rotl rotr
        BinOp::Shl | BinOp::Shr | BinOp::RotL | BinOp::RotR => (&INTEGERS, Gives::Same),
        // == !=
        BinOp::Eq | BinOp::Ne => (&Type::ALL, Gives::Always(Type::Bool)),
        // < <= > >=
        BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => (&INTEGERS_AND_F32, Gives::Always(Type::Bool)),
        // && || !
        BinOp::And | BinOp::Or => (&[Type::Bool], Gives::Same),
        // min max clamp
        BinOp::Min | BinOp::Max => (&INTEGERS_AND_F32, Gives::Same),
        // abs_diff
        BinOp::AbsDiff => (&INTEGERS, Gives::Unsigned),
        // sat_add sat_sub
        BinOp::SatAdd | BinOp::SatSub => (&INTEGERS, Gives::Same),
        // mul_hi
        BinOp::MulHi => (&INTEGERS, Gives::Same),
    };
    gives.on(taken, ty)
}

/// The type of `op a` on an operand of type `ty`; `None` where the operator does not take it.
pub(crate) fn unary(op: UnOp, ty: Type) -> Option<Type> {
    let (taken, gives): (&[Type], Gives) = match op {
        // & | ^ ~
        UnOp::BitNot => (&INTEGERS, Gives::Same),
        // && || !
        UnOp::Not => (&[Type::Bool], Gives::Same),
        // -x
        UnOp::Neg => (&SIGNED, Gives::Same),
        // abs
        UnOp::Abs => (&SIGNED, Gives::Same),
        // popcount clz ctz reverse_bits
        UnOp::Popcount | UnOp::Clz | UnOp::Ctz => (&INTEGERS, Gives::Always(Type::U32)),
        UnOp::ReverseBits => (&INTEGERS, Gives::Same),
        // sqrt inverse_sqrt floor ceil trunc round fma is_nan is_inf
        UnOp::Sqrt | UnOp::InverseSqrt | UnOp::Floor | UnOp::Ceil | UnOp::Trunc | UnOp::Round => {
            (&[Type::F32], Gives::Same)
        }
        UnOp::IsNan | UnOp::IsInf => (&[Type::F32], Gives::Always(Type::Bool)),
    };
    gives.on(taken, ty)
}
