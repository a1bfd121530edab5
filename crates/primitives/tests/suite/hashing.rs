//! Hash tables.

use crate::case::{Case, GRIDS, lanes, random, words};
use std::num::NonZeroU32;
use vyre_driver::Route;
use vyre_foundation::build::prelude::*;
use vyre_foundation::rng::SplitMix64;
use vyre_primitives::hash_table::{self, NONE};
use vyre_primitives::{Lanes, Team};
use vyre_reference::Schedule;

fn width(words: u32) -> NonZeroU32 {
    NonZeroU32::new(words).unwrap()
}

fn schedules() -> impl Iterator<Item = Schedule> {
    let fixed = [Schedule::InOrder, Schedule::RoundRobin, Schedule::Reversed];
    fixed.into_iter().chain((0..4).map(Schedule::Random))
}

/// Runs a program whose outputs are a table and, for each key, the first one that equals it; checks the latter.
fn check_first(case: &Case<'_>, first: &[u32], reference: bool) {
    let check = |found: Vec<Vec<u8>>, how: &dyn std::fmt::Debug| {
        let (table, found) = (words::<u32>(&found[0]), words::<u32>(&found[1]));
        assert_eq!(found, first, "{how:?}");
        // Each first key stands in one slot.
        let mut held: Vec<u32> = table.iter().filter(|slot| **slot != 0).map(|slot| slot - 1).collect();
        held.sort_unstable();
        let mut distinct = first.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(held, distinct, "{how:?}");
    };
    for grid in GRIDS {
        for threads in [1, 2] {
            check(case.cpu_outputs(grid, threads, Route::Auto).unwrap(), &(grid, threads));
        }
    }
    if reference {
        for schedule in schedules() {
            check(case.reference_outputs([3, 1, 1], schedule).unwrap(), &schedule);
        }
    }
}

fn check_distinct(keys: &[u32], words: u32, slots: usize, lanes: Lanes) {
    let program = hash_table::distinct_program(lanes, width(words));
    let first = hash_table::distinct_oracle(keys, width(words));
    let case = Case::new(&program).input(keys).len("table", slots).len("first", first.len());
    check_first(&case, &first, keys.len() < 200);
}

#[test]
fn equal_keys_are_found() {
    let mut rng = SplitMix64::new(30);
    for words in [1, 2, 3] {
        for (keys, values) in [(0usize, 1), (1, 1), (2, 1), (50, 7), (60, 1 << 32), (5000, 100), (5000, 3000)]
        {
            let keys: Vec<u32> = (0..keys * words as usize).map(|_| rng.below(values) as u32).collect();
            let slots = (keys.len() / words as usize * 2).next_power_of_two();
            check_distinct(&keys, words, slots, lanes(16));
        }
    }
}

#[test]
fn all_keys_equal() {
    check_distinct(&[77; 150], 1, 1, lanes(16));
    check_distinct(&[77; 150], 1, 256, lanes(16));
    check_distinct(&[77; 20_000], 2, 64, Lanes::default());
}

#[test]
fn a_table_that_is_just_full() {
    let keys: Vec<u32> = (0..128u32).map(|i| i.wrapping_mul(0x0101_0101)).collect();
    check_distinct(&keys, 1, 128, lanes(16));
    let twice: Vec<u32> = keys.iter().chain(&keys).copied().collect();
    check_distinct(&twice, 1, 128, lanes(16));
}

#[test]
fn keys_that_are_missing() {
    let mut rng = SplitMix64::new(31);
    for words in [1, 3] {
        let program = hash_table::distinct_program(lanes(16), width(words));
        let find = hash_table::find_program(lanes(16), width(words));
        let mut draw = |count: u32| -> Vec<u32> { (0..count * words).map(|_| rng.below(6) as u32).collect() };
        for (keys, queries) in [(0, 10), (1, 10), (40, 0), (40, 100), (100, 100)] {
            let (keys, queries) = (draw(keys), draw(queries));
            let count = keys.len() / words as usize;
            let made = Case::new(&program).input(&keys).len("table", (count * 2).next_power_of_two());
            let made = made.len("first", count).cpu_outputs([2, 1, 1], 2, Route::Auto).unwrap();
            let found = hash_table::find_oracle(&keys, &queries, width(words));
            let case = Case::new(&find).input(&keys).input(&self::words::<u32>(&made[0])).input(&queries);
            case.len("found", found.len()).expect(&found).cpu().reference();
        }
    }
}

