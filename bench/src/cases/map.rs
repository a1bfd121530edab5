//! A map over a buffer that fits the caches: what a launch costs beside its work.

use super::{Case, Work, count, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;

pub(super) fn case(scale: f64) -> Case {
    of("map1m", scaled(1 << 20, scale, 64))
}

/// With this many elements.
pub(super) fn of(name: &'static str, n: usize) -> Case {
    Case {
        name,
        size: format!("{} u32", count(n)),
        text: text!("map"),
        buffers: vec![
            Buffer::input(Data::U32((0..n as u32).collect())),
            Buffer::output(Data::U32(vec![0; n])),
        ],
        workgroup_size: [64, 1],
        workgroups: [n / 64, 1],
        natural,
        by_hand: None,
        work: Work { bytes: n as u64 * 8, operations: n as u64 * 2 },
    }
}

fn natural(data: &mut [Data]) {
    let [Data::U32(source), Data::U32(result)] = data else { unreachable!() };
    result.par_chunks_mut(1 << 14).zip(source.par_chunks(1 << 14)).for_each(|(result, source)| {
        for (result, source) in result.iter_mut().zip(source) {
            *result = source.wrapping_mul(3).wrapping_add(1);
        }
    });
}
