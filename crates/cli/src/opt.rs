//! `vyre opt`: what the optimizer makes of a program.

use crate::args::{Float, OptArgs};
use crate::failure::Failure;
use crate::print;
use crate::run;
use crate::source::Source;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use vyre_driver::{Optimization, Timing};
use vyre_foundation::Program;
use vyre_lower::{Edit, Kernel, raise, rebuild};
use vyre_self_substrate::rules::RULES;
use vyre_self_substrate::{Device, OnDevice, Options, Pass, Stats, optimize_watched};

pub(crate) fn command(args: &OptArgs) -> ExitCode {
    match opt(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(args.json);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn opt(args: &OptArgs) -> Result<(), Failure> {
    let source = Source::read(&args.file)?;
    let unit = source.unit(false)?;
    let kernel = unit.kernel();
    let mut dumps = Dumps::begin(args.dump.as_deref())?;
    dumps.write("lowered", || raise(kernel));
    let watch = |pass: &Pass, edit: &Edit| dumps.write(pass.name, || raise(&rebuild(kernel, edit)));
    let optimized = match args.backend {
        None => optimize_watched(kernel, &Options { fuel: args.opt_fuel }, watch),
        Some(backend) => {
            Device::new(run::start(backend, Float::Exact)?).optimize(kernel, Optimization::On)?
        }
    };
    let program = raise(&optimized.kernel);
    dumps.write("optimized", || program.clone());
    dumps.written?;
    if args.json {
        return print::out(&format!("{}\n", as_json(&optimized.stats, &program)));
    }
    if args.stats {
        return print::out(&table(&optimized.stats));
    }
    if args.diff {
        return print::out(&difference(kernel, &program, std::io::stdout().is_terminal()));
    }
    print::out(&program.to_string())
}

/// The program after each pass, as files of a folder, where that is wanted.
struct Dumps<'a> {
    folder: Option<&'a Path>,
    count: usize,
    /// What went wrong first.
    written: Result<(), Failure>,
}

impl<'a> Dumps<'a> {
    /// Makes the folder, and removes what an earlier run has left there: it would look like part of this one.
    fn begin(folder: Option<&'a Path>) -> Result<Dumps<'a>, Failure> {
        if let Some(folder) = folder {
            let prepared = std::fs::create_dir_all(folder).and_then(|()| remove_dumps(folder));
            prepared.map_err(|error| Failure::Unwritable { path: folder.to_owned(), error })?;
        }
        Ok(Dumps { folder, count: 0, written: Ok(()) })
    }

    fn write(&mut self, name: &str, program: impl FnOnce() -> Program) {
        let (Some(folder), Ok(())) = (self.folder, &self.written) else { return };
        let path = folder.join(format!("{:02}-{name}.vyre", self.count));
        self.count += 1;
        self.written =
            std::fs::write(&path, program().to_string()).map_err(|error| Failure::Unwritable { path, error });
    }
}

fn remove_dumps(folder: &Path) -> std::io::Result<()> {
    const NAMES: [&str; 5] = ["lowered", "rows", "items", "needs", "optimized"];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".vyre"));
        let is_dump = name.and_then(|name| name.split_once('-')).is_some_and(|(number, name)| {
            number.bytes().all(|digit| digit.is_ascii_digit()) && NAMES.contains(&name)
        });
        if is_dump {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The changes by what made them, those that were made.
fn changes(stats: &Stats) -> Vec<(&'static str, usize)> {
    let all = [
        ("operands in order", stats.canonicalised),
        ("constants folded", stats.folded),
        ("equal rows", stats.merged),
        ("equal loads", stats.loads),
        ("branches decided", stats.branches),
        ("loops of at most one round", stats.loops),
        ("values carried for nothing", stats.carried),
    ];
    let rules = RULES.iter().zip(&stats.fired).map(|(rule, fired)| (rule.name, *fired));
    all.into_iter().chain(rules).filter(|(_, count)| *count > 0).collect()
}

fn table(stats: &Stats) -> String {
    let mut text = format!("{:<10}{:>10}{:>10}{:>15}\n", "pass", "rows", "items", "time");
    let [rows, items] = stats.before;
    let _ = writeln!(text, "{:<10}{rows:>10}{items:>10}", "lowered");
    for Pass { name, rows, items, time } in &stats.passes {
        let micros = time.as_secs_f64() * 1e6;
        let _ = writeln!(text, "{name:<10}{rows:>10}{items:>10}{micros:>12.1} us");
    }
    let [rows, items] = stats.after;
    let _ = writeln!(text, "{:<10}{rows:>10}{items:>10}", "optimized");
    text.push_str(&place(stats.device.as_ref()));
    let changes = changes(stats);
    if !changes.is_empty() {
        let _ = writeln!(text, "\n{:<40}{:>10}", "change", "times");
    }
    for (name, count) in changes {
        let _ = writeln!(text, "{name:<40}{count:>10}");
    }
    text
}

/// Where the passes ran, and for how long.
fn place(device: Option<&OnDevice>) -> String {
    let Some(OnDevice { backend, route, timing }) = device else { return "\non the host\n".to_owned() };
    let micros = |time: Duration| format!("{:.1} us", time.as_secs_f64() * 1e6);
    let mut text = format!("\non {backend}, {route} route");
    if let Some(Timing { total, prepare, device }) = timing {
        let _ = write!(text, ": {} to prepare", micros(*prepare));
        if let Some(device) = device {
            let transfer = total.saturating_sub(*prepare).saturating_sub(*device);
            let _ = write!(text, ", {} on the device, {} in transfer", micros(*device), micros(transfer));
        }
    }
    text + "\n"
}

fn as_json(stats: &Stats, program: &Program) -> Value {
    let passes = stats.passes.iter().map(|Pass { name, rows, items, time }| {
        json!({ "name": name, "rows": rows, "items": items, "micros": time.as_secs_f64() * 1e6 })
    });
    let changes = changes(stats).into_iter().map(|(name, count)| (name.to_owned(), json!(count)));
    json!({
        "before": { "rows": stats.before[0], "items": stats.before[1] },
        "after": { "rows": stats.after[0], "items": stats.after[1] },
        "passes": passes.collect::<Vec<_>>(),
        "changes": Value::Object(changes.collect()),
        "backend": stats.device.map(|device| device.backend),
        "route": stats.device.map(|device| device.route.to_string()),
        "program": program.to_string(),
    })
}

/// The lines that changed, with a few around them.
fn difference(before: &Kernel, after: &Program, colored: bool) -> String {
    let (before, after) = (raise(before).to_string(), after.to_string());
    let diff = TextDiff::from_lines(&before, &after);
    let mut text = String::new();
    for (i, group) in diff.grouped_ops(3).iter().enumerate() {
        if i > 0 {
            text.push_str("...\n");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, color) = match change.tag() {
                ChangeTag::Delete => ('-', "\x1b[31m"),
                ChangeTag::Insert => ('+', "\x1b[32m"),
                ChangeTag::Equal => (' ', ""),
            };
            let line = change.value().trim_end_matches('\n');
            let _ = match colored && !color.is_empty() {
                true => writeln!(text, "{color}{sign}{line}\x1b[0m"),
                false => writeln!(text, "{sign}{line}"),
            };
        }
    }
    text
}
