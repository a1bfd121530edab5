//! What travels to and from a device with memory of its own, to the byte: grid barriers on the resident route move the
//! inputs there once, the outputs back once, and a word for whatever the engine must see.

use vyre_driver::{BackendExt, DispatchConfig, DispatchOutput, Route};
use vyre_foundation::Program;
use vyre_toy_backend::ToyBackend;

/// Runs a program on the resident route. Gives the result, and the bytes that went up and came down.
fn moved(text: &str, inputs: &[&[u8]], config: &DispatchConfig) -> (DispatchOutput, u64, u64) {
    let backend = ToyBackend::new();
    let program = Program::parse(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let config = config.clone().route(Route::Resident);
    let output = backend.dispatch_borrowed(&program, inputs, &config).expect("a result");
    let counters = backend.snapshot_dispatch_telemetry();
    assert_eq!(counters.resident_allocated, counters.resident_freed);
    (output, counters.bytes_uploaded, counters.bytes_downloaded)
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn segments_move_nothing_between_them() {
    let text = "program line {
        workgroup_size 4;
        buffer a: read u32[32];
        buffer x: read_write u32[16];
        buffer o: output u32[16];
        buffer s: scratch u32[16];
        let i = global_id.x;
        let y = x[i];
        s[i] = a[i];
        barrier(grid);
        x[i] = s[15 - i];
        barrier(grid);
        s[i] = x[15 - i] + y;
        barrier(grid);
        o[i] = s[15 - i];
        barrier(grid);
        x[i] = o[15 - i] + y;
    }";
    let (output, up, down) = moved(text, &[&[1; 128], &[2; 64]], &DispatchConfig::new());
    assert_eq!(output.report.segments, 5);
    assert_eq!((up, down), (128 + 64, 64 + 64));
}

/// A loop of as many rounds as the first element of `n` says; each adds the round's number.
const COUNTED: &str = "program counted {
    workgroup_size 4;
    buffer n: uniform u32[1];
    buffer x: read_write u32[8];
    buffer o: output u32[8];
    let i = global_id.x;
    for k in 0..n[0] {
        o[i] = x[(i + 1) % 8] + k;
        barrier(grid);
        x[i] = o[(i + 1) % 8];
        barrier(grid);
    }
}";

#[test]
fn rounds_that_the_engine_counts_move_nothing() {
    for rounds in [0, 1, 10, 1000] {
        let (output, up, down) = moved(COUNTED, &[&words(&[rounds]), &[0; 32]], &DispatchConfig::new());
        assert_eq!((up, down), (4 + 32, 32 + 32), "{rounds} rounds");
        let sum = (0..rounds).fold(0, u32::wrapping_add);
        assert_eq!(output.outputs[0], words(&[sum; 8]));
    }
}

/// Counts down and ends when the count is there.
const UNTIL: &str = "program until {
    workgroup_size 4;
    buffer left: read_write u32[1];
    buffer o: output u32[8];
    let i = global_id.x;
    for k in 0..1000000 {
        o[i] = o[i] + 1;
        barrier(grid);
        if i == 0 {
            left[0] = left[0] - 1;
        }
        if uniform_load(grid, left[0]) == 0 {
            break;
        }
    }
}";

#[test]
fn a_round_that_ends_on_data_moves_a_word() {
    for rounds in [1, 2, 25, 400] {
        let (output, up, down) = moved(UNTIL, &[&words(&[rounds])], &DispatchConfig::new());
        assert_eq!(output.outputs[1], words(&[rounds; 8]));
        assert_eq!((up, down), (4, 4 + 32 + 4 * u64::from(rounds)), "{rounds} rounds");
    }
}

/// Each pass moves what an element knows to the next one.
const CHAIN: &str = "program chain {
    workgroup_size 4;
    buffer x: read_write u32[];
    let i = global_id.x;
    let before = x[i - min(i, 1)];
    barrier(grid);
    if i < len(x) && before > x[i] {
        x[i] = before;
    }
}";

#[test]
fn a_pass_of_a_fixpoint_moves_a_word() {
    // At the end of a chunk, in the middle of one, and at the limit.
    let ends = [(1, 9), (3, 9), (7, 100), (15, 100), (127, 5000)];
    let middles = [(2, 9), (4, 5000), (10, 5000), (64, 5000), (130, 5000)];
    let limits = [(40, 10), (40, 1), (200, 150)];
    for (elements, limit) in ends.into_iter().chain(middles).chain(limits) {
        let mut first = vec![0; elements as usize];
        first[0] = 1;
        let (output, up, down) = moved(CHAIN, &[&words(&first)], &DispatchConfig::new().fixpoint(limit));
        let passes = elements.min(limit);
        assert_eq!(output.report.passes, passes);
        let bytes = u64::from(elements) * 4;
        assert_eq!((up, down), (bytes, bytes + 4 * u64::from(passes)), "{elements} elements, limit {limit}");
    }
}

#[test]
fn resident_memory_moves_nothing_but_words() {
    let backend = ToyBackend::new();
    let program = Program::parse(UNTIL).unwrap_or_else(|errors| panic!("{errors:?}"));
    let left = backend.allocate_resident(4).expect("memory");
    let o = backend.allocate_resident(32).expect("memory");
    backend.upload_resident(left, &words(&[30])).expect("an upload");
    let before = backend.snapshot_dispatch_telemetry();
    let config = DispatchConfig::new().route(Route::Resident);
    backend.dispatch_resident_timed(&program, &[left, o], &config).expect("a result");
    let now = backend.snapshot_dispatch_telemetry();
    assert_eq!(now.bytes_uploaded - before.bytes_uploaded, 0);
    assert_eq!(now.bytes_downloaded - before.bytes_downloaded, 4 * 30);
}
