//! What schedules are: the same on every run, as large as the program's text asks for, and with as little hidden storage
//! as what is held needs.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use vyre_driver::Unit;
use vyre_driver::grid_sync::{Extent, Purpose, Schedule, contains_grid_sync};
use vyre_foundation::grid::{self, Grid};
use vyre_foundation::{Layout, Program};

fn parse(text: &str) -> Program {
    Program::parse(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// Plans a program anew, whatever was planned before.
fn plan(program: &Program) -> std::sync::Arc<Schedule> {
    Unit::new(program.clone()).unwrap().schedule().unwrap()
}

/// All of a schedule: its drawing, its graph, and the segments byte for byte.
fn everything(schedule: &Schedule) -> (String, Vec<Vec<u8>>) {
    let mut text = format!("{schedule}{}{:?}", schedule.to_dot(), schedule.hidden());
    for segment in schedule.segments() {
        let _ = write!(text, "{:?} {:?} {}", segment.bindings(), segment.origin(), segment.is_once());
    }
    (text, schedule.segments().iter().map(|segment| segment.program().to_wire()).collect())
}

/// A grid of so many workgroups on one axis.
fn grid_of(program: &Program, workgroups: u32) -> Grid {
    let inputs = program.buffers().iter().filter(|buffer| buffer.consumes_input());
    let sizes: Vec<usize> =
        inputs.map(|buffer| buffer.count().unwrap() as usize * buffer.element().size()).collect();
    let layout = Layout::new(program, &sizes, &[]).unwrap();
    grid::resolve(program, &layout, Some([workgroups, 1, 1])).unwrap()
}

/// The bytes that values are held in, per invocation, per workgroup and for the grid.
fn held(text: &str) -> [u64; 3] {
    let mut bytes = [0; 3];
    for hidden in plan(&parse(text)).hidden() {
        assert_ne!(hidden.purpose, Purpose::Traps, "{text}");
        bytes[match hidden.extent {
            Extent::Invocation => 0,
            Extent::Workgroup => 1,
            Extent::Grid => 2,
        }] += hidden.bytes;
    }
    bytes
}

/// A program with most of what can stand around a barrier.
const RICH: &str = "program rich {
    workgroup_size 4;
    buffer a: read u32[64];
    buffer x: read_write u32[64];
    buffer o: output u64[64];
    workgroup w: u32[4];
    local l: u32[3];
    let i = global_id.x;
    let mut word = x[i];
    let mut wide = u64(a[i]);
    w[local_id.x] = word;
    region \"rounds\" from \"test\" {
        for k in 0..a[0] {
            l[k % 3] = word;
            barrier(grid);
            if uniform_load(grid, x[k]) > 3 {
                word = word + x[(i + k) % 64];
                barrier(grid);
                wide = wide * 3u64;
            } else {
                barrier(grid);
                if word == 7 {
                    return;
                }
            }
            if k > 100 {
                trap(\"long\", k);
            }
            x[i] = word;
            barrier(grid);
        }
    }
    o[i] = wide + u64(w[3 - local_id.x] + l[0]);
}";

#[test]
fn a_program_is_planned_the_same_a_thousand_times() {
    let program = parse(RICH);
    let first = everything(&plan(&program));
    assert!(first.1.len() >= 5, "{}", first.0);
    for run in 1..1000 {
        assert!(everything(&plan(&program)) == first, "run {run}");
    }
    // On other threads too, and from another text of the same program.
    let again = parse(&program.to_string());
    let threads = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| everything(&plan(&again)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(threads.iter().all(|other| *other == first));
}

/// The programs of a folder and those under it.
fn programs_under(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            programs_under(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "vyre") {
            found.push(path);
        }
    }
}

#[test]
fn every_program_of_the_repository_is_planned_the_same_twice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    programs_under(&root.join("examples"), &mut files);
    programs_under(&root.join("tests/files"), &mut files);
    let mut planned = 0;
    for file in files {
        let Ok(program) = Program::parse(&std::fs::read_to_string(&file).unwrap()) else { continue };
        if !contains_grid_sync(&program) || program.validate().is_err() {
            continue;
        }
        let schedule = plan(&program);
        assert!(everything(&schedule) == everything(&plan(&program)), "{}", file.display());
        assert!(schedule.segments().iter().all(|segment| !contains_grid_sync(segment.program())));
        planned += 1;
    }
    assert!(planned > 100, "{planned} programs with grid barriers");
}

/// A loop of so many rounds around so many more.
fn nested(outer: u32, inner: u32) -> String {
    format!(
        "program nested {{ workgroup_size 4; buffer x: read_write u32[64]; let i = global_id.x;
         let mut y = x[i];
         for k in 0..{outer} {{
             barrier(grid);
             y = y + k;
             for m in 0..{inner} {{ x[i] = y + m; barrier(grid); y = x[(i + 1) % 64]; barrier(grid); }}
         }}
         x[i] = y; }}"
    )
}

#[test]
fn a_schedule_does_not_grow_with_how_often_loops_run() {
    let size = |text: &str| {
        let program = parse(text);
        let schedule = plan(&program);
        let grid = grid_of(&program, 16);
        (schedule.node_count(), schedule.segments().len(), schedule.hidden_bytes(grid))
    };
    let few = size(&nested(2, 2));
    assert!((5..=10).contains(&few.1), "{}", plan(&parse(&nested(2, 2))));
    for (outer, inner) in [(1_000_000, 2), (2, 1_000_000), (1_000_000, 1_000_000), (u32::MAX, u32::MAX)] {
        assert_eq!(size(&nested(outer, inner)), few, "{outer} rounds of {inner}");
    }
    // It grows with the text, and no faster.
    let long = |barriers: usize| {
        let body = "x[i] = x[i] + 1; barrier(grid); ".repeat(barriers);
        size(&format!("program long {{ buffer x: read_write u32[64]; let i = global_id.x; {body} }}"))
    };
    assert_eq!(long(10).1, 10);
    assert_eq!(long(1000).1, 1000);
    assert_eq!(long(1000).2, long(10).2);
}

