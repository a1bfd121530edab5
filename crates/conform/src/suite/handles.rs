//! Misuse of resident handles: typed errors, and memory is never touched.

use super::{ADD_ONE, Check, Failed, SUM, Start, Verdict, equal, program, refused, words};
use std::sync::Arc;
use vyre_driver::{BackendExt, DispatchConfig, RawHandle, ResidentRange, ResidentStep, VyreBackend};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "handles: freed", run: freed },
    Check { name: "handles: of another instance", run: foreign },
    Check { name: "handles: stale after recovery", run: stale },
    Check { name: "handles: wrong sizes", run: sizes },
    Check { name: "handles: ranges outside the buffer", run: ranges },
    Check { name: "handles: aliased", run: aliased },
    Check { name: "handles: freeing waits for work in flight", run: freed_in_flight },
];

type Backend = Arc<dyn VyreBackend>;

/// A resident buffer that holds these words.
fn holding(backend: &Backend, values: &[u32]) -> Result<RawHandle, Failed> {
    let handle = backend.allocate_resident(values.len() as u64 * 4)?;
    backend.upload_resident(handle, &words(values))?;
    Ok(handle)
}

/// Every way to use a handle that names nothing, next to one that is fine and must stay as it is.
fn every_use_is_refused(backend: &Backend, wrong: RawHandle, code: &str) -> Verdict {
    let fine = holding(backend, &[1, 2])?;
    let add_one = program(ADD_ONE)?;
    let sum = program(SUM)?;
    let bytes = words(&[8, 9]);
    let config = DispatchConfig::new();
    let all = ResidentRange::from(wrong);
    let mut outputs = vec![vec![7]];
    refused("free", backend.free_resident(wrong), code)?;
    refused("upload", backend.upload_resident(wrong, &bytes), code)?;
    refused("upload many", backend.upload_resident_many(&[(fine, &bytes), (wrong, &bytes)]), code)?;
    refused("upload at", backend.upload_resident_at(wrong, 4, &bytes[..4]), code)?;
    refused("download", backend.download_resident(wrong), code)?;
    let ranges = [fine.into(), all];
    refused("download ranges", backend.download_resident_ranges_into(&ranges, &mut outputs), code)?;
    refused("dispatch", backend.dispatch_resident_timed(&add_one, &[wrong], &config), code)?;
    refused("dispatch", backend.dispatch_resident_timed(&sum, &[fine, wrong, fine], &config), "D025")?;
    let other = holding(backend, &[3, 4])?;
    refused("dispatch", backend.dispatch_resident_timed(&sum, &[fine, wrong, other], &config), code)?;
    let step = ResidentStep::new(&add_one, std::slice::from_ref(&fine), &config);
    let read = backend.dispatch_resident_sequence_read_ranges_into(&[step], &[all], &mut outputs);
    refused("a sequence that reads it", read, code)?;
    let many =
        backend.dispatch_resident_repeated_sequence_read_ranges_into(&[step], 5000, &[all], &mut outputs);
    refused("a long sequence that reads it", many, code)?;
    equal("the caller's buffers", outputs, vec![vec![7]])?;
    equal("other memory", backend.download_resident(fine)?, words(&[1, 2]))?;
    equal("other memory", backend.download_resident(other)?, words(&[3, 4]))?;
    backend.free_resident(fine)?;
    backend.free_resident(other)?;
    Ok(())
}

fn freed(start: &Start<'_>) -> Verdict {
    let backend = start();
    let handle = holding(&backend, &[5, 6])?;
    backend.free_resident(handle)?;
    every_use_is_refused(&backend, handle, "D020")?;
    let again = holding(&backend, &[5, 6])?;
    every_use_is_refused(&backend, handle, "D020")?;
    equal("memory that came after", backend.download_resident(again)?, words(&[5, 6]))
}

fn foreign(start: &Start<'_>) -> Verdict {
    let (backend, other) = (start(), start());
    let handle = holding(&other, &[5, 6])?;
    every_use_is_refused(&backend, handle, "D021")?;
    equal("its own instance", other.download_resident(handle)?, words(&[5, 6]))?;
    other.free_resident(handle)?;
    Ok(())
}

fn stale(start: &Start<'_>) -> Verdict {
    let backend = start();
    let handle = holding(&backend, &[5, 6])?;
    let before = backend.health().generation;
    let after = backend.try_recover()?;
    super::ensure!(after > before, "recovery starts no new generation");
    equal("lost after recovery", backend.device_lost(), false)?;
    every_use_is_refused(&backend, handle, "D022")?;
    super::results::still_free(&backend)
}

