//! The backend suite on the reference, on backends with one defect each, and with faults injected everywhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use vyre_conform::suite;
use vyre_driver::{
    Action, BackendExt, Batch, CompileOptions, CompiledPipeline, Deadline, DeviceProfile, DispatchConfig,
    Error, Feature, Generation, Health, Outcome, Pending, RawHandle, ReferenceBackend, Result, Telemetry,
    Temporary, Unit, VyreBackend,
};
use vyre_foundation::Program;

#[test]
fn the_reference_passes_the_backend_suite() {
    suite::assert_passes(&|| Arc::new(ReferenceBackend::new()));
}

/// The reference on a device that has only some of the routes.
#[test]
fn backends_with_fewer_routes_pass_the_backend_suite() {
    let missing: [&[Feature]; 3] = [
        &[Feature::NativeGridSync],
        &[Feature::NativeGridSync, Feature::HostGridSync, Feature::HostMemory],
        &[Feature::NativeGridSync, Feature::Resident],
    ];
    std::thread::scope(|scope| {
        for missing in missing {
            scope.spawn(move || suite::assert_passes(&|| Arc::new(Broken::without(missing))));
        }
    });
}

/// What is wrong with a backend.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Defect {
    /// Steps run whether their predicate holds or not.
    IgnoresPredicates,
    /// A bit of each longer read is flipped.
    FlipsABit,
    /// The bytes that a batch brings along are zeros.
    LosesInitialBytes,
    /// Deadlines are not passed on.
    IgnoresDeadlines,
    /// Freeing does nothing.
    NeverFrees,
    /// Shutting down does nothing.
    NeverShutsDown,
    /// Recovering does nothing.
    NeverRecovers,
    /// Nothing submitted can be cancelled.
    IgnoresCancel,
    /// Launches run whether their predicate holds or not.
    LaunchesAnyway,
}

const DEFECTS: [Defect; 9] = [
    Defect::IgnoresPredicates,
    Defect::FlipsABit,
    Defect::LosesInitialBytes,
    Defect::IgnoresDeadlines,
    Defect::NeverFrees,
    Defect::NeverShutsDown,
    Defect::NeverRecovers,
    Defect::IgnoresCancel,
    Defect::LaunchesAnyway,
];

/// The reference with a defect, and with a number of calls after which every call fails.
struct Broken {
    inner: ReferenceBackend,
    profile: DeviceProfile,
    defect: Option<Defect>,
    calls_left: AtomicI64,
}

impl Broken {
    fn new(defect: Option<Defect>) -> Broken {
        let inner = ReferenceBackend::new();
        Broken { profile: inner.profile().clone(), inner, defect, calls_left: AtomicI64::new(i64::MAX) }
    }

    /// Nothing is wrong with it, but it lacks these features.
    fn without(features: &[Feature]) -> Broken {
        let mut backend = Broken::new(None);
        let left = backend.profile.features.iter().filter(|feature| !features.contains(feature));
        backend.profile.features = left.collect();
        backend
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// Fails once the calls are used up.
    fn call(&self) -> Result<()> {
        if self.calls_left.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Ok(());
        }
        Err(Error::OutOfMemory { what: "an injected fault".to_owned(), asked: 1, available: Some(0) })
    }

    fn batch<'a>(&self, mut batch: Batch<'a>) -> Batch<'a> {
        if self.has(Defect::IgnoresPredicates) {
            batch.steps.iter_mut().for_each(|step| step.when = None);
        }
        if self.has(Defect::LaunchesAnyway) {
            let launches = batch.steps.iter_mut().filter(|step| matches!(step.action, Action::Launch(_)));
            launches.for_each(|step| step.when = None);
        }
        if self.has(Defect::LosesInitialBytes) {
            for temporary in &mut batch.temporaries {
                if let Temporary::Initial(bytes) = temporary {
                    *bytes = vec![0; bytes.len()].into();
                }
            }
        }
        if self.has(Defect::IgnoresDeadlines) {
            // Late, so that the test ends.
            batch.deadline = Deadline::after(Duration::from_secs(3));
        }
        batch
    }
}

struct Deaf(Box<dyn Pending>);

impl Pending for Deaf {
    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }
    fn cancel(&self) {}
    fn wait(&self, deadline: Deadline) -> Result<Outcome> {
        self.0.wait(if deadline == Deadline::NEVER {
            Deadline::after(Duration::from_secs(3))
        } else {
            deadline
        })
    }
    fn wake(&self, waker: &std::task::Waker) {
        self.0.wake(waker);
    }
}

