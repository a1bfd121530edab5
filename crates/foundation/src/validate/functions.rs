//! The functions of a program: pure, typed, not recursive, and not exploding when they are expanded.

use super::uniformity::Uniform;
use super::{Binding, Checker, Origin, Value, limits};
use crate::diagnostic::{Problem, Role};
use crate::validate::path::Step;
use crate::{Event, Expr, Function, Program, Walk};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

impl<'p> Checker<'p> {
    pub(super) fn functions(&mut self) {
        let program = self.program;
        for (i, function) in program.functions().iter().enumerate() {
            self.open(&function.name, Binding::Function(i));
        }
        for (i, function) in program.functions().iter().enumerate() {
            self.path.push(Step::Function(i));
            self.function = Some(i);
            self.scope(|checker| checker.function(i, function));
            self.function = None;
            self.path.pop();
        }
        self.expansion();
    }

    fn function(&mut self, number: usize, function: &'p Function) {
        for (i, (name, ty)) in function.params.iter().enumerate() {
            let value = Value { ty: Some(*ty), uniform: Uniform::GRID };
            self.open_variable(name, Origin::Param(number, i), value);
        }
        for (i, (name, value)) in function.lets.iter().enumerate() {
            self.path.push(Step::Let(i));
            self.effect = None;
            let value = self.expr(value);
            self.open_variable(name, Origin::FunctionLet(number, i), value);
            self.path.pop();
        }
        self.path.push(Step::Field("result"));
        self.effect = None;
        let result = self.expr(&function.result);
        let role = Role::Result(function.name.clone());
        self.expect_type(result, function.result_type, role);
        self.path.pop();
    }

    /// Recursion, and how many expressions the program has when every call stands for what it calls.
    fn expansion(&mut self) {
        let program = self.program;
        let calls = Calls::of(program);
        for cycle in calls.cycles() {
            let i = cycle[0];
            self.path.push(Step::Function(i));
            let place = self.place(program.source().map(|s| s.functions[i].name));
            let names: Vec<_> = cycle.iter().map(|i| program.functions()[*i].name.clone()).collect();
            self.report(Problem::Recursion(names), place);
            self.path.pop();
        }
        if calls.expanded(program) > limits::EXPRESSIONS {
            let place = self.place(program.source().map(|s| s.name));
            self.report(Problem::TooManyExpressions, place);
        }
    }
}

/// Who calls whom.
struct Calls<'p> {
    by_name: FxHashMap<&'p str, usize>,
    /// For each function the functions it calls, once per call.
    callees: Vec<Vec<usize>>,
    /// The functions, each after those that it calls; recursive ones are absent.
    order: Vec<usize>,
}

impl<'p> Calls<'p> {
    fn of(program: &'p Program) -> Calls<'p> {
        let functions = program.functions();
        let by_name: FxHashMap<_, _> =
            functions.iter().enumerate().map(|(i, f)| (f.name.as_str(), i)).collect();
        let mut calls = Calls { by_name, callees: Vec::new(), order: Vec::new() };
        for function in functions {
            let mut callees = Vec::new();
            function.exprs().for_each(|expr| calls.collect(expr, &mut callees));
            calls.callees.push(callees);
        }
        calls.sort();
        calls
    }

    fn collect(&self, root: &Expr, callees: &mut Vec<usize>) {
        let mut pending = vec![root];
        while let Some(expr) = pending.pop() {
            if let Expr::Call { function, .. } = expr {
                callees.extend(self.by_name.get(function.as_str()));
            }
            expr.for_each_operand(&mut |operand| pending.push(operand));
        }
    }

    /// Takes functions whose callees have all been taken, until none is left but the recursive ones.
    fn sort(&mut self) {
        let count = self.callees.len();
        let mut waiting: Vec<usize> = self.callees.iter().map(Vec::len).collect();
        let mut callers = vec![Vec::new(); count];
        for (caller, callees) in self.callees.iter().enumerate() {
            callees.iter().for_each(|callee| callers[*callee].push(caller));
        }
        let mut ready: Vec<usize> = (0..count).filter(|i| waiting[*i] == 0).collect();
        while let Some(function) = ready.pop() {
            self.order.push(function);
            for caller in &callers[function] {
                waiting[*caller] -= 1;
                if waiting[*caller] == 0 {
                    ready.push(*caller);
                }
            }
        }
    }

    /// Cycles of calls: each recursive function stands in one of them, the smallest number first.
    fn cycles(&self) -> Vec<Vec<usize>> {
        let mut stuck = vec![true; self.callees.len()];
        self.order.iter().for_each(|i| stuck[*i] = false);
        let mut cycles = Vec::new();
        // Following calls is linear for each start; a hundred recursive cycles make the point as well as more.
        for start in 0..self.callees.len() {
            if stuck[start] && cycles.len() < 100 {
                // Among the stuck ones are also callers of recursive functions: they reach no cycle of their own.
                if let Some(cycle) = self.way_back(start, &stuck) {
                    cycle.iter().for_each(|i| stuck[*i] = false);
                    cycles.push(cycle);
                }
            }
        }
        cycles
    }

    /// The shortest chain of calls from a function to itself.
    fn way_back(&self, start: usize, stuck: &[bool]) -> Option<Vec<usize>> {
        let mut reached_from = FxHashMap::default();
        let mut pending = std::collections::VecDeque::from([start]);
        while let Some(i) = pending.pop_front() {
            for &callee in self.callees[i].iter().filter(|c| stuck[**c]) {
                if callee == start {
                    let mut cycle = vec![i];
                    while let Some(before) = reached_from.get(cycle.last()?) {
                        cycle.push(*before);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if let Entry::Vacant(entry) = reached_from.entry(callee) {
                    entry.insert(i);
                    pending.push_back(callee);
                }
            }
        }
        None
    }

    fn expanded(&self, program: &Program) -> u64 {
        let mut sizes = vec![0u64; self.callees.len()];
        let own = |expr: &Expr, sizes: &[u64]| -> u64 {
            let mut total = 0u64;
            let mut pending = vec![expr];
            while let Some(expr) = pending.pop() {
                total = total.saturating_add(1);
                if let Expr::Call { function, .. } = expr {
                    let callee = self.by_name.get(function.as_str());
                    total = total.saturating_add(callee.map_or(0, |i| sizes[*i]));
                }
                expr.for_each_operand(&mut |operand| pending.push(operand));
            }
            total
        };
        for i in &self.order {
            let exprs = program.functions()[*i].exprs();
            sizes[*i] = exprs.fold(0, |sum: u64, expr| sum.saturating_add(own(expr, &sizes)));
        }
        let mut total = 0u64;
        for event in Walk::new(program.entry()) {
            if let Event::Node(node) = event {
                node.for_each_expr(&mut |expr| total = total.saturating_add(own(expr, &sizes)));
            }
        }
        // A function that nobody calls must not explode either.
        sizes.into_iter().fold(total, u64::max)
    }
}
