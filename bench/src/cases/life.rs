//! A generation of the game of life: nine loads side by side for each cell.

use super::{Case, Work, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

/// Cells in a row. Around the field stands a border of dead ones.
const WIDTH: usize = 4096;
const LINE: usize = WIDTH + 2;

pub(super) fn case(scale: f64) -> Case {
    let rows = scaled(4096, scale, 1);
    let mut rng = SplitMix64::new(10);
    let mut cells = vec![0; LINE * (rows + 2)];
    for row in 1..=rows {
        cells[row * LINE + 1..][..WIDTH].fill_with(|| u32::from(rng.chance(1, 3)));
    }
    Case {
        name: "life",
        size: format!("{WIDTH} x {rows}"),
        text: text!("life"),
        buffers: vec![Buffer::output(Data::U32(vec![0; cells.len()])), Buffer::input(Data::U32(cells))],
        workgroup_size: [64, 1],
        workgroups: [WIDTH / 64, rows],
        natural,
        by_hand: None,
        work: Work { bytes: (rows * WIDTH) as u64 * 8, operations: (rows * WIDTH) as u64 * 12 },
    }
}

fn natural(data: &mut [Data]) {
    let [Data::U32(next), Data::U32(cells)] = data else { unreachable!() };
    let rows = cells.len() / LINE;
    next.par_chunks_mut(LINE).enumerate().filter(|(row, _)| (1..rows - 1).contains(row)).for_each(
        |(row, next)| {
            let [above, line, below] = [row - 1, row, row + 1].map(|row| &cells[row * LINE..][..LINE]);
            for x in 1..=WIDTH {
                let around = above[x - 1]
                    + above[x]
                    + above[x + 1]
                    + line[x - 1]
                    + line[x + 1]
                    + below[x - 1]
                    + below[x]
                    + below[x + 1];
                next[x] = u32::from((around == 3) | ((around == 2) & (line[x] == 1)));
            }
        },
    );
}
