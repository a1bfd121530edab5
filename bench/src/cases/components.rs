//! Connected components: the smallest label spreads along the edges, in both directions, until a sweep over the nodes
//! changes nothing. A grid barrier ends each sweep.

use super::graph::{Graph, as_atomic};
use super::{Case, Work, grid_text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn case(scale: f64) -> Case {
    let graph = Graph::scaled(scale);
    let nodes = graph.nodes();
    Case {
        name: "components",
        size: graph.size(),
        text: grid_text!("components"),
        buffers: vec![
            Buffer::input(Data::U32(graph.offsets)),
            Buffer::input(Data::U32(graph.targets)),
            Buffer::changed(Data::U32((0..nodes as u32).collect())),
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
    let [Data::U32(offsets), Data::U32(targets), Data::U32(label), _] = data else { unreachable!() };
    let label = as_atomic(label);
    let visit = |(v, range): (usize, &[u32])| {
        let before = label[v].load(Relaxed);
        let (mut mine, mut changed) = (before, false);
        for other in &targets[range[0] as usize..range[1] as usize] {
            let other = &label[*other as usize];
            let theirs = other.load(Relaxed);
            if mine < theirs {
                other.fetch_min(mine, Relaxed);
                changed = true;
            } else {
                mine = theirs;
            }
        }
        if mine < before {
            label[v].fetch_min(mine, Relaxed);
            changed = true;
        }
        changed
    };
    while offsets.par_windows(2).enumerate().map(visit).reduce(|| false, |a, b| a | b) {}
}