/// A program like `distinct`, with a hash of the test's own: the key modulo `buckets`.
fn distinct_by(lanes: Lanes, buckets: u32) -> Program {
    let program = vyre_foundation::build::program("distinct_by", |k| {
        let team = Team::new(k, lanes);
        let keys = k.read::<u32>("keys");
        let (table, first) = (k.output::<u32>("table"), k.output::<u32>("first"));
        team.for_each(k, keys.len(), |i| {
            let same = |other| keys.load(i).eq(keys.load(other));
            first.store(i, hash_table::insert_or_find(k, table, keys.load(i) % buckets, i, same));
        });
        k.barrier(Scope::Grid);
        team.for_each(k, keys.len(), |i| first.store(i, table.load(first.load(i)) - 1));
    });
    program.unwrap()
}

#[test]
fn different_keys_with_one_hash() {
    let mut rng = SplitMix64::new(32);
    for buckets in [1, 3] {
        let program = distinct_by(lanes(16), buckets);
        for count in [64, 100, 700] {
            let keys: Vec<u32> = (0..count).map(|_| rng.below(count) as u32).collect();
            let first = hash_table::distinct_oracle(&keys, width(1));
            let case = Case::new(&program).input(&keys).len("table", 1024).len("first", keys.len());
            check_first(&case, &first, count < 200);
        }
    }
}

#[test]
fn hashes_at_the_end_go_on_at_the_beginning() {
    let program = distinct_by(lanes(16), u32::MAX);
    let keys: Vec<u32> = (0..16).map(|i| u32::MAX - 1 - i * 16).collect();
    let case = Case::new(&program).input(&keys).len("table", 16).len("first", 16);
    check_first(&case, &hash_table::distinct_oracle(&keys, width(1)), true);
}

/// Some keys find no place. Whoever has one is right about it, and every slot is used.
fn check_full(program: &Program, keys: &[u32], slots: usize, used: usize) {
    let case = Case::new(program).input(keys).len("table", slots).len("first", keys.len());
    let check = |found: Vec<Vec<u8>>| {
        let (table, first) = (words::<u32>(&found[0]), words::<u32>(&found[1]));
        assert_eq!(table.iter().filter(|slot| **slot != 0).count(), used);
        let smallest = hash_table::distinct_oracle(keys, width(1));
        for (i, first) in first.iter().enumerate() {
            assert!(*first == NONE || *first == smallest[i], "key {i}: {first}");
        }
        let placed = first.iter().filter(|first| **first != NONE).count();
        assert!(placed >= used.min(keys.len()));
    };
    for threads in [1, 2] {
        check(case.cpu_outputs([3, 1, 1], threads, Route::Auto).unwrap());
    }
    schedules().for_each(|schedule| check(case.reference_outputs([3, 1, 1], schedule).unwrap()));
}

#[test]
fn full_tables() {
    let keys: Vec<u32> = (0..150).map(|i| i % 100).collect();
    let program = hash_table::distinct_program(lanes(16), width(1));
    for slots in [0, 1, 32, 64] {
        check_full(&program, &keys, slots, slots);
    }
    // Of a length that is no power of two some slots are never used: here those with bit 1.
    check_full(&distinct_by(lanes(16), 1), &keys, 6, 4);
}

#[test]
fn hashes_are_those_of_the_host() {
    let program = vyre_foundation::build::program("hashes", |k| {
        let team = Team::new(k, lanes(16));
        let (keys, out) = (k.read::<u32>("keys"), k.write::<u32>("out"));
        team.for_each(k, keys.len(), |i| {
            out.store(i, hash_table::hash([keys.load(i), i, 7.into()]));
        });
    })
    .unwrap();
    let keys = random::<u32>(&mut SplitMix64::new(33), 100);
    let hashes: Vec<u32> = (0..).zip(&keys).map(|(i, key)| hash_table::hash_of(&[*key, i, 7])).collect();
    let case = Case::new(&program).input(&keys).len("out", 100).expect(&hashes);
    case.cpu().reference();
    // They spread: of 2^16 neighbours about as many land in each of 256 buckets.
    for shift in [0, 24] {
        let mut buckets = [0u32; 256];
        (0..1 << 16).for_each(|i| buckets[(hash_table::hash_of(&[i]) >> shift & 255) as usize] += 1);
        assert!(buckets.iter().all(|count| (150..400).contains(count)), "{buckets:?}");
    }
}
