//! The functions that stand for operations equal the operations, bit for bit, on operands made on the device.
//!
//! `VYRE_CASES=100000000 cargo test --release -p vyre-lower --test soft` is the long run, with that many operands for
//! each function; `cargo test --release -p vyre-lower --test soft -- --ignored` tries every `f32` there is on those that
//! take one.

#![allow(clippy::print_stderr)] // The long run says how far it is.

use vyre_driver::{BackendExt, DispatchConfig};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::Program;

const SOFT: &str = include_str!("../src/legalize/soft.vyre");

/// Bits of numbers at the edges: zero, subnormals, neighbours of one, ties, powers of two, the ends of the integers
/// and of the floats. Each stands with both signs.
const EDGES: [u32; 42] = [
    0,
    1,
    2,
    3,
    0x0040_0000,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x00ff_ffff,
    0x0100_0000,
    0x3380_0000,
    0x3380_0001,
    0x3400_0000,
    0x3eff_ffff,
    0x3f00_0000,
    0x3f00_0001,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x3fc0_0000,
    0x4000_0000,
    0x4020_0000,
    0x4060_0000,
    0x4aff_ffff,
    0x4b00_0000,
    0x4b00_0001,
    0x4b7f_ffff,
    0x4b80_0000,
    0x4b80_0001,
    0x4eff_ffff,
    0x4f00_0000,
    0x4f00_0001,
    0x4f7f_ffff,
    0x4f80_0000,
    0x5eff_ffff,
    0x5f00_0000,
    0x5f7f_ffff,
    0x5f80_0000,
    0x7f00_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7fc0_0000,
];

/// How the operands `x`, `y` and `z` (bits of `f32`) and `w` (a `u64`) of case `i` are made: all triples of the edges,
/// then random bits, exponents close to each other, few significant bits, and an addend close to the product.
const OPERANDS: &str = "
    fn mix(n: u32) -> u32 {
        let m = (n ^ (n >> 16)) * 0x9e3779b9;
        let k = (m ^ (m >> 13)) * 0x7ed55d17;
        return k ^ (k >> 15);
    }

    fn near_to(r: u32, x: u32, by: u32) -> u32 {
        return (r & 0x807fffff) | ((((x >> 23) + (by & 63) - 32) & 255) << 23);
    }

    let i = global_id.x + begin[0];
    let n = len(edges);
    let r0 = mix(i);
    let r1 = mix(r0 ^ 0x5bd1e995);
    let r2 = mix(r1 + i);
    let r3 = mix(r2 ^ begin[1]);
    let rough = 0xffffffff << (r3 & 31);
    let kind = (r3 >> 5) & 3;
    let triple = i < n * n * n && begin[1] == 0;
    let x0 = select(kind == 2, r0 & rough, r0);
    let y0 = select(kind == 0, r1, near_to(select(kind == 2, r1 & rough, r1), x0, r3 >> 8));
    let product = bitcast<u32>(bitcast<f32>(x0) * bitcast<f32>(y0));
    let near_product = select((r3 >> 14 & 1) == 1, near_to(r2, product, r3 >> 15), (product ^ 0x80000000) + (r3 >> 15 & 7));
    let z0 = select(kind == 0, r2, near_product);
    let x = select(triple, edges[i % n], x0);
    let y = select(triple, edges[i / n % n], y0);
    let z = select(triple, edges[i / n / n], z0);
    let half = (u64(r2 & 0xffffff | 0x800000) * 2u64 + 1u64) << u64(r3 >> 8);
    let random = (u64(r0) << 32u64 | u64(r1)) >> u64(r3 >> 8);
    let w = select(kind == 0, half + u64(r0 & 3) - 1u64, select(kind == 1, half >> 32u64, random));
    let a = bitcast<f32>(x);
    let b = bitcast<f32>(y);
    let c = bitcast<f32>(z);
";

