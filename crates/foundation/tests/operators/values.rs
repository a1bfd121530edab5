//! Operators, `fma`, casts, bitcasts and atomics on values, each with the proof that nothing was
//! left out.

use crate::random::{self, Operands};
use crate::report::Report;
use crate::{edges, oracle, table};
use std::hint::black_box;
use vyre_foundation::{AtomicOp, BinOp, SubgroupOp, Type, UnOp, arith};

/// The fewest cases that count as a check of a type: all pairs, or all values, of a `bool`, else
/// what was asked for.
fn enough(ty: Type, of_bool: u64) -> u64 {
    if ty == Type::Bool { of_bool } else { random::cases().max(edges::of(ty).len() as u64) }
}

fn name(op: &str, ty: Type) -> String {
    format!("{op} on {ty}")
}

#[test]
fn binary_operators() {
    let mut report = Report::new();
    for ty in Type::ALL {
        let edges = edges::of(ty);
        for op in BinOp::ALL.into_iter().filter(|&op| table::binary(op, ty).is_some()) {
            report.group(name(op.spelling(), ty));
            let mut check = |a, b| {
                let got = arith::binary(op, ty, a, b);
                report.check(&[(ty, a), (ty, b)], oracle::binary(op, ty, a, b), got);
            };
            for &a in &edges {
                for &b in &edges {
                    check(a, b);
                }
            }
            let mut operands = Operands::new(ty, &edges, op as u64);
            for _ in 0..random::cases() {
                let (a, b) = operands.two();
                check(a, b);
            }
        }
    }
    for (index, op) in BinOp::ALL.into_iter().enumerate() {
        assert_eq!(op as usize, index, "BinOp::ALL lists each operator once");
        for ty in Type::ALL {
            let (op_name, given) = (name(op.spelling(), ty), table::binary(op, ty));
            assert_eq!(op.result(ty), given, "the result of {op_name}");
            let checked = report.cases(&op_name);
            assert!(checked >= given.map_or(0, |_| enough(ty, 4)), "{op_name}: {checked} cases");
        }
    }
    report.finish();
}

#[test]
fn unary_operators() {
    let mut report = Report::new();
    for ty in Type::ALL {
        let edges = edges::of(ty);
        for op in UnOp::ALL.into_iter().filter(|&op| table::unary(op, ty).is_some()) {
            report.group(name(op.spelling(), ty));
            let mut check = |a| {
                report.check(&[(ty, a)], oracle::unary(op, ty, a), arith::unary(op, ty, a));
            };
            edges.iter().for_each(|&a| check(a));
            let mut operands = Operands::new(ty, &edges, 0x100 + op as u64);
            (0..random::cases()).for_each(|_| check(operands.one()));
        }
    }
    for (index, op) in UnOp::ALL.into_iter().enumerate() {
        assert_eq!(op as usize, index, "UnOp::ALL lists each operator once");
        for ty in Type::ALL {
            let (op_name, given) = (name(op.spelling(), ty), table::unary(op, ty));
            assert_eq!(op.result(ty), given, "the result of {op_name}");
            let checked = report.cases(&op_name);
            assert!(checked >= given.map_or(0, |_| enough(ty, 2)), "{op_name}: {checked} cases");
        }
    }
    report.finish();
}

/// Everything is total: an operator on a type that it does not take gives something, and never a
/// panic. What it gives is left open, since validation refuses such programs.
#[test]
fn operators_on_other_types_are_total() {
    for ty in Type::ALL {
        let edges = edges::of(ty);
        for op in BinOp::ALL.into_iter().filter(|&op| table::binary(op, ty).is_none()) {
            for &a in &edges {
                for &b in &edges {
                    black_box(arith::binary(op, ty, a, b));
                }
            }
        }
        for op in UnOp::ALL.into_iter().filter(|&op| table::unary(op, ty).is_none()) {
            for &a in &edges {
                black_box(arith::unary(op, ty, a));
            }
        }
    }
}

