//! `vyre split`: what the engine does for grid barriers that the device does not keep itself.

use crate::args::SplitArgs;
use crate::failure::Failure;
use crate::print;
use crate::source::Source;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;
use vyre_driver::grid_sync::{Extent, Purpose, Schedule, Storage, Traffic};
use vyre_foundation::Program;

pub(crate) fn command(args: &SplitArgs) -> ExitCode {
    match split(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(args.json);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn split(args: &SplitArgs) -> Result<(), Failure> {
    let source = Source::read(&args.file)?;
    let unit = source.unit(!args.no_optimize)?;
    let schedule = unit.schedule()?;
    if args.json {
        return print::out(&format!("{}\n", describe(&source.program, &schedule, args.grid)));
    }
    if args.dot {
        return print::out(&schedule.to_dot());
    }
    let mut text = schedule.to_string();
    if let Some(grid) = args.grid {
        let total = total_bytes(&schedule, &source.program, grid);
        let _ = writeln!(text, "on a grid of {grid:?} workgroups: {total} bytes");
    }
    if args.programs {
        for segment in schedule.segments() {
            let _ = write!(text, "\n{}", segment.program());
        }
    }
    print::out(&text)
}

/// How many workgroups and invocations a grid has.
fn counts(program: &Program, grid: [u32; 3]) -> (u64, u64) {
    let product = |numbers: [u32; 3]| numbers.iter().fold(1u64, |all, n| all.saturating_mul(u64::from(*n)));
    let workgroups = product(grid);
    (workgroups, workgroups.saturating_mul(product(program.workgroup_size().size())))
}

fn total_bytes(schedule: &Schedule, program: &Program, grid: [u32; 3]) -> u64 {
    let (workgroups, invocations) = counts(program, grid);
    let all = schedule.hidden().iter().map(|hidden| {
        let units = match hidden.extent {
            Extent::Invocation => invocations,
            Extent::Workgroup => workgroups,
            Extent::Grid => 1,
        };
        hidden.bytes.saturating_mul(units)
    });
    all.fold(0, u64::saturating_add)
}

/// The schedule as JSON.
fn describe(program: &Program, schedule: &Schedule, grid: Option<[u32; 3]>) -> Value {
    let grid_counts = grid.map(|grid| counts(program, grid));
    let traffic = |traffic: Traffic| {
        json!({
            "per_invocation": traffic.per_invocation,
            "per_workgroup": traffic.per_workgroup,
            "per_grid": traffic.per_grid,
            "total": grid_counts.map(|(workgroups, invocations)| traffic.total(workgroups, invocations)),
        })
    };
    let segments = schedule.segments().iter().enumerate().map(|(number, segment)| {
        let bindings = segment.bindings().iter().map(|binding| {
            json!({
                "storage": schedule.storage_name(binding.storage),
                "hidden": matches!(binding.storage, Storage::Hidden(_)),
                "writes": binding.is_stored,
                "contents": binding.is_touched,
            })
        });
        let [recalled, kept] = schedule.traffic(number);
        json!({
            "once": segment.is_once(),
            "region": segment.origin(),
            "bindings": bindings.collect::<Vec<_>>(),
            "hidden_read": traffic(recalled),
            "hidden_written": traffic(kept),
            "program": segment.program().to_string(),
        })
    });
    let hidden = schedule.hidden().iter().map(|hidden| {
        let extent = match hidden.extent {
            Extent::Invocation => "invocation",
            Extent::Workgroup => "workgroup",
            Extent::Grid => "grid",
        };
        let purpose = match hidden.purpose {
            Purpose::Values => "values".to_owned(),
            Purpose::Buffer(buffer) => schedule.storage_name(Storage::Buffer(buffer)),
            Purpose::Uniforms => "uniforms".to_owned(),
            Purpose::Found => "found".to_owned(),
            Purpose::Trapped => "trapped".to_owned(),
            Purpose::Traps => "traps".to_owned(),
        };
        json!({ "bytes": hidden.bytes, "per": extent, "purpose": purpose })
    });
    json!({
        "program": program.name().as_str(),
        "nodes": schedule.node_count(),
        "segments": segments.collect::<Vec<_>>(),
        "hidden": hidden.collect::<Vec<_>>(),
        "hidden_bytes": grid.map(|grid| total_bytes(schedule, program, grid)),
    })
}
