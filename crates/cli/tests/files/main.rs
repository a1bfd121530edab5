//! Every `.vyre` file under `tests/files` and `examples` is a test. CONTRIBUTING.md describes the headers.
//!
//! A file runs on the reference under several schedules, from its text and from the text and wire form that it
//! is printed and encoded to. `cargo test -p vyre-cli --test files -- --bless` rewrites what is expected; a word
//! after it chooses files, as for any test.

mod header;

use header::{Finding, Header, Run};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use vyre_cli::failure::Failure;
use vyre_cli::{run, values};
use vyre_foundation::diagnostic::{Severity, Style};
use vyre_foundation::{Diagnostics, Program, text};
use vyre_reference::{Error, Options, Outcome, Schedule};

fn main() {
    let (bless, words): (Vec<_>, Vec<_>) = std::env::args().partition(|word| word == "--bless");
    let arguments = Arguments::from_iter(words);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["tests/files", "examples"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    assert!(files.len() > 150, "the test files are missing: found {}", files.len());
    let trials = files.into_iter().map(|path| {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let bless = !bless.is_empty();
        Trial::test(name.clone(), move || check(&path, &name, bless).map_err(Failed::from))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder of tests can be read") {
        let path = entry.expect("an entry of the folder of tests").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "vyre") {
            files.push(path);
        }
    }
}

fn check(path: &Path, name: &str, bless: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let header = Header::parse(&text)?;
    let parsed = Program::parse(&text);
    let found = match &parsed {
        Ok(program) => program.check(),
        Err(found) => found.clone(),
    };
    check_findings(&text, &found, Severity::Error, &header.errors)?;
    check_findings(&text, &found, Severity::Warning, &header.warnings)?;
    check_picture(path, name, &text, &found, bless)?;
    let Ok(program) = parsed else { return Ok(()) };
    let free_layout = ["tests/files/text", "tests/files/errors"].iter().any(|free| name.starts_with(free));
    if !free_layout && text::format(&text).as_ref() != Ok(&text) {
        return Err("the file is not in canonical layout: use `vyre fmt`".to_owned());
    }
    let printed = program.to_string();
    if Program::parse(&printed).as_ref() != Ok(&program) {
        return Err(format!("the printed program is another one:\n{printed}"));
    }
    if Program::from_wire(&program.to_wire()).as_ref() != Ok(&program) {
        return Err("the program changes on its way through the wire form".to_owned());
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut problems = Vec::new();
    for run in header.runs.iter().rev() {
        match (check_run(&program, run), bless) {
            (Ok(()), _) => {}
            (Err(_), true) => bless_run(&program, run, &mut lines)?,
            (Err(problem), false) => problems.push(format!("line {}: {problem}", run.line)),
        }
    }
    let blessed = lines.join("\n") + "\n";
    if bless && blessed != text {
        std::fs::write(path, blessed).map_err(|error| error.to_string())?;
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// The rendered diagnostics must be those in the file beside the program.
fn check_picture(
    path: &Path,
    name: &str,
    text: &str,
    found: &Diagnostics,
    bless: bool,
) -> Result<(), String> {
    let picture = path.with_extension("stderr");
    let rendered = found.render(name, text, Style::Plain);
    let expected = std::fs::read_to_string(&picture).unwrap_or_default();
    if rendered == expected {
        return Ok(());
    }
    if bless {
        let written = if rendered.is_empty() {
            std::fs::remove_file(&picture)
        } else {
            std::fs::write(&picture, &rendered)
        };
        return written.map_err(|error| error.to_string());
    }
    Err(format!("expected these diagnostics ({}):\n{expected}\nfound:\n{rendered}", picture.display()))
}

fn check_findings(
    text: &str,
    found: &Diagnostics,
    severity: Severity,
    expected: &[Finding],
) -> Result<(), String> {
    let found: Vec<Finding> = found
        .iter()
        .filter(|diagnostic| diagnostic.severity() == severity)
        .map(|diagnostic| {
            let at = diagnostic.place.span.map(|span| position(text, span.start as usize));
            Finding { code: diagnostic.code().to_owned(), at }
        })
        .collect();
    let same = |(a, b): (&Finding, &Finding)| a.code == b.code && (a.at.is_none() || a.at == b.at);
    if expected.len() == found.len() && expected.iter().zip(&found).all(same) {
        return Ok(());
    }
    Err(format!("expected {severity:?}s {expected:?}, found {found:?}"))
}

fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..byte];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The schedules that every run must give the same bytes under.
const SCHEDULES: [Schedule; 5] =
    [Schedule::InOrder, Schedule::RoundRobin, Schedule::Reversed, Schedule::Random(1), Schedule::Random(2)];

fn execute(program: &Program, run: &Run, schedule: Schedule) -> Result<Outcome, Failure> {
    let request = run::gather(program, &run.args)?;
    let inputs: Vec<&[u8]> = request.inputs.iter().map(Vec::as_slice).collect();
    let options = Options { schedule, ..request.options };
    Ok(vyre_reference::run(program, &inputs, &options)?)
}

/// The program raised from its flat form, which must come back as the same flat form.
fn raised(program: &Program) -> Result<Program, String> {
    let kernel = vyre_lower::lower(program);
    let raised = vyre_lower::raise(&kernel);
    if let Err(found) = raised.validate() {
        return Err(format!("the raised program is not valid: {found}\n{raised}"));
    }
    // A trap ends its invocation in the raised program as well, next to the condition that says so.
    if program.stats().traps > 0 {
        return Ok(raised);
    }
    let again = vyre_lower::lower(&raised);
    if again != kernel {
        let again = vyre_lower::raise(&again);
        return Err(format!("lowering the raised program gives another kernel:\n{raised}\n{again}"));
    }
    Ok(raised)
}

fn check_run(program: &Program, run: &Run) -> Result<(), String> {
    for schedule in SCHEDULES {
        let outcome = execute(program, run, schedule);
        compare(program, run, outcome).map_err(|problem| format!("{problem} (schedule {schedule:?})"))?;
    }
    let raised = raised(program)?;
    for schedule in SCHEDULES {
        let outcome = execute(&raised, run, schedule);
        compare(program, run, outcome)
            .map_err(|problem| format!("{problem} (schedule {schedule:?}, raised)\n{raised}"))?;
    }
    Ok(())
}

fn compare(program: &Program, run: &Run, outcome: Result<Outcome, Failure>) -> Result<(), String> {
    let outcome = match (outcome, &run.error, &run.trap) {
        (Err(Failure::Run(Error::Trap(trap))), None, Some((tag, value, invocation))) => {
            let same = trap.tag == tag.as_str() && trap.value == *value && trap.invocation == *invocation;
            return if same { Ok(()) } else { Err(format!("found another trap: {trap:?}")) };
        }
        (Err(failure), Some(code), _) if failure.code() == code => return Ok(()),
        (Err(failure), ..) => return Err(format!("[{}] {failure}", failure.code())),
        (Ok(_), Some(code), _) => return Err(format!("expected error {code}, but it ran")),
        (Ok(_), _, Some(trap)) => return Err(format!("expected the trap {trap:?}, but it ran")),
        (Ok(outcome), None, None) => outcome,
    };
    let expected: Vec<&str> = run.outputs.iter().map(|(name, ..)| name.as_str()).collect();
    let found: Vec<&str> = program.outputs().map(|buffer| buffer.name().as_str()).collect();
    if expected != found {
        return Err(format!("expectations for {expected:?}, but the outputs are {found:?}"));
    }
    for ((buffer, bytes), (name, value, line)) in
        program.outputs().zip(&outcome.outputs).zip(run.outputs.iter())
    {
        let expected = values::parse(value, buffer.element()).map_err(|e| format!("line {line}: {e}"))?;
        if expected != *bytes {
            return Err(format!("`{name}` should be {value}, found {}", list(buffer.element(), bytes)));
        }
    }
    if run.passes.is_some_and(|passes| passes != outcome.passes) {
        return Err(format!("found {} passes", outcome.passes));
    }
    if run.converged.is_some() && run.converged != outcome.converged {
        return Err(format!("found converged: {:?}", outcome.converged));
    }
    Ok(())
}

fn list(element: vyre_foundation::Element, bytes: &[u8]) -> String {
    let items = bytes.chunks_exact(element.size()).map(|item| values::show(element, item));
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// Replaces the expectations of a run by what it gives.
fn bless_run(program: &Program, run: &Run, lines: &mut Vec<String>) -> Result<(), String> {
    let mut wanted = Vec::new();
    match execute(program, run, Schedule::InOrder) {
        Ok(outcome) => {
            for (buffer, bytes) in program.outputs().zip(&outcome.outputs) {
                wanted.push(format!("// expect: {} = {}", buffer.name(), list(buffer.element(), bytes)));
            }
            if let Some(converged) = outcome.converged {
                wanted.push(format!("// passes: {}", outcome.passes));
                wanted.push(format!("// converged: {converged}"));
            }
        }
        Err(Failure::Run(Error::Trap(trap))) => {
            wanted.push(format!("// trap: \"{}\" {} {}", trap.tag, trap.value, trap.invocation));
        }
        Err(failure) => wanted.push(format!("// error: {}", failure.code())),
    }
    let is_expectation = |line: &String| {
        let keys = ["// expect:", "// trap:", "// passes:", "// converged:", "// error:"];
        keys.iter().any(|key| line.trim_start().starts_with(key))
    };
    let end = (run.line..lines.len()).find(|&i| !is_expectation(&lines[i])).unwrap_or(lines.len());
    lines.splice(run.line..end, wanted);
    Ok(())
}
