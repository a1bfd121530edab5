//! What a grid barrier costs where there is hardly any work: neighbours exchange values, one barrier per step.

use super::{Case, Work, count, grid_text, scaled};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

/// How many values are exchanged: 32 workgroups of 64.
const CELLS: usize = 2048;

/// How many barriers a run has at a scale.
pub(crate) fn barriers(scale: f64) -> usize {
    scaled(100_000, scale, 2)
}

pub(super) fn case(scale: f64) -> Case {
    let barriers = barriers(scale);
    let mut rng = SplitMix64::new(10);
    Case {
        name: "gridsync",
        size: format!("{barriers} barriers, {} u32", count(CELLS)),
        text: grid_text!("gridsync"),
        buffers: vec![
            Buffer::input(Data::U32(vec![barriers as u32])),
            Buffer::changed(Data::U32((0..2 * CELLS).map(|_| rng.next_u64() as u32).collect())),
        ],
        workgroup_size: [64, 1],
        workgroups: [CELLS / 64, 1],
        natural,
        by_hand: None,
        work: Work::default(),
    }
}

fn natural(data: &mut [Data]) {
    let [Data::U32(steps), Data::U32(cells)] = data else { unreachable!() };
    let (mut from, mut to) = cells.split_at_mut(CELLS);
    for _ in 0..steps[0] {
        let old = &*from;
        // As few parts as there are threads: with more, rayon takes longer.
        to.par_iter_mut().with_min_len(CELLS / rayon::current_num_threads()).enumerate().for_each(
            |(i, value)| {
                *value = old[i].wrapping_mul(3).wrapping_add(old[(i + 1) % CELLS]);
            },
        );
        (from, to) = (to, from);
    }
}
