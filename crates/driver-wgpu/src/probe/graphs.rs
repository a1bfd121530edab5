//! Programs of random float expressions.
//!
//! One operation proves nothing: drivers break expressions where operations meet. So a program computes many graphs
//! with shared nodes, over the literals that rewriting rules like (zeros, one, infinities, NaN, subnormals) and over
//! inputs at the edges of the format.

use vyre_foundation::rng::SplitMix64;
use vyre_foundation::{
    Axis, BinOp, BufferDecl, Element, Expr, Literal, Name, Node, Program, Type, UnOp, WorkgroupSize,
};

/// How many inputs a graph has.
const INPUTS: usize = 4;

/// A kind of operation that a graph may have. Each device earns the short form of each kind by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Sums and differences.
    Add,
    Mul,
    Div,
    Sqrt,
    Fma,
    /// `floor`, `ceil`, `trunc`, `round`.
    Rounding,
    /// Casts to integers.
    ToInteger,
    /// Casts of integers.
    FromInteger,
    /// Comparisons, `min` and `max`.
    Compare,
}

impl Kind {
    /// Every kind.
    pub(crate) const ALL: [Kind; 9] = [
        Kind::Add,
        Kind::Mul,
        Kind::Compare,
        Kind::Div,
        Kind::Sqrt,
        Kind::Fma,
        Kind::Rounding,
        Kind::ToInteger,
        Kind::FromInteger,
    ];
}

/// Values at which something happens: zeros, ends of ranges, their neighbours, powers of two and halves between.
const EDGES: [u32; 46] = [
    0x0000_0000, // 0
    0x8000_0000, // -0
    0x3f80_0000, // 1
    0xbf80_0000, // -1
    0x7f80_0000, // inf
    0xff80_0000, // -inf
    0x7fc0_0000, // NaN
    0x0000_0001, // the smallest subnormals
    0x8000_0001,
    0x0000_0003,
    0x007f_ffff, // the largest subnormal
    0x807f_ffff,
    0x0080_0000, // the smallest normal
    0x0080_0001,
    0x00ff_ffff,
    0x0100_0000,
    0x7f7f_ffff, // the largest number
    0xff7f_ffff,
    0x7f00_0000,
    0x7e80_0000,
    0x3f80_0001, // neighbours of 1
    0x3f7f_ffff,
    0x3f00_0000, // 0.5
    0xbf00_0000,
    0x3f00_0001,
    0x3eff_ffff,
    0x3fc0_0000, // 1.5
    0x4020_0000, // 2.5
    0x4000_0000, // 2
    0x4040_0000, // 3
    0x3300_0000, // 2^-25
    0x3380_0000, // 2^-24
    0x3400_0000, // 2^-23
    0x4b00_0000, // 2^23
    0x4b00_0001,
    0x4aff_ffff,
    0x4b80_0000, // 2^24
    0xcb00_0001,
    0x4eff_ffff, // below 2^31
    0x4f00_0000, // 2^31
    0xcf00_0000,
    0x4f7f_ffff,
    0x4f80_0000, // 2^32
    0x5f00_0000, // 2^63
    0x5f80_0000, // 2^64
    0x1fff_ffff, // its square is at the edge of the subnormals
];

/// What a program of graphs is made of.
pub(crate) struct Graphs<'a> {
    /// What the random choices start from.
    pub(crate) seed: u64,
    /// How many graphs.
    pub(crate) count: usize,
    /// How many rows of inputs they are computed for.
    pub(crate) rows: usize,
    /// The kinds of operations.
    pub(crate) kinds: &'a [Kind],
}

