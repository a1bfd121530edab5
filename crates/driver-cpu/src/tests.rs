//! What a file of programs cannot show: that a failure anywhere leaves nothing behind.

use crate::faults::armed;
use crate::{CpuBackend, CpuOptions};
use vyre_driver::{BackendExt, Counters, DispatchConfig, Error, Route, VyreBackend};
use vyre_foundation::Program;

/// A program with everything that is allocated for: buffers of all kinds, a frame, storage kept across grid barriers.
fn program(number: u32) -> Program {
    let text = format!(
        "program p {{
            workgroup_size 4;
            buffer a: read u32[];
            buffer b: read_write u32[16];
            buffer o: output u32[16];
            buffer s: scratch u32[16];
            workgroup w: u32[4];
            local l: u32[3];
            let i = global_id.x;
            l[i % 3] = a[i] + {number};
            w[local_id.x] = b[i];
            s[i] = i;
            barrier(grid);
            b[i] = w[3 - local_id.x] + s[15 - i];
            o[i] = l[i % 3];
        }}"
    );
    Program::parse(&text).expect("a program")
}

/// What is alive: resident bytes, and code beyond that which the cache keeps.
fn alive(counters: Counters) -> (u64, u64) {
    let code = counters.code_allocated - counters.code_freed;
    let kept = counters.code_kept - counters.code_dropped;
    (counters.resident_allocated - counters.resident_freed, code - kept)
}

fn backend() -> CpuBackend {
    let options = CpuOptions { threads: 2, cache_folder: None, ..CpuOptions::default() };
    CpuBackend::with_options(options).expect("a CPU")
}

/// Lets one thing after the other fail in dispatches by a route, of which so many are told apart and at least so many
/// are there, and checks that each failure leaves everything as it was.
fn fail_everywhere(route: Route, apart: u32, least: u32) {
    let backend = backend();
    let inputs = [vec![1u8; 64], vec![2u8; 64]];
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let config = DispatchConfig::new().fixpoint(3).route(route);
    let (mut failed, mut places) = (0, 0);
    for number in 0..1000 {
        // Every third program is new, so compilation is among what fails.
        let program = program(number / 3);
        let mut outputs = vec![vec![7u8; 3]];
        armed::arm(number % apart);
        let result = backend.dispatch_borrowed_into(&program, &inputs, &mut outputs, &config);
        let struck = armed::disarm();
        assert_eq!(result.is_err(), struck, "{number}: {result:?}");
        if struck {
            assert_eq!(outputs, [[7u8; 3]], "{number}: the caller's buffers are as they were");
            failed += 1;
            places = places.max(number % apart);
        } else {
            assert_eq!(result.map(|report| report.route), Ok(route));
        }
        assert_eq!(alive(backend.telemetry().snapshot()), (0, 0), "{number}");
    }
    assert!(failed > 300 && places >= least, "{failed} failures in {places} places");
    assert!(places < apart - 1, "there are more than {apart} places to fail in");
}

#[test]
fn failures_leave_nothing_behind() {
    fail_everywhere(Route::Native, 40, 11);
}

#[test]
fn failures_between_segments_leave_nothing_behind() {
    fail_everywhere(Route::Resident, 40, 11);
}

#[test]
fn failures_between_segments_on_the_host_leave_nothing_behind() {
    // Bytes of the host are used where they are, so there is less to allocate.
    fail_everywhere(Route::Host, 20, 8);
}

#[test]
fn failures_over_resident_memory_leave_nothing_else_behind() {
    for route in [Route::Resident, Route::Host] {
        let backend = backend();
        let handles = [64; 3].map(|bytes| backend.allocate_resident(bytes).expect("memory"));
        let (mut failed, mut passed) = (0, 0);
        for number in 0..300 {
            let program = program(number / 3);
            let before = handles.map(|handle| backend.download_resident(handle).expect("its bytes"));
            armed::arm(number % 30);
            let config = DispatchConfig::new().fixpoint(2).route(route);
            let result = backend.dispatch_resident_timed(&program, &handles, &config);
            let struck = armed::disarm();
            assert_eq!(result.is_err(), struck, "{number}: {result:?}");
            (failed, passed) = (failed + u32::from(struck), passed + u32::from(!struck));
            if struck && route == Route::Host {
                let after = handles.map(|handle| backend.download_resident(handle).expect("its bytes"));
                assert_eq!(before, after, "{number}: what is on the host goes back when all is done");
            }
            assert_eq!(alive(backend.telemetry().snapshot()), (64 * 3, 0), "{number}");
        }
        assert!(failed > 50 && passed > 50, "{failed} failures and {passed} results by {route}");
    }
}

#[test]
fn a_failure_in_a_segment_says_which() {
    let text = "program regions {
        workgroup_size 4;
        buffer x: read_write u32[16];
        workgroup w: u32[4];
        let i = global_id.x;
        region \"load\" from \"a test\" {
            w[local_id.x] = x[i];
            barrier(workgroup);
            x[i] = w[3 - local_id.x];
        }
        barrier(grid);
        region \"turn\" {
            w[local_id.x] = x[15 - i];
            barrier(workgroup);
            x[i] = x[i] + w[3 - local_id.x];
        }
        barrier(grid);
        x[i] = x[i] + 1;
    }";
    let program = Program::parse(text).expect("a program");
    for route in [Route::Resident, Route::Host] {
        let mut found = Vec::new();
        // What is compiled is kept by the backend, so each one fails while it compiles and then while it runs.
        for (place, warm) in (0..60).flat_map(|place| [(place, false), (place, true)]) {
            let backend = backend();
            let config = DispatchConfig::new().route(route);
            if warm {
                backend.prepare(&program, &config).expect("code");
            }
            armed::arm(place);
            let result = backend.dispatch_borrowed(&program, &[&[1; 64]], &config);
            armed::disarm();
            if let Err(error @ Error::Segment { .. }) = result {
                assert!(
                    matches!(error.root(), Error::OutOfMemory { .. } | Error::Unsupported { .. }),
                    "{error}"
                );
                assert_eq!(error.code(), error.root().code());
                let text = error.to_string();
                let (head, _) = text.split_once(": ").expect("what went wrong");
                found.push((warm, head.to_owned()));
            }
        }
        found.sort();
        found.dedup();
        for head in ["segment 1 of 3 (from load from a test)", "segment 2 of 3 (from turn)", "segment 3 of 3"]
        {
            assert!(found.contains(&(false, head.to_owned())), "{head} is not in {found:?}");
        }
        assert!(found.iter().any(|(warm, _)| *warm), "no launch failed by {route}: {found:?}");
    }
}
