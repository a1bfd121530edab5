//! What a file of programs cannot show: that a failure anywhere leaves nothing behind.

use crate::faults::armed;
use crate::{CpuBackend, CpuOptions};
use vyre_driver::{BackendExt, Counters, DispatchConfig, VyreBackend};
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

#[test]
fn failures_leave_nothing_behind() {
    let options = CpuOptions { threads: 2, cache_folder: None, ..CpuOptions::default() };
    let backend = CpuBackend::with_options(options).expect("a CPU");
    let inputs = [vec![1u8; 64], vec![2u8; 64]];
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let config = DispatchConfig::new().fixpoint(3);
    let (mut failed, mut places) = (0, 0);
    for number in 0..1000 {
        // Every third program is new, so compilation is among what fails.
        let program = program(number / 3);
        let mut outputs = vec![vec![7u8; 3]];
        armed::arm(number % 40);
        let result = backend.dispatch_borrowed_into(&program, &inputs, &mut outputs, &config);
        let struck = armed::disarm();
        assert_eq!(result.is_err(), struck, "{number}: {result:?}");
        if struck {
            assert_eq!(outputs, [[7u8; 3]], "{number}: the caller's buffers are as they were");
            failed += 1;
            places = places.max(number % 40);
        }
        assert_eq!(alive(backend.telemetry().snapshot()), (0, 0), "{number}");
    }
    assert!(failed > 300 && places > 10, "{failed} failures in {places} places");
}
