//! Where floating rows are computed. One function for all emitters.
//!
//! A row can exist from the deepest region among what it is made of, and must exist at the common ancestor of its
//! uses. Between the two it is placed at the smallest loop depth, then as deep inside branches as possible, never
//! into a loop. Loop-invariant work so ends up outside the loop without a pass that moves it.

use crate::kernel::{Item, ItemId, Kernel, RegionId, Value, ValueId};

/// Where each value row is computed.
pub struct Homes {
    /// The region of each row; for parameters and results the one they appear in.
    pub region: Vec<RegionId>,
    /// Before which item of that region, by position; the number of items means at its end.
    pub before: Vec<u32>,
    /// How many times each row is used.
    pub uses: Vec<u32>,
    /// Whether a row is computed outside of a loop in which all its uses are.
    pub leaves_loop: Vec<bool>,
    places: Vec<Place>,
}

/// A region's place in the tree.
#[derive(Clone, Copy)]
struct Place {
    parent: RegionId,
    /// The position in the parent of the item that holds it.
    position: u32,
    /// A region further up, the same number of steps away from all regions of a depth, so that a region any number of steps
    /// away is found in few: nests are as deep as a program has early returns.
    jump: RegionId,
    depth: u32,
    loops: u32,
    /// How many of the loops around it hold grid barriers.
    segmented: u32,
}

impl Homes {
    /// The homes of all rows of a kernel.
    pub fn of(kernel: &Kernel) -> Homes {
        Homes::with(kernel, |_| false, |_| false)
    }

    /// The homes of all rows of a kernel whose segments keep values for each other: a row that `stays` is not moved out
    /// of a loop that is `segmented` by grid barriers. What leaves such a loop must be kept across the barriers, for
    /// every invocation of the grid, and that is worth it only for what takes longer to compute than to read.
    pub fn with(
        kernel: &Kernel,
        segmented: impl Fn(ItemId) -> bool,
        stays: impl Fn(ValueId) -> bool,
    ) -> Homes {
        let count = kernel.values.len();
        let regions = kernel.regions.start.len();
        let entry = Kernel::ENTRY;
        let root = Place { parent: entry, position: 0, jump: entry, depth: 0, loops: 0, segmented: 0 };
        let mut homes = Homes {
            region: vec![Kernel::ENTRY; count],
            before: vec![u32::MAX; count],
            uses: vec![0; count],
            leaves_loop: vec![false; count],
            places: vec![root; regions],
        };
        let mut of_item = vec![(Kernel::ENTRY, 0); kernel.items.len()];
        // Regions are numbered before what is nested in them.
        for region in (0..regions as u32).map(RegionId) {
            for (position, item) in (0..).zip(kernel.region(region)) {
                of_item[item.index()] = (region, position);
                match kernel.item(item) {
                    Item::If { then, otherwise, .. } => {
                        homes.nest(then, region, position, [0, 0]);
                        homes.nest(otherwise, region, position, [0, 0]);
                    }
                    Item::Loop { body, .. } => {
                        homes.nest(body, region, position, [1, u32::from(segmented(item))]);
                    }
                    _ => {}
                }
            }
        }
        homes.earliest(kernel, &of_item);
        let early = homes.region.clone();
        let mut latest: Vec<Option<(RegionId, u32)>> = vec![None; count];
        for_each_use(kernel, |row, at| homes.use_at(&mut latest, row, at));
        homes.place(kernel, &early, &mut latest, stays);
        homes
    }

    /// Moves rows up in their regions, to where all that they are made of is there, if something is then not needed any
    /// more. Otherwise what is added up all along a program and used at its end would be added up there, and all that it is
    /// made of be kept until then: for a code generator whose time grows with what is kept.
    pub fn shorten_lives(&mut self, kernel: &Kernel) {
        let count = kernel.values.len();
        let mut lives = Lives { last: vec![0; count], open: vec![0; count], inner: vec![false; count] };
        for row in kernel.rows().filter(|row| self.uses[row.index()] > 0) {
            for operand in kernel.value(row).operands() {
                let i = operand.index();
                lives.open[i] += 1;
                lives.inner[i] = self.uses[i] == 1
                    && self.region[i] == self.region[row.index()]
                    && !matches!(kernel.value(operand), Value::Param { .. } | Value::Out { .. })
                    && !kernel.value(operand).operands().any(|part| lives.inner[part.index()]);
            }
        }
        let mut position_of = vec![0; kernel.items.len()];
        for region in kernel.region_ids() {
            for (position, id) in (0..).zip(kernel.region(region)) {
                position_of[id.index()] = position;
            }
        }
        for_each_use(kernel, |row, at| self.note_use(&mut lives, row, at));
        // Operands have smaller numbers, so where they are is decided.
        for row in kernel.rows() {
            if self.uses[row.index()] > 0 && !lives.inner[row.index()] {
                self.shorten(kernel, &position_of, &mut lives, row);
            }
        }
    }

