//! In which order rows are gone over: level by level, in each by their numbers.
//!
//! A row's level is more than those of all that it is made of. What control decides makes operands other rows, which may be
//! of a higher level; then the levels of what is made of them rise. They never fall: an order that was right stays right.

use crate::row::Row;
use vyre_lower::{Edit, Kernel};

/// The level of each row.
pub(crate) struct Levels {
    levels: Vec<u32>,
}

/// Rows by level.
pub(crate) struct Order {
    rows: Vec<u32>,
    /// Where each level begins, and where the last one ends.
    begins: Vec<usize>,
}

impl Levels {
    /// Those of a kernel.
    pub(crate) fn of(kernel: &Kernel) -> Levels {
        Levels { levels: kernel.values.level.clone() }
    }

    /// Raises levels as far as that is needed.
    pub(crate) fn raise(&mut self, edit: &Edit) {
        // What was added are constants.
        self.levels.resize(edit.rows.len(), 0);
        let mut is_right = vec![false; edit.rows.len()];
        let mut pending = Vec::new();
        for number in 0..edit.rows.len() as u32 {
            if edit.forward[number as usize] != number {
                continue;
            }
            // Operands first. Mostly they have smaller numbers.
            pending.push(number);
            while let Some(&top) = pending.last() {
                let before = pending.len();
                let row = Row::from(edit.rows[top as usize]);
                let mut least = 0;
                for operand in row.operands() {
                    let operand = edit.resolve(*operand);
                    least = least.max(self.levels[operand as usize] + 1);
                    if !is_right[operand as usize] {
                        pending.push(operand);
                    }
                }
                if pending.len() > before {
                    continue;
                }
                pending.pop();
                is_right[top as usize] = true;
                let level = &mut self.levels[top as usize];
                *level = least.max(*level);
            }
        }
    }

    /// The rows that nothing else stands for, in order.
    pub(crate) fn order(&self, edit: &Edit) -> Order {
        let stay = || edit.forward.iter().zip(0..).filter(|(by, row)| *by == row).map(|(_, row)| row);
        let depth = self.levels.iter().max().map_or(0, |level| *level as usize + 1);
        let mut begins = vec![0; depth + 1];
        for row in stay() {
            begins[self.levels[row as usize] as usize + 1] += 1;
        }
        (0..depth).for_each(|level| begins[level + 1] += begins[level]);
        let mut rows = vec![0; begins[depth]];
        let mut next = begins.clone();
        for row in stay() {
            let next = &mut next[self.levels[row as usize] as usize];
            rows[*next] = row;
            *next += 1;
        }
        Order { rows, begins }
    }
}

impl Order {
    /// The rows of each level.
    pub(crate) fn levels(&self) -> impl Iterator<Item = &[u32]> {
        self.begins.windows(2).map(|ends| &self.rows[ends[0]..ends[1]])
    }
}