/// Every function with its operation, as words.
const PAIRS: [(&str, &str); 24] = [
    ("bitcast<u32>(add_f32(a, b))", "bitcast<u32>(a + b)"),
    ("bitcast<u32>(mul_f32(a, b))", "bitcast<u32>(a * b)"),
    ("bitcast<u32>(div_f32(a, b))", "bitcast<u32>(a / b)"),
    ("bitcast<u32>(sqrt_f32(a))", "bitcast<u32>(sqrt(a))"),
    ("bitcast<u32>(fma_f32(a, b, c))", "bitcast<u32>(fma(a, b, c))"),
    ("bitcast<u32>(add_f32(a, -b))", "bitcast<u32>(a - b)"),
    ("bitcast<u32>(div_f32(1.0, sqrt_f32(a)))", "bitcast<u32>(inverse_sqrt(a))"),
    ("bitcast<u32>(floor_f32(a))", "bitcast<u32>(floor(a))"),
    ("bitcast<u32>(ceil_f32(a))", "bitcast<u32>(ceil(a))"),
    ("bitcast<u32>(trunc_f32(a))", "bitcast<u32>(trunc(a))"),
    ("bitcast<u32>(round_f32(a))", "bitcast<u32>(round(a))"),
    ("f32_to_u32(a)", "u32(a)"),
    ("f32_to_i32(a)", "i32(a)"),
    ("f32_to_u64(a)", "u64(a)"),
    ("f32_to_i64(a)", "i64(a)"),
    ("bitcast<u32>(u32_to_f32(u32(w)))", "bitcast<u32>(f32(u32(w)))"),
    ("bitcast<u32>(i32_to_f32(i32(w)))", "bitcast<u32>(f32(i32(w)))"),
    ("bitcast<u32>(u64_to_f32(w))", "bitcast<u32>(f32(w))"),
    ("bitcast<u32>(i64_to_f32(i64(w)))", "bitcast<u32>(f32(i64(w)))"),
    ("bitcast<u32>(i64_to_f32(-i64(w)))", "bitcast<u32>(f32(-i64(w)))"),
    ("bitcast<u32>(u32_to_f32(x))", "bitcast<u32>(f32(x))"),
    ("bitcast<u32>(i32_to_f32(bitcast<i32>(x)))", "bitcast<u32>(f32(bitcast<i32>(x)))"),
    ("bitcast<u32>(fma_f32(a, 1.0, c))", "bitcast<u32>(a + c)"),
    ("bitcast<u32>(fma_f32(a, b, -0.0))", "bitcast<u32>(a * b)"),
];

/// At most so many operands in a dispatch.
const ONCE: u64 = 1 << 26;

fn functions() -> &'static str {
    let (_, rest) = SOFT.split_once("program soft {").expect("its beginning");
    rest.trim_end().strip_suffix('}').expect("its end")
}

fn backend() -> CpuBackend {
    CpuBackend::with_options(CpuOptions { cache_folder: None, ..CpuOptions::default() }).expect("a CPU")
}

