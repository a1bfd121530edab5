//! What rows grow by from one lane to the next.

use std::collections::HashMap;
use vyre_conform::{DEFAULT_SIZE, generate};
use vyre_foundation::rng::SplitMix64;
use vyre_foundation::{Program, Type, arith};
use vyre_lower::{Item, Kernel, Value, ValueId, lower};

/// The strides of all values that a program stores to `o`, in order.
fn stored(body: &str) -> Vec<Option<i32>> {
    let text = format!(
        "program p {{
            workgroup_size 8, 4;
            buffer s: read f32[];
            buffer t: read u32[];
            buffer w: read_write u32[];
            buffer o: write u32[];
            let x = global_id.x;
            {body}
            w[x] = 0;
        }}"
    );
    let program = Program::parse(&text).expect("it parses");
    program.validate().expect("it is valid");
    let kernel = lower(&program);
    let stores = |region| kernel.region(region).map(|id| kernel.item(id)).collect::<Vec<Item>>();
    let all = kernel.region_ids().flat_map(stores);
    let value = |item| match item {
        Item::Store { buffer: 3, value, .. } => Some(kernel.stride(value)),
        _ => None,
    };
    all.filter_map(value).collect()
}

fn stride(value: &str) -> Option<i32> {
    stored(&format!("o[0] = {value};"))[0]
}

#[test]
fn ids_and_what_is_made_of_them() {
    for (value, expected) in [
        ("x", Some(1)),
        ("local_id.x", Some(1)),
        ("global_id.y", Some(0)),
        ("workgroup_id.x", Some(0)),
        ("subgroup_lane", None),
        ("x + 3", Some(1)),
        ("5 - x", Some(-1)),
        ("~x", Some(-1)),
        ("x + local_id.x * 3", Some(4)),
        ("x * t[0]", None),
        ("x - local_id.x", Some(0)),
        ("x << 35", Some(8)),
        ("x * 0x80000000", None),
        ("x * 0xfffffffe", Some(-2)),
        ("x << 31", None),
        ("x >> 1", None),
        ("x & 7", None),
        ("t[0] / len(w)", Some(0)),
        ("t[global_id.y]", Some(0)),
        ("t[x]", None),
        ("w[0]", None),
        ("u32(i32(x) - 1i32)", Some(1)),
        ("u32(u64(x))", None),
        ("u32(u64(global_id.y) * 3u64)", Some(0)),
        ("u32(s[global_id.y] < 1.0)", Some(0)),
        ("bitcast<u32>(s[1] * s[2])", Some(0)),
        ("u32(f32(x))", None),
        ("select(t[0] == 1, x + 1, x + t[1])", Some(1)),
        ("select(t[0] == 1, x, 0)", None),
        ("select(x == 1, 3, t[1])", None),
    ] {
        assert_eq!(stride(value), expected, "{value}");
    }
}

#[test]
fn parameters_follow_the_iterations_and_results_the_lanes_that_leave_together() {
    // What stands behind a loop comes before what stands in it: outer regions are numbered first.
    for (body, behind, inside) in [
        ("let mut a = x; for k in 0..t[0] { o[0] = a + k; a = a + 3; } o[0] = a;", Some(1), Some(1)),
        ("let mut a = x; for k in 0..x { o[0] = a + k; a = a + 3; } o[0] = a;", None, Some(1)),
        ("let mut a = 0; for k in 0..t[0] { o[0] = a; a = a + x; } o[0] = a;", None, None),
    ] {
        assert_eq!(stored(body), [behind, inside], "{body}");
    }
    // Two parameters that pass their strides on to each other.
    for (b, expected) in [("x + 7", Some(1)), ("7", None)] {
        let swap = "for k in 0..t[0] { let c = a; a = b; b = c; w[k] = 0; }";
        let body = format!("let mut a = x; let mut b = {b}; {swap} o[0] = a; o[0] = b;");
        assert_eq!(stored(&body), [expected; 2], "{body}");
    }
}

#[test]
fn results_of_branches_need_lanes_that_take_the_same_branch() {
    for (cond, expected) in [("t[0] == 1", Some(1)), ("t[x] == 1", None)] {
        let counted = "for k in 0..t[2] { w[k] = a; a = a + 1; }";
        let body = format!("let mut a = x; if {cond} {{ {counted} }} o[0] = a;");
        assert_eq!(stored(&body), [expected], "{body}");
    }
}

/// Two lanes side by side with the same leaves but for their strides: what pure rows compute of them differs by theirs.
struct Lanes<'k> {
    kernel: &'k Kernel,
    rng: SplitMix64,
    bits: Vec<[u64; 2]>,
    memory: HashMap<(u32, u64), u64>,
}

impl Lanes<'_> {
    fn any(&mut self, ty: Type) -> u64 {
        arith::cast(Type::U64, ty, self.rng.next_u64() >> self.rng.below(64))
    }

    fn leaf(&mut self, row: ValueId, ty: Type) -> [u64; 2] {
        let first = self.any(ty);
        match self.kernel.stride(row) {
            None => [first, self.any(ty)],
            Some(0) => [first; 2],
            Some(by) => [first, moved(ty, first, by)],
        }
    }

    fn compute(&mut self, row: ValueId) -> [u64; 2] {
        let value = self.kernel.value(row);
        let of = |lane: usize, row: ValueId| self.bits[row.index()][lane];
        let each = |compute: &dyn Fn(usize) -> u64| [compute(0), compute(1)];
        match value {
            Value::Const(literal) => [literal.bits(); 2],
            Value::Binary { op, ty, a, b } => each(&|lane| arith::binary(op, ty, of(lane, a), of(lane, b))),
            Value::Unary { op, ty, a } => each(&|lane| arith::unary(op, ty, of(lane, a))),
            Value::Select { cond, a, b, .. } => {
                each(&|lane| of(lane, if of(lane, cond) == 1 { a } else { b }))
            }
            Value::Cast { from, to, a } => each(&|lane| arith::cast(from, to, of(lane, a))),
            Value::Bitcast { from, a, .. } => each(&|lane| arith::bitcast(from, of(lane, a))),
            Value::Fma { a, b, c } => each(&|lane| arith::fma(of(lane, a), of(lane, b), of(lane, c))),
            Value::Load { buffer, index, ty } => {
                let places = each(&|lane| of(lane, index));
                places.map(|place| {
                    let fresh = self.any(ty);
                    *self.memory.entry((buffer, place)).or_insert(fresh)
                })
            }
            leaf => self.leaf(row, leaf.ty()),
        }
    }
}

/// A number so much further on.
fn moved(ty: Type, bits: u64, by: i32) -> u64 {
    arith::binary(vyre_foundation::BinOp::Add, ty, bits, arith::cast(Type::I32, ty, u64::from(by as u32)))
}

#[test]
fn rows_of_generated_programs_grow_by_their_strides() {
    for seed in 0..300 {
        let kernel = lower(&generate(seed, DEFAULT_SIZE).program);
        for round in 0..8 {
            let rng = SplitMix64::new(seed * 8 + round);
            let mut lanes = Lanes { kernel: &kernel, rng, bits: Vec::new(), memory: HashMap::new() };
            for row in kernel.rows() {
                let bits = lanes.compute(row);
                lanes.bits.push(bits);
                let Some(by) = kernel.stride(row) else { continue };
                let value = kernel.value(row);
                let next = if by == 0 { bits[0] } else { moved(value.ty(), bits[0], by) };
                assert_eq!(bits[1], next, "seed {seed}: {row:?}, {value:?} grows by {by}");
                assert!(value.operands().all(|operand| kernel.stride(operand).is_some()));
            }
        }
    }
}
