//! Legal programs mean what the programs they were made from mean.
//!
//! `VYRE_CASES=20000 cargo test --release -p vyre-lower --test legalize` is the long run.

#![allow(clippy::print_stderr)] // The numbers of rows are worth a look.

use std::path::{Path, PathBuf};
use vyre_conform::{
    Case, DEFAULT_SIZE, Executor, Failure, Observed, Reference, compare, generate, reduce, test_file,
};
use vyre_foundation::{BinOp, Element, Event, Expr, Node, Program, Walk};
use vyre_lower::{Kernel, Legal, Value, legalize, lower};
use vyre_reference::Schedule;

/// The reference on the legal program.
struct Legalized(Legal);

impl Executor for Legalized {
    fn name(&self) -> String {
        format!("legalized, {:?}", self.0)
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let program = legalize(&case.program, &self.0);
        program.validate().map_err(|errors| Failure::Failed(format!("{errors:?}\n{program}")))?;
        Reference::new(Schedule::InOrder).run(&Case { program, ..case.clone() })
    }
}

/// Sets of legal operations: none, and those that a seed picks.
fn picked(seed: u64) -> Legal {
    let bit = |i: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (20 + i) & 1 == 1;
    Legal {
        add: bit(0),
        mul: bit(1),
        div: bit(2),
        sqrt: bit(3),
        fma: bit(4),
        rounding: bit(5),
        to_integer: bit(6),
        from_integer: bit(7),
        halves: bit(8),
    }
}

fn executors(seed: u64) -> Vec<Box<dyn Executor>> {
    vec![
        Box::new(Reference::new(Schedule::InOrder)),
        Box::new(Legalized(Legal::NONE)),
        Box::new(Legalized(picked(seed))),
    ]
}

#[test]
fn generated_programs_keep_their_meaning() {
    let count = std::env::var("VYRE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut changed = 0;
    for seed in 0..count {
        let case = generate(seed, DEFAULT_SIZE);
        changed += u64::from(legalize(&case.program, &Legal::NONE) != case.program);
        assert_eq!(illegal(&legalize(&case.program, &Legal::NONE)), None, "seed {seed}");
        if compare(&case, &executors(seed)).is_some() {
            let small = reduce(&case, &mut |case| compare(case, &executors(seed)).is_some());
            let why = compare(&small, &executors(seed)).map_or_else(String::new, |why| why.to_string());
            let expected = Reference::new(Schedule::InOrder).run(&small).expect("it runs");
            panic!("seed {seed}: {why}\n{}", test_file(&small, &expected, "a failure"));
        }
    }
    assert!(changed * 2 > count, "only {changed} of {count} programs have something to replace");
}

/// Something that is left of what no device has to do.
fn illegal(program: &Program) -> Option<String> {
    let halves = |element: Element| matches!(element, Element::F16 | Element::BF16);
    if let Some(buffer) = program.buffers().iter().find(|buffer| halves(buffer.element())) {
        return Some(format!("{buffer:?}"));
    }
    let kernel = lower(program);
    kernel
        .rows()
        .map(|row| kernel.value(row))
        .find(|value| is_illegal(*value))
        .map(|value| format!("{value:?}"))
}

fn is_illegal(value: Value) -> bool {
    use vyre_foundation::{Type, UnOp};
    match value {
        Value::Binary { op, ty, .. } => {
            ty == Type::F32 && matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div)
        }
        Value::Unary { op, .. } => matches!(
            op,
            UnOp::Sqrt | UnOp::InverseSqrt | UnOp::Floor | UnOp::Ceil | UnOp::Trunc | UnOp::Round
        ),
        Value::Cast { from, to, .. } => {
            from == Type::F32 && to.is_integer() || from.is_integer() && to == Type::F32
        }
        Value::Fma { .. } => true,
        _ => false,
    }
}

/// The programs of the test files; those that are refused are left out.
fn files() -> Vec<(PathBuf, Program)> {
    let mut found = Vec::new();
    let mut pending = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files")];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).expect("the test files") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "vyre") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                if let Ok(program) = Program::parse(&text)
                    && program.validate().is_ok()
                {
                    found.push((path, program));
                }
            }
        }
    }
    found
}

#[test]
fn test_files_become_legal_and_stay_valid() {
    let files = files();
    assert!(files.len() > 100, "{} test files", files.len());
    for (path, program) in files {
        let legal = legalize(&program, &Legal::NONE);
        legal.validate().unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()));
        assert_eq!(illegal(&legal), None, "{}", path.display());
        let same = legalize(&program, &Legal::ALL);
        assert!(same.source().is_some() && same == program, "{}", path.display());
    }
}

