//! One walk over the items: what is decided about control, and what follows for parameters and results.

use crate::row::Row;
use crate::stats::Stats;
use rustc_hash::FxHashMap;
use vyre_foundation::{BinOp, Type};
use vyre_lower::columns::{NONE, kind, op};
use vyre_lower::{Edit, Fate, Item, ItemId, Kernel, RegionId, ValueId};

const LESS: u32 = kind(op::BINARY, BinOp::Lt as u32, Type::U32, Type::Bool);
const SUM: u32 = kind(op::BINARY, BinOp::Add as u32, Type::U32, Type::U32);
const BOTH: u32 = kind(op::BINARY, BinOp::And as u32, Type::Bool, Type::Bool);

/// A load: its buffer, index and version.
type Load = (u32, u32, u32);

/// What the walks over the items of one kernel share.
pub(crate) struct Control<'k> {
    kernel: &'k Kernel,
    /// The row of each parameter and result, by its place in the pool: a parameter at the first value of its pair, a
    /// result at the second.
    slots: Vec<u32>,
    /// The row of the result of each effect.
    results: Vec<u32>,
    /// The region of each item.
    home: Vec<RegionId>,
    /// The last of the regions in each region. Regions are numbered in the order in which they are met.
    last_inside: Vec<RegionId>,
    /// The region that each region becomes a part of; itself where it stays.
    part_of: Vec<RegionId>,
}

impl<'k> Control<'k> {
    /// Nothing is decided yet.
    pub(crate) fn new(kernel: &'k Kernel) -> Control<'k> {
        let mut slots = vec![NONE; kernel.pool.len()];
        let mut results = vec![NONE; kernel.items.len()];
        for (row, kind) in kernel.values.kind.iter().enumerate() {
            let [item, index] = [0, 1].map(|k: usize| kernel.values.args[k][row]);
            let is_result = match kind & 0xff {
                op::PARAM => false,
                op::OUT => true,
                _ => continue,
            };
            match kernel.items.lists[1][item as usize] {
                0 => results[item as usize] = row as u32,
                _ => {
                    let start = kernel.items.lists[0][item as usize];
                    slots[(start + 2 * index) as usize + usize::from(is_result)] = row as u32;
                }
            }
        }
        let mut last_inside: Vec<RegionId> = kernel.region_ids().collect();
        let mut home = vec![Kernel::ENTRY; kernel.items.len()];
        for region in kernel.region_ids() {
            for item in kernel.region(region) {
                home[item.index()] = region;
            }
        }
        // What is inside a region has larger numbers.
        for region in kernel.region_ids().rev() {
            for item in kernel.region(region) {
                let inside = match kernel.item(item) {
                    Item::If { otherwise, .. } => otherwise,
                    Item::Loop { body, .. } => body,
                    _ => continue,
                };
                let last = last_inside[inside.index()];
                last_inside[region.index()] = last.max(last_inside[region.index()]);
            }
        }
        let part_of = kernel.region_ids().collect();
        Control { kernel, slots, results, home, last_inside, part_of }
    }

    /// The region that a region is a part of by now. Ways there become shorter where they are gone.
    fn merged(&mut self, mut region: RegionId) -> RegionId {
        while self.part_of[region.index()] != region {
            let next = self.part_of[region.index()];
            self.part_of[region.index()] = self.part_of[next.index()];
            region = next;
        }
        region
    }

    /// Whether a region is another one or inside it.
    fn is_in(&self, region: RegionId, other: RegionId) -> bool {
        (other..=self.last_inside[other.index()]).contains(&region)
    }

    /// Goes over all items once. Gives whether something was decided.
    ///
    /// What is decided about the rows of one item counts for others in the next walk only. What is never done is not
    /// told from the rest: deciding about it does no harm.
    pub(crate) fn walk(&mut self, edit: &mut Edit, stats: &mut Stats) -> bool {
        let (loads, forwards) = (FxHashMap::default(), Vec::new());
        let mut walk = Walk { control: self, edit, stats, loads, forwards, changed: false };
        // Items are numbered in the order in which they are met, before what is inside them.
        for item in 0..walk.control.home.len() {
            walk.item(ItemId::new(item as u32), walk.control.home[item]);
        }
        let (forwards, changed) = (walk.forwards, walk.changed);
        for (slot, by) in forwards {
            edit.forward[slot as usize] = by;
        }
        if changed {
            edit.shorten();
        }
        changed
    }
}

struct Walk<'w, 'k> {
    control: &'w mut Control<'k>,
    edit: &'w mut Edit,
    stats: &'w mut Stats,
    /// The results of loads, with the regions in which they stand: of equal ones the one met last that no equal one was
    /// around. The regions that are not around an item are never around one that is met later.
    loads: FxHashMap<Load, (RegionId, u32)>,
    /// Which rows are to stand for which parameters and results.
    forwards: Vec<(u32, u32)>,
    changed: bool,
}

impl Walk<'_, '_> {
    fn resolve(&self, row: ValueId) -> u32 {
        self.edit.resolve(row.index() as u32)
    }

