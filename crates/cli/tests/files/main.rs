//! Every `.vyre` file under `tests/files` and `examples` is a test. CONTRIBUTING.md describes the headers.
//!
//! A file runs on the reference under several schedules, as it is written and as it is raised from its flat form,
//! and on the CPU with several numbers of threads; its printed text and wire form must give it back. `cargo test -p vyre-cli --test files -- --bless` rewrites what is expected; a word
//! after it chooses files, as for any test.

mod header;
mod runs;

use header::{Finding, Header};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use vyre_foundation::diagnostic::{Severity, Style};
use vyre_foundation::{Diagnostics, Program, text};

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
        match (runs::check(&program, run), bless) {
            (Ok(()), _) => {}
            (Err(_), true) => runs::bless(&program, run, &mut lines)?,
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
