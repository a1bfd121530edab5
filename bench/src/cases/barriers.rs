//! Neighbours exchange values through 32 workgroup barriers.

use super::{Case, Work, count, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

/// The values that are exchanged among each other.
const GROUP: usize = 64;

pub(super) fn case(scale: f64) -> Case {
    let n = scaled(1 << 20, scale, GROUP);
    let mut rng = SplitMix64::new(9);
    Case {
        name: "barriers",
        size: format!("{} u32", count(n)),
        text: text!("barriers"),
        buffers: vec![
            Buffer::input(Data::U32((0..n).map(|_| rng.next_u64() as u32).collect())),
            Buffer::output(Data::U32(vec![0; n])),
        ],
        workgroup_size: [GROUP, 1],
        workgroups: [n / GROUP, 1],
        natural,
        by_hand: None,
        work: Work { bytes: n as u64 * 8, operations: n as u64 * 32 },
    }
}

fn natural(data: &mut [Data]) {
    let [Data::U32(source), Data::U32(result)] = data else { unreachable!() };
    let (source, _) = source.as_chunks::<GROUP>();
    let (result, _) = result.as_chunks_mut::<GROUP>();
    result.par_iter_mut().zip(source).for_each(|(result, source)| {
        let mut values = *source;
        for _ in 0..16 {
            let old = values;
            for (i, value) in values.iter_mut().enumerate() {
                *value = value.wrapping_mul(3).wrapping_add(old[(i + 1) % GROUP]);
            }
        }
        *result = values;
    });
}
