//! The grid level of a kernel: what stands between its grid barriers, and the control that holds them.
//!
//! A region that holds a grid barrier, in it or nested in it, is a *block*. Its items are of two sorts: those that
//! hold a grid barrier are carried out by the engine, and the stretches between them are *places*, which a launch
//! carries out. A block begins and ends with a place, and places and others alternate; a place may be empty.

use rustc_hash::FxHashMap;
use vyre_foundation::Scope;
use vyre_foundation::validate::Level;
use vyre_lower::{Homes, Item, ItemId, Kernel, RegionId, Value, ValueId};

/// A place, by its number. Places are numbered in the order of the program.
pub(super) type PlaceId = usize;

/// A block, by its number. The first one is the entry.
pub(super) type BlockId = usize;

/// Part of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece {
    /// What a launch does.
    Place(PlaceId),
    /// A grid barrier.
    Barrier,
    /// A grid `uniform_load`.
    UniformLoad(ItemId),
    /// A branch or loop that holds a grid barrier, with its blocks. A loop has one.
    Control(ItemId, BlockId, Option<BlockId>),
}

/// A region of the grid level.
pub(super) struct Block {
    pub(super) pieces: Vec<Piece>,
    /// The end of each place, with the last place up to it that has something to do, or itself.
    places: Vec<(u32, PlaceId)>,
}

/// A stretch of items that hold no grid barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    block: BlockId,
    pub(super) region: RegionId,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Whether a loop with a grid barrier is around it.
    pub(super) repeats: bool,
}

impl Place {
    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// The grid level of a kernel.
pub(super) struct GridShape<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) homes: Homes,
    pub(super) blocks: Vec<Block>,
    pub(super) places: Vec<Place>,
    /// The place of each item that holds no grid barrier; `None` for the others.
    pub(super) place_of: Vec<Option<PlaceId>>,
    /// For each loop with a grid barrier its first and last place.
    pub(super) loops: Vec<(ItemId, PlaceId, PlaceId)>,
    /// The block around each block.
    around: Vec<Option<BlockId>>,
    /// The first place in which the results of an item of the grid level are known, and that of its parameters.
    known_in: FxHashMap<ItemId, [PlaceId; 2]>,
    /// The block of each region of the grid level.
    block_of: Vec<Option<BlockId>>,
    /// The rows that name each parameter or result, by item.
    named: Vec<Vec<(u32, ValueId)>>,
}

