//! From a kernel to its schedule.

use super::crossing::{Crossing, Key, Part, Site, values_of};
use super::cut::{self, Common, Cut, Once};
use super::formula::Formula;
use super::schedule::{Carried, Extent, Given, Hidden, Node, Purpose, Schedule, Segment, Traps};
use super::shape::{BlockId, GridShape, Piece, PlaceId};
use super::slots::{Slot, Slots};
use crate::error::{Error, Result};
use crate::unit::Unit;
use indexmap::IndexSet;
use rustc_hash::FxHashSet;
use vyre_foundation::validate::Level;
use vyre_foundation::{BufferAccess, Name, Program, Type};
use vyre_lower::{Item, ItemId, Kernel, ValueId};

/// Plans a program by its kernel.
pub(super) fn plan(program: &Program, kernel: &Kernel) -> Result<Schedule> {
    let shape = GridShape::of(kernel);
    let crossing = Crossing::of(&shape);
    let mut hidden = Vec::new();
    let slots = Slots::of(&crossing, &mut hidden);
    let moved = moved_buffers(&shape, &mut hidden);
    let traps = (!kernel.tags.is_empty()).then(|| Traps {
        flag: add(&mut hidden, Extent::Grid, 4, Purpose::Trapped),
        notes: add(&mut hidden, Extent::Invocation, 8, Purpose::Traps),
        tags: kernel.tags.clone(),
    });
    // Words are never shared, so their storage is small and there is no need to have it or not.
    let words = u64::from(slots.words) * 4;
    let (mut uniforms, mut found) = (0, 0);
    if words > 0 {
        uniforms = add(&mut hidden, Extent::Grid, words, Purpose::Uniforms);
        found = add(&mut hidden, Extent::Grid, words, Purpose::Found);
    }
    let prefix = prefix(kernel);
    let common = Common {
        shape: &shape,
        slots: &slots,
        moved: &moved,
        traps: traps.as_ref(),
        uniforms,
        found,
        prefix: &prefix,
    };
    let mut planner = Planner {
        known: known_rows(&crossing),
        engine: crossing.live(Site::Engine),
        common: &common,
        crossing: &crossing,
        segments: Vec::new(),
        blocks: shape.blocks.iter().map(|_| Vec::new()).collect(),
    };
    planner.block(0, None)?;
    let Planner { segments, blocks, .. } = planner;
    let wide = |(slot, ty): &(Slot, Type)| match slot {
        Slot::Words(word) if ty.bits() == 64 => Some(*word),
        _ => None,
    };
    let of_first = slots.of_first.values().filter(|(_, ty)| ty.bits() == 64).map(|(word, _)| *word);
    let mut wide: Vec<u32> = slots.of.values().filter_map(wide).chain(of_first).collect();
    wide.sort_unstable();
    Ok(Schedule { prefix, segments, blocks, hidden, wide, traps, program: program.clone() })
}

fn add(hidden: &mut Vec<Hidden>, extent: Extent, bytes: u64, purpose: Purpose) -> u32 {
    hidden.push(Hidden { extent, bytes, purpose });
    hidden.len() as u32 - 1
}

/// A beginning of names that no buffer has.
fn prefix(kernel: &Kernel) -> String {
    let mut prefix = "hidden".to_owned();
    while kernel.buffers.iter().any(|buffer| buffer.name().starts_with(&prefix)) {
        prefix.push('_');
    }
    prefix
}

/// The workgroup and local memory that must outlive a launch: what is written, and used in several places or again and
/// again in one. Gives the hidden storage of each buffer.
fn moved_buffers(shape: &GridShape<'_>, hidden: &mut Vec<Hidden>) -> Vec<Option<u32>> {
    let kernel = shape.kernel;
    let mut places: Vec<IndexSet<PlaceId>> = vec![IndexSet::new(); kernel.buffers.len()];
    let mut written = vec![false; kernel.buffers.len()];
    for id in kernel.region_ids().flat_map(|region| kernel.region(region).collect::<Vec<_>>()) {
        let (buffer, is_stored) = match kernel.item(id) {
            Item::Store { buffer, .. } | Item::Atomic { buffer, .. } => (buffer, true),
            Item::Load { buffer, .. } | Item::UniformLoad { buffer, .. } => (buffer, false),
            _ => continue,
        };
        written[buffer as usize] |= is_stored;
        places[buffer as usize].extend(shape.place_of[id.index()]);
    }
    let mut moved = vec![None; kernel.buffers.len()];
    for (number, buffer) in kernel.buffers.iter().enumerate() {
        let extent = match buffer.access() {
            BufferAccess::Workgroup => Extent::Workgroup,
            BufferAccess::Local => Extent::Invocation,
            _ => continue,
        };
        let outlives = places[number].len() > 1 || places[number].iter().any(|p| shape.places[*p].repeats);
        if written[number] && outlives {
            let bytes = u64::from(buffer.count().unwrap_or(0)) * buffer.element().size() as u64;
            moved[number] = Some(add(hidden, extent, bytes, Purpose::Buffer(number as u32)));
        }
    }
    moved
}

