//! Fragments in the middle of larger programs: in loops, several of them, over counts that are known at run time only.

use crate::case::{Case, lanes, random};
use vyre_foundation::build::prelude::*;
use vyre_foundation::rng::SplitMix64;
use vyre_primitives::{Compact, Frontier, Lanes, Op, Reduce, Scan, Team, bitset};

/// Takes away the numbers below the mean of those that are left, until one value is left; counts the rounds.
fn above_the_mean(lanes: Lanes) -> Program {
    let program = vyre_foundation::build::program("above_the_mean", |k| {
        let team = Team::new(k, lanes);
        let numbers = k.read_write::<u32>("numbers");
        let result = k.output::<u32>("result").with_count(2);
        let other = k.scratch::<u32>("other");
        let sum = Reduce::<u64>::new(k, team, "sum", Op::Sum);
        let compact = Compact::new(k, team, "compact");
        let left = k.var("left", numbers.len());
        k.for_named("turn", 0, 1000, |round| {
            let n = left.get();
            sum.run(k, n, |i| numbers.load(i).cast());
            let mean = sum.result() / n.cast::<u64>();
            let keep = |i| numbers.load(i).cast::<u64>().ge(mean);
            compact.run(k, n, keep, |i, position| other.store(position, numbers.load(i)));
            let count = compact.uniform_count();
            team.for_each(k, count, |i| numbers.store(i, other.load(i)));
            k.barrier(Scope::Grid);
            left.set(count);
            k.if_(count.eq(n), || {
                team.once(k, || {
                    result.store(0, n);
                    result.store(1, round);
                });
                k.break_();
            });
        });
    });
    program.unwrap()
}

#[test]
fn reductions_and_compactions_in_a_loop() {
    let mut rng = SplitMix64::new(60);
    for (lanes, count) in [(lanes(4), 1), (lanes(4), 300), (lanes(64), 5000), (Lanes::default(), 100_000)] {
        let program = above_the_mean(lanes);
        let numbers: Vec<u32> = random(&mut rng, count);
        let (mut left, mut rounds, mut end) = (numbers.clone(), 0, numbers.clone());
        loop {
            let mean = left.iter().map(|n| u64::from(*n)).sum::<u64>() / left.len() as u64;
            let kept: Vec<u32> = left.iter().copied().filter(|n| u64::from(*n) >= mean).collect();
            end[..kept.len()].copy_from_slice(&kept);
            if kept.len() == left.len() {
                break;
            }
            (left, rounds) = (kept, rounds + 1);
        }
        let case = Case::new(&program).input(&numbers).len("other", count);
        let case = case.expect(&end).expect(&[left.len() as u32, rounds]);
        case.cpu();
        if count < 500 {
            case.reference().split();
        }
    }
}

#[test]
fn one_scan_several_times() {
    // Each scan takes the result of the one before; the last one scatters backwards.
    let program = vyre_foundation::build::program("thrice", |k| {
        let team = Team::new(k, lanes(4));
        let (data, out) = (k.read_write::<u32>("data"), k.output::<u32>("out"));
        let totals = k.output::<u32>("totals").with_count(3);
        let scan = Scan::new(k, team, "scan", Op::Sum);
        let n = data.len();
        for time in 0..2 {
            scan.inclusive(k, n, |i| data.load(i), |i, prefix| data.store(i, prefix));
            team.once(k, || totals.store(time, scan.total()));
        }
        scan.exclusive(k, n, |i| data.load(i) ^ i, |i, prefix| out.store(n - 1 - i, prefix));
        team.once(k, || totals.store(2, scan.total()));
    })
    .unwrap();
    let mut rng = SplitMix64::new(61);
    for count in [1usize, 63, 64, 65, 300] {
        let mut data: Vec<u32> = random(&mut rng, count);
        let case = Case::new(&program).input(&data).len("out", count);
        let mut totals = Vec::new();
        for _ in 0..2 {
            let mut sum = 0u32;
            data.iter_mut().for_each(|value| {
                sum = sum.wrapping_add(*value);
                *value = sum;
            });
            totals.push(sum);
        }
        let (mut sum, mut out) = (0u32, vec![0; count]);
        for (i, value) in data.iter().enumerate() {
            out[count - 1 - i] = sum;
            sum = sum.wrapping_add(value ^ i as u32);
        }
        totals.push(sum);
        case.expect(&data).expect(&out).expect(&totals).cpu().reference();
    }
}

#[test]
fn one_frontier_several_times() {
    // From each number in turn: which numbers below 1000 it leads to by `3 * n` and `n + 7`, in how many rounds.
    let program = vyre_foundation::build::program("walks", |k| {
        let team = Team::new(k, lanes(16));
        let starts = k.read::<u32>("starts");
        let sizes = k.output::<u32>("sizes");
        let seen = k.output::<u32>("seen").with_count(32);
        let frontier = Frontier::new(k, team, "frontier");
        k.for_named("walk", 0, starts.len(), |walk| {
            team.for_each(k, seen.len(), |word| seen.store(word, 0));
            let visit = |round: vyre_primitives::frontier::Round, number: Value<u32>| {
                k.if_(number.lt(1000), || {
                    k.if_(bitset::set(seen, number), || {
                        round.push(k, number);
                        sizes.atomic_add(walk, 1);
                    });
                });
            };
            frontier.run(
                k,
                |round| team.once(k, || visit(round, starts.load(walk))),
                |round, number| {
                    visit(round, number * 3);
                    visit(round, number + 7);
                },
            );
        });
    })
    .unwrap();
    let starts = [0u32, 999, 5, 1000, 1];
    let (mut sizes, mut seen) = (Vec::new(), Vec::new());
    for start in starts {
        seen = vec![0u32; 32];
        let mut pending = vec![start];
        let mut size = 0u32;
        while let Some(number) = pending.pop() {
            if number < 1000 && !bitset::test_oracle(&seen, number) {
                seen[number as usize / 32] |= 1 << (number % 32);
                size += 1;
                pending.extend([number * 3, number + 7]);
            }
        }
        sizes.push(size);
    }
    let case = Case::new(&program).input(&starts).len("sizes", starts.len()).len("frontier_queue", 2000);
    case.expect(&sizes).expect(&seen).cpu().split().reference();
}
