//! A table for the terminal.

use super::{Report, gpu, limits, optimisation};
use crate::compile::Compile;
use crate::limits::Machine;
use crate::measure::{Row, Timing, median};
use crate::optimizer::Passes;
use crate::optimizer::spirv::{self, Beside};
use std::fmt::Write as _;
use std::time::Duration;

/// The whole report as text.
pub(crate) fn render(report: &Report) -> String {
    let mut text = String::from("\n");
    if !report.rows.is_empty() {
        kernels(&mut text, report);
    }
    if let Some(machine) = &report.machine {
        against_limits(&mut text, report, machine);
    }
    if let Some((row, barriers)) = &report.gridsync {
        grid_barriers(&mut text, row, *barriers);
    }
    if let Some(dispatch) = &report.dispatch {
        launches(&mut text, dispatch);
    }
    if let Some(compile) = &report.compile {
        compilation(&mut text, compile);
    }
    if !report.passes.is_empty() {
        passes(&mut text, &report.passes);
        beside_spirv(&mut text, &report.beside);
    }
    if !report.gains.is_empty() {
        optimisation::table(&mut text, &report.gains);
    }
    if !report.gpu.is_empty() {
        by_hand(&mut text, &report.gpu);
    }
    verdict(&mut text, report);
    text
}

fn kernels(text: &mut String, report: &Report) {
    let many = report.setting.threads;
    let ran = |name: &str| report.rows.iter().any(|row| row.timing(name, many).is_some());
    let others: Vec<&str> =
        report.setting.platforms.iter().map(|(name, _)| *name).skip(2).filter(|name| ran(name)).collect();
    let mut head: Vec<String> =
        ["kernel", "size", "vyre 1t", "rust 1t", "ratio 1t"].map(str::to_owned).into();
    if many > 1 {
        head.extend(["vyre", "rust", "ratio"].map(|what| format!("{what} {many}t")));
        head.extend(["vyre gain", "rust gain", "quotient"].map(str::to_owned));
    }
    head.extend(others.iter().map(|name| (*name).to_owned()));
    let mut lines = vec![head];
    for row in &report.rows {
        let mut line = vec![row.name.to_owned(), row.size.clone()];
        let mut threads = vec![1, many];
        threads.dedup();
        for threads in threads {
            line.push(milliseconds(row.best("vyre", threads)));
            line.push(milliseconds(row.best("rust", threads)));
            line.push(factor(row.ratio("vyre", threads)));
        }
        if many > 1 {
            line.push(factor(row.speed_up("vyre", many)));
            line.push(factor(row.speed_up("rust", many)));
            line.push(factor(row.scaling(many)));
        }
        line.extend(others.iter().map(|name| milliseconds(row.best(name, many))));
        lines.push(line);
    }
    text.push_str(
        "Times in ms, best of all repetitions. `1t`: one thread. Gain: how many times faster than with one\n",
    );
    text.push_str("thread; quotient: vyre's gain by Rust's.\n\n");
    align(text, &lines);
}

/// vyre against what the machine can do.
fn against_limits(text: &mut String, report: &Report, machine: &Machine) {
    let _ = writeln!(text, "\nAgainst the machine ({}), in ms:\n", limits::about(machine));
    align(text, &limits::lines(&limits::limits(&report.rows, machine)));
}

/// Lines of cells as columns: the first two to the left, figures to the right.
pub(super) fn align(text: &mut String, lines: &[Vec<String>]) {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (number, line) in lines.iter().enumerate() {
        let cell = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        };
        let cells: Vec<String> = line.iter().enumerate().map(cell).collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
        if number == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            let _ = writeln!(text, "{}", rules.join("  "));
        }
    }
}