impl<'k> GridShape<'k> {
    /// The grid level of a kernel.
    pub(super) fn of(kernel: &'k Kernel) -> GridShape<'k> {
        let mut named = vec![Vec::new(); kernel.items.len()];
        for row in kernel.rows() {
            if let Value::Param { item, index, .. } | Value::Out { item, index, .. } = kernel.value(row) {
                named[item.index()].push((index, row));
            }
        }
        let mut shape = GridShape {
            kernel,
            homes: Homes::of(kernel),
            blocks: Vec::new(),
            places: Vec::new(),
            place_of: vec![None; kernel.items.len()],
            loops: Vec::new(),
            around: Vec::new(),
            known_in: FxHashMap::default(),
            block_of: vec![None; kernel.regions.start.len()],
            named,
        };
        let holds = holding(kernel);
        shape.block(Kernel::ENTRY, &holds, false, None);
        shape.find_known();
        shape
    }

    fn block(&mut self, region: RegionId, holds: &[bool], repeats: bool, around: Option<BlockId>) -> BlockId {
        let id = self.blocks.len();
        self.around.push(around);
        self.blocks.push(Block { pieces: Vec::new(), places: Vec::new() });
        self.block_of[region.index()] = Some(id);
        let mut start = 0;
        for position in 0..self.kernel.item_count(region) {
            let item = self.kernel.item_at(region, position);
            if holds[item.index()] {
                self.place(id, Place { block: id, region, start, end: position, repeats });
                start = position + 1;
                stacker::maybe_grow(64 << 10, 1 << 20, || self.piece(id, item, holds, repeats));
            }
        }
        let end = self.kernel.item_count(region);
        self.place(id, Place { block: id, region, start, end, repeats });
        id
    }

    fn piece(&mut self, block: BlockId, item: ItemId, holds: &[bool], repeats: bool) {
        let pieces: &[Piece] = match self.kernel.item(item) {
            Item::Barrier { .. } => &[Piece::Barrier],
            // It is a barrier, a load and a barrier.
            Item::UniformLoad { .. } => &[Piece::Barrier, Piece::UniformLoad(item)],
            Item::Loop { body, .. } => {
                let first = self.places.len();
                let body = self.block(body, holds, true, Some(block));
                self.loops.push((item, first, self.places.len() - 1));
                &[Piece::Control(item, body, None)]
            }
            Item::If { then, otherwise, .. } => {
                let then = self.block(then, holds, repeats, Some(block));
                let otherwise = self.block(otherwise, holds, repeats, Some(block));
                &[Piece::Control(item, then, Some(otherwise))]
            }
            _ => &[],
        };
        self.blocks[block].pieces.extend_from_slice(pieces);
    }

    fn place(&mut self, block: BlockId, place: Place) {
        let id = self.places.len();
        self.places.push(place);
        let Block { pieces, places } = &mut self.blocks[block];
        pieces.push(Piece::Place(id));
        let last = places.last().map(|(_, last)| *last).filter(|last| !self.places[*last].is_empty());
        places.push((place.end, if place.is_empty() { last.unwrap_or(id) } else { id }));
        let kernel = self.kernel;
        let mut pending: Vec<ItemId> =
            (place.start..place.end).map(|position| kernel.item_at(place.region, position)).collect();
        while let Some(item) = pending.pop() {
            self.place_of[item.index()] = Some(id);
            match kernel.item(item) {
                Item::If { then, otherwise, .. } => {
                    pending.extend(kernel.region(then).chain(kernel.region(otherwise)));
                }
                Item::Loop { body, .. } => pending.extend(kernel.region(body)),
                _ => {}
            }
        }
    }

    /// Finds where results of the grid level are first known: behind their item, and parameters inside it.
    fn find_known(&mut self) {
        let first = |block: BlockId| match self.blocks[block].pieces.first() {
            Some(Piece::Place(place)) => *place,
            _ => 0,
        };
        for block in &self.blocks {
            for pair in block.pieces.windows(2) {
                let [piece, Piece::Place(behind)] = *pair else { continue };
                match piece {
                    Piece::UniformLoad(item) => self.known_in.insert(item, [behind; 2]),
                    Piece::Control(item, inner, _) => self.known_in.insert(item, [behind, first(inner)]),
                    _ => None,
                };
            }
        }
    }

    /// The first place in which a parameter or result is known.
    pub(super) fn known_in(&self, value: Value) -> Option<PlaceId> {
        match value {
            Value::Param { item, .. } => {
                self.place_of[item.index()].or_else(|| self.known_in.get(&item).map(|places| places[1]))
            }
            Value::Out { item, .. } => {
                self.place_of[item.index()].or_else(|| self.known_in.get(&item).map(|places| places[0]))
            }
            _ => None,
        }
    }

    /// Whether whoever is at a place has been at another one before, the last time around all loops that hold both.
    pub(super) fn comes_before(&self, first: PlaceId, second: PlaceId) -> bool {
        let target = self.places[first].block;
        let mut block = Some(self.places[second].block);
        while let Some(id) = block.filter(|id| *id > target) {
            block = self.around[id];
        }
        first <= second && block == Some(target)
    }

    /// The place that keeps a row which could be computed anywhere, if its home is at the grid level: that of its home,
    /// or, where there is nothing else to do, the last one before it in its block with something to do.
    pub(super) fn home(&self, row: ValueId) -> Option<PlaceId> {
        let block = self.block_of[self.homes.region[row.index()].index()]?;
        let before = self.homes.before[row.index()];
        let places = &self.blocks[block].places;
        let at = places.partition_point(|(end, _)| *end < before);
        places.get(at).map(|(_, place)| *place)
    }

    /// How uniform a row is.
    pub(super) fn level(&self, row: ValueId) -> Level {
        match self.kernel.values.uniformity[row.index()] {
            0 => Level::Grid,
            1 => Level::Workgroup,
            _ => Level::Divergent,
        }
    }

    /// The rows that name a parameter or result of an item.
    pub(super) fn named(&self, item: ItemId, index: u32) -> impl Iterator<Item = ValueId> {
        self.named[item.index()].iter().filter(move |(other, _)| *other == index).map(|(_, row)| *row)
    }

    /// How uniform a parameter or result is, whichever rows name it.
    pub(super) fn result_level(&self, item: ItemId, index: u32) -> Level {
        self.named(item, index).map(|row| self.level(row)).max().unwrap_or(Level::Grid)
    }
}

/// Which items hold a grid barrier.
fn holding(kernel: &Kernel) -> Vec<bool> {
    let mut holds = vec![false; kernel.items.len()];
    let mut of_region = vec![false; kernel.regions.start.len()];
    // Regions are numbered before what is nested in them.
    for region in kernel.region_ids().rev() {
        for item in kernel.region(region) {
            let is_held = match kernel.item(item) {
                Item::Barrier { scope } | Item::UniformLoad { scope, .. } => scope == Scope::Grid,
                Item::If { then, otherwise, .. } => of_region[then.index()] || of_region[otherwise.index()],
                Item::Loop { body, .. } => of_region[body.index()],
                _ => false,
            };
            holds[item.index()] = is_held;
            of_region[region.index()] |= is_held;
        }
    }
    holds
}
