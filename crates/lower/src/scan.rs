//! Questions about statements that lowering asks before it lowers them.

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

/// Whether ended invocations must reach something in these statements.
pub(crate) fn waits(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| {
        node_waits(node)
            || node.bodies().any(|body| {
                Walk::new(body).any(|event| matches!(event, Event::Node(node) if node_waits(node)))
            })
    })
}
