//! Grid barriers: by every route that the backend has, the bytes, passes and traps of the reference.

use super::results::still_free;
use super::{Check, Failed, Start, Verdict, ensure, equal, program, refused, words};
use crate::{Case, Device, Executor, Failure, Observed, Reference, compare};
use std::sync::Arc;
use vyre_driver::{BackendExt, DispatchConfig, DispatchOutput, Error, Feature, Route, VyreBackend};
use vyre_foundation::Name;
use vyre_reference::Schedule;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "grid barriers: every route gives the bytes of the reference", run: bytes },
    Check { name: "grid barriers: a trap is the same on every route", run: traps },
    Check { name: "grid barriers: fixpoints stop after the same pass on every route", run: fixpoints },
    Check { name: "grid barriers: asynchronous dispatches equal blocking ones", run: pending },
    Check { name: "grid barriers: empty grids and buffers", run: empty },
    Check { name: "grid barriers: a route that the device lacks is refused", run: lacking },
    Check { name: "grid barriers: hidden storage counts as memory", run: budget },
    Check { name: "grid barriers: a workgroup size override edits the program", run: override_size },
    Check { name: "grid barriers: what is split is counted", run: counts },
];

pub(super) type Backend = Arc<dyn VyreBackend>;

const ALL: [(Route, Feature); 3] = [
    (Route::Native, Feature::NativeGridSync),
    (Route::Resident, Feature::Resident),
    (Route::Host, Feature::HostGridSync),
];

/// The routes that the backend has. On the native one a grid may still be too large.
pub(super) fn routes(backend: &Backend) -> Vec<Route> {
    ALL.iter().filter(|(_, feature)| backend.supports(*feature)).map(|(route, _)| *route).collect()
}

/// The routes of the backend that run segment by segment.
pub(super) fn split_routes(backend: &Backend) -> Vec<Route> {
    routes(backend).into_iter().filter(|route| *route != Route::Native).collect()
}

/// What a dispatch by a route gave; nothing where a grid does not fit one launch.
pub(super) fn unless_too_large(
    route: Route,
    result: Result<DispatchOutput, Error>,
) -> Result<Option<DispatchOutput>, Failed> {
    match result {
        Ok(output) => {
            equal("the route", output.report.route, route)?;
            let is_split = output.report.segments > 1;
            ensure!(is_split == (route != Route::Native), "{} segments by {route}", output.report.segments);
            Ok(Some(output))
        }
        Err(Error::ResidencyExceeded { .. }) if route == Route::Native => Ok(None),
        Err(error) => Err(Failed(format!("by {route}: {} {error}", error.code()))),
    }
}

/// A program with everything around it.
struct Chosen {
    text: &'static str,
    inputs: &'static [&'static [u32]],
    lengths: &'static [(&'static str, u32)],
    grid: Option<[u32; 3]>,
}

