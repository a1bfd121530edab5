//! Where rows can be computed: anywhere, in one place, or only where what they are made of has been kept.

use super::shape::{GridShape, PlaceId};
use rustc_hash::{FxHashMap, FxHashSet};
use vyre_foundation::validate::Level;
use vyre_foundation::{BinOp, UnOp};
use vyre_lower::{Value, ValueId};

/// Where a row can be computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// Wherever it is needed: it is made of constants, ids, lengths and memory that the program never writes.
    Anywhere,
    /// In one place, which has all that it is made of.
    At(PlaceId),
    /// It is made of what different places have, or of results of the grid level.
    Mixed,
}

/// Where each row can be computed.
pub(super) struct Origins {
    pub(super) of: Vec<Origin>,
    /// Rows that are kept rather than computed again, or than what they are made of.
    costly: FxHashSet<ValueId>,
}

/// What a row may cost to be computed again instead of kept, in operations.
const CHEAP: u32 = 24;

/// The most rows that are looked at to find out what a place keeps.
const BUDGET: usize = 1 << 16;

impl Origins {
    /// The origins of all rows.
    pub(super) fn of(shape: &GridShape<'_>) -> Origins {
        let kernel = shape.kernel;
        let mut origins =
            Origins { of: Vec::with_capacity(kernel.values.len()), costly: FxHashSet::default() };
        let mut costs: Vec<u32> = Vec::with_capacity(kernel.values.len());
        let mut known: Vec<Known> = Vec::with_capacity(kernel.values.len());
        for row in kernel.rows() {
            let value = kernel.value(row);
            let mut cost = own_cost(value);
            let mut origin = match value {
                Value::Param { item, .. } | Value::Out { item, .. } => {
                    shape.place_of[item.index()].map_or(Origin::Mixed, Origin::At)
                }
                _ => Origin::Anywhere,
            };
            let mut place = shape.known_in(value).map_or(Known::Always, Known::From);
            for operand in value.operands() {
                origin = both(origin, origins.of[operand.index()]);
                cost = cost.saturating_add(costs[operand.index()]);
                place = place.and(known[operand.index()], shape);
            }
            if origin == Origin::Anywhere
                && cost > CHEAP
                && shape.level(row) == Level::Divergent
                && let Some(home) = shape.home(row)
            {
                origin = Origin::At(home);
                place = Known::From(home);
                origins.costly.insert(row);
                cost = 0;
            }
            // What is made of several kept values is kept in their place, by the first place that has them all.
            if let (Origin::Mixed, Known::From(place), Level::Divergent) = (origin, place, shape.level(row))
                && value.operands().next().is_some()
                && !shape.places[place].is_empty()
                && (cost > CHEAP || origins.parts_kept(shape, value) > 1)
            {
                origin = Origin::At(place);
                origins.costly.insert(row);
                cost = 0;
            }
            origins.of.push(origin);
            known.push(place);
            costs.push(cost);
        }
        origins
    }

    /// How many operands of a row are made of something that is kept for each invocation.
    fn parts_kept(&self, shape: &GridShape<'_>, value: Value) -> usize {
        let is_kept =
            |row: &ValueId| self.of[row.index()] != Origin::Anywhere && shape.level(*row) == Level::Divergent;
        let mut operands: Vec<ValueId> = value.operands().filter(is_kept).collect();
        operands.dedup();
        operands.len()
    }

    /// Whether a row is kept as it is where it is needed elsewhere: it is not made of anything that could be kept
    /// instead.
    pub(super) fn is_kept_whole(&self, shape: &GridShape<'_>, row: ValueId) -> bool {
        let is_result = matches!(shape.kernel.value(row), Value::Param { .. } | Value::Out { .. });
        is_result || self.costly.contains(&row)
    }

    /// Groups rows of a place that are made of common parts; with each group the parts.
    pub(super) fn components(
        &self,
        shape: &GridShape<'_>,
        place: PlaceId,
        rows: &[ValueId],
    ) -> Vec<(Vec<ValueId>, Vec<ValueId>)> {
        let mut groups: Vec<(Vec<ValueId>, Vec<ValueId>)> = Vec::new();
        let mut group_of: FxHashMap<ValueId, usize> = FxHashMap::default();
        let mut budget = BUDGET;
        for row in rows {
            let parts = self.parts(shape, place, *row, &mut budget);
            let mut known: Vec<usize> = parts.iter().filter_map(|part| group_of.get(part).copied()).collect();
            known.sort_unstable();
            known.dedup();
            let group = known.first().copied().unwrap_or_else(|| {
                groups.push(Default::default());
                groups.len() - 1
            });
            for other in known.into_iter().skip(1) {
                let (rows, parts) = std::mem::take(&mut groups[other]);
                group_of.extend(parts.iter().map(|part| (*part, group)));
                groups[group].0.extend(rows);
                groups[group].1.extend(parts);
            }
            groups[group].0.push(*row);
            for part in parts {
                if group_of.insert(part, group).is_none() {
                    groups[group].1.push(part);
                }
            }
        }
        groups
    }

    /// What a row of a place is made of: results of items there. The row itself where that takes too long to find.
    fn parts(&self, shape: &GridShape<'_>, place: PlaceId, row: ValueId, budget: &mut usize) -> Vec<ValueId> {
        let mut parts = Vec::new();
        let mut seen = FxHashSet::default();
        let mut pending = vec![row];
        while let Some(next) = pending.pop() {
            if self.of[next.index()] != Origin::At(place) || !seen.insert(next) {
                continue;
            }
            if *budget == 0 {
                return vec![row];
            }
            *budget -= 1;
            if self.is_kept_whole(shape, next) {
                parts.push(next);
            } else {
                pending.extend(shape.kernel.value(next).operands());
            }
        }
        parts.sort_unstable();
        parts
    }
}

/// From where on all that a row is made of is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    Always,
    From(PlaceId),
    Never,
}

impl Known {
    fn and(self, other: Known, shape: &GridShape<'_>) -> Known {
        match (self, other) {
            (Known::Always, other) | (other, Known::Always) => other,
            (Known::From(a), Known::From(b)) if shape.comes_before(a, b) => Known::From(b),
            (Known::From(a), Known::From(b)) if shape.comes_before(b, a) => Known::From(a),
            _ => Known::Never,
        }
    }
}

/// The origin of what is made of two others.
fn both(a: Origin, b: Origin) -> Origin {
    match (a, b) {
        (Origin::Anywhere, other) | (other, Origin::Anywhere) => other,
        (Origin::At(a), Origin::At(b)) if a == b => Origin::At(a),
        _ => Origin::Mixed,
    }
}

/// What a row costs by itself, in operations.
fn own_cost(value: Value) -> u32 {
    match value {
        Value::Const(_) | Value::Id(..) | Value::SubgroupLane | Value::Len(_) => 0,
        Value::Load { .. } => 4,
        Value::Binary { op: BinOp::Div | BinOp::Rem, .. } => 8,
        Value::Unary { op: UnOp::Sqrt | UnOp::InverseSqrt, .. } => 8,
        _ => 1,
    }
}
