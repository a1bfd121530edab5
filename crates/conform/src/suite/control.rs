//! Order, cancellation, time and threads.

use super::{ADD_ONE, Check, Failed, Start, Verdict, endless, ensure, equal, program, refused, words};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use vyre_driver::{
    Action, BackendExt, Batch, BindingPlan, CompiledPipeline, Deadline, DispatchConfig, Error, Feature,
    Launch, Span, VyreBackend,
};
use vyre_foundation::grid::Grid;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "control: batches of one thread run in order", run: order },
    Check { name: "control: predicates decide when their step is reached", run: predicates },
    Check { name: "control: a timeout ends an endless loop", run: timeout },
    Check { name: "control: an asynchronous timeout ends an endless loop", run: pending_timeout },
    Check { name: "control: cancelling and dropping end an endless loop", run: cancel },
    Check { name: "control: a pending dispatch is a future", run: future },
    Check { name: "control: many threads use one backend", run: threads },
    Check { name: "control: a batch that contradicts itself is refused", run: wrong_batches },
    Check { name: "control: pipelines of other backends are refused", run: foreign_pipelines },
    Check { name: "control: shutdown refuses work", run: shutdown },
];

/// How long a dispatch may go on after it was told to stop, on a busy machine.
pub(super) const SLACK: Duration = Duration::from_secs(2);

fn order(start: &Start<'_>) -> Verdict {
    let backend = start();
    let handle = backend.allocate_resident(4)?;
    let target = Span::resident(handle);
    let mut pending = Vec::new();
    for i in 0..200u32 {
        let mut batch = Batch::default();
        batch.push(Action::Read { from: target });
        batch.push(Action::Write { target, bytes: words(&[i + 1]).into() });
        pending.push(backend.submit(batch)?);
    }
    equal("a blocking read comes last", backend.download_resident(handle)?, words(&[200]))?;
    for (i, pending) in (0..).zip(pending) {
        ensure!(pending.is_ready(), "batch {i} is not done although a later call is");
        equal("each sees the one before", pending.wait(Deadline::NEVER)?.reads, vec![Some(words(&[i]))])?;
    }
    backend.free_resident(handle)?;
    Ok(())
}

fn predicates(start: &Start<'_>) -> Verdict {
    use vyre_driver::{Predicate, Step, Temporary};
    let backend = start();
    let mut batch = Batch::default();
    let flag = batch.temporary(Temporary::Zeroed { bytes: 4 });
    let data = batch.temporary(Temporary::Initial(words(&[1, 2]).into()));
    let same = batch.temporary(Temporary::Borrowed(words(&[1, 2]).into()));
    let when = |holds| Some(Predicate { word: flag, holds });
    let fill = |byte| Action::Fill { target: data, byte };
    batch.steps.push(Step { action: fill(9), when: when(true) });
    batch.push(Action::Compare { a: data, b: same, differs: flag });
    batch.steps.push(Step { action: Action::Read { from: data }, when: when(false) });
    batch.steps.push(Step { action: fill(7), when: when(false) });
    batch.push(Action::Compare { a: data, b: same, differs: flag });
    batch.steps.push(Step { action: Action::Read { from: data }, when: when(false) });
    batch.push(Action::Copy { from: same, to: data });
    batch.push(Action::Compare { a: data, b: same, differs: flag });
    batch.push(Action::Read { from: flag });
    batch.push(Action::Read { from: data });
    let expected = vec![Some(words(&[1, 2])), None, Some(words(&[1])), Some(words(&[1, 2]))];
    equal("run", backend.run(batch.clone(), Deadline::NEVER)?.reads, expected.clone())?;
    equal("submit", backend.submit(batch)?.wait(Deadline::NEVER)?.reads, expected)
}

fn timeout(start: &Start<'_>) -> Verdict {
    let backend = start();
    let (endless, config) = endless(&*backend)?;
    let limit = Duration::from_millis(100);
    let begin = Instant::now();
    let result = backend.dispatch(&endless, vec![], &config.timeout(limit));
    equal("the error", result, Err(Error::Timeout { limit }))?;
    let took = begin.elapsed();
    ensure!(took >= limit && took < limit + SLACK, "it took {took:?} to stop after {limit:?}");
    usable(&backend)
}