impl Graphs<'_> {
    /// The program, and the bytes of its input.
    pub(crate) fn program(&self) -> (Program, Vec<u8>) {
        let mut rng = SplitMix64::new(self.seed);
        let lane = || Expr::var("lane");
        let mut nodes = vec![Node::Let { name: "lane".into(), value: Expr::invocation_id(Axis::X) }];
        for input in 0..INPUTS {
            let index = Expr::binary(
                BinOp::Add,
                Expr::binary(BinOp::Mul, lane(), Expr::u32(INPUTS as u32)),
                Expr::u32(input as u32),
            );
            nodes.push(Node::Let { name: name(input), value: Expr::load("x", index) });
        }
        let mut next = INPUTS;
        for graph in 0..self.count {
            let first = next;
            for _ in 0..2 + rng.below(9) {
                let value = self.node(&mut rng, first, next);
                nodes.push(Node::Let { name: name(next), value });
                next += 1;
            }
            let bits = Expr::bitcast(Type::U32, Expr::Var(name(next - 1)));
            let place = Expr::binary(BinOp::Add, lane(), Expr::u32((graph * self.rows) as u32));
            nodes.push(Node::Store { buffer: "o".into(), index: place, value: bits });
        }
        let buffers = vec![
            BufferDecl::read("x", Element::F32).with_count((self.rows * INPUTS) as u32),
            BufferDecl::output("o", Element::U32).with_count((self.rows * self.count) as u32),
        ];
        let program = Program::new(buffers, WorkgroupSize::from(self.rows as u32), nodes).with_name("graphs");
        let input = (0..self.rows * INPUTS).flat_map(|_| bits(&mut rng).to_le_bytes()).collect();
        (program, input)
    }

    /// An operand: a node of this graph, an input, or a literal.
    fn operand(&self, rng: &mut SplitMix64, first: usize, next: usize) -> Expr {
        if rng.chance(1, 4) {
            let bits = if rng.chance(3, 4) { *rng.pick(&EDGES) } else { bits(rng) };
            return Expr::Literal(Literal::from_bits(Type::F32, u64::from(bits)));
        }
        let own = next - first;
        let which = rng.below((INPUTS + 2 * own) as u64) as usize;
        // Its own nodes are taken more often than inputs, so that graphs are deep.
        Expr::Var(name(if which < INPUTS { which } else { first + (which - INPUTS) % own }))
    }

    fn node(&self, rng: &mut SplitMix64, first: usize, next: usize) -> Expr {
        let [a, b, c] = [0, 1, 2].map(|_| self.operand(rng, first, next));
        // What only moves bits stands between all others.
        if rng.chance(1, 5) {
            return match rng.below(3) {
                0 => Expr::unary(UnOp::Neg, a),
                1 => Expr::unary(UnOp::Abs, a),
                _ => {
                    let cond = Expr::unary(*rng.pick(&[UnOp::IsNan, UnOp::IsInf]), c);
                    Expr::select(cond, a, b)
                }
            };
        }
        match rng.pick(self.kinds) {
            Kind::Add => Expr::binary(*rng.pick(&[BinOp::Add, BinOp::Sub]), a, b),
            Kind::Mul => Expr::binary(BinOp::Mul, a, b),
            Kind::Div => Expr::binary(BinOp::Div, a, b),
            Kind::Sqrt => Expr::unary(UnOp::Sqrt, a),
            Kind::Fma => Expr::fma(a, b, c),
            Kind::Rounding => Expr::unary(*rng.pick(&[UnOp::Floor, UnOp::Ceil, UnOp::Trunc, UnOp::Round]), a),
            Kind::ToInteger => {
                // Back through the bits: the other direction is a kind of its own.
                let to = *rng.pick(&[Type::U32, Type::I32, Type::U64, Type::I64]);
                let integer = Expr::cast(to, a);
                let word = Expr::cast(Type::U32, integer);
                Expr::bitcast(Type::F32, word)
            }
            Kind::FromInteger => {
                let word = Expr::bitcast(Type::U32, a);
                let to = *rng.pick(&[Type::U32, Type::I32, Type::U64, Type::I64]);
                let integer = Expr::cast(to, word);
                let integer = match to {
                    // Numbers that need more than a word, too.
                    Type::U64 | Type::I64 => Expr::binary(BinOp::Mul, integer.clone(), integer),
                    _ => integer,
                };
                Expr::cast(Type::F32, integer)
            }
            Kind::Compare if rng.chance(1, 3) => Expr::binary(*rng.pick(&[BinOp::Min, BinOp::Max]), a, b),
            Kind::Compare => {
                let op = *rng.pick(&[BinOp::Eq, BinOp::Ne, BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge]);
                let cond = Expr::binary(op, a.clone(), b);
                Expr::select(cond, a, c)
            }
        }
    }
}

fn name(node: usize) -> Name {
    format!("n{node}").into()
}

/// An input: an edge, a neighbour of one, any bits, or a number near 1 so that sums cancel and products stay.
fn bits(rng: &mut SplitMix64) -> u32 {
    let edge = *rng.pick(&EDGES);
    match rng.below(5) {
        0 => edge,
        1 => edge.wrapping_add(rng.below(5) as u32).wrapping_sub(2),
        2 => rng.next_u64() as u32,
        3 => (rng.next_u64() as u32 & 0x80ff_ffff) | (0x3e + rng.below(3) as u32) << 24,
        // A short significand: products are exact or ties.
        _ => (rng.next_u64() as u32) & 0xfff0_0000,
    }
}
