//! Which rows are the same for all invocations that compute them: of the grid, of a workgroup, or not.
//!
//! One search per level from the rows that differ by nature, over the edges from a row to what is made of it,
//! through parameters and results too: linear in the kernel.

use crate::columns::Values;
use crate::flow::Flow;
use crate::kernel::{Id, Item, Value, ValueId};
use vyre_foundation::Scope;
use vyre_foundation::validate::Level;

/// How uniform each row is, as the number of its [`Level`].
pub(crate) fn uniformity(values: &Values, items: &[(Item, u32)], flow: &Flow) -> Vec<u32> {
    let by_nature: Vec<Level> =
        (0..values.len() as u32).map(|row| by_nature(values.get(ValueId(row)), items)).collect();
    let mut levels = vec![Level::Grid; values.len()];
    // The least uniform level first: each row is then reached once, at its final level.
    for level in [Level::Divergent, Level::Workgroup] {
        let own = (0..values.len() as u32).filter(|row| by_nature[*row as usize] == level);
        let mut pending: Vec<u32> = own.collect();
        while let Some(row) = pending.pop() {
            let i = row as usize;
            if levels[i] < level {
                levels[i] = level;
                pending.extend_from_slice(flow.users(row));
            }
        }
    }
    levels.into_iter().map(|level| level as u32).collect()
}

/// How uniform a row is, whatever it is made of.
fn by_nature(value: Value, items: &[(Item, u32)]) -> Level {
    match value {
        Value::Id(Id::Invocation | Id::Local, _) | Value::SubgroupLane => Level::Divergent,
        Value::Id(Id::Workgroup, _) => Level::Workgroup,
        Value::Out { item, .. } => match &items[item.index()].0 {
            Item::If { .. } | Item::Loop { .. } | Item::UniformLoad { scope: Scope::Grid, .. } => Level::Grid,
            Item::UniformLoad { scope: Scope::Workgroup, .. } => Level::Workgroup,
            _ => Level::Divergent,
        },
        _ => Level::Grid,
    }
}