impl VyreBackend for Broken {
    fn profile(&self) -> &DeviceProfile {
        &self.profile
    }
    fn compile(&self, unit: &Unit, options: &CompileOptions) -> Result<Arc<dyn CompiledPipeline>> {
        self.call()?;
        self.inner.compile(unit, options)
    }
    fn allocate(&self, bytes: u64) -> Result<RawHandle> {
        self.call()?;
        self.inner.allocate(bytes)
    }
    fn free(&self, handle: RawHandle) -> Result<()> {
        if self.has(Defect::NeverFrees) { Ok(()) } else { self.inner.free(handle) }
    }
    fn submit(&self, batch: Batch<'static>) -> Result<Box<dyn Pending>> {
        self.call()?;
        let pending = self.inner.submit(self.batch(batch))?;
        Ok(if self.has(Defect::IgnoresCancel) { Box::new(Deaf(pending)) } else { pending })
    }
    fn run(&self, batch: Batch<'_>, deadline: Deadline) -> Result<Outcome> {
        self.call()?;
        let batch = self.batch(batch);
        let deadline = if self.has(Defect::IgnoresDeadlines) { batch.deadline } else { deadline };
        let mut outcome = self.inner.run(batch, deadline)?;
        if self.has(Defect::FlipsABit) {
            for bytes in outcome.reads.iter_mut().flatten().filter(|bytes| bytes.len() > 4) {
                bytes[4] ^= 1;
            }
        }
        self.call()?;
        Ok(outcome)
    }
    fn telemetry(&self) -> &Telemetry {
        self.inner.telemetry()
    }
    fn health(&self) -> Health {
        self.inner.health()
    }
    fn recover(&self) -> Result<Generation> {
        if self.has(Defect::NeverRecovers) { Ok(self.health().generation) } else { self.inner.recover() }
    }
    fn shutdown(&self, deadline: Deadline) -> Result<()> {
        if self.has(Defect::NeverShutsDown) { Ok(()) } else { self.inner.shutdown(deadline) }
    }
}

#[test]
fn the_suite_finds_what_is_wrong_with_a_backend() {
    std::thread::scope(|scope| {
        for defect in DEFECTS {
            scope.spawn(move || {
                let start = || -> Arc<dyn VyreBackend> { Arc::new(Broken::new(Some(defect))) };
                let mut checks = suite::checks().into_iter();
                assert!(checks.any(|check| (check.run)(&start).is_err()), "{defect:?} was not found");
            });
        }
    });
}

/// A chunk that was halted in the middle must stop there: only programs in segments show it.
#[test]
fn launches_after_a_halt_are_found_by_the_checks_of_grid_barriers() {
    let failed = suite::run(&|| Arc::new(Broken::new(Some(Defect::LaunchesAnyway))));
    let names: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("grid barriers")), "{names:?}");
}

#[test]
fn a_failure_anywhere_leaves_nothing_allocated() {
    let text = "program p { buffer a: read u32[2]; buffer x: read_write u32[2]; buffer o: output u32[2];
        buffer s: scratch u32[2]; x[global_id.x] = min(x[global_id.x] + a[global_id.x], 20); o[0] = x[0]; }";
    let program = Program::parse(text).unwrap();
    let input: &[u8] = &[1, 0, 0, 0, 1, 0, 0, 0];
    let mut failed = 0;
    for calls in 0..1000 {
        let backend = Arc::new(Broken::new(None));
        backend.calls_left.store(calls, Ordering::SeqCst);
        let config = DispatchConfig::new().fixpoint(100);
        let mut outputs = vec![vec![7u8]];
        let blocking = backend.dispatch_borrowed_into(&program, &[input, input], &mut outputs, &config);
        if blocking.is_err() {
            assert_eq!(outputs, [[7]]);
        }
        let owned = backend.dispatch(&program, vec![input.to_vec(), input.to_vec()], &config);
        let pending = backend.dispatch_borrowed_async(&program, &[input, input], &config);
        let pending = pending.and_then(|pending| pending.await_result());
        let buffer = backend.device_buffer_from(&[1u32, 2]);
        let all_failed = [blocking.is_err(), owned.is_err(), pending.is_err(), buffer.is_err()];
        drop(buffer);
        let counters = backend.snapshot_dispatch_telemetry();
        assert_eq!(counters.resident_allocated, counters.resident_freed, "after {calls} calls");
        failed += usize::from(all_failed.contains(&true));
        if !all_failed.contains(&true) {
            break;
        }
    }
    assert!(failed > 10 && failed < 1000, "{failed} faults were injected");
}