/// The rows that the engine does not compute: those that it follows around loops and those that it asks for.
fn known_rows(crossing: &Crossing<'_, '_>) -> FxHashSet<ValueId> {
    let mut known = FxHashSet::default();
    let shape = crossing.shape;
    for (item, index) in &crossing.followed {
        known.extend(shape.named(*item, *index));
    }
    for item in &crossing.seen_loads {
        known.extend(shape.named(*item, 0));
    }
    for key in crossing.live(Site::Engine) {
        if let Key::Row(row) = key {
            known.insert(row);
        }
    }
    known
}

struct Planner<'p, 's, 'k> {
    common: &'p Common<'s, 'k>,
    crossing: &'p Crossing<'s, 'k>,
    known: FxHashSet<ValueId>,
    /// What the engine needs that launches find.
    engine: IndexSet<Key>,
    segments: Vec<Segment>,
    blocks: Vec<Vec<Node>>,
}

impl Planner<'_, '_, '_> {
    /// The nodes of a block. At its end the values are kept that it is to leave.
    fn block(&mut self, id: BlockId, leaves: Option<(ItemId, Part)>) -> Result<()> {
        let shape = self.common.shape;
        let mut nodes = Vec::new();
        let mut once = Vec::new();
        for piece in &shape.blocks[id].pieces {
            match *piece {
                Piece::Place(place) => self.launch(place, &mut once, &mut nodes)?,
                Piece::Barrier => nodes.push(Node::Barrier),
                Piece::UniformLoad(item) => self.uniform_load(item, &mut once, &mut nodes),
                Piece::Control(item, first, second) => {
                    if second.is_none() {
                        self.results_once(item, Part::First, &mut once);
                    }
                    self.flush(&mut once, &mut nodes)?;
                    let node = stacker::maybe_grow(64 << 10, 1 << 20, || self.control(item, first, second))?;
                    nodes.push(node);
                }
            }
        }
        if let Some((item, part)) = leaves {
            self.results_once(item, part, &mut once);
        }
        self.flush(&mut once, &mut nodes)?;
        self.blocks[id] = nodes;
        Ok(())
    }

    fn formula(&self, row: ValueId) -> Formula {
        Formula::of(self.common.shape.kernel, row, |row| self.known.contains(&row))
    }

    fn control(&mut self, id: ItemId, first: BlockId, second: Option<BlockId>) -> Result<Node> {
        let item = self.common.shape.kernel.item(id);
        let carried = |planner: &Self, pairs: &[(ValueId, ValueId)]| -> Vec<Carried> {
            let followed = (0..).zip(pairs).filter(|(k, _)| planner.crossing.followed.contains(&(id, *k)));
            let carried = followed.map(|(k, (a, b))| Carried {
                rows: planner.common.shape.named(id, k).collect(),
                values: [planner.formula(*a), planner.formula(*b)],
            });
            carried.collect()
        };
        match (item, second) {
            (Item::If { cond, yields, .. }, Some(second)) => {
                self.block(first, Some((id, Part::Then)))?;
                self.block(second, Some((id, Part::Otherwise)))?;
                let (cond, carried) = (self.formula(cond), carried(self, &yields));
                Ok(Node::Branch { cond, then: first, otherwise: second, carried })
            }
            (Item::Loop { guard, first: start, next, again, .. }, _) => {
                self.block(first, Some((id, Part::Next)))?;
                let pairs: Vec<(ValueId, ValueId)> = start.into_iter().zip(next).collect();
                let (guard, again) = (self.formula(guard), self.formula(again));
                Ok(Node::While { guard, carried: carried(self, &pairs), body: first, again })
            }
            (other, _) => Err(Error::Internal(format!("{other:?} is not control"))),
        }
    }

    /// A launch, if the place has something to do.
    fn launch(&mut self, id: PlaceId, once: &mut Vec<Once>, nodes: &mut Vec<Node>) -> Result<()> {
        let shape = self.common.shape;
        let place = shape.places[id];
        let keeps: Vec<(Key, ValueId)> =
            self.crossing.keeps[id].iter().map(|(key, row)| (*key, *row)).collect();
        if place.is_empty() && keeps.is_empty() {
            return Ok(());
        }
        self.flush(once, nodes)?;
        let live: Vec<Key> = self.crossing.live(Site::Place(id)).into_iter().collect();
        let cut = cut::place(self.common, place, &live, &keeps, self.name())?;
        let first = (place.start..place.end).map(|position| shape.kernel.item_at(place.region, position));
        let origin = first.map(|item| shape.kernel.items.origin[item.index()]).find(|origin| *origin > 0);
        let found: Vec<(Key, u32)> =
            keeps.iter().filter_map(|(key, _)| Some((*key, self.word(*key)?))).collect();
        let words = found.iter().flat_map(|(key, word)| (*word..).take(self.words(*key))).collect();
        self.segment(cut, false, words, self.origin(origin), nodes);
        for (key, word) in found {
            if let (Key::Row(row), true) = (key, self.engine.contains(&key)) {
                nodes.push(Node::Let { row, from: Given::Word(word) });
            }
        }
        Ok(())
    }

    /// The first word in which a launch leaves a key: one that the whole grid shares, or that the engine must see.
    fn word(&self, key: Key) -> Option<u32> {
        match (self.common.slots.of.get(&key)?, key) {
            ((Slot::Words(word), _), _) => Some(*word),
            (_, Key::Row(row)) => self.common.slots.of_first.get(&row).map(|(word, _)| *word),
            _ => None,
        }
    }

    fn words(&self, key: Key) -> usize {
        self.common.slots.of.get(&key).map_or(1, |(_, ty)| ty.bits().div_ceil(32) as usize)
    }

    fn uniform_load(&mut self, id: ItemId, once: &mut Vec<Once>, nodes: &mut Vec<Node>) {
        let kernel = self.common.shape.kernel;
        if self.crossing.results.contains(&(id, 0)) {
            once.push(Once::Load(id));
        }
        let row = self.common.shape.named(id, 0).next();
        if let (Item::UniformLoad { buffer, index, .. }, Some(row), true) =
            (kernel.item(id), row, self.crossing.seen_loads.contains(&id))
        {
            nodes.push(Node::Let { row, from: Given::Element { buffer, index: self.formula(index) } });
        }
    }

    /// The results of control that the whole grid shares and launches need.
    fn results_once(&self, id: ItemId, part: Part, once: &mut Vec<Once>) {
        if self.crossing.is_asked(Site::Once(id, part)) {
            once.push(Once::Results(id, part));
        }
    }

    /// Makes a segment of what is to be computed once for the grid.
    fn flush(&mut self, once: &mut Vec<Once>, nodes: &mut Vec<Node>) -> Result<()> {
        if once.is_empty() {
            return Ok(());
        }
        let steps = std::mem::take(once);
        let shape = self.common.shape;
        let mut live = IndexSet::new();
        let mut made: FxHashSet<Key> = FxHashSet::default();
        for step in &steps {
            let site = match *step {
                Once::Load(id) => Site::Load(id),
                Once::Results(id, part) => Site::Once(id, part),
            };
            live.extend(self.crossing.live(site).into_iter().filter(|key| !made.contains(key)));
            match *step {
                Once::Load(id) => {
                    made.insert(Key::Result(id, 0));
                }
                Once::Results(id, part) => made.extend(self.shared(id, part).into_iter().map(|pair| pair.0)),
            }
        }
        let live: Vec<Key> = live.into_iter().collect();
        let (cut, is_alone) =
            cut::once(self.common, &steps, &live, &|id, part| self.shared(id, part), self.name())?;
        let ids = steps.iter().map(|step| match *step {
            Once::Load(id) | Once::Results(id, _) => id,
        });
        let origin = ids.map(|id| shape.kernel.items.origin[id.index()]).find(|origin| *origin > 0);
        self.segment(cut, is_alone, Vec::new(), self.origin(origin), nodes);
        Ok(())
    }

    /// The values of control that the whole grid shares.
    fn shared(&self, id: ItemId, part: Part) -> Vec<(Key, ValueId)> {
        let shape = self.common.shape;
        let rows = values_of(shape.kernel, id, part);
        let is_shared = |(index, _): &(u32, ValueId)| {
            self.crossing.results.contains(&(id, *index)) && shape.result_level(id, *index) == Level::Grid
        };
        (0..).zip(rows).filter(is_shared).map(|(index, row)| (Key::Result(id, index), row)).collect()
    }

    fn segment(
        &mut self,
        cut: Cut,
        is_once: bool,
        found: Vec<u32>,
        origin: Option<String>,
        nodes: &mut Vec<Node>,
    ) {
        nodes.push(Node::Launch(self.segments.len()));
        let unit = Unit::of_kernel(&cut.kernel);
        self.segments.push(Segment { unit, bindings: cut.bindings, is_once, found, origin });
    }

    /// The name of every segment: those that are equal are compiled once.
    fn name(&self) -> Name {
        format!("{}_segment", self.common.shape.kernel.name).into()
    }

    /// An origin, for people.
    fn origin(&self, origin: Option<u32>) -> Option<String> {
        let origin = self.common.shape.kernel.origins.get(origin? as usize - 1)?;
        Some(match &origin.source {
            Some(source) => format!("{} from {source}", origin.generator),
            None => origin.generator.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hidden_storage_are_new() {
        let text = "program p { buffer hidden0: output u32[1]; hidden0[0] = 1; }";
        let kernel = vyre_lower::lower(&Program::parse(text).unwrap());
        assert_eq!(prefix(&kernel), "hidden_");
    }
}