    /// Whether a condition is decided.
    fn decided(&self, condition: ValueId) -> Option<bool> {
        let row = Row::from(self.edit.rows[self.resolve(condition) as usize]);
        row.bits().map(|bits| bits != 0)
    }

    /// The row of a parameter, or of a result, if something uses it.
    fn slot(&self, item: ItemId, index: usize, is_result: bool) -> Option<u32> {
        let start = self.control.kernel.items.lists[0][item.index()] as usize;
        Some(self.control.slots[start + 2 * index + usize::from(is_result)]).filter(|row| *row != NONE)
    }

    /// Whether nothing stands for a parameter or result.
    fn is_open(&self, slot: u32) -> bool {
        self.edit.forward[slot as usize] == slot
    }

    /// Lets a row stand for a parameter or result.
    fn stand_for(&mut self, slot: Option<u32>, by: u32) {
        let Some(slot) = slot.filter(|slot| self.is_open(*slot)) else { return };
        if slot != by {
            self.forwards.push((slot, by));
            self.changed = true;
        }
    }

    fn decide(&mut self, item: ItemId, fate: Fate) {
        self.edit.fates[item.index()] = fate;
        self.changed = true;
    }

    fn item(&mut self, id: ItemId, region: RegionId) {
        let item = self.control.kernel.item(id);
        let is_open = self.edit.fates[id.index()] == Fate::Stays;
        match item {
            Item::If { cond, then, otherwise, yields } if is_open => {
                self.branch((id, region), cond, [then, otherwise], &yields);
            }
            Item::Loop { guard, first, body, next, again } if is_open => {
                self.repeat((id, region), guard, body, (&first, &next), again);
            }
            Item::Load { buffer, index, version } => self.load(id, region, (buffer, index, version)),
            _ => {}
        }
    }

    fn branch(
        &mut self,
        (id, region): (ItemId, RegionId),
        cond: ValueId,
        arms: [RegionId; 2],
        yields: &[(ValueId, ValueId)],
    ) {
        let decided = self.decided(cond).filter(|_| self.stats.spend());
        if let Some(holds) = decided {
            self.stats.branches += 1;
            self.decide(id, if holds { Fate::Then } else { Fate::Otherwise });
            let done = if holds { arms[0] } else { arms[1] };
            self.control.part_of[done.index()] = region;
        }
        for (k, (a, b)) in yields.iter().enumerate() {
            let (a, b) = (self.resolve(*a), self.resolve(*b));
            match decided {
                Some(holds) => self.stand_for(self.slot(id, k, true), if holds { a } else { b }),
                // Both leave the same.
                None if a == b => {
                    let slot = self.slot(id, k, true).filter(|slot| self.is_open(*slot) && *slot != a);
                    if slot.is_some() && self.stats.spend() {
                        self.stand_for(slot, a);
                    }
                }
                None => {}
            }
        }
    }

