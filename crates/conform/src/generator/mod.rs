//! Random programs that are valid and deterministic by construction.
//!
//! [`generate`] makes a [`Case`] from a seed: the same seed and size give the same case everywhere. Two
//! disciplines keep its promise. Every variable and every point of control has a level of uniformity ([`scope`]),
//! so that barriers, uniform loads and subgroup operations stand where validation accepts them. Every shared
//! buffer is in a phase ([`phase`]), so that no order of the invocations can show in the result. Work is bounded
//! by a number of statements that loops use up faster.
//!
//! A generated program keeps a running checksum `sum` of the values it computes and stores it where only this
//! invocation writes, so that a wrong value anywhere is likely to reach an output.

mod control;
mod declare;
mod emit;
mod expr;
mod feature;
mod function;
mod literal;
mod memory;
mod phase;
mod places;
mod rounds;
mod scope;
mod shape;
mod statement;
mod sync;
mod waiting;

use crate::Case;
use feature::Feature;
use phase::{Buffer, Phase};
use scope::{Level, Variable, Variables};
use shape::Shape;
use vyre_foundation::rng::SplitMix64;
use vyre_foundation::{Axis, BinOp, Expr, Function, Node, Program, Type, UnOp};

/// A size that makes programs of about a page.
pub const DEFAULT_SIZE: u32 = 40;

/// The case of a seed. `size` is about the number of statements; [`DEFAULT_SIZE`] suits most uses.
///
/// Consecutive seeds together cover the whole language ([`crate::Coverage`]). Seeds divisible by four may use what
/// only some backends have (64-bit atomics, orderings other than `relaxed`); the others do not.
///
/// ```
/// let case = vyre_conform::generate(7, vyre_conform::DEFAULT_SIZE);
/// assert!(case.program.validate().is_ok());
/// assert_eq!(case.program, vyre_conform::generate(7, vyre_conform::DEFAULT_SIZE).program);
/// ```
///
/// # Panics
/// If the program is not valid: that is a bug of the generator, and the message shows the program.
pub fn generate(seed: u64, size: u32) -> Case {
    make(seed, size, Emphasis::Everything)
}

/// The case of a seed, with a program dense in grid barriers: in straight code, in loops, nested loops and uniform
/// branches, with state of every kind alive across them and invocations that have returned before them.
///
/// Most grids are small; about one in fifty has hundreds or thousands of workgroups (at most 10,000), with few
/// invocations and a short program each. Otherwise like [`generate`].
///
/// ```
/// let case = vyre_conform::generate_with_grid_barriers(7, vyre_conform::DEFAULT_SIZE);
/// assert!(case.program.to_string().contains("grid"));
/// ```
///
/// # Panics
/// If the program is not valid: that is a bug of the generator, and the message shows the program.
pub fn generate_with_grid_barriers(seed: u64, size: u32) -> Case {
    make(seed, size, Emphasis::GridBarriers)
}

/// What a generated program has most of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Emphasis {
    Everything,
    GridBarriers,
}

fn make(seed: u64, size: u32, emphasis: Emphasis) -> Case {
    let mut generator = Generator::new(seed, size, emphasis);
    generator.functions();
    let entry = generator.entry();
    let case = generator.finish(entry);
    if let Err(errors) = case.program.validate() {
        panic!("seed {seed} made an invalid program:\n{}\n{errors:?}", case.program);
    }
    case
}

/// From this many invocations on a program is short and its loops are not nested.
const LARGE: u32 = 2000;

/// How many passes a fixpoint may take: mostly few, sometimes more than a backend submits at once.
fn passes(rng: &mut SplitMix64, many: bool) -> u32 {
    let few = 1 + rng.below(4) as u32;
    if many && rng.chance(1, 8) { few + 6 + rng.below(8) as u32 } else { few }
}

