//! A histogram: bound by atomics on workgroup memory.

use super::{Case, Work, count, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

const BINS: usize = 256;
/// How many keys a workgroup counts.
const KEYS: usize = 16384;

pub(super) fn case(scale: f64) -> Case {
    let n = scaled(16 << 20, scale, KEYS);
    let mut rng = SplitMix64::new(8);
    Case {
        name: "histogram",
        size: format!("{} u32", count(n)),
        text: text!("histogram"),
        buffers: vec![
            Buffer::input(Data::U32((0..n).map(|_| rng.next_u64() as u32).collect())),
            Buffer::changed(Data::U32(vec![0; BINS])),
        ],
        workgroup_size: [256, 1],
        workgroups: [n / KEYS, 1],
        natural,
        by_hand: None,
        work: Work { bytes: n as u64 * 4, operations: n as u64 * 2 },
    }
}

fn natural(data: &mut [Data]) {
    let [Data::U32(keys), Data::U32(bins)] = data else { unreachable!() };
    let counts = keys.par_chunks(KEYS).fold(
        || [0_u32; BINS],
        |mut counts, keys| {
            keys.iter().for_each(|key| counts[(key >> 24) as usize] += 1);
            counts
        },
    );
    let add = |mut a: [u32; BINS], b: [u32; BINS]| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let counts = counts.reduce(|| [0; BINS], add);
    bins.iter_mut().zip(counts).for_each(|(bin, count)| *bin += count);
}
