//! Steps to reach 1: a loop of another length for every element.

use super::{Case, Work, scaled, sum_of, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;

pub(super) fn case(scale: f64) -> Case {
    let n = scaled(2_000_000, scale, 64);
    Case {
        name: "collatz",
        size: format!("1..={n}"),
        text: text!("collatz"),
        buffers: vec![Buffer::output(Data::U32(vec![0; n]))],
        workgroup_size: [64, 1],
        workgroups: [n / 64, 1],
        natural,
        by_hand: None,
        work: Work { bytes: n as u64 * 4, operations: sum_of(natural, n) * 13 },
    }
}

fn steps_from(mut n: u64) -> u32 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn natural(data: &mut [Data]) {
    let [Data::U32(steps)] = data else { unreachable!() };
    steps.par_iter_mut().enumerate().for_each(|(i, steps)| *steps = steps_from(i as u64 + 1));
}
