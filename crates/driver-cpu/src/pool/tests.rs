//! The pool on real threads. `model` has the checks of every order of events.

use super::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `job` with helpers that are sure to have joined: the caller waits for `members` of them.
fn run_with_all(pool: &Pool, members: usize, job: &Job<'_>) {
    let joined = AtomicUsize::new(0);
    pool.run(members, &|team, member| {
        joined.fetch_add(1, SeqCst);
        while joined.load(SeqCst) < members {
            thread::yield_now();
        }
        job(team, member);
    });
    assert_eq!(joined.into_inner(), members);
}

#[test]
fn one_member_is_the_caller_on_its_own_thread() {
    let pool = Pool::new(4);
    let here = thread::current().id();
    for limit in [0, 1] {
        let calls = AtomicU32::new(0);
        pool.run(limit, &|team, member| {
            assert_eq!((member, thread::current().id()), (0, here));
            assert!(team.barrier_with(&AtomicU32::new(0), || ()));
            assert!(!team.barrier_with(&AtomicU32::new(1), || ()));
            calls.fetch_add(1, Relaxed);
        });
        assert_eq!(calls.into_inner(), 1);
    }
    assert_eq!(lock(&pool.shared.state).started, 0, "no thread without need");
}

#[test]
fn members_have_distinct_numbers_and_helpers_have_names() {
    let pool = Pool::new(8);
    for _ in 0..2 {
        let seen = Mutex::new(Vec::new());
        run_with_all(&pool, 8, &|_, member| {
            let name = thread::current().name().unwrap_or("").to_owned();
            seen.lock().unwrap().push((member, name.starts_with("vyre-cpu-")));
        });
        let mut seen = seen.into_inner().unwrap();
        seen.sort();
        assert!(seen.into_iter().eq((0..8).map(|member| (member, member > 0))));
        thread::sleep(Duration::from_millis(5)); // all asleep by now: the second time they are woken
    }
}

#[test]
fn many_threads_run_many_jobs() {
    const THREADS: usize = 8;
    const RUNS: usize = 10_000;
    const ITEMS: usize = 16;
    let pool = Pool::new(4);
    let helped = AtomicUsize::new(0);
    let work = |thread: usize| {
        for run in 0..RUNS {
            let limit = 1 + (run + thread) % 8;
            let next = AtomicUsize::new(0);
            let sum = AtomicUsize::new(0);
            pool.run(limit, &|_, member| {
                assert!(member < limit.min(4));
                helped.fetch_add(member.min(1), Relaxed);
                loop {
                    let item = next.fetch_add(1, Relaxed);
                    if item >= ITEMS {
                        break;
                    }
                    sum.fetch_add(run + item, Relaxed);
                }
            });
            assert_eq!(sum.into_inner(), run * ITEMS + ITEMS * (ITEMS - 1) / 2);
        }
    };
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || work(number));
        }
    });
    assert!(helped.into_inner() > 0);
    let state = lock(&pool.shared.state);
    assert!(state.runs.is_empty() && state.started <= 3 && state.handles.len() == state.started);
}

#[test]
fn a_barrier_in_a_loop_holds_every_time() {
    const ROUNDS: u64 = 10_000;
    for members in [1, 2, 3] {
        let pool = Pool::new(members);
        let stop = AtomicU32::new(0);
        let counts: Vec<AtomicU64> = (0..members).map(|_| AtomicU64::new(0)).collect();
        let turns = AtomicU64::new(0);
        run_with_all(&pool, members, &|team, member| {
            for round in 1..=ROUNDS {
                counts[member].store(round, Relaxed);
                let turn = || {
                    assert!(counts.iter().all(|count| count.load(Relaxed) == round));
                    turns.store(turns.load(Relaxed) + 1, Relaxed);
                };
                assert!(team.barrier_with(&stop, turn));
                assert_eq!(turns.load(Relaxed), round);
                assert!(counts.iter().all(|count| count.load(Relaxed) == round));
                assert!(team.barrier_with(&stop, || ()));
            }
        });
        assert_eq!(turns.into_inner(), ROUNDS);
    }
}

