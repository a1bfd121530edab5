//! What a finished run prints.

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::print;
use crate::run::{Finished, write_files};
use crate::values::show;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use vyre_foundation::{Element, element};

/// Outputs with more elements than this are shortened.
const SHOWN: usize = 64;
/// How many elements of a shortened output are shown at each end.
const ENDS: usize = 8;

/// Writes the files that were asked for, then prints the outputs.
pub(crate) fn finish(args: &RunArgs, finished: &Finished) -> Result<(), Failure> {
    write_files(args, finished)?;
    if args.json {
        match serde_json::to_string(&Report::new(finished)) {
            Ok(text) => return print::out(&format!("{text}\n")),
            Err(error) => return Err(Failure::Run(vyre_reference::Error::Internal(error.to_string()))),
        }
    }
    for (buffer, bytes) in finished.program.outputs().zip(&finished.outcome.outputs) {
        let (name, element) = (buffer.name(), buffer.element());
        let count = bytes.len() / element.size();
        match args.outputs.iter().find(|(out, _)| name == out.as_str()) {
            Some((_, path)) => print::out(&format!("{name}: {element}[{count}] -> {path}\n"))?,
            None => print::out(&format!("{name}: {element}[{count}] = {}\n", list(element, bytes)))?,
        }
    }
    print::err(&format!("{}\n", summary(finished)));
    Ok(())
}

/// `[1, 2, 3]`, or both ends of a long list with a digest of the whole.
fn list(element: Element, bytes: &[u8]) -> String {
    let size = element.size();
    let text = |bytes: &[u8]| {
        let items = bytes.chunks_exact(size).map(|item| show(element, item));
        items.collect::<Vec<_>>().join(", ")
    };
    if bytes.len() <= SHOWN * size {
        return format!("[{}]", text(bytes));
    }
    let digest = blake3::hash(bytes).to_hex();
    let (first, last) = (&bytes[..ENDS * size], &bytes[bytes.len() - ENDS * size..]);
    format!("[{}, …, {}] blake3:{}", text(first), text(last), &digest[..16])
}

fn summary(finished: &Finished) -> String {
    let outcome = &finished.outcome;
    let grid = outcome.grid.workgroups().map(|n| n.to_string()).join(" x ");
    let wall = finished.trace.nanoseconds("run") as f64 / 1e6;
    let passes = match outcome.converged {
        Some(true) => format!(", converged after {} passes", outcome.passes),
        Some(false) => format!(", not converged after {} passes", outcome.passes),
        None => String::new(),
    };
    let size = finished.program.workgroup_size().named().iter().map(u32::to_string).collect::<Vec<_>>();
    format!("{}: {grid} workgroups of {}{passes}, {wall:.2} ms", finished.backend, size.join(" x "))
}

#[derive(Serialize)]
struct Report<'a> {
    program: &'a str,
    backend: &'static str,
    route: &'static str,
    grid: [u32; 3],
    exact: bool,
    passes: Option<u32>,
    converged: Option<bool>,
    outputs: Outputs<'a>,
    timing: Timing,
    telemetry: Telemetry,
}

#[derive(Serialize)]
struct Timing {
    compile: u64,
    wall: u64,
    device: u64,
}

#[derive(Serialize)]
struct Telemetry {
    launches: u32,
    segments: u32,
    uploaded_bytes: u64,
    downloaded_bytes: u64,
    cache_hits: u32,
    cache_misses: u32,
}

impl<'a> Report<'a> {
    fn new(finished: &'a Finished) -> Report<'a> {
        let outcome = &finished.outcome;
        let compile = finished.trace.nanoseconds("parse") + finished.trace.nanoseconds("validate");
        let run = finished.trace.nanoseconds("run");
        Report {
            program: finished.program.name(),
            backend: finished.backend,
            route: finished.route,
            grid: outcome.grid.workgroups(),
            // The reference computes floats as specified.
            exact: true,
            passes: outcome.converged.map(|_| outcome.passes),
            converged: outcome.converged,
            outputs: Outputs(finished),
            timing: Timing { compile, wall: run, device: run },
            telemetry: Telemetry {
                launches: outcome.passes,
                segments: 1,
                uploaded_bytes: finished.uploaded,
                downloaded_bytes: outcome.outputs.iter().map(|bytes| bytes.len() as u64).sum(),
                cache_hits: 0,
                cache_misses: 0,
            },
        }
    }
}

/// The outputs by name.
struct Outputs<'a>(&'a Finished);

impl Serialize for Outputs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let outputs = self.0.program.outputs().zip(&self.0.outcome.outputs);
        let mut map = serializer.serialize_map(None)?;
        for (buffer, bytes) in outputs {
            map.serialize_entry(buffer.name().as_str(), &Elements(buffer.element(), bytes))?;
        }
        map.end()
    }
}

/// The elements of a buffer as numbers; what JSON cannot say as strings.
struct Elements<'a>(Element, &'a [u8]);

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Elements(element, bytes) = *self;
        let mut list = serializer.serialize_seq(Some(bytes.len() / element.size()))?;
        for item in bytes.chunks_exact(element.size()) {
            let bits = element::load(element, item);
            match element {
                Element::U8 | Element::U16 | Element::U32 | Element::U64 => list.serialize_element(&bits)?,
                Element::I8 | Element::I16 | Element::I32 => list.serialize_element(&(bits as u32 as i32))?,
                Element::I64 => list.serialize_element(&(bits as i64))?,
                Element::F16 | Element::BF16 | Element::F32 => {
                    let value = f32::from_bits(bits as u32);
                    if value.is_finite() {
                        list.serialize_element(&value)?;
                    } else {
                        list.serialize_element(&show(element, item))?;
                    }
                }
            }
        }
        list.end()
    }
}
