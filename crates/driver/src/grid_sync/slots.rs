//! Where what crosses is kept: hidden storage per invocation, per workgroup, or words of the grid.
//!
//! Two values that are never held at the same time share storage. When a value is held is a stretch of places; a loop
//! around part of what makes or needs it, and not around all of it, belongs to the stretch as a whole.

use super::crossing::{Crossing, Key, Site};
use super::schedule::{Extent, Hidden, Purpose};
use super::shape::{GridShape, PlaceId};
use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use vyre_foundation::Type;
use vyre_foundation::validate::Level;
use vyre_lower::{Item, ValueId};

/// Where a key is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    /// In hidden storage of this number, one element per invocation.
    Invocation(u32),
    /// One element per workgroup.
    Workgroup(u32),
    /// In words of the grid from this one on.
    Words(u32),
}

/// Where everything that crosses is kept.
pub(super) struct Slots {
    pub(super) of: IndexMap<Key, (Slot, Type)>,
    /// Words from which on the engine finds rows that are kept for each invocation or workgroup: those of the first one.
    pub(super) of_first: IndexMap<ValueId, (u32, Type)>,
    /// How many words the grid shares.
    pub(super) words: u32,
}

/// The last place that needs each storage of one extent and size, and its number, the earliest first.
type Taken = BinaryHeap<Reverse<(PlaceId, u32)>>;

/// How long a key is held.
struct Held {
    key: Key,
    ty: Type,
    level: Level,
    first: PlaceId,
    last: PlaceId,
}

impl Slots {
    /// Lays out what crosses; hidden storage is added to the list.
    pub(super) fn of(crossing: &Crossing<'_, '_>, hidden: &mut Vec<Hidden>) -> Slots {
        let mut held = stretches(crossing);
        held.sort_by_key(|held| (held.first, held.last, held.key));
        let mut slots = Slots { of: IndexMap::new(), of_first: IndexMap::new(), words: 0 };
        let mut taken: FxHashMap<(Extent, u64), Taken> = FxHashMap::default();
        for Held { key, ty, level, first, last } in held {
            let bytes = if ty.bits() == 64 { 8 } else { 4 };
            let extent = match level {
                Level::Grid => {
                    slots.of.insert(key, (Slot::Words(slots.words), ty));
                    slots.words += bytes as u32 / 4;
                    continue;
                }
                Level::Workgroup => Extent::Workgroup,
                Level::Divergent => Extent::Invocation,
            };
            let alike = taken.entry((extent, bytes)).or_default();
            let number = match alike.peek().copied() {
                Some(Reverse((until, number))) if until < first => {
                    alike.pop();
                    number
                }
                _ => {
                    hidden.push(Hidden { extent, bytes, purpose: Purpose::Values });
                    hidden.len() as u32 - 1
                }
            };
            alike.push(Reverse((last, number)));
            let slot = match extent {
                Extent::Invocation => Slot::Invocation(number),
                _ => Slot::Workgroup(number),
            };
            slots.of.insert(key, (slot, ty));
        }
        for key in crossing.live(Site::Engine) {
            if let (Key::Row(row), Some((Slot::Invocation(_) | Slot::Workgroup(_), ty))) =
                (key, slots.of.get(&key).copied())
            {
                slots.of_first.insert(row, (slots.words, ty));
                slots.words += ty.bits().div_ceil(32);
            }
        }
        slots
    }
}

/// When each key is held.
fn stretches(crossing: &Crossing<'_, '_>) -> Vec<Held> {
    let shape = crossing.shape;
    let mut uses: IndexMap<Key, Vec<PlaceId>> = IndexMap::new();
    for place in 0..shape.places.len() {
        let keys = crossing.keeps[place].keys().copied().chain(crossing.live(Site::Place(place)));
        keys.for_each(|key| uses.entry(key).or_default().push(place));
    }
    // Results that are the same for the grid are kept whichever launches need them.
    for (item, index) in &crossing.results {
        uses.entry(Key::Result(*item, *index)).or_default();
    }
    let stretch = |(key, mut places): (Key, Vec<PlaceId>)| {
        let (level, ty) = describe(shape, key);
        if let Key::Result(item, _) = key {
            let around = shape.loops.iter().filter(|(id, ..)| *id == item);
            places.extend(around.flat_map(|(_, first, last)| [*first, *last]));
        }
        let mut first = places.iter().min().copied().unwrap_or(0);
        let mut last = places.iter().max().copied().unwrap_or(0);
        // Loops stand with the inner ones before those around them.
        for (_, start, end) in &shape.loops {
            let is_inside = |place: &PlaceId| (start..=end).contains(&place);
            if is_inside(&first) != is_inside(&last) {
                first = first.min(*start);
                last = last.max(*end);
            }
        }
        Held { key, ty, level, first, last }
    };
    uses.into_iter().map(stretch).collect()
}

/// How uniform a key is, and its type.
pub(super) fn describe(shape: &GridShape<'_>, key: Key) -> (Level, Type) {
    match key {
        Key::Row(row) => (shape.level(row), shape.kernel.value(row).ty()),
        Key::Result(item, index) => {
            let ty = match shape.kernel.item(item) {
                Item::If { yields, .. } => shape.kernel.value(yields[index as usize].0).ty(),
                Item::Loop { first, .. } => shape.kernel.value(first[index as usize]).ty(),
                Item::UniformLoad { buffer, .. } => {
                    shape.kernel.buffers[buffer as usize].element().value_type()
                }
                _ => Type::U32,
            };
            (shape.result_level(item, index), ty)
        }
    }
}