#[test]
fn a_barrier_holds_for_members_that_sleep() {
    let pool = Pool::new(3);
    let stop = AtomicU32::new(0);
    let arrived = AtomicUsize::new(0);
    run_with_all(&pool, 3, &|team, member| {
        for round in 0..9 {
            if round % 3 == member {
                thread::sleep(Duration::from_millis(5));
            }
            arrived.fetch_add(1, Relaxed);
            assert!(team.barrier_with(&stop, || assert_eq!(arrived.load(Relaxed), (round + 1) * 3)));
        }
    });
}

#[test]
fn a_team_that_met_takes_nobody_in() {
    let pool = Pool::new(2);
    let members = AtomicUsize::new(0);
    let taken = AtomicBool::new(false);
    let release = AtomicBool::new(false);
    thread::scope(|scope| {
        let busy = scope.spawn(|| {
            // The only helper is here until released.
            run_with_all(&pool, 2, &|_, _| {
                taken.store(true, SeqCst);
                while !release.load(SeqCst) {
                    thread::yield_now();
                }
            });
        });
        while !taken.load(SeqCst) {
            thread::yield_now();
        }
        pool.run(2, &|team, _| {
            members.fetch_add(1, SeqCst);
            assert!(team.barrier_with(&AtomicU32::new(0), || ()), "nobody is waited for that may never come");
            release.store(true, SeqCst);
            while !busy.is_finished() {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
        });
    });
    assert_eq!(members.into_inner(), 1);
}

#[test]
fn a_run_made_together_waits_for_a_helper_that_sleeps() {
    let pool = Pool::new(2);
    let stop = AtomicU32::new(0);
    let mut both = 0;
    for _ in 0..200 {
        let members = AtomicUsize::new(0);
        pool.run_together(2, &|team, _| {
            members.fetch_add(1, SeqCst);
            assert!(team.barrier_with(&stop, || ()));
        });
        both += usize::from(members.into_inner() == 2);
        thread::sleep(Duration::from_micros(300));
    }
    assert!(both > 0, "a helper that was called is given the time to come");
}

#[test]
fn a_run_made_together_expects_those_who_are_free() {
    let pool = Pool::new(3);
    let expected = |pool: &Pool| {
        let state = lock(&pool.shared.state);
        state.free().saturating_sub(state.vacancies())
    };
    assert_eq!(expected(&pool), 2, "they can be started");
    for (members, free) in [(2, 1), (3, 0)] {
        let looked = AtomicBool::new(false);
        run_with_all(&pool, members, &|_, member| {
            if member == 0 {
                let found = expected(&pool);
                looked.store(true, SeqCst);
                assert_eq!(found, free, "the others are busy");
            }
            while !looked.load(SeqCst) {
                thread::yield_now();
            }
        });
        assert_eq!(expected(&pool), 2, "who has left is free");
    }
}

#[test]
fn a_turn_may_be_between_arriving_and_opening() {
    let pool = Pool::new(2);
    let (stop, turns) = (AtomicU32::new(0), AtomicU32::new(0));
    run_with_all(&pool, 2, &|team, _| {
        for round in 1..=1000 {
            match team.arrive(&stop) {
                Arrival::Last => {
                    turns.store(round, Relaxed);
                    team.open();
                }
                arrival => assert_eq!(arrival, Arrival::Through),
            }
            assert_eq!(turns.load(Relaxed), round);
        }
    });
}

#[test]
fn a_stop_from_outside_wakes_members_that_sleep() {
    let pool = Pool::new(2);
    let stop = AtomicU32::new(0);
    let waiting = AtomicBool::new(false);
    let answers = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !waiting.load(SeqCst) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(20));
            stop.store(7, SeqCst);
        });
        run_with_all(&pool, 2, &|team, member| {
            if member == 0 {
                waiting.store(true, SeqCst);
                answers.fetch_add(u32::from(team.barrier_with(&stop, || ())), SeqCst);
                return;
            }
            while stop.load(SeqCst) == 0 {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(20)); // the other one is out by itself
            assert!(!team.barrier_with(&stop, || ()));
            assert!(!team.barrier_with(&AtomicU32::new(0), || ()), "a barrier that was called off stays off");
        });
    });
    assert_eq!(answers.into_inner(), 0);
}

