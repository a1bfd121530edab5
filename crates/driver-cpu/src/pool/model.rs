//! The protocol under the model checker: every order of events that matters, up to a bound.
//!
//! Data that the protocol is to protect is in cells that the checker watches: an access that is not ordered
//! after the last one fails the test, and so does a thread that sleeps for ever. The command, and what the
//! bounds mean, are in `README.md` beside this file.

use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::sync::atomic::AtomicU32;
use loom::thread;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicU32 as Plain, Ordering::SeqCst};

/// Explores `scenario` with at most `preemptions` switches away from a thread that could have gone on, and
/// asserts that its ends are exactly those `expected`: that the checker has seen every one of them.
fn explore<T: Ord + Debug + Send + 'static, const N: usize>(
    preemptions: usize,
    expected: [T; N],
    scenario: impl Fn() -> T + Sync + Send + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    let ends = Arc::new(StdMutex::new(BTreeSet::new()));
    let seen = Arc::clone(&ends);
    builder.check(move || {
        let end = scenario();
        seen.lock().unwrap().insert(end);
    });
    assert_eq!(*ends.lock().unwrap(), BTreeSet::from(expected));
}

/// A number that the checker watches.
struct Watched(UnsafeCell<u32>);

// SAFETY: the accesses are what is being checked; threads of a model run one at a time.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    fn new() -> Watched {
        Watched(UnsafeCell::new(0))
    }

    fn get(&self) -> u32 {
        // SAFETY: the checker fails the test if a write is not ordered before or after this.
        self.0.with(|value| unsafe { *value })
    }

    fn add(&self, more: u32) {
        // SAFETY: the checker fails the test if another access is not ordered before or after this.
        self.0.with_mut(|value| unsafe { *value += more });
    }
}

#[test]
fn who_joins_is_awaited_and_who_is_late_stays_out() {
    explore(5, [0, 1, 2], || {
        let team = Arc::new(Team::new(3));
        let borrowed = Arc::new([Watched::new(), Watched::new(), Watched::new()]);
        let helper = || {
            let (team, borrowed) = (Arc::clone(&team), Arc::clone(&borrowed));
            thread::spawn(move || {
                let member = team.join();
                if let Some(member) = member {
                    borrowed[member].add(1);
                    team.leave();
                }
                member
            })
        };
        let helpers = [helper(), helper()];
        team.dissolve();
        // From here on the caller's stack is its own again.
        let touched: u32 = borrowed.iter().map(Watched::get).sum();
        borrowed.iter().for_each(|cell| cell.add(1));
        let members: Vec<usize> = helpers.into_iter().filter_map(|helper| helper.join().unwrap()).collect();
        assert_eq!(members.len() as u32, touched);
        assert!(members.iter().all(|member| *member == 1 || *member == 2));
        assert!(members.len() < 2 || members[0] != members[1]);
        assert_eq!(team.join(), None);
        touched
    });
}

/// Has `members` that joined beforehand run `job`, the caller as member 0, as a run does.
fn meet(members: usize, job: impl Fn(&Team, usize) + Send + Sync + 'static) {
    let team = Arc::new(Team::new(members));
    let job = Arc::new(job);
    (1..members).for_each(|member| assert_eq!(team.join(), Some(member)));
    let helper = |member| {
        let (team, job) = (Arc::clone(&team), Arc::clone(&job));
        thread::spawn(move || {
            job(&team, member);
            team.disband();
            team.leave();
        })
    };
    let helpers: Vec<_> = (1..members).map(helper).collect();
    job(&team, 0);
    team.disband();
    team.dissolve();
    drop(helpers);
}

/// Barriers in a row: each member's write is seen in the one turn, and the turn's write by each member.
fn barriers(rounds: u32, members: usize) {
    let written = [Watched::new(), Watched::new(), Watched::new()];
    let turns = Watched::new();
    meet(members, move |team, member| {
        for round in 1..=rounds {
            written[member].add(1);
            let turn = || {
                assert!(written[..members].iter().all(|cell| cell.get() == round));
                turns.add(1);
            };
            assert!(team.barrier_unless(|| false, turn));
            assert_eq!(turns.get(), round);
        }
    });
}

#[test]
fn two_members_meet_three_times() {
    explore(4, [()], || barriers(3, 2));
}

#[test]
fn three_members_meet_twice() {
    explore(1, [()], || barriers(2, 3));
}

/// One member stops the run before its barrier: nobody gets through.
fn stop_from_inside(members: usize) {
    let stop = AtomicU32::new(0);
    meet(members, move |team, member| {
        if member == 1 {
            stop.store(1, Ordering::Relaxed);
        }
        let stopped = || stop.load(Ordering::Relaxed) != 0;
        assert!(!team.barrier_unless(stopped, || unreachable!()));
        assert!(!team.barrier_with(&Plain::new(0), || ()));
    });
}

#[test]
fn a_stop_lets_two_members_go() {
    explore(4, [()], || stop_from_inside(2));
}

#[test]
fn a_stop_lets_three_members_go() {
    explore(1, [()], || stop_from_inside(3));
}

