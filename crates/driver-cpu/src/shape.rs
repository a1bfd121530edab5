//! The shape of a kernel on a CPU: what runs once, once per workgroup, and once per lane.
//!
//! One thread runs a whole workgroup. Items that hold a grid barrier are emitted once, items that hold a workgroup
//! barrier once per workgroup, and what stands between two barriers is a *run*: a loop over the lanes of the
//! workgroup. In the same way what stands between two grid barriers is a *segment*: a loop over workgroups. Subgroup
//! operations end a run as barriers do, because they need what all lanes have computed.
//!
//! ```text
//! grid level        segment        barrier(grid)      segment
//! workgroup level   run  barrier  run                 run  barrier  run
//! lane level        …             …                   …             …
//! ```

use vyre_foundation::{BinOp, BufferAccess, Scope, Type};
use vyre_lower::columns::item;
use vyre_lower::{Homes, Id, Item, ItemId, Kernel, RegionId, Value, ValueId};

/// How often something runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// Once in each worker.
    Grid,
    /// Once per workgroup.
    Workgroup,
    /// Once per invocation.
    Lane,
}

/// The shape of a kernel.
pub(crate) struct Shape<'k> {
    pub(crate) kernel: &'k Kernel,
    homes: Homes,
    /// Invocations of a workgroup.
    pub(crate) lanes: u32,
    /// What each item holds: a barrier of the grid, of the workgroup, or none ([`Level::Lane`]).
    pub(crate) splits: Vec<Level>,
    /// At which level the items of each region are emitted.
    pub(crate) emitted: Vec<Level>,
    /// At which level each row is defined.
    pub(crate) defined: Vec<Level>,
    /// Whether a row costs so little that it is rather computed again than kept.
    pub(crate) cheap: Vec<bool>,
    /// For each row a bit for each axis whose global id it is computed of, wherever it is used.
    pub(crate) of_global: Vec<u8>,
    /// On which axes the kernel uses global ids.
    pub(crate) uses_global: u8,
    /// Whether time to compile matters more than time to run.
    pub(crate) is_large: bool,
    /// Whether a workgroup may do so much without a loop that loops over lanes look at the stop flag too.
    pub(crate) is_long: bool,
    /// Whether a row is an index somewhere.
    is_index: Vec<bool>,
    /// For each item, how its rounds are made if it is a loop.
    pub(crate) rounds: Vec<Rounds>,
    /// Whether there is more than one segment.
    pub(crate) segmented: bool,
    /// Whether there is more than one run.
    pub(crate) has_runs: bool,
    /// The rows of each region with the position before which they stand, in order.
    rows: Vec<Vec<(u32, ValueId)>>,
    /// The parameters of each loop, in order; `None` where no row names one.
    params: Vec<Vec<Option<ValueId>>>,
    /// The results of each item, in order; `None` where no row names one.
    results: Vec<Vec<Option<ValueId>>>,
}

/// Whether a kernel is so large that its time to compile matters more than its time to run. A good allocation of
/// registers takes time that grows faster than the kernel, and most of all with how much control a value goes through that
/// changes in all of it: 300 branches and loops one after the other took seconds.
pub(crate) fn is_large(kernel: &Kernel) -> bool {
    // A barrier is the end of one loop over lanes and the beginning of another.
    let is_control =
        |id: &ItemId| matches!(kernel.items.kind[id.index()] & 0xff, item::IF | item::LOOP | item::BARRIER);
    let mut controls = kernel.region_ids().map(|region| kernel.region(region).filter(is_control).count());
    kernel.values.len() + kernel.items.len() > LARGE || controls.any(|count| count > MUCH_CONTROL)
}

/// How many rows and items make a kernel large.
const LARGE: usize = 5_000;

/// How many branches, loops and barriers in one region make a kernel large.
const MUCH_CONTROL: usize = 64;

/// How many rows and items of all lanes take so long that somebody may want to stop them: some milliseconds.
const LONG: u64 = 1 << 20;

/// How the rounds of a loop are made with regard to that work may be stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rounds {
    /// Each looks whether to stop: there are other loops in it, or it does not count.
    Watched,
    /// One of [`CHUNK`] looks.
    Chunked,
    /// There are so few that none looks.
    Few(u32),
}

