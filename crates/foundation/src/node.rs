//! Statements and bodies.

use crate::ops::MemoryOrdering;
use crate::{Expr, Name};
use std::ops::Deref;
use std::sync::Arc;

/// A sequence of statements. It is shared: cloning is cheap, and dropping needs no stack, however deep the
/// nesting is.
#[derive(Clone, Default)]
pub struct Body(Option<Arc<Vec<Node>>>);

impl Body {
    /// No statements.
    pub const EMPTY: Body = Body(None);

    fn nodes_mut(&mut self) -> Option<&mut [Node]> {
        self.0.as_mut().and_then(Arc::get_mut).map(Vec::as_mut_slice)
    }
}

impl Deref for Body {
    type Target = [Node];
    fn deref(&self) -> &[Node] {
        self.0.as_ref().map_or(&[], |nodes| nodes.as_slice())
    }
}

impl<'a> IntoIterator for &'a Body {
    type Item = &'a Node;
    type IntoIter = std::slice::Iter<'a, Node>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Vec<Node>> for Body {
    fn from(mut nodes: Vec<Node>) -> Body {
        // The vector itself is shared: moving a million statements once more would cost as much as parsing them.
        nodes.shrink_to_fit();
        Body(if nodes.is_empty() { None } else { Some(Arc::new(nodes)) })
    }
}

impl<const N: usize> From<[Node; N]> for Body {
    fn from(nodes: [Node; N]) -> Body {
        Vec::from(nodes).into()
    }
}

impl FromIterator<Node> for Body {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Body {
        nodes.into_iter().collect::<Vec<_>>().into()
    }
}

impl PartialEq for Body {
    /// Compares encodings, so that comparing needs no stack, however deep the nesting is.
    fn eq(&self, other: &Body) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => true,
            _ => crate::wire::body_bytes(self) == crate::wire::body_bytes(other),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let mut pending = Vec::new();
        detach_bodies(self, &mut pending);
        while let Some(mut body) = pending.pop() {
            detach_bodies(&mut body, &mut pending);
        }
    }
}

/// Moves the nested bodies that only `body` owns out of it.
fn detach_bodies(body: &mut Body, pending: &mut Vec<Body>) {
    for node in body.nodes_mut().into_iter().flatten() {
        match node {
            Node::If { then, otherwise, .. } => {
                pending.extend([std::mem::take(then), std::mem::take(otherwise)]);
            }
            Node::Loop { body, .. } | Node::Block { body } | Node::Region { body, .. } => {
                pending.push(std::mem::take(body));
            }
            _ => {}
        }
    }
}

/// A statement.
#[derive(Clone, PartialEq)]
pub enum Node {
    /// Opens a name until its scope ends.
    Let {
        /// The new name.
        name: Name,
        /// Its first value.
        value: Expr,
    },
    /// Changes a variable.
    Assign {
        /// The variable.
        name: Name,
        /// Its new value, of the same type.
        value: Expr,
    },
    /// Stores one element; outside the buffer it is dropped.
    Store {
        /// The buffer.
        buffer: Name,
        /// A `u32`, evaluated first.
        index: Expr,
        /// Evaluated second.
        value: Expr,
    },
    /// Evaluates an expression for its effect.
    Eval {
        /// The expression; the only place where an atomic store may stand.
        expr: Expr,
    },
    /// Runs one of two bodies.
    If {
        /// A `bool`.
        cond: Expr,
        /// Where it holds.
        then: Body,
        /// Where it does not. A body that is exactly one `If` is an `else if` and no further level of nesting.
        otherwise: Body,
    },
    /// Runs the body for `from, from + 1, … to - 1`, in `u32`. Bounds are evaluated once, `from` first.
    Loop {
        /// The loop variable; it cannot be assigned.
        var: Name,
        /// The first value.
        from: Expr,
        /// One more than the last value.
        to: Expr,
        /// The body.
        body: Body,
    },
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the next iteration of the innermost loop.
    Continue,
    /// A scope.
    Block {
        /// Its statements.
        body: Body,
    },
    /// A scope that says where its statements came from.
    Region {
        /// What made the statements.
        generator: Name,
        /// Which part of the generator's source they came from.
        source_region: Option<Name>,
        /// The statements.
        body: Body,
    },
    /// Waits: `SeqCst` for the workgroup, `GridSync` for the whole grid.
    Barrier {
        /// `SeqCst` or `GridSync`.
        ordering: MemoryOrdering,
    },
    /// Ends the invocation.
    Return,
    /// Ends the invocation and makes the dispatch fail at the next grid barrier or at its end.
    Trap {
        /// What happened.
        tag: Name,
        /// A `u32`.
        value: Expr,
    },
}

