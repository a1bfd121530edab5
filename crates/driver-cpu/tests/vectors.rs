//! Every operator on every type in a straight run: the bytes of the reference, with every buffer against a page that
//! cannot be touched and with the instructions that every machine has, and over vectors wherever that is promised.

use std::sync::Arc;
use vyre_conform::{Case, Device, Executor, Reference, compare};
use vyre_driver::Unit;
use vyre_driver_cpu::{CpuBackend, CpuOptions, Instructions, Listing, Placement};
use vyre_foundation::{BinOp, Program, Type, UnOp};
use vyre_reference::Schedule;

/// Bits of 32-bit numbers at the edges of their types: floats with NaNs of all kinds, zeros of both signs, subnormals,
/// ties, the ends of the integers as floats.
const EDGES: [u32; 28] = [
    0,
    1,
    2,
    31,
    32,
    33,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0x4020_0000,
    0xc060_0000,
    0x4b00_0001,
    0x4eff_ffff,
    0x4f00_0000,
    0x4f7f_ffff,
    0x4f80_0000,
    0xcf00_0001,
    0x7f7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f80_0001,
    0x0080_0000,
];

/// Lengths that end before, at and behind the end of a workgroup; the last has every pair of edges.
const LENGTHS: [usize; 4] = [61, 64, 67, EDGES.len() * EDGES.len()];

struct Backends {
    native: Arc<CpuBackend>,
    executors: Vec<Box<dyn Executor>>,
}

fn backends() -> Backends {
    let backend = |instructions| {
        let options = CpuOptions {
            threads: 2,
            cache_folder: None,
            placement: Placement::Guarded,
            instructions,
            ..CpuOptions::default()
        };
        Arc::new(CpuBackend::with_options(options).expect("a CPU"))
    };
    let (native, baseline) = (backend(Instructions::Native), backend(Instructions::Baseline));
    let executors: Vec<Box<dyn Executor>> = vec![
        Box::new(Reference::new(Schedule::InOrder)),
        Box::new(Device::new(native.clone())),
        Box::new(Device::new(baseline)),
    ];
    Backends { native, executors }
}

/// The bytes of numbers of a type.
fn bytes(ty: Type, bits: impl Iterator<Item = u32>) -> Vec<u8> {
    if ty.bits() == 64 {
        bits.flat_map(|bits| (u64::from(bits) << 32 | u64::from(bits) >> 3).to_le_bytes()).collect()
    } else {
        bits.flat_map(u32::to_le_bytes).collect()
    }
}

/// The type of a buffer for values of a type: truth values stand in numbers.
fn element(ty: Type) -> Type {
    if ty == Type::Bool { Type::U32 } else { ty }
}

impl Backends {
    /// Runs `o[i] = value` for all `i`, where `a` and `b` are elements at `i` and `s` is the same for all.
    fn check(&self, ty: Type, result: Type, value: &str, is_vector: Option<bool>) {
        let given = element(ty).name();
        let read = |load: &str| if ty == Type::Bool { format!("({load} & 1) == 1") } else { load.to_owned() };
        let stored = if result == Type::Bool { format!("u32({value})") } else { value.to_owned() };
        let text = format!(
            "program vectors {{
                workgroup_size 64;
                buffer x: read {given}[];
                buffer y: read_write {given}[];
                buffer z: read {given}[1];
                buffer o: output {}[];
                let i = global_id.x;
                if i < len(x) {{
                    let a = {}; let b = {}; let s = {};
                    o[i] = {stored};
                    y[i] = y[i];
                }}
            }}",
            element(result).name(),
            read("x[i]"),
            read("y[i]"),
            read("z[0]"),
        );
        let program = Program::parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        let unit = Unit::of(&program).expect("it is valid");
        if let Some(expected) = is_vector {
            let code = self.native.listing(&unit, Listing::Clif).expect("it compiles");
            assert_eq!(code.contains("32x4"), expected, "{text}");
        }
        for length in LENGTHS {
            let first = bytes(ty, (0..length).map(|i| EDGES[i % EDGES.len()]));
            let second = bytes(ty, (0..length).map(|i| EDGES[i / EDGES.len() % EDGES.len()]));
            let shared = bytes(ty, std::iter::once(EDGES[length % EDGES.len()]));
            let case = Case {
                program: program.clone(),
                inputs: vec![first, second, shared],
                grid: Some([length.div_ceil(64) as u32, 1, 1]),
                lengths: vec![("o".into(), length as u32)],
                fixpoint: None,
            };
            if let Some(mismatch) = compare(&case, &self.executors) {
                panic!("{length} lanes: {mismatch}\n{text}");
            }
        }
    }
}

