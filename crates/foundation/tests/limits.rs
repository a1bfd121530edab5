//! Hostile sizes: everything ends in a result or a diagnostic, quickly, on a small stack.

use vyre_foundation::validate::limits;
use vyre_foundation::{Axis, BinOp, Body, Diagnostics, Expr, Function, Node, Program, Type, UnOp, text};

/// Runs on a thread with the 2 MiB of stack that threads get by default, whatever the test runner gives.
fn on_small_stack(body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(body).expect("a thread");
    thread.join().expect("the thread ends without a panic");
}

fn codes(found: &Diagnostics) -> Vec<&'static str> {
    found.iter().map(|diagnostic| diagnostic.code()).collect()
}

/// Everything that walks a program: it must return, with or without an error.
fn exercise(program: &Program) {
    let _ = program.check();
    let _ = program.stats();
    let _ = program.content_hash();
    let printed = program.to_string();
    assert!(!printed.is_empty());
    let _ = text::format(&printed);
    let wire = program.to_wire();
    let _ = Program::from_wire(&wire);
    assert!(program.clone().with_name("other") != *program);
}

fn deep_expr(depth: u32) -> Expr {
    (1..depth).fold(Expr::u32(1), |inner, i| match i % 3 {
        0 => Expr::add(inner, Expr::u32(1)),
        1 => Expr::unary(UnOp::BitNot, inner),
        _ => Expr::select(Expr::bool(true), Expr::u32(2), inner),
    })
}

fn nested(depth: u32, innermost: Node) -> Node {
    (0..depth).fold(innermost, |inner, i| match i % 4 {
        0 => Node::block([inner]),
        1 => Node::if_then_else(Expr::bool(true), [], [Node::Return, inner]),
        2 => Node::loop_for(format!("i{i}"), Expr::u32(0), Expr::u32(2), [inner]),
        _ => Node::region("r", [inner]),
    })
}

#[test]
fn programs_at_the_limits_are_valid_on_a_small_stack() {
    on_small_stack(|| {
        let deepest = Node::let_bind("x", deep_expr(limits::DEPTH));
        let program = Program::new([], 64, [nested(limits::NESTING, deepest)]);
        assert_eq!(program.validate().err().map(|found| codes(&found)), None);
        exercise(&program);
        let printed = program.to_string();
        assert_eq!(Program::parse(&printed), Ok(program.clone()));
        assert_eq!(Program::from_wire(&program.to_wire()), Ok(program));
    });
}

#[test]
fn programs_beyond_the_limits_are_refused_on_a_small_stack() {
    on_small_stack(|| {
        for (depth, nesting, code) in [
            (limits::DEPTH + 1, 1, "V002"),
            (1, limits::NESTING + 1, "V003"),
            (200_000, 1, "V002"),
            (1, 200_000, "V003"),
        ] {
            let program = Program::new([], 1, [nested(nesting, Node::let_bind("x", deep_expr(depth)))]);
            let found = program.validate().expect_err("it is too large");
            assert_eq!(codes(&found), [code], "depth {depth}, nesting {nesting}");
            exercise(&program);
        }
    });
}

#[test]
fn trees_that_share_their_parts_are_measured_without_expanding_them() {
    on_small_stack(|| {
        // Sixty doublings: as a tree it would have 2^60 nodes.
        let doubled = (0..60).fold(Expr::u32(1), |e, _| Expr::binary(BinOp::Add, e.clone(), e));
        let program = Program::new([], 1, [Node::let_bind("x", doubled)]);
        assert_eq!(codes(&program.validate().expect_err("too many expressions")), ["V004"]);
        let body = (0..60).fold(Body::from([Node::Return]), |body, _| {
            Body::from([Node::block(body.clone()), Node::block(body)])
        });
        let program = Program::new([], 1, body);
        assert_eq!(codes(&program.validate().expect_err("too many statements")), ["V001"]);
        // Functions that call each other twice: the calls explode, not the text.
        let functions: Vec<Function> = (0..60)
            .map(|i| {
                let call = |n: u32| Expr::call(format!("twice{n}"), [Expr::var("x")]);
                let result = if i == 0 { Expr::var("x") } else { Expr::add(call(i - 1), call(i - 1)) };
                Function {
                    name: format!("twice{i}").into(),
                    params: vec![("x".into(), Type::U32)],
                    result_type: Type::U32,
                    lets: Vec::new(),
                    result,
                }
            })
            .collect();
        let call = Node::let_bind("y", Expr::call("twice59", [Expr::invocation_id(Axis::X)]));
        let program = Program::new([], 1, [call]).with_functions(functions);
        assert_eq!(codes(&program.validate().expect_err("too many expressions")), ["V004"]);
    });
}

