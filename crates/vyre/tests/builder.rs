//! Programs built in Rust: what they compute, how they print, and how mistakes come back.

mod common;

use common::{Plain, bytes, outputs, values};
use vyre::build::{Number, Storable};
use vyre::prelude::*;
use vyre_reference::{Error, Options, run};

/// The text of a program that must be right.
fn text(body: impl FnOnce(&Kernel)) -> String {
    let program = vyre::program("p", body).unwrap_or_else(|error| panic!("{error}"));
    let text = program.to_string();
    assert_eq!(Program::parse(&text).unwrap(), program, "{text}");
    text
}

/// The statements of a program, after its declarations.
fn statements(body: impl FnOnce(&Kernel)) -> String {
    let text = text(body);
    let (_, statements) = text.rsplit_once("\n\n").unwrap();
    let lines = statements.trim_end().trim_end_matches('}').trim_matches('\n').lines();
    lines.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The first output of a program.
fn output<T: Plain>(program: &Program, inputs: &[Vec<u8>]) -> Vec<T> {
    values(&outputs(program, inputs, &Options::default())[0])
}

fn one() -> Options {
    Options { grid: Some([1, 1, 1]), ..Options::default() }
}

/// The first output after one workgroup has run.
fn alone<T: Plain>(program: &Program, inputs: &[Vec<u8>]) -> Vec<T> {
    values(&outputs(program, inputs, &one())[0])
}

#[test]
fn components_prints_like_a_person_wrote_it() {
    let program = vyre::program("components", |k| {
        k.workgroup_size(64);
        let offsets = k.read::<u32>("offsets");
        let targets = k.read::<u32>("targets");
        let label = k.read_write::<u32>("label");
        let changed = k.scratch::<u32>("changed").with_count(1);
        let improves = k.function("improves", |new: Value<u32>, old: Value<u32>| new.lt(old));
        let v = k.let_("v", k.global_id().x);
        k.for_named("step", 1, 1_000_000, |step| {
            k.if_(v.lt(label.len()), || {
                let mine = k.let_("mine", label.atomic_load(v));
                k.for_named("e", offsets.load(v), offsets.load(v + 1), |e| {
                    let old = label.atomic_min(targets.load(e), mine);
                    k.if_(improves.call(mine, old), || {
                        changed.atomic_max(0, step);
                    });
                });
            });
            k.if_(changed.grid_uniform_load(0).lt(step), || k.break_());
        });
    })
    .unwrap();
    assert_eq!(
        program.to_string(),
        "program components {
    workgroup_size 64;

    buffer offsets: read u32[];
    buffer targets: read u32[];
    buffer label: read_write u32[];
    buffer changed: scratch u32[1];

    fn improves(a: u32, b: u32) -> bool {
        return a < b;
    }

    let v = global_id.x;
    for step in 1..1000000 {
        if v < len(label) {
            let mine = atomic_load(label[v]);
            for e in offsets[v]..offsets[v + 1] {
                let label_1 = atomic_min(label[targets[e]], mine);
                if improves(mine, label_1) {
                    atomic_max(changed[0], step);
                }
            }
        }
        let changed_1 = uniform_load(grid, changed[0]);
        if changed_1 < step {
            break;
        }
    }
}
"
    );
    let graph = [bytes(&[0u32, 1, 3, 5, 6, 8, 10, 10]), bytes(&[5u32, 5, 4, 4, 3, 2, 1, 2, 0, 1])];
    let label = bytes(&[0u32, 1, 2, 3, 4, 5, 6]);
    let [offsets, targets] = graph;
    assert_eq!(output::<u32>(&program, &[offsets, targets, label]), [0, 0, 0, 0, 0, 0, 6]);
}

#[test]
fn loads_take_place_where_they_are_called() {
    let program = vyre::program("p", |k| {
        let x = k.read_write::<u32>("x");
        let before = x.load(0);
        x.store(0, before + 1);
        let after = x.load(0);
        x.store(1, before * 10 + after);
        x.store(2, before);
    })
    .unwrap();
    assert_eq!(alone::<u32>(&program, &[bytes(&[5u32, 0, 0])]), [6, 56, 5]);
}

#[test]
fn variables_give_the_value_of_the_moment() {
    let program = vyre::program("p", |k| {
        let out = k.output::<u32>("out").with_count(3);
        let (a, b) = (k.var("a", 0u32), k.var("b", 1u32));
        k.for_(0, 10, |_| {
            let next = a.get() + b.get();
            a.set(b.get());
            b.set(next);
        });
        let old = a.get();
        a.set(7);
        out.store(0, old);
        out.store(1, b.get());
        out.store(2, a.get());
    })
    .unwrap();
    assert_eq!(alone::<u32>(&program, &[]), [55, 89, 7]);
}