const CHOSEN: &[Chosen] = &[
    Chosen {
        text: "program held_in_a_loop {
            workgroup_size 2;
            buffer a: read u32[];
            buffer u: output u32[];
            buffer l: output i64[];
            buffer f: output f32[];
            buffer s: scratch u32[6];
            let i = global_id.x;
            let mut word = a[i];
            let mut wide = i64(i) - 3i64;
            let mut real = f32(i) / 3.0;
            let mut flag = i % 2 == 0;
            for k in 0..5 {
                s[i] = word + k;
                barrier(grid);
                if flag {
                    word = word + s[(i + 1) % 6];
                }
                flag = !flag;
                wide = wide * 5i64 - i64(k);
                barrier(grid);
                real = real * 1.5 + f32(k);
            }
            u[i] = word + u32(flag);
            l[i] = wide;
            f[i] = real;
        }",
        inputs: &[&[7, 8, 9, 10, 11, 12]],
        lengths: &[("u", 6), ("l", 6), ("f", 6)],
        grid: None,
    },
    Chosen {
        text: "program ends_on_data {
            workgroup_size 4;
            buffer label: read_write u32[];
            buffer rounds: output u32[1];
            buffer changed: scratch u32[1];
            let i = global_id.x;
            let n = len(label);
            let mut done = 0;
            for step in 1..1000000 {
                let best = min(label[i % n], min(label[(i + 1) % n], label[(i + n - 1) % n]));
                barrier(grid);
                if i < n && best < label[i] {
                    label[i] = best;
                    atomic_max(changed[0], step);
                }
                done = step;
                if uniform_load(grid, changed[0]) < step {
                    break;
                }
            }
            if i == 0 {
                rounds[0] = done;
            }
        }",
        inputs: &[&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 20, 30, 40, 50]],
        lengths: &[],
        grid: Some([4, 1, 1]),
    },
    Chosen {
        text: "program own_memory {
            workgroup_size 4;
            buffer a: read_write u32[];
            buffer o: output u32[];
            workgroup w: u32[4];
            local l: u32[3];
            let i = global_id.x;
            let lane = local_id.x;
            w[lane] = a[i];
            l[i % 3] = i + 1;
            for k in 0..3 {
                barrier(grid);
                let other = w[(lane + 1) % 4];
                l[k] = l[k] + other;
                barrier(grid);
                w[lane] = other + a[(i + 4) % len(a)];
            }
            barrier(grid);
            a[i] = w[3 - lane];
            o[i] = l[0] + l[1] * 100 + l[2] * 10000 + l[lane * 3];
        }",
        inputs: &[&[1, 2, 3, 4, 5, 6, 7, 8]],
        lengths: &[("o", 8)],
        grid: None,
    },
    Chosen {
        text: "program returns_between {
            workgroup_size 3;
            buffer a: read u32[];
            buffer o: output u32[];
            buffer n: output u32[1];
            let i = global_id.x;
            atomic_add(n[0], 1);
            if a[i] == 0 {
                return;
            }
            barrier(grid);
            let ticket = atomic_add(n[0], 100) % 100;
            for k in 0..a[i] {
                o[i] = o[i] + ticket;
            }
            if uniform_load(grid, n[0]) > 400 {
                o[i] = o[i] + 1000;
            }
        }",
        inputs: &[&[2, 0, 1, 3, 0, 0, 1, 4]],
        lengths: &[("o", 8)],
        grid: None,
    },
    Chosen {
        text: "program branches {
            workgroup_size 2;
            buffer way: uniform u32[2];
            buffer x: read_write u32[];
            let i = global_id.x;
            let mut value = x[i];
            for k in 0..way[0] {
                if k % 2 == way[1] {
                    x[(i + 1) % len(x)] = value;
                    barrier(grid);
                    value = x[i] + k;
                } else {
                    barrier(grid);
                    value = value * 2;
                    barrier(grid);
                }
                barrier(grid);
            }
            x[i] = value;
        }",
        inputs: &[&[5, 1], &[3, 1, 4, 1]],
        lengths: &[],
        grid: None,
    },
    Chosen {
        text: "program three_axes {
            workgroup_size 2, 1, 2;
            buffer x: read_write u64[24];
            let i = global_id.x + (global_id.y + global_id.z * 3) * 4;
            let mine = x[i] * 3u64;
            barrier(grid);
            x[23 - i] = mine + u64(workgroup_id.x + num_workgroups.y);
        }",
        inputs: &[&[
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
            27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48,
        ]],
        lengths: &[],
        grid: Some([2, 3, 1]),
    },
];

/// One pass moves what an element knows to the next one.
const CHAIN: &str = "program chain {
    workgroup_size 4;
    buffer x: read_write u32[];
    buffer seen: scratch u32[1];
    let i = global_id.x;
    let before = x[i - min(i, 1)];
    barrier(grid);
    atomic_add(seen[0], 1);
    if i < len(x) && before > x[i] {
        x[i] = before;
    }
}";

impl Chosen {
    fn case(&self) -> Result<Case, Failed> {
        Ok(Case {
            program: program(self.text)?,
            inputs: self.inputs.iter().map(|input| words(input)).collect(),
            grid: self.grid,
            lengths: self.lengths.iter().map(|(name, n)| (Name::from(*name), *n)).collect(),
            fixpoint: None,
        })
    }
}

/// Runs a case by every route, over bytes and over resident memory, and compares it with the reference.
fn against_reference(backend: &Backend, case: &Case) -> Verdict {
    let reference = Reference::new(Schedule::InOrder);
    for route in routes(backend) {
        let device = Device::new(Arc::clone(backend)).with_route(route);
        if let (true, Err(Failure::Unsupported(why))) = (route != Route::Native, device.run(case)) {
            return Err(Failed(format!("{why}\n{}", case.program)));
        }
        let executors: [Box<dyn Executor>; 2] = [Box::new(reference), Box::new(device)];
        if let Some(mismatch) = compare(case, &executors) {
            return Err(Failed(format!("{mismatch}\n{}", case.program)));
        }
        over_residents(backend, case, route)?;
    }
    Ok(())
}

