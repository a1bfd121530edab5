//! Bit sets.

use crate::case::{Case, lanes, random};
use vyre_foundation::rng::SplitMix64;
use vyre_primitives::bitset::{self, Algebra, Change};

#[test]
fn algebra() {
    let mut rng = SplitMix64::new(20);
    for algebra in Algebra::ALL {
        let program = bitset::algebra_program(lanes(16), algebra);
        for (a, b) in [(0, 0), (0, 5), (1, 1), (15, 17), (16, 0), (17, 3), (100, 100), (1000, 999)] {
            let (a, b) = (random::<u32>(&mut rng, a), random::<u32>(&mut rng, b));
            let case =
                Case::new(&program).input(&a).input(&b).expect(&bitset::algebra_oracle(algebra, &a, &b));
            case.cpu().reference();
        }
    }
}

#[test]
fn members_come_and_go() {
    let mut rng = SplitMix64::new(21);
    for change in [Change::Set, Change::Clear] {
        let program = bitset::change_program(lanes(16), change);
        for (numbers, words) in [(0, 3), (1, 1), (40, 0), (200, 2), (3000, 40)] {
            // Several times the same, and some that are outside.
            let numbers: Vec<u32> = (0..numbers).map(|_| rng.below(words as u64 * 32 + 9) as u32).collect();
            let mut bits = random::<u32>(&mut rng, words);
            let case = Case::new(&program).input(&numbers).input(&bits);
            let changed = bitset::change_oracle(change, &numbers, &mut bits);
            case.expect(&bits).expect(&[changed]).cpu().reference();
        }
    }
}

#[test]
fn members_are_found() {
    let mut rng = SplitMix64::new(22);
    let program = bitset::test_program(lanes(16));
    for (numbers, words) in [(0, 3), (1, 1), (33, 0), (200, 2), (1000, 20)] {
        let numbers: Vec<u32> = (0..numbers).map(|_| rng.below(words as u64 * 32 + 9) as u32).collect();
        let bits = random::<u32>(&mut rng, words);
        let found: Vec<u32> = numbers.iter().map(|n| u32::from(bitset::test_oracle(&bits, *n))).collect();
        let case = Case::new(&program).input(&numbers).input(&bits).len("found", numbers.len());
        case.expect(&found).cpu().reference();
    }
}

#[test]
fn members_are_counted() {
    let mut rng = SplitMix64::new(23);
    let program = bitset::count_program(lanes(16));
    for words in [0, 1, 15, 16, 17, 1000] {
        let bits = random::<u32>(&mut rng, words);
        Case::new(&program).input(&bits).expect(&[bitset::count_oracle(&bits)]).cpu().reference();
    }
}
