//! From a program to text. It keeps its own stacks, so that any tree prints, however deep it is.

use super::layout::layout;
use crate::ops::MemoryOrdering;
use crate::validate::Assignments;
use crate::{Body, BufferAccess, Event, Expr, Literal, Node, Operand, Program, Walk};
use std::fmt::Write;

/// The program in canonical layout.
///
/// ```
/// use vyre_foundation::{text, Program};
/// assert_eq!(text::print(&Program::empty()), "program main {}\n");
/// ```
pub fn print(program: &Program) -> String {
    let mut out = format!("program {} {{\n", program.name());
    print_items(&mut out, program);
    if !program.entry().is_empty() {
        out.push('\n');
    }
    print_body(&mut out, program.entry());
    out.push_str("}\n");
    layout(&out)
}

/// One statement in canonical layout.
pub fn print_node(node: &Node) -> String {
    let mut out = String::new();
    print_body(&mut out, &Body::from([node.clone()]));
    layout(&out).trim_end().to_owned()
}

/// One expression on one line.
pub fn print_expr(expr: &Expr) -> String {
    let mut out = String::new();
    push_expr(&mut out, expr);
    out
}

fn print_items(out: &mut String, program: &Program) {
    // Writing to a string cannot fail.
    let size = program.workgroup_size();
    if size != 1.into() {
        let numbers: Vec<_> = size.named().iter().map(u32::to_string).collect();
        let _ = writeln!(out, "workgroup_size {};", numbers.join(", "));
    }
    if program.subgroup_size() != Program::DEFAULT_SUBGROUP_SIZE {
        let _ = writeln!(out, "subgroup_size {};", program.subgroup_size());
    }
    if !program.buffers().is_empty() {
        out.push('\n');
    }
    for buffer in program.buffers() {
        let count = buffer.count().map_or(String::new(), |n| n.to_string());
        let (name, element) = (buffer.name(), buffer.element());
        let _ = match buffer.access() {
            access @ (BufferAccess::Workgroup | BufferAccess::Local) => {
                writeln!(out, "{access} {name}: {element}[{count}];")
            }
            access => writeln!(out, "buffer {name}: {access} {element}[{count}];"),
        };
    }
    for function in program.functions() {
        let params: Vec<_> = function.params.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        let (name, ty) = (&function.name, function.result_type);
        let _ = writeln!(out, "\nfn {name}({}) -> {ty} {{", params.join(", "));
        for (name, value) in &function.lets {
            let _ = write!(out, "let {name} = ");
            push_expr(out, value);
            out.push_str(";\n");
        }
        out.push_str("return ");
        push_expr(out, &function.result);
        out.push_str(";\n}\n");
    }
}

