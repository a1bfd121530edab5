//! `vyre run`: reads a program, gathers its inputs, runs it and shows what it returns.

use crate::args::{Backend, Float, OnOff, Route, RunArgs};
use crate::failure::Failure;
use crate::progress::{Progress, Stage};
use crate::source::Source;
use crate::trace::Recorder;
use crate::{npy, report, values};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vyre_driver::{
    BackendExt, Counters, DispatchConfig, DispatchOutput, Error, Feature, FloatMode, Optimization,
    Requirements, VyreBackend, acquire, acquire_preferred, registry,
};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_driver_wgpu::{WgpuBackend, WgpuOptions};
use vyre_foundation::{BufferDecl, InputError, Program};

/// What a run gave, with what a report says about it.
pub(crate) struct Finished {
    /// The program that ran.
    pub(crate) program: Program,
    /// What it gave.
    pub(crate) output: DispatchOutput,
    /// From the text to code.
    pub(crate) compile: Duration,
    /// Whether any backend would have given the same bytes.
    pub(crate) exact: bool,
    /// What the backend did.
    pub(crate) counters: Counters,
}

/// The inputs of a dispatch in declaration order, with the settings it runs under.
pub struct Request {
    /// The bytes of each input.
    pub inputs: Vec<Vec<u8>>,
    /// Everything else.
    pub config: DispatchConfig,
}

