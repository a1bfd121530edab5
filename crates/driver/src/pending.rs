//! Dispatches that run while the caller does something else.

use crate::backend::{Pending, VyreBackend};
use crate::deadline::Deadline;
use crate::engine::Job;
use crate::error::{Error, Result};
use crate::output::DispatchOutput;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// A dispatch in flight. It is also a [`Future`]. Dropping it stops the work.
///
/// A fixpoint runs in chunks of up to 64 passes; whoever waits or asks whether it is ready starts the next one.
///
/// ```
/// # use std::sync::Arc;
/// # use vyre_driver::{BackendExt, DispatchConfig, ReferenceBackend};
/// # use vyre_foundation::Program;
/// let program = Program::parse("program p { buffer o: output u32[1]; o[0] = 7; }").unwrap();
/// let backend = Arc::new(ReferenceBackend::new());
/// let pending = backend.dispatch_async(&program, vec![], &DispatchConfig::new())?;
/// assert_eq!(pending.await_result()?.outputs, [[7, 0, 0, 0]]);
/// # Ok::<(), vyre_driver::Error>(())
/// ```
#[must_use = "dropping it stops the work"]
pub struct PendingDispatch {
    backend: Arc<dyn VyreBackend>,
    is_cancelled: AtomicBool,
    deadline: Deadline,
    flight: Mutex<Flight>,
}

struct Flight {
    job: Job<'static>,
    state: State,
}

enum State {
    Running(Box<dyn Pending>),
    Done(Result<DispatchOutput>),
    Taken,
}

impl fmt::Debug for PendingDispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingDispatch").field("is_ready", &self.is_ready()).finish()
    }
}

impl PendingDispatch {
    /// Submits the first batch.
    pub(crate) fn start(
        backend: Arc<dyn VyreBackend>,
        mut job: Job<'static>,
        deadline: Deadline,
    ) -> Result<PendingDispatch> {
        match job.next(&*backend).and_then(|batch| backend.submit(batch)) {
            Ok(first) => Ok(PendingDispatch {
                backend,
                is_cancelled: AtomicBool::new(false),
                deadline,
                flight: Mutex::new(Flight { job, state: State::Running(first) }),
            }),
            Err(error) => {
                job.release(&*backend);
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Flight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with what is ready, or waits for it.
    fn advance(&self, flight: &mut Flight, waits: bool) {
        while let State::Running(pending) = &flight.state {
            if !waits && !pending.is_ready() {
                return;
            }
            let outcome = pending.wait(self.deadline);
            let next = flight.job.absorb(&*self.backend, outcome);
            let next = next.and_then(|finished| match finished {
                Some(finished) => {
                    let telemetry = self.backend.telemetry();
                    let bytes = finished.outputs.iter().map(|output| output.len() as u64).sum();
                    telemetry.bytes_out(bytes);
                    telemetry.outputs_appended(finished.outputs.len() as u64);
                    let output = DispatchOutput { outputs: finished.outputs, report: finished.report };
                    Ok(State::Done(Ok(output)))
                }
                None if self.is_cancelled.load(Ordering::Relaxed) => Err(Error::Cancelled),
                None => {
                    let batch = flight.job.next(&*self.backend)?;
                    self.backend.submit(batch).map(State::Running)
                }
            });
            flight.state = next.unwrap_or_else(|error| State::Done(Err(error)));
            if let State::Done(_) = flight.state {
                flight.job.release(&*self.backend);
            }
        }
    }

    fn take(flight: &mut Flight) -> Result<DispatchOutput> {
        match std::mem::replace(&mut flight.state, State::Taken) {
            State::Done(result) => result,
            _ => {
                let what = "the result of the dispatch has been taken already".to_owned();
                Err(Error::Config { what, help: "poll it until it is ready, then no more" })
            }
        }
    }

    /// Whether the result is there.
    pub fn is_ready(&self) -> bool {
        let mut flight = self.lock();
        self.advance(&mut flight, false);
        !matches!(flight.state, State::Running(_))
    }

    /// Waits for the result.
    pub fn await_result(self) -> Result<DispatchOutput> {
        let mut flight = self.lock();
        self.advance(&mut flight, true);
        PendingDispatch::take(&mut flight)
    }

    /// Stops the work. The result is then [`Error::Cancelled`], unless it was there already.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        if let State::Running(pending) = &self.lock().state {
            pending.cancel();
        }
    }
}

impl Future for PendingDispatch {
    type Output = Result<DispatchOutput>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<DispatchOutput>> {
        let mut flight = self.lock();
        loop {
            self.advance(&mut flight, false);
            match &flight.state {
                State::Running(pending) => {
                    pending.wake(context.waker());
                    // It may have become ready in between; then the waker is woken and asked again.
                    if !pending.is_ready() {
                        return Poll::Pending;
                    }
                }
                _ => return Poll::Ready(PendingDispatch::take(&mut flight)),
            }
        }
    }
}

impl Drop for PendingDispatch {
    fn drop(&mut self) {
        let flight = self.flight.get_mut().unwrap_or_else(PoisonError::into_inner);
        flight.state = State::Taken;
        flight.job.release(&*self.backend);
    }
}