    /// Moves one row up if that frees one of those it is made of. What is there for this row alone comes along.
    fn shorten(&mut self, kernel: &Kernel, position_of: &[u32], lives: &mut Lives, row: ValueId) {
        let region = self.region[row.index()];
        let inner = kernel.value(row).operands().filter(|operand| lives.inner[operand.index()]);
        let rows: Vec<ValueId> = std::iter::once(row).chain(inner).collect();
        let parts = rows.iter().flat_map(|row| kernel.value(*row).operands());
        let parts: Vec<ValueId> = parts.filter(|part| !rows.contains(part)).collect();
        rows.iter()
            .flat_map(|row| kernel.value(*row).operands())
            .for_each(|part| lives.open[part.index()] -= 1);
        // Leaves can be anywhere.
        let is_leaf = |row: &ValueId| match kernel.value(*row) {
            Value::Param { .. } | Value::Out { .. } => false,
            value => value.operands().next().is_none(),
        };
        let here = |row: &&ValueId| self.region[row.index()] == region && !is_leaf(row);
        let ready = |row: &ValueId| match kernel.value(*row) {
            Value::Param { .. } => 0,
            Value::Out { item, .. } => position_of[item.index()] + 1,
            _ => self.before[row.index()],
        };
        let ready = parts.iter().filter(here).map(ready).max().unwrap_or(0);
        // Where a part is used last otherwise, it need not be kept any longer.
        let last = parts.iter().filter(here).filter(|part| lives.open[part.index()] == 0);
        let freed = last.map(|part| lives.last[part.index()].max(ready)).min();
        let is_slot = matches!(kernel.value(row), Value::Param { .. } | Value::Out { .. });
        if let Some(at) = freed.filter(|at| !is_slot && *at < self.before[row.index()]) {
            for row in rows.iter().chain(parts.iter().filter(|part| is_leaf(part))) {
                if self.region[row.index()] == region {
                    self.before[row.index()] = at.min(self.before[row.index()]);
                }
            }
        }
        for row in rows {
            let at = (region, self.before[row.index()]);
            kernel.value(row).operands().for_each(|operand| self.note_use(lives, operand, at));
        }
    }

    /// Notes where in its own region a row is used.
    fn note_use(&self, lives: &mut Lives, row: ValueId, at: (RegionId, u32)) {
        let depth = self.at(self.region[row.index()]).depth;
        let (_, position) = self.climb(at, |place| place.depth <= depth);
        let last = &mut lives.last[row.index()];
        *last = position.max(*last);
    }

    /// The region around a region, and the position there of the item that holds it; `None` for the entry.
    pub fn around(&self, region: RegionId) -> Option<(RegionId, u32)> {
        let Place { parent, position, depth, .. } = self.at(region);
        (depth > 0).then_some((parent, position))
    }

    /// Notes where a region is, and how many loops and segmented loops it adds.
    fn nest(&mut self, region: RegionId, parent: RegionId, position: u32, adds: [u32; 2]) {
        let above = self.at(parent);
        let (once, twice) = (self.at(above.jump), self.at(self.at(above.jump).jump));
        let as_far_again = above.depth - once.depth == once.depth - twice.depth;
        let jump = if as_far_again { once.jump } else { parent };
        let (loops, segmented) = (above.loops + adds[0], above.segmented + adds[1]);
        let depth = above.depth + 1;
        self.places[region.index()] = Place { parent, position, jump, depth, loops, segmented };
    }

    fn at(&self, region: RegionId) -> Place {
        self.places[region.index()]
    }

