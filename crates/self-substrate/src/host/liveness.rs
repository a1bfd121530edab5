//! Which items something needs.

use crate::row::Row;
use vyre_lower::columns::{self, op};
use vyre_lower::{Edit, Fate, Item, ItemId, Kernel, RegionId, ValueId};

/// Lets the items go that nothing needs: loads and subgroup operations whose results are not used, and control that
/// holds no effect and whose results are not used. Every loop ends, so leaving one out shows nowhere.
pub(crate) fn needed(kernel: &Kernel, edit: &mut Edit) {
    let mut search = Search {
        kernel,
        edit,
        rows: vec![false; edit.rows.len()],
        items: vec![false; kernel.items.len()],
        around: vec![None; kernel.items.len()],
        pending: Vec::new(),
    };
    let reached = search.reached();
    for item in &reached {
        if columns::item::has_effect(kernel.items.kind[item.index()] & 0xff) {
            search.item(*item);
        }
    }
    while let Some(row) = search.pending.pop() {
        search.row(row);
    }
    let items = search.items;
    for item in reached {
        if !items[item.index()] {
            edit.fates[item.index()] = Fate::Gone;
        }
    }
}

struct Search<'a> {
    kernel: &'a Kernel,
    edit: &'a Edit,
    rows: Vec<bool>,
    items: Vec<bool>,
    /// The control that holds each item and stays.
    around: Vec<Option<ItemId>>,
    pending: Vec<ValueId>,
}

impl Search<'_> {
    /// The items that stay, by what is decided so far.
    fn reached(&mut self) -> Vec<ItemId> {
        let mut reached = Vec::new();
        let mut regions: Vec<(RegionId, Option<ItemId>)> = vec![(Kernel::ENTRY, None)];
        while let Some((region, around)) = regions.pop() {
            for item in self.kernel.region(region) {
                match (self.edit.fates[item.index()], self.kernel.item(item)) {
                    (Fate::Gone, _) => continue,
                    (Fate::Then, Item::If { then, .. }) => regions.push((then, around)),
                    (Fate::Otherwise, Item::If { otherwise, .. }) => regions.push((otherwise, around)),
                    (Fate::Once, Item::Loop { body, .. }) => regions.push((body, around)),
                    (_, inside) => {
                        self.around[item.index()] = around;
                        reached.push(item);
                        match inside {
                            Item::If { then, otherwise, .. } => {
                                regions.push((then, Some(item)));
                                regions.push((otherwise, Some(item)));
                            }
                            Item::Loop { body, .. } => regions.push((body, Some(item))),
                            _ => {}
                        }
                    }
                }
            }
        }
        reached
    }

    /// An item is needed, so what decides whether it is reached is needed too.
    fn item(&mut self, item: ItemId) {
        let mut next = Some(item);
        while let Some(item) = next {
            if std::mem::replace(&mut self.items[item.index()], true) {
                return;
            }
            match self.kernel.item(item) {
                Item::If { cond, .. } => self.pending.push(cond),
                Item::Loop { guard, again, .. } => {
                    self.pending.push(guard);
                    // A loop that runs at most once asks nothing at its end.
                    if self.edit.fates[item.index()] == Fate::Stays {
                        self.pending.push(again);
                    }
                }
                effect => self.pending.extend(effect.operands()),
            }
            next = self.around[item.index()];
        }
    }

    fn row(&mut self, row: ValueId) {
        let number = self.edit.resolve(row.index() as u32) as usize;
        if std::mem::replace(&mut self.rows[number], true) {
            return;
        }
        let row = Row::from(self.edit.rows[number]);
        self.pending.extend(row.operands().iter().map(|operand| ValueId::new(*operand)));
        if !matches!(row.op(), op::PARAM | op::OUT) {
            return;
        }
        let item = ItemId::new(row.args[0]);
        self.item(item);
        if self.kernel.items.lists[1][item.index()] > 0 {
            let (a, b) = self.kernel.pair(item, row.args[1]);
            self.pending.extend([a, b]);
        }
    }
}
