//! Every operator on every type: the bytes of the reference lane by lane, over bundles of lanes where that is worth it and
//! wherever it is possible, in straight runs, in branches and loops on which lanes differ, with every buffer against a
//! page that cannot be touched and with the instructions that every machine has.

use std::sync::Arc;
use vyre_conform::{Case, Device, Executor, Reference, compare};
use vyre_driver::Unit;
use vyre_driver_cpu::{CpuBackend, CpuOptions, Instructions, Listing, Placement, Simd};
use vyre_foundation::{BinOp, Element, Program, Type, UnOp};
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
    /// Backends by whether they use vectors.
    by_simd: Vec<(Simd, Arc<CpuBackend>)>,
    executors: Vec<Box<dyn Executor>>,
}

fn backends() -> Backends {
    let backend = |simd, instructions| {
        let options = CpuOptions {
            threads: 2,
            cache_folder: None,
            placement: Placement::Guarded,
            instructions,
            simd,
            ..CpuOptions::default()
        };
        Arc::new(CpuBackend::with_options(options).expect("a CPU"))
    };
    let by_simd: Vec<_> = [Simd::Off, Simd::On, Simd::Always]
        .into_iter()
        .map(|simd| (simd, backend(simd, Instructions::Native)))
        .collect();
    let mut executors: Vec<Box<dyn Executor>> = vec![Box::new(Reference::new(Schedule::InOrder))];
    for (_, backend) in &by_simd {
        executors.push(Box::new(Device::new(backend.clone())));
    }
    executors.push(Box::new(Device::new(backend(Simd::Always, Instructions::Baseline))));
    Backends { by_simd, executors }
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

/// Where an expression stands in a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// All lanes compute it once.
    Straight,
    /// Some lanes do.
    Branch,
    /// Each lane does it several times, some more often than others.
    Loop,
}

impl Backends {
    /// Runs `o[i] = value` for all `i`, where `a` and `b` are elements at `i` and `s` is the same for all; straight, in a
    /// branch and in a loop. `is_worthwhile` says whether the straight one is to use vectors where that is worth it.
    fn check(&self, ty: Type, result: Type, value: &str, is_worthwhile: Option<bool>) {
        for place in [Place::Straight, Place::Branch, Place::Loop] {
            self.check_at(place, ty, result, value, is_worthwhile.filter(|_| place == Place::Straight));
        }
    }

    fn check_at(&self, place: Place, ty: Type, result: Type, value: &str, is_worthwhile: Option<bool>) {
        let given = element(ty).name();
        let read = |load: &str| if ty == Type::Bool { format!("({load} & 1) == 1") } else { load.to_owned() };
        let stored = if result == Type::Bool { format!("u32({value})") } else { value.to_owned() };
        let zero =
            if result == Type::F32 { "0.0".to_owned() } else { format!("{}(0)", element(result).name()) };
        let statement = match place {
            Place::Straight => format!("o[i] = {stored};"),
            Place::Branch => format!(
                "let mut kept = {zero};
                if (w[i] & 1) == 1 {{ kept = {stored}; o[i] = kept; }} else {{ o[i] = {zero}; }}"
            ),
            Place::Loop => format!(
                "let mut kept = {zero};
                for k in 0..w[i] & 3 {{ if k == w[i] {{ break; }} kept = {stored}; }}
                o[i] = kept;"
            ),
        };
        let text = format!(
            "program vectors {{
                workgroup_size 64;
                buffer x: read {given}[];
                buffer y: read_write {given}[];
                buffer z: read {given}[1];
                buffer w: read u32[];
                buffer o: output {}[];
                let i = global_id.x;
                if i < len(x) {{
                    let a = {}; let b = {}; let s = {};
                    {statement}
                    y[i] = y[i];
                }}
            }}",
            element(result).name(),
            read("x[i]"),
            read("y[i]"),
            read("z[0]"),
        );
        let program = Program::parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        self.check_code(&program, is_worthwhile);
        for length in LENGTHS {
            let first = bytes(ty, (0..length).map(|i| EDGES[i % EDGES.len()]));
            let second = bytes(ty, (0..length).map(|i| EDGES[i / EDGES.len() % EDGES.len()]));
            let shared = bytes(ty, std::iter::once(EDGES[length % EDGES.len()]));
            let decisions = bytes(Type::U32, (0..length as u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 16));
            let case = Case {
                program: program.clone(),
                inputs: vec![first, second, shared, decisions],
                grid: Some([length.div_ceil(64) as u32, 1, 1]),
                lengths: vec![("o".into(), length as u32)],
                fixpoint: None,
            };
            if let Some(mismatch) = compare(&case, &self.executors) {
                panic!("{length} lanes: {mismatch}\n{text}");
            }
        }
    }

    /// Vectors are used where they are promised, and only there.
    fn check_code(&self, program: &Program, is_worthwhile: Option<bool>) {
        let unit = Unit::of(program).expect("it is valid");
        for (simd, backend) in &self.by_simd {
            let expected = match simd {
                Simd::Off => Some(false),
                Simd::On => is_worthwhile,
                Simd::Always => Some(true),
            };
            let code = backend.listing(&unit, Listing::Clif).expect("it compiles");
            if let Some(expected) = expected {
                let has_vectors = code.contains("32x4") || code.contains("64x2");
                assert_eq!(has_vectors, expected, "{simd:?}\n{program}");
            }
        }
    }
}

