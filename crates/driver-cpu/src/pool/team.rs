//! The participants of one run: who is in, the barrier they share, and how the caller knows that all are out.
//!
//! Everything rests on two words, the roster and the gate, each changed by single atomic operations only. The
//! order of those operations on one word decides every race; `README.md` beside this file goes through them.

use super::sync::{
    AtomicU64, Condvar, Mutex, MutexGuard, Ordering, lock, spin, spin_for, wait, wait_briefly,
};
use std::any::Any;
use std::mem;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// What a panic carries.
pub(super) type Payload = Box<dyn Any + Send>;

type Parking<'a> = MutexGuard<'a, Option<Payload>>;

/// The participants of one [`Pool::run`](super::Pool::run).
///
/// Members are those who joined before the team closed. It closes at the first barrier any member reaches, after a
/// moment for those who are expected, or when the caller has finished, whichever is first.
pub(crate) struct Team {
    /// The most members there may be, the caller included.
    limit: u64,
    /// How many members the first barrier waits for, for a moment, before it closes the team. A hint: nothing is
    /// right or wrong by it, so it stays out of sight of the model checker.
    expected: std::sync::atomic::AtomicU64,
    /// Who joined and who left: [`CLOSED`], [`AWAITED`], and two counts.
    roster: AtomicU64,
    /// The barrier: a generation in the upper half, [`PARKED`], [`BROKEN`] and a count of arrivals below.
    gate: AtomicU64,
    /// Held by a thread that falls asleep on the bell, and by one about to ring it. Keeps the first panic.
    parking: Mutex<Option<Payload>>,
    bell: Condvar,
}

/// In the roster: nobody joins any more.
const CLOSED: u64 = 1 << 63;
/// In the roster: the caller sleeps until the last member has left.
const AWAITED: u64 = 1 << 62;
/// In the roster: the members that joined, the caller among them. Those that left are counted above.
const JOINED: u64 = 0xffff;
const LEFT_SHIFT: u32 = 32;

/// In the gate: a member sleeps at the barrier.
const PARKED: u64 = 1 << 31;
/// In the gate: the barrier is off, for good, because the run was stopped or a member has gone.
const BROKEN: u64 = 1 << 30;
/// In the gate: the members that arrived in this generation.
const ARRIVED: u64 = 0xf_ffff;
const GENERATION_SHIFT: u32 = 32;

/// How long the first barrier waits for helpers that are free to come. One that sleeps takes some microseconds, one
/// that must be started some ten; who has not come by then has no core to come on.
const PATIENCE: Duration = Duration::from_micros(100);

/// What a member finds at a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It is the last one. The others wait until it has had its turn and [opens](Team::open) the gate.
    Last,
    /// All members arrived, and the last one has had its turn.
    Through,
    /// The barrier was called off.
    Off,
}

/// Whether every member but the caller has left.
fn only_caller_left(roster: u64) -> bool {
    (roster >> LEFT_SHIFT) & JOINED == (roster & JOINED) - 1
}

fn generation(gate: u64) -> u32 {
    (gate >> GENERATION_SHIFT) as u32
}

impl Team {
    /// A team of the caller and room for up to `limit - 1` others.
    pub(super) fn new(limit: usize) -> Team {
        Team::with_roster(limit.clamp(1, JOINED as usize) as u64, 1)
    }

    /// A team of the caller that nobody can join.
    pub(super) fn alone() -> Team {
        Team::with_roster(1, CLOSED | 1)
    }

    fn with_roster(limit: u64, roster: u64) -> Team {
        Team {
            limit,
            expected: std::sync::atomic::AtomicU64::new(0),
            roster: AtomicU64::new(roster),
            gate: AtomicU64::new(0),
            parking: Mutex::new(None),
            bell: Condvar::new(),
        }
    }

    /// Says that so many members are likely to come, the caller among them.
    pub(super) fn expect(&self, members: usize) {
        self.expected.store(members as u64, Ordering::Relaxed);
    }

    /// How many more may join right now.
    pub(super) fn vacancies(&self) -> usize {
        let roster = self.roster.load(Ordering::Relaxed);
        if roster & CLOSED != 0 { 0 } else { (self.limit - (roster & JOINED)) as usize }
    }

