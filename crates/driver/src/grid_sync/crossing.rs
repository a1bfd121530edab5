//! What crosses grid barriers: which values each part of a kernel needs from the parts before it.
//!
//! Everything is found by demand. The items of a place need their operands, and control that the engine carries out
//! needs its conditions. A row that is needed is computed again where that costs little and nothing in it can have
//! changed; otherwise it, or what it is made of, is kept by the place that first has it. A result of control that
//! somebody needs makes the values needed that it is made of, in the places before it and inside it.

use super::origins::{Origin, Origins};
use super::shape::{GridShape, Piece, PlaceId};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxHashMap, FxHashSet};
use vyre_foundation::validate::Level;
use vyre_lower::{Item, ItemId, Kernel, Value, ValueId};

/// Something that is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Key {
    /// A row.
    Row(ValueId),
    /// A parameter of a loop and its result, or a result of another item, of the grid level.
    Result(ItemId, u32),
}

/// Which values of control: the first ones of a loop, its next ones, or what a branch leaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Part {
    First,
    Next,
    Then,
    Otherwise,
}

/// Who needs values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Site {
    /// A launch.
    Place(PlaceId),
    /// What is computed once for the grid: results of control.
    Once(ItemId, Part),
    /// What is computed once for the grid: a uniform load.
    Load(ItemId),
    /// The engine.
    Engine,
}

/// What crosses.
pub(super) struct Crossing<'s, 'k> {
    pub(super) shape: &'s GridShape<'k>,
    origins: Origins,
    /// The rows that each site needs, as they were asked for.
    asked: IndexMap<Site, IndexSet<ValueId>>,
    seen: FxHashSet<(Site, ValueId)>,
    pending: Vec<(Site, ValueId)>,
    /// Rows of each place that others need.
    roots: Vec<IndexSet<ValueId>>,
    /// Those of them that are kept.
    saved: FxHashSet<ValueId>,
    /// The results of control that launches need.
    pub(super) results: IndexSet<(ItemId, u32)>,
    /// The results of control that the engine needs.
    pub(super) followed: IndexSet<(ItemId, u32)>,
    /// The uniform loads whose values the engine needs.
    pub(super) seen_loads: IndexSet<ItemId>,
    /// What each place leaves for others.
    pub(super) keeps: Vec<IndexMap<Key, ValueId>>,
    stores: FxHashMap<(ItemId, Part), PlaceId>,
}

impl<'s, 'k> Crossing<'s, 'k> {
    /// What crosses the grid barriers of a kernel.
    pub(super) fn of(shape: &'s GridShape<'k>) -> Crossing<'s, 'k> {
        let mut crossing = Crossing {
            shape,
            origins: Origins::of(shape),
            asked: IndexMap::new(),
            seen: FxHashSet::default(),
            pending: Vec::new(),
            roots: vec![IndexSet::new(); shape.places.len()],
            saved: FxHashSet::default(),
            results: IndexSet::new(),
            followed: IndexSet::new(),
            seen_loads: IndexSet::new(),
            keeps: vec![IndexMap::new(); shape.places.len()],
            stores: store_places(shape),
        };
        crossing.ask_all();
        crossing.answer();
        for place in 0..shape.places.len() {
            crossing.choose(place);
        }
        crossing
    }

    fn ask(&mut self, site: Site, row: ValueId) {
        self.asked.entry(site).or_default().insert(row);
        self.pending.push((site, row));
    }

    /// Asks for what items use: those of places at their place, those of the grid level at the engine.
    fn ask_all(&mut self) {
        let kernel = self.shape.kernel;
        for region in kernel.region_ids() {
            for id in kernel.region(region) {
                let item = kernel.item(id);
                let Some(place) = self.shape.place_of[id.index()] else {
                    match item {
                        Item::If { cond, .. } => self.ask(Site::Engine, cond),
                        Item::Loop { guard, again, .. } => {
                            self.ask(Site::Engine, guard);
                            self.ask(Site::Engine, again);
                        }
                        _ => {}
                    }
                    continue;
                };
                let inner = match &item {
                    Item::If { yields, .. } => yields.iter().flat_map(|(a, b)| [*a, *b]).collect(),
                    Item::Loop { next, again, .. } => next.iter().copied().chain([*again]).collect(),
                    _ => Vec::new(),
                };
                for row in item.operands().into_iter().chain(inner) {
                    self.ask(Site::Place(place), row);
                }
            }
        }
    }

