//! The graph of the graph cases: R-MAT with the parameters of Graph500 and shuffled labels.

use super::{count, scaled};
use std::sync::atomic::AtomicU32;
use vyre_foundation::rng::SplitMix64;

/// The level of a node that no edge has led to yet.
pub(super) const UNREACHED: u32 = u32::MAX;

/// A directed graph: the edges of node `v` are `targets` from `offsets[v]` to `offsets[v + 1]`.
pub(super) struct Graph {
    pub(super) offsets: Vec<u32>,
    pub(super) targets: Vec<u32>,
}

impl Graph {
    /// The graph of a scale: 1 M nodes and 8 M edges at 1.
    pub(super) fn scaled(scale: f64) -> Graph {
        Graph::rmat(scaled(1 << 20, scale, 64).ilog2(), 8)
    }

    /// 2^bits nodes with so many edges each on average, few of which have most of the edges.
    fn rmat(bits: u32, degree: usize) -> Graph {
        let nodes = 1_usize << bits;
        let mut rng = SplitMix64::new(3);
        let mut label: Vec<u32> = (0..nodes as u32).collect();
        for i in (1..nodes).rev() {
            label.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let edges: Vec<(u32, u32)> = (0..nodes * degree)
            .map(|_| {
                let (mut from, mut to) = (0_usize, 0_usize);
                for _ in 0..bits {
                    let (down, right) = match rng.below(100) {
                        0..57 => (0, 0),
                        57..76 => (0, 1),
                        76..95 => (1, 0),
                        _ => (1, 1),
                    };
                    (from, to) = (from * 2 + down, to * 2 + right);
                }
                (label[from], label[to])
            })
            .collect();

        let mut offsets = vec![0_u32; nodes + 1];
        for (from, _) in &edges {
            offsets[*from as usize + 1] += 1;
        }
        for v in 0..nodes {
            offsets[v + 1] += offsets[v];
        }
        let mut free = offsets.clone();
        let mut targets = vec![0; edges.len()];
        for (from, to) in edges {
            let place = &mut free[from as usize];
            targets[*place as usize] = to;
            *place += 1;
        }
        Graph { offsets, targets }
    }

    pub(super) fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Its size, for people.
    pub(super) fn size(&self) -> String {
        format!("{} nodes, {} edges", count(self.nodes()), count(self.targets.len()))
    }

    pub(super) fn degree(&self, v: usize) -> u32 {
        self.offsets[v + 1] - self.offsets[v]
    }

    /// Where searches begin: the node with the most edges.
    pub(super) fn source(&self) -> usize {
        (0..self.nodes()).max_by_key(|v| self.degree(*v)).unwrap_or(0)
    }
}

/// The same numbers, shared by threads: what the standard library will call `AtomicU32::from_mut_slice`.
pub(super) fn as_atomic(numbers: &mut [u32]) -> &[AtomicU32] {
    const { assert!(align_of::<AtomicU32>() == align_of::<u32>()) };
    let numbers = std::ptr::from_mut(numbers) as *const [AtomicU32];
    // SAFETY: both types have the same size, alignment and bit patterns, and the exclusive reference is given up for
    // as long as the shared one lives.
    unsafe { &*numbers }
}
