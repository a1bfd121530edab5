//! y = a * x + y: bound by memory.

use super::{Case, Work, count, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

pub(super) fn case(scale: f64) -> Case {
    of(scaled(64 << 20, scale, 256))
}

/// With this many elements.
pub(super) fn of(n: usize) -> Case {
    let mut rng = SplitMix64::new(1);
    let mut floats = || -> Data { Data::F32((0..n).map(|_| (rng.next_u64() >> 40) as f32).collect()) };
    Case {
        name: "saxpy",
        size: format!("{} f32", count(n)),
        text: text!("saxpy"),
        buffers: vec![
            Buffer::input(Data::F32(vec![0.1])),
            Buffer::input(floats()),
            Buffer::changed(floats()),
        ],
        workgroup_size: [256, 1],
        workgroups: [n / 256, 1],
        natural,
        by_hand: None,
        work: Work { bytes: n as u64 * 12, operations: n as u64 * 2 },
    }
}

fn natural(data: &mut [Data]) {
    let [Data::F32(a), Data::F32(x), Data::F32(y)] = data else { unreachable!() };
    let a = a[0];
    y.par_chunks_mut(1 << 14).zip(x.par_chunks(1 << 14)).for_each(|(y, x)| {
        for (y, x) in y.iter_mut().zip(x) {
            *y += a * x;
        }
    });
}
