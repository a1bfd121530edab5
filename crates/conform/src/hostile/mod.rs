//! Input that no well-meaning person writes: arbitrary text and bytes for the parser and the decoder.
//!
//! [`text`] and [`bytes`] make an input from a seed: programs with mistakes in them, soup, trees far deeper than
//! the limits. [`check_text`] and [`check_bytes`] read it as a user would and demand that reading ends soon,
//! without a panic and without memory out of proportion; what turns out to be a valid program must keep the
//! [laws of its forms](crate::roundtrip).

mod binary;
mod textual;

pub use binary::bytes;
pub use textual::text;

use crate::roundtrip;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};
use vyre_foundation::diagnostic::Style;
use vyre_foundation::{Diagnostics, Program, text::format};

/// How long reading an input may take. The largest inputs have a few megabytes.
const TIME: Duration = Duration::from_secs(10);
/// How much resident memory reading may add, and how much more for each byte of input.
const MEMORY: u64 = 64 << 20;
const MEMORY_PER_BYTE: u64 = 4096;

/// Texts to mutate: programs that exist as files.
#[derive(Clone, Default, Debug)]
pub struct Corpus {
    texts: Vec<String>,
}

impl Corpus {
    /// Every `.vyre` file under a directory, in order of its path.
    pub fn read(directory: &Path) -> io::Result<Corpus> {
        let mut found = Vec::new();
        let mut pending = vec![directory.to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory)? {
                let path = entry?.path();
                if path.is_dir() {
                    pending.push(path);
                } else if path.extension().is_some_and(|extension| extension == "vyre") {
                    found.push(path);
                }
            }
        }
        found.sort();
        let texts = found.iter().map(fs::read).collect::<io::Result<Vec<_>>>()?;
        Ok(Corpus { texts: texts.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect() })
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

/// Reads a text as a user would and says what went wrong.
pub fn check_text(text: &str) -> Result<(), String> {
    guarded(text.len(), || match Program::parse(text) {
        Err(errors) => draw(&errors, text),
        Ok(program) => {
            let formatted = format(text).map_err(|_| "format refuses what parses".to_owned())?;
            if format(&formatted).ok().as_ref() != Some(&formatted) {
                return Err("formatting twice changes the layout again".to_owned());
            }
            if Program::parse(&formatted).ok().as_ref() != Some(&program) {
                return Err("formatting changes the program".to_owned());
            }
            check_program(&program, text)
        }
    })
}

/// Decodes bytes as a user would and says what went wrong.
pub fn check_bytes(bytes: &[u8]) -> Result<(), String> {
    guarded(bytes.len(), || match Program::from_wire(bytes) {
        Err(error) => nonempty(error.to_string()),
        Ok(program) => {
            let again = Program::from_wire(&program.to_wire());
            if again.as_ref() != Ok(&program) {
                return Err("what was decoded does not survive encoding".to_owned());
            }
            check_program(&program, "")
        }
    })
}

fn check_program(program: &Program, text: &str) -> Result<(), String> {
    let found = program.check();
    if !found.has_errors() {
        if let Err(errors) = program.validate() {
            return Err(format!("check finds no error where validate does: {errors:?}"));
        }
        roundtrip::check(program)?;
    }
    draw(&found, text)
}

fn draw(found: &Diagnostics, text: &str) -> Result<(), String> {
    if found.is_empty() {
        return Ok(());
    }
    nonempty(found.render("text", text, Style::Plain))
}

fn nonempty(message: String) -> Result<(), String> {
    if message.trim().is_empty() { Err("an error has no message".to_owned()) } else { Ok(()) }
}

/// Runs a check and turns panics, slowness and hunger into errors.
fn guarded(length: usize, check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let memory = peak_memory();
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(check));
    let took = start.elapsed();
    let grown = peak_memory().saturating_sub(memory);
    match result {
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", text.unwrap_or("without a message")))
        }
        Ok(Err(error)) => Err(error),
        Ok(Ok(())) if took > TIME => Err(format!("{length} bytes took {took:?}")),
        Ok(Ok(())) if grown > MEMORY + MEMORY_PER_BYTE * length as u64 => {
            Err(format!("{length} bytes took {} MiB of memory", grown >> 20))
        }
        Ok(Ok(())) => Ok(()),
    }
}

/// The most memory that the process has had resident, in bytes; 0 where the system does not say.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