fn is_shift(op: BinOp) -> bool {
    matches!(op, BinOp::Shl | BinOp::Shr | BinOp::RotL | BinOp::RotR)
}

/// Divisors and counts that vectors have forms for.
const DIVISORS: [&str; 4] = ["1", "2", "64", "2147483648"];

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
            let is_vector = (ty.bits() <= 32 && !scalar).then_some(true);
            let if_one_count = is_vector.filter(|_| !is_shift(op));
            backends.check(ty, result, &written("a", "b"), if_one_count);
            backends.check(ty, result, &written("a", "s"), is_vector);
            if ty == Type::U32 {
                backends.check(ty, result, &written("i * 3 + 4294967290", "a"), if_one_count);
            }
            if matches!(op, BinOp::Div | BinOp::Rem) && matches!(ty, Type::U32 | Type::U64) {
                for divisor in DIVISORS {
                    let divisor = format!("{divisor}{}", if ty == Type::U64 { "u64" } else { "" });
                    backends.check(ty, result, &written("a", &divisor), Some(true));
                }
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
                UnOp::Popcount | UnOp::Clz | UnOp::Ctz | UnOp::ReverseBits => None,
                // Not every machine has them.
                UnOp::Floor | UnOp::Ceil | UnOp::Trunc | UnOp::Round => None,
                _ => Some(true),
            };
            backends.check(
                ty,
                result,
                &format!("{}(a)", op.spelling()),
                is_vector.filter(|_| ty.bits() <= 32),
            );
        }
    }
}

#[test]
fn conversions() {
    let backends = backends();
    for from in Type::ALL {
        for to in Type::ALL {
            let is_vector = (from.bits() <= 32 && to.bits() <= 32).then_some(true);
            backends.check(from, to, &format!("{}(a)", to.name()), is_vector);
            if from.bits() == to.bits() && from != Type::Bool {
                backends.check(from, to, &format!("bitcast<{}>(a)", to.name()), is_vector);
            }
        }
    }
}

#[test]
fn operators_of_three() {
    let backends = backends();
    for ty in Type::ALL {
        let is_vector = (ty.bits() <= 32).then_some(true);
        backends.check(ty, ty, "select(a == b, b, s)", is_vector);
        backends.check(ty, ty, "select(s == s, a, b)", is_vector);
        if ty != Type::Bool {
            backends.check(ty, ty, "clamp(a, b, s)", is_vector);
            backends.check(ty, ty, "select(a < b && !(b == s) || a > s, a, b)", is_vector);
        }
    }
    backends.check(Type::F32, Type::F32, "fma(a, b, s)", None);
}

/// Accesses in every manner: side by side, by strides, backwards, anywhere, and outside.
#[test]
fn accesses() {
    let backends = backends();
    for value in [
        "y[i * 2]",
        "y[len(x) - 1 - i]",
        "y[a % 7]",
        "y[a]",
        "y[i + 1]",
        "y[i - 1]",
        "y[i + 4294967290]",
        "y[w[i] % len(y)]",
        "select(a == 1, x[i], y[i / 2])",
        "y[w[0]]",
    ] {
        backends.check(Type::U32, Type::U32, value, None);
        backends.check(
            Type::U64,
            Type::U64,
            &value
                .replace("y[a % 7]", "y[u32(a) % 7]")
                .replace("y[a]", "y[u32(a)]")
                .replace("a == 1", "a == 1u64"),
            None,
        );
    }
}

/// Elements that are smaller than what a lane computes with: side by side, at a distance and anywhere.
#[test]
fn narrow_elements() {
    let backends = backends();
    for element in [Element::U8, Element::I8, Element::U16, Element::I16, Element::F16, Element::BF16] {
        let name = element.name();
        let (one, large) = match element.value_type() {
            Type::F32 => ("1.5", "70000.0"),
            Type::I32 => ("1i32", "40000i32"),
            _ => ("1", "40000"),
        };
        for index in ["i", "i * 2", "len(x) - 1 - i", "w[i] % len(x)", "(i + 1) % len(x)", "i + 3"] {
            let text = format!(
                "program narrow {{
                    workgroup_size 64;
                    buffer x: read {name}[];
                    buffer y: read_write {name}[];
                    buffer w: read u32[];
                    buffer o: output {name}[];
                    let i = global_id.x;
                    if i < len(x) {{
                        o[i] = x[{index}] * {large} + y[i];
                        if (w[i] & 1) == 1 {{ y[i] = y[i] + {one}; }}
                    }}
                }}"
            );
            let program = Program::parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
            backends.check_code(&program, None);
            for length in LENGTHS {
                let bits = |i: usize| EDGES[i % EDGES.len()] ^ (i as u32).wrapping_mul(0x9e37_79b9);
                let words = |skip: usize| (0..length).map(move |i| bits(i + skip));
                let narrow = |skip: usize| -> Vec<u8> {
                    words(skip).flat_map(|word| word.to_le_bytes()[..element.size()].to_vec()).collect()
                };
                let case = Case {
                    program: program.clone(),
                    inputs: vec![narrow(0), narrow(7), bytes(Type::U32, words(3))],
                    grid: Some([length.div_ceil(64) as u32, 1, 1]),
                    lengths: vec![("o".into(), length as u32)],
                    fixpoint: None,
                };
                if let Some(mismatch) = compare(&case, &backends.executors) {
                    panic!("{length} lanes: {mismatch}\n{text}");
                }
            }
        }
    }
}
