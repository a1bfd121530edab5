//! Grid barriers and everything around a dispatch: time, cancellation, sequences, and handles that are misused.

use super::control::{SLACK, usable};
use super::grid_sync::{Backend, routes};
use super::results::still_free;
use super::{ADD_ONE, Check, Failed, Start, Verdict, ensure, equal, program, refused, words};
use std::thread;
use std::time::{Duration, Instant};
use vyre_driver::{BackendExt, DispatchConfig, Error, RawHandle, ResidentStep};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "grid barriers: a timeout ends an endless loop of barriers", run: timeout },
    Check { name: "grid barriers: cancelling and dropping end an endless loop of barriers", run: cancel },
    Check { name: "grid barriers: dispatches of a sequence", run: sequences },
    Check { name: "grid barriers: handles that name nothing touch nothing", run: freed },
    Check { name: "grid barriers: handles that are aliased touch nothing", run: aliased },
];

/// Loops of barriers that do not end for as long as anybody would wait: with nothing between them, with a launch, and
/// with a value that the engine must see.
const ENDLESS: [&str; 3] = [
    "program endless { buffer o: output u32[1]; for i in 0..4294967295 { barrier(grid); } o[0] = 1; }",
    "program endless { workgroup_size 4; buffer o: output u32[8];
        for i in 0..4294967295 { barrier(grid); o[global_id.x] = o[global_id.x] + i; } }",
    "program endless { buffer o: output u32[2]; for i in 0..4294967295 {
        o[0] = i; if uniform_load(grid, o[1]) == 1 { break; } } }",
];

fn timeout(start: &Start<'_>) -> Verdict {
    let backend = start();
    let limit = Duration::from_millis(40);
    for text in ENDLESS {
        let endless = program(text)?;
        for route in routes(&backend) {
            let config = DispatchConfig::new().timeout(limit).route(route);
            let mut outputs = vec![vec![7]];
            let begin = Instant::now();
            let result = backend.dispatch_borrowed_into(&endless, &[], &mut outputs, &config);
            let took = begin.elapsed();
            equal(&format!("by {route}"), result, Err(Error::Timeout { limit }))?;
            ensure!(took >= limit && took < limit + SLACK, "by {route} it took {took:?} to stop");
            equal("the caller's buffers", outputs, vec![vec![7]])?;
            let begin = Instant::now();
            let pending = backend.dispatch_async(&endless, vec![], &config)?;
            let result = pending.await_result();
            equal(&format!("asynchronously, by {route}"), result, Err(Error::Timeout { limit }))?;
            ensure!(begin.elapsed() < limit + SLACK, "by {route} it took {:?} to stop", begin.elapsed());
            usable(&backend)?;
        }
    }
    still_free(&backend)
}

fn cancel(start: &Start<'_>) -> Verdict {
    let backend = start();
    for text in ENDLESS {
        let endless = program(text)?;
        for route in routes(&backend) {
            // Late, so that a backend that goes on for ever fails.
            let config = DispatchConfig::new().route(route).timeout(SLACK * 3);
            let pending = backend.dispatch_async(&endless, vec![], &config)?;
            thread::sleep(Duration::from_millis(5));
            ensure!(!pending.is_ready(), "an endless loop has ended");
            let begin = Instant::now();
            pending.cancel();
            equal(&format!("cancelled, by {route}"), pending.await_result(), Err(Error::Cancelled))?;
            ensure!(begin.elapsed() < SLACK, "by {route} it took {:?} to cancel", begin.elapsed());
            let begin = Instant::now();
            drop(backend.dispatch_async(&endless, vec![], &config)?);
            usable(&backend)?;
            ensure!(begin.elapsed() < SLACK, "by {route} it took {:?} to drop", begin.elapsed());
        }
    }
    still_free(&backend)
}

/// Every element moves to the next place, and grows by one.
const TURNS: &str = "program turns {
    workgroup_size 2;
    buffer x: read_write u32[];
    let i = global_id.x;
    let y = x[i];
    barrier(grid);
    x[(i + 1) % len(x)] = y + 1;
}";

fn holding(backend: &Backend, values: &[u32]) -> Result<RawHandle, Failed> {
    let handle = backend.allocate_resident(values.len() as u64 * 4)?;
    backend.upload_resident(handle, &words(values))?;
    Ok(handle)
}