#[test]
fn fma() {
    let mut report = Report::new();
    report.group(name("fma", Type::F32));
    let mut check = |a, b, c| {
        let operands = [(Type::F32, a), (Type::F32, b), (Type::F32, c)];
        report.check(&operands, oracle::fma(a, b, c), arith::fma(a, b, c));
    };
    let edges = edges::of_fma();
    for &a in &edges {
        for &b in &edges {
            for &c in &edges {
                check(a, b, c);
            }
        }
    }
    let mut operands = Operands::new(Type::F32, &edges::of(Type::F32), 0x200);
    for _ in 0..random::cases() {
        let (a, b, c) = operands.fma();
        check(a, b, c);
    }
    report.finish();
}

#[test]
fn casts() {
    let mut report = Report::new();
    for from in Type::ALL {
        let edges = edges::of(from);
        for to in Type::ALL {
            report.group(format!("cast of {from} to {to}"));
            let mut check = |a| {
                report.check(&[(from, a)], oracle::cast(from, to, a), arith::cast(from, to, a));
            };
            edges.iter().for_each(|&a| check(a));
            let mut operands = Operands::new(from, &edges, 0x300 + to as u64);
            (0..random::cases()).for_each(|_| check(operands.one()));
        }
    }
    report.finish();
}

/// A bitcast is told only where it comes from: what it comes to has the same width, hence the same
/// bits.
#[test]
fn bitcasts() {
    let mut report = Report::new();
    for from in Type::ALL.into_iter().filter(|&ty| ty != Type::Bool) {
        report.group(format!("bitcast of {from}"));
        let mut check = |a| report.check(&[(from, a)], oracle::bitcast(from, a), arith::bitcast(from, a));
        let edges = edges::of(from);
        edges.iter().for_each(|&a| check(a));
        let mut operands = Operands::new(from, &edges, 0x400);
        (0..random::cases()).for_each(|_| check(operands.one()));
    }
    report.finish();
}

#[test]
fn atomics() {
    let mut report = Report::new();
    for ty in table::INTEGERS {
        let edges = edges::of(ty);
        for op in AtomicOp::ALL {
            report.group(name(op.spelling(), ty));
            // The operands are what stands in memory, the expected value and the new one.
            let mut check = |old, expected, value| {
                let got = arith::atomic(op, ty, old, expected, value);
                let right = oracle::atomic(op, ty, old, expected, value);
                report.check(&[(ty, old), (ty, expected), (ty, value)], right, got);
            };
            for &old in &edges {
                for &value in &edges {
                    check(old, old, value);
                    check(old, value, old);
                }
            }
            let mut operands = Operands::new(ty, &edges, 0x500 + op as u64);
            for i in 0..random::cases() {
                let (old, value) = operands.two();
                let expected = if i % 2 == 0 { old } else { operands.two().1 };
                check(old, expected, value);
            }
        }
    }
    for (index, op) in AtomicOp::ALL.into_iter().enumerate() {
        assert_eq!(op as usize, index, "AtomicOp::ALL lists each operation once");
    }
    report.finish();
}

/// A reduction is its binary operator applied over and over, so naming that operator is all it
/// says.
#[test]
fn subgroup_reductions() {
    for (index, op) in SubgroupOp::ALL.into_iter().enumerate() {
        assert_eq!(op as usize, index, "SubgroupOp::ALL lists each reduction once");
        let right = match op {
            SubgroupOp::Add => BinOp::Add,
            SubgroupOp::Mul => BinOp::Mul,
            SubgroupOp::Min => BinOp::Min,
            SubgroupOp::Max => BinOp::Max,
            SubgroupOp::And => BinOp::BitAnd,
            SubgroupOp::Or => BinOp::BitOr,
            SubgroupOp::Xor => BinOp::BitXor,
        };
        assert_eq!(op.combine(), right);
        for ty in table::INTEGERS {
            assert_eq!(right.result(ty), Some(ty), "{} on {ty}", op.spelling());
        }
    }
}
