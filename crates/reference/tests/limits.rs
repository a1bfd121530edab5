//! Programs at the limits run on a small stack, and sizes that cannot be had are errors.

use std::time::{Duration, Instant};
use vyre_foundation::validate::limits;
use vyre_foundation::{
    Axis, BufferDecl, Element, Expr, Function, MemoryOrdering, Node, Program, Type, UnOp, element,
};
use vyre_reference::{Error, Options, run};

fn on_small_stack(body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(body).expect("a thread");
    thread.join().expect("the thread ends without a panic");
}

fn first(program: &Program, options: &Options) -> u32 {
    let outcome = run(program, &[], options).expect("it runs");
    element::load(Element::U32, &outcome.outputs[0]) as u32
}

fn output() -> [BufferDecl; 1] {
    [BufferDecl::output("o", Element::U32).with_count(1)]
}

#[test]
fn the_deepest_program_runs_on_a_small_stack() {
    on_small_stack(|| {
        let deepest = (1..limits::DEPTH).fold(Expr::u32(0), |inner, i| match i % 2 {
            0 => Expr::unary(UnOp::BitNot, inner),
            _ => Expr::select(Expr::bool(true), inner, Expr::u32(1)),
        });
        let innermost = Node::store("o", Expr::u32(0), Expr::bit_not(Expr::var("x")));
        let nested = (0..limits::NESTING).fold(innermost, |inner, i| match i % 4 {
            0 => Node::block([inner]),
            1 => Node::if_then_else(Expr::bool(false), [Node::Return], [Node::barrier(), inner]),
            2 => Node::loop_for(format!("i{i}"), Expr::u32(3), Expr::u32(4), [inner]),
            _ => Node::region("r", [inner]),
        });
        let program = Program::new(output(), 2, [Node::let_bind("x", deepest), nested]);
        // 255 complements of 0, and one more.
        assert_eq!(first(&program, &Options::default()), 0);
    });
}

#[test]
fn a_long_chain_of_functions_needs_no_stack() {
    on_small_stack(|| {
        let functions: Vec<Function> = (0..100_000)
            .map(|i| {
                let x = Expr::var("x");
                let called = if i == 0 {
                    x
                } else {
                    Expr::call(format!("step{}", i - 1), [Expr::add(x, Expr::u32(1))])
                };
                Function {
                    name: format!("step{i}").into(),
                    params: vec![("x".into(), Type::U32)],
                    result_type: Type::U32,
                    lets: Vec::new(),
                    result: called,
                }
            })
            .collect();
        let call = Expr::call("step99999", [Expr::invocation_id(Axis::X)]);
        let program =
            Program::new(output(), 1, [Node::store("o", Expr::u32(0), call)]).with_functions(functions);
        assert_eq!(first(&program, &Options::default()), 99_999);
    });
}

#[test]
fn a_long_else_if_chain_runs_on_a_small_stack() {
    on_small_stack(|| {
        let link = |i: u32| format!("if x == {i} {{ o[0] = {i}; }}");
        let chain = (0..100_000).map(link).collect::<Vec<_>>().join(" else ");
        let text = format!("program p {{ buffer o: output u32[1]; let x = global_id.x + 99999; {chain} }}");
        let program = Program::parse(&text).expect("it parses");
        assert_eq!(first(&program, &Options::default()), 99_999);
    });
}

#[test]
fn sizes_that_cannot_be_had_are_errors() {
    let barrier = Node::barrier_with_ordering(MemoryOrdering::GridSync);
    let program = Program::new([], 1024, [barrier]);
    let options = Options { grid: Some([4_000_000, 4_000_000, 1]), ..Options::default() };
    assert!(matches!(run(&program, &[], &options), Err(Error::OutOfMemory { .. })));
    let locals = BufferDecl::local("l", Element::U64, u32::MAX);
    let program = Program::new([locals], 65_536, []);
    assert!(matches!(run(&program, &[], &Options::default()), Err(Error::OutOfMemory { .. })));
}

#[test]
fn a_deadline_ends_loops_and_large_grids() {
    let soon = || Some(Instant::now() + Duration::from_millis(20));
    let inner = Node::loop_for("k", Expr::u32(0), Expr::u32(u32::MAX), []);
    let endless = Program::new([], 1, [Node::loop_for("i", Expr::u32(0), Expr::u32(u32::MAX), [inner])]);
    let options = Options { deadline: soon(), ..Options::default() };
    assert_eq!(run(&endless, &[], &options), Err(Error::Timeout));
    let empty = Program::new([], 1, []);
    let options = Options { grid: Some([u32::MAX; 3]), deadline: soon(), ..Options::default() };
    assert_eq!(run(&empty, &[], &options), Err(Error::Timeout));
}
