//! Graphs to search.

use vyre_foundation::rng::SplitMix64;
use vyre_primitives::graph;

/// A graph as compressed sparse rows.
#[derive(Clone, Debug)]
pub(crate) struct Csr {
    pub(crate) offsets: Vec<u32>,
    pub(crate) targets: Vec<u32>,
}

impl Csr {
    pub(crate) fn of(nodes: u32, edges: &[(u32, u32)]) -> Csr {
        let (offsets, targets) = graph::from_edges(nodes, edges);
        Csr { offsets, targets }
    }

    pub(crate) fn nodes(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    pub(crate) fn reversed(&self) -> Csr {
        let (offsets, targets) = graph::reversed(&self.offsets, &self.targets);
        Csr { offsets, targets }
    }
}

pub(crate) fn both_ways(edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    edges.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect()
}

pub(crate) fn random(nodes: u32, edges: u32, seed: u64) -> Vec<(u32, u32)> {
    let mut rng = SplitMix64::new(seed);
    let mut node = || rng.below(u64::from(nodes)) as u32;
    (0..edges).map(|_| (node(), node())).collect()
}

/// Graphs of about `n` nodes, at least 4, of every shape that has gone wrong somewhere.
pub(crate) fn shapes(n: u32) -> Vec<(&'static str, Csr)> {
    let chain: Vec<(u32, u32)> = (1..n).map(|i| (i - 1, i)).collect();
    let back: Vec<(u32, u32)> = chain.iter().map(|(a, b)| (*b, *a)).collect();
    let star: Vec<(u32, u32)> = (1..n).map(|i| (0, i)).collect();
    let into: Vec<(u32, u32)> = (1..n).map(|i| (i, 0)).collect();
    let ring: Vec<(u32, u32)> = (0..n).map(|i| (i, (i + 1) % n)).collect();
    let loops: Vec<(u32, u32)> = (0..n).map(|i| (i, i)).chain(chain.iter().copied()).collect();
    let twice: Vec<(u32, u32)> = both_ways(&chain).into_iter().flat_map(|edge| [edge, edge, edge]).collect();
    let parts: Vec<(u32, u32)> = ring.iter().copied().filter(|(a, b)| a % 3 != 0 && b % 3 != 0).collect();
    let wrong: Vec<(u32, u32)> = chain.iter().copied().chain([(0, n), (1, u32::MAX), (2, n + 5)]).collect();
    let dense = random(n, n * 8, 41);
    // Something dense with a long tail.
    let half = n / 2;
    let mut tail = both_ways(&random(half, half * 8, 42));
    tail.extend((half..n).map(|i| (i - 1, i)));
    vec![
        ("nothing", Csr::of(0, &[])),
        ("one node", Csr::of(1, &[])),
        ("one loop", Csr::of(1, &[(0, 0)])),
        ("no edges", Csr::of(n, &[])),
        ("chain", Csr::of(n, &chain)),
        ("chain backwards", Csr::of(n, &back)),
        ("star", Csr::of(n, &star)),
        ("star inwards", Csr::of(n, &into)),
        ("ring", Csr::of(n, &ring)),
        ("loops", Csr::of(n, &loops)),
        ("duplicates", Csr::of(n, &twice)),
        ("parts", Csr::of(n, &parts)),
        ("no such targets", Csr::of(n, &wrong)),
        ("sparse", Csr::of(n, &random(n, n, 43))),
        ("sparse both ways", Csr::of(n, &both_ways(&random(n, n / 2, 44)))),
        ("dense", Csr::of(n, &dense)),
        ("dense with a tail", Csr::of(n, &tail)),
    ]
}

/// Sources for a graph of `n` nodes: none, one, several, some twice, some that are no nodes.
pub(crate) fn sources(n: u32) -> Vec<Vec<u32>> {
    let last = n.saturating_sub(1);
    vec![vec![], vec![0], vec![last], vec![last / 2, 0, last / 2, n, u32::MAX, last / 3]]
}
