//! How many workgroups a dispatch has. One function decides it for every backend and every route.

use crate::{Layout, Program};
use thiserror::Error;

/// The workgroups of a dispatch, with everything that is derived from them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grid {
    workgroups: [u32; 3],
    workgroup_size: [u32; 3],
}

impl Grid {
    /// One workgroup of one invocation.
    pub const ONE: Grid = Grid { workgroups: [1; 3], workgroup_size: [1; 3] };

    /// The number of workgroups on each axis.
    pub const fn workgroups(self) -> [u32; 3] {
        self.workgroups
    }

    /// The invocations of a workgroup on each axis.
    pub const fn workgroup_size(self) -> [u32; 3] {
        self.workgroup_size
    }

    /// How many workgroups there are in all. Three axes of 32 bits may need 96.
    pub fn workgroup_count(self) -> u128 {
        self.workgroups.iter().map(|n| u128::from(*n)).product()
    }

    /// The position of a workgroup, counted with x fastest.
    pub fn workgroup_id(self, linear: u64) -> [u32; 3] {
        unravel(linear, self.workgroups)
    }

    /// The position of an invocation in its workgroup, counted with x fastest.
    pub fn local_id(self, linear: u64) -> [u32; 3] {
        unravel(linear, self.workgroup_size)
    }
}

fn unravel(linear: u64, size: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = size.map(|n| u64::from(n.max(1)));
    [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32]
}

/// Why there is no grid.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GridError {
    /// Only a program of one axis gets a grid by itself.
    #[error(
        "the workgroup size names {axes} axes, so the number of workgroups must be given. help: say how many, for example `--grid 4,4`"
    )]
    CountsNeeded {
        /// How many axes the workgroup size names.
        axes: usize,
    },
    /// The ids would not fit `u32`.
    #[error(
        "{workgroups} workgroups of {size} invocations on axis {axis} exceed the 32-bit range of ids. help: use fewer workgroups, or let each invocation do more"
    )]
    TooLarge {
        /// The axis.
        axis: &'static str,
        /// The workgroups on it.
        workgroups: u32,
        /// The invocations of a workgroup on it.
        size: u32,
    },
}

impl GridError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            GridError::CountsNeeded { .. } => "G001",
            GridError::TooLarge { .. } => "G002",
        }
    }
}

/// The grid of a dispatch: the counts that the caller gives, or those that the returned buffers ask for.
///
/// Without counts a program of one axis gets `ceil(E / workgroup_size)` workgroups, where `E` is the largest
/// element count among the buffers that are returned, or 1 when nothing is returned.
pub fn resolve(program: &Program, layout: &Layout, counts: Option<[u32; 3]>) -> Result<Grid, GridError> {
    let size = program.workgroup_size();
    let workgroups = match counts {
        Some(counts) => counts,
        None if size.axes() == 1 => {
            let returned = program.buffers().iter().zip(layout.counts());
            let largest = returned.filter(|(b, _)| b.produces_output()).map(|(_, n)| *n).max();
            [largest.unwrap_or(1).div_ceil(size.size()[0].max(1)), 1, 1]
        }
        None => return Err(GridError::CountsNeeded { axes: size.axes() }),
    };
    for (i, axis) in ["x", "y", "z"].into_iter().enumerate() {
        let (workgroups, size) = (workgroups[i], size.size()[i]);
        // The last id is one less than the product, but a count of ids must fit too.
        if u64::from(workgroups) * u64::from(size) > u64::from(u32::MAX) {
            return Err(GridError::TooLarge { axis, workgroups, size });
        }
    }
    Ok(Grid { workgroups, workgroup_size: size.size() })
}