#[test]
fn a_member_that_returns_is_not_waited_for() {
    let pool = Pool::new(2);
    run_with_all(&pool, 2, &|team, member| {
        if member == 0 {
            assert!(!team.barrier_with(&AtomicU32::new(0), || panic!("not all are here")));
        }
    });
}

#[test]
fn runs_nest() {
    let pool = Pool::new(3);
    let sum = AtomicUsize::new(0);
    for _ in 0..200 {
        pool.run(3, &|_, _| {
            pool.run(3, &|team, outer| {
                assert!(team.barrier_with(&AtomicU32::new(0), || ()));
                pool.run(2, &|_, inner| {
                    sum.fetch_add(usize::from(outer == 0 && inner == 0), Relaxed);
                });
            });
        });
    }
    assert!(sum.into_inner() >= 200);
}

#[test]
fn a_panic_reaches_the_caller_after_all_have_returned() {
    let pool = Pool::new(3);
    for culprit in 0..3 {
        let returned = AtomicUsize::new(0);
        let stop = AtomicU32::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            run_with_all(&pool, 3, &|team, member| {
                if member == culprit {
                    resume_unwind(Box::new(format!("member {member}")));
                }
                assert!(!team.barrier_with(&stop, || ()));
                thread::sleep(Duration::from_millis(5));
                returned.fetch_add(1, SeqCst);
            });
        }));
        assert_eq!(*outcome.unwrap_err().downcast::<String>().unwrap(), format!("member {culprit}"));
        assert_eq!(returned.into_inner(), 2);
    }
    // The helpers are as good as before.
    run_with_all(&pool, 3, &|_, _| ());
}

#[test]
fn a_panic_in_the_turn_lets_the_others_go() {
    let pool = Pool::new(2);
    let answers = AtomicU32::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        run_with_all(&pool, 2, &|team, _| {
            let open = team.barrier_with(&AtomicU32::new(0), || resume_unwind(Box::new(())));
            answers.fetch_add(1 + 10 * u32::from(open), SeqCst);
        });
    }));
    assert!(outcome.is_err());
    assert_eq!(answers.into_inner(), 1);
}

