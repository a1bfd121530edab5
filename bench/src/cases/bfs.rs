//! One level of breadth-first search: bound by the latency of memory.
//!
//! The graph is R-MAT with the parameters of Graph500 and shuffled labels. The level that is measured is the one
//! whose frontier has the most edges.

use super::{Case, count, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vyre_foundation::rng::SplitMix64;

/// The level of a node that no edge has led to yet.
const UNREACHED: u32 = u32::MAX;

pub(super) fn case(scale: f64) -> Case {
    let bits = scaled(1 << 20, scale, 64).ilog2();
    let graph = Graph::rmat(bits, 8);
    let (level, current) = graph.widest_level();
    let nodes = level.len();
    let edges: u32 = graph.frontier(&level, current).map(|v| graph.degree(v)).sum();
    Case {
        name: "bfs",
        size: format!("{} nodes, {} edges seen", count(nodes), count(edges as usize)),
        text: text!("bfs"),
        buffers: vec![
            Buffer::input(Data::U32(vec![current])),
            Buffer::input(Data::U32(graph.offsets)),
            Buffer::input(Data::U32(graph.targets)),
            Buffer::changed(Data::U32(level)),
        ],
        workgroup_size: 64,
        workgroups: nodes / 64,
        natural,
    }
}

fn natural(data: &mut [Data]) {
    let [Data::U32(current), Data::U32(offsets), Data::U32(targets), Data::U32(level)] = data else {
        unreachable!()
    };
    let current = current[0];
    let level = as_atomic(level);
    level.par_iter().zip(offsets.par_windows(2)).for_each(|(mine, range)| {
        if mine.load(Relaxed) == current {
            for next in &targets[range[0] as usize..range[1] as usize] {
                let next = &level[*next as usize];
                if next.load(Relaxed) == UNREACHED {
                    // Another thread may have been faster, with the same value.
                    let _ = next.compare_exchange(UNREACHED, current + 1, Relaxed, Relaxed);
                }
            }
        }
    });
}

/// The same numbers, shared by threads: what the standard library will call `AtomicU32::from_mut_slice`.
fn as_atomic(numbers: &mut [u32]) -> &[AtomicU32] {
    const { assert!(align_of::<AtomicU32>() == align_of::<u32>()) };
    let numbers = std::ptr::from_mut(numbers) as *const [AtomicU32];
    // SAFETY: both types have the same size, alignment and bit patterns, and the exclusive reference is given up for
    // as long as the shared one lives.
    unsafe { &*numbers }
}

/// A directed graph: the edges of node `v` are `targets` from `offsets[v]` to `offsets[v + 1]`.
struct Graph {
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
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

    fn degree(&self, v: usize) -> u32 {
        self.offsets[v + 1] - self.offsets[v]
    }

    fn frontier(&self, level: &[u32], current: u32) -> impl Iterator<Item = usize> {
        level.iter().enumerate().filter(move |(_, level)| **level == current).map(|(v, _)| v)
    }

    /// The levels before the step with the most edges is made, and that step's level. The search begins at the node
    /// with the most edges.
    fn widest_level(&self) -> (Vec<u32>, u32) {
        let nodes = self.offsets.len() - 1;
        let source = (0..nodes).max_by_key(|v| self.degree(*v)).unwrap_or(0);
        let mut level = vec![UNREACHED; nodes];
        level[source] = 0;
        let mut widest = (self.degree(source), level.clone(), 0);
        let mut frontier = vec![source];
        for current in 0.. {
            let mut next = Vec::new();
            for v in frontier {
                for to in &self.targets[self.offsets[v] as usize..self.offsets[v + 1] as usize] {
                    if level[*to as usize] == UNREACHED {
                        level[*to as usize] = current + 1;
                        next.push(*to as usize);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            let edges = next.iter().map(|v| self.degree(*v)).sum();
            if edges > widest.0 {
                widest = (edges, level.clone(), current + 1);
            }
            frontier = next;
        }
        (widest.1, widest.2)
    }
}
