//! Reductions, scans and compactions.

use crate::case::{Case, Plain, lanes, random};
use vyre_foundation::Program;
use vyre_foundation::rng::SplitMix64;
use vyre_primitives::scan::{ITEMS, Kind};
use vyre_primitives::{Lanes, Op, compact, reduce, scan};
use vyre_reference::Schedule;

const KINDS: [Kind; 2] = [Kind::Exclusive, Kind::Inclusive];

/// Lengths at which something changes for workgroups of so many lanes.
fn lengths(lanes: Lanes) -> Vec<usize> {
    let row = lanes.get() as usize;
    let tile = row * ITEMS as usize;
    let near = |n: usize| [n - 1, n, n + 1];
    let mut all = vec![0, 1, 2];
    all.extend([row, tile, 2 * tile, 3 * tile].into_iter().flat_map(near));
    all.push(23 * tile + row + 1);
    all
}

fn scan_case<'p, T: Plain>(program: &'p Program, op: Op, kind: Kind, data: &[T]) -> Case<'p> {
    let (prefixes, total) = scan::oracle(op, kind, data);
    Case::new(program).input(data).expect(&prefixes).expect(&[total])
}

fn reduce_case<'p, T: Plain>(program: &'p Program, op: Op, data: &[T]) -> Case<'p> {
    Case::new(program).input(data).expect(&[reduce::oracle(op, data)])
}

fn every_op<T: Plain>(seed: u64) {
    let (mut rng, few) = (SplitMix64::new(seed), lanes(4));
    for op in Op::ALL {
        let data: Vec<T> = random(&mut rng, 3 * 64 + 17);
        for kind in KINDS {
            let program = scan::program::<T>(few, op, kind);
            scan_case(&program, op, kind, &data)
                .cpu_on([2, 1, 1])
                .reference_on([2, 1, 1], Schedule::Random(seed));
        }
        let program = reduce::program::<T>(few, op);
        reduce_case(&program, op, &data).cpu_on([3, 1, 1]).reference_on([3, 1, 1], Schedule::Random(seed));
        reduce_case::<T>(&program, op, &[]).cpu_on([3, 1, 1]);
    }
}

#[test]
fn every_type_and_operator() {
    every_op::<u32>(1);
    every_op::<i32>(2);
    every_op::<u64>(3);
    every_op::<i64>(4);
}

#[test]
fn scans_of_every_length() {
    let mut rng = SplitMix64::new(10);
    for count in [1, 4, 16, 64, 256] {
        let lanes = lanes(count);
        for kind in KINDS {
            let program = scan::program::<u32>(lanes, Op::Sum, kind);
            for length in lengths(lanes) {
                let case = scan_case(&program, Op::Sum, kind, &random::<u32>(&mut rng, length));
                case.cpu();
                if length < 500 {
                    case.reference();
                }
            }
        }
    }
}

#[test]
fn a_whole_tile_on_the_reference() {
    let mut rng = SplitMix64::new(11);
    let program = scan::program::<u32>(Lanes::default(), Op::Sum, Kind::Exclusive);
    for length in [4095, 4096, 4097, 9000] {
        let case = scan_case(&program, Op::Sum, Kind::Exclusive, &random::<u32>(&mut rng, length));
        case.reference_on([3, 1, 1], Schedule::InOrder);
    }
}

#[test]
fn sums_wrap() {
    let program = scan::program::<u32>(lanes(16), Op::Sum, Kind::Inclusive);
    let case = scan_case(&program, Op::Sum, Kind::Inclusive, &[u32::MAX; 1000]);
    case.cpu().reference();
    let program = scan::program::<i64>(lanes(16), Op::Sum, Kind::Inclusive);
    scan_case(&program, Op::Sum, Kind::Inclusive, &[i64::MIN + 3; 1000]).cpu();
    let program = reduce::program::<u32>(lanes(16), Op::Sum);
    reduce_case(&program, Op::Sum, &[u32::MAX - 1; 1000]).cpu().reference();
}

