//! The limits of a program, checked without recursion and without walking far past them.

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Problem};
use crate::{Event, Expr, Node, Program, Walk};

/// The most statements, nested ones included.
pub const STATEMENTS: u64 = 1_000_000;
/// The deepest expression; a leaf is 1.
pub const DEPTH: u32 = 512;
/// The deepest nesting of bodies; an `else if` chain is one level.
pub const NESTING: u32 = 256;
/// The most expressions, counting at each call what the function holds. Shared subtrees count each time.
pub const EXPRESSIONS: u64 = 1 << 24;
/// The most invocations of a workgroup.
pub const WORKGROUP: u64 = 65_536;

/// What exceeds a limit. After a program passes, recursion over it is safe.
pub(super) fn check(program: &Program) -> Diagnostics {
    let mut limits = Limits { program, found: Diagnostics::default(), expressions: 0 };
    for (i, function) in program.functions().iter().enumerate() {
        let place =
            || Place { span: program.source().map(|s| s.functions[i].name), path: format!("functions[{i}]") };
        for expr in function.exprs() {
            limits.expr(expr, &place);
        }
    }
    limits.body();
    limits.found
}

struct Limits<'p> {
    program: &'p Program,
    found: Diagnostics,
    expressions: u64,
}

impl Limits<'_> {
    fn report(&mut self, problem: Problem, place: &dyn Fn() -> Place) {
        self.found.push(Diagnostic::new(problem, place()));
    }

    fn body(&mut self) {
        let (mut statements, mut top, mut nesting) = (0u64, 0usize, 0u32);
        let mut reported = false;
        for event in Walk::new(self.program.entry()) {
            match event {
                Event::Node(node) => {
                    statements += 1;
                    top += usize::from(nesting == 0);
                    let program = self.program;
                    let place = || Place {
                        span: program.source().map(|s| s.nodes[statements as usize - 1].whole),
                        path: format!("entry[{}]", top - 1),
                    };
                    if statements > STATEMENTS {
                        return self.report(Problem::TooManyStatements, &place);
                    }
                    node.for_each_expr(&mut |expr| self.expr(expr, &place));
                    if self.expressions > EXPRESSIONS {
                        return;
                    }
                    if node.bodies().next().is_some() {
                        nesting += 1;
                        if nesting > NESTING && !reported {
                            self.report(Problem::TooNested, &place);
                            reported = true;
                        }
                    }
                }
                // The links of an `else if` chain stand side by side, not inside each other.
                Event::Else(Node::If { otherwise, .. }) if otherwise.as_else_if().is_some() => nesting -= 1,
                Event::End(Node::If { otherwise, .. }) if otherwise.as_else_if().is_some() => {}
                Event::Else(_) => {}
                Event::End(_) => nesting -= 1,
            }
        }
    }

    fn expr(&mut self, root: &Expr, place: &dyn Fn() -> Place) {
        if self.expressions > EXPRESSIONS {
            return;
        }
        let mut pending = vec![(1, root)];
        let mut too_deep = false;
        while let Some((depth, expr)) = pending.pop() {
            self.expressions += 1;
            if self.expressions > EXPRESSIONS {
                return self.report(Problem::TooManyExpressions, place);
            }
            if depth > DEPTH {
                too_deep = true;
                continue;
            }
            expr.for_each_operand(&mut |operand| pending.push((depth + 1, operand)));
        }
        if too_deep {
            self.report(Problem::TooDeep, place);
        }
    }
}
