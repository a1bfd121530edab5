//! One level of breadth-first search: bound by the latency of memory.
//!
//! The level that is measured is the one whose frontier has the most edges.

use super::graph::{Graph, UNREACHED, as_atomic};
use super::{Case, Work, count, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn case(scale: f64) -> Case {
    let graph = Graph::scaled(scale);
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
        workgroup_size: [64, 1],
        workgroups: [nodes / 64, 1],
        natural,
        by_hand: None,
        work: Work { bytes: (nodes as u64 + u64::from(edges)) * 8, operations: u64::from(edges) * 3 },
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

impl Graph {
    fn frontier(&self, level: &[u32], current: u32) -> impl Iterator<Item = usize> {
        level.iter().enumerate().filter(move |(_, level)| **level == current).map(|(v, _)| v)
    }

    /// The levels before the step with the most edges is made, and that step's level. The search begins at the node
    /// with the most edges.
    fn widest_level(&self) -> (Vec<u32>, u32) {
        let source = self.source();
        let mut level = vec![UNREACHED; self.nodes()];
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