    /// The way up from a place to the deepest region for which something holds that holds for all around it too.
    fn climb(&self, from: (RegionId, u32), holds: impl Fn(Place) -> bool) -> (RegionId, u32) {
        let mut below = from.0;
        if holds(self.at(below)) {
            return from;
        }
        loop {
            let Place { parent, position, jump, .. } = self.at(below);
            if holds(self.at(parent)) {
                return (parent, position);
            }
            below = if holds(self.at(jump)) { parent } else { jump };
        }
    }

    fn earliest(&mut self, kernel: &Kernel, of_item: &[(RegionId, u32)]) {
        for i in 0..kernel.values.len() {
            self.region[i] = match kernel.value(ValueId(i as u32)) {
                Value::Param { item, .. } => match kernel.item(item) {
                    Item::Loop { body, .. } => body,
                    _ => Kernel::ENTRY,
                },
                Value::Out { item, .. } => of_item[item.index()].0,
                value => value
                    .operands()
                    .map(|operand| self.region[operand.index()])
                    .max_by_key(|region| self.at(*region).depth)
                    .unwrap_or(Kernel::ENTRY),
            };
        }
    }

    /// The deepest region that holds both places, and the position there of what comes first.
    fn meet(&self, a: (RegionId, u32), b: (RegionId, u32)) -> (RegionId, u32) {
        let depth = self.at(a.0).depth.min(self.at(b.0).depth);
        let [a, b] = [a, b].map(|place| self.climb(place, |at| at.depth <= depth));
        if a.0 == b.0 {
            return (a.0, a.1.min(b.1));
        }
        let (mut x, mut y) = (self.at(a.0), self.at(b.0));
        while x.parent != y.parent {
            let (above, other) = if x.jump == y.jump { (x.parent, y.parent) } else { (x.jump, y.jump) };
            (x, y) = (self.at(above), self.at(other));
        }
        (x.parent, x.position.min(y.position))
    }

    fn use_at(&mut self, latest: &mut [Option<(RegionId, u32)>], value: ValueId, at: (RegionId, u32)) {
        self.uses[value.index()] += 1;
        let slot = &mut latest[value.index()];
        *slot = Some(match *slot {
            Some(earlier) => self.meet(earlier, at),
            None => at,
        });
    }

    /// Users have larger numbers than what they use, so going down each row's uses are known.
    fn place(
        &mut self,
        kernel: &Kernel,
        early: &[RegionId],
        latest: &mut [Option<(RegionId, u32)>],
        stays: impl Fn(ValueId) -> bool,
    ) {
        for i in (0..kernel.values.len()).rev() {
            let value = kernel.value(ValueId(i as u32));
            let Some(last) = latest[i] else { continue };
            let stays = stays(ValueId(i as u32));
            let loops = |at: Place| if stays { at.loops - at.segmented } else { at.loops };
            // Further up there are no more loops around than further down.
            let fewest = loops(self.at(early[i]));
            let best = self.climb(last, |at| loops(at) <= fewest);
            if !matches!(value, Value::Param { .. } | Value::Out { .. }) {
                self.region[i] = best.0;
            }
            self.before[i] = best.1;
            let [home, used] = [best, last].map(|(region, _)| self.at(region).loops);
            self.leaves_loop[i] = home < used;
            for operand in value.operands() {
                self.use_at(latest, operand, best);
            }
        }
    }
}

/// What is known of uses while rows are moved.
struct Lives {
    /// For each row the last position of its region at which it is used, by what has its place.
    last: Vec<u32>,
    /// How many uses there are by rows that have none yet.
    open: Vec<u32>,
    /// Which rows are there for one other row of their region, and not made of such.
    inner: Vec<bool>,
}

/// Goes over what items use, and where: what goes around a loop is used at the end of its body.
fn for_each_use(kernel: &Kernel, mut each: impl FnMut(ValueId, (RegionId, u32))) {
    let end = |region: RegionId| (region, kernel.regions.count[region.index()]);
    for region in kernel.region_ids() {
        for (position, id) in (0..).zip(kernel.region(region)) {
            let item = kernel.item(id);
            item.operands().into_iter().for_each(|row| each(row, (region, position)));
            match item {
                Item::If { then, otherwise, yields, .. } => {
                    for (a, b) in yields {
                        each(a, end(then));
                        each(b, end(otherwise));
                    }
                }
                Item::Loop { body, next, again, .. } => {
                    for row in next.into_iter().chain([again]) {
                        each(row, end(body));
                    }
                }
                _ => {}
            }
        }
    }
}