/// The time of a run by its barriers: the work of the little segments is in it.
fn grid_barriers(text: &mut String, row: &Row, barriers: usize) {
    let _ = writeln!(
        text,
        "\nGrid barriers ({}), median and best of a segment with its barrier in us:",
        row.size
    );
    for timing in &row.timings {
        let name = if timing.platform == "vyre" { "vyre native" } else { timing.platform };
        let name = format!("{name} {}t", timing.threads);
        let each = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e6 / barriers as f64);
        let (median, best) = (each(timing.median()), each(timing.best()));
        let _ = writeln!(text, "  {name:<14} {median:>10} {best:>10}");
    }
    for (platform, why) in &row.skipped {
        let _ = writeln!(text, "  {platform:<14} {:>10}: {why}", "skipped");
    }
}

fn launches(text: &mut String, row: &Row) {
    text.push_str("\nLaunch of one workgroup, median and best in us:\n");
    for timing in &row.timings {
        let name = format!("{} {}t", timing.platform, timing.threads);
        let (median, best) = (microseconds(timing.median()), microseconds(timing.best()));
        let _ = writeln!(text, "  {name:<10} {median:>10} {best:>10}");
    }
}

fn compilation(text: &mut String, compile: &Compile) {
    text.push_str("\nCompiling saxpy with vyre, median and best in ms:\n");
    let total = [("text to code", &compile.total)];
    for (name, times) in compile.parts.iter().map(|(name, times)| (*name, times)).chain(total) {
        let best = times.iter().copied().min();
        let _ = writeln!(
            text,
            "  {name:<12} {:>10} {:>10}",
            milliseconds(Some(median(times))),
            milliseconds(best)
        );
    }
    text.push_str("\nFrom the text of saxpy to a first result, median and best in ms:\n");
    for (name, times) in &compile.first_result {
        let best = times.iter().copied().min();
        let _ = writeln!(
            text,
            "  {name:<12} {:>10} {:>10}",
            milliseconds(Some(median(times))),
            milliseconds(best)
        );
    }
    text.push_str("\nFrom text to code by the operations of a program, median and best in ms: in a row; in branches in a loop; of every kind\n");
    for (operations, times) in &compile.sizes {
        let cell = |times: &[Duration]| {
            let best = times.iter().copied().min();
            format!("{:>10} {:>10}", milliseconds(Some(median(times))), milliseconds(best))
        };
        let cells = times.each_ref().map(|times| cell(times));
        let _ = writeln!(text, "  {operations:<12} {}", cells.join("    "));
    }
}

/// All passes of the optimizer on the host and on the device.
fn passes(text: &mut String, all: &[Passes]) {
    let mut head = vec!["rows".to_owned(), "levels".to_owned(), "host".to_owned()];
    for (threads, _) in all.iter().take(1).flat_map(|passes| &passes.device) {
        head.extend([format!("device {threads}t"), "dispatch".to_owned()]);
    }
    head.extend(["not improved", "chosen", "M rows/s", "MB/M host", "device"].map(str::to_owned));
    let mut lines = vec![head];
    for passes in all {
        let best = |times: &[Duration]| milliseconds(times.iter().copied().min());
        let mut line = vec![passes.rows.to_string(), passes.levels.to_string(), best(&passes.host)];
        for (_, times) in &passes.device {
            line.extend([0, 1].map(|k: usize| milliseconds(times.iter().map(|time| time[k]).min())));
        }
        line.extend([best(&passes.not_improved), best(&passes.chosen)]);
        let chosen = passes.chosen.iter().min().map_or(f64::NAN, Duration::as_secs_f64);
        line.push(format!("{:.2}", passes.rows as f64 / chosen / 1e6));
        line.extend(passes.bytes.map(|bytes| format!("{:.0}", bytes as f64 / passes.rows as f64)));
        lines.push(line);
    }
    text.push_str("\nAll passes of the optimizer from kernel to kernel, best in ms: on the host; on the device, and there the\n");
    text.push_str("dispatch alone, also by the optimizer's program as it is written; where the optimizer itself chooses\n\n");
    align(text, &lines);
}

