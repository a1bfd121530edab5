//! A product of matrices by tiles: bound by loads from workgroup memory.

use super::{Case, Work, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

/// The rows and columns of the second matrix.
const SIZE: usize = 512;
const TILE: usize = 16;

pub(super) fn case(scale: f64) -> Case {
    let rows = scaled(SIZE, scale, TILE);
    let mut rng = SplitMix64::new(9);
    let mut unit = || (rng.next_u64() >> 40) as f32 / (1 << 24) as f32 - 0.5;
    Case {
        name: "matmul",
        size: format!("{rows} x {SIZE} x {SIZE}"),
        text: text!("matmul"),
        buffers: vec![
            Buffer::input(Data::F32((0..rows * SIZE).map(|_| unit()).collect())),
            Buffer::input(Data::F32((0..SIZE * SIZE).map(|_| unit()).collect())),
            Buffer::output(Data::F32(vec![0.0; rows * SIZE])),
        ],
        workgroup_size: [TILE, TILE],
        workgroups: [SIZE / TILE, rows / TILE],
        natural,
        by_hand: None,
        work: Work {
            bytes: (2 * rows + SIZE) as u64 * SIZE as u64 * 4,
            operations: (rows * SIZE * SIZE) as u64 * 2,
        },
    }
}

fn natural(data: &mut [Data]) {
    let [Data::F32(a), Data::F32(b), Data::F32(product)] = data else { unreachable!() };
    product.par_chunks_mut(SIZE).zip(a.par_chunks(SIZE)).for_each(|(line, a)| {
        line.fill(0.0);
        for (a, b) in a.iter().zip(b.chunks_exact(SIZE)) {
            for (sum, b) in line.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
    });
}
