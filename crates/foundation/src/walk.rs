//! A walk over statements without recursion, however deep they nest.

use crate::{Body, Node};

/// What a [`Walk`] meets.
#[derive(Clone, Copy)]
pub enum Event<'a> {
    /// A statement begins.
    Node(&'a Node),
    /// The first body of this `If` has ended and its second one begins, even where that is empty.
    Else(&'a Node),
    /// The last body of this statement has ended. Statements without bodies have no end.
    End(&'a Node),
}

/// The statements of a body and of everything nested in it, in source order.
///
/// ```
/// use vyre_foundation::{Body, Event, Expr, Node, Walk};
/// let body = Body::from([Node::if_then(Expr::bool(true), [Node::return_()])]);
/// assert_eq!(Walk::new(&body).filter(|e| matches!(e, Event::Node(_))).count(), 2);
/// ```
pub struct Walk<'a> {
    open: Vec<(std::slice::Iter<'a, Node>, Option<Event<'a>>)>,
}

impl<'a> Walk<'a> {
    /// A walk over this body.
    pub fn new(body: &'a Body) -> Walk<'a> {
        Walk { open: vec![(body.iter(), None)] }
    }

    fn enter(&mut self, body: &'a Body, then: Event<'a>) {
        self.open.push((body.iter(), Some(then)));
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let (nodes, then) = self.open.last_mut()?;
        if let Some(node) = nodes.next() {
            match node {
                Node::If { then, .. } => self.enter(then, Event::Else(node)),
                Node::Loop { body, .. } | Node::Block { body } | Node::Region { body, .. } => {
                    self.enter(body, Event::End(node));
                }
                _ => {}
            }
            return Some(Event::Node(node));
        }
        let then = *then;
        self.open.pop();
        if let Some(Event::Else(node @ Node::If { otherwise, .. })) = then {
            self.enter(otherwise, Event::End(node));
        }
        then
    }
}
