//! Sums by halving: what a workgroup barrier costs against a plain sum.

use super::{Case, Work, count, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

pub(super) fn case(scale: f64) -> Case {
    let n = scaled(16 << 20, scale, 256);
    let mut rng = SplitMix64::new(7);
    Case {
        name: "reduce",
        size: format!("{} u32", count(n)),
        text: text!("reduce"),
        buffers: vec![
            Buffer::input(Data::U32((0..n).map(|_| rng.next_u64() as u32).collect())),
            Buffer::output(Data::U32(vec![0; n / 256])),
        ],
        workgroup_size: [256, 1],
        workgroups: [n / 256, 1],
        natural,
        by_hand: None,
        work: Work { bytes: n as u64 * 4, operations: n as u64 },
    }
}

fn natural(data: &mut [Data]) {
    let [Data::U32(data), Data::U32(sums)] = data else { unreachable!() };
    sums.par_iter_mut().zip(data.par_chunks(256)).for_each(|(sum, chunk)| {
        *sum = chunk.iter().fold(0, |sum: u32, x| sum.wrapping_add(*x));
    });
}
