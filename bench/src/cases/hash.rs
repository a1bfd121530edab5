//! 64 rounds of an integer hash: bound by arithmetic.

use super::{Case, Work, count, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

pub(super) fn case(scale: f64) -> Case {
    let n = scaled(4 << 20, scale, 64);
    let mut rng = SplitMix64::new(2);
    Case {
        name: "hash",
        size: format!("{} u32", count(n)),
        text: text!("hash"),
        buffers: vec![
            Buffer::input(Data::U32((0..n).map(|_| rng.next_u64() as u32).collect())),
            Buffer::output(Data::U32(vec![0; n])),
        ],
        workgroup_size: [64, 1],
        workgroups: [n / 64, 1],
        natural,
        by_hand: Some(super::avx2::hash),
        work: Work { bytes: n as u64 * 8, operations: n as u64 * 64 * 9 },
    }
}

fn mix(x: u32) -> u32 {
    let a = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    let b = (a ^ (a >> 15)).wrapping_mul(0x846c_a68b);
    b ^ (b >> 16)
}

fn natural(data: &mut [Data]) {
    let [Data::U32(seeds), Data::U32(hashes)] = data else { unreachable!() };
    hashes.par_iter_mut().zip(seeds).for_each(|(hash, seed)| {
        *hash = (0..64).fold(*seed, |hash, k| mix(hash.wrapping_add(k)));
    });
}
