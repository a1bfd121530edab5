//! What the types do not catch comes back as an error with a code and a line of the Rust source.

use vyre::build::What;
use vyre::prelude::*;

/// The codes of what is wrong with a program.
fn codes(body: impl FnOnce(&Kernel)) -> Vec<&'static str> {
    codes_of(&vyre::program("p", body).unwrap_err())
}

fn codes_of(error: &BuildError) -> Vec<&'static str> {
    error.mistakes().iter().map(|mistake| mistake.what.code()).collect()
}

#[test]
fn a_value_outside_its_body() {
    let line = line!() + 5;
    let error = vyre::program("p", |k| {
        let x = k.read_write::<u32>("x");
        let mut escaped = None;
        k.if_(x.load(0).eq(0), || {
            escaped = Some(x.load(1));
        });
        x.store(0, escaped.unwrap_or(1.into()));
    })
    .unwrap_err();
    let [mistake] = error.mistakes() else { panic!("{error}") };
    let What::OutOfScope { made } = mistake.what else { panic!("{error}") };
    assert_eq!((mistake.what.code(), made.line()), ("B001", line));
    assert_eq!(mistake.at.map(|at| (at.file(), at.line())), Some((file!(), line + 2)));
    let expected = format!(
        "[B001] {file}:{}:11: this uses what was made at {file}:{line}:30, in a body that has ended. help: make a \
         variable before the body (`k.var`), set it inside, and get it afterwards",
        line + 2,
        file = file!(),
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn whether_a_value_was_inlined_does_not_matter_for_its_scope() {
    let escapes = |make: fn(Value<u32>) -> Value<u32>| {
        codes(|k| {
            let x = k.read_write::<u32>("x");
            let mut escaped = x.load(0);
            k.for_(0, 4, |_| escaped = make(x.load(1)));
            x.store(0, escaped);
        })
    };
    assert_eq!(escapes(|v| v), ["B001"]);
    assert_eq!(escapes(|v| v + 1), ["B001"]);
}

#[test]
fn constants_and_ids_hold_everywhere() {
    let program = vyre::program("p", |k| {
        let x = k.read_write::<u32>("x");
        let mut values = Vec::new();
        k.scope(|| values.extend([1.into(), k.global_id().x, x.len(), k.subgroup_lane()]));
        values.into_iter().for_each(|value| x.store(0, value));
    });
    assert!(program.is_ok());
}

#[test]
fn variables_outside_their_body() {
    let found = codes(|k| {
        let mut escaped = k.var("a", 0u32);
        k.scope(|| escaped = k.var("b", 0u32));
        escaped.set(1);
        let _ = escaped.get() + 1;
    });
    // The sum of a value that is no value is refused too.
    assert_eq!(found, ["B001", "B001", "B004"]);
}

#[test]
fn functions_see_their_arguments_alone() {
    let found = codes(|k| {
        let x = k.read_write::<u32>("x");
        let (loaded, var) = (x.load(0), k.var("v", 0u32));
        let _ = k.function("captures", |a: Value<u32>| a + loaded);
        let _ = k.function("reads", |a: Value<u32>| a + var.get());
        let _ = k.function("acts", |a: Value<u32>| {
            x.store(0, a);
            a
        });
        let _ = k.function("adds", |a: Value<u32>| x.atomic_add(0, a));
        let _ = k.function("ids", |a: Value<u32>| a + k.global_id().x);
    });
    assert_eq!(found, ["B002", "B002", "B004", "B003", "B003", "B002"]);
    let found = codes(|k| {
        let x = k.read::<u32>("x");
        let _ = k.function("loads", |a: Value<u32>| x.load(a));
    });
    assert_eq!(found, ["V032"]);
    let found = codes(|k| {
        let x = k.output::<u32>("x");
        let mut inside = Value::from(0);
        let _ = k.function("leaks", |a: Value<u32>| {
            inside = a + 1;
            inside
        });
        x.store(0, inside);
    });
    assert_eq!(found, ["B001"]);
}

#[test]
fn handles_of_another_program() {
    let mut foreign = Vec::new();
    let (mut buffer, mut var, mut function) = (None, None, None);
    vyre::program("first", |k| {
        let x = k.read_write::<u32>("x");
        foreign.extend([x.load(0), k.global_id().x]);
        buffer = Some(x);
        var = Some(k.var("v", 1u32));
        function = Some(k.function("f", |a: Value<u32>| a));
    })
    .unwrap();
    let (buffer, var, function) = (buffer.unwrap(), var.unwrap(), function.unwrap());
    let sum = foreign[0] + 1;
    var.set(3);
    buffer.store(0, 1);
    let found = codes(|k| {
        let y = k.read_write::<u32>("y");
        y.store(0, foreign[0]);
        y.store(0, 2 + foreign[1]);
        y.store(0, sum);
        buffer.store(0, 1);
        var.set(2);
        let _ = function.call(1);
    });
    assert_eq!(found, ["B004"; 6]);
}

#[test]
fn the_kernel_of_an_outer_build() {
    let mut inner = None;
    let outer = vyre::program("outer", |outer| {
        inner = Some(vyre::program("inner", |_| {
            outer.return_();
            let buffer = outer.read_write::<u32>("x");
            buffer.store(0, outer.global_id().x);
            outer.if_(true, || unreachable!("the body of nothing")).else_(|| unreachable!());
            outer.for_(0, 1, |_| unreachable!());
        }));
    });
    assert!(outer.is_ok());
    let error = inner.unwrap().unwrap_err();
    assert!(codes_of(&error).iter().all(|code| *code == "B004"), "{error}");
}

#[test]
fn a_branch_that_ends_inside_another_build() {
    let outer = vyre::program("outer", |k| {
        let branch = k.if_(true, || {}).else_if(|| true.into(), || {});
        assert!(vyre::program("inner", |_| drop(branch)).is_ok());
    });
    assert!(outer.is_ok());
}

#[test]
fn a_value_used_without_a_build() {
    let mut kept = Value::from(1u32);
    vyre::program("p", |k| kept = k.global_id().x).unwrap();
    let orphan = kept + 1;
    assert_eq!(codes(|k| k.read_write::<u32>("x").store(0, orphan)), ["B004"]);
}

#[test]
fn an_else_that_stands_apart() {
    let found = codes(|k| {
        let x = k.read_write::<u32>("x");
        let branch = k.if_(x.load(0).eq(0), || x.store(0, 1));
        x.store(1, 1);
        branch.else_(|| unreachable!());
        let branch = k.if_(x.load(0).eq(0), || x.store(0, 1));
        let later = x.load(3);
        branch.else_if(|| later.eq(0), || {});
    });
    assert_eq!(found, ["B005", "B005"]);
}

#[test]
fn ballots_have_the_width_of_the_subgroup() {
    let wide = |k: &Kernel| {
        k.subgroup_ballot64(true);
    };
    assert_eq!(codes(wide), ["B006"]);
    assert!(
        vyre::program("p", |k| {
            wide(k);
            k.subgroup_size(64);
        })
        .is_ok()
    );
    let found = codes(|k| {
        k.subgroup_size(64);
        k.subgroup_ballot(true);
    });
    assert_eq!(found, ["B006"]);
}

#[test]
fn rules_of_the_language() {
    assert_eq!(codes(|k| k.break_()), ["V017"]);
    assert_eq!(codes(|k| k.if_(true, || k.continue_()).else_(|| {})), ["V017"]);
    assert_eq!(codes(|k| k.workgroup_size([1, 0])), ["V035"]);
    assert_eq!(codes(|k| k.subgroup_size(33)), ["V036"]);
    assert_eq!(
        codes(|k| {
            k.read::<u32>("x");
            k.output::<f32>("x");
        }),
        ["V007"]
    );
    let reserved = |k: &Kernel| {
        k.read::<u32>("for");
        k.var("a b", 1u32);
    };
    assert_eq!(codes(reserved), ["V006", "V005"]);
    assert_eq!(codes_of(&vyre::program("1", |_| {}).unwrap_err()), ["V005"]);
    let load = |k: &Kernel| {
        let x = k.output::<u32>("x").ordered(MemoryOrdering::Release);
        x.atomic_load(0);
    };
    assert_eq!(codes(load), ["V025"]);
}

/// The line that a diagnostic of the validator names.
fn line_of(body: impl FnOnce(&Kernel)) -> u32 {
    let error = vyre::program("p", body).unwrap_err();
    let [mistake] = error.mistakes() else { panic!("{error}") };
    mistake.at.unwrap().line()
}

#[test]
fn diagnostics_name_the_rust_line() {
    let line = line!();
    let found = line_of(|k| {
        k.workgroup_size(8);
        let x = k.read_write::<u32>("x");
        let shared = x.load(0) * 2;
        x.store(1, shared + shared);
        k.for_(0, 4, |_| {
            k.if_(x.load(2).eq(1), || k.return_()).else_if(|| x.load(3).eq(1), || {}).else_(|| {
                x.store(0, 1);
                k.barrier(Scope::Grid);
            });
        });
    });
    assert_eq!(found, line + 9);
    let found = line_of(|k| {
        k.if_(k.local_id().x.eq(0), || {}).else_if(|| k.local_id().y.eq(0), || k.barrier(Scope::Workgroup));
    });
    assert_eq!(found, line + 15);
    let found = line_of(|k| {
        k.read::<u32>("x");
        k.read::<u32>("x");
    });
    assert_eq!(found, line + 20);
}

#[test]
fn explanations_name_the_rust_line() {
    let line = line!();
    let error = vyre::program("p", |k| {
        k.workgroup_size(64);
        let f = k.var("f", 0u32);
        k.if_(k.local_id().x.eq(0), || f.set(1));
        k.if_(f.get().eq(1), || k.barrier(Scope::Workgroup));
    })
    .unwrap_err();
    let lines: Vec<_> = error.mistakes()[0].because.iter().map(|(_, at)| at.unwrap().line() - line).collect();
    assert_eq!(lines, [5, 4, 4, 4], "{error}");
}

#[test]
fn every_mistake_is_reported() {
    let found = codes(|k| {
        k.break_();
        k.continue_();
        k.if_(k.local_id().x.eq(0), || k.barrier(Scope::Workgroup));
    });
    assert_eq!(found, ["V017", "V017", "V018"]);
}