fn cases() -> u64 {
    std::env::var("VYRE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000_000)
}

fn words(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn edges() -> Vec<u8> {
    words(EDGES.into_iter().flat_map(|bits| [bits, bits | 0x8000_0000]))
}

fn program(declarations: &str, operands: &str, body: &str) -> Program {
    let text = format!(
        "program soft {{
            workgroup_size 256;
            buffer begin: uniform u32[2];
            buffer edges: read u32[];
            {declarations}
            {}
            {operands}
            {body}
        }}",
        functions()
    );
    let program = Program::parse(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    program.validate().unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    program
}

/// Runs a function and its operation on so many operands.
fn check(backend: &CpuBackend, operands: &str, (soft, hard): (&str, &str), cases: u64) {
    let body = format!(
        "let s = {soft};
         let h = {hard};
         if s != h {{
             if atomic_add(bad[0], 1) == 0 {{
                 bad[1] = x; bad[2] = y; bad[3] = z; bad[4] = u32(w >> 32u64); bad[5] = u32(w);
                 bad[6] = u32(s); bad[7] = u32(h);
             }}
         }}"
    );
    let program = program("buffer bad: output u32[8];", operands, &body);
    let started = std::time::Instant::now();
    for (round, done) in (0u32..).zip((0..cases).step_by(ONCE as usize)) {
        let groups = (cases - done).min(ONCE).div_ceil(256) as u32;
        let begin = words([done as u32, round]);
        let config = DispatchConfig::new().grid([groups, 1, 1]);
        let output = backend.dispatch_borrowed(&program, &[&begin, &edges()], &config).expect("a result");
        let bad: Vec<u32> =
            output.outputs[0].chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        assert_eq!(bad[0], 0, "{soft} differs from {hard}: {bad:08x?}");
    }
    if cases > 10_000_000 {
        let seconds = started.elapsed().as_secs_f64();
        eprintln!("{cases} operands without a difference in {seconds:.1} s: {hard}");
    }
}

#[test]
fn functions_equal_operations() {
    let backend = backend();
    for pair in PAIRS {
        check(&backend, OPERANDS, pair, cases());
    }
}

#[test]
#[ignore = "it takes minutes; it is for changes of the functions"]
fn functions_of_one_operand_equal_operations_on_every_f32() {
    let backend = backend();
    let operands =
        "let x = global_id.x + begin[0]; let y = 0; let z = 0; let w = 0u64; let a = bitcast<f32>(x);";
    let of_one =
        |pair: &&(&str, &str)| ["(a))", "(a)", "(x))", "(x)))"].iter().any(|end| pair.1.ends_with(end));
    for pair in PAIRS.iter().filter(of_one) {
        check(&backend, operands, *pair, 1 << 32);
    }
}

#[test]
fn every_half_is_widened() {
    let body = "let i = global_id.x;
        if bitcast<u32>(f16_to_f32(bits[i])) != bitcast<u32>(f16s[i]) { bad[i] = 1; }
        if bitcast<u32>(bf16_to_f32(bits[i])) != bitcast<u32>(bf16s[i]) { bad[i] = 2; }";
    let declarations = "buffer bits: read u16[]; buffer f16s: read f16[]; buffer bf16s: read bf16[];
        buffer bad: output u32[65536];";
    let program = program(declarations, "", body);
    let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let inputs = [&words([0, 0])[..], &[], &halves, &halves, &halves];
    let output = backend().dispatch_borrowed(&program, &inputs, &DispatchConfig::new()).expect("a result");
    assert!(output.outputs[0].iter().all(|byte| *byte == 0));
}

/// Random numbers, all halves, and numbers that lie on, just above and just below the middle between two of them.
#[test]
fn halves_are_narrowed() {
    let body = "let j = global_id.x;
        let spread = 0xffffffff << (10 + (r3 & 7));
        let middle = ((r0 & 0x8fffffff) | 0x30000000) & spread;
        let widened = bitcast<u32>(select((r2 & 1) == 0, f16_to_f32(r1 & 0xffff), bf16_to_f32(r1 & 0xffff)));
        let value = select(kind == 0, widened, select(kind == 1, middle + (r2 & 3) - 1, x));
        let f = bitcast<f32>(value);
        soft_f16[j] = f32_to_f16(f); hard_f16[j] = f; soft_bf16[j] = f32_to_bf16(f); hard_bf16[j] = f;";
    let declarations = "buffer soft_f16: output u16[]; buffer hard_f16: output f16[];
        buffer soft_bf16: output u16[]; buffer hard_bf16: output bf16[];";
    let program = program(declarations, OPERANDS, body);
    let backend = backend();
    let once = 1u32 << 20;
    for (round, done) in (0u32..).zip((0..cases()).step_by(once as usize)) {
        let mut config = DispatchConfig::new().grid([once / 256, 1, 1]);
        for name in ["soft_f16", "hard_f16", "soft_bf16", "hard_bf16"] {
            config = config.output_len(name, once);
        }
        let begin = words([done as u32, round]);
        let output = backend.dispatch_borrowed(&program, &[&begin, &edges()], &config).expect("a result");
        for pair in output.outputs.chunks_exact(2) {
            assert!(pair[0] == pair[1], "a half differs");
        }
    }
}