fn print_body(out: &mut String, body: &Body) {
    let assignments = Assignments::of(body);
    let mut number = 0;
    let exprs = |out: &mut String, parts: &[(&str, Option<&Expr>)]| {
        for (text, expr) in parts {
            out.push_str(text);
            if let Some(expr) = expr {
                push_expr(out, expr);
            }
        }
    };
    for event in Walk::new(body) {
        if let Event::Node(_) = event {
            number += 1;
        }
        match event {
            Event::Node(node) => match node {
                Node::Let { name, value } => {
                    let mutable = if assignments.is_assigned(number - 1) { "mut " } else { "" };
                    exprs(
                        out,
                        &[("let ", None), (mutable, None), (name, None), (" = ", Some(value)), (";\n", None)],
                    );
                }
                Node::Assign { name, value } => {
                    exprs(out, &[(name, None), (" = ", Some(value)), (";\n", None)]);
                }
                Node::Store { buffer, index, value } => {
                    exprs(out, &[(buffer, None), ("[", Some(index)), ("] = ", Some(value)), (";\n", None)]);
                }
                Node::Eval { expr } => exprs(out, &[("", Some(expr)), (";\n", None)]),
                Node::If { cond, .. } => exprs(out, &[("if ", Some(cond)), (" {\n", None)]),
                Node::Loop { var, from, to, .. } => {
                    exprs(
                        out,
                        &[
                            ("for ", None),
                            (var, None),
                            (" in ", Some(from)),
                            ("..", Some(to)),
                            (" {\n", None),
                        ],
                    );
                }
                Node::Break => out.push_str("break;\n"),
                Node::Continue => out.push_str("continue;\n"),
                Node::Block { .. } => out.push_str("{\n"),
                Node::Region { generator, source_region, .. } => {
                    out.push_str("region ");
                    push_string(out, generator);
                    if let Some(source) = source_region {
                        out.push_str(" from ");
                        push_string(out, source);
                    }
                    out.push_str(" {\n");
                }
                Node::Barrier { ordering } => {
                    out.push_str(match ordering {
                        MemoryOrdering::GridSync => "barrier(grid);\n",
                        _ => "barrier(workgroup);\n",
                    });
                }
                Node::Return => out.push_str("return;\n"),
                Node::Trap { tag, value } => {
                    out.push_str("trap(");
                    push_string(out, tag);
                    exprs(out, &[(", ", Some(value)), (");\n", None)]);
                }
            },
            Event::Else(Node::If { otherwise, .. }) if otherwise.is_empty() => out.push('}'),
            Event::Else(Node::If { otherwise, .. }) if otherwise.as_else_if().is_some() => {
                out.push_str("} else ");
            }
            Event::Else(_) => out.push_str("} else {\n"),
            // The last link of an `else if` chain closes the brace for all.
            Event::End(Node::If { otherwise, .. })
                if otherwise.is_empty() || otherwise.as_else_if().is_some() =>
            {
                out.push('\n');
            }
            Event::End(_) => out.push_str("}\n"),
        }
    }
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// What is still to be printed of an expression.
enum Todo<'a> {
    Expr(&'a Expr),
    Text(&'a str),
}

fn push_expr(out: &mut String, expr: &Expr) {
    let mut todo = vec![Todo::Expr(expr)];
    while let Some(next) = todo.pop() {
        match next {
            Todo::Text(text) => out.push_str(text),
            Todo::Expr(expr) => {
                let start = todo.len();
                expand(out, expr, &mut todo);
                // `expand` lists parts in reading order; the stack wants the last one first.
                todo[start..].reverse();
            }
        }
    }
}

/// Whether an operand of an operator that binds with `binding` needs parentheses.
fn needs_parentheses(operand: &Expr, binding: u8, strict: bool) -> bool {
    match operand {
        Expr::BinOp { op, .. } => {
            op.precedence().is_some_and(|own| own < binding || own == binding && strict)
        }
        _ => false,
    }
}

fn expand<'a>(out: &mut String, expr: &'a Expr, todo: &mut Vec<Todo<'a>>) {
    let call = |out: &mut String, todo: &mut Vec<Todo<'a>>, name: &str, args: &[&'a Operand]| {
        out.push_str(name);
        out.push('(');
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                todo.push(Todo::Text(", "));
            }
            todo.push(Todo::Expr(arg));
        }
        todo.push(Todo::Text(")"));
    };
    let grouped = |todo: &mut Vec<Todo<'a>>, operand: &'a Expr, parentheses: bool| {
        if parentheses {
            todo.extend([Todo::Text("("), Todo::Expr(operand), Todo::Text(")")]);
        } else {
            todo.push(Todo::Expr(operand));
        }
    };
    match expr {
        Expr::Literal(literal) => {
            let _ = write!(out, "{literal}");
        }
        Expr::Var(name) => out.push_str(name),
        Expr::Load { buffer, index } => {
            out.push_str(buffer);
            out.push('[');
            todo.extend([Todo::Expr(index), Todo::Text("]")]);
        }
        Expr::BufLen { buffer } => {
            let _ = write!(out, "len({buffer})");
        }
        Expr::InvocationId { axis } => push_id(out, "global_id", axis.name()),
        Expr::WorkgroupId { axis } => push_id(out, "workgroup_id", axis.name()),
        Expr::LocalId { axis } => push_id(out, "local_id", axis.name()),
        Expr::NumWorkgroups { axis } => push_id(out, "num_workgroups", axis.name()),
        Expr::SubgroupLocalId => out.push_str("subgroup_lane"),
        Expr::SubgroupSize => out.push_str("subgroup_size"),
        Expr::BinOp { op, left, right } => match op.precedence() {
            Some(binding) => {
                // Operators group to the left; comparisons do not group at all.
                let left_strict = op.is_comparison();
                grouped(todo, left, needs_parentheses(left, binding, left_strict));
                todo.extend([Todo::Text(" "), Todo::Text(op.spelling()), Todo::Text(" ")]);
                grouped(todo, right, needs_parentheses(right, binding, true));
            }
            None => call(out, todo, op.spelling(), &[left, right]),
        },
        Expr::UnOp { op, operand } if op.is_prefix() => {
            out.push_str(op.spelling());
            // A minus before a number would become part of it.
            let literal = matches!(&**operand, Expr::Literal(l) if !matches!(l, Literal::Bool(_)));
            grouped(todo, operand, needs_parentheses(operand, u8::MAX, true) || literal);
        }
        Expr::UnOp { op, operand } => call(out, todo, op.spelling(), &[operand]),
        Expr::Select { cond, if_true, if_false } => call(out, todo, "select", &[cond, if_true, if_false]),
        Expr::Cast { to, value } => call(out, todo, to.name(), &[value]),
        Expr::Bitcast { to, value } => call(out, todo, &format!("bitcast<{to}>"), &[value]),
        Expr::Fma { a, b, c } => call(out, todo, "fma", &[a, b, c]),
        Expr::Atomic { op, buffer, index, expected, value, ordering } => {
            let _ = write!(out, "{}({buffer}[", op.spelling());
            todo.extend([Todo::Expr(index), Todo::Text("]")]);
            for operand in expected.iter().chain(value) {
                todo.extend([Todo::Text(", "), Todo::Expr(operand)]);
            }
            if *ordering != MemoryOrdering::Relaxed {
                todo.extend([Todo::Text(", "), Todo::Text(ordering.name())]);
            }
            todo.push(Todo::Text(")"));
        }
        Expr::UniformLoad { scope, buffer, index } => {
            let _ = write!(out, "uniform_load({}, {buffer}[", scope.name());
            todo.extend([Todo::Expr(index), Todo::Text("])")]);
        }
        Expr::SubgroupBallot { cond } => call(out, todo, "subgroup_ballot", &[cond]),
        Expr::SubgroupShuffle { value, lane } => call(out, todo, "subgroup_shuffle", &[value, lane]),
        Expr::SubgroupReduce { op, value } => call(out, todo, op.spelling(), &[value]),
        Expr::Call { function, args } => call(out, todo, function, &args.iter().collect::<Vec<_>>()),
    }
}

fn push_id(out: &mut String, id: &str, axis: &str) {
    out.push_str(id);
    out.push('.');
    out.push_str(axis);
}
