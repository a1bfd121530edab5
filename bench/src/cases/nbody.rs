//! One step of gravity, every pair: bound by square roots and divisions.

use super::{Case, Work, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

pub(super) fn case(scale: f64) -> Case {
    // The work grows with the square of the bodies.
    let n = scaled(8192, scale.sqrt(), 64);
    let mut rng = SplitMix64::new(5);
    let mut unit = || (rng.next_u64() >> 40) as f32 / (1 << 24) as f32;
    Case {
        name: "nbody",
        size: format!("{n} bodies"),
        text: text!("nbody"),
        buffers: vec![
            Buffer::input(Data::F32(vec![0.01, 0.0625])),
            Buffer::input(Data::F32((0..n * 4).map(|_| unit()).collect())),
            Buffer::changed(Data::F32((0..n * 3).map(|_| unit() - 0.5).collect())),
            Buffer::output(Data::F32(vec![0.0; n * 4])),
        ],
        workgroup_size: [64, 1],
        workgroups: [n / 64, 1],
        natural,
        by_hand: Some(super::avx2::nbody),
        work: Work { bytes: n as u64 * 44, operations: (n as u64).pow(2) * 19 },
    }
}

fn natural(data: &mut [Data]) {
    let [Data::F32(settings), Data::F32(bodies), Data::F32(velocity), Data::F32(moved)] = data else {
        unreachable!()
    };
    let (dt, softening) = (settings[0], settings[1]);
    let (bodies, _) = bodies.as_chunks::<4>();
    let (velocity, _) = velocity.as_chunks_mut::<3>();
    let (moved, _) = moved.as_chunks_mut::<4>();
    bodies.par_iter().zip(velocity).zip(moved).for_each(|((&[x, y, z, mass], velocity), moved)| {
        let (mut ax, mut ay, mut az) = (0.0, 0.0, 0.0);
        for &[other_x, other_y, other_z, other_mass] in bodies {
            let (dx, dy, dz) = (other_x - x, other_y - y, other_z - z);
            let inverse = 1.0 / (dx * dx + dy * dy + dz * dz + softening).sqrt();
            let strength = other_mass * (inverse * inverse * inverse);
            ax += strength * dx;
            ay += strength * dy;
            az += strength * dz;
        }
        let [vx, vy, vz] = *velocity;
        let [vx, vy, vz] = [vx + ax * dt, vy + ay * dt, vz + az * dt];
        *velocity = [vx, vy, vz];
        *moved = [x + vx * dt, y + vy * dt, z + vz * dt, mass];
    });
}