fn pending_timeout(start: &Start<'_>) -> Verdict {
    let backend = start();
    let (endless, config) = endless(&*backend)?;
    let limit = Duration::from_millis(100);
    let begin = Instant::now();
    let pending = backend.dispatch_async(&endless, vec![], &config.timeout(limit))?;
    equal("the error", pending.await_result(), Err(Error::Timeout { limit }))?;
    ensure!(begin.elapsed() < limit + SLACK, "it took {:?} to stop", begin.elapsed());
    usable(&backend)
}

/// The backend still works, on this thread, soon.
pub(super) fn usable(backend: &Arc<dyn VyreBackend>) -> Verdict {
    let config = DispatchConfig::new().timeout(SLACK);
    let output = backend.dispatch(&program(ADD_ONE)?, vec![words(&[1])], &config)?;
    equal("afterwards", output.outputs, vec![words(&[2])])
}

fn cancel(start: &Start<'_>) -> Verdict {
    let backend = start();
    let (endless, config) = endless(&*backend)?;
    let pending = backend.dispatch_async(&endless, vec![], &config)?;
    thread::sleep(Duration::from_millis(20));
    ensure!(!pending.is_ready(), "an endless loop has ended");
    let begin = Instant::now();
    pending.cancel();
    equal("cancelled", pending.await_result(), Err(Error::Cancelled))?;
    ensure!(begin.elapsed() < SLACK, "it took {:?} to cancel", begin.elapsed());
    drop(backend.dispatch_async(&endless, vec![], &config)?);
    usable(&backend)?;
    let queued = [
        backend.dispatch_async(&endless, vec![], &config)?,
        backend.dispatch_async(&endless, vec![], &config)?,
    ];
    drop(queued);
    usable(&backend)?;
    super::results::still_free(&backend)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// Polls a future until it is ready.
fn block_on<F: Future>(future: F) -> Result<F::Output, Failed> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        thread::park_timeout(Duration::from_secs(20));
    }
    Err(Failed("a future was not woken".to_owned()))
}

fn future(start: &Start<'_>) -> Verdict {
    let backend = start();
    let add_one = program(ADD_ONE)?;
    for fixpoint in [None, Some(200)] {
        let config = DispatchConfig { fixpoint_iterations: fixpoint, ..DispatchConfig::new() };
        let pending = backend.dispatch_async(&add_one, vec![words(&[1, 2])], &config)?;
        let passes = fixpoint.unwrap_or(1);
        equal("awaited", block_on(pending)??.outputs, vec![words(&[1 + passes, 2 + passes])])?;
    }
    let pending = backend.dispatch_async(&add_one, vec![words(&[1])], &DispatchConfig::new())?;
    let elsewhere = thread::spawn(move || pending.await_result()).join();
    let elsewhere = elsewhere.map_err(|_| Failed("a thread panicked".to_owned()))??;
    equal("awaited on another thread", elsewhere.outputs, vec![words(&[2])])?;
    let (endless, config) = endless(&*backend)?;
    let config = config.timeout(Duration::from_millis(50));
    let endless = backend.dispatch_async(&endless, vec![], &config)?;
    refused("endless", block_on(endless)?, "D007")?;
    Ok(())
}

fn threads(start: &Start<'_>) -> Verdict {
    let backend = start();
    let add_one = program(ADD_ONE)?;
    let work = |seed: u32| -> Verdict {
        for i in 0..200 {
            let values = [seed, i, seed ^ i, 0, 9];
            let expected = vec![words(&values.map(|value| value + 1))];
            let config = DispatchConfig::new();
            let output = match i % 3 {
                0 => backend.dispatch(&add_one, vec![words(&values)], &config)?,
                1 => backend.dispatch_borrowed(&add_one, &[&words(&values)], &config)?,
                _ => backend.dispatch_async(&add_one, vec![words(&values)], &config)?.await_result()?,
            };
            equal("a thread among many", output.outputs, expected)?;
        }
        Ok(())
    };
    let verdicts: Vec<thread::Result<Verdict>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for verdict in verdicts {
        verdict.unwrap_or_else(|_| Err(Failed("a thread panicked".to_owned())))?;
    }
    super::results::still_free(&backend)
}