pub(crate) fn command(args: &RunArgs) -> ExitCode {
    match traced(args).and_then(|finished| report::finish(args, &finished)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(args.json);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Runs the program, and writes a trace where one is asked for, also of a run that fails.
fn traced(args: &RunArgs) -> Result<Finished, Failure> {
    let Some(path) = &args.trace else { return execute(args) };
    let recorder = Recorder::install();
    let result = execute(args);
    let written = std::fs::write(path, recorder.to_json());
    let finished = result?;
    written.map_err(|error| Failure::Unwritable { path: path.clone(), error })?;
    Ok(finished)
}

/// Reads and runs the program.
fn execute(args: &RunArgs) -> Result<Finished, Failure> {
    let progress = Progress::start(args);
    let begun = Instant::now();
    let source = Source::read(&args.file)?;
    let parsed = begun.elapsed();
    let backend = choose(args)?;
    let config = settings(args)?.label(source.program.name().as_str());
    let begun = Instant::now();
    // Compiling is what validates the program.
    let pipeline = backend.compile_native(&source.program, &config).map_err(|error| source.failure(error))?;
    let compiled = begun.elapsed();
    progress.stage(Stage::Reading);
    let program = &source.program;
    let inputs = tracing::info_span!("inputs").in_scope(|| inputs(program, args))?;
    check_outputs(program, args)?;
    progress.stage(Stage::Running);
    let borrowed: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    // Compiling has taken its part of the time.
    let config =
        DispatchConfig { timeout: args.timeout.map(|limit| limit.saturating_sub(compiled)), ..config };
    let output = backend.dispatch_borrowed_timed(&pipeline, &borrowed, &config);
    let output = output.map_err(|error| match (error, args.timeout) {
        (Error::Timeout { .. }, Some(limit)) => Error::Timeout { limit },
        (error, _) => error,
    })?;
    Ok(Finished {
        output,
        compile: parsed + compiled,
        exact: config.float_mode == FloatMode::Exact,
        counters: backend.snapshot_dispatch_telemetry(),
        program: source.program,
    })
}

/// Starts the backend that is to run the program, and no other.
fn choose(args: &RunArgs) -> Result<Arc<dyn VyreBackend>, Failure> {
    if let Some(device) = &args.device {
        return on_device(args.backend, device);
    }
    if let Some(simd) = args.simd {
        return on_cpu(args.backend, simd);
    }
    start(args.backend, args.float)
}

/// Starts a backend with its own settings.
pub(crate) fn start(backend: Backend, float: Float) -> Result<Arc<dyn VyreBackend>, Failure> {
    let Some(name) = backend.name() else { return prefer(float) };
    acquire(name).map_err(|error| match error {
        Error::UnknownBackend { .. } => Failure::NoBackend(name),
        error => error.into(),
    })
}

/// Starts the backend that has devices to choose from, on one of them.
fn on_device(backend: Backend, device: &str) -> Result<Arc<dyn VyreBackend>, Failure> {
    if !matches!(backend, Backend::Auto | Backend::Wgpu) {
        return Err(Failure::Usage {
            message: "`--device` chooses among the devices of `wgpu`".to_owned(),
            help: "use it with `--backend wgpu`, or leave it out".to_owned(),
        });
    }
    let options = WgpuOptions { device: Some(device.to_owned()), ..WgpuOptions::default() };
    Ok(Arc::new(WgpuBackend::with_options(options)?))
}

/// Starts the backend whose code may compute several invocations at once, or may not.
fn on_cpu(backend: Backend, simd: OnOff) -> Result<Arc<dyn VyreBackend>, Failure> {
    if !matches!(backend, Backend::Auto | Backend::Cpu) {
        return Err(Failure::Usage {
            message: "`--simd` is about code for CPUs".to_owned(),
            help: "use it with `--backend cpu`, or leave it out".to_owned(),
        });
    }
    let options = CpuOptions { simd: simd.into(), ..CpuOptions::default() };
    Ok(Arc::new(CpuBackend::with_options(options)?))
}

/// Starts the best backend that there is. The reference is none of them.
fn prefer(float: Float) -> Result<Arc<dyn VyreBackend>, Failure> {
    let requirements = match float {
        Float::Exact => Requirements::new(),
        Float::Native => Requirements::new().feature(Feature::NativeFloats),
    };
    let error = match acquire_preferred(&requirements) {
        Ok(acquired) => return Ok(acquired.backend),
        Err(error) => error,
    };
    // Where the best one cannot start, its own words say more than a list of everybody's.
    let best = registry::registrations().first().map(|best| acquire(best.name));
    Err(best.and_then(Result::err).unwrap_or(error).into())
}

/// The settings that the arguments ask for.
fn settings(args: &RunArgs) -> Result<DispatchConfig, Failure> {
    for (i, (name, _)) in args.lengths.iter().enumerate() {
        if args.lengths[..i].iter().any(|(other, _)| name == other) {
            return Err(Failure::GivenTwice { option: "--len", name: name.as_str().into() });
        }
    }
    Ok(DispatchConfig {
        grid: args.grid,
        lengths: args.lengths.iter().map(|(name, count)| (name.as_str().into(), *count)).collect(),
        fixpoint_iterations: args.fixpoint,
        must_converge: args.require_convergence,
        route: match args.route {
            Route::Auto => vyre_driver::Route::Auto,
            Route::Native => vyre_driver::Route::Native,
            Route::Resident => vyre_driver::Route::Resident,
            Route::Host => vyre_driver::Route::Host,
        },
        float_mode: match args.float {
            Float::Exact => FloatMode::Exact,
            Float::Native => FloatMode::Native,
        },
        optimization: match args.backend {
            // What a program means is what it says.
            Backend::Reference if !args.optimize => Optimization::Off,
            _ if args.no_optimize => Optimization::Off,
            _ => Optimization::On,
        },
        timeout: args.timeout,
        threads: args.threads.map(|threads| threads as usize),
        ..DispatchConfig::new()
    })
}

/// The bytes of the inputs, in declaration order.
fn inputs(program: &Program, args: &RunArgs) -> Result<Vec<Vec<u8>>, Failure> {
    check_names(program, "--in", &args.inputs, |buffer| {
        let (name, access) = (buffer.name().clone(), buffer.access().name());
        (!buffer.consumes_input()).then_some(Failure::NotAnInput { name, access })
    })?;
    let mut inputs = Vec::new();
    for buffer in program.inputs() {
        let name = buffer.name();
        let Some((_, value)) = args.inputs.iter().find(|(given, _)| name == given.as_str()) else {
            return Err(Failure::MissingInput { name: name.clone() });
        };
        let parsed = values::parse(value, buffer.element());
        inputs.push(parsed.map_err(|error| Failure::Value { name: name.clone(), error })?);
    }
    Ok(inputs)
}

/// The inputs and settings that the arguments ask for.
pub fn gather(program: &Program, args: &RunArgs) -> Result<Request, Failure> {
    Ok(Request { inputs: inputs(program, args)?, config: settings(args)? })
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

/// Writes the outputs that `--out` asks for.
pub(crate) fn write_files(args: &RunArgs, finished: &Finished) -> Result<(), Failure> {
    for (buffer, bytes) in finished.program.outputs().zip(&finished.output.outputs) {
        let wanted = args.outputs.iter().find(|(name, _)| buffer.name() == name.as_str());
        let Some((_, path)) = wanted else { continue };
        let written = if path.ends_with(".npy") {
            std::fs::write(path, npy::write(buffer.element(), bytes))
        } else {
            std::fs::write(path, bytes)
        };
        written.map_err(|error| Failure::Unwritable { path: path.into(), error })?;
    }
    Ok(())
}
