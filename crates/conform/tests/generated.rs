//! Generated programs: repeatable, deterministic under every schedule, and together the whole language.

use std::time::Duration;
use vyre_conform::{
    Case, Coverage, DEFAULT_SIZE, Executor, Observed, Reference, ThroughText, ThroughWire, compare, generate,
    generate_with_grid_barriers, is_deterministic, schedules,
};
use vyre_foundation::Program;
use vyre_reference::Schedule;

const PROGRAMS: u64 = 400;

#[test]
fn a_seed_means_one_case() {
    for seed in [0, 1, 99, u64::MAX] {
        let (a, b) = (generate(seed, DEFAULT_SIZE), generate(seed, DEFAULT_SIZE));
        assert_eq!(a.program, b.program);
        assert_eq!((a.inputs, a.grid, a.lengths, a.fixpoint), (b.inputs, b.grid, b.lengths, b.fixpoint));
    }
}

#[test]
fn every_size_gives_a_program() {
    for size in [0, 1, 10, 300] {
        for seed in 0..20 {
            generate(seed, size);
        }
    }
}

#[test]
fn schedules_and_forms_do_not_matter_and_the_language_is_covered() {
    let mut coverage = Coverage::default();
    let mut traps = 0;
    for seed in 0..PROGRAMS {
        let case = generate(seed, DEFAULT_SIZE);
        coverage.add_case(&case);
        let mut executors = schedules(seed, 8);
        executors.push(Box::new(ThroughText));
        executors.push(Box::new(ThroughWire));
        if let Some(mismatch) = compare(&case, &executors) {
            panic!("seed {seed}: {mismatch}\n{}", case.program);
        }
        let observed = Reference::new(Schedule::InOrder).run(&case);
        traps += u32::from(matches!(observed, Ok(Observed::Trap { .. })));
    }
    assert!(traps > 5, "only {traps} of {PROGRAMS} programs trapped");
    assert!(coverage.missing().is_empty(), "{coverage}");
}

#[test]
fn programs_full_of_grid_barriers_are_deterministic_and_cover_the_language() {
    let mut coverage = Coverage::default();
    let mut waits = 0;
    for seed in 0..PROGRAMS {
        let case = generate_with_grid_barriers(seed, DEFAULT_SIZE);
        assert_eq!(case.program, generate_with_grid_barriers(seed, DEFAULT_SIZE).program);
        coverage.add_case(&case);
        let text = case.program.to_string();
        let here = text.matches("barrier(grid)").count() + text.matches("uniform_load(grid").count();
        assert!(here > 0, "seed {seed} never waits for the grid\n{text}");
        waits += here;
        if let Some(mismatch) = compare(&case, &schedules(seed, 4)) {
            panic!("seed {seed}: {mismatch}\n{text}");
        }
    }
    assert!(waits > 8 * PROGRAMS as usize, "only {waits} waits in {PROGRAMS} programs");
    assert!(coverage.missing().is_empty(), "{coverage}");
}

/// Grids reach from a workgroup to 10,000, most of them small.
#[test]
fn programs_full_of_grid_barriers_run_on_small_and_large_grids() {
    let workgroups = |case: Case| case.grid.map_or(0, |counts| counts.iter().product::<u32>());
    let counts: Vec<u32> =
        (0..2000).map(|seed| workgroups(generate_with_grid_barriers(seed, DEFAULT_SIZE))).collect();
    let within = |low: u32, high: u32| counts.iter().filter(|count| (low..=high).contains(count)).count();
    assert!(within(1, 1) > 20 && within(2, 12) > 500 && within(13, 40) > 100, "too few small grids");
    assert!(within(250, 10_000) > 15 && within(5000, 10_000) > 1, "too few large grids");
    assert!(within(250, u32::MAX) < 80, "too many large grids");
    assert_eq!(within(10_001, u32::MAX), 0);
}

/// The outputs would be worth little if few invocations reached the end or all had the same checksum.
#[test]
fn outputs_tell_programs_apart() {
    let mut alive = 0;
    for seed in 0..100 {
        let make = if seed % 2 == 0 { generate } else { generate_with_grid_barriers };
        let case = make(seed, DEFAULT_SIZE);
        if let Ok(Observed::Outputs { outputs, .. }) = Reference::new(Schedule::InOrder).run(&case) {
            let distinct = |bytes: &Vec<u8>| {
                bytes.chunks(4).filter(|word| word.iter().any(|byte| *byte != 0)).count() > 0
            };
            alive += u32::from(outputs.iter().any(distinct));
        }
    }
    assert!(alive > 80, "only {alive} of 100 programs leave something in an output");
}

#[test]
fn races_are_seen() {
    let racy = [
        "program p { workgroup_size 4; buffer o: output u32[1]; o[0] = local_id.x; }",
        "program p { workgroup_size 4; buffer o: output u32[4]; o[local_id.x] = o[local_id.x ^ 1] + 1; }",
        "program p { workgroup_size 2; buffer o: output u32[2]; workgroup w: u32[2];
            w[local_id.x] = 7; o[local_id.x] = w[1 - local_id.x]; }",
        "program p { workgroup_size 3; buffer o: output u32[3]; o[local_id.x] = atomic_add(o[0], 1); }",
        "program p { workgroup_size 3; buffer o: output u32[1];
            atomic_max(o[0], local_id.x * 3 + 1); atomic_xor(o[0], 5); }",
        // A workgroup barrier does not order workgroups.
        "program p { workgroup_size 4; buffer o: output u32[16]; buffer t: scratch u32[16];
            t[global_id.x] = global_id.x; barrier(workgroup); o[global_id.x] = t[7]; }",
        "program p { workgroup_size 4; buffer o: output u32[16];
            o[global_id.x] = 1; o[global_id.x] = uniform_load(workgroup, o[5]); }",
    ];
    for text in racy {
        let program = Program::parse(text).expect("the program parses");
        let case = Case { program, inputs: vec![], grid: Some([4, 1, 1]), lengths: vec![], fixpoint: None };
        assert!(!is_deterministic(&case, Duration::from_secs(5)), "no schedule shows the race in\n{text}");
    }
}