#[test]
fn reads_stay_inline_only_where_nothing_happens_between() {
    let body = statements(|k| {
        let x = k.read_write::<u32>("x");
        let sum = k.var("sum", x.load(0));
        sum.set(sum.get() + x.load(1) * x.load(2));
        let (held, used) = (sum.get(), x.load(3));
        k.if_(used.eq(4), || x.store(0, held));
        x.store(1, held + used);
    });
    assert_eq!(
        body,
        "let mut sum = x[0];
sum = sum + x[1] * x[2];
let sum_1 = sum;
let x_1 = x[3];
if x_1 == 4 {
    x[0] = sum_1;
}
x[1] = sum_1 + x_1;"
    );
}

#[test]
fn effects_happen_once_and_where_they_are_called() {
    let program = vyre::program("p", |k| {
        let x = k.read_write::<u32>("x");
        let old = x.atomic_add(0, 1);
        x.atomic_add(0, 10);
        x.store(1, old + old);
        x.store(2, x.load(0));
    })
    .unwrap();
    assert_eq!(alone::<u32>(&program, &[bytes(&[5u32, 0, 0])]), [16, 10, 16]);
}

#[test]
fn what_nothing_uses_is_left_out() {
    let body = statements(|k| {
        let x = k.read_write::<u32>("x");
        let _ = (x.load(0) + 1) * x.load(1);
        x.store(0, 1);
    });
    assert_eq!(body, "x[0] = 1;");
}

#[test]
fn sharing_does_not_blow_up() {
    let program = vyre::program("p", |k| {
        let out = k.output::<u32>("out").with_count(1);
        let mut x = k.global_id().x + 3;
        for _ in 0..1000 {
            x = x * x;
        }
        out.store(0, x);
    })
    .unwrap();
    let expected = (0..1000).fold(3u32, |x, _| x.wrapping_mul(x));
    assert_eq!(output::<u32>(&program, &[]), [expected]);
    assert!(program.stats().expressions < 4000);
}

#[test]
fn long_and_wide_expressions_are_cut() {
    let program = vyre::program("p", |k| {
        let out = k.output::<u32>("out").with_count(2);
        let i = k.global_id().x;
        let chain = (0..5000u32).fold(i + 1, |x, n| x * 3 + n);
        let mut level: Vec<Value<u32>> = (0..1024u32).map(|n| i ^ n).collect();
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| pair[0] + pair[1]).collect();
        }
        out.store(0, chain);
        out.store(1, level[0]);
    })
    .unwrap();
    assert!(program.stats().depth <= 40, "{:?}", program.stats());
    let chain = (0..5000u32).fold(1u32, |x, n| x.wrapping_mul(3).wrapping_add(n));
    assert_eq!(alone::<u32>(&program, &[]), [chain, 1023 * 512]);
}

#[test]
fn invariant_values_stay_outside_loops() {
    let body = statements(|k| {
        let x = k.read_write::<u32>("x");
        let row = k.global_id().x * 16;
        k.for_(0, 16, |i| {
            let next = i + 1;
            k.for_(0, i, |j| x.store(row + j, next));
        });
    });
    assert_eq!(
        body,
        "let t1 = global_id.x * 16;
for i in 0..16 {
    let t2 = i + 1;
    for j in 0..i {
        x[t1 + j] = t2;
    }
}"
    );
}

#[test]
fn branches() {
    let program = vyre::program("sign", |k| {
        k.workgroup_size(4);
        let x = k.read::<i32>("x");
        let y = k.output::<i32>("y").with_count(6);
        let i = k.global_id().x;
        k.if_(i.ge(y.len()), || k.return_());
        k.if_(x.load(i).lt(0), || y.store(i, -1))
            .else_if(|| x.load(i).eq(0), || y.store(i, 0))
            .else_if(|| x.load(i).lt(10), || y.store(i, 1))
            .else_(|| y.store(i, 2));
        k.if_(i.eq(5), || y.store(i, 77)).else_(|| {});
    })
    .unwrap();
    assert_eq!(output::<i32>(&program, &[bytes(&[-5i32, 0, 5, 50, -1, 9])]), [-1, 0, 1, 2, -1, 77]);
    let printed = program.to_string();
    assert!(printed.contains("} else if x[global_id.x] == 0i32 {"), "{printed}");
}

