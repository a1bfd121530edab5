//! The order of batches, for every backend.
//!
//! Batches that one thread submits form a lane. A lane runs its batches one after the other; lanes do not wait
//! for each other. Workers are started when a lane has work and no worker is free, and end after a moment
//! without work, so a backend that nobody uses asynchronously has no threads.
//!
//! A blocking run happens on the caller's thread, after the lane of that thread is empty. While nothing is
//! submitted at all, which is what the counter [`Shared::submitted`] says, it takes no lock.
//!
//! [`Shared::running`] counts blocking runs, with [`CLOSED`] in the same word: a run either is counted before
//! the shutdown, which then waits for it, or sees that the queue is closed.

use crate::backend::Pending;
use crate::batch::{Batch, Outcome};
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::stop::Stop;
use indexmap::IndexMap;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The bit of [`Shared::running`] that says that the queue takes no more work.
const CLOSED: u64 = 1 << 63;
/// How long a worker waits for more work before it ends.
const IDLE: Duration = Duration::from_millis(200);
/// The most workers. More lanes than this take turns.
const MOST_WORKERS: usize = 64;

/// Executes what was submitted until it is done, the flag is set or the deadline has passed.
type Execute<J> = dyn Fn(J, &Stop, Deadline) -> Result<Outcome> + Send + Sync;

/// Submissions and blocking runs of one backend instance. `J` is what the backend makes of a submitted batch: it
/// looks up handles, so that freeing them later does not matter, and whatever else is to be decided at once.
///
/// ```
/// use vyre_driver::{Batch, Deadline, Outcome, Queue};
/// let queue = Queue::new("toy", |_batch: Batch<'static>, stop, deadline| {
///     stop.check(deadline)?;
///     Ok(Outcome::default())
/// });
/// let pending = queue.submit(Batch::default(), Deadline::NEVER)?;
/// let answer = queue.run(Deadline::NEVER, |_stop| Ok(42))?; // after what this thread has submitted
/// assert!(answer == 42 && pending.is_ready());
/// queue.shutdown(Deadline::NEVER)?;
/// assert!(queue.run(Deadline::NEVER, |_stop| Ok(())).is_err());
/// # Ok::<(), vyre_driver::Error>(())
/// ```
pub struct Queue<J = Batch<'static>> {
    shared: Arc<Shared<J>>,
}

struct Shared<J> {
    backend: &'static str,
    execute: Box<Execute<J>>,
    /// Submitted batches that are not done.
    submitted: AtomicU64,
    running: AtomicU64,
    lanes: Mutex<Lanes<J>>,
    /// Signalled when a lane has work for a worker.
    work: Condvar,
    /// Signalled when a batch is done, or a run while the queue is closed.
    done: Condvar,
}

struct Lanes<J> {
    /// What waits, by the thread that submitted it. A lane stays until its last batch is done.
    waiting: IndexMap<ThreadId, VecDeque<Arc<Task<J>>>>,
    /// The lanes whose first batch can start.
    ready: VecDeque<ThreadId>,
    workers: usize,
    idle: usize,
    /// The backend is gone: workers end when nothing waits.
    dropped: bool,
}

/// What was submitted.
struct Task<J> {
    job: Mutex<Option<J>>,
    deadline: Deadline,
    stop: Stop,
    is_ready: AtomicBool,
    slot: Mutex<Slot>,
    done: Condvar,
}

#[derive(Default)]
struct Slot {
    result: Option<Result<Outcome>>,
    wakers: Vec<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a signal; `false` once the deadline has passed.
fn wait<'a, T>(signal: &Condvar, guard: MutexGuard<'a, T>, deadline: Deadline) -> (MutexGuard<'a, T>, bool) {
    match deadline.remaining() {
        None => (signal.wait(guard).unwrap_or_else(PoisonError::into_inner), true),
        Some(left) if left.is_zero() => (guard, false),
        Some(left) => {
            let (guard, _) = signal.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
            (guard, true)
        }
    }
}

/// Runs work; a panic becomes an error.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::Internal(message(&*panic))))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the backend panicked: {}", text.unwrap_or("no message"))
}