fn sequences(start: &Start<'_>) -> Verdict {
    let backend = start();
    let (turns, add_one) = (program(TURNS)?, program(ADD_ONE)?);
    for route in routes(&backend) {
        let handle = holding(&backend, &[10, 20, 30, 40])?;
        let buffers = [handle];
        let config = DispatchConfig::new().route(route);
        let steps = [
            ResidentStep::new(&add_one, &buffers, &config),
            ResidentStep::new(&turns, &buffers, &config),
            ResidentStep::new(&turns, &buffers, &config),
        ];
        let mut outputs = vec![];
        backend.dispatch_resident_sequence_read_ranges_into(&steps, &[handle.into()], &mut outputs)?;
        equal(&format!("a sequence by {route}"), outputs, vec![words(&[33, 43, 13, 23])])?;
        let mut outputs = vec![];
        let read = [handle.into()];
        backend.dispatch_resident_repeated_sequence_read_ranges_into(&steps, 10, &read, &mut outputs)?;
        equal(&format!("repeated by {route}"), outputs, vec![words(&[63, 73, 43, 53])])?;
        backend.free_resident(handle)?;
    }
    still_free(&backend)
}

/// What it changes first is changed long before the other buffer is used.
const LATE_USE: &str = "program late_use {
    buffer x: read_write u32[1];
    buffer late: read_write u32[1];
    x[0] = x[0] + 1;
    if uniform_load(grid, x[0]) > 0 {
        barrier(grid);
        late[0] = 5;
    }
}";

fn freed(start: &Start<'_>) -> Verdict {
    let backend = start();
    let (late_use, turns) = (program(LATE_USE)?, program(TURNS)?);
    for route in routes(&backend) {
        let config = DispatchConfig::new().route(route);
        let fine = holding(&backend, &[1])?;
        let gone = holding(&backend, &[2])?;
        backend.free_resident(gone)?;
        let by = |what: &str| format!("{what}, by {route}");
        let result = backend.dispatch_resident_timed(&late_use, &[fine, gone], &config);
        refused(&by("a freed handle"), result, "D020")?;
        equal(&by("the other memory"), backend.download_resident(fine)?, words(&[1]))?;
        let (fine_alone, gone_alone) = ([fine], [gone]);
        let first = ResidentStep::new(&turns, &fine_alone, &config);
        let second = ResidentStep::new(&turns, &gone_alone, &config);
        let mut outputs = vec![vec![7]];
        let result = backend.dispatch_resident_sequence_read_ranges_into(&[first, second], &[], &mut outputs);
        refused(&by("a sequence over it"), result, "D020")?;
        equal(&by("memory of the step before"), backend.download_resident(fine)?, words(&[1]))?;
        let read = [gone.into()];
        let result = backend.dispatch_resident_sequence_read_ranges_into(&[first], &read, &mut outputs);
        refused(&by("a sequence that reads it"), result, "D020")?;
        equal(&by("memory of a sequence"), backend.download_resident(fine)?, words(&[1]))?;
        equal("the caller's buffers", outputs, vec![vec![7]])?;
        backend.free_resident(fine)?;
    }
    still_free(&backend)
}

fn aliased(start: &Start<'_>) -> Verdict {
    let backend = start();
    let apart = program(
        "program apart { buffer a: read u32[2]; buffer o: read_write u32[2]; buffer t: scratch u32[2];
         let i = global_id.x; t[i] = a[1 - i]; barrier(grid); o[i] = t[i]; }",
    )?;
    let both = program(
        "program both { buffer a: read u32[2]; buffer b: read u32[2]; buffer o: output u32[2];
         let i = global_id.x; o[i] = a[1 - i]; barrier(grid); o[i] = o[i] + b[i]; }",
    )?;
    for route in routes(&backend) {
        let handle = holding(&backend, &[1, 2])?;
        let config = DispatchConfig::new().route(route);
        let result = backend.dispatch_resident_timed(&apart, &[handle, handle], &config);
        refused(&format!("read and written, by {route}"), result, "D025")?;
        equal("its memory", backend.download_resident(handle)?, words(&[1, 2]))?;
        let fixpoint = backend.dispatch_resident_timed(&apart, &[handle, handle], &config.fixpoint(3));
        refused(&format!("in a fixpoint, by {route}"), fixpoint, "D025")?;
        equal("its memory", backend.download_resident(handle)?, words(&[1, 2]))?;
        let o = holding(&backend, &[9, 9])?;
        let config = DispatchConfig::new().route(route);
        backend.dispatch_resident_timed(&both, &[handle, handle, o], &config)?;
        equal(&format!("two that only read, by {route}"), backend.download_resident(o)?, words(&[3, 3]))?;
        backend.free_resident(o)?;
        backend.free_resident(handle)?;
    }
    still_free(&backend)
}
