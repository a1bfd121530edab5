//! Simpler expressions: constants or operands in the place of what they belong to, smaller constants.

use super::Reducer;
use super::edit::replace_exprs;
use crate::typing::{self, Visitor};
use vyre_foundation::{Expr, Literal, Program, Type};

/// The type of an expression and those of its operands.
struct Typed {
    ty: Option<Type>,
    operands: Vec<Type>,
}

impl Reducer<'_> {
    /// Replaces expressions, outer ones first.
    pub(super) fn simplify_expressions(&mut self) {
        let mut number = typed(&self.best.program).len();
        while number > 0 {
            number -= 1;
            let found = typed(&self.best.program);
            let Some(here) = found.get(number) else { continue };
            let Some(ty) = here.ty else { continue };
            for choice in choices(ty, &here.operands) {
                let mut changed = false;
                let variant = replace_exprs(&self.best.program, &mut |n, expr| {
                    if n != number {
                        return expr;
                    }
                    let simpler = choice.apply(&expr);
                    changed = simpler.is_some();
                    simpler.unwrap_or(expr)
                });
                if changed && self.attempt_program(variant) {
                    // Operands may have vanished: go on from the same place in what is left.
                    number = number.min(typed(&self.best.program).len());
                    break;
                }
            }
        }
    }
}

/// What to try in the place of an expression.
enum Choice {
    Constant(Literal),
    Operand(usize),
    /// A constant nearer to zero.
    Half(Type),
}

fn choices(ty: Type, operands: &[Type]) -> Vec<Choice> {
    let one = if ty == Type::F32 { u64::from(1f32.to_bits()) } else { 1 };
    let mut found =
        vec![Choice::Constant(Literal::from_bits(ty, 0)), Choice::Constant(Literal::from_bits(ty, one))];
    let same = operands.iter().enumerate().filter(|(_, operand)| **operand == ty);
    found.extend(same.map(|(i, _)| Choice::Operand(i)));
    if operands.is_empty() && ty.is_integer() {
        found.push(Choice::Half(ty));
    }
    found
}

impl Choice {
    /// The simpler expression; `None` if it would not be simpler.
    fn apply(&self, expr: &Expr) -> Option<Expr> {
        match (self, expr) {
            (Choice::Constant(new), Expr::Literal(old)) if old.bits() <= new.bits() => None,
            (Choice::Constant(new), _) => Some(Expr::Literal(*new)),
            (Choice::Half(ty), Expr::Literal(old)) if old.bits() > 3 => {
                Some(Expr::Literal(Literal::from_bits(*ty, old.bits() / 2)))
            }
            (Choice::Half(_), _) => None,
            (Choice::Operand(wanted), _) => {
                let mut operands = Vec::new();
                expr.for_each_operand(&mut |operand| operands.push(operand));
                operands.get(*wanted).map(|operand| Expr::clone(operand))
            }
        }
    }
}

fn typed(program: &Program) -> Vec<Typed> {
    struct List(Vec<Typed>);
    impl Visitor for List {
        fn expr(&mut self, _expr: &Expr, operands: &[Type], ty: Option<Type>) {
            self.0.push(Typed { ty, operands: operands.to_vec() });
        }
    }
    let mut list = List(Vec::new());
    typing::walk(program, &mut list);
    list.0
}