impl<J: Send + 'static> Queue<J> {
    /// A queue whose submitted batches are executed like this, on threads of the queue.
    pub fn new(
        backend: &'static str,
        execute: impl Fn(J, &Stop, Deadline) -> Result<Outcome> + Send + Sync + 'static,
    ) -> Queue<J> {
        let shared = Shared {
            backend,
            execute: Box::new(execute),
            submitted: AtomicU64::new(0),
            running: AtomicU64::new(0),
            lanes: Mutex::new(Lanes {
                waiting: IndexMap::new(),
                ready: VecDeque::new(),
                workers: 0,
                idle: 0,
                dropped: false,
            }),
            work: Condvar::new(),
            done: Condvar::new(),
        };
        Queue { shared: Arc::new(shared) }
    }

    /// Takes work and returns at once. It runs after what this thread has submitted before.
    pub fn submit(&self, job: J, deadline: Deadline) -> Result<Box<dyn Pending>> {
        let task = Arc::new(Task {
            job: Mutex::new(Some(job)),
            deadline,
            stop: Stop::new(),
            is_ready: AtomicBool::new(false),
            slot: Mutex::default(),
            done: Condvar::new(),
        });
        let lane = thread::current().id();
        let mut lanes = lock(&self.shared.lanes);
        self.shared.check_open()?;
        if !lanes.waiting.contains_key(&lane) {
            self.shared.make_worker(&mut lanes)?;
        }
        let tasks = lanes.waiting.entry(lane).or_default();
        tasks.push_back(Arc::clone(&task));
        self.shared.submitted.fetch_add(1, Ordering::SeqCst);
        if tasks.len() == 1 {
            lanes.ready.push_back(lane);
            self.shared.work.notify_one();
        }
        Ok(Box::new(Ticket(task)))
    }

    /// Does work on this thread, after what this thread has submitted, which is waited for until the deadline. A
    /// panic becomes an error.
    pub fn run<T>(&self, deadline: Deadline, work: impl FnOnce(&Stop) -> Result<T>) -> Result<T> {
        let _counted = Counted::new(&self.shared)?;
        if self.shared.submitted.load(Ordering::SeqCst) > 0 {
            self.shared.wait_for_lane(deadline)?;
        }
        guarded(|| work(&Stop::new()))
    }

    /// An error after a shutdown.
    pub fn check_open(&self) -> Result<()> {
        self.shared.check_open()
    }

    /// Refuses further work and waits until all that was taken is done.
    pub fn shutdown(&self, deadline: Deadline) -> Result<()> {
        let mut lanes = lock(&self.shared.lanes);
        self.shared.running.fetch_or(CLOSED, Ordering::SeqCst);
        loop {
            let running = self.shared.running.load(Ordering::SeqCst) & !CLOSED;
            if running == 0 && lanes.waiting.is_empty() {
                return Ok(());
            }
            let (guard, in_time) = wait(&self.shared.done, lanes, deadline);
            lanes = guard;
            if !in_time {
                return Err(deadline.error());
            }
        }
    }
}

impl<J> Drop for Queue<J> {
    fn drop(&mut self) {
        lock(&self.shared.lanes).dropped = true;
        self.shared.work.notify_all();
    }
}

/// A blocking run, counted while it lasts.
struct Counted<'a, J>(&'a Shared<J>);

impl<'a, J> Counted<'a, J> {
    fn new(shared: &'a Shared<J>) -> Result<Counted<'a, J>> {
        shared.running.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(shared);
        shared.check_open()?;
        Ok(counted)
    }
}

impl<J> Drop for Counted<'_, J> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::SeqCst) & CLOSED != 0 {
            // Under the lock: a shutdown has either not looked yet or waits already.
            let _lanes = lock(&self.0.lanes);
            self.0.done.notify_all();
        }
    }
}

impl<J> Shared<J> {
    fn check_open(&self) -> Result<()> {
        if self.running.load(Ordering::SeqCst) & CLOSED != 0 {
            return Err(Error::ShutDown { backend: self.backend });
        }
        Ok(())
    }

