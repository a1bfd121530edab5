//! How many operations a run is said to have executed.

use vyre_foundation::Program;
use vyre_reference::{Options, Schedule, run};

/// The operations of a body over one buffer `a` of four `u32`, in one workgroup of four invocations.
fn operations(body: &str) -> u64 {
    counted(body, Schedule::InOrder)
}

fn counted(body: &str, schedule: Schedule) -> u64 {
    let text = format!(
        "program p {{ workgroup_size 4; subgroup_size 4; buffer a: read_write u32[4];\n\
         fn fourfold(x: u32) -> u32 {{ let y = twice(x); return twice(y); }}\n\
         fn twice(x: u32) -> u32 {{ return x + x; }}\n{body} }}"
    );
    let options = Options { schedule, ..Options::default() };
    run(&Program::parse(&text).unwrap(), &[&[0; 16]], &options).unwrap().operations
}

#[test]
fn every_operation_is_one_and_operands_are_none() {
    assert_eq!(operations("let x = 3; let y = x;"), 0);
    assert_eq!(operations("let x = global_id.x; let y = len(a); let z = subgroup_lane;"), 0);
    // A sum and a store, each four times.
    assert_eq!(operations("a[global_id.x] = 1 + 2;"), 2 * 4);
    assert_eq!(operations("let x = select(true, f32(len(a)), 2.0);"), 2 * 4);
}

#[test]
fn a_call_is_what_the_function_does() {
    assert_eq!(operations("let x = fourfold(3);"), 2 * 4);
    assert_eq!(operations("let x = fourfold(twice(3));"), 3 * 4);
}

#[test]
fn branches_count_what_is_taken() {
    // A comparison and the decision; then two sums for one invocation, one sum for three.
    let body = "if local_id.x < 1 { let x = 1 + 2 + 3; } else { let x = 1 + 2; }";
    assert_eq!(operations(body), 2 * 4 + 2 + 3);
    assert_eq!(operations("if local_id.x == 2 { return; } a[0] = 5;"), 2 * 4 + 3);
}

#[test]
fn loops_count_each_round() {
    assert_eq!(operations("for i in 0..10 { }"), 10 * 4);
    assert_eq!(operations("for i in 0..10 { let x = i * 2; }"), 20 * 4);
    // Three decisions, the third of which leaves: two comparisons more than sums and rounds.
    assert_eq!(operations("for i in 0..10 { if i == 2 { break; } let x = i * 2; }"), (3 * 2 + 2 * 2) * 4);
    assert_eq!(operations("for i in 0..4 { if i == 2 { continue; } let x = i * 2; }"), (4 * 3 + 3) * 4);
}

#[test]
fn what_waits_counts_for_each_that_waited() {
    assert_eq!(operations("barrier(workgroup);"), 4);
    assert_eq!(operations("let x = subgroup_add(local_id.x);"), 4);
    assert_eq!(operations("let x = uniform_load(workgroup, a[1]) + 1;"), 2 * 4);
}

#[test]
fn the_schedule_does_not_change_the_count() {
    let body = "for i in 0..5 { a[local_id.x] = a[local_id.x] + i; barrier(workgroup); \
                let next = a[(local_id.x + 1) % 4]; barrier(workgroup); if next > 3 { a[local_id.x] = 2; } }";
    let expected = operations(body);
    for schedule in [Schedule::RoundRobin, Schedule::Reversed, Schedule::Random(1), Schedule::Random(2)] {
        assert_eq!(counted(body, schedule), expected, "{schedule:?}");
    }
}
