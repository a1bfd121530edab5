//! Questions about statements that lowering asks before it lowers them.

use rustc_hash::FxHashSet;
use vyre_foundation::{Event, Expr, Name, Node, Program, Walk};

/// The buffers that some statement stores to, whether it is reached or not.
pub(crate) fn may_write(program: &Program) -> Vec<bool> {
    let mut written = vec![false; program.buffers().len()];
    let number = |name: &Name| program.buffers().iter().position(|buffer| buffer.name() == name);
    for event in Walk::new(program.entry()) {
        let Event::Node(node) = event else { continue };
        if let Node::Store { buffer, .. } = node
            && let Some(number) = number(buffer)
        {
            written[number] = true;
        }
        node.for_each_expr(&mut |expr| {
            expr.visit(&mut |expr| {
                if let Expr::Atomic { buffer, .. } = expr
                    && let Some(number) = number(buffer)
                {
                    written[number] = true;
                }
            });
        });
    }
    written
}

pub(crate) fn is_subgroup(expr: &Expr) -> bool {
    matches!(expr, Expr::SubgroupBallot { .. } | Expr::SubgroupShuffle { .. } | Expr::SubgroupReduce { .. })
}

/// Whether ended invocations must reach the expression.
pub(crate) fn expr_waits(expr: &Expr) -> bool {
    expr.any(&|e| is_subgroup(e) || matches!(e, Expr::UniformLoad { .. }))
}

pub(crate) fn node_waits(node: &Node) -> bool {
    let mut waits = matches!(node, Node::Barrier { .. });
    node.for_each_expr(&mut |expr| waits |= expr_waits(expr));
    waits
}

/// The statements that ended invocations must reach, or something in them, told apart by where they are.
pub(crate) struct Waiting(FxHashSet<*const Node>);

impl Waiting {
    pub(crate) fn of(program: &Program) -> Waiting {
        let mut found = FxHashSet::default();
        // For each statement that is open whether something in it waits.
        let mut open = Vec::new();
        for event in Walk::new(program.entry()) {
            let (node, waits) = match event {
                Event::Node(node) if node.bodies().next().is_some() => {
                    open.push(node_waits(node));
                    continue;
                }
                Event::Node(node) => (node, node_waits(node)),
                Event::Else(_) => continue,
                Event::End(node) => (node, open.pop().unwrap_or(false)),
            };
            if waits {
                found.insert(std::ptr::from_ref(node));
                open.last_mut().into_iter().for_each(|outer| *outer = true);
            }
        }
        Waiting(found)
    }

    /// How many of these statements there are up to the last one that waits.
    pub(crate) fn until(&self, nodes: &[Node]) -> usize {
        if self.0.is_empty() {
            return 0;
        }
        nodes.iter().rposition(|node| self.0.contains(&std::ptr::from_ref(node))).map_or(0, |last| last + 1)
    }
}