    /// Waits until this thread has nothing submitted.
    fn wait_for_lane(&self, deadline: Deadline) -> Result<()> {
        let lane = thread::current().id();
        let mut lanes = lock(&self.lanes);
        while lanes.waiting.contains_key(&lane) {
            let (guard, in_time) = wait(&self.done, lanes, deadline);
            lanes = guard;
            if !in_time {
                return Err(deadline.error());
            }
        }
        Ok(())
    }

    fn execute(&self, task: &Task<J>) -> Result<Outcome> {
        let job = lock(&task.job).take();
        let job = job.ok_or_else(|| Error::Internal("a batch is executed twice".to_owned()))?;
        task.stop.check(task.deadline)?;
        guarded(|| (self.execute)(job, &task.stop, task.deadline))
    }
}

impl<J: Send + 'static> Shared<J> {
    /// Starts a worker unless one is free or there are enough.
    fn make_worker(self: &Arc<Shared<J>>, lanes: &mut Lanes<J>) -> Result<()> {
        if lanes.idle > lanes.ready.len() || lanes.workers >= MOST_WORKERS {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let name = format!("vyre-{}", self.backend);
        match thread::Builder::new().name(name).spawn(move || shared.work()) {
            Ok(_) => {
                lanes.workers += 1;
                Ok(())
            }
            // The workers there are will do it, later.
            Err(_) if lanes.workers > 0 => Ok(()),
            Err(error) => Err(Error::Internal(format!("no thread can be started: {error}"))),
        }
    }

    /// The life of a worker.
    fn work(&self) {
        let mut lanes = lock(&self.lanes);
        loop {
            let Some(lane) = lanes.ready.pop_front() else {
                if lanes.dropped {
                    break;
                }
                lanes.idle += 1;
                let (guard, waited) =
                    self.work.wait_timeout(lanes, IDLE).unwrap_or_else(PoisonError::into_inner);
                lanes = guard;
                lanes.idle -= 1;
                if waited.timed_out() && lanes.ready.is_empty() {
                    break;
                }
                continue;
            };
            let Some(task) = lanes.waiting.get(&lane).and_then(VecDeque::front).map(Arc::clone) else {
                continue;
            };
            drop(lanes);
            // Before the lane goes on: who comes after the batch finds its result.
            task.finish(self.execute(&task));
            lanes = lock(&self.lanes);
            let rest = lanes.waiting.get_mut(&lane).map_or(0, |tasks| {
                tasks.pop_front();
                tasks.len()
            });
            if rest > 0 {
                lanes.ready.push_back(lane);
            } else {
                lanes.waiting.swap_remove(&lane);
            }
            self.submitted.fetch_sub(1, Ordering::SeqCst);
            self.done.notify_all();
        }
        lanes.workers -= 1;
    }
}

impl<J> Task<J> {
    fn finish(&self, result: Result<Outcome>) {
        let mut slot = lock(&self.slot);
        slot.result = Some(result);
        self.is_ready.store(true, Ordering::Release);
        let wakers = std::mem::take(&mut slot.wakers);
        drop(slot);
        self.done.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// What the submitter holds.
struct Ticket<J>(Arc<Task<J>>);

impl<J: Send> Pending for Ticket<J> {
    fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Acquire)
    }

    fn cancel(&self) {
        self.0.stop.cancel();
    }

    fn wait(&self, deadline: Deadline) -> Result<Outcome> {
        let mut slot = lock(&self.0.slot);
        loop {
            if let Some(result) = slot.result.take() {
                return result;
            }
            if self.is_ready() {
                let what = "the result of the batch has been taken already".to_owned();
                return Err(Error::Config { what, help: "wait for it once" });
            }
            let (guard, in_time) = wait(&self.0.done, slot, deadline);
            slot = guard;
            if !in_time && !self.is_ready() {
                self.0.stop.time_out();
                return Err(deadline.error());
            }
        }
    }

    fn wake(&self, waker: &Waker) {
        let mut slot = lock(&self.0.slot);
        if self.is_ready() {
            drop(slot);
            waker.wake_by_ref();
        } else if !slot.wakers.iter().any(|known| known.will_wake(waker)) {
            slot.wakers.push(waker.clone());
        }
    }
}

impl<J> Drop for Ticket<J> {
    fn drop(&mut self) {
        self.0.stop.cancel();
    }
}
