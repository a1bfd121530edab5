//! All figures, for programs. Times are in nanoseconds.

use super::{Report, gpu, optimisation};
use crate::compile::Compile;
use crate::measure::{Row, Timing, median};
use crate::optimizer::Passes;
use crate::optimizer::spirv::{self, Beside};
use serde_json::{Value, json};
use std::time::Duration;

/// The whole report as one object.
pub(crate) fn render(report: &Report) -> Value {
    let setting = &report.setting;
    let platforms = setting.platforms.iter().map(|(name, about)| json!({ "name": name, "about": about }));
    let many = setting.threads;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "scale": setting.scale,
        "repetitions": setting.repetitions,
        "threads": many,
        "cores": setting.cores,
        "load": setting.load,
        "native": setting.native,
        "platforms": platforms.collect::<Vec<_>>(),
        "kernels": report.rows.iter().map(|row| kernel(row, many, true)).collect::<Vec<_>>(),
        "gridsync": report.gridsync.as_ref().map(|(row, barriers)| {
            json!({ "barriers": barriers, "times": kernel(row, many, true) })
        }),
        "dispatch": report.dispatch.as_ref().map(|row| kernel(row, many, false)),
        "compile": report.compile.as_ref().map(compilation),
        "optimizer": report.passes.iter().map(passes).collect::<Vec<_>>(),
        "optimisation": optimisation::figures(&report.gains),
        "beside_spirv_opt": report.beside.iter().map(beside).collect::<Vec<_>>(),
        "gpu": report.gpu.iter().map(|(row, limit)| versus(row, *limit)).collect::<Vec<_>>(),
        "all_equal": report.is_right(),
    })
}

/// One kernel. Single times are left out where there are thousands.
pub(super) fn kernel(row: &Row, many: usize, with_times: bool) -> Value {
    json!({
        "name": row.name,
        "size": row.size,
        "ratio_1": row.ratio("vyre", 1),
        "ratio": row.ratio("vyre", many),
        "speed_up_vyre": row.speed_up("vyre", many),
        "speed_up_rust": row.speed_up("rust", many),
        "speed_up_quotient": row.scaling(many),
        "timings": timings(row, with_times),
        "skipped": skipped(row),
    })
}

/// vyre on wgpu against wgpu by hand.
fn versus(row: &Row, limit: Option<f64>) -> Value {
    let ratios = |ratios: Option<gpu::Ratios>| {
        ratios.map(|ratios| {
            json!({ "best": ratios.best, "median": ratios.median, "to_unchecked": ratios.to_unchecked })
        })
    };
    json!({
        "name": row.name,
        "size": row.size,
        "ratio": ratios(gpu::ratios(row, gpu::counted(row))),
        "ratio_exact": ratios(gpu::ratios(row, gpu::EXACT)),
        "limit": limit,
        "within_limit": gpu::is_within(row, limit),
        "timings": timings(row, true),
        "skipped": skipped(row),
    })
}

fn timings(row: &Row, with_times: bool) -> Vec<Value> {
    let timing = |timing: &Timing| {
        let mut value = json!({
            "platform": timing.platform,
            "threads": timing.threads,
            "best": nanoseconds(timing.best()),
            "median": nanoseconds(timing.median()),
            "differs": timing.differs,
        });
        if with_times {
            value["times"] = timing.times.iter().copied().map(nanoseconds).collect();
        }
        value
    };
    row.timings.iter().map(timing).collect()
}

fn skipped(row: &Row) -> Vec<Value> {
    row.skipped.iter().map(|(name, why)| json!({ "platform": name, "why": why })).collect()
}

fn compilation(compile: &Compile) -> Value {
    let summary = |times: &[Duration]| {
        json!({
            "best": nanoseconds(times.iter().copied().min().unwrap_or_default()),
            "median": nanoseconds(median(times)),
        })
    };
    let named = |times: &[(&'static str, Vec<Duration>)]| -> Value {
        times.iter().map(|(name, times)| ((*name).to_owned(), summary(times))).collect()
    };
    json!({
        "text_to_code": summary(&compile.total),
        "parts": named(&compile.parts),
        "first_result": named(&compile.first_result),
        "sizes": compile.sizes.iter().map(|(operations, [straight, branching, mixed])| json!({
            "operations": operations,
            "straight": summary(straight),
            "branching": summary(branching),
            "mixed": summary(mixed),
        })).collect::<Vec<_>>(),
    })
}

fn passes(of: &Passes) -> Value {
    let all = |times: &[Duration]| times.iter().map(|time| nanoseconds(*time)).collect::<Vec<_>>();
    let device = of.device.iter().map(|(threads, times)| {
        let part = |k: usize| times.iter().map(|time| nanoseconds(time[k])).collect::<Vec<_>>();
        json!({ "threads": threads, "times": part(0), "dispatch": part(1) })
    });
    json!({
        "rows": of.rows,
        "levels": of.levels,
        "host": all(&of.host),
        "device": device.collect::<Vec<_>>(),
        "not_improved": all(&of.not_improved),
        "chosen": all(&of.chosen),
        "bytes": of.bytes,
    })
}

fn beside(of: &Beside) -> Value {
    json!({
        "rows": of.rows[0],
        "rows_after": of.rows[1],
        "vyre": nanoseconds(of.ours.iter().copied().min().unwrap_or_default()),
        "spirv_opt": of.theirs.as_ref().map(|taken| json!({
            "nothing": nanoseconds(taken.nothing),
            "passes": taken.passes.map(nanoseconds),
            "passes_alone": taken.alone().map(nanoseconds),
            "limit": nanoseconds(spirv::LIMIT),
        })),
    })
}

pub(super) fn nanoseconds(time: Duration) -> Value {
    Value::from(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
