//! What a finished run prints.

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::print;
use crate::run::{Finished, write_files};
use crate::values::show;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use std::time::Duration;
use vyre_driver::{Counters, DispatchReport, Error};
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
            Err(error) => return Err(Error::Internal(error.to_string()).into()),
        }
    }
    for (buffer, bytes) in finished.program.outputs().zip(&finished.output.outputs) {
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
    let report = &finished.output.report;
    let grid = report.grid.workgroups().map(|n| n.to_string()).join(" x ");
    let passes = match report.converged {
        Some(true) => format!(", converged after {} passes", report.passes),
        Some(false) => format!(", not converged after {} passes", report.passes),
        None => String::new(),
    };
    let size = finished.program.workgroup_size().named().iter().map(u32::to_string).collect::<Vec<_>>();
    let compile = match finished.counters.compiles {
        0 => "found compiled".to_owned(),
        _ => format!("compiled in {}", milliseconds(finished.compile)),
    };
    let floats = if finished.exact { "" } else { "; native floats: other backends may give other bytes" };
    let route = match report.segments {
        1 => String::new(),
        segments => format!(" by the route {}, in {segments} segments", report.route),
    };
    format!(
        "{}: {grid} workgroups of {}{route}{passes}, {} ({compile}){floats}",
        report.backend,
        size.join(" x "),
        milliseconds(wall(report)),
    )
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// From the dispatch of the compiled program to its result.
fn wall(report: &DispatchReport) -> Duration {
    report.timing.map_or(Duration::ZERO, |timing| timing.total)
}

/// How long the device worked; where it does not tell, how long it was waited for.
fn device(report: &DispatchReport) -> Duration {
    let timing = report.timing;
    timing.map_or(Duration::ZERO, |t| t.device.unwrap_or(t.total.saturating_sub(t.prepare)))
}

#[derive(Serialize)]
struct Report<'a> {
    program: &'a str,
    backend: &'static str,
    route: String,
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
    launches: u64,
    segments: u64,
    uploaded_bytes: u64,
    downloaded_bytes: u64,
    bytes_in: u64,
    bytes_out: u64,
    cache_hits: u64,
    cache_misses: u64,
    compiles: u64,
    disk_hits: u64,
    disk_misses: u64,
}

impl<'a> Report<'a> {
    fn new(finished: &'a Finished) -> Report<'a> {
        let report = &finished.output.report;
        let nanos = |time: Duration| time.as_nanos() as u64;
        let route = match finished.program.stats().grid_barriers {
            0 => "none".to_owned(),
            _ => report.route.to_string(),
        };
        Report {
            program: finished.program.name(),
            backend: report.backend,
            route,
            grid: report.grid.workgroups(),
            exact: finished.exact,
            passes: report.converged.map(|_| report.passes),
            converged: report.converged,
            outputs: Outputs(finished),
            timing: Timing {
                compile: nanos(finished.compile),
                wall: nanos(wall(report)),
                device: nanos(device(report)),
            },
            telemetry: Telemetry::new(&finished.counters, report.segments),
        }
    }
}

impl Telemetry {
    fn new(counters: &Counters, segments: u32) -> Telemetry {
        Telemetry {
            launches: counters.launches,
            segments: u64::from(segments),
            uploaded_bytes: counters.bytes_uploaded,
            downloaded_bytes: counters.bytes_downloaded,
            bytes_in: counters.bytes_in,
            bytes_out: counters.bytes_out,
            cache_hits: counters.memory_hits + counters.disk_hits,
            // Not in memory and not on disk either.
            cache_misses: counters.memory_misses.saturating_sub(counters.disk_hits),
            compiles: counters.compiles,
            disk_hits: counters.disk_hits,
            disk_misses: counters.disk_misses,
        }
    }
}

/// The outputs by name.
struct Outputs<'a>(&'a Finished);

impl Serialize for Outputs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let outputs = self.0.program.outputs().zip(&self.0.output.outputs);
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
