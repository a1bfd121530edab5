//! `vyre run`: reads a program, gathers its inputs, runs it and shows what it returns.

use crate::args::{Backend, Float, Route, RunArgs};
use crate::failure::{Failure, read_text};
use crate::trace::Trace;
use crate::{npy, report, values};
use std::process::ExitCode;
use std::time::Instant;
use vyre_foundation::{BufferDecl, InputError, Name, Program};
use vyre_reference::{Options, Outcome, Schedule};

/// What a run gave, with what a report says about it.
pub struct Finished {
    /// The program that ran.
    pub program: Program,
    /// What it gave.
    pub outcome: Outcome,
    /// The backend that ran it.
    pub backend: &'static str,
    /// How grid barriers were carried out; `none` when there is none.
    pub route: &'static str,
    /// Bytes of all inputs.
    pub uploaded: u64,
    pub(crate) trace: Trace,
}

/// The inputs of a dispatch in declaration order, with the options it runs under.
pub struct Request {
    /// The bytes of each input.
    pub inputs: Vec<Vec<u8>>,
    /// Everything else.
    pub options: Options,
}

pub(crate) fn command(args: &RunArgs) -> ExitCode {
    match execute(args).and_then(|finished| report::finish(args, &finished)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(args.json);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Reads and runs the program.
fn execute(args: &RunArgs) -> Result<Finished, Failure> {
    let mut trace = Trace::new();
    let text = read_text(&args.file)?;
    let wrong = |found| Failure::Program { path: args.file.clone(), text: text.clone(), found };
    let program = trace.phase("parse", || Program::parse(&text)).map_err(wrong)?;
    let found = trace.phase("validate", || program.check());
    if found.has_errors() {
        return Err(wrong(found));
    }
    let backend = choose(args)?;
    let route = choose_route(&program, args.route, backend)?;
    let request = trace.phase("inputs", || gather(&program, args))?;
    check_outputs(&program, args)?;
    let borrowed: Vec<&[u8]> = request.inputs.iter().map(Vec::as_slice).collect();
    let outcome = trace.phase("run", || vyre_reference::run(&program, &borrowed, &request.options))?;
    if args.require_convergence && outcome.converged == Some(false) {
        return Err(Failure::NotConverged(outcome.passes));
    }
    let uploaded = request.inputs.iter().map(|bytes| bytes.len() as u64).sum();
    Ok(Finished { program, outcome, backend, route, uploaded, trace })
}

/// The backend that runs the program. What is asked for by name and cannot be had is an error.
fn choose(args: &RunArgs) -> Result<&'static str, Failure> {
    let backend = match args.backend {
        Backend::Auto | Backend::Reference => "reference",
        Backend::Cpu => return Err(Failure::NoBackend("cpu")),
        Backend::Wgpu => return Err(Failure::NoBackend("wgpu")),
    };
    if args.float == Float::Native {
        let help = "its floats are exact; leave `--float native` out";
        return Err(Failure::Unsupported { backend, feature: "floats of its own", help });
    }
    Ok(backend)
}

/// How grid barriers are carried out: the reference waits inside one launch.
fn choose_route(program: &Program, wanted: Route, backend: &'static str) -> Result<&'static str, Failure> {
    match wanted {
        _ if program.stats().grid_barriers == 0 => Ok("none"),
        Route::Auto | Route::Native => Ok("native"),
        Route::Resident | Route::Host => {
            let help = "use `--route auto` or `--route native`";
            Err(Failure::Unsupported { backend, feature: "this route", help })
        }
    }
}

/// The inputs and options that the arguments ask for.
pub fn gather(program: &Program, args: &RunArgs) -> Result<Request, Failure> {
    check_names(program, "--in", &args.inputs, |buffer| {
        let (name, access) = (buffer.name().clone(), buffer.access().name());
        (!buffer.consumes_input()).then_some(Failure::NotAnInput { name, access })
    })?;
    for (i, (name, _)) in args.lengths.iter().enumerate() {
        if args.lengths[..i].iter().any(|(other, _)| name == other) {
            return Err(Failure::GivenTwice { option: "--len", name: name.as_str().into() });
        }
    }
    let mut inputs = Vec::new();
    for buffer in program.inputs() {
        let name = buffer.name();
        let Some((_, value)) = args.inputs.iter().find(|(given, _)| name == given.as_str()) else {
            return Err(Failure::MissingInput { name: name.clone() });
        };
        let parsed = values::parse(value, buffer.element());
        inputs.push(parsed.map_err(|error| Failure::Value { name: name.clone(), error })?);
    }
    let options = Options {
        grid: args.grid,
        lengths: args.lengths.iter().map(|(name, count)| (Name::from(name.as_str()), *count)).collect(),
        fixpoint: args.fixpoint,
        schedule: Schedule::InOrder,
        deadline: args.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
    };
    Ok(Request { inputs, options })
}

/// Names given to `--out` must be returned buffers, before anything runs.
fn check_outputs(program: &Program, args: &RunArgs) -> Result<(), Failure> {
    check_names(program, "--out", &args.outputs, |buffer| {
        let (name, access) = (buffer.name().clone(), buffer.access().name());
        (!buffer.produces_output()).then_some(Failure::NotAnOutput { name, access })
    })
}

/// Each name must be a buffer of the program that the option takes, and be given once.
fn check_names(
    program: &Program,
    option: &'static str,
    given: &[(String, String)],
    wrong: impl Fn(&BufferDecl) -> Option<Failure>,
) -> Result<(), Failure> {
    for (i, (name, _)) in given.iter().enumerate() {
        let Some(buffer) = program.buffer(name) else {
            return Err(InputError::unknown(program, name).into());
        };
        if let Some(failure) = wrong(buffer) {
            return Err(failure);
        }
        if given[..i].iter().any(|(other, _)| name == other) {
            return Err(Failure::GivenTwice { option, name: buffer.name().clone() });
        }
    }
    Ok(())
}

/// Writes the outputs that `--out` asks for, and the trace.
pub(crate) fn write_files(args: &RunArgs, finished: &Finished) -> Result<(), Failure> {
    for (buffer, bytes) in finished.program.outputs().zip(&finished.outcome.outputs) {
        let wanted = args.outputs.iter().find(|(name, _)| buffer.name() == name.as_str());
        let Some((_, path)) = wanted else { continue };
        let written = if path.ends_with(".npy") {
            std::fs::write(path, npy::write(buffer.element(), bytes))
        } else {
            std::fs::write(path, bytes)
        };
        written.map_err(|error| Failure::Unwritable { path: path.into(), error })?;
    }
    if let Some(path) = &args.trace {
        std::fs::write(path, finished.trace.to_json())
            .map_err(|error| Failure::Unwritable { path: path.clone(), error })?;
    }
    Ok(())
}