#[test]
fn a_condition_of_a_chain_is_evaluated_only_when_it_is_reached() {
    let program = vyre::program("p", |k| {
        let x = k.read_write::<u32>("x");
        k.if_(x.load(0).eq(1), || x.store(1, 10))
            .else_if(|| x.atomic_add(2, 1).eq(0), || x.store(1, 20))
            .else_(|| x.store(1, 30));
    })
    .unwrap();
    assert_eq!(alone::<u32>(&program, &[bytes(&[1u32, 0, 0])]), [1, 10, 0]);
    assert_eq!(alone::<u32>(&program, &[bytes(&[0u32, 0, 0])]), [0, 20, 1]);
    assert_eq!(alone::<u32>(&program, &[bytes(&[0u32, 0, 7])]), [0, 30, 8]);
}

#[test]
fn a_long_chain_needs_no_stack() {
    let program = vyre::program("p", |k| {
        let x = k.read_write::<u32>("x");
        let i = k.global_id().x;
        let mut chain = k.if_(i.eq(0), || x.store(i, 0));
        for n in 1..100_000u32 {
            chain = chain.else_if(|| i.eq(n), || x.store(i, n * 2));
        }
        chain.else_(|| k.trap("too large", i));
    })
    .unwrap();
    assert_eq!(program.stats().nesting, 1);
}

#[test]
fn loops_and_jumps() {
    let program = vyre::program("p", |k| {
        let out = k.output::<u32>("out").with_count(2);
        let (sum, steps) = (k.var("sum", 0u32), k.var("steps", 0u32));
        k.for_(3, 100, |i| {
            k.if_((i % 2).eq(0), || k.continue_());
            k.if_(i.gt(20), || k.break_());
            sum.set(sum.get() + i);
            k.scope(|| steps.set(steps.get() + 1));
        });
        out.store(0, sum.get());
        out.store(1, steps.get());
    })
    .unwrap();
    let odd: Vec<u32> = (3..=20).filter(|i| i % 2 == 1).collect();
    let expected = [odd.iter().sum(), odd.len() as u32];
    assert_eq!(alone::<u32>(&program, &[]), expected);
}

#[test]
fn memory_of_every_kind() {
    let program = vyre::program("p", |k| {
        k.workgroup_size(4);
        let scale = k.uniform::<i32>("scale").with_count(1);
        let out = k.write::<i32>("out").with_count(8);
        let total = k.scratch::<i32>("total").with_count(1);
        let tile = k.workgroup::<i32>("tile", 4);
        let mine = k.local::<i32>("mine", 2);
        let (i, l) = (k.global_id().x, k.local_id().x);
        mine.store(1, i.cast::<i32>() * scale.load(0));
        tile.store(l, mine.load(1) + mine.load(0));
        k.barrier(Scope::Workgroup);
        let neighbour = tile.load((l + 1) % 4);
        total.atomic_add(0, neighbour);
        let first = tile.workgroup_uniform_load(0);
        k.barrier(Scope::Grid);
        out.store(i, neighbour * 1000 + total.load(0) + first);
    })
    .unwrap();
    let expected: Vec<i32> =
        (0..8).map(|i| (i / 4 * 4 + (i % 4 + 1) % 4) * -2 * 1000 - 56 + (i / 4 * 4) * -2).collect();
    assert_eq!(output::<i32>(&program, &[bytes(&[-2i32])]), expected);
}

#[test]
fn narrow_elements_widen_and_narrow() {
    let program = vyre::program("p", |k| {
        let (a, b) = (k.read_write::<u8>("a"), k.read_write::<i8>("b"));
        let (c, d) = (k.read_write::<u16>("c"), k.read_write::<i16>("d"));
        let (e, f) = (k.read_write::<f16>("e"), k.read_write::<bf16>("f"));
        a.store(0, a.load(0) + 1);
        b.store(0, b.load(0) - 1);
        c.store(0, c.load(0) * 2);
        d.store(0, -d.load(0));
        e.store(0, e.load(0) + 0.5);
        f.store(0, f.load(0) * 3.0);
    })
    .unwrap();
    let inputs = [
        bytes(&[255u8]),
        bytes(&[-128i8]),
        bytes(&[40000u16]),
        bytes(&[5i16]),
        bytes(&[f16::from_f32(1.25)]),
        bytes(&[bf16::from_f32(2.0)]),
    ];
    let found = outputs(&program, &inputs, &Options::default());
    assert_eq!(found[0], bytes(&[0u8]));
    assert_eq!(found[1], bytes(&[127i8]));
    assert_eq!(found[2], bytes(&[14464u16]));
    assert_eq!(found[3], bytes(&[-5i16]));
    assert_eq!(found[4], bytes(&[f16::from_f32(1.75)]));
    assert_eq!(found[5], bytes(&[bf16::from_f32(6.0)]));
}

