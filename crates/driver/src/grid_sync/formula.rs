//! Uniform values as the engine computes them: with the arithmetic of the reference.

use rustc_hash::{FxHashMap, FxHashSet};
use vyre_lower::{Id, Kernel, Value, ValueId};

/// How the engine computes a row from what it knows.
#[derive(Clone, PartialEq, Debug)]
pub struct Formula {
    pub(super) root: ValueId,
    /// Rows with what they are, operands first.
    pub(super) steps: Vec<(ValueId, Value)>,
}

/// What the engine knows of a dispatch.
pub(crate) trait Known {
    /// The workgroups on each axis.
    fn workgroups(&self) -> [u32; 3];

    /// The element count of a buffer, by its number.
    fn len(&self, buffer: u32) -> u32;

    /// An element of a buffer that nobody writes; `None` where it has to be asked for first.
    fn element(&self, buffer: u32, index: u32) -> Option<u64>;
}

/// The values of rows that are known. Those of 32 bits and `bool`s are zero-extended.
pub(crate) type Values = FxHashMap<ValueId, u64>;

/// A value that is not there yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// A row that the device has been asked for.
    Row(ValueId),
    /// An element of a buffer that nobody writes.
    Element(u32, u32),
}

impl Formula {
    /// The formula of a row over rows that are known when it is evaluated.
    pub(super) fn of(kernel: &Kernel, root: ValueId, is_known: impl Fn(ValueId) -> bool) -> Formula {
        let mut seen = FxHashSet::default();
        let mut pending = vec![root];
        while let Some(row) = pending.pop() {
            if !is_known(row) && seen.insert(row) {
                pending.extend(kernel.value(row).operands());
            }
        }
        // Operands have smaller numbers than what uses them.
        let mut rows: Vec<ValueId> = seen.into_iter().collect();
        rows.sort_unstable();
        Formula { root, steps: rows.into_iter().map(|row| (row, kernel.value(row))).collect() }
    }

    /// Computes the row.
    pub(crate) fn evaluate(&self, values: &mut Values, known: &dyn Known) -> Result<u64, Missing> {
        for (row, value) in &self.steps {
            let bits = compute(*row, *value, values, known)?;
            values.insert(*row, bits);
        }
        values.get(&self.root).copied().ok_or(Missing::Row(self.root))
    }
}

fn compute(row: ValueId, value: Value, values: &Values, known: &dyn Known) -> Result<u64, Missing> {
    let get = |operand: ValueId| values.get(&operand).copied().ok_or(Missing::Row(operand));
    if let Some(bits) = value.computed(get)? {
        return Ok(bits);
    }
    Ok(match value {
        Value::Id(Id::NumWorkgroups, axis) => u64::from(known.workgroups()[axis as usize]),
        Value::Len(buffer) => u64::from(known.len(buffer)),
        Value::Load { buffer, index, .. } => {
            let index = get(index)? as u32;
            if index >= known.len(buffer) {
                return Ok(0);
            }
            known.element(buffer, index).ok_or(Missing::Element(buffer, index))?
        }
        // Control is the same for all that run, so the engine sees it as the first invocation does. What differs between
        // invocations may still stand in it, for those that have ended.
        Value::Id(..) | Value::SubgroupLane => 0,
        // Parameters and results of control; operators were computed above.
        _ => get(row)?,
    })
}
