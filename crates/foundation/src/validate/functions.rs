//! The functions of a program: pure, typed, not recursive, and not exploding when they are expanded.

use super::uniformity::Uniform;
use super::{Binding, Checker, Kind, Value, limits};
use crate::diagnostic::{Problem, Role};
use crate::validate::path::Step;
use crate::{Event, Expr, Function, Program, Walk};
use rustc_hash::FxHashMap;

impl<'p> Checker<'p> {
    pub(super) fn functions(&mut self) {
        let program = self.program;
        for (i, function) in program.functions().iter().enumerate() {
            self.path.push(Step::Function(i));
            let place = self.place(program.source().map(|s| s.functions[i].name));
            self.open(&function.name, Binding::Function(i), place);
            self.path.pop();
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
        let spans = self.program.source().map(|s| &s.functions[number]);
        for (i, (name, ty)) in function.params.iter().enumerate() {
            let place = self.place(spans.map(|s| s.params[i]));
            let value = Value { ty: Some(*ty), uniform: Uniform::GRID };
            self.open_variable(name, Kind::Param, value, 0, place);
        }
        for (i, (name, value)) in function.lets.iter().enumerate() {
            self.path.push(Step::Let(i));
            let value = self.expr(value);
            let place = self.place(spans.map(|s| s.lets[i]));
            self.open_variable(name, Kind::Let, value, 0, place);
            self.path.pop();
        }
        self.path.push(Step::Field("result"));
        let result = self.expr(&function.result);
        let role = Role::Result(function.name.clone());
        self.expect_type(result, function.result_type, role);
        self.path.pop();
    }

    /// Recursion, and how many expressions the program has when every call stands for what it calls.
    fn expansion(&mut self) {
        let program = self.program;
        let calls = Calls::of(program);
        for i in calls.recursive() {
            self.path.push(Step::Function(i));
            let place = self.place(program.source().map(|s| s.functions[i].name));
            self.report(Problem::Recursion(program.functions()[i].name.clone()), place);
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

    /// The functions that can reach themselves.
    fn recursive(&self) -> Vec<usize> {
        let mut stuck = vec![true; self.callees.len()];
        self.order.iter().for_each(|i| stuck[*i] = false);
        // Among the stuck ones are also callers of recursive functions: they do not reach themselves.
        let reaches_itself = |start: usize| {
            let mut seen = vec![false; self.callees.len()];
            let mut pending = vec![start];
            while let Some(i) = pending.pop() {
                for callee in self.callees[i].iter().filter(|c| stuck[**c]) {
                    if *callee == start {
                        return true;
                    }
                    if !std::mem::replace(&mut seen[*callee], true) {
                        pending.push(*callee);
                    }
                }
            }
            false
        };
        // Reachability from each is quadratic; a thousand recursive functions make the point as well as more.
        (0..self.callees.len()).filter(|i| stuck[*i]).take(1000).filter(|i| reaches_itself(*i)).collect()
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
