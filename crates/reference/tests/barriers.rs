//! Everything an invocation knows survives a grid barrier: in straight code, in a loop and in a uniform `if`,
//! whatever the order in which invocations advance.

use vyre_foundation::{Element, Program, element};
use vyre_reference::{Options, Schedule, run};

const SIZE: u32 = 4;
const WORKGROUPS: u32 = 3;
const LANES: u32 = SIZE * WORKGROUPS;

/// Where the barrier stands. Each template runs `BARRIER` three times.
const CONTEXTS: [(&str, &str); 3] = [
    ("straight", "BARRIER BARRIER BARRIER"),
    ("loop", "for turn in 0..3 { BARRIER }"),
    ("if", "if num_workgroups.x == 3 { BARRIER for turn in 0..2 { if turn < 2 { BARRIER } } }"),
];

/// State before, across and after the barrier, with the value that invocation `g` must store.
struct State {
    name: &'static str,
    before: &'static str,
    barrier: &'static str,
    after: &'static str,
    expected: fn(u32) -> u32,
}

const STATES: [State; 8] = [
    State {
        name: "variable",
        before: "let v = g * 3;",
        barrier: "t[g] = 1; barrier(grid);",
        after: "o[g] = v;",
        expected: |g| g * 3,
    },
    State {
        name: "assigned variable",
        before: "let mut v = g;",
        barrier: "v = v + t[g]; t[g] = t[g] + 1; barrier(grid); v = v * 2;",
        after: "o[g] = v;",
        // ((g + 0) * 2 + 1) * 2 + 2) * 2
        expected: |g| ((g * 2 + 1) * 2 + 2) * 2,
    },
    State {
        name: "neighbour's store",
        before: "let mut v = 0; let mut seen = 0;",
        barrier: "t[g] = g + seen; barrier(grid); v = v + t[(g + 1) % 12]; barrier(grid); seen = seen + 100;",
        after: "o[g] = v;",
        expected: |g| 3 * ((g + 1) % LANES) + 300,
    },
    State {
        name: "loop counter",
        before: "let mut v = 0;",
        barrier: "for j in 0..3 { t[g] = j; barrier(grid); v = v + g + j; barrier(grid); }",
        after: "o[g] = v;",
        expected: |g| 3 * (3 * g + 3),
    },
    State {
        name: "local array",
        before: "a[0] = g; a[1] = g + 1;",
        barrier: "t[g] = a[0]; barrier(grid); a[0] = a[0] + a[1];",
        after: "o[g] = a[0] * 1000 + t[(g + 5) % 12];",
        expected: |g| (g + 3 * (g + 1)) * 1000 + { (g + 5) % LANES * 3 + 2 },
    },
    State {
        name: "workgroup memory",
        before: "s[local_id.x] = g;",
        barrier: "barrier(grid); let p = s[(local_id.x + 1) % 4]; barrier(workgroup); s[local_id.x] = p + 1;",
        after: "barrier(workgroup); o[g] = s[local_id.x];",
        expected: |g| g / SIZE * SIZE + (g % SIZE + 3) % SIZE + 3,
    },
    State {
        name: "returned invocations",
        before: "if g % 3 == 1 { o[g] = 77; return; } let v = g;",
        barrier: "atomic_add(n[0], 1); barrier(grid);",
        after: "o[g] = v + 100 * atomic_load(n[0]);",
        expected: |g| if g % 3 == 1 { 77 } else { g + 100 * (LANES - LANES / 3) * 3 },
    },
    State {
        name: "uniform load",
        before: "let mut v = g;",
        barrier: "atomic_add(n[0], 1); v = v + uniform_load(grid, n[0]);",
        after: "o[g] = v;",
        expected: |g| g + LANES * (1 + 2 + 3),
    },
];

fn program(state: &State, context: &str) -> String {
    // A `let` inside the barrier text may stand only once in a body: give each use a block of its own.
    let body = context.replace("BARRIER", &format!("{{ {} }}", state.barrier));
    format!(
        "program survives {{ workgroup_size {SIZE}; buffer o: output u32[{LANES}]; buffer t: scratch u32[{LANES}];
         buffer n: scratch u32[1]; workgroup s: u32[{SIZE}]; local a: u32[2];
         let g = global_id.x; {} {body} {} }}",
        state.before, state.after
    )
}

#[test]
fn state_survives_barriers_under_32_random_schedules() {
    for state in &STATES {
        let expected: Vec<u32> = (0..LANES).map(state.expected).collect();
        for (name, context) in CONTEXTS {
            let text = program(state, context);
            let program =
                Program::parse(&text).unwrap_or_else(|found| panic!("{}: {found}\n{text}", state.name));
            let random = (0..32).map(Schedule::Random);
            let fixed = [Schedule::InOrder, Schedule::RoundRobin, Schedule::Reversed];
            for schedule in random.chain(fixed) {
                let options = Options { grid: Some([WORKGROUPS, 1, 1]), schedule, ..Options::default() };
                let outcome = run(&program, &[], &options)
                    .unwrap_or_else(|error| panic!("{} in {name}: {error}\n{text}", state.name));
                let found: Vec<u32> = outcome.outputs[0]
                    .chunks(4)
                    .map(|bytes| element::load(Element::U32, bytes) as u32)
                    .collect();
                assert_eq!(found, expected, "{} in {name} under {schedule:?}", state.name);
            }
        }
    }
}

/// An interleaving that matters is found: a racy counter loses updates under some schedule, never gains any.
#[test]
fn schedules_show_races() {
    let text = "program racy { workgroup_size 8; buffer o: output u32[1]; o[0] = o[0] + 1; }";
    let program = Program::parse(text).expect("it parses");
    let result = |schedule| {
        let options = Options { grid: Some([2, 1, 1]), schedule, ..Options::default() };
        let outcome = run(&program, &[], &options).expect("it runs");
        element::load(Element::U32, &outcome.outputs[0])
    };
    assert_eq!(result(Schedule::InOrder), 16);
    assert_eq!(result(Schedule::RoundRobin), 1);
    let random: std::collections::BTreeSet<u64> =
        (0..32).map(|seed| result(Schedule::Random(seed))).collect();
    assert!(random.len() > 3 && random.iter().all(|n| (1..=16).contains(n)), "{random:?}");
}

/// Only a grid barrier orders workgroups: a program that counts on more is found out.
#[test]
fn schedules_show_races_between_workgroups() {
    let text = "program hidden { workgroup_size 4; buffer o: output u32[16]; buffer t: scratch u32[16];
        t[global_id.x] = global_id.x + 1; barrier(workgroup); o[global_id.x] = t[7]; }";
    let program = Program::parse(text).expect("it parses");
    let result = |schedule| {
        let options = Options { grid: Some([4, 1, 1]), schedule, ..Options::default() };
        run(&program, &[], &options).expect("it runs").outputs
    };
    assert_ne!(result(Schedule::InOrder), result(Schedule::Reversed));
    let random: std::collections::BTreeSet<_> = (0..32).map(|seed| result(Schedule::Random(seed))).collect();
    assert!(random.len() > 1);
}