#[test]
fn atomics() {
    let program = vyre::program("p", |k| {
        let x = k.read_write::<i64>("x");
        let old = k.output::<i64>("old").with_count(11);
        old.store(0, x.atomic_add(0, 5));
        old.store(1, x.atomic_sub(1, 5));
        old.store(2, x.atomic_min(2, -5));
        old.store(3, x.atomic_max(3, 5));
        old.store(4, x.atomic_and(4, 0b110));
        old.store(5, x.atomic_or(5, 0b110));
        old.store(6, x.atomic_xor(6, 0b110));
        old.store(7, x.atomic_exchange(7, 9));
        old.store(8, x.atomic_compare_exchange(8, 3, 100));
        old.store(9, x.atomic_compare_exchange(9, 4, 100));
        old.store(10, x.ordered(MemoryOrdering::Acquire).atomic_load(10));
        x.ordered(MemoryOrdering::SeqCst).atomic_store(10, 8);
    })
    .unwrap();
    let found = outputs(&program, &[bytes(&[3i64; 11])], &one());
    assert_eq!(values::<i64>(&found[0]), [8, -2, -5, 5, 2, 7, 5, 9, 100, 3, 8]);
    assert_eq!(values::<i64>(&found[1]), [3; 11]);
    let printed = program.to_string();
    assert!(printed.contains("atomic_load(x[10], acquire)"), "{printed}");
    assert!(printed.contains("\n    atomic_store(x[10], 8i64, seq_cst);"), "{printed}");
}

#[test]
fn subgroups() {
    let program = vyre::program("p", |k| {
        k.workgroup_size(8);
        k.subgroup_size(4);
        let x = k.read::<u32>("x");
        let out = k.output::<u32>("out").with_count(80);
        let (i, lane) = (k.global_id().x, k.subgroup_lane());
        let v = x.load(i);
        let results = [
            k.subgroup_add(v),
            k.subgroup_mul(v),
            k.subgroup_min(v),
            k.subgroup_max(v),
            k.subgroup_and(v),
            k.subgroup_or(v),
            k.subgroup_xor(v),
            k.subgroup_shuffle(v, (lane + 1) % k.subgroup_lanes()),
            k.subgroup_ballot(v.gt(4)),
            lane,
        ];
        for (n, result) in results.into_iter().enumerate() {
            out.store(i * 10 + n as u32, result);
        }
    })
    .unwrap();
    let x: Vec<u32> = vec![1, 2, 3, 4, 5, 6, 7, 8];
    let found: Vec<u32> = values(&outputs(&program, &[bytes(&x)], &one())[0]);
    for (i, found) in found.chunks(10).enumerate() {
        let lanes = &x[i / 4 * 4..][..4];
        let expected = [
            lanes.iter().sum(),
            lanes.iter().product(),
            lanes[0],
            lanes[3],
            lanes.iter().fold(u32::MAX, |a, b| a & b),
            lanes.iter().fold(0, |a, b| a | b),
            lanes.iter().fold(0, |a, b| a ^ b),
            lanes[(i + 1) % 4],
            if i < 4 { 0 } else { 15 },
            i as u32 % 4,
        ];
        assert_eq!(found, expected, "invocation {i}");
    }
}

#[test]
fn ids_and_sizes_on_three_axes() {
    let program = vyre::program("p", |k| {
        k.workgroup_size([2, 2, 1]);
        let out = k.output::<u32>("out").with_count(16);
        let (g, l, w, n) = (k.global_id(), k.local_id(), k.workgroup_id(), k.num_workgroups());
        let linear = g.x + g.y * 2 + g.z * 4;
        out.store(linear, l.x + l.y * 10 + l.z * 100 + (w.z + w.x + w.y) * 1000 + (n.x + n.y + n.z) * 10_000);
    })
    .unwrap();
    let options = Options { grid: Some([1, 1, 4]), ..Options::default() };
    let expected: Vec<u32> = (0..16).map(|i| i % 2 + i / 2 % 2 * 10 + i / 4 * 1000 + 60_000).collect();
    assert_eq!(values::<u32>(&outputs(&program, &[], &options)[0]), expected);
}

