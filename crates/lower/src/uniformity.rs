//! Which rows are the same for all invocations that compute them: of the grid, of a workgroup, or not.

use crate::columns::Values;
use crate::flow::{Flow, sources};
use crate::kernel::{Id, Item, Value, ValueId};
use std::cell::LazyCell;
use vyre_foundation::Scope;
use vyre_foundation::validate::Level;

/// How uniform each row is, as the number of its [`Level`].
///
/// A row is as uniform as the least uniform one that it is made of. Operands come first, so one walk in order finds that
/// for all but parameters and results, of which a part may come later; what these change is followed to what is made of
/// them. No row becomes less uniform more than twice, so the cost is linear in the kernel.
pub(crate) fn uniformity<F: FnOnce() -> Flow>(
    values: &Values,
    items: &[(Item, u32)],
    flow: &LazyCell<Flow, F>,
) -> Vec<u32> {
    let mut levels: Vec<u32> = vec![Level::Grid as u32; values.len()];
    let of = |row: u32, levels: &[u32]| {
        let value = values.get(ValueId(row));
        let mut level = by_nature(value, items) as u32;
        sources(value, items, |from| level = level.max(levels[from.index()]));
        level
    };
    let mut pending = Vec::new();
    for row in 0..values.len() as u32 {
        levels[row as usize] = of(row, &levels);
        if values.is_slot(row as usize) {
            pending.push(row);
        }
    }
    while let Some(row) = pending.pop() {
        let level = of(row, &levels);
        if level != levels[row as usize] {
            levels[row as usize] = level;
            pending.extend_from_slice(flow.users(row));
        }
    }
    levels
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