impl Rounds {
    /// How many rounds are made without a look.
    fn unseen(self) -> u32 {
        match self {
            Rounds::Watched => 1,
            Rounds::Chunked => CHUNK,
            Rounds::Few(rounds) => rounds.max(1),
        }
    }
}

/// How many rounds a loop makes before it looks whether work is to stop.
pub(crate) const CHUNK: u32 = 256;

/// The most rounds of a loop that does not look whether to stop.
const FEW: u32 = 1024;

/// The least lanes of a row for which all do a round of a loop before the next one.
const ROW: u32 = 32;

/// How far a row is followed to see what it is made of.
const DEPTH: u32 = 6;

/// How many rounds a loop is taken for where only about its work is asked.
const ROUNDS: u64 = 64;

/// From how many lanes on what they share is computed once for all, needed or not.
const SHARED: u32 = 8;

/// The most operations that are rather computed twice than kept.
const CHEAP: u32 = 3;

/// The most operations that are rather done in every round of a loop around grid barriers than kept across them, for
/// each invocation of the grid. A load of memory that is never written counts as one: reading what was kept is no less.
const QUICK: u32 = 8;

impl<'k> Shape<'k> {
    /// The shape of a kernel.
    pub(crate) fn of(kernel: &'k Kernel) -> Shape<'k> {
        let splits = splits(kernel);
        let segmented = splits.contains(&Level::Grid);
        let mut homes = if segmented {
            let costs = costs(kernel);
            Homes::with(
                kernel,
                |item| splits[item.index()] == Level::Grid,
                |row| kernel.values.uniformity[row.index()] > 0 && costs[row.index()] <= QUICK,
            )
        } else {
            Homes::of(kernel)
        };
        let is_large = is_large(kernel);
        if is_large {
            homes.shorten_lives(kernel);
        }
        let mut params = vec![Vec::new(); kernel.items.len()];
        let mut results = vec![Vec::new(); kernel.items.len()];
        for row in kernel.rows() {
            // A row that nobody uses is never computed.
            if homes.uses[row.index()] == 0 {
                continue;
            }
            let (list, index): (&mut Vec<Option<ValueId>>, u32) = match kernel.value(row) {
                Value::Param { item, index, .. } => (&mut params[item.index()], index),
                Value::Out { item, index, .. } => (&mut results[item.index()], index),
                _ => continue,
            };
            let index = index as usize;
            list.resize(list.len().max(index + 1), None);
            list[index] = Some(row);
        }
        let emitted = emitted(kernel, &splits);
        let rounds = rounds(kernel);
        let mut shape = Shape {
            kernel,
            homes,
            lanes: kernel.workgroup_size.invocations() as u32,
            of_global: Vec::with_capacity(kernel.values.len()),
            uses_global: 0,
            is_large,
            is_long: kernel.workgroup_size.invocations()
                * u64::from(rounds.iter().map(|rounds| rounds.unseen()).max().unwrap_or(1))
                * (kernel.values.len() + kernel.items.len()) as u64
                > LONG,
            is_index: indices(kernel),
            rounds,
            segmented,
            has_runs: splits.iter().any(|split| *split < Level::Lane),
            splits,
            emitted,
            defined: Vec::with_capacity(kernel.values.len()),
            cheap: Vec::with_capacity(kernel.values.len()),
            rows: vec![Vec::new(); kernel.regions.start.len()],
            params,
            results,
        };
        shape.define();
        for row in kernel.rows() {
            if let (Value::Id(Id::Invocation, axis), true) =
                (kernel.value(row), shape.homes.uses[row.index()] > 0)
            {
                shape.uses_global |= 1 << axis as u8;
            }
            let is_result = matches!(kernel.value(row), Value::Param { .. } | Value::Out { .. });
            if !is_result && shape.homes.uses[row.index()] > 0 {
                let (region, before) = (shape.homes.region[row.index()], shape.homes.before[row.index()]);
                shape.rows[region.index()].push((before, row));
            }
        }
        shape.rows.iter_mut().for_each(|rows| rows.sort_unstable());
        shape
    }

    /// Whether a row is an index somewhere.
    pub(crate) fn is_index(&self, row: ValueId) -> bool {
        self.is_index[row.index()]
    }

    /// About how many operations an invocation does. A loop around grid barriers counts once: what counts there is the
    /// work between two of them.
    pub(crate) fn weight(&self) -> u32 {
        let mut rounds = vec![1u64; self.kernel.regions.start.len()];
        let mut sum = 0u64;
        // Regions are numbered before what is nested in them.
        for region in self.kernel.region_ids() {
            let here = rounds[region.index()];
            for id in self.kernel.region(region) {
                sum = sum.saturating_add(here);
                match self.kernel.item(id) {
                    Item::If { then, otherwise, .. } => {
                        rounds[then.index()] = here;
                        rounds[otherwise.index()] = here;
                    }
                    Item::Loop { body, .. } if self.splits[id.index()] == Level::Grid => {
                        rounds[body.index()] = here;
                    }
                    Item::Loop { body, .. } => rounds[body.index()] = here.saturating_mul(ROUNDS),
                    _ => {}
                }
            }
        }
        for row in self.kernel.rows().filter(|row| self.homes.uses[row.index()] > 0) {
            sum = sum.saturating_add(rounds[self.homes.region[row.index()].index()]);
        }
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    /// The rows that stand before an item of a region.
    pub(crate) fn rows_at(&self, region: RegionId, position: u32) -> &[(u32, ValueId)] {
        let rows = &self.rows[region.index()];
        let start = rows.partition_point(|(before, _)| *before < position);
        let count = rows[start..].partition_point(|(before, _)| *before == position);
        &rows[start..start + count]
    }

    /// The row of a parameter of a loop, if there is one.
    pub(crate) fn param(&self, item: ItemId, index: usize) -> Option<ValueId> {
        self.params[item.index()].get(index).copied().flatten()
    }

    /// The row of a result of an item, if there is one.
    pub(crate) fn result(&self, item: ItemId, index: usize) -> Option<ValueId> {
        self.results[item.index()].get(index).copied().flatten()
    }

    /// Whether a row that a loop uses is computed outside it. Regions are numbered as they are opened, and what is in
    /// none of the loop's own regions is in one that was opened before.
    pub(crate) fn is_outside(&self, row: ValueId, item: ItemId) -> bool {
        let Item::Loop { body, .. } = self.kernel.item(item) else { return true };
        self.homes.region[row.index()] < body
    }

    /// How many parameters or results rows name at the most.
    pub(crate) fn result_count(&self, item: ItemId) -> usize {
        self.params[item.index()].len().max(self.results[item.index()].len())
    }

    /// The level at which a parameter or result lives, whichever rows name it; `None` if none does.
    pub(crate) fn level_of(&self, item: ItemId, index: usize) -> Option<Level> {
        let rows = [self.param(item, index), self.result(item, index)];
        rows.into_iter().flatten().map(|row| self.defined[row.index()]).max()
    }

    /// How uniform a row is, as the level at which one computation would do.
    fn uniformity(&self, row: ValueId) -> Level {
        uniformity(self.kernel, row)
    }

    /// Finds the level of each row, and which are cheap.
    fn define(&mut self) {
        // Across grid barriers it is also kept once for all.
        let shared = if self.segmented { 2 } else { SHARED };
        let mut costs: Vec<u32> = Vec::with_capacity(self.kernel.values.len());
        for row in self.kernel.rows() {
            let value = self.kernel.value(row);
            let level = match value {
                Value::Const(_) => Level::Grid,
                Value::Param { item, .. } | Value::Out { item, .. } => self.level_of_result(row, item),
                _ => {
                    let home = self.emitted[self.homes.region[row.index()].index()];
                    let operands = value.operands().map(|operand| self.defined[operand.index()]).max();
                    let level = self.uniformity(row).max(operands.unwrap_or(Level::Grid));
                    // An id belongs to no place: it is known wherever its level is.
                    let home = if matches!(value, Value::Id(..)) { Level::Grid } else { home };
                    // What every workgroup loads for itself needs no register while the next one is fetched.
                    let is_loaded = matches!(value, Value::Load { .. }) && !self.segmented;
                    let level = if is_loaded { level.max(Level::Workgroup) } else { level };
                    if home == Level::Lane && level < Level::Lane && self.lanes >= shared {
                        self.lift(row).max(level)
                    } else {
                        home.max(level)
                    }
                }
            };
            let cost = own_cost(value).map_or(u32::MAX, |own| {
                let above = |operand: &ValueId| self.defined[operand.index()] >= level;
                value
                    .operands()
                    .filter(above)
                    .fold(own, |sum, operand| sum.saturating_add(costs[operand.index()]))
            });
            self.defined.push(level);
            self.cheap.push(cost <= CHEAP);
            self.of_global.push(match value {
                Value::Id(Id::Invocation, axis) => 1 << axis as u8,
                _ if cost > CHEAP => 0,
                _ => value.operands().fold(0, |axes, operand| axes | self.of_global[operand.index()]),
            });
            costs.push(cost);
        }
    }

    /// Moves a row that all lanes share out of lane code, to before the item of the run in which it stands. Every
    /// operation is total, so that it may not be needed does not matter.
    fn lift(&mut self, row: ValueId) -> Level {
        let mut region = self.homes.region[row.index()];
        while let (Level::Lane, Some((parent, position))) =
            (self.emitted[region.index()], self.homes.around(region))
        {
            region = parent;
            self.homes.before[row.index()] = position;
        }
        self.homes.region[row.index()] = region;
        self.emitted[region.index()]
    }

    /// The level of a result or parameter: as often as its item is emitted, and as it differs.
    fn level_of_result(&self, row: ValueId, item: ItemId) -> Level {
        match self.kernel.item(item) {
            Item::UniformLoad { scope: Scope::Grid, .. } => Level::Grid,
            Item::UniformLoad { scope: Scope::Workgroup, .. } => Level::Workgroup,
            Item::If { .. } | Item::Loop { .. } => self.splits[item.index()].max(self.uniformity(row)),
            _ => Level::Lane,
        }
    }
}

/// What a row costs by itself; `None` for what is never computed twice.
fn own_cost(value: Value) -> Option<u32> {
    let float = |ty: Type| ty == Type::F32;
    match value {
        Value::Const(_) | Value::Id(..) | Value::SubgroupLane | Value::Len(_) => Some(0),
        Value::Binary { op: BinOp::Div | BinOp::Rem | BinOp::MulHi, .. } => None,
        Value::Binary { ty, .. } | Value::Unary { ty, .. } => (!float(ty)).then_some(1),
        Value::Select { .. } => Some(1),
        Value::Cast { from, to, .. } => (!float(from) && !float(to)).then_some(1),
        _ => None,
    }
}

/// What each row costs with all that it is made of, up to what differs in other ways than by invocation.
fn costs(kernel: &Kernel) -> Vec<u32> {
    let mut costs: Vec<u32> = Vec::with_capacity(kernel.values.len());
    for row in kernel.rows() {
        let value = kernel.value(row);
        let own = match value {
            Value::Load { .. } => Some(1),
            // These are where they are, and kept there.
            Value::Param { .. } | Value::Out { .. } => Some(0),
            _ => own_cost(value),
        };
        let differs = |operand: &ValueId| kernel.values.uniformity[operand.index()] > 0;
        let operands = value.operands().filter(differs).map(|operand| costs[operand.index()]);
        costs.push(own.map_or(u32::MAX, |own| operands.fold(own, u32::saturating_add)));
    }
    costs
}

/// What each item holds.
fn splits(kernel: &Kernel) -> Vec<Level> {
    let by_rows = go_by_rows(kernel);
    let mut splits = vec![Level::Lane; kernel.items.len()];
    let mut of_region = vec![Level::Lane; kernel.regions.start.len()];
    // Regions are numbered before what is nested in them.
    for region in kernel.region_ids().rev() {
        for item in kernel.region(region) {
            let split = match kernel.item(item) {
                Item::Barrier { scope } | Item::UniformLoad { scope, .. } => match scope {
                    Scope::Grid => Level::Grid,
                    Scope::Workgroup => Level::Workgroup,
                },
                Item::Ballot { .. } | Item::Shuffle { .. } | Item::Reduce { .. } => Level::Workgroup,
                Item::If { then, otherwise, .. } => of_region[then.index()].min(of_region[otherwise.index()]),
                Item::Loop { body, .. } => {
                    let is_by_rows = region == Kernel::ENTRY && by_rows[item.index()];
                    of_region[body.index()].min(if is_by_rows { Level::Workgroup } else { Level::Lane })
                }
                _ => Level::Lane,
            };
            splits[item.index()] = split;
            of_region[region.index()] = of_region[region.index()].min(split);
        }
    }
    splits
}

/// For each item, whether it is a loop of which all lanes of a workgroup do a round before the next one, although nothing
/// makes them wait: they go through memory side by side, and no lane has anything to carry around. A lane that made all
/// its rounds at once would jump from row to row.
fn go_by_rows(kernel: &Kernel) -> Vec<bool> {
    let mut by_rows = vec![false; kernel.items.len()];
    let has_local = kernel.buffers.iter().any(|buffer| buffer.access() == BufferAccess::Local);
    // Lanes that do one round after the other need arrays of their own all at once.
    if kernel.workgroup_size.size()[0] < ROW || has_local {
        return by_rows;
    }
    for row in kernel.rows() {
        if let Value::Load { index, .. } = kernel.value(row) {
            note_row(kernel, index, &mut by_rows);
        }
    }
    for id in kernel.region_ids().flat_map(|region| kernel.region(region)) {
        if let Item::Load { index, .. } | Item::Store { index, .. } = kernel.item(id) {
            note_row(kernel, index, &mut by_rows);
        }
    }
    for id in kernel.region(Kernel::ENTRY).filter(|id| by_rows[id.index()]).collect::<Vec<_>>() {
        let Item::Loop { guard, first, next, again, .. } = kernel.item(id) else { continue };
        let mut rows = [guard, again].into_iter().chain(first).chain(next);
        by_rows[id.index()] = rows.all(|row| uniformity(kernel, row) < Level::Lane);
    }
    by_rows
}

/// Notes the loops that move an index which grows by one from lane to lane.
fn note_row(kernel: &Kernel, index: ValueId, by_rows: &mut [bool]) {
    if kernel.stride(index) != Some(1) {
        return;
    }
    let mut pending = vec![(index, DEPTH)];
    while let Some((row, depth)) = pending.pop() {
        match kernel.value(row) {
            Value::Param { item, .. } => by_rows[item.index()] = true,
            value if depth > 0 => pending.extend(value.operands().map(|operand| (operand, depth - 1))),
            _ => {}
        }
    }
}

/// How far a row is shared.
fn uniformity(kernel: &Kernel, row: ValueId) -> Level {
    match kernel.values.uniformity[row.index()] {
        0 => Level::Grid,
        1 => Level::Workgroup,
        _ => Level::Lane,
    }
}

/// At which level each region is emitted: the regions of an item are emitted at the level of what it holds.
fn emitted(kernel: &Kernel, splits: &[Level]) -> Vec<Level> {
    let mut emitted = vec![Level::Grid; kernel.regions.start.len()];
    for region in kernel.region_ids() {
        for item in kernel.region(region) {
            let level = splits[item.index()];
            match kernel.item(item) {
                Item::If { then, otherwise, .. } => {
                    emitted[then.index()] = level;
                    emitted[otherwise.index()] = level;
                }
                Item::Loop { body, .. } => emitted[body.index()] = level,
                _ => {}
            }
        }
    }
    emitted
}

/// How the rounds of each loop are made.
fn rounds(kernel: &Kernel) -> Vec<Rounds> {
    let mut has_loop = vec![false; kernel.regions.start.len()];
    let mut rounds = vec![Rounds::Watched; kernel.items.len()];
    // Regions are numbered before what is nested in them.
    for region in kernel.region_ids().rev() {
        for id in kernel.region(region) {
            match kernel.item(id) {
                Item::If { then, otherwise, .. } => {
                    has_loop[region.index()] |= has_loop[then.index()] || has_loop[otherwise.index()];
                }
                Item::Loop { body, .. } => {
                    has_loop[region.index()] = true;
                    let Some(counter) = kernel.counter(id).filter(|_| !has_loop[body.index()]) else {
                        continue;
                    };
                    let few = counter.rounds(kernel).filter(|rounds| *rounds <= FEW);
                    rounds[id.index()] = few.map_or(Rounds::Chunked, Rounds::Few);
                }
                _ => {}
            }
        }
    }
    rounds
}

/// For each row, whether it is an index somewhere.
fn indices(kernel: &Kernel) -> Vec<bool> {
    let mut is_index = vec![false; kernel.values.len()];
    for row in kernel.rows() {
        if let Value::Load { index, .. } = kernel.value(row) {
            is_index[index.index()] = true;
        }
    }
    for id in kernel.region_ids().flat_map(|region| kernel.region(region)) {
        if let Item::Load { index, .. } | Item::Store { index, .. } | Item::Atomic { index, .. } =
            kernel.item(id)
        {
            is_index[index.index()] = true;
        }
    }
    is_index
}
