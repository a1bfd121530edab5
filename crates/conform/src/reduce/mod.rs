//! Shrinks a case that shows a failure to a few lines that still show it.
//!
//! [`reduce`] tries smaller variants of a case and keeps each one that still fails, until none does. A variant
//! counts only if its program is valid and the reference agrees with itself on it under several schedules: a
//! race would fail on everything and show nothing.

mod dispatch;
pub(crate) mod edit;
mod expressions;
mod statements;

use crate::{Case, Executor, Reference, is_deterministic};
use std::time::Duration;
use vyre_foundation::{Event, Expr, Node, Program, Walk};
use vyre_reference::Schedule;

/// A variant that takes longer than this is not smaller in the sense that matters.
const PATIENCE: Duration = Duration::from_millis(300);

/// The most variants that are tried; a failing case of a page needs a few thousand.
const MOST_TRIES: u32 = 40_000;

/// The smallest case found for which `still_fails` holds. The case itself is returned if nothing smaller does.
///
/// ```
/// use vyre_conform::{DEFAULT_SIZE, generate, reduce};
/// // Pretend that stores of the checksum fail: one store is all that is left.
/// let stores = |case: &vyre_conform::Case| case.program.stats().stores > 0;
/// let small = reduce(&generate(1, DEFAULT_SIZE), &mut |case| stores(case));
/// assert_eq!(small.program.stats().statements, 1);
/// ```
pub fn reduce(case: &Case, still_fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    Reducer { best: case.clone(), still_fails, tries: 0, ordered: true }.run()
}

/// Like [`reduce`], for a failure in which the reference itself gives different results under different
/// schedules. No check can then tell the race that is looked for from one that a variant brings in, so only
/// steps are taken that bring in none: barriers, uniform loads and expressions stay as they are.
pub fn reduce_unordered(case: &Case, still_fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    Reducer { best: case.clone(), still_fails, tries: 0, ordered: false }.run()
}

struct Reducer<'a> {
    best: Case,
    still_fails: &'a mut dyn FnMut(&Case) -> bool,
    tries: u32,
    /// Whether every variant must be deterministic.
    ordered: bool,
}

impl Reducer<'_> {
    fn run(mut self) -> Case {
        loop {
            let before = Measure::of(&self.best);
            self.remove_statements();
            self.unwrap_statements();
            if self.ordered {
                self.erase_variables();
                self.simplify_expressions();
            }
            self.drop_declarations();
            self.shrink_dispatch();
            self.shrink_inputs();
            if Measure::of(&self.best) >= before || self.tries >= MOST_TRIES {
                return self.best;
            }
        }
    }

    /// Keeps the variant if it still fails.
    fn attempt(&mut self, variant: Case) -> bool {
        if self.tries >= MOST_TRIES || variant.program.validate().is_err() {
            return false;
        }
        self.tries += 1;
        let sound = if self.ordered {
            is_deterministic(&variant, PATIENCE)
        } else {
            Reference { schedule: Schedule::InOrder, patience: PATIENCE }.run(&variant).is_ok()
        };
        let fails = sound && (self.still_fails)(&variant);
        if fails {
            self.best = variant;
        }
        fails
    }

    fn attempt_program(&mut self, program: Program) -> bool {
        self.attempt(Case { program, ..self.best.clone() })
    }
}

/// How large a case is: what a reduction makes smaller, the most important first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Measure {
    statements: u64,
    expressions: u64,
    /// Expressions that are not a small constant, so that a zero counts less than a variable.
    complex: u64,
    declarations: usize,
    invocations: u128,
    bytes: usize,
}

impl Measure {
    fn of(case: &Case) -> Measure {
        let program = &case.program;
        let stats = program.stats();
        let mut complex = 0;
        for event in Walk::new(program.entry()) {
            if let Event::Node(node) = event {
                node.for_each_expr(&mut |expr| complex += complexity(expr));
            }
        }
        let size = u128::from(program.workgroup_size().invocations());
        let groups: u128 = case.grid.map_or(1, |grid| grid.iter().map(|n| u128::from(*n)).product());
        let nonzero = |bytes: &Vec<u8>| bytes.len() + bytes.iter().filter(|byte| **byte != 0).count();
        let lengths: usize = case.lengths.iter().map(|(_, n)| *n as usize).sum();
        let counts: usize = program.buffers().iter().filter_map(|b| b.count()).map(|n| n as usize).sum();
        Measure {
            statements: stats.statements,
            expressions: stats.expressions,
            complex,
            declarations: program.buffers().len() + program.functions().len(),
            invocations: size * groups,
            bytes: case.inputs.iter().map(nonzero).sum::<usize>()
                + lengths
                + counts
                + case.fixpoint.unwrap_or(0) as usize,
        }
    }
}

fn complexity(expr: &Expr) -> u64 {
    let mut total = match expr {
        Expr::Literal(literal) => u64::from(literal.bits() > 1) + u64::from(literal.bits() > 0),
        _ => 3,
    };
    expr.for_each_operand(&mut |operand| total += complexity(operand));
    total
}

/// Whether the statement holds other statements.
fn is_compound(node: &Node) -> bool {
    node.bodies().next().is_some()
}