/// The case over resident memory: what its buffers hold afterwards.
fn over_residents(backend: &Backend, case: &Case, route: Route) -> Verdict {
    let Ok(Observed::Outputs { outputs, passes, converged }) = Reference::new(Schedule::InOrder).run(case)
    else {
        return Ok(());
    };
    if !backend.supports_resident() {
        return Ok(());
    }
    let mut inputs = case.inputs.iter();
    let mut handles = Vec::new();
    let mut given_back = Vec::new();
    for buffer in case.program.buffers() {
        let is_input = buffer.consumes_input();
        if !is_input && !buffer.produces_output() {
            continue;
        }
        let open = case.lengths.iter().find(|(name, _)| name == buffer.name()).map(|(_, n)| *n);
        let given = if is_input { inputs.next() } else { None };
        let count = buffer.count().or(open).unwrap_or(0);
        let size = given.map_or(u64::from(count) * buffer.element().size() as u64, |g| g.len() as u64);
        let handle = backend.allocate_resident(size)?;
        // What an output held before is of no interest to the program.
        backend.upload_resident(handle, given.map_or(&vec![0xa5; size as usize], |given| given))?;
        handles.push(handle);
        if buffer.produces_output() {
            given_back.push(handle);
        }
    }
    let config = DispatchConfig {
        grid: case.grid,
        fixpoint_iterations: case.fixpoint,
        ..DispatchConfig::new().route(route)
    };
    match backend.dispatch_resident_timed(&case.program, &handles, &config) {
        Ok(report) => {
            equal("resident: the route", report.route, route)?;
            equal("resident: passes", (report.passes, report.converged), (passes, converged))?;
            for (handle, expected) in given_back.into_iter().zip(outputs) {
                equal(&format!("resident, by {route}"), backend.download_resident(handle)?, expected)?;
            }
        }
        Err(Error::ResidencyExceeded { .. }) if route == Route::Native => {}
        Err(error) => return Err(Failed(format!("resident, by {route}: {error}\n{}", case.program))),
    }
    for handle in handles {
        backend.free_resident(handle)?;
    }
    Ok(())
}

fn bytes(start: &Start<'_>) -> Verdict {
    let backend = start();
    for chosen in CHOSEN {
        against_reference(&backend, &chosen.case()?)?;
    }
    still_free(&backend)
}