    fn repeat(
        &mut self,
        (id, region): (ItemId, RegionId),
        guard: ValueId,
        body: RegionId,
        (first, next): (&[ValueId], &[ValueId]),
        again: ValueId,
    ) {
        let runs = self.decided(guard);
        let ends = self.decided(again) == Some(false) || self.counts_once(id, first, again);
        let fate = match (runs, ends) {
            (Some(false), _) => Some(Fate::Gone),
            (Some(true), true) => Some(Fate::Once),
            (None, true) => Some(Fate::AtMostOnce),
            _ => None,
        };
        let Some(fate) = fate.filter(|_| self.stats.spend()) else {
            return self.carried(id, first, next);
        };
        self.stats.loops += 1;
        self.decide(id, fate);
        if fate == Fate::Once {
            self.control.part_of[body.index()] = region;
        }
        for (k, (first, next)) in first.iter().zip(next).enumerate() {
            let (first, next) = (self.resolve(*first), self.resolve(*next));
            self.stand_for(self.slot(id, k, false), first);
            match fate {
                Fate::Gone => self.stand_for(self.slot(id, k, true), first),
                Fate::Once => self.stand_for(self.slot(id, k, true), next),
                _ => {}
            }
        }
    }

    /// Whether a loop counts from one constant to before another, and there is no number between them.
    fn counts_once(&self, id: ItemId, first: &[ValueId], again: ValueId) -> bool {
        let row = |number: u32| Row::from(self.edit.rows[self.edit.resolve(number) as usize]);
        let starts_at_end = |condition: Row| {
            // The condition is `parameter + 1 < end`.
            let next = row(condition.args[0]);
            let parameter = row(next.args[0]);
            let is_own = parameter.op() == op::PARAM && parameter.args[0] == id.index() as u32;
            let from = is_own.then(|| first.get(parameter.args[1] as usize)).flatten();
            let from = from.and_then(|from| row(from.index() as u32).bits());
            let (one, end) = (row(next.args[1]).bits(), row(condition.args[1]).bits());
            is_own
                && condition.kind == LESS
                && next.kind == SUM
                && one == Some(1)
                // The sum wraps, as the loop's does: what counts need not be what the guard is about.
                && from.zip(end).is_some_and(|(from, end)| u64::from((from as u32).wrapping_add(1)) >= end)
        };
        let again = row(again.index() as u32);
        match again.kind {
            BOTH => again.args[..2].iter().any(|half| {
                let half = row(*half);
                half.kind == LESS && starts_at_end(half)
            }),
            LESS => starts_at_end(again),
            _ => false,
        }
    }

    /// What goes around a loop without changing, and what goes around it twice.
    fn carried(&mut self, id: ItemId, first: &[ValueId], next: &[ValueId]) {
        let mut known: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        for (k, (first, next)) in first.iter().zip(next).enumerate() {
            let Some(parameter) = self.slot(id, k, false) else { continue };
            if self.edit.forward[parameter as usize] != parameter {
                continue;
            }
            let (first, next) = (self.resolve(*first), self.resolve(*next));
            if next == parameter || next == first {
                if !self.stats.spend() {
                    return;
                }
                self.stats.carried += 1;
                self.stand_for(Some(parameter), first);
                self.stand_for(self.slot(id, k, true), first);
                continue;
            }
            let same = *known.entry((first, next)).or_insert(k);
            let results = [same, k].map(|k| self.slot(id, k, true));
            // A result that nobody uses has no row that another could be.
            if let (Some(other), false) = (self.slot(id, same, false), same == k)
                && (results[1].is_none() || results[0].is_some())
                && self.stats.spend()
            {
                self.stats.carried += 1;
                self.stand_for(Some(parameter), other);
                if let [Some(result), Some(_)] = results {
                    self.stand_for(results[1], result);
                }
            }
        }
    }

    /// A load that was made before, in this region or around it.
    fn load(&mut self, id: ItemId, region: RegionId, (buffer, index, version): (u32, ValueId, u32)) {
        let result = self.control.results[id.index()];
        if result == NONE || self.edit.forward[result as usize] != result {
            return;
        }
        let index = self.resolve(index);
        let region = self.control.merged(region);
        let earlier = self.loads.get(&(buffer, index, version)).copied();
        if let Some((_, earlier)) = earlier.filter(|(around, _)| self.control.is_in(region, *around)) {
            if self.stats.spend() {
                self.stats.loads += 1;
                self.stand_for(Some(result), earlier);
            }
            return;
        }
        self.loads.insert((buffer, index, version), (region, result));
    }
}
