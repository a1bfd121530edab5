//! A whole breadth-first search, level by level: a sweep over the nodes and a grid barrier for each.
//!
//! The graph has few levels, so that a sweep costs less than a queue that all threads write to.

use super::graph::{Graph, UNREACHED, as_atomic};
use super::{Case, Work, grid_text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn case(scale: f64) -> Case {
    let graph = Graph::scaled(scale);
    let nodes = graph.nodes();
    let mut level = vec![UNREACHED; nodes];
    level[graph.source()] = 0;
    Case {
        name: "bfs_levels",
        size: graph.size(),
        text: grid_text!("bfs_levels"),
        buffers: vec![
            Buffer::input(Data::U32(graph.offsets)),
            Buffer::input(Data::U32(graph.targets)),
            Buffer::changed(Data::U32(level)),
            Buffer::scratch(Data::U32(vec![0])),
        ],
        workgroup_size: [64, 1],
        workgroups: [nodes / 64, 1],
        natural,
        by_hand: None,
        work: Work::default(),
    }
}

fn natural(data: &mut [Data]) {
    let [Data::U32(offsets), Data::U32(targets), Data::U32(level), _] = data else { unreachable!() };
    let level = as_atomic(level);
    for current in 0.. {
        let visit = |(v, range): (usize, &[u32])| {
            let mut found = false;
            if level[v].load(Relaxed) == current {
                for next in &targets[range[0] as usize..range[1] as usize] {
                    let next = &level[*next as usize];
                    if next.load(Relaxed) == UNREACHED {
                        // Another thread may have been faster, with the same value.
                        next.store(current + 1, Relaxed);
                        found = true;
                    }
                }
            }
            found
        };
        let found = offsets.par_windows(2).enumerate().map(visit).reduce(|| false, |a, b| a | b);
        if !found {
            break;
        }
    }
}
