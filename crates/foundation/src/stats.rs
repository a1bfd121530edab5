//! Counts of what a program holds, from one pass without recursion.

use crate::ops::MemoryOrdering;
use crate::{Expr, Node, Program, Scope};

/// What a program holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Statements, nested ones included.
    pub statements: u64,
    /// Expressions, operands and functions included.
    pub expressions: u64,
    /// The depth of the deepest expression; a leaf is 1.
    pub depth: u32,
    /// The deepest nesting of bodies; the entry body is 0 and an `else if` chain is one level.
    pub nesting: u32,
    /// `for` loops.
    pub loops: u64,
    /// Loads, without atomics and uniform loads.
    pub loads: u64,
    /// Stores, without atomics.
    pub stores: u64,
    /// Atomics.
    pub atomics: u64,
    /// Ballots, shuffles and reductions.
    pub subgroup_operations: u64,
    /// Workgroup barriers; a workgroup `uniform_load` counts as one.
    pub workgroup_barriers: u64,
    /// Grid barriers; a grid `uniform_load` counts as one.
    pub grid_barriers: u64,
    /// `trap`s.
    pub traps: u64,
}

impl Stats {
    pub(crate) fn of(program: &Program) -> Stats {
        let mut stats = Stats::default();
        let mut exprs = Vec::new();
        for function in program.functions() {
            function.exprs().for_each(|expr| stats.add_expr(expr, &mut exprs));
        }
        let mut bodies = vec![(0, program.entry())];
        while let Some((nesting, body)) = bodies.pop() {
            stats.nesting = stats.nesting.max(nesting);
            for node in body {
                stats.add_node(node);
                node.for_each_expr(&mut |expr| stats.add_expr(expr, &mut exprs));
                for nested in node.bodies() {
                    // The `else` of an `if` that is one further `if` stays on the level of the chain.
                    let chained = matches!(node, Node::If { otherwise, .. } if std::ptr::eq(otherwise, nested))
                        && nested.as_else_if().is_some();
                    bodies.push((nesting + u32::from(!chained), nested));
                }
            }
        }
        stats
    }

    fn add_node(&mut self, node: &Node) {
        self.statements += 1;
        match node {
            Node::Store { .. } => self.stores += 1,
            Node::Loop { .. } => self.loops += 1,
            Node::Barrier { ordering: MemoryOrdering::GridSync } => self.grid_barriers += 1,
            Node::Barrier { .. } => self.workgroup_barriers += 1,
            Node::Trap { .. } => self.traps += 1,
            _ => {}
        }
    }

    fn add_expr<'a>(&mut self, root: &'a Expr, pending: &mut Vec<(u32, &'a Expr)>) {
        pending.push((1, root));
        while let Some((depth, expr)) = pending.pop() {
            self.expressions += 1;
            self.depth = self.depth.max(depth);
            match expr {
                Expr::Load { .. } => self.loads += 1,
                Expr::Atomic { .. } => self.atomics += 1,
                Expr::UniformLoad { scope: Scope::Grid, .. } => self.grid_barriers += 1,
                Expr::UniformLoad { scope: Scope::Workgroup, .. } => self.workgroup_barriers += 1,
                Expr::SubgroupBallot { .. } | Expr::SubgroupShuffle { .. } | Expr::SubgroupReduce { .. } => {
                    self.subgroup_operations += 1
                }
                _ => {}
            }
            expr.for_each_operand(&mut |operand| pending.push((depth + 1, operand)));
        }
    }
}