fn traps(start: &Start<'_>) -> Verdict {
    let backend = start();
    let text = "program traps {
        workgroup_size 2;
        buffer at: uniform u32[2];
        buffer n: output u32[1];
        let i = global_id.x;
        for k in 0..6 {
            if k == at[0] && i >= at[1] {
                trap(\"round\", k * 100 + i);
            }
            atomic_add(n[0], 1);
            barrier(grid);
            if i == 0 && k == at[0] {
                trap(\"too late\", k);
            }
        }
    }";
    let traps = program(text)?;
    for (round, first) in [(0, 3), (0, 7), (5, 3), (3, 0)] {
        for route in routes(&backend) {
            let config = DispatchConfig::new().grid([4, 1, 1]).route(route);
            let mut outputs = vec![vec![7]];
            let input = words(&[round, first]);
            let error = match backend.dispatch_borrowed_into(&traps, &[&input], &mut outputs, &config) {
                Err(Error::ResidencyExceeded { .. }) if route == Route::Native => continue,
                result => refused(&format!("a trap by {route}"), result, "D009")?,
            };
            let Error::Trap(trap) = error else { return Err(Failed("not a trap".to_owned())) };
            let found = (trap.tag.as_str(), trap.value, trap.invocation);
            equal(&format!("the trap by {route}"), found, ("round", round * 100 + first, u64::from(first)))?;
            equal("outputs after a trap", outputs, vec![vec![7]])?;
            let fine = backend.dispatch(&traps, vec![words(&[9, 0])], &config)?;
            equal("after a trap", fine.outputs, vec![words(&[48])])?;
        }
    }
    let late = program(
        "program late { buffer x: read_write u32[1]; let y = x[0] + 1; barrier(grid); x[0] = y;
         if y == 21 { trap(\"late\", y); } }",
    )?;
    for route in routes(&backend) {
        let config = DispatchConfig::new().fixpoint(100).route(route);
        let error = refused("in a pass", backend.dispatch(&late, vec![words(&[0])], &config), "D009")?;
        let Error::Trap(trap) = error else { return Err(Failed("not a trap".to_owned())) };
        equal("in a pass", (trap.tag.as_str(), trap.value, trap.invocation), ("late", 21, 0))?;
    }
    still_free(&backend)
}

/// What the chain holds after so many passes, if the first of so many elements is 9 and the others are 1.
fn after(passes: u32, elements: u32) -> Vec<u32> {
    (0..elements).map(|i| if i <= passes { 9 } else { 1 }).collect()
}

fn fixpoints(start: &Start<'_>) -> Verdict {
    let backend = start();
    let chain = program(CHAIN)?;
    let elements = 20;
    let first = words(&after(0, elements));
    // Bounds around every size of a chunk of passes, and around the pass that changes nothing.
    for limit in [1, 2, 3, 4, 7, 8, 15, 16, 19, 20, 21, 1000] {
        let passes = limit.min(elements);
        let expected = words(&after(passes, elements));
        let converged = Some(limit >= elements);
        for route in routes(&backend) {
            let config = DispatchConfig::new().fixpoint(limit).route(route);
            let result = backend.dispatch_borrowed(&chain, &[&first], &config);
            let Some(output) = unless_too_large(route, result)? else { continue };
            equal(&format!("limit {limit} by {route}"), &output.outputs, &vec![expected.clone()])?;
            equal(
                &format!("passes, limit {limit} by {route}"),
                (output.report.passes, output.report.converged),
                (passes, converged),
            )?;
            let case = Case {
                program: chain.clone(),
                inputs: vec![first.clone()],
                grid: None,
                lengths: vec![],
                fixpoint: Some(limit),
            };
            over_residents(&backend, &case, route)?;
            if limit < elements {
                let strict = config.must_converge();
                refused("too few passes", backend.dispatch_borrowed(&chain, &[&first], &strict), "D011")?;
            }
        }
    }
    still_free(&backend)
}

fn pending(start: &Start<'_>) -> Verdict {
    let backend = start();
    for chosen in CHOSEN {
        let case = chosen.case()?;
        for route in routes(&backend) {
            let config = Device::config(&case).route(route);
            let inputs = case.input_slices();
            let result = backend.dispatch_borrowed(&case.program, &inputs, &config);
            let Some(blocking) = unless_too_large(route, result)? else { continue };
            let pending = backend.dispatch_async(&case.program, case.inputs.clone(), &config)?;
            equal(&format!("by {route}"), &pending.await_result()?, &blocking)?;
            let pending = backend.dispatch_borrowed_async(&case.program, &inputs, &config)?;
            while !pending.is_ready() {
                std::thread::yield_now();
            }
            equal(&format!("asked again and again by {route}"), &pending.await_result()?, &blocking)?;
        }
    }
    let chain = program(CHAIN)?;
    for limit in [1, 63, 64, 65, 100, 101, 500] {
        for route in routes(&backend) {
            let config = DispatchConfig::new().fixpoint(limit).route(route).grid([4, 1, 1]);
            let first = words(&after(0, 16));
            let blocking = backend.dispatch_borrowed(&chain, &[&first], &config)?;
            let pending = backend.dispatch_async(&chain, vec![first], &config)?;
            equal(&format!("limit {limit} by {route}"), pending.await_result()?, blocking)?;
        }
    }
    still_free(&backend)
}

fn empty(start: &Start<'_>) -> Verdict {
    let backend = start();
    let chosen = CHOSEN.iter().map(Chosen::case).collect::<Result<Vec<_>, _>>()?;
    for case in &chosen {
        let nothing = Case { grid: Some([0, 3, 1]), ..case.clone() };
        against_reference(&backend, &nothing)?;
        against_reference(&backend, &Case { fixpoint: Some(5), ..nothing })?;
    }
    let chain = program(CHAIN)?;
    for (grid, fixpoint) in [(None, None), (Some([2, 1, 1]), None), (Some([2, 1, 1]), Some(3))] {
        let case = Case { program: chain.clone(), inputs: vec![vec![]], grid, lengths: vec![], fixpoint };
        against_reference(&backend, &case)?;
    }
    let outside = program(
        "program outside { buffer a: read u32[]; buffer o: output u32[2]; let x = a[0];
         barrier(grid); o[global_id.x] = x + 5;
         for k in 0..a[1] + 2 { barrier(grid); o[0] = o[0] + uniform_load(grid, a[k]) + 1; } }",
    )?;
    let case = Case {
        program: outside,
        inputs: vec![vec![]],
        grid: Some([1, 1, 1]),
        lengths: vec![],
        fixpoint: None,
    };
    against_reference(&backend, &case)?;
    still_free(&backend)
}

fn lacking(start: &Start<'_>) -> Verdict {
    let backend = start();
    let chain = program(CHAIN)?;
    let first = words(&after(0, 4));
    for (route, feature) in ALL {
        let config = DispatchConfig::new().route(route);
        let result = backend.dispatch_borrowed(&chain, &[&first], &config);
        if backend.supports(feature) {
            ensure!(unless_too_large(route, result)?.is_some(), "one workgroup does not fit one launch");
            continue;
        }
        refused(&format!("the route {route}"), result, "D003")?;
        refused("asynchronously", backend.dispatch_async(&chain, vec![first.clone()], &config), "D003")?;
        if backend.supports_resident() {
            let handle = backend.allocate_resident(16)?;
            let result = backend.dispatch_resident_timed(&chain, &[handle], &config);
            refused("over resident memory", result, "D003")?;
            backend.free_resident(handle)?;
        }
    }
    still_free(&backend)
}

fn budget(start: &Start<'_>) -> Verdict {
    let backend = start();
    // One word of each of 400 invocations is held.
    let held = program(
        "program held { workgroup_size 4; buffer x: read_write u32[400]; let i = global_id.x;
         let y = x[i]; barrier(grid); x[399 - i] = y; }",
    )?;
    let input = words(&[3; 400]);
    for route in split_routes(&backend) {
        let run = |budget: u64| {
            let config = DispatchConfig::new().route(route).memory_budget(budget);
            backend.dispatch_borrowed(&held, &[&input], &config)
        };
        let before = backend.snapshot_dispatch_telemetry();
        let error = refused("no budget", run(0), "D005")?;
        let Error::OverBudget { needed, budget: 0 } = error else {
            return Err(Failed(format!("the numbers are not there: {error}")));
        };
        ensure!(needed >= 3200, "1600 bytes of a buffer and 1600 that are held need {needed} by {route}");
        refused("one byte less", run(needed - 1), "D005")?;
        let after = backend.snapshot_dispatch_telemetry();
        equal("launches of refused dispatches", after.launches, before.launches)?;
        equal("what they allocate", after.resident_allocated, before.resident_allocated)?;
        run(needed)?;
    }
    still_free(&backend)
}

fn override_size(start: &Start<'_>) -> Verdict {
    let backend = start();
    let turns = program(
        "program turns { workgroup_size 4; buffer x: read_write u32[6]; workgroup w: u32[64];
         w[local_id.x] = x[global_id.x]; barrier(grid);
         if global_id.x < 6 { x[5 - global_id.x] = w[local_id.x] + local_id.x * 10; } }",
    )?;
    for size in [1u32, 3, 4, 64] {
        let lane = |i: u32| (5 - i) % size;
        let expected = words(&(0..6).map(|i| 5 - i + 1 + lane(i) * 10).collect::<Vec<_>>());
        for route in routes(&backend) {
            let config = DispatchConfig::new().workgroup_size(size).route(route);
            let result = backend.dispatch(&turns, vec![words(&[1, 2, 3, 4, 5, 6])], &config);
            let Some(output) = unless_too_large(route, result)? else { continue };
            equal(&format!("a size of {size} by {route}"), output.outputs, vec![expected.clone()])?;
        }
    }
    Ok(())
}

