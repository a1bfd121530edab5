//! What each row is made of and what is made of it, through parameters and results too. Facts about rows follow these
//! edges.

use crate::columns::Values;
use crate::kernel::{Item, Value, ValueId};

/// Goes over the rows that a row is made of: its operands, and what its item makes a parameter or result of.
pub(crate) fn sources(value: Value, items: &[(Item, u32)], mut each: impl FnMut(ValueId)) {
    value.operands().for_each(&mut each);
    let (Value::Param { item, index, .. } | Value::Out { item, index, .. }) = value else { return };
    let k = index as usize;
    match &items[item.index()].0 {
        Item::If { cond, yields, .. } => [*cond, yields[k].0, yields[k].1].into_iter().for_each(each),
        Item::Loop { guard, first, next, again, .. } => {
            [first[k], next[k]].into_iter().for_each(&mut each);
            // Invocations that leave a loop at different times leave with different values.
            if matches!(value, Value::Out { .. }) {
                [*guard, *again].into_iter().for_each(each);
            }
        }
        _ => {}
    }
}

/// For each row the rows that are made of it.
pub(crate) struct Flow {
    offsets: Vec<usize>,
    users: Vec<u32>,
}

impl Flow {
    /// The edges between the rows of a kernel.
    pub(crate) fn of(values: &Values, items: &[(Item, u32)]) -> Flow {
        let count = values.len();
        let rows = || (0..count as u32).map(|row| (row, values.get(ValueId(row))));
        let mut offsets = vec![0; count + 1];
        for (_, value) in rows() {
            sources(value, items, |from| offsets[from.index() + 1] += 1);
        }
        (0..count).for_each(|i| offsets[i + 1] += offsets[i]);
        let mut users = vec![0; offsets[count]];
        let mut filled = offsets.clone();
        for (row, value) in rows() {
            sources(value, items, |from| {
                users[filled[from.index()]] = row;
                filled[from.index()] += 1;
            });
        }
        Flow { offsets, users }
    }

    /// The rows that are made of a row.
    pub(crate) fn users(&self, row: u32) -> &[u32] {
        let i = row as usize;
        &self.users[self.offsets[i]..self.offsets[i + 1]]
    }
}
