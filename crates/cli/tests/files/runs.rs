//! The runs of a test file: on every backend, in every way, with the same bytes.

use crate::header::Run;
use std::sync::LazyLock;
use vyre_cli::failure::Failure;
use vyre_cli::run::{Request, gather};
use vyre_cli::values;
use vyre_driver::grid_sync::{contains_grid_sync, plan_host_grid_sync_segment_programs};
use vyre_driver::{
    BackendExt, DispatchConfig, Feature, Optimization, ReferenceBackend, Route, Trap, Unit, VyreBackend,
};
use vyre_driver_cpu::{CpuBackend, CpuOptions, Placement, Simd};
use vyre_driver_wgpu::WgpuBackend;
use vyre_foundation::{Element, Program};
use vyre_reference::{Options, Schedule};

/// The schedules that every run must give the same bytes under.
const SCHEDULES: [Schedule; 5] =
    [Schedule::InOrder, Schedule::RoundRobin, Schedule::Reversed, Schedule::Random(1), Schedule::Random(2)];

/// The numbers of threads that every run must give the same bytes with.
const THREADS: [usize; 3] = [1, 2, 8];

/// One for all files. It leaves nothing on disk, and shares out launches however small they are.
static CPU: LazyLock<CpuBackend> = LazyLock::new(|| cpu(Simd::On, Placement::Heap));

/// The same lane by lane, and with vectors of lanes wherever that is possible, both between pages that cannot be touched.
static OTHER_CPUS: LazyLock<[(Simd, CpuBackend); 2]> =
    LazyLock::new(|| [Simd::Off, Simd::Always].map(|simd| (simd, cpu(simd, Placement::Guarded))));

fn cpu(simd: Simd, placement: Placement) -> CpuBackend {
    let options = CpuOptions {
        threads: 8,
        cache_folder: None,
        share_from: 0,
        simd,
        placement,
        ..CpuOptions::default()
    };
    CpuBackend::with_options(options).expect("the CPU backend starts")
}

/// A GPU or a driver that computes on the CPU. Where there is none, that is said once, and loudly.
static WGPU: LazyLock<Option<WgpuBackend>> = LazyLock::new(|| match WgpuBackend::new() {
    Ok(backend) => Some(backend),
    Err(error) if std::env::var_os("VYRE_REQUIRE_WGPU").is_some() => {
        panic!("the wgpu backend must be tested here, and does not start: {error}")
    }
    Err(error) => {
        #[expect(clippy::print_stderr, reason = "whoever runs the tests is to know")]
        let () = eprintln!("WARNING: test files do NOT run on the wgpu backend: {error}");
        None
    }
});

/// The reference as a backend: what a schedule means is what its segments mean.
static REFERENCE: LazyLock<ReferenceBackend> = LazyLock::new(ReferenceBackend::new);

/// What a run gave, wherever it ran.
struct Ran {
    outputs: Vec<Vec<u8>>,
    passes: u32,
    converged: Option<bool>,
}

/// Why a run gave nothing.
enum Stopped {
    Trap(Trap),
    Failed { code: String, text: String },
}

impl Stopped {
    fn new(code: &str, error: &dyn std::fmt::Display) -> Stopped {
        Stopped::Failed { code: code.to_owned(), text: error.to_string() }
    }
}

type Ended = Result<Ran, Stopped>;

fn on_reference(program: &Program, request: &Request, schedule: Schedule) -> Ended {
    let DispatchConfig { grid, lengths, fixpoint_iterations: fixpoint, .. } = request.config.clone();
    let options = Options { grid, lengths, fixpoint, schedule, deadline: None };
    let inputs: Vec<&[u8]> = request.inputs.iter().map(Vec::as_slice).collect();
    match vyre_reference::run(program, &inputs, &options) {
        Ok(ran) => Ok(Ran { outputs: ran.outputs, passes: ran.passes, converged: ran.converged }),
        Err(vyre_reference::Error::Trap(trap)) => {
            Err(Stopped::Trap(Trap { tag: trap.tag, value: trap.value, invocation: trap.invocation }))
        }
        Err(error) => Err(Stopped::new(error.code(), &error)),
    }
}

