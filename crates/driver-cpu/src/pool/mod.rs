//! The worker pool: threads that sleep until a run wants them.
//!
//! A run is one call of [`Pool::run`]: the calling thread works on the job at once, and helpers that are free
//! join it while it is open. The protocol, and why it holds, is in `README.md` beside this file. How members of
//! one run meet at a barrier is in [`team`]; this file has the queue of open runs and the life of a helper.

mod sync;
mod team;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use team::{Arrival, Team};

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::{io, mem};
use sync::{Builder, Condvar, JoinHandle, Mutex, MutexGuard, Ordering, lock, spin, wait};
use vyre_foundation::float_env;

/// What the members of a run execute: called once by each, with the team and the member's number.
pub(crate) type Job<'a> = dyn Fn(&Team, usize) + Sync + 'a;

/// How many sleeping helpers one awake thread calls: two, so that calling n takes log n steps and no caller
/// pays for more than two.
const CALLS: usize = 2;

/// A set of helper threads that runs share.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: usize,
}

/// What the pool and its helpers have in common.
struct Shared {
    state: Mutex<State>,
    /// Rung for a helper that was called, and for all of them at the end.
    bell: Condvar,
    /// Changes whenever a run is posted. A hint for helpers that spin: nothing is right or wrong by it, so it
    /// stays out of sight of the model checker.
    posted: std::sync::atomic::AtomicU32,
    /// How a helper is started.
    spawn: Spawn,
}

/// Starts the helper of a given number.
type Spawn = fn(usize, Arc<Shared>) -> io::Result<JoinHandle<()>>;

/// The queue of runs and the whereabouts of the helpers.
///
/// A helper is busy in a run, searching, or asleep. `searching` counts every helper that will look at the
/// queue before it sleeps, also one that was called and has not woken, or that was started and has not begun.
struct State {
    /// Posted and not yet withdrawn, oldest first. Runs that are full or closed stay until their caller ends.
    runs: VecDeque<Arc<Run>>,
    searching: usize,
    /// Asleep and not called.
    asleep: usize,
    /// Called and not yet awake.
    called: usize,
    started: usize,
    most: usize,
    handles: Vec<JoinHandle<()>>,
    ending: bool,
}

/// One call of [`Pool::run`], as helpers see it.
struct Run {
    team: Team,
    /// Valid for a member until it leaves the team; dangling for everybody else once the caller has gone.
    job: *const Job<'static>,
}

// SAFETY: the job is `Sync`, so members on any thread may call it through a shared reference. Whether the
// pointer may be dereferenced at all is the business of `Run::take_part`.
unsafe impl Send for Run {}
// SAFETY: as above.
unsafe impl Sync for Run {}

impl Pool {
    /// A pool for at most `workers` threads at work in one run: the caller and up to `workers - 1` helpers.
    ///
    /// Starts no thread: helpers start when runs want them.
    pub(crate) fn new(workers: usize) -> Pool {
        Pool::with_spawn(workers, spawn_helper)
    }

    fn with_spawn(workers: usize, spawn: Spawn) -> Pool {
        let state = State {
            runs: VecDeque::new(),
            searching: 0,
            asleep: 0,
            called: 0,
            started: 0,
            most: workers.saturating_sub(1),
            handles: Vec::new(),
            ending: false,
        };
        let shared = Shared {
            state: Mutex::new(state),
            bell: Condvar::new(),
            posted: std::sync::atomic::AtomicU32::new(0),
            spawn,
        };
        Pool { shared: Arc::new(shared), workers }
    }

    /// Has up to `limit` threads, the calling one among them, run `job` at the same time, each once, and
    /// returns when all that began it have returned from it.
    ///
    /// The calling thread is member 0 and begins at once. Helpers join as they become free, in the order in
    /// which runs were posted, so a job must be right with any number of members from one to `limit`: members
    /// claim their work from a counter that they share. All run in the default float environment.
    ///
    /// May be called by many threads at the same time, and from inside a job.
    ///
    /// # Panics
    /// With the first panic of a member, after all members have returned.
    pub(crate) fn run(&self, limit: usize, job: &Job<'_>) {
        self.run_as(limit, false, job);
    }

    /// As [`Pool::run`], for a job with many barriers: the first of them waits for the helpers that are free, at most
    /// for a moment. Without that a job that comes to its first barrier sooner than helpers wake would run to its
    /// end without them.
    pub(crate) fn run_together(&self, limit: usize, job: &Job<'_>) {
        self.run_as(limit, true, job);
    }

    fn run_as(&self, limit: usize, together: bool, job: &Job<'_>) {
        let limit = limit.min(self.workers);
        if limit <= 1 {
            return float_env::with_default(|| job(&Team::alone(), 0));
        }
        // SAFETY: this is the erased lifetime of a borrow that outlasts this call, and `posted` keeps this
        // call from ending, also by a panic, while a member other than the caller is still in the run.
        let job = unsafe { mem::transmute::<*const Job<'_>, *const Job<'static>>(job) };
        let run = Arc::new(Run { team: Team::new(limit), job });
        let posted = Posted { shared: &self.shared, run: &run };
        self.shared.post(&run, together);
        run.take_part(0);
        drop(posted);
        if let Some(payload) = run.team.take_panic() {
            resume_unwind(payload);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.ending = true;
        let handles = mem::take(&mut state.handles);
        drop(state);
        self.shared.bell.notify_all();
        for handle in handles {
            // A helper catches what jobs throw; one that ended in another way has ended all the same.
            let _ = handle.join();
        }
    }
}

/// A run that helpers may find. Dropping it makes sure that none is in it and none will ever be.
struct Posted<'a> {
    shared: &'a Shared,
    run: &'a Arc<Run>,
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        // First of all, so that no helper begins just to find that nothing is left to do.
        self.run.team.close();
        let mut state = lock(&self.shared.state);
        if let Some(place) = state.runs.iter().position(|run| Arc::ptr_eq(run, self.run)) {
            state.runs.remove(place);
        }
        drop(state);
        self.run.team.dissolve();
    }
}