fn wrong_batches(start: &Start<'_>) -> Verdict {
    use vyre_driver::{Memory, Temporary};
    let backend = start();
    let wrong = |make: &dyn Fn(&mut Batch<'static>)| -> Verdict {
        let mut batch = Batch::default();
        make(&mut batch);
        refused("run", backend.run(batch.clone(), Deadline::NEVER), "D012")?;
        refused("submit", backend.submit(batch).map(|_| ()), "D012")?;
        Ok(())
    };
    wrong(&|batch| {
        let lent = batch.temporary(Temporary::Borrowed(vec![1, 2, 3, 4].into()));
        batch.push(Action::Fill { target: lent, byte: 1 });
    })?;
    wrong(&|batch| {
        let own = batch.temporary(Temporary::Zeroed { bytes: 8 });
        batch.push(Action::Copy { from: own, to: own });
    })?;
    wrong(&|batch| {
        let own = batch.temporary(Temporary::Zeroed { bytes: 8 });
        batch.push(Action::Read { from: Span { offset: u64::MAX, ..own } });
    })?;
    wrong(&|batch| {
        let memory = Memory::Temporary(3);
        batch.push(Action::Read { from: Span { memory, offset: 0, bytes: 0 } });
    })
}

/// Code that no backend has compiled.
struct Foreign(BindingPlan);

impl CompiledPipeline for Foreign {
    fn plan(&self) -> &BindingPlan {
        &self.0
    }
    fn hidden_bytes(&self, _grid: Grid) -> u64 {
        0
    }
    fn fits_natively(&self, _grid: Grid) -> bool {
        true
    }
    fn code_bytes(&self) -> u64 {
        0
    }
}

fn foreign_pipelines(start: &Start<'_>) -> Verdict {
    let backend = start();
    let nothing = program("program nothing { }")?;
    let output = backend.dispatch(&nothing, vec![], &DispatchConfig::new())?;
    let pipeline = Arc::new(Foreign(BindingPlan::of(&nothing)));
    let mut batch = Batch::default();
    batch.push(Action::Launch(Launch { pipeline, bindings: vec![], grid: output.report.grid }));
    refused("run", backend.run(batch.clone(), Deadline::NEVER), "D002")?;
    refused("submit", backend.submit(batch).and_then(|pending| pending.wait(Deadline::NEVER)), "D002")?;
    Ok(())
}

fn shutdown(start: &Start<'_>) -> Verdict {
    let backend = start();
    let add_one = program(ADD_ONE)?;
    let pipeline = backend.compile_native(&add_one, &DispatchConfig::new())?;
    let pending = backend.dispatch_async(&pipeline, vec![words(&[1])], &DispatchConfig::new())?;
    let (endless, config) = endless(&*backend)?;
    let stuck = backend.dispatch_async(&endless, vec![], &config)?;
    let hurried = backend.shutdown(Deadline::after(Duration::from_millis(50)));
    // Launches without end are ended by the shutdown between two of them.
    if hurried.is_err() || backend.profile().features.has(Feature::Interrupts) {
        refused("a shutdown that cannot wait", hurried, "D007")?;
    }
    drop(stuck);
    backend.shutdown(Deadline::after(SLACK))?;
    equal("work from before", pending.await_result()?.outputs, vec![words(&[2])])?;
    let config = DispatchConfig::new();
    refused("dispatch", backend.dispatch(&pipeline, vec![words(&[1])], &config), "D015")?;
    refused("async", backend.dispatch_async(&pipeline, vec![words(&[1])], &config), "D015")?;
    refused("allocate", backend.allocate_resident(4), "D015")?;
    refused("flush", backend.flush(), "D015")?;
    backend.shutdown(Deadline::NEVER)?;
    Ok(())
}