#[test]
fn a_pool_without_threads_to_be_had_still_runs() {
    fn one_then_none(number: usize, shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
        if number == 0 { spawn_helper(number, shared) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
    fn none(_: usize, _: Arc<Shared>) -> io::Result<JoinHandle<()>> {
        Err(io::ErrorKind::WouldBlock.into())
    }
    let pool = Pool::with_spawn(8, one_then_none);
    for _ in 0..100 {
        run_with_all(&pool, 2, &|_, _| ());
        pool.run(8, &|_, member| assert!(member < 2));
    }
    let pool = Pool::with_spawn(8, none);
    pool.run(8, &|_, member| assert_eq!(member, 0));
    let state = lock(&pool.shared.state);
    assert_eq!((state.started, state.most, state.searching), (0, 0, 0));
}

#[test]
fn dropping_ends_the_helpers() {
    thread_local!(static AT_END: Cell<Option<Arc<()>>> = const { Cell::new(None) });
    let alive = Arc::new(());
    for round in 0..50 {
        let pool = Pool::new(3);
        run_with_all(&pool, 3, &|_, member| {
            if member > 0 {
                AT_END.set(Some(Arc::clone(&alive)));
            }
        });
        if round % 2 == 0 {
            thread::sleep(Duration::from_millis(1)); // asleep by now, else still looking
        }
        assert_eq!(Arc::strong_count(&alive), 3);
        drop(pool);
        assert_eq!(Arc::strong_count(&alive), 1, "a helper outlived its pool");
    }
    drop(Pool::new(3));
    drop(Pool::new(0));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn every_member_has_the_default_float_environment() {
    use std::hint::black_box;
    fn set_control(word: u32) {
        // SAFETY: a valid MXCSR; the test puts the default back before it ends.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, preserves_flags)) }
    }
    let product = || (black_box(f32::from_bits(1)) * black_box(1.0)).to_bits();
    let pool = Pool::new(2);
    let bits = AtomicU32::new(0);
    set_control(0x9fc0); // flush to zero, denormals are zero
    pool.run(1, &|_, _| bits.store(product(), Relaxed));
    run_with_all(&pool, 2, &|_, _| {
        bits.fetch_add(product() << 8, Relaxed);
        set_control(0x9fc0); // left behind by a job: the next one starts afresh
    });
    run_with_all(&pool, 2, &|_, _| _ = bits.fetch_add(product() << 16, Relaxed));
    let after = product();
    set_control(0x1f80);
    assert_eq!((bits.into_inner(), after), (0x2_0201, 0));
}

#[cfg(target_os = "linux")]
#[test]
fn idle_helpers_use_no_time() {
    let pool = Pool::new(3);
    let threads = Mutex::new(Vec::new());
    run_with_all(&pool, 3, &|_, member| {
        if member > 0 {
            threads.lock().unwrap().push(std::fs::read_link("/proc/thread-self").unwrap());
        }
    });
    let used = || -> u64 {
        let threads = threads.lock().unwrap();
        let on_core = |thread: &std::path::PathBuf| {
            let times = std::fs::read_to_string(std::path::Path::new("/proc").join(thread).join("schedstat"));
            times.unwrap().split(' ').next().unwrap().parse::<u64>().unwrap()
        };
        threads.iter().map(on_core).sum()
    };
    thread::sleep(Duration::from_millis(20));
    let before = used();
    thread::sleep(Duration::from_millis(200));
    assert!(used() - before < 2_000_000, "{} ns in 200 ms", used() - before);
}

/// Prints what runs and barriers cost here:
/// `cargo test -p vyre-driver-cpu --release --lib pool::tests::costs -- --ignored --nocapture`
#[test]
#[ignore = "prints times"]
#[allow(clippy::print_stdout)]
fn costs() {
    fn report(what: &str, times: u32, work: impl Fn()) {
        let best = (0..5).map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_nanos() as f64 / f64::from(times)
        });
        let mut best: Vec<f64> = best.collect();
        best.sort_by(f64::total_cmp);
        println!("{what:42} median {:9.1} ns, least {:9.1} ns", best[2], best[0]);
    }
    let pool = Pool::new(2);
    let calls = AtomicU64::new(0);
    let count = |_: &Team, _: usize| _ = calls.fetch_add(1, Relaxed);
    report("run(1), trivial job", 100_000, || (0..100_000).for_each(|_| pool.run(1, &count)));
    report("run(2), trivial job, one after the other", 100_000, || {
        (0..100_000).for_each(|_| pool.run(2, &count))
    });
    report("run(2), both members sure to take part", 1_000, || {
        (0..1_000).for_each(|_| run_with_all(&pool, 2, &count));
    });
    let asleep = AtomicU64::new(0);
    report("run(2), trivial job, helper asleep", 200, || {
        let start = asleep.load(Relaxed);
        for _ in 0..200 {
            thread::sleep(Duration::from_micros(300));
            let start = Instant::now();
            pool.run(2, &count);
            asleep.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
        }
        println!("  of which in run: {} ns", (asleep.load(Relaxed) - start) / 200);
    });
    let stop = AtomicU32::new(0);
    for members in [1, 2] {
        report(&format!("barrier of {members}, in a loop of 100000"), 100_000, || {
            run_with_all(&pool, members, &|team, _| {
                (0..100_000).for_each(|_| assert!(team.barrier_with(&stop, || ())))
            });
        });
    }
}
