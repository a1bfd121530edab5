//! Points of the plane that are squared until they leave: bound by arithmetic, with loops of all lengths.

use super::{Case, Work, scaled, sum_of, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;

const WIDTH: usize = 1024;
const STEPS: u32 = 256;

pub(super) fn case(scale: f64) -> Case {
    let n = scaled(WIDTH * 1024, scale, WIDTH);
    Case {
        name: "mandelbrot",
        size: format!("{WIDTH} x {}", n / WIDTH),
        text: text!("mandelbrot"),
        buffers: vec![Buffer::output(Data::U32(vec![0; n]))],
        workgroup_size: [64, 1],
        workgroups: [n / 64, 1],
        natural,
        by_hand: None,
        work: Work { bytes: n as u64 * 4, operations: sum_of(natural, n) * 10 },
    }
}

fn steps(x: f32, y: f32) -> u32 {
    let (mut zx, mut zy, mut taken) = (0.0_f32, 0.0_f32, 0);
    while taken < STEPS {
        let (xx, yy) = (zx * zx, zy * zy);
        if xx + yy > 4.0 {
            break;
        }
        zy = 2.0 * zx * zy + y;
        zx = xx - yy + x;
        taken += 1;
    }
    taken
}

fn natural(data: &mut [Data]) {
    let [Data::U32(taken)] = data else { unreachable!() };
    taken.par_chunks_mut(WIDTH).enumerate().for_each(|(row, line)| {
        let y = row as f32 * (2.5 / 1024.0) - 1.25;
        for (column, taken) in line.iter_mut().enumerate() {
            *taken = steps(column as f32 * (3.0 / 1024.0) - 2.25, y);
        }
    });
}