fn is_shift(op: BinOp) -> bool {
    matches!(op, BinOp::Shl | BinOp::Shr | BinOp::RotL | BinOp::RotR)
}

#[test]
fn binary_operators() {
    let backends = backends();
    for op in BinOp::ALL {
        for ty in Type::ALL {
            let Some(result) = op.result(ty) else { continue };
            let scalar = matches!(op, BinOp::Rem | BinOp::MulHi) || op == BinOp::Div && ty != Type::F32;
            let written = |a: &str, b: &str| match op.precedence() {
                Some(_) => format!("({a}) {} ({b})", op.spelling()),
                None => format!("{}({a}, {b})", op.spelling()),
            };
            let is_vector = ty.bits() <= 32 && !scalar;
            backends.check(ty, result, &written("a", "b"), Some(is_vector && !is_shift(op)));
            backends.check(ty, result, &written("a", "s"), Some(is_vector));
            if ty == Type::U32 {
                backends.check(
                    ty,
                    result,
                    &written("i * 3 + 4294967290", "a"),
                    Some(is_vector && !is_shift(op)),
                );
            }
        }
    }
}

#[test]
fn unary_operators() {
    let backends = backends();
    for op in UnOp::ALL {
        for ty in Type::ALL {
            let Some(result) = op.result(ty) else { continue };
            let is_vector = match op {
                UnOp::Popcount | UnOp::Clz | UnOp::Ctz | UnOp::ReverseBits => Some(false),
                // Not every machine has them.
                UnOp::Floor | UnOp::Ceil | UnOp::Trunc | UnOp::Round => None,
                _ => Some(ty.bits() <= 32),
            };
            backends.check(ty, result, &format!("{}(a)", op.spelling()), is_vector);
        }
    }
}

#[test]
fn conversions() {
    let backends = backends();
    for from in Type::ALL {
        for to in Type::ALL {
            let is_vector = from.bits() <= 32 && to.bits() <= 32;
            backends.check(from, to, &format!("{}(a)", to.name()), Some(is_vector));
            if from.bits() == to.bits() && from != Type::Bool {
                backends.check(from, to, &format!("bitcast<{}>(a)", to.name()), Some(is_vector));
            }
        }
    }
}

#[test]
fn operators_of_three() {
    let backends = backends();
    for ty in Type::ALL {
        let is_vector = Some(ty.bits() <= 32);
        backends.check(ty, ty, "select(a == b, b, s)", is_vector);
        backends.check(ty, ty, "select(s == s, a, b)", is_vector);
        if ty != Type::Bool {
            backends.check(ty, ty, "clamp(a, b, s)", is_vector);
            backends.check(ty, ty, "select(a < b && !(b == s) || a > s, a, b)", is_vector);
        }
    }
    backends.check(Type::F32, Type::F32, "fma(a, b, s)", None);
}

/// Runs that look as if they could go over vectors, and cannot.
#[test]
fn other_runs_stay_lane_by_lane() {
    let backends = backends();
    for value in ["y[i * 2]", "y[len(x) - 1 - i]", "y[a % 7]", "select(a == 1, x[i], y[i / 2])"] {
        backends.check(Type::U32, Type::U32, value, Some(false));
    }
}
