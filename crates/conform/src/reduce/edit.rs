//! Edits of a program by number: statements in the order in which they begin, expressions in the order in
//! which they end, functions first. Both orders are those of [`crate::typing::walk`].

use vyre_foundation::{Body, Event, Expr, Function, Name, Node, Program, Walk};

/// How many statements a body holds, nested ones included.
pub(super) fn statements(body: &Body) -> usize {
    Walk::new(body).filter(|event| matches!(event, Event::Node(_))).count()
}

/// What to put in the place of a statement; `None` keeps it and goes on inside it.
pub(crate) type Replace<'a> = dyn FnMut(usize, &Node) -> Option<Vec<Node>> + 'a;

/// The program with statements replaced.
pub(crate) fn replace_statements(program: &Program, replace: &mut Replace<'_>) -> Program {
    let entry = in_body(program.entry(), &mut 0, replace);
    program.clone().with_rewritten_entry(entry)
}

fn in_body(body: &Body, next: &mut usize, replace: &mut Replace<'_>) -> Body {
    let mut out = Vec::new();
    for node in body {
        let number = *next;
        *next += 1;
        match replace(number, node) {
            Some(nodes) => {
                *next += node.bodies().map(statements).sum::<usize>();
                out.extend(nodes);
            }
            None => out.push(with_bodies(node, &mut |body| in_body(body, next, replace))),
        }
    }
    out.into()
}

/// Whether the expression holds a uniform load.
pub(crate) fn holds_uniform_load(expr: &Expr) -> bool {
    let mut found = matches!(expr, Expr::UniformLoad { .. });
    expr.for_each_operand(&mut |operand| found |= holds_uniform_load(operand));
    found
}

/// The statement with each of its bodies replaced.
pub(super) fn with_bodies(node: &Node, change: &mut dyn FnMut(&Body) -> Body) -> Node {
    match node {
        Node::If { cond, then, otherwise } => {
            let then = change(then);
            Node::If { cond: cond.clone(), then, otherwise: change(otherwise) }
        }
        Node::Loop { var, from, to, body } => {
            Node::Loop { var: var.clone(), from: from.clone(), to: to.clone(), body: change(body) }
        }
        Node::Block { body } => Node::Block { body: change(body) },
        Node::Region { generator, source_region, body } => Node::Region {
            generator: generator.clone(),
            source_region: source_region.clone(),
            body: change(body),
        },
        other => other.clone(),
    }
}

/// What to put in the place of an expression whose operands have been replaced already.
pub(crate) type ReplaceExpr<'a> = dyn FnMut(usize, Expr) -> Expr + 'a;

/// The program with expressions replaced.
pub(crate) fn replace_exprs(program: &Program, replace: &mut ReplaceExpr<'_>) -> Program {
    let mut next = 0;
    let mut functions: Vec<Function> = program.functions().to_vec();
    for function in &mut functions {
        for (_, value) in &mut function.lets {
            *value = in_expr(value.clone(), &mut next, replace);
        }
        function.result = in_expr(function.result.clone(), &mut next, replace);
    }
    let entry = exprs_of_body(program.entry(), &mut next, replace);
    program.clone().with_functions(functions).with_rewritten_entry(entry)
}

fn in_expr(expr: Expr, next: &mut usize, replace: &mut ReplaceExpr<'_>) -> Expr {
    let expr = expr.map_operands(&mut |operand| in_expr(operand, next, replace));
    let number = *next;
    *next += 1;
    replace(number, expr)
}

pub(super) fn exprs_of_body(body: &Body, next: &mut usize, replace: &mut ReplaceExpr<'_>) -> Body {
    body.iter().map(|node| exprs_of_node(node, next, replace)).collect()
}

fn exprs_of_node(node: &Node, next: &mut usize, replace: &mut ReplaceExpr<'_>) -> Node {
    let mut own = |expr: &Expr| in_expr(expr.clone(), next, replace);
    let node = match node {
        Node::Let { name, value } => Node::Let { name: name.clone(), value: own(value) },
        Node::Assign { name, value } => Node::Assign { name: name.clone(), value: own(value) },
        Node::Store { buffer, index, value } => {
            let index = own(index);
            Node::Store { buffer: buffer.clone(), index, value: own(value) }
        }
        Node::Eval { expr } => Node::Eval { expr: own(expr) },
        Node::If { cond, then, otherwise } => {
            Node::If { cond: own(cond), then: then.clone(), otherwise: otherwise.clone() }
        }
        Node::Loop { var, from, to, body } => {
            let from = own(from);
            Node::Loop { var: var.clone(), from, to: own(to), body: body.clone() }
        }
        Node::Trap { tag, value } => Node::Trap { tag: tag.clone(), value: own(value) },
        Node::Break
        | Node::Continue
        | Node::Block { .. }
        | Node::Region { .. }
        | Node::Barrier { .. }
        | Node::Return => node.clone(),
    };
    with_bodies(&node, &mut |body| exprs_of_body(body, next, replace))
}

/// The body without a variable: assignments to it go, and `value` stands where it was used.
pub(super) fn without_variable(body: &[Node], name: &Name, value: &Expr) -> Vec<Node> {
    let mut out = Vec::new();
    for node in body {
        if matches!(node, Node::Assign { name: target, .. } if target == name) {
            continue;
        }
        let mut substitute = |_: usize, expr: Expr| match &expr {
            Expr::Var(used) if used == name => value.clone(),
            _ => expr,
        };
        let bare = with_bodies(node, &mut |_| Body::EMPTY);
        let bare = exprs_of_node(&bare, &mut 0, &mut substitute);
        let mut bodies = node.bodies();
        out.push(with_bodies(&bare, &mut |_| match bodies.next() {
            Some(body) => without_variable(body, name, value).into(),
            None => Body::EMPTY,
        }));
    }
    out
}

/// The statements without the jumps of the loop that they are the body of.
pub(super) fn without_jumps(body: &[Node]) -> Vec<Node> {
    let kept = body.iter().filter(|node| !matches!(node, Node::Break | Node::Continue));
    kept.map(|node| match node {
        Node::Loop { .. } => node.clone(),
        _ => with_bodies(node, &mut |body| without_jumps(body).into()),
    })
    .collect()
}
