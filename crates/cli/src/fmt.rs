//! `vyre fmt`: canonical layout.

use crate::args::FmtArgs;
use crate::failure::{Failure, read_text};
use crate::print;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use vyre_foundation::text;

pub(crate) fn command(args: &FmtArgs) -> ExitCode {
    let mut worst = 0;
    for path in &args.files {
        match format(path, args.check) {
            Ok(true) => {}
            Ok(false) => {
                print::err(&format!("{} is not in canonical layout\n", path.display()));
                worst = worst.max(1);
            }
            Err(failure) => {
                failure.print(false);
                worst = worst.max(failure.exit_code());
            }
        }
    }
    ExitCode::from(worst)
}

/// Formats one file. Gives whether it is as it should be, now or (with `check`) already.
fn format(path: &Path, check: bool) -> Result<bool, Failure> {
    let from_stdin = path.as_os_str() == "-";
    let text = if from_stdin {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Failure::Unreadable { path: path.to_owned(), error })?;
        text
    } else {
        read_text(path)?
    };
    let wrong = |found| Failure::Program { path: path.to_owned(), text: text.clone(), found };
    let tidy = text::format(&text).map_err(wrong)?;
    if check {
        return Ok(tidy == text);
    }
    if from_stdin {
        print::out(&tidy)?;
    } else if tidy != text {
        std::fs::write(path, tidy).map_err(|error| Failure::Unwritable { path: path.to_owned(), error })?;
    }
    Ok(true)
}