/// Somebody else stops the run: the members go on together or not at all.
#[test]
fn a_stop_from_outside_gives_one_answer_to_all() {
    explore(3, [0, 2], || {
        let stop = Arc::new(AtomicU32::new(0));
        let opened = Arc::new(Plain::new(0));
        let (outside, seen) = (Arc::clone(&stop), Arc::clone(&opened));
        thread::spawn(move || outside.store(1, Ordering::Relaxed));
        meet(2, move |team, _| {
            // A member that sleeps sees a stop from outside by the clock, and the checker has none: one of the
            // two always comes to the barrier after the stop, or both are through before.
            let stopped = || stop.load(Ordering::Relaxed) != 0;
            seen.fetch_add(u32::from(team.barrier_unless(stopped, || ())), SeqCst);
        });
        opened.load(SeqCst)
    });
}

#[test]
fn a_member_that_returns_is_not_waited_for() {
    explore(8, [()], || {
        meet(2, |team, member| {
            if member != 1 {
                assert!(!team.barrier_unless(|| false, || unreachable!()));
            }
        });
    });
}

/// A run whose members each add to a cell of the caller's, and the caller's look at it afterwards. Gives the
/// number of members.
fn run_over_borrowed_cells(pool: &Pool) -> u32 {
    let cells = [Watched::new(), Watched::new()];
    pool.run(2, &|_, member| cells[member].add(1));
    let members = cells.iter().map(Watched::get).sum();
    cells.iter().for_each(|cell| cell.add(1));
    members
}

#[test]
fn a_run_and_the_end_of_the_pool() {
    explore(8, [1, 2], || run_over_borrowed_cells(&Pool::new(2)));
}

#[test]
fn a_run_with_a_barrier() {
    explore(6, [1, 2], || {
        let pool = Pool::new(2);
        let cells = [Watched::new(), Watched::new()];
        let members = Watched::new();
        pool.run(2, &|team, member| {
            cells[member].add(1);
            assert!(team.barrier_with(&Plain::new(0), || members.add(cells.iter().map(Watched::get).sum())));
            assert!(member < members.get() as usize);
        });
        members.add(0);
        members.get()
    });
}

#[test]
fn a_run_made_together_with_turns_between() {
    explore(6, [1, 2], || {
        let pool = Pool::new(2);
        let cells = [Watched::new(), Watched::new()];
        let members = Watched::new();
        pool.run_together(2, &|team, member| {
            cells[member].add(1);
            if team.arrive(&Plain::new(0)) == Arrival::Last {
                members.add(cells.iter().map(Watched::get).sum());
                team.open();
            }
            assert!(member < members.get() as usize);
        });
        members.get()
    });
}

/// A run whose caller sleeps until the helper has come. No job may be like that; here it turns a helper that
/// sleeps while it is wanted into a deadlock, which the checker reports.
fn run_that_needs_help(pool: &Pool) {
    let came = Notify::new();
    pool.run(2, &|_, member| if member == 0 { came.wait() } else { came.notify() });
}

#[test]
fn a_helper_comes_when_it_is_wanted() {
    explore(5, [()], || {
        let pool = Pool::new(2);
        run_that_needs_help(&pool);
        run_that_needs_help(&pool);
    });
}

#[test]
fn a_helper_comes_to_both_of_two_runs() {
    explore(2, [()], || {
        let pool = Arc::new(Pool::new(2));
        let other = Arc::clone(&pool);
        let other = thread::spawn(move || run_that_needs_help(&other));
        run_that_needs_help(&pool);
        other.join().unwrap();
    });
}

#[test]
fn two_runs_one_after_the_other() {
    explore(5, [[1, 1], [1, 2], [2, 1], [2, 2]], || {
        let pool = Pool::new(2);
        [run_over_borrowed_cells(&pool), run_over_borrowed_cells(&pool)]
    });
}

#[test]
fn two_runs_at_the_same_time() {
    explore(4, [[1, 1], [1, 2], [2, 1], [2, 2]], || {
        let pool = Arc::new(Pool::new(2));
        let other = Arc::clone(&pool);
        let other = thread::spawn(move || run_over_borrowed_cells(&other));
        [run_over_borrowed_cells(&pool), other.join().unwrap()]
    });
}

#[test]
fn a_run_inside_a_run() {
    explore(6, [1, 2, 3], || {
        let pool = Pool::new(2);
        let members = Plain::new(0);
        pool.run(2, &|_, _| _ = members.fetch_add(run_over_borrowed_cells(&pool), SeqCst));
        members.into_inner()
    });
}

#[test]
fn the_end_of_a_pool_that_never_ran() {
    explore(3, [()], || drop(Pool::new(3)));
}

#[test]
fn the_end_of_a_pool_whose_helper_sleeps() {
    explore(8, [()], || {
        let pool = Pool::new(2);
        // A helper that was started for nothing: it finds no run, falls asleep, and is woken by the end.
        let mut state = lock(&pool.shared.state);
        state.started = 1;
        state.searching = 1;
        drop(state);
        assert!(pool.shared.start(0));
    });
}