    /// Follows what was asked for until nothing new is needed.
    fn answer(&mut self) {
        while let Some((site, row)) = self.pending.pop() {
            if !self.seen.insert((site, row)) {
                continue;
            }
            match self.look(site, row) {
                Found::Here => {
                    let operands = self.shape.kernel.value(row).operands();
                    self.pending.extend(operands.map(|operand| (site, operand)));
                }
                Found::Left(place) => {
                    self.roots[place].insert(row);
                    self.ask(Site::Place(place), row);
                }
                Found::Result(item, index) => self.need_result(site, item, index),
            }
        }
    }

    /// Where a row comes from that a site needs.
    fn look(&self, site: Site, row: ValueId) -> Found {
        if let Value::Param { item, index, .. } | Value::Out { item, index, .. } =
            self.shape.kernel.value(row)
            && self.shape.place_of[item.index()].is_none()
        {
            return Found::Result(item, index);
        }
        match self.origins.of[row.index()] {
            Origin::At(place) if site != Site::Place(place) => Found::Left(place),
            _ => Found::Here,
        }
    }

    fn need_result(&mut self, site: Site, id: ItemId, index: u32) {
        let item = self.shape.kernel.item(id);
        let is_new = match (site, &item) {
            (Site::Engine, Item::UniformLoad { .. }) => self.seen_loads.insert(id),
            (Site::Engine, _) => self.followed.insert((id, index)),
            _ => self.results.insert((id, index)),
        };
        if !is_new {
            return;
        }
        let parts = match item {
            Item::UniformLoad { index, .. } => {
                let site = if site == Site::Engine { site } else { Site::Load(id) };
                return self.ask(site, index);
            }
            Item::Loop { .. } => [Part::First, Part::Next],
            _ => [Part::Then, Part::Otherwise],
        };
        let is_uniform = self.shape.result_level(id, index) == Level::Grid;
        for part in parts {
            let row = values_of(self.shape.kernel, id, part)[index as usize];
            if site == Site::Engine {
                self.ask(Site::Engine, row);
            } else if is_uniform {
                self.ask(Site::Once(id, part), row);
            } else if let Some(place) = self.stores.get(&(id, part)).copied() {
                self.keeps[place].insert(Key::Result(id, index), row);
                self.ask(Site::Place(place), row);
            }
        }
    }

    /// Decides what a place keeps: the rows that others need, or what they are made of, whichever is less.
    fn choose(&mut self, place: PlaceId) {
        let roots = std::mem::take(&mut self.roots[place]);
        let is_leaf = |row: &ValueId| self.origins.is_kept_whole(self.shape, *row);
        let (leaves, made): (Vec<ValueId>, Vec<ValueId>) = roots.iter().copied().partition(is_leaf);
        let mut saved: IndexSet<ValueId> = leaves.into_iter().collect();
        for (rows, parts) in self.origins.components(self.shape, place, &made) {
            let cost = |rows: &[ValueId]| -> u32 { rows.iter().map(|row| self.cost(*row)).sum() };
            let more: Vec<ValueId> = parts.iter().filter(|row| !saved.contains(*row)).copied().collect();
            saved.extend(if cost(&rows) <= cost(&more) { rows } else { more });
        }
        for row in saved {
            self.saved.insert(row);
            self.keeps[place].insert(Key::Row(row), row);
        }
    }

    /// How many bytes keeping a row takes per invocation.
    fn cost(&self, row: ValueId) -> u32 {
        match (self.shape.level(row), self.shape.kernel.value(row).ty().bits()) {
            (Level::Divergent, 64) => 8,
            (Level::Divergent, _) => 4,
            _ => 0,
        }
    }

