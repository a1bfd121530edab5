//! All figures, for programs. Times are in nanoseconds.

use super::Report;
use crate::compile::Compile;
use crate::measure::{Row, median};
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
        "all_equal": report.is_right(),
    })
}

/// One kernel. Single times are left out where there are thousands.
fn kernel(row: &Row, many: usize, with_times: bool) -> Value {
    let timing = |timing: &crate::measure::Timing| {
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
    json!({
        "name": row.name,
        "size": row.size,
        "ratio_1": row.ratio("vyre", 1),
        "ratio": row.ratio("vyre", many),
        "speed_up_vyre": row.speed_up("vyre", many),
        "speed_up_rust": row.speed_up("rust", many),
        "speed_up_quotient": row.scaling(many),
        "timings": row.timings.iter().map(timing).collect::<Vec<_>>(),
        "skipped": row.skipped.iter().map(|(name, why)| json!({ "platform": name, "why": why })).collect::<Vec<_>>(),
    })
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
    })
}

fn nanoseconds(time: Duration) -> Value {
    Value::from(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