    /// How many have joined: all that ever will, once the team has met.
    pub(crate) fn members(&self) -> usize {
        (self.roster.load(Ordering::Relaxed) & JOINED) as usize
    }

    /// Joins and gives the member number, or nothing when the team is closed or full.
    ///
    /// Who joined must [`leave`](Team::leave), and until then the caller stays.
    pub(super) fn join(&self) -> Option<usize> {
        let mut roster = self.roster.load(Ordering::Relaxed);
        while roster & CLOSED == 0 && roster & JOINED < self.limit {
            match self.roster.compare_exchange_weak(roster, roster + 1, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Some((roster & JOINED) as usize),
                Err(now) => roster = now,
            }
        }
        None
    }

    /// The last thing a member other than the caller does with the run.
    pub(super) fn leave(&self) {
        let one = 1 << LEFT_SHIFT;
        let before = self.roster.fetch_add(one, Ordering::AcqRel);
        if before & AWAITED != 0 && only_caller_left(before + one) {
            self.ring();
        }
    }

    /// Closes the team, if it is not closed yet, and gives the number of its members.
    pub(super) fn close(&self) -> u64 {
        let roster = self.roster.load(Ordering::Relaxed);
        if roster & CLOSED != 0 {
            return roster & JOINED;
        }
        self.roster.fetch_or(CLOSED, Ordering::AcqRel) & JOINED
    }

    /// Closes the team as the first barrier does, after a moment for those who are expected.
    fn gather(&self, stopped: impl Fn() -> bool) -> u64 {
        let roster = self.roster.load(Ordering::Relaxed);
        if roster & CLOSED != 0 {
            return roster & JOINED;
        }
        let expected = self.expected.load(Ordering::Relaxed);
        let done = || {
            let roster = self.roster.load(Ordering::Relaxed);
            roster & CLOSED != 0 || roster & JOINED >= expected || stopped()
        };
        if !done() {
            spin_for(PATIENCE, done);
        }
        self.close()
    }

    /// Closes the team and waits until every member but the caller has left.
    pub(super) fn dissolve(&self) {
        self.close();
        let look = || {
            let roster = self.roster.load(Ordering::Acquire);
            if only_caller_left(roster) { Ok(()) } else { Err(roster) }
        };
        self.sleep_until(look, &self.roster, AWAITED, wait);
    }

    /// Keeps the payload of a panic for the caller, if it is the first.
    pub(super) fn keep_panic(&self, payload: Payload) {
        let mut kept = lock(&self.parking);
        if kept.is_none() {
            *kept = Some(payload);
        } else {
            drop(kept);
            // Dropping a payload may panic again, and here nobody could take that: it stays allocated.
            mem::forget(payload);
        }
    }

    /// The payload of the first panic among the members.
    pub(super) fn take_panic(&self) -> Option<Payload> {
        lock(&self.parking).take()
    }

    /// Waits until every member is here, lets exactly one of them run `turn` while the others wait, and says
    /// whether the run goes on.
    ///
    /// True: all members arrived, what each wrote before is visible to `turn`, and all of that to every member
    /// now. False: `stop` was not zero, or a member returned from the job or panicked, before all had arrived;
    /// `turn` was not run, and a member that gets false should return from the job. All members get the same
    /// answer from one barrier, and after one false every answer is false.
    ///
    /// A word that somebody outside the team stores to `stop` is seen within about a millisecond by members
    /// that already sleep here; one that a member stores is seen at once when that member comes to its barrier
    /// or returns.
    ///
    /// Only members may call it, each for itself: not a thread that a member started, nor a member of a run
    /// that was started inside this one.
    pub(crate) fn barrier_with(&self, stop: &AtomicU32, turn: impl FnOnce()) -> bool {
        self.barrier_unless(|| stop.load(Ordering::Relaxed) != 0, turn)
    }