fn counts(start: &Start<'_>) -> Verdict {
    let backend = start();
    let chain = program(CHAIN)?;
    let first = words(&after(0, 8));
    // At a limit, and at rest in the middle of a chunk of passes.
    for (limit, passes) in [(7, 7), (100, 8)] {
        for route in split_routes(&backend) {
            let before = backend.snapshot_dispatch_telemetry();
            let config = DispatchConfig::new().route(route).fixpoint(limit);
            let output = backend.dispatch_borrowed(&chain, &[&first], &config)?;
            let now = backend.snapshot_dispatch_telemetry();
            let segments = u64::from(output.report.segments) * passes;
            equal("passes", now.passes - before.passes, passes)?;
            equal("splits", now.grid_sync_splits - before.grid_sync_splits, 1)?;
            equal("segments", now.grid_sync_segments - before.grid_sync_segments, segments)?;
            equal("points", now.grid_sync_points - before.grid_sync_points, passes)?;
            equal("launches", now.launches - before.launches, segments)?;
            equal("bytes in", now.bytes_in - before.bytes_in, 32)?;
            equal("bytes out", now.bytes_out - before.bytes_out, 32)?;
            if route == Route::Resident {
                let downloaded = now.bytes_downloaded - before.bytes_downloaded;
                equal("bytes downloaded", downloaded, 32 + 4 * passes)?;
            }
        }
    }
    Ok(())
}