impl Run {
    /// Runs the job as `member`, which is the caller or has joined and not left.
    fn take_part(&self, member: usize) {
        // SAFETY: the caller of the run holds the borrow behind the pointer until it has closed the team and
        // every member has left. A member joined before the team closed, so the caller counts it, and it
        // leaves only after this function; member 0 is the caller itself.
        let job = unsafe { &*self.job };
        let work = || float_env::with_default(|| job(&self.team, member));
        let outcome = catch_unwind(AssertUnwindSafe(work));
        if let Err(payload) = outcome {
            self.team.keep_panic(payload);
        }
        self.team.disband();
    }
}

impl Shared {
    /// Puts a run where helpers find it and calls helpers. The first barrier of a run that is made `together` waits
    /// for those that are free now.
    fn post(self: &Arc<Self>, run: &Arc<Run>, together: bool) {
        let mut state = lock(&self.state);
        if together {
            let free = state.free().saturating_sub(state.vacancies());
            run.team.expect(1 + free.min(run.team.vacancies()));
        }
        state.runs.push_back(Arc::clone(run));
        self.call_helpers(state);
        // With the lock free again, or those that spin would run into it.
        self.posted.fetch_add(1, Ordering::Relaxed);
    }

    /// Wakes or starts helpers if the open runs want more than are searching already.
    fn call_helpers<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>) {
        loop {
            let wake = state.call_sleepers();
            let start = state.reserve_starts(CALLS - wake);
            let first = state.started - start;
            drop(state);
            for _ in 0..wake {
                self.bell.notify_one();
            }
            let failed = (first..first + start).filter(|number| !self.start(*number)).count();
            if failed == 0 {
                return;
            }
            // No more threads to be had. Somebody may have relied on the helpers that did not come, so look
            // again whether a sleeping one should be called in their place.
            state = lock(&self.state);
            state.started -= failed;
            state.searching -= failed;
            state.most = state.started;
        }
    }

    /// Starts a helper and says whether that worked.
    fn start(self: &Arc<Self>, number: usize) -> bool {
        let Ok(handle) = (self.spawn)(number, Arc::clone(self)) else { return false };
        lock(&self.state).handles.push(handle);
        true
    }

    /// The life of a helper.
    fn serve(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        loop {
            if let Some((run, member)) = state.join_oldest() {
                state.searching -= 1;
                self.call_helpers(state);
                run.take_part(member);
                state = lock(&self.state);
                state.searching += 1;
                // Not before it counts as free: the caller's next run may be posted right after.
                run.team.leave();
                continue;
            }
            if state.ending {
                return;
            }
            let seen = self.posted.load(Ordering::Relaxed);
            drop(state);
            let unchanged = || if self.posted.load(Ordering::Relaxed) == seen { Err(()) } else { Ok(()) };
            _ = spin(unchanged);
            state = lock(&self.state);
            if state.vacancies() == 0 {
                state = self.sleep(state);
            }
        }
    }

    /// Sleeps until called, or until the pool ends. Either way the helper is searching afterwards.
    fn sleep<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.searching -= 1;
        state.asleep += 1;
        while state.called == 0 && !state.ending {
            state = wait(&self.bell, state);
        }
        if state.called > 0 {
            // Whoever called has moved one helper from `asleep` to `searching`; it need not have meant this one.
            state.called -= 1;
        } else {
            state.asleep -= 1;
            state.searching += 1;
        }
        state
    }
}

impl State {
    /// How many members the open runs would still take.
    fn vacancies(&self) -> usize {
        self.runs.iter().map(|run| run.team.vacancies()).sum()
    }

    /// How many helpers are not busy in a run, those among them that would have to be started.
    fn free(&self) -> usize {
        self.searching + self.asleep + (self.most - self.started)
    }

    /// Joins the oldest run that takes one more.
    fn join_oldest(&self) -> Option<(Arc<Run>, usize)> {
        self.runs.iter().find_map(|run| run.team.join().map(|member| (Arc::clone(run), member)))
    }

    /// Marks sleeping helpers as called, as many as are wanted and at most [`CALLS`]: the bell is to be rung
    /// once for each.
    fn call_sleepers(&mut self) -> usize {
        let calls = self.wanted().min(self.asleep).min(CALLS);
        self.asleep -= calls;
        self.called += calls;
        self.searching += calls;
        calls
    }

    /// Counts helpers as started, as many as are wanted and at most `most`: the caller is to start them.
    fn reserve_starts(&mut self, most: usize) -> usize {
        let starts = self.wanted().min(self.most - self.started).min(most);
        self.started += starts;
        self.searching += starts;
        starts
    }

    /// How many helpers the open runs could use beyond those that are searching.
    fn wanted(&self) -> usize {
        self.vacancies().saturating_sub(self.searching)
    }
}

fn spawn_helper(number: usize, shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    Builder::new().name(format!("vyre-cpu-{}", number + 1)).spawn(move || shared.serve())
}