fn sizes(start: &Start<'_>) -> Verdict {
    let backend = start();
    let handle = holding(&backend, &[1, 2])?;
    for bytes in [&words(&[9])[..], &words(&[9, 9, 9]), &[]] {
        refused("upload", backend.upload_resident(handle, bytes), "D024")?;
    }
    let fixed = program("program fixed { buffer x: read_write u32[3]; x[global_id.x] = 9; }")?;
    refused("count", backend.dispatch_resident_timed(&fixed, &[handle], &DispatchConfig::new()), "D024")?;
    let odd = backend.allocate_resident(6)?;
    let add_one = program(ADD_ONE)?;
    refused("part", backend.dispatch_resident_timed(&add_one, &[odd], &DispatchConfig::new()), "D024")?;
    refused("none", backend.dispatch_resident_timed(&add_one, &[], &DispatchConfig::new()), "D002")?;
    let two = [handle, odd];
    refused("more", backend.dispatch_resident_timed(&add_one, &two, &DispatchConfig::new()), "D002")?;
    equal("memory", backend.download_resident(handle)?, words(&[1, 2]))
}

fn ranges(start: &Start<'_>) -> Verdict {
    let backend = start();
    let handle = holding(&backend, &[1, 2])?;
    let bytes = words(&[9]);
    for offset in [5, 8, 9, u64::MAX, u64::MAX - 3] {
        refused("upload", backend.upload_resident_at(handle, offset, &bytes), "D023")?;
    }
    let both = [(handle, 0, &bytes[..]), (handle, 8, &bytes[..])];
    refused("one of two", backend.upload_resident_at_many(&both), "D023")?;
    let outside = [(0, 9), (8, 1), (9, 0), (4, u64::MAX), (u64::MAX, 2), (u64::MAX, u64::MAX)];
    for (offset, bytes) in outside {
        let range = ResidentRange { handle, offset, bytes };
        refused("download", backend.download_resident_range(range), "D023")?;
        let mut output = vec![7];
        refused("into", backend.download_resident_range_into(range, &mut output), "D023")?;
        equal("the caller's buffer", output, vec![7])?;
    }
    let empty = ResidentRange { handle, offset: 8, bytes: 0 };
    equal("an empty range at the end", backend.download_resident_range(empty)?, vec![])?;
    equal("memory", backend.download_resident(handle)?, words(&[1, 2]))
}

fn aliased(start: &Start<'_>) -> Verdict {
    let backend = start();
    let sum = program(SUM)?;
    let (a, o) = (holding(&backend, &[1, 2])?, holding(&backend, &[0, 0])?);
    let config = DispatchConfig::new();
    refused("written", backend.dispatch_resident_timed(&sum, &[a, o, o], &config), "D025")?;
    refused("written", backend.dispatch_resident_timed(&sum, &[a, o, a], &config), "D025")?;
    equal("memory", backend.download_resident(a)?, words(&[1, 2]))?;
    backend.dispatch_resident_timed(&sum, &[a, a, o], &config)?;
    equal("two that only read", backend.download_resident(o)?, words(&[2, 4]))
}

fn freed_in_flight(start: &Start<'_>) -> Verdict {
    use vyre_driver::{Action, Batch, Deadline, Launch, Span};
    let backend = start();
    let handle = holding(&backend, &[1, 2, 3, 4])?;
    let add_one = program(ADD_ONE)?;
    let pipeline = backend.compile_native(&add_one, &DispatchConfig::new())?;
    let code = pipeline
        .compiled()
        .ok_or_else(|| Failed("a program without grid barriers is one launch".to_owned()))?;
    let layout = vyre_foundation::Layout::new(&add_one, &[16], &[]).map_err(|e| Failed(e.to_string()))?;
    let grid = vyre_foundation::grid::resolve(&add_one, &layout, None).map_err(|e| Failed(e.to_string()))?;
    let mut batch = Batch::default();
    for _ in 0..50 {
        let launch = Launch { pipeline: Arc::clone(code), bindings: vec![Span::resident(handle)], grid };
        batch.push(Action::Launch(launch));
    }
    batch.push(Action::Read { from: Span::resident(handle) });
    let pending = backend.submit(batch)?;
    backend.free_resident(handle)?;
    refused("after", backend.download_resident(handle), "D020")?;
    let outcome = pending.wait(Deadline::NEVER)?;
    equal("the work in flight", outcome.reads, vec![Some(words(&[51, 52, 53, 54]))])
}