    /// What a site needs that was kept before.
    pub(super) fn live(&self, site: Site) -> IndexSet<Key> {
        let mut live = IndexSet::new();
        let mut seen = FxHashSet::default();
        let mut pending: Vec<ValueId> = self.asked.get(&site).into_iter().flatten().copied().collect();
        while let Some(row) = pending.pop() {
            if !seen.insert(row) {
                continue;
            }
            match self.look(site, row) {
                Found::Result(item, index) => {
                    live.insert(Key::Result(item, index));
                }
                Found::Left(_) if self.saved.contains(&row) => {
                    live.insert(Key::Row(row));
                }
                _ => pending.extend(self.shape.kernel.value(row).operands()),
            }
        }
        live.sort_unstable();
        live
    }

    /// Whether a site needs anything.
    pub(super) fn is_asked(&self, site: Site) -> bool {
        self.asked.contains_key(&site)
    }
}

/// Where a row comes from.
enum Found {
    /// It is computed here.
    Here,
    /// A place has it, or what it is made of.
    Left(PlaceId),
    /// It is a result of the grid level.
    Result(ItemId, u32),
}

/// Which place keeps the values of each control item: the one at the end, or, where that is empty and would be a launch
/// for nothing else, the last one before it with something to do, if it has the values already.
fn store_places(shape: &GridShape<'_>) -> FxHashMap<(ItemId, Part), PlaceId> {
    let mut stores = FxHashMap::default();
    for block in &shape.blocks {
        for pair in block.pieces.windows(2) {
            if let [Piece::Place(place), Piece::Control(item, first, second)] = *pair {
                let ends = |block: usize| match shape.blocks[block].pieces.last() {
                    Some(Piece::Place(place)) => *place,
                    _ => place,
                };
                let parts = match second {
                    None => [(Part::First, place), (Part::Next, ends(first))],
                    Some(second) => [(Part::Then, ends(first)), (Part::Otherwise, ends(second))],
                };
                for (part, place) in parts {
                    stores.insert((item, part), place);
                }
            }
        }
    }
    let earlier = earlier_places(shape);
    for ((item, part), place) in &mut stores {
        if let Some((other, loads)) = &earlier[*place]
            && (0..).zip(values_of(shape.kernel, *item, *part)).all(|(index, row)| {
                shape.result_level(*item, index) == Level::Grid || is_there(shape, row, loads)
            })
        {
            *place = *other;
        }
    }
    stores
}

/// For each empty place the last one with something to do before it in its block, with only barriers and these uniform
/// loads between the two.
fn earlier_places(shape: &GridShape<'_>) -> Vec<Option<(PlaceId, Vec<ItemId>)>> {
    let mut earlier = vec![None; shape.places.len()];
    for block in &shape.blocks {
        let mut last: Option<(PlaceId, Vec<ItemId>)> = None;
        for piece in &block.pieces {
            match piece {
                Piece::Place(place) if shape.places[*place].is_empty() => earlier[*place] = last.clone(),
                Piece::Place(place) => last = Some((*place, Vec::new())),
                Piece::Barrier => {}
                Piece::UniformLoad(item) => last.iter_mut().for_each(|(_, loads)| loads.push(*item)),
                Piece::Control(..) => last = None,
            }
        }
    }
    earlier
}

/// The values of control, one per result.
pub(super) fn values_of(kernel: &Kernel, id: ItemId, part: Part) -> Vec<ValueId> {
    match (kernel.item(id), part) {
        (Item::Loop { first, .. }, Part::First) => first,
        (Item::Loop { next, .. }, _) => next,
        (Item::If { yields, .. }, Part::Then) => yields.iter().map(|pair| pair.0).collect(),
        (Item::If { yields, .. }, _) => yields.iter().map(|pair| pair.1).collect(),
        _ => Vec::new(),
    }
}

/// Whether a row can be had without the values of these uniform loads.
fn is_there(shape: &GridShape<'_>, row: ValueId, loads: &[ItemId]) -> bool {
    if loads.is_empty() {
        return true;
    }
    let mut seen = FxHashSet::default();
    let mut pending = vec![row];
    while let Some(row) = pending.pop() {
        if !seen.insert(row) {
            continue;
        }
        match shape.kernel.value(row) {
            Value::Out { item, .. } if loads.contains(&item) => return false,
            value => pending.extend(value.operands()),
        }
    }
    true
}
