//! `vyre check`: every diagnostic of the files.

use crate::args::CheckArgs;
use crate::failure::{Failure, diagnostic_json, read_text, style};
use crate::print;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use vyre_foundation::diagnostic::Severity;
use vyre_foundation::{Diagnostics, Program};

/// Everything that is wrong or doubtful in a text.
fn diagnose(text: &str) -> Diagnostics {
    match Program::parse(text) {
        Ok(program) => program.check(),
        Err(found) => found,
    }
}

pub(crate) fn command(args: &CheckArgs) -> ExitCode {
    match check(args) {
        Ok(errors) => ExitCode::from(u8::from(errors > 0)),
        Err(failure) => {
            failure.print(false);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Checks the files and gives the number of errors.
fn check(args: &CheckArgs) -> Result<usize, Failure> {
    let (mut errors, mut warnings) = (0, 0);
    let mut files = Vec::new();
    for path in &args.files {
        let text = match read_text(path) {
            Ok(text) => text,
            Err(failure) => {
                errors += 1;
                if args.json {
                    files.push(unreadable(path, &failure));
                } else {
                    failure.print(false);
                }
                continue;
            }
        };
        let found = diagnose(&text);
        errors += found.iter().filter(|d| d.severity() == Severity::Error).count();
        warnings += found.iter().filter(|d| d.severity() == Severity::Warning).count();
        if args.json {
            files.push(file_json(path, &text, &found));
        } else {
            print::err(&found.render(&path.display().to_string(), &text, style()));
        }
    }
    if args.json {
        print::out(&format!("{}\n", json!({ "errors": errors, "warnings": warnings, "files": files })))?;
    } else {
        let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let checked = plural(args.files.len(), "file");
        print::err(&format!(
            "{checked} checked: {}, {}\n",
            plural(errors, "error"),
            plural(warnings, "warning")
        ));
    }
    Ok(errors)
}

fn unreadable(path: &Path, failure: &Failure) -> Value {
    let errors = failure.errors().into_iter().map(|error| {
        let mut value = json!(error);
        value["severity"] = "error".into();
        value
    });
    json!({ "file": path.display().to_string(), "diagnostics": errors.collect::<Vec<_>>() })
}

fn file_json(path: &Path, text: &str, found: &Diagnostics) -> Value {
    let diagnostics: Vec<Value> = found
        .iter()
        .map(|diagnostic| {
            let mut value = json!(diagnostic_json(diagnostic, text));
            value["severity"] = match diagnostic.severity() {
                Severity::Error => "error".into(),
                Severity::Warning => "warning".into(),
            };
            value["path"] = diagnostic.place.path.as_str().into();
            value
        })
        .collect();
    json!({ "file": path.display().to_string(), "diagnostics": diagnostics })
}
