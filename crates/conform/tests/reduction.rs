//! The reducer shrinks planted failures to the few lines that show them, and test files hold what they must.

use std::time::Duration;
use vyre_conform::{
    Case, DEFAULT_SIZE, Executor, Failure, Observed, Reference, compare, generate, is_deterministic, reduce,
    reduce_unordered, test_file,
};
use vyre_foundation::Program;
use vyre_reference::Schedule;

/// A backend with a bug: it runs the program with one piece of text replaced by another.
struct Confused {
    wrong: &'static str,
    with: &'static str,
}

impl Executor for Confused {
    fn name(&self) -> String {
        format!("takes `{}` for `{}`", self.wrong, self.with)
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let text = case.program.to_string().replace(self.wrong, self.with);
        let program = Program::parse(&text).map_err(|errors| Failure::Failed(format!("{errors:?}")))?;
        Reference::new(Schedule::Reversed).run(&Case { program, ..case.clone() })
    }
}

/// The first case from `seed` on that shows the bug, reduced.
fn reduced(bug: Confused, seed: u64) -> (Case, Observed) {
    let name = bug.name();
    let executors: Vec<Box<dyn Executor>> = vec![Box::new(Reference::new(Schedule::InOrder)), Box::new(bug)];
    let mut fails = |case: &Case| compare(case, &executors).is_some();
    let case = (seed..seed + 500).map(|seed| generate(seed, DEFAULT_SIZE)).find(|case| fails(case));
    let case = case.unwrap_or_else(|| panic!("no program shows a backend that {name}"));
    let small = reduce(&case, &mut fails);
    assert!(fails(&small), "what is left shows the bug");
    let observed = Reference::new(Schedule::InOrder).run(&small).expect("the reference runs it");
    (small, observed)
}

fn assert_small(case: &Case, expected: &Observed, wanted: &str) {
    let text = test_file(case, expected, "Reduced.");
    let statements = case.program.stats().statements;
    assert!(statements <= 6, "{statements} statements are left:\n{text}");
    assert!(text.contains(wanted), "the cause is gone:\n{text}");
}

#[test]
fn a_wrong_operator_is_left_alone_in_a_few_lines() {
    for seed in [0, 1000, 2000] {
        let (case, expected) = reduced(Confused { wrong: "popcount(", with: "clz(" }, seed);
        assert_small(&case, &expected, "popcount(");
    }
}

#[test]
fn a_wrong_constant_is_left_alone_in_a_few_lines() {
    let (case, expected) = reduced(Confused { wrong: "rotl(sum, 5)", with: "rotl(sum, 6)" }, 0);
    assert_small(&case, &expected, "rotl(sum, 5)");
}

#[test]
fn a_lost_barrier_is_left_with_the_two_accesses_it_orders() {
    let (case, expected) = reduced(Confused { wrong: "barrier(workgroup);", with: "" }, 0);
    assert_small(&case, &expected, "barrier(workgroup);");
}

#[test]
fn a_race_is_reduced_without_bringing_in_another() {
    let racy = |case: &Case| !is_deterministic(case, Duration::from_secs(5));
    let unsynchronised = |seed: u64| {
        let case = generate(seed, DEFAULT_SIZE);
        let text = case.program.to_string().replace("barrier(workgroup);", "");
        Program::parse(&text).ok().map(|program| Case { program, ..case })
    };
    let case = (0..500).filter_map(unsynchronised).find(racy).expect("some program needs its barriers");
    let small = reduce_unordered(&case, &mut |case| racy(case));
    assert!(racy(&small));
    let (before, after) = (case.program.stats(), small.program.stats());
    assert!(
        after.statements * 2 <= before.statements,
        "{} statements of {}",
        after.statements,
        before.statements
    );
    assert_eq!(after.workgroup_barriers, before.workgroup_barriers, "uniform loads stay");
}

#[test]
fn a_test_file_holds_inputs_outputs_and_traps() {
    let text = "program p { workgroup_size 2; buffer x: read f32[]; buffer h: read_write f16[1];
        buffer o: output i64[]; o[global_id.x] = i64(x[global_id.x]); }";
    let program = Program::parse(text).expect("the program parses");
    let x: Vec<u8> = [1.5f32, f32::NAN, f32::NEG_INFINITY].iter().flat_map(|v| v.to_le_bytes()).collect();
    let case = Case {
        program,
        inputs: vec![x, vec![0x00, 0x7c]],
        grid: Some([2, 1, 1]),
        lengths: vec![("o".into(), 3)],
        fixpoint: Some(4),
    };
    let observed = Reference::new(Schedule::InOrder).run(&case).expect("it runs");
    let file = test_file(&case, &observed, "Casts.");
    let head: Vec<_> = file.lines().take(6).collect();
    assert_eq!(
        head,
        [
            "// Casts.",
            "// run: --grid 2,1,1 --in x=[1.5,NaN,-inf] --in h=[inf] --len o=3 --fixpoint 4",
            "// expect: h = [inf]",
            "// expect: o = [1, 0, -9223372036854775808]",
            "// passes: 2",
            "// converged: true",
        ]
    );
    assert!(Program::parse(&file).is_ok(), "comments are part of the language");
    let trap = Observed::Trap { tag: "a \"b\"".into(), value: 7, invocation: 3 };
    assert!(test_file(&case, &trap, "Trap.").contains("// trap: \"a \\\"b\\\"\" 7 3\n"));
}
