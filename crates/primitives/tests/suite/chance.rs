//! Random inputs on random grids, with workgroups of every size, under random schedules.

use crate::case::{Case, lanes, random};
use crate::graphs::{self, Csr, both_ways};
use crate::search::{bfs_case, components_case, frontier_case, reach_case};
use std::num::NonZeroU32;
use vyre_foundation::rng::SplitMix64;
use vyre_primitives::scan::Kind;
use vyre_primitives::{Lanes, Op, bfs, compact, components, frontier, hash_table, reach, reduce, scan};
use vyre_reference::Schedule;

/// Draws for one test.
struct Draw(SplitMix64);

impl Draw {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.below(u64::from(bound)) as u32
    }

    fn lanes(&mut self) -> Lanes {
        lanes(1 << self.below(6))
    }

    fn grid(&mut self) -> [u32; 3] {
        if self.0.chance(1, 4) {
            [1 + self.below(3), 1 + self.below(2), 2]
        } else {
            [1 + self.below(9), 1, 1]
        }
    }

    /// On a grid of the CPU backend and on one of the reference.
    fn check(&mut self, case: &Case<'_>) {
        case.cpu_on(self.grid());
        case.reference_on(self.grid(), Schedule::Random(self.0.next_u64()));
    }

    fn graph(&mut self) -> Csr {
        let nodes = 1 + self.below(40);
        let most = self.below(120) + 1;
        let edges = graphs::random(nodes, self.below(most), self.0.next_u64());
        Csr::of(nodes, &if self.0.chance(1, 2) { both_ways(&edges) } else { edges })
    }

    fn sources(&mut self, graph: &Csr) -> Vec<u32> {
        (0..self.below(70)).map(|_| self.below(graph.nodes() + 1)).collect()
    }
}

#[test]
fn scans() {
    let mut draw = Draw(SplitMix64::new(70));
    for _ in 0..40 {
        let lanes = draw.lanes();
        let most = 1 + draw.below(lanes.get() * 16 * 5);
        let n = draw.below(most) as usize;
        let data: Vec<u32> = random(&mut draw.0, n);
        let op = *draw.0.pick(&Op::ALL);
        let kind = *draw.0.pick(&[Kind::Exclusive, Kind::Inclusive]);
        let program = scan::program::<u32>(lanes, op, kind);
        let (prefixes, total) = scan::oracle(op, kind, &data);
        draw.check(&Case::new(&program).input(&data).expect(&prefixes).expect(&[total]));
        let program = reduce::program::<u32>(lanes, op);
        draw.check(&Case::new(&program).input(&data).expect(&[total]));
        let program = compact::program(lanes);
        let flags: Vec<u32> = data.iter().map(|value| value & 1).collect();
        let mut kept = compact::oracle(&flags);
        let count = kept.len() as u32;
        kept.resize(n, 0);
        draw.check(&Case::new(&program).input(&flags).len("kept", n).expect(&kept).expect(&[count]));
    }
}

#[test]
fn equal_keys() {
    let mut draw = Draw(SplitMix64::new(71));
    for _ in 0..60 {
        let (n, words, values) = (draw.below(100), 1 + draw.below(3), 1 + draw.below(20));
        let keys: Vec<u32> = (0..n * words).map(|_| draw.below(values)).collect();
        let words = NonZeroU32::new(words).unwrap();
        let program = hash_table::distinct_program(draw.lanes(), words);
        let first = hash_table::distinct_oracle(&keys, words);
        // Where in the table keys are may differ; which one is the first may not.
        let case = Case::new(&program).input(&keys).len("table", (n as usize * 2).next_power_of_two());
        let case = case.len("first", n as usize);
        let (grid, schedule) = (draw.grid(), Schedule::Random(draw.0.next_u64()));
        let found = [
            case.cpu_outputs(grid, 2, vyre_driver::Route::Auto).unwrap(),
            case.reference_outputs(grid, schedule).unwrap(),
        ];
        for outputs in found {
            assert_eq!(crate::case::words::<u32>(&outputs[1]), first);
        }
    }
}

#[test]
fn graphs() {
    let mut draw = Draw(SplitMix64::new(72));
    for _ in 0..60 {
        let graph = draw.graph();
        let sources = draw.sources(&graph);
        let (back, lanes) = (graph.reversed(), draw.lanes());
        draw.check(&frontier_case(&frontier::program(lanes), &graph, &sources));
        draw.check(&bfs_case(&bfs::program(lanes), &graph, &back, &sources).expect(&bfs::oracle(
            &graph.offsets,
            &graph.targets,
            &sources,
        )));
        draw.check(&reach_case(&reach::program(lanes), &graph, &sources));
        draw.check(&components_case(&components::program(lanes), &graph));
    }
}

#[test]
fn large_graphs() {
    // So large that both threads work on it.
    let mut draw = Draw(SplitMix64::new(73));
    for edges in [60_000, 300_000] {
        let edges = graphs::random(100_000, edges, draw.0.next_u64());
        let graph = Csr::of(100_000, &both_ways(&edges));
        let sources: Vec<u32> = (0..40).map(|_| draw.below(100_000)).collect();
        let lanes = Lanes::default();
        for grid in [[2, 1, 1], [16, 1, 1]] {
            frontier_case(&frontier::program(lanes), &graph, &sources).cpu_on(grid);
            let levels = bfs::oracle(&graph.offsets, &graph.targets, &sources[..1]);
            bfs_case(&bfs::program(lanes), &graph, &graph, &sources[..1]).expect(&levels).cpu_on(grid);
            reach_case(&reach::program(lanes), &graph, &sources).cpu_on(grid);
            components_case(&components::program(lanes), &graph).cpu_on(grid);
        }
    }
}