/// What stands in a statement is evaluated in the same order: a load of a half stays behind the atomic before it.
#[test]
fn order_and_places_are_kept() {
    let text = "program p {
        workgroup_size 2;
        buffer n: read_write u32[4];
        buffer h: read_write f16[4];
        buffer o: output bf16[4];
        workgroup w: f16[2];
        local l: bf16[2];
        fn twice(a: f32) -> f32 { let b = a + a; return b; }
        let mut f = f32(n[0]) - h[1];
        w[local_id.x] = f;
        l[1] = f * 3.0;
        for i in 0..len(h) {
            if u32(h[i]) > 2 { f = twice(l[1]) / uniform_load(workgroup, h[0]); }
        }
        o[u32(atomic_add(n[1], 1)) % 4] = inverse_sqrt(f) + w[1 - local_id.x];
    }";
    let program = Program::parse(text).expect("it parses");
    let wrong = program.validate().err();
    assert!(wrong.is_some(), "a uniform load stands in divergent control");
    let text = text.replace("if u32(h[i]) > 2 {", "if u32(uniform_load(grid, h[i])) > 2 {");
    let program = Program::parse(&text).expect("it parses");
    program.validate().expect("it is valid");
    let legal = legalize(&program, &Legal { div: true, ..Legal::NONE });
    legal.validate().expect("it is still valid");
    let counts = |program: &Program| {
        let mut counts = [0; 3];
        for event in Walk::new(program.entry()) {
            let Event::Node(node) = event else { continue };
            counts[0] += u32::from(matches!(node, Node::Store { .. }));
            node.for_each_expr(&mut |expr| {
                expr.visit(&mut |expr| {
                    counts[1] += u32::from(matches!(expr, Expr::Load { .. }));
                    counts[2] += u32::from(matches!(expr, Expr::UniformLoad { .. }));
                });
            });
        }
        counts
    };
    assert_eq!(counts(&legal), counts(&program));
    assert!(legal.to_string().contains("soft_inverse_sqrt_f32(f)"));
    assert!(legal.to_string().contains("1.0 / soft_sqrt_f32(soft_a)"), "{legal}");
}

/// As deep as a program can be, on a small stack.
#[test]
fn deep_expressions_become_legal() {
    let index = format!("{}0{}", "u32(h[".repeat(255), "])".repeat(255));
    let sum = format!("{}f{}", "(".repeat(500), " - 1.5)".repeat(500));
    let chain: Vec<String> = (0..3000).map(|i| format!("if f > {i}.0 {{ o[0] = f / {i}.5; }}")).collect();
    let text = format!(
        "program p {{ buffer h: read f16[4]; buffer o: output f32[4]; let f = h[1];
         o[1] = h[{index}]; o[2] = {sum}; {} }}",
        chain.join(" else ")
    );
    let legalized = move || {
        let program = Program::parse(&text).expect("it parses");
        program.validate().expect("it is valid");
        lower(&legalize(&program, &Legal::NONE)).items.len()
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(legalized).expect("a thread");
    assert!(thread.join().expect("the thread ends without a panic") > 3000);
}

/// How many rows each function becomes, constants aside. They stand wherever the operation stood, so a change that makes
/// them more is noticed here.
#[test]
fn functions_are_short() {
    // The operation itself was a row, a load or store of a half was none.
    let rows = [
        ("f[i] = f[i] + f[j];", 1, 52),
        ("f[i] = f[i] - f[j];", 1, 53),
        ("f[i] = f[i] * f[j];", 1, 48),
        ("f[i] = f[i] / f[j];", 1, 74),
        ("f[i] = sqrt(f[i]);", 1, 46),
        ("f[i] = fma(f[i], f[j], f[k]);", 1, 96),
        ("f[i] = floor(f[i]);", 1, 17),
        ("f[i] = ceil(f[i]);", 1, 19),
        ("f[i] = trunc(f[i]);", 1, 11),
        ("f[i] = round(f[i]);", 1, 22),
        ("u[i] = u32(f[i]);", 1, 11),
        ("v[i] = i32(f[i]);", 1, 19),
        ("x[i] = u64(f[i]);", 1, 14),
        ("y[i] = i64(f[i]);", 1, 23),
        ("f[i] = f32(u[i]);", 1, 13),
        ("f[i] = f32(v[i]);", 1, 18),
        ("f[i] = f32(x[i]);", 1, 19),
        ("f[i] = f32(y[i]);", 1, 25),
        ("f[i] = h[i];", 0, 19),
        ("h[i] = f[i];", 0, 25),
        ("f[i] = b[i];", 0, 2),
        ("b[i] = f[i];", 0, 6),
    ];
    for (statement, before, limit) in rows {
        let text = format!(
            "program p {{
                buffer u: read_write u32[]; buffer v: read_write i32[];
                buffer x: read_write u64[]; buffer y: read_write i64[];
                buffer f: read_write f32[]; buffer h: read_write f16[]; buffer b: read_write bf16[];
                let i = global_id.x; let j = i + 1; let k = i + 2; {statement} }}"
        );
        let program = Program::parse(&text).expect("it parses");
        let rows = |kernel: Kernel| {
            let rows = kernel.rows().map(|row| kernel.value(row));
            rows.filter(|value| !matches!(value, Value::Const(_))).count()
        };
        let legal = rows(lower(&legalize(&program, &Legal::NONE)));
        let found = legal + before - rows(lower(&program));
        eprintln!("{statement} {found} rows");
        assert!(found <= limit, "{statement} {found} rows");
    }
}