/// A loop that is being generated.
struct OpenLoop {
    /// The uniformity of its body's control: bounds and every `break`.
    level: Level,
    /// The control that `continue`s have left for the rest of the body.
    rest: Level,
    /// How many bodies were open around it.
    bodies: usize,
}

struct Generator {
    rng: SplitMix64,
    emphasis: Emphasis,
    shape: Shape,
    features: Vec<Feature>,
    buffers: Vec<Buffer>,
    /// The phase of each buffer at this point; meaningless for buffers without phases.
    phases: Vec<Phase>,
    functions: Vec<Function>,
    variables: Variables,
    /// The control of the body being generated, without what `continue`s add.
    control: Level,
    loops: Vec<OpenLoop>,
    /// For each open body the phases at its beginning, which hold again at its end and where control jumps.
    bodies: Vec<Vec<Phase>>,
    /// Whether a function is being generated, which sees its arguments alone.
    pure: bool,
    /// Whether this statement already holds something that a uniform load must not follow.
    effect: bool,
    /// How many statements may still be made, and how many one costs at this loop depth.
    fuel: u32,
    cost: u32,
    traps: bool,
    /// Whether atomics may have orderings that only some backends have.
    orderings: bool,
    fixpoint: Option<u32>,
    /// For each type the operators that give it, with the type they take.
    binary: [Vec<(BinOp, Type)>; 6],
    unary: [Vec<(UnOp, Type)>; 6],
}

impl Generator {
    fn new(seed: u64, size: u32, emphasis: Emphasis) -> Generator {
        let mut rng = SplitMix64::new(seed);
        let waits = emphasis == Emphasis::GridBarriers;
        let shape = if waits { Shape::for_grid_barriers(&mut rng) } else { Shape::new(&mut rng) };
        let features = feature::for_seed(seed);
        let capabilities = feature::uses_capabilities(seed);
        let buffers = declare::buffers(&mut rng, &shape, &features, capabilities, emphasis);
        let phases = buffers.iter().map(|buffer| Phase::first(&mut rng, buffer)).collect();
        let fuel = (size / 2 + rng.below(u64::from(size) + 1) as u32).max(1);
        // Many invocations run few statements, so that a case takes milliseconds at most.
        let fuel = match shape.total() {
            0..=300 => fuel,
            301..=LARGE => fuel / 3 + 1,
            _ => fuel / 8 + 1,
        };
        let cost = if shape.total() > LARGE { 4 } else { 1 };
        let traps = rng.chance(1, 12);
        let fixpoint =
            rng.chance(1, if waits { 6 } else { 14 }).then(|| passes(&mut rng, waits && cost == 1));
        let giving = |to: Type, result: &dyn Fn(Type) -> Option<Type>| {
            Type::ALL.into_iter().filter(|from| result(*from) == Some(to)).collect::<Vec<_>>()
        };
        let binary = Type::ALL.map(|to| {
            let of = |op: BinOp| giving(to, &|from| op.result(from)).into_iter().map(move |from| (op, from));
            BinOp::ALL.into_iter().flat_map(of).collect()
        });
        let unary = Type::ALL.map(|to| {
            let of = |op: UnOp| giving(to, &|from| op.result(from)).into_iter().map(move |from| (op, from));
            UnOp::ALL.into_iter().flat_map(of).collect()
        });
        Generator {
            rng,
            emphasis,
            shape,
            features,
            buffers,
            phases,
            functions: Vec::new(),
            variables: Variables::default(),
            control: Level::Grid,
            loops: Vec::new(),
            bodies: Vec::new(),
            pure: false,
            effect: false,
            fuel,
            cost,
            traps,
            orderings: capabilities,
            fixpoint,
            binary,
            unary,
        }
    }

