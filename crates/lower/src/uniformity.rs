//! Which rows are the same for all invocations that compute them: of the grid, of a workgroup, or not.
//!
//! One search per level from the rows that differ by nature, over the edges from a row to what is made of it,
//! through parameters and results too: linear in the kernel.

use crate::columns::Values;
use crate::kernel::{Id, Item, Value, ValueId};
use vyre_foundation::Scope;
use vyre_foundation::validate::Level;

/// How uniform each row is, as the number of its [`Level`].
pub(crate) fn uniformity(values: &Values, items: &[(Item, u32)]) -> Vec<u32> {
    let count = values.len();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut sources: Vec<(u32, Level)> = Vec::new();
    for i in 0..count as u32 {
        let row = values.get(ValueId(i));
        edges.extend(row.operands().map(|operand| (operand.0, i)));
        match row {
            Value::Id(Id::Invocation | Id::Local, _) | Value::SubgroupLane => {
                sources.push((i, Level::Divergent))
            }
            Value::Id(Id::Workgroup, _) => sources.push((i, Level::Workgroup)),
            Value::Param { item, index, .. } => {
                if let Item::Loop { first, next, .. } = &items[item.index()].0 {
                    edges.extend([first[index as usize], next[index as usize]].map(|from| (from.0, i)));
                }
            }
            Value::Out { item, index, .. } => match result(&items[item.index()].0, index) {
                Result::Made(from) => edges.extend(from.into_iter().map(|from| (from.0, i))),
                Result::Differs(level) => sources.push((i, level)),
            },
            _ => {}
        }
    }
    propagate(count, &edges, &sources)
}

/// What decides how uniform a result is.
enum Result {
    Made(Vec<ValueId>),
    Differs(Level),
}

fn result(item: &Item, index: u32) -> Result {
    let k = index as usize;
    match item {
        Item::If { cond, yields, .. } => Result::Made(vec![*cond, yields[k].0, yields[k].1]),
        // Invocations that leave a loop at different times leave with different values.
        Item::Loop { guard, first, next, again, .. } => Result::Made(vec![*guard, *again, first[k], next[k]]),
        Item::UniformLoad { scope: Scope::Grid, .. } => Result::Made(Vec::new()),
        Item::UniformLoad { scope: Scope::Workgroup, .. } => Result::Differs(Level::Workgroup),
        _ => Result::Differs(Level::Divergent),
    }
}

fn propagate(count: usize, edges: &[(u32, u32)], sources: &[(u32, Level)]) -> Vec<u32> {
    let mut offsets = vec![0usize; count + 1];
    edges.iter().for_each(|(from, _)| offsets[*from as usize + 1] += 1);
    (0..count).for_each(|i| offsets[i + 1] += offsets[i]);
    let mut targets = vec![0u32; edges.len()];
    let mut filled = offsets.clone();
    for (from, to) in edges {
        targets[filled[*from as usize]] = *to;
        filled[*from as usize] += 1;
    }
    let mut levels = vec![Level::Grid; count];
    // The least uniform level first: each row is then reached once, at its final level.
    for level in [Level::Divergent, Level::Workgroup] {
        let own = sources.iter().filter(|(_, own)| *own == level);
        let mut pending: Vec<u32> = own.map(|(row, _)| *row).collect();
        while let Some(row) = pending.pop() {
            let i = row as usize;
            if levels[i] < level {
                levels[i] = level;
                pending.extend_from_slice(&targets[offsets[i]..offsets[i + 1]]);
            }
        }
    }
    levels.into_iter().map(|level| level as u32).collect()
}