/// All passes on the host beside those of `spirv-opt`.
fn beside_spirv(text: &mut String, all: &[Beside]) {
    let taken = |rows: usize, time: Duration| {
        let millions = rows as f64 / time.as_secs_f64().max(1e-9) / 1e6;
        format!("{} ms, {millions:.2} M rows/s", milliseconds(Some(time)))
    };
    text.push_str("\nAll passes over rows that are all needed, best, beside four of spirv-opt without reading and writing:\n");
    for Beside { rows: [before, after], ours, theirs } in all {
        let ours = taken(*before, ours.iter().copied().min().unwrap_or_default());
        let theirs = match theirs {
            None => "is skipped".to_owned(),
            Some(theirs) => theirs
                .alone()
                .map_or(format!("more than {} s", spirv::LIMIT.as_secs()), |time| taken(*before, time)),
        };
        let _ = writeln!(text, "  {before:>8} rows to {after:>7}: vyre {ours}; spirv-opt {theirs}");
    }
}

/// vyre on wgpu against wgpu by hand.
fn by_hand(text: &mut String, rows: &[(Row, Option<f64>)]) {
    let head =
        ["kernel", "size", "by hand", "unchecked", "vyre", "ratio", "median", "limit", "", "exact", "ratio"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for (row, limit) in rows {
        let time = |platform: &str| milliseconds(row.of(platform).map(Timing::best));
        let counted = gpu::counted(row);
        let ratios = gpu::ratios(row, counted);
        let verdict = match gpu::is_within(row, *limit) {
            Some(false) => "over",
            _ => "",
        };
        // Floats as exact as elsewhere are a column of their own only where there is another way.
        let exact = (counted != gpu::EXACT).then(|| gpu::ratios(row, gpu::EXACT)).flatten();
        lines.push(vec![
            row.name.to_owned(),
            row.size.clone(),
            time(gpu::BY_HAND),
            time(gpu::UNCHECKED),
            time(counted),
            factor(ratios.map(|ratios| ratios.best)),
            factor(ratios.map(|ratios| ratios.median)),
            factor(*limit),
            verdict.to_owned(),
            if exact.is_some() { time(gpu::EXACT) } else { "-".to_owned() },
            factor(exact.map(|ratios| ratios.best)),
        ]);
    }
    text.push_str("\nvyre on wgpu against wgpu by hand, best in ms. Ratio: vyre's time by that by hand, of the best and of\n");
    text.push_str("the medians. Floats are the device's; `exact` is vyre with those of the reference.\n\n");
    align(text, &lines);
}

fn verdict(text: &mut String, report: &Report) {
    text.push('\n');
    let mut all_equal = true;
    for row in report.all_rows() {
        for (platform, why) in &row.skipped {
            let _ = writeln!(text, "{} cannot run {}: {why}", platform, row.name);
        }
        for timing in &row.timings {
            if let Some(difference) = &timing.differs {
                all_equal = false;
                let (platform, threads) = (timing.platform, timing.threads);
                let _ = writeln!(
                    text,
                    "DIFFERENT: {} on {platform} with {threads} threads, {difference}",
                    row.name
                );
            }
        }
    }
    if all_equal {
        text.push_str("All results are as they should be, byte for byte.\n");
    }
}

pub(super) fn milliseconds(time: Option<Duration>) -> String {
    let Some(time) = time else { return "-".to_owned() };
    let milliseconds = time.as_secs_f64() * 1e3;
    match milliseconds {
        100.0.. => format!("{milliseconds:.0}"),
        10.0.. => format!("{milliseconds:.1}"),
        1.0.. => format!("{milliseconds:.2}"),
        _ => format!("{milliseconds:.3}"),
    }
}

fn microseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e6)
}

pub(super) fn factor(factor: Option<f64>) -> String {
    factor.map_or("-".to_owned(), |factor| format!("{factor:.2}"))
}