    fn finish(mut self, entry: Vec<Node>) -> Case {
        let (inputs, lengths) = declare::contents(&mut self.rng, &self.buffers);
        let declarations: Vec<_> = self.buffers.iter().map(Buffer::declaration).collect();
        let mut functions = self.functions;
        if self.rng.chance(1, 3) {
            functions.reverse();
        }
        let program = Program::new(declarations, self.shape.size, entry)
            .with_subgroup_size(self.shape.subgroup)
            .with_functions(functions);
        let grid = self.shape.extent.is_none().then_some(self.shape.counts);
        Case { program, inputs, grid, lengths, fixpoint: self.fixpoint }
    }

    /// The whole entry body: ids and variables, statements, some communication, the features that found no place,
    /// the checksum.
    fn entry(&mut self) -> Vec<Node> {
        let mut out = Vec::new();
        self.ids(&mut out);
        for ty in Type::ALL {
            self.declare_variable(&mut out, ty);
        }
        let waits = self.emphasis == Emphasis::GridBarriers;
        if waits && self.rng.chance(1, 3) {
            self.guarded_return(&mut out);
        }
        while self.fuel > 0 {
            self.statement(&mut out);
        }
        if waits {
            self.grid_wait(&mut out);
        }
        for _ in 0..1 + self.rng.below(3) {
            self.exchange(&mut out);
        }
        for feature in std::mem::take(&mut self.features) {
            self.emit(feature, &mut out);
        }
        self.checksum(&mut out);
        out
    }

    /// `lid`, `wg` and `gid`: the linear ids from which the indices of own elements are made.
    fn ids(&mut self, out: &mut Vec<Node>) {
        let [size_x, size_y, size_z] = self.shape.size.size();
        let counts = self.shape.counts;
        let mut lid = Expr::local_id(Axis::X);
        if size_y > 1 || size_z > 1 {
            lid = Expr::add(lid, Expr::mul(Expr::local_id(Axis::Y), Expr::u32(size_x)));
            lid = Expr::add(lid, Expr::mul(Expr::local_id(Axis::Z), Expr::u32(size_x * size_y)));
        }
        let across = Expr::num_workgroups;
        let mut wg = Expr::workgroup_id(Axis::X);
        if counts[1..] != [1, 1] {
            let plane = Expr::mul(across(Axis::X), across(Axis::Y));
            wg = Expr::add(wg, Expr::mul(Expr::workgroup_id(Axis::Y), across(Axis::X)));
            wg = Expr::add(wg, Expr::mul(Expr::workgroup_id(Axis::Z), plane));
        }
        let gid = if self.shape.is_linear() {
            Expr::invocation_id(Axis::X)
        } else if self.rng.chance(1, 2) {
            Expr::add(Expr::mul(Expr::var("wg"), Expr::u32(self.shape.group())), Expr::var("lid"))
        } else {
            let row = Expr::mul(across(Axis::X), Expr::u32(size_x));
            let plane = Expr::mul(row.clone(), Expr::mul(across(Axis::Y), Expr::u32(size_y)));
            let rows = Expr::mul(Expr::invocation_id(Axis::Y), row);
            let planes = Expr::mul(Expr::invocation_id(Axis::Z), plane);
            Expr::add(Expr::add(Expr::invocation_id(Axis::X), rows), planes)
        };
        let ids =
            [("lid", lid, Level::Divergent), ("wg", wg, Level::Workgroup), ("gid", gid, Level::Divergent)];
        for (name, value, level) in ids {
            out.push(Node::let_bind(name, value));
            self.variables.open(Variable { name: name.into(), ty: Type::U32, level, mutable: false });
        }
        out.push(Node::let_bind("sum", Expr::u32(self.rng.next_u64() as u32)));
        let sum = Variable { name: "sum".into(), ty: Type::U32, level: Level::Divergent, mutable: true };
        self.variables.open(sum);
    }

    /// The uniformity of the control under which the next statement runs.
    fn control(&self) -> Level {
        let rest = self.loops.last().map_or(Level::Grid, |open| open.rest);
        self.control.max(rest)
    }
}