    /// [`barrier_with`](Team::barrier_with), whatever says that the run is to stop.
    pub(super) fn barrier_unless(&self, stopped: impl Fn() -> bool, turn: impl FnOnce()) -> bool {
        struct Unwinding<'a>(&'a Team);
        impl Drop for Unwinding<'_> {
            fn drop(&mut self) {
                self.0.disband();
            }
        }
        match self.arrive_unless(stopped) {
            Arrival::Last => {
                let unwinding = Unwinding(self);
                turn();
                mem::forget(unwinding);
                self.open();
                true
            }
            Arrival::Through => true,
            Arrival::Off => false,
        }
    }

    /// The first half of [`barrier_with`](Team::barrier_with), for a turn that cannot be passed as a function: the
    /// member that is told that it is the last has its turn then, without a panic, and [opens](Team::open) the gate.
    pub(crate) fn arrive(&self, stop: &AtomicU32) -> Arrival {
        self.arrive_unless(|| stop.load(Ordering::Relaxed) != 0)
    }

    fn arrive_unless(&self, stopped: impl Fn() -> bool) -> Arrival {
        let members = self.gather(&stopped);
        if stopped() {
            self.disband();
            return Arrival::Off;
        }
        let before = self.gate.fetch_add(1, Ordering::AcqRel);
        if before & BROKEN != 0 {
            self.gate.fetch_sub(1, Ordering::Relaxed);
            return Arrival::Off;
        }
        if before & ARRIVED == members - 1 {
            return Arrival::Last;
        }
        let look = || self.look_at_gate(generation(before), members, &stopped);
        self.sleep_until(look, &self.gate, PARKED, wait_briefly)
    }

    /// Lets everybody through, after the turn of the last to arrive, who calls it.
    pub(crate) fn open(&self) {
        // The generation does not move on without the one who calls this.
        let generation = generation(self.gate.load(Ordering::Relaxed));
        let next = u64::from(generation.wrapping_add(1)) << GENERATION_SHIFT;
        if self.gate.swap(next, Ordering::AcqRel) & PARKED != 0 {
            self.ring();
        }
    }

    /// Turns the barrier off: a member that has gone, or will not come, is not waited for.
    ///
    /// Called by a member that has not arrived in this generation, so that the count cannot be complete, or by
    /// the last one to arrive when its turn panicked, in place of opening the gate.
    pub(super) fn disband(&self) {
        if self.gate.fetch_or(BROKEN, Ordering::AcqRel) & PARKED != 0 {
            self.ring();
        }
    }

    /// The answer to a member that arrived in `arrival`, or the gate as it is while there is none.
    fn look_at_gate(&self, arrival: u32, members: u64, stopped: impl Fn() -> bool) -> Result<Arrival, u64> {
        let gate = self.gate.load(Ordering::Acquire);
        if generation(gate) != arrival {
            return Ok(Arrival::Through);
        }
        if gate & BROKEN != 0 {
            return Ok(Arrival::Off);
        }
        // When all have arrived the gate opens as soon as the last one had its turn: too late to stop.
        if gate & ARRIVED == members || !stopped() {
            return Err(gate);
        }
        match self.gate.compare_exchange(gate, gate | BROKEN, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) if gate & PARKED != 0 => self.ring(),
            Ok(_) => {}
            Err(_) => return Err(gate),
        }
        Ok(Arrival::Off)
    }

    /// Looks at `word` until the look succeeds, first spinning, then asleep with `mark` set in the word.
    ///
    /// A look that fails gives the word it saw. Falling asleep needs the word to be still that one; whoever
    /// changes it afterwards finds the mark and [rings](Team::ring).
    fn sleep_until<T>(
        &self,
        mut look: impl FnMut() -> Result<T, u64>,
        word: &AtomicU64,
        mark: u64,
        nap: for<'a> fn(&Condvar, Parking<'a>) -> Parking<'a>,
    ) -> T {
        let mut seen = spin(&mut look);
        loop {
            let before = match seen {
                Ok(found) => return found,
                Err(before) => before,
            };
            let parking = lock(&self.parking);
            let marked = word.compare_exchange(before, before | mark, Ordering::AcqRel, Ordering::Relaxed);
            if marked.is_ok() {
                drop(nap(&self.bell, parking));
            } else {
                drop(parking);
            }
            seen = look();
        }
    }

    /// Wakes whoever sleeps on the bell, after a change of the word it sleeps over.
    fn ring(&self) {
        // Who has marked the word and holds the lock is not asleep yet: it is once the lock is free.
        drop(lock(&self.parking));
        self.bell.notify_all();
    }
}