#[test]
fn a_word_that_is_held_takes_a_word_per_invocation() {
    let text = "program one { workgroup_size 64; buffer x: read_write u32[4]; let i = global_id.x;
        let y = x[i]; barrier(grid); x[i + 1] = y; }";
    assert_eq!(held(text), [4, 0, 0]);
    let program = parse(text);
    let (grid, invocations) = (grid_of(&program, 1_000_000), 64_000_000);
    let bytes = plan(&program).hidden_bytes(grid);
    assert!((4 * invocations..=4 * invocations + (1 << 20)).contains(&bytes), "{bytes} bytes");
    // That an invocation has returned is one word more.
    let returns = "program one { workgroup_size 64; buffer x: read_write u32[4]; let i = global_id.x;
        let y = x[i]; if x[i + 2] == 3 { return; } barrier(grid); x[i + 1] = y; }";
    assert_eq!(held(returns), [8, 0, 0]);
    let bytes = plan(&parse(returns)).hidden_bytes(grid);
    assert!(bytes <= 8 * invocations + (1 << 20), "{bytes} bytes");
}

#[test]
fn each_type_takes_its_words() {
    for (load, bytes) in [
        ("x[i] == 7", 4),
        ("x[i]", 4),
        ("i32(x[i])", 4),
        ("f32(x[i])", 4),
        ("u64(z[i])", 8),
        ("z[i]", 8),
        ("i64(z[i])", 8),
    ] {
        // A value of one word is kept instead of what it is made of, and the other way round.
        let back = if load.contains("==") { "if y { x[i] = 1; }" } else { "z[i + 1] = u64(y);" };
        let text = format!(
            "program t {{ buffer x: read_write u32[4]; buffer z: read_write u64[4]; let i = global_id.x;
             let y = {load}; barrier(grid); x[i] = 0; barrier(grid); {back} }}"
        );
        assert_eq!(held(&text), [bytes, 0, 0], "{load}");
    }
}

#[test]
fn values_that_are_never_held_together_share_storage() {
    let text = "program t { buffer x: read_write u32[64]; let i = global_id.x;
        let a = x[i]; barrier(grid); x[i] = a * 2; barrier(grid);
        let b = x[i + 1]; barrier(grid); x[i] = b * 3; barrier(grid);
        let c = x[i + 2]; barrier(grid); x[i] = c * 5; }";
    assert_eq!(held(text), [4, 0, 0]);
    let together = "program t { buffer x: read_write u32[64]; let i = global_id.x;
        let a = x[i]; barrier(grid); let b = x[i + 1]; barrier(grid); x[i] = a * 2 + b; }";
    assert_eq!(held(together), [8, 0, 0]);
    // A loop around the use of one holds it for all of the loop.
    let looped = "program t { buffer x: read_write u32[64]; let i = global_id.x; let a = x[i];
        for k in 0..3 { barrier(grid); x[i] = a; barrier(grid); let b = x[i + 1]; barrier(grid); x[i] = b; } }";
    assert_eq!(held(looped), [8, 0, 0]);
}

#[test]
fn what_costs_little_is_computed_again() {
    for value in ["i * 2 + 1", "a[i]", "(i ^ 3) + len(a)", "a[i] + local_id.x"] {
        let text = format!(
            "program t {{ workgroup_size 4; buffer a: read u32[64]; buffer o: output u32[64];
             let i = global_id.x; let y = {value}; o[i] = 1; barrier(grid); o[63 - i] = y; }}"
        );
        assert_eq!(held(&text), [0, 0, 0], "{value}");
    }
    // What is the same for a workgroup is kept once for it, and what the grid shares in words of the grid.
    let text = "program t { workgroup_size 4; buffer x: read_write u32[64]; let i = global_id.x;
        let y = uniform_load(workgroup, x[workgroup_id.x]); barrier(grid); x[i] = y; }";
    assert_eq!(held(text), [0, 4, 0]);
    let text = "program t { workgroup_size 4; buffer x: read_write u32[64]; let i = global_id.x;
        let y = uniform_load(grid, x[5]); x[i] = 1; barrier(grid); x[i] = y; }";
    let [per_invocation, per_workgroup, words] = held(text);
    assert_eq!((per_invocation, per_workgroup), (0, 0));
    assert!(words > 0 && words <= 8, "{words} bytes for the grid");
}

#[test]
fn memory_that_outlives_a_launch_is_as_large_as_it_is_declared() {
    let text = "program t { workgroup_size 4; buffer o: output u32[64]; workgroup w: u32[10]; local l: u8[3];
        w[local_id.x] = 1; l[0] = 2; barrier(grid); o[global_id.x] = w[3 - local_id.x] + u32(l[0]); }";
    assert_eq!(held(text), [3, 40, 0]);
    // What is used on one side of a barrier alone stays where it is.
    let text = "program t { workgroup_size 4; buffer o: output u32[64]; workgroup w: u32[10];
        w[local_id.x] = 1; barrier(workgroup); o[global_id.x] = w[3 - local_id.x]; barrier(grid); o[0] = 1; }";
    assert_eq!(held(text), [0, 0, 0]);
}
