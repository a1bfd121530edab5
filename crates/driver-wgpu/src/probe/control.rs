//! Programs that show whether a driver ends loops early and forgets conditions.

use vyre_foundation::{Axis, BinOp, BufferDecl, Element, Expr, Node, Program};

/// How many rounds a loop is tried with. Drivers that cut loops off do so at 65,535.
const ROUNDS: u32 = 70_000;
/// How many conditions are tried in each other. The language has room for 256.
const DEPTH: u32 = 240;

fn buffers() -> Vec<BufferDecl> {
    vec![
        BufferDecl::read("x", Element::U32).with_count(4),
        BufferDecl::output("o", Element::U32).with_count(1),
    ]
}

/// A loop whose result nobody can know without making all its rounds.
pub(super) fn long_loop() -> (Program, Vec<u8>) {
    let sum = || Expr::var("sum");
    let step =
        Expr::binary(BinOp::Add, Expr::binary(BinOp::Mul, sum(), Expr::u32(5)), Expr::load("x", round()));
    let step = Expr::binary(BinOp::BitXor, step, Expr::binary(BinOp::Shr, sum(), Expr::u32(7)));
    let entry = vec![
        Node::let_bind("sum", Expr::u32(1)),
        Node::loop_for("k", Expr::u32(0), Expr::u32(ROUNDS), vec![Node::assign("sum", step)]),
        Node::store("o", Expr::u32(0), sum()),
    ];
    (Program::new(buffers(), 1, entry).with_name("long_loop"), input([3, 1, 4, 1]))
}

fn round() -> Expr {
    Expr::binary(BinOp::BitAnd, Expr::var("k"), Expr::u32(3))
}

/// Conditions in each other, each with an effect of its own. All invocations go in, not all go through.
pub(super) fn deep_nesting() -> (Program, Vec<u8>) {
    let lane = || Expr::invocation_id(Axis::X);
    let add = |number: u32| {
        let old = Expr::binary(BinOp::Mul, Expr::load("o", Expr::u32(0)), Expr::u32(3));
        Node::store("o", Expr::u32(0), Expr::binary(BinOp::Add, old, Expr::u32(number)))
    };
    let mut body = vec![add(DEPTH)];
    for depth in (0..DEPTH).rev() {
        let limit = Expr::load("x", Expr::u32(depth % 4));
        // The last ones hold for nobody.
        let bound = Expr::binary(BinOp::Add, lane(), Expr::u32(if depth > DEPTH - 20 { 100 } else { 0 }));
        body = vec![Node::if_then(Expr::binary(BinOp::Lt, bound, limit), body), add(depth)];
    }
    (Program::new(buffers(), 1, body).with_name("deep_nesting"), input([9, 8, 7, 6]))
}

fn input(words: [u32; 4]) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}