#[test]
fn functions_of_one_to_four_parameters() {
    let program = vyre::program("p", |k| {
        let a = k.output::<f32>("a").with_count(4);
        let square = k.function("square", |x: Value<f32>| x * x);
        let norm = k.function("norm", |x: Value<f32>, y: Value<f32>| {
            let sum = square.call(x) + square.call(y);
            sum.sqrt() + sum * 0.0
        });
        let pick = k.function("pick", |c: Value<bool>, x: Value<f32>, n: Value<u32>| c.select(x, n.cast()));
        let poly = k.function("poly", |x: Value<f32>, a: Value<f32>, b: Value<f32>, c: Value<f32>| {
            k.let_("inner", a * x + b) * x + c
        });
        a.store(0, square.call(3.0));
        a.store(1, norm.call(3.0, 4.0));
        a.store(2, pick.call(k.global_id().x.eq(1), 1.5, 8));
        a.store(3, poly.call(2.0, 1.0, 2.0, 3.0));
    })
    .unwrap();
    assert_eq!(alone::<f32>(&program, &[]), [9.0, 5.0, 8.0, 11.0]);
    let printed = program.to_string();
    // The buffer is called `a`, so the parameter is not.
    assert!(printed.contains("fn square(a_1: f32) -> f32 {\n        return a_1 * a_1;"), "{printed}");
    assert!(printed.contains("let inner = b * a_4 + c;"), "{printed}");
}

#[test]
fn regions_and_traps() {
    let program = vyre::program("p", |k| {
        let x = k.read_write::<u32>("x");
        k.region("outer", || {
            k.region_from("scan", "step 1", || {
                k.if_(x.load(0).gt(3), || k.trap("too \"large\"", x.load(0)));
            });
        });
    })
    .unwrap();
    assert!(program.to_string().contains("region \"scan\" from \"step 1\" {"), "{program}");
    let error = run(&program, &[&bytes(&[9u32])], &Options::default()).unwrap_err();
    let Error::Trap(trap) = error else { panic!("{error}") };
    assert_eq!((&*trap.tag, trap.value), ("too \"large\"", 9));
}

#[test]
fn helpers_are_generic_rust_functions() {
    fn square<T: Number>(x: Value<T>) -> Value<T> {
        x * x
    }
    fn swap<E: Storable, A: access::Load + access::Store>(buffer: Buffer<E, A>, i: u32, j: u32) {
        let (a, b) = (buffer.load(i), buffer.load(j));
        buffer.store(i, b);
        buffer.store(j, a);
    }
    let program = vyre::program("p", |k| {
        let x = k.read_write::<f32>("x");
        swap(x, 0, 1);
        x.store(2, square(x.load(2)));
    })
    .unwrap();
    assert_eq!(alone::<f32>(&program, &[bytes(&[1.0f32, 2.0, 3.0])]), [2.0, 1.0, 9.0]);
}

#[test]
fn names_never_collide() {
    let body = statements(|k| {
        let (x, t) = (k.read_write::<u32>("x"), k.read_write::<u32>("t1"));
        let shared = x.load(0) * 2;
        t.store(0, shared + shared);
        let user = k.let_("t2", x.load(1));
        let again = k.let_("t2", x.load(2));
        k.for_named("x", 0, user + again, |i| {
            let shared = i + 5;
            x.store(shared, shared);
        });
        k.scope(|| x.store(0, k.let_("twice", 1u32)));
        k.scope(|| x.store(0, k.let_("twice", 2u32)));
    });
    assert_eq!(
        body,
        "let t3 = x[0] * 2;
t1[0] = t3 + t3;
let t2 = x[1];
let t2_1 = x[2];
for x_1 in 0..t2 + t2_1 {
    let t4 = x_1 + 5;
    x[t4] = t4;
}
{
    let twice = 1;
    x[0] = twice;
}
{
    let twice = 2;
    x[0] = twice;
}"
    );
}

#[test]
fn builds_nest() {
    let mut inner = None;
    let outer = vyre::program("outer", |k| {
        let x = k.read_write::<u32>("x");
        let one = x.load(0) + 1;
        inner = Some(vyre::program("inner", |k| k.read_write::<u32>("y").store(0, 7)).unwrap());
        x.store(0, one);
    })
    .unwrap();
    assert_eq!(output::<u32>(&outer, &[bytes(&[3u32])]), [4]);
    assert_eq!(output::<u32>(&inner.unwrap(), &[bytes(&[3u32])]), [7]);
}

#[test]
fn a_panic_leaves_nothing_open() {
    let panicked = std::panic::catch_unwind(|| vyre::program("p", |k| k.scope(|| panic!("on purpose"))));
    assert!(panicked.is_err());
    assert_eq!(text(|_| {}), "program p {}\n");
    let program = vyre::program("p", |k| {
        let x = k.read_write::<u32>("x");
        let caught = std::panic::AssertUnwindSafe(|| k.scope(|| panic!("on purpose")));
        assert!(std::panic::catch_unwind(caught).is_err());
        x.store(0, 1);
    });
    assert_eq!(program.unwrap().entry().len(), 1);
}
