//! Traversals, searches, reachability and components.

use crate::case::{Case, lanes};
use crate::graphs::{Csr, both_ways, random, shapes, sources};
use vyre_driver::Route;
use vyre_foundation::Program;
use vyre_foundation::rng::SplitMix64;
use vyre_primitives::frontier::UNREACHED;
use vyre_primitives::{Lanes, bfs, components, frontier, reach};
use vyre_reference::Schedule;

pub(crate) fn frontier_case<'p>(program: &'p Program, graph: &Csr, sources: &[u32]) -> Case<'p> {
    let n = graph.nodes() as usize;
    let case = Case::new(program).input(&graph.offsets).input(&graph.targets).input(sources);
    let levels = frontier::oracle(&graph.offsets, &graph.targets, sources);
    case.len("levels", n).len("frontier_queue", 2 * n).expect(&levels)
}

pub(crate) fn bfs_case<'p>(program: &'p Program, graph: &Csr, back: &Csr, sources: &[u32]) -> Case<'p> {
    let n = graph.nodes() as usize;
    let case = Case::new(program).input(&graph.offsets).input(&graph.targets);
    let case = case.input(&back.offsets).input(&back.targets).input(sources);
    case.len("levels", n).len("bfs_queue", 2 * n)
}

pub(crate) fn reach_case<'p>(program: &'p Program, graph: &Csr, sources: &[u32]) -> Case<'p> {
    let reached = reach::oracle(&graph.offsets, &graph.targets, sources);
    let case = Case::new(program).input(&graph.offsets).input(&graph.targets).input(sources);
    let case = case.len("reached", reached.len()).len("reach_queue", 2 * graph.nodes() as usize);
    case.len("reach_passed", reached.len()).len("reach_stamp", graph.nodes() as usize).expect(&reached)
}

pub(crate) fn components_case<'p>(program: &'p Program, graph: &Csr) -> Case<'p> {
    let labels = components::oracle(&graph.offsets, &graph.targets);
    let case = Case::new(program).input(&graph.offsets).input(&graph.targets);
    case.len("labels", graph.nodes() as usize).expect(&labels)
}

/// On the reference under two schedules, which is what time there is for.
fn small(case: &Case<'_>) {
    case.reference_on([1, 1, 1], Schedule::InOrder).reference_on([3, 1, 1], Schedule::Random(5));
}

#[test]
fn levels_of_small_graphs() {
    let program = frontier::program(lanes(4));
    for (_, graph) in shapes(19) {
        for sources in sources(graph.nodes()) {
            let case = frontier_case(&program, &graph, &sources);
            small(case.cpu());
        }
    }
}

#[test]
fn levels_of_large_graphs() {
    let program = frontier::program(Lanes::default());
    for (_, graph) in shapes(3000) {
        for sources in sources(graph.nodes()) {
            frontier_case(&program, &graph, &sources).cpu_on([1, 1, 1]).cpu_on([7, 1, 1]);
        }
    }
}

#[test]
fn searches_of_small_graphs() {
    let program = bfs::program(lanes(4));
    for (_, graph) in shapes(19) {
        let back = graph.reversed();
        for sources in sources(graph.nodes()) {
            let levels = bfs::oracle(&graph.offsets, &graph.targets, &sources);
            let case = bfs_case(&program, &graph, &back, &sources).expect(&levels);
            small(case.cpu());
        }
    }
}

#[test]
fn searches_of_large_graphs() {
    let program = bfs::program(Lanes::default());
    for (_, graph) in shapes(3000) {
        let back = graph.reversed();
        for sources in sources(graph.nodes()) {
            let levels = bfs::oracle(&graph.offsets, &graph.targets, &sources);
            let case = bfs_case(&program, &graph, &back, &sources).expect(&levels);
            case.cpu_on([1, 1, 1]).cpu_on([7, 1, 1]);
        }
    }
}

#[test]
fn a_search_looks_backwards_and_forwards_again() {
    // The leaves of a star with a tail. Backwards only some leaves know the centre: with bottom-up levels the others are
    // never found, and of the tail only the first node is known backwards.
    let star: Vec<(u32, u32)> = (1..900).map(|i| (0, i)).collect();
    let tail: Vec<(u32, u32)> = (900..1000).map(|i| (i - 1, i)).collect();
    let edges: Vec<(u32, u32)> = star.iter().chain(&tail).copied().collect();
    let graph = Csr::of(1000, &edges);
    let known: Vec<(u32, u32)> = (450..900).map(|i| (i, 0)).chain([(900, 899)]).collect();
    let back = Csr::of(1000, &known);
    let levels: Vec<u32> = (0..1000)
        .map(|node| match node {
            0 => 0,
            1..450 => UNREACHED,
            450..900 => 1,
            _ => node - 898,
        })
        .collect();
    for lanes in [lanes(4), Lanes::default()] {
        bfs_case(&bfs::program(lanes), &graph, &back, &[0]).expect(&levels).cpu();
    }
}

#[test]
fn reachability_of_small_graphs() {
    let program = reach::program(lanes(4));
    let mut rng = SplitMix64::new(51);
    for (_, graph) in shapes(19) {
        let n = graph.nodes();
        let many: Vec<u32> = (0..67).map(|_| rng.below(u64::from(n) + 1) as u32).collect();
        for sources in sources(n).into_iter().chain([many]) {
            let case = reach_case(&program, &graph, &sources);
            small(case.cpu());
        }
    }
}

