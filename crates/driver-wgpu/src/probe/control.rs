//! Programs that show whether a driver ends loops early and forgets conditions.

use vyre_foundation::{Axis, BinOp, BufferDecl, Element, Expr, Node, Program};

/// How many rounds a loop is tried with. Drivers that cut loops off do so at 65,535.
const ROUNDS: u32 = 70_000;
/// How many conditions are tried in each other. Drivers that forget them do so at 80; the language has room for 256.
const DEPTH: u32 = 128;

fn buffers(inputs: u32) -> Vec<BufferDecl> {
    vec![
        BufferDecl::read("x", Element::U32).with_count(inputs),
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
    (Program::new(buffers(4), 1, entry).with_name("long_loop"), bytes([3, 1, 4, 1]))
}

fn round() -> Expr {
    Expr::binary(BinOp::BitAnd, Expr::var("k"), Expr::u32(3))
}

/// Conditions in each other, each with an effect of its own. The last ones do not hold. No two are alike: a driver need
/// not nest what it has asked already.
pub(super) fn deep_nesting() -> (Program, Vec<u8>) {
    let add = |number: u32| {
        let old = Expr::binary(BinOp::Mul, Expr::load("o", Expr::u32(0)), Expr::u32(3));
        Node::store("o", Expr::u32(0), Expr::binary(BinOp::Add, old, Expr::u32(number)))
    };
    let mut body = vec![add(DEPTH)];
    for depth in (0..DEPTH).rev() {
        let holds = Expr::binary(BinOp::Lt, Expr::invocation_id(Axis::X), Expr::load("x", Expr::u32(depth)));
        body = vec![Node::if_then(holds, body), add(depth)];
    }
    let program = Program::new(buffers(DEPTH), 1, body).with_name("deep_nesting");
    (program, bytes((0..DEPTH).map(|depth| u32::from(depth < DEPTH - 20))))
}

fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}