/// Parses, validates and renders: with these codes, and in time and memory linear in the text.
fn quick(what: &str, text: String, expected: &[&str]) {
    let what = what.to_owned();
    let expected: Vec<String> = expected.iter().map(|code| (*code).to_owned()).collect();
    on_small_stack(move || {
        let found = match Program::parse(&text) {
            Ok(program) => program.validate().err().unwrap_or_default(),
            Err(found) => found,
        };
        assert_eq!(codes(&found), expected, "{what}");
        let rendered = found.render("file", &text, vyre_foundation::diagnostic::Style::Plain);
        assert!(rendered.len() < 100_000, "{what}: {} bytes of diagnostics", rendered.len());
    });
}

#[test]
fn hostile_texts_end_quickly() {
    let wrap = |body: &str| format!("program p {{ {body} }}");
    let n = 100_000;
    quick("parentheses", wrap(&format!("let x = {}1{};", "(".repeat(n), ")".repeat(n))), &[]);
    quick("open parentheses", wrap(&format!("let x = {}1;", "(".repeat(n))), &["P010"]);
    quick("minus signs", wrap(&format!("let x = {}true;", "!".repeat(n))), &["V002"]);
    quick("blocks", wrap(&format!("{}{}", "{".repeat(n), "}".repeat(n))), &["V003"]);
    quick("indices", wrap(&format!("let x = {}0{};", "a[".repeat(n), "]".repeat(n))), &["V002"]);
    quick("calls", wrap(&format!("let x = {}0{};", "abs(".repeat(n), ")".repeat(n))), &["V002"]);
    quick("a long sum", wrap(&format!("let x = 1{};", " + 1".repeat(2_500_000))), &["V002"]);
    quick("a long name", wrap(&format!("let {} = 1;", "x".repeat(10_000_000))), &[]);
    quick("a long number", wrap(&format!("let x = {};", "9".repeat(10_000_000))), &["P004"]);
    quick("a long string", wrap(&format!("trap(\"{}\", 1);", "é".repeat(5_000_000))), &[]);
    quick("a long comment", format!("// {}\n{}", "x".repeat(10_000_000), wrap("")), &[]);
    quick("a long chain", wrap(&format!("if true {{}}{}", " else if true {}".repeat(n))), &[]);
    quick("opening braces", wrap(&"if true {".repeat(n)), &["P010", "V003"]);
}

#[test]
fn a_million_statements_are_fine_and_one_more_is_not() {
    let limit = limits::STATEMENTS as usize;
    let text = |count: usize| format!("program p {{ let mut x = 0; {} }}", "x = x + 1; ".repeat(count - 1));
    quick("a million statements", text(limit), &[]);
    quick("a million and one", text(limit + 1), &["V001"]);
}

#[test]
fn a_mistake_in_every_statement_is_reported_in_every_statement() {
    on_small_stack(|| {
        let n = 200_000;
        let text = format!("program p {{ {} }}", "let x = y; ".repeat(n));
        let found = Program::parse(&text).expect("it parses").validate().expect_err("nothing fits");
        // Each `y` is unknown, and each `x` but the first is declared twice.
        assert_eq!(found.len(), 2 * n - 1);
        assert!(found.render("file", &text, vyre_foundation::diagnostic::Style::Plain).ends_with("more\n\n"));
    });
}

#[test]
fn every_divergent_barrier_is_explained() {
    on_small_stack(|| {
        let n = 100_000;
        let barriers = vec![Node::barrier(); n];
        let cond = Expr::eq(Expr::local_id(Axis::X), Expr::u32(0));
        let inner = Node::if_then_else(Expr::bool(true), [], [Node::if_then(cond, barriers)]);
        let program = Program::new([], 4, [Node::Return, inner]);
        let found = program.validate().expect_err("no barrier may stand there");
        assert_eq!(found.len(), n);
        let last = found.iter().last().expect("a diagnostic");
        assert_eq!(last.place.path, format!("entry[1].else_if[1].then[{}]", n - 1));
        let notes: Vec<&str> = last.notes.iter().map(|note| note.place.path.as_str()).collect();
        assert_eq!(notes, ["entry[1].else_if[1]"; 2]);
    });
}

#[test]
fn long_dependencies_around_a_loop_are_followed_in_linear_time() {
    // Each pass of a naive analysis would carry divergence one variable further.
    let n = 20_000;
    let mut text = String::from("program p { workgroup_size 2;\n");
    for i in 0..n {
        text += &format!("let mut a{i} = 0;\n");
    }
    text += "for i in 0..4 {\n";
    for i in 1..n {
        text += &format!("a{} = a{i};\n", i - 1);
    }
    text += &format!("a{} = local_id.x;\nif a0 == 0 {{ barrier(workgroup); }}\n}} }}", n - 1);
    quick("a chain around a loop", text, &["V018"]);
}