#[test]
fn reachability_of_large_graphs() {
    let program = reach::program(Lanes::default());
    for (_, graph) in shapes(400) {
        for count in [1, 31, 32, 33, 100] {
            let n = u64::from(graph.nodes());
            let mut rng = SplitMix64::new(count);
            let sources: Vec<u32> = (0..count).map(|_| rng.below(n) as u32).collect();
            reach_case(&program, &graph, &sources).cpu_on([1, 1, 1]).cpu_on([7, 1, 1]);
        }
    }
}

#[test]
fn components_of_small_graphs() {
    let program = components::program(lanes(4));
    for (_, graph) in shapes(19) {
        components_case(&program, &graph).cpu().reference();
        let program = components::program(lanes(16));
        (0..5).for_each(|seed| {
            _ = components_case(&program, &graph).reference_on([2, 1, 1], Schedule::Random(seed))
        });
    }
}

#[test]
fn components_of_large_graphs() {
    let program = components::program(Lanes::default());
    for (_, graph) in shapes(3000) {
        components_case(&program, &graph).cpu();
    }
}

#[test]
fn components_of_edges() {
    let mut rng = SplitMix64::new(52);
    let program = components::edges_program(lanes(16));
    for (nodes, count) in [(0, 0), (1, 3), (50, 0), (50, 20), (50, 40), (2000, 1000), (2000, 3000)] {
        // Some are no nodes.
        let mut edges = if nodes == 0 { vec![(0, 0)] } else { random(nodes, count, rng.next_u64()) };
        edges.extend([(0, nodes), (u32::MAX, 0)]);
        let (from, to): (Vec<u32>, Vec<u32>) = edges.iter().copied().unzip();
        let case = Case::new(&program).input(&from).input(&to).len("labels", nodes as usize);
        let case = case.expect(&components::edges_oracle(nodes, &edges));
        case.cpu();
        if nodes < 100 {
            case.reference();
        }
    }
}

#[test]
fn searches_in_segments() {
    let graph = Csr::of(500, &both_ways(&random(500, 700, 53)));
    frontier_case(&frontier::program(lanes(64)), &graph, &[3, 4]).split();
    let levels = bfs::oracle(&graph.offsets, &graph.targets, &[3]);
    bfs_case(&bfs::program(lanes(64)), &graph, &graph, &[3]).expect(&levels).split();
    reach_case(&reach::program(lanes(64)), &graph, &[1, 2, 3]).split();
    components_case(&components::program(lanes(64)), &graph).split();
}

#[test]
fn default_lanes_on_the_reference() {
    let graph = Csr::of(300, &both_ways(&random(300, 400, 54)));
    frontier_case(&frontier::program(Lanes::default()), &graph, &[0])
        .reference_on([2, 1, 1], Schedule::InOrder);
    let levels = bfs::oracle(&graph.offsets, &graph.targets, &[0]);
    let program = bfs::program(Lanes::default());
    bfs_case(&program, &graph, &graph, &[0]).expect(&levels).reference_on([2, 1, 1], Schedule::InOrder);
    reach_case(&reach::program(Lanes::default()), &graph, &[0, 9]).reference_on([2, 1, 1], Schedule::InOrder);
    components_case(&components::program(Lanes::default()), &graph)
        .reference_on([2, 1, 1], Schedule::Random(1));
}

#[test]
fn more_is_found_than_a_workgroup_collects() {
    let graph = Csr::of(2500, &(1..2500).map(|i| (0, i)).collect::<Vec<_>>());
    let program = frontier::program(lanes(16));
    let case = frontier_case(&program, &graph, &[0]);
    case.cpu();
    small(&case);
    // Seeds are collected without a visit between.
    let all: Vec<u32> = (0..2500).collect();
    let case = frontier_case(&program, &graph, &all);
    case.cpu();
    small(&case);
}

#[test]
fn fewer_results_than_nodes() {
    // A chain of which only the first nodes have room.
    let graph = Csr::of(50, &(1..50).map(|i| (i - 1, i)).collect::<Vec<_>>());
    let program = frontier::program(lanes(4));
    let case = Case::new(&program).input(&graph.offsets).input(&graph.targets).input(&[3u32, 40]);
    let levels = [UNREACHED, UNREACHED, UNREACHED, 0, 1, 2, 3];
    case.len("levels", 7).len("frontier_queue", 14).expect(&levels).cpu().reference();
    let program = components::program(lanes(4));
    let case = Case::new(&program).input(&graph.offsets).input(&graph.targets).len("labels", 7);
    case.expect(&[0u32; 7]).cpu().reference();
}

#[test]
fn queues_that_are_too_short() {
    let graph = Csr::of(10, &[(0, 1)]);
    let program = frontier::program(lanes(4));
    let case = Case::new(&program).input(&graph.offsets).input(&graph.targets).input(&[0u32]);
    let case = case.len("levels", 10).len("frontier_queue", 19);
    let says_so =
        |result: Result<Vec<Vec<u8>>, String>| result.unwrap_err().contains("the queue is too short");
    assert!(says_so(case.cpu_outputs([2, 1, 1], 2, Route::Auto)));
    assert!(says_so(case.reference_outputs([2, 1, 1], Schedule::InOrder)));
}