/// Runs a program on a backend by a route. One that was asked for must be taken.
fn on_backend(
    backend: &dyn VyreBackend,
    program: &Program,
    request: &Request,
    threads: usize,
    route: Route,
    optimization: Optimization,
) -> Ended {
    let config = request.config.clone().threads(threads).route(route).optimization(optimization);
    let inputs: Vec<&[u8]> = request.inputs.iter().map(Vec::as_slice).collect();
    match backend.dispatch_borrowed(program, &inputs, &config) {
        Ok(ran) if route != Route::Auto && ran.report.route != route => {
            Err(Stopped::new("D099", &format!("asked for {route}, took {}", ran.report.route)))
        }
        Ok(ran) => {
            let report = ran.report;
            Ok(Ran { outputs: ran.outputs, passes: report.passes, converged: report.converged })
        }
        Err(vyre_driver::Error::Trap(trap)) => Err(Stopped::Trap(trap)),
        Err(error) => Err(Stopped::new(error.code(), &error)),
    }
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

/// Carries out a run in every way, and compares each with what is expected.
pub(crate) fn check(program: &Program, run: &Run) -> Result<(), String> {
    let request = match gather(program, &run.args) {
        Ok(request) => request,
        Err(failure) => return compare(program, run, Err(refused(&failure))),
    };
    for schedule in SCHEDULES {
        let ended = on_reference(program, &request, schedule);
        compare(program, run, ended).map_err(|problem| format!("{problem} (schedule {schedule:?})"))?;
    }
    for threads in THREADS {
        let ended = on_backend(&*CPU, program, &request, threads, Route::Auto, Optimization::On);
        compare(program, run, ended).map_err(|problem| format!("{problem} (cpu, {threads} threads)"))?;
    }
    let ended = on_backend(&*CPU, program, &request, 2, Route::Auto, Optimization::Off);
    compare(program, run, ended).map_err(|problem| format!("{problem} (cpu, not optimised)"))?;
    for (simd, backend) in &*OTHER_CPUS {
        for optimization in [Optimization::On, Optimization::Off] {
            let ended = on_backend(backend, program, &request, 2, Route::Auto, optimization);
            compare(program, run, ended).map_err(|problem| {
                format!("{problem} (cpu, simd {simd:?}, optimisation {optimization:?})")
            })?;
        }
    }
    if contains_grid_sync(program) {
        check_segments(program)?;
        for (backend, threads) in [(&*CPU as &dyn VyreBackend, 1), (&*CPU, 2), (&*REFERENCE, 1)] {
            for route in [Route::Resident, Route::Host] {
                let ended = on_backend(backend, program, &request, threads, route, Optimization::On);
                let name = backend.profile().backend;
                compare(program, run, ended)
                    .map_err(|problem| format!("{problem} ({name}, {threads} threads, {route})"))?;
            }
        }
    }
    if let Some(wgpu) = &*WGPU {
        on_wgpu(wgpu, program, run, &request)?;
    }
    let raised = raised(program)?;
    for schedule in SCHEDULES {
        let ended = on_reference(&raised, &request, schedule);
        compare(program, run, ended)
            .map_err(|problem| format!("{problem} (schedule {schedule:?}, raised)\n{raised}"))?;
    }
    let unit = Unit::of(program).map_err(|error| error.to_string())?.optimized();
    assert!(unit.is_optimized(), "the optimizer is linked in");
    let optimized = unit.code();
    if let Err(found) = optimized.validate() {
        return Err(format!("the optimised program is not valid: {found}\n{optimized}"));
    }
    for schedule in SCHEDULES {
        let ended = on_reference(optimized, &request, schedule);
        compare(program, run, ended)
            .map_err(|problem| format!("{problem} (schedule {schedule:?}, optimised)\n{optimized}"))?;
    }
    Ok(())
}

/// Carries out a run on the wgpu backend, by the routes that it has.
fn on_wgpu(wgpu: &WgpuBackend, program: &Program, run: &Run, request: &Request) -> Result<(), String> {
    let needs = Unit::of(program).map_err(|error| error.to_string())?.needs();
    let features = wgpu.profile().features;
    // What a device may lack by the specification, and says so.
    let lacks = needs.orderings || needs.atomics64 && !features.has(Feature::Atomics64);
    if lacks {
        let ended = on_backend(wgpu, program, request, 1, Route::Auto, Optimization::On);
        return match ended {
            Err(Stopped::Failed { code, .. }) if code == "D003" => Ok(()),
            _ => Err("a feature that is missing was not refused (wgpu)".to_owned()),
        };
    }
    let routes: &[Route] =
        if contains_grid_sync(program) { &[Route::Resident, Route::Host] } else { &[Route::Auto] };
    for route in routes {
        for optimization in [Optimization::On, Optimization::Off] {
            let ended = on_backend(wgpu, program, request, 1, *route, optimization);
            compare(program, run, ended)
                .map_err(|problem| format!("{problem} (wgpu, {route}, optimisation {optimization:?})"))?;
        }
    }
    Ok(())
}

/// Whether every segment is a valid program of its own.
fn check_segments(program: &Program) -> Result<(), String> {
    let segments = plan_host_grid_sync_segment_programs(program).map_err(|error| error.to_string())?;
    for segment in segments {
        segment.validate().map_err(|found| format!("a segment is not valid: {found}\n{segment}"))?;
    }
    Ok(())
}

fn refused(failure: &Failure) -> Stopped {
    Stopped::new(failure.code(), failure)
}

fn compare(program: &Program, run: &Run, ended: Ended) -> Result<(), String> {
    let ran = match (ended, &run.error, &run.trap) {
        (Err(Stopped::Trap(trap)), None, Some((tag, value, invocation))) => {
            let same = trap.tag == tag.as_str() && trap.value == *value && trap.invocation == *invocation;
            return if same { Ok(()) } else { Err(format!("found another trap: {trap:?}")) };
        }
        (Err(Stopped::Trap(trap)), ..) => return Err(format!("found a trap: {trap:?}")),
        (Err(Stopped::Failed { code, .. }), Some(expected), _) if code == *expected => return Ok(()),
        (Err(Stopped::Failed { code, text }), ..) => return Err(format!("[{code}] {text}")),
        (Ok(_), Some(code), _) => return Err(format!("expected error {code}, but it ran")),
        (Ok(_), _, Some(trap)) => return Err(format!("expected the trap {trap:?}, but it ran")),
        (Ok(ran), None, None) => ran,
    };
    compare_outputs(program, run, &ran)?;
    if run.passes.is_some_and(|passes| passes != ran.passes) {
        return Err(format!("found {} passes", ran.passes));
    }
    if run.converged.is_some() && run.converged != ran.converged {
        return Err(format!("found converged: {:?}", ran.converged));
    }
    Ok(())
}

fn compare_outputs(program: &Program, run: &Run, ran: &Ran) -> Result<(), String> {
    let expected: Vec<&str> = run.outputs.iter().map(|(name, ..)| name.as_str()).collect();
    let found: Vec<&str> = program.outputs().map(|buffer| buffer.name().as_str()).collect();
    if expected != found {
        return Err(format!("expectations for {expected:?}, but the outputs are {found:?}"));
    }
    let outputs = program.outputs().zip(&ran.outputs).zip(run.outputs.iter());
    for ((buffer, bytes), (name, value, line)) in outputs {
        let expected = values::parse(value, buffer.element()).map_err(|e| format!("line {line}: {e}"))?;
        if expected != *bytes {
            return Err(format!("`{name}` should be {value}, found {}", list(buffer.element(), bytes)));
        }
    }
    Ok(())
}

fn list(element: Element, bytes: &[u8]) -> String {
    let items = bytes.chunks_exact(element.size()).map(|item| values::show(element, item));
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// Replaces the expectations of a run by what it gives.
pub(crate) fn bless(program: &Program, run: &Run, lines: &mut Vec<String>) -> Result<(), String> {
    let mut wanted = Vec::new();
    let request = gather(program, &run.args).map_err(|failure| refused(&failure));
    match request.and_then(|request| on_reference(program, &request, Schedule::InOrder)) {
        Ok(ran) => {
            for (buffer, bytes) in program.outputs().zip(&ran.outputs) {
                wanted.push(format!("// expect: {} = {}", buffer.name(), list(buffer.element(), bytes)));
            }
            if let Some(converged) = ran.converged {
                wanted.push(format!("// passes: {}", ran.passes));
                wanted.push(format!("// converged: {converged}"));
            }
        }
        Err(Stopped::Trap(trap)) => {
            wanted.push(format!("// trap: \"{}\" {} {}", trap.tag, trap.value, trap.invocation));
        }
        Err(Stopped::Failed { code, .. }) => wanted.push(format!("// error: {code}")),
    }
    let is_expectation = |line: &String| {
        let keys = ["// expect:", "// trap:", "// passes:", "// converged:", "// error:"];
        keys.iter().any(|key| line.trim_start().starts_with(key))
    };
    let end = (run.line..lines.len()).find(|&i| !is_expectation(&lines[i])).unwrap_or(lines.len());
    lines.splice(run.line..end, wanted);
    Ok(())
}