/// Constructors.
impl Node {
    /// `let name = value;`
    pub fn let_bind(name: impl Into<Name>, value: Expr) -> Node {
        Node::Let { name: name.into(), value }
    }

    /// `name = value;`
    pub fn assign(name: impl Into<Name>, value: Expr) -> Node {
        Node::Assign { name: name.into(), value }
    }

    /// `buffer[index] = value;`
    pub fn store(buffer: impl Into<Name>, index: Expr, value: Expr) -> Node {
        Node::Store { buffer: buffer.into(), index, value }
    }

    /// `expr;`
    pub fn eval(expr: Expr) -> Node {
        Node::Eval { expr }
    }

    /// `if cond { … }`
    pub fn if_then(cond: Expr, then: impl Into<Body>) -> Node {
        Node::If { cond, then: then.into(), otherwise: Body::EMPTY }
    }

    /// `if cond { … } else { … }`
    pub fn if_then_else(cond: Expr, then: impl Into<Body>, otherwise: impl Into<Body>) -> Node {
        Node::If { cond, then: then.into(), otherwise: otherwise.into() }
    }

    /// `for var in from..to { … }`
    pub fn loop_for(var: impl Into<Name>, from: Expr, to: Expr, body: impl Into<Body>) -> Node {
        Node::Loop { var: var.into(), from, to, body: body.into() }
    }

    /// `break;`
    pub fn break_() -> Node {
        Node::Break
    }

    /// `continue;`
    pub fn continue_() -> Node {
        Node::Continue
    }

    /// `{ … }`
    pub fn block(body: impl Into<Body>) -> Node {
        Node::Block { body: body.into() }
    }

    /// `region "generator" { … }`
    pub fn region(generator: impl Into<Name>, body: impl Into<Body>) -> Node {
        Node::Region { generator: generator.into(), source_region: None, body: body.into() }
    }

    /// `barrier(workgroup);`
    pub fn barrier() -> Node {
        Node::Barrier { ordering: MemoryOrdering::SeqCst }
    }

    /// A barrier with this ordering: `GridSync` gives `barrier(grid);`.
    pub fn barrier_with_ordering(ordering: MemoryOrdering) -> Node {
        Node::Barrier { ordering }
    }

    /// `return;`
    pub fn return_() -> Node {
        Node::Return
    }

    /// `trap("tag", value);`
    pub fn trap(tag: impl Into<Name>, value: Expr) -> Node {
        Node::Trap { tag: tag.into(), value }
    }
}

impl Node {
    /// Visits the expressions of the statement itself, in evaluation order.
    pub fn for_each_expr<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Node::Let { value, .. } | Node::Assign { value, .. } | Node::Trap { value, .. } => {
                visit(value);
            }
            Node::Store { index, value, .. } => {
                visit(index);
                visit(value);
            }
            Node::Eval { expr } => visit(expr),
            Node::If { cond, .. } => visit(cond),
            Node::Loop { from, to, .. } => {
                visit(from);
                visit(to);
            }
            Node::Break
            | Node::Continue
            | Node::Block { .. }
            | Node::Region { .. }
            | Node::Barrier { .. }
            | Node::Return => {}
        }
    }

    /// The uniform load of the statement itself. It happens before the rest of it, and there is at most one.
    pub fn uniform_load(&self) -> Option<&Expr> {
        let mut found = None;
        self.for_each_expr(&mut |expr| {
            expr.visit(&mut |expr| {
                if matches!(expr, Expr::UniformLoad { .. }) {
                    found = Some(expr);
                }
            });
        });
        found
    }

    /// The bodies nested in the statement, in source order.
    pub fn bodies(&self) -> impl Iterator<Item = &Body> {
        let (first, second) = match self {
            Node::If { then, otherwise, .. } => (Some(then), Some(otherwise)),
            Node::Loop { body, .. } | Node::Block { body } | Node::Region { body, .. } => (Some(body), None),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }
}

impl Body {
    /// The next link where this is the `else` of an `else if`: a body that is exactly one `If`.
    ///
    /// A chain is one level of nesting however long it is, so what walks statements walks it in a loop.
    pub fn as_else_if(&self) -> Option<&Node> {
        match &**self {
            [node @ Node::If { .. }] => Some(node),
            _ => None,
        }
    }
}
