//! What the optimizer is worth, for people and for programs.

use super::json::{kernel, nanoseconds};
use super::table::{align, factor, milliseconds};
use crate::measure::median;
use crate::optimisation::{
    FASTER, FEWER_OPERATIONS, Gain, LONGER_TO_COMPILE, OPTIMISED, PLAIN, count, geometric_mean,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// What the set reaches in the geometric mean.
struct Means {
    operations: Option<f64>,
    compile: Option<f64>,
    /// By the best times and by the medians.
    run: [Option<f64>; 2],
    instructions: Option<f64>,
}

impl Means {
    fn of(gains: &[Gain]) -> Means {
        let run = |k: usize| geometric_mean(gains.iter().filter_map(|gain| Some(gain.faster()?[k])));
        Means {
            operations: geometric_mean(gains.iter().map(Gain::fewer_operations)),
            compile: geometric_mean(gains.iter().filter_map(Gain::longer_to_compile)),
            run: [run(0), run(1)],
            instructions: geometric_mean(gains.iter().filter_map(Gain::fewer_instructions)),
        }
    }
}

/// Whether it executes more instructions than as it was written.
fn is_more(gain: &Gain) -> Option<bool> {
    gain.fewer_instructions().map(|fewer| fewer * count::TOLERANCE < 1.0)
}

/// A table of all kernels.
pub(super) fn table(text: &mut String, gains: &[Gain]) {
    text.push_str("\nThe optimisation set, as it was written and optimised: operations of the reference; from flat form to\n");
    text.push_str("code on cpu, best in ms, optimising included; run on one thread, best in ms, with the gain of the best and\n");
    text.push_str("of the medians; instructions of a launch, in thousands.\n\n");
    let head = [
        "kernel",
        "size",
        "operations",
        "optimised",
        "fewer",
        "compile",
        "optimised",
        "longer",
        "run",
        "optimised",
        "gain",
        "median",
        "instr.",
        "optimised",
        "fewer",
        "",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for gain in gains {
        let time = |platform: &str| milliseconds(gain.row.of(platform).map(|timing| timing.best()));
        let compile = |k: usize| milliseconds(gain.compile[k].iter().copied().min());
        let instructions =
            |k: usize| gain.instructions.map_or("-".to_owned(), |counts| (counts[k] / 1000).to_string());
        lines.push(vec![
            gain.row.name.to_owned(),
            gain.row.size.clone(),
            gain.operations[0].to_string(),
            gain.operations[1].to_string(),
            factor(Some(gain.fewer_operations())),
            compile(0),
            compile(1),
            factor(gain.longer_to_compile()),
            time(PLAIN),
            time(OPTIMISED),
            factor(gain.faster().map(|faster| faster[0])),
            factor(gain.faster().map(|faster| faster[1])),
            instructions(0),
            instructions(1),
            gain.fewer_instructions().map_or("-".to_owned(), |fewer| format!("{fewer:.3}")),
            if is_more(gain) == Some(true) { "MORE" } else { "" }.to_owned(),
        ]);
    }
    align(text, &lines);
    means(text, gains);
}

/// The means with their limits.
fn means(text: &mut String, gains: &[Gain]) {
    let Means { operations, compile, run, instructions } = Means::of(gains);
    let miss = |is_missed: bool| if is_missed { "  MISSED" } else { "" };
    let at_least = |found: Option<f64>, limit: f64| miss(found.is_some_and(|found| found < limit));
    let at_most = |found: Option<f64>, limit: f64| miss(found.is_some_and(|found| found > limit));
    let _ = writeln!(text, "\nGeometric means of {} kernels, with their limits:", gains.len());
    let _ = writeln!(
        text,
        "  fewer operations   {:>6}  at least {FEWER_OPERATIONS:.1}{}",
        factor(operations),
        at_least(operations, FEWER_OPERATIONS)
    );
    let _ = writeln!(
        text,
        "  longer to compile  {:>6}  at most {LONGER_TO_COMPILE:.1}{}",
        factor(compile),
        at_most(compile, LONGER_TO_COMPILE)
    );
    let _ = writeln!(
        text,
        "  faster             {:>6}  at least {FASTER:.1}{}  (medians {})",
        factor(run[0]),
        at_least(run[0], FASTER),
        factor(run[1])
    );
    let more = gains.iter().filter(|gain| is_more(gain) == Some(true)).count();
    let counted = gains.iter().filter(|gain| gain.instructions.is_some()).count();
    if counted == 0 {
        text.push_str("  instructions were not counted\n");
    } else {
        let fewer = factor(instructions);
        let _ = writeln!(
            text,
            "  fewer instructions {fewer:>6}  {more} kernels with more, at most 0{}",
            miss(more > 0)
        );
    }
}

/// All figures.
pub(super) fn figures(gains: &[Gain]) -> Option<Value> {
    let summary = |times: &[Duration]| {
        let best = times.iter().copied().min().unwrap_or_default();
        json!({ "best": nanoseconds(best), "median": nanoseconds(median(times)) })
    };
    let one = |gain: &Gain| {
        json!({
            "name": gain.row.name,
            "operations": gain.operations,
            "fewer_operations": gain.fewer_operations(),
            "compile": summary(&gain.compile[0]),
            "optimise_and_compile": summary(&gain.compile[1]),
            "optimise": summary(&gain.optimize),
            "longer_to_compile": gain.longer_to_compile(),
            "faster": gain.faster().map(|[best, median]| json!({ "best": best, "median": median })),
            "instructions": gain.instructions,
            "fewer_instructions": gain.fewer_instructions(),
            "more_instructions": is_more(gain),
            "run": kernel(&gain.row, 1, true),
        })
    };
    let Means { operations, compile, run, instructions } = Means::of(gains);
    (!gains.is_empty()).then(|| {
        json!({
            "fewer_operations": { "mean": operations, "at_least": FEWER_OPERATIONS },
            "longer_to_compile": { "mean": compile, "at_most": LONGER_TO_COMPILE },
            "faster": { "mean": run[0], "mean_of_medians": run[1], "at_least": FASTER },
            "fewer_instructions": { "mean": instructions },
            "kernels": gains.iter().map(one).collect::<Vec<_>>(),
        })
    })
}