#[test]
fn grids_of_any_shape() {
    let mut rng = SplitMix64::new(12);
    let data = random::<u32>(&mut rng, 4 * 16 * 40 + 3);
    let scan = scan::program::<u32>(lanes(4), Op::Sum, Kind::Exclusive);
    let reduce = reduce::program::<u32>(lanes(4), Op::Sum);
    // More than 256 workgroups, of which some have nothing to do, and workgroups on all axes.
    for grid in [[300, 1, 1], [1000, 1, 1], [2, 3, 1], [3, 1, 2], [2, 2, 2]] {
        scan_case(&scan, Op::Sum, Kind::Exclusive, &data).cpu_on(grid);
        reduce_case(&reduce, Op::Sum, &data).cpu_on(grid);
    }
    let case = scan_case(&scan, Op::Sum, Kind::Exclusive, &data);
    case.reference_on([300, 1, 1], Schedule::Reversed).reference_on([2, 3, 2], Schedule::Random(3));
    reduce_case(&reduce, Op::Sum, &data).reference_on([2, 3, 2], Schedule::Random(3));
}

#[test]
fn every_workgroup_that_can_takes_part() {
    // As many tiles and rows as make 256 equal stretches.
    let data = random::<u32>(&mut SplitMix64::new(17), 4 * 16 * 256);
    let scan = scan::program::<u32>(lanes(4), Op::Sum, Kind::Exclusive);
    let reduce = reduce::program::<u32>(lanes(4), Op::Sum);
    for grid in [[255, 1, 1], [256, 1, 1], [257, 1, 1]] {
        scan_case(&scan, Op::Sum, Kind::Exclusive, &data).cpu_on(grid);
        reduce_case(&reduce, Op::Sum, &data).cpu_on(grid);
    }
}

#[test]
fn scans_and_reductions_in_segments() {
    let data = random::<u32>(&mut SplitMix64::new(13), 10_000);
    let program = scan::program::<u32>(lanes(64), Op::Max, Kind::Exclusive);
    scan_case(&program, Op::Max, Kind::Exclusive, &data).split();
    reduce_case(&reduce::program::<u32>(lanes(64), Op::Xor), Op::Xor, &data).split();
}

#[test]
fn large_scans() {
    let data = random::<u32>(&mut SplitMix64::new(14), 1_000_003);
    let program = scan::program::<u32>(Lanes::default(), Op::Sum, Kind::Inclusive);
    scan_case(&program, Op::Sum, Kind::Inclusive, &data).cpu_on([16, 1, 1]).cpu_on([400, 1, 1]);
    reduce_case(&reduce::program::<u32>(Lanes::default(), Op::Sum), Op::Sum, &data).cpu_on([16, 1, 1]);
}

#[test]
fn reductions_of_every_length() {
    let mut rng = SplitMix64::new(15);
    for count in [1, 4, 64, 256] {
        let lanes = lanes(count);
        let program = reduce::program::<i32>(lanes, Op::Min);
        for length in lengths(lanes) {
            let case = reduce_case(&program, Op::Min, &random::<i32>(&mut rng, length));
            case.cpu();
            if length < 500 {
                case.reference();
            }
        }
    }
}

fn compact_case<'p>(program: &'p Program, flags: &[u32]) -> Case<'p> {
    let mut kept = compact::oracle(flags);
    let count = kept.len() as u32;
    kept.resize(flags.len(), 0);
    Case::new(program).input(flags).len("kept", flags.len()).expect(&kept).expect(&[count])
}

#[test]
fn compactions() {
    let mut rng = SplitMix64::new(16);
    for count in [4, 256] {
        let lanes = lanes(count);
        let program = compact::program(lanes);
        for length in lengths(lanes) {
            let density = rng.below(5);
            let flags: Vec<u32> = (0..length)
                .map(|_| if rng.chance(density, 4) { 1 + rng.below(9) as u32 } else { 0 })
                .collect();
            let case = compact_case(&program, &flags);
            case.cpu();
            if length < 500 {
                case.reference();
            }
        }
        compact_case(&program, &[1; 3000]).cpu();
        compact_case(&program, &[0; 3000]).cpu().split();
    }
}

#[test]
fn a_result_that_is_too_short_is_cut() {
    let program = compact::program(lanes(4));
    let case = Case::new(&program).input(&[1u32; 100]).len("kept", 3);
    case.expect(&[0u32, 1, 2]).expect(&[100u32]).cpu().reference();
}
