//! From the flat form to the compiler's: levels, segments, runs and loops over lanes.
//!
//! See [`crate::shape`] for what is emitted how often. This file walks regions; `ops` computes rows, `memory` reads and
//! writes buffers, `lanes` makes the loops over workgroups and lanes, `control` those of the program and its branches,
//! `conditions` asks what these ask, `bounds` finds the accesses that need no check, `slots` says where values are between runs, `vectors` computes straight runs for several
//! lanes at once.

mod bounds;
mod choice;
mod conditions;
mod control;
mod fetch;
mod lanes;
mod memory;
mod ops;
mod rounds;
mod runtime;
mod search;
mod slots;
mod stragglers;
mod vector_control;
mod vector_memory;
mod vectors;

use crate::compile::Simd;
use crate::shape::{Level, Shape};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I8, I32, I64, I64X2};
use cranelift_codegen::ir::{self, AbiParam, AliasRegionData, Block, Function, InstBuilder, MemFlagsData};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use lanes::{Lane, Workgroup};
use rustc_hash::{FxHashMap, FxHashSet};
use slots::{Key, Slot, Slots};
use vectors::{Bundle, Parts};
use vyre_foundation::Type;
use vyre_lower::{Item, ItemId, Kernel, RegionId, Value, ValueId};

/// What a kernel became.
pub(crate) struct Emitted {
    /// The function.
    pub(crate) function: Function,
    /// The size of a worker's frame.
    pub(crate) frame_bytes: u64,
    /// The size of what a workgroup keeps across grid barriers.
    pub(crate) kept_bytes: u64,
    /// Whether there are grid barriers.
    pub(crate) segmented: bool,
    /// About how many operations an invocation does.
    pub(crate) weight: u32,
}

/// What decides the code besides the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) pointer: ir::Type,
    pub(crate) call_conv: CallConv,
    /// Whether `fma` is an instruction.
    pub(crate) fma: bool,
    /// Whether rounding to an integer is an instruction.
    pub(crate) round: bool,
    /// Whether to use vectors of four numbers of 32 bits.
    pub(crate) simd: Simd,
    /// Whether every instruction takes a vector from any address.
    pub(crate) unaligned: bool,
    /// Whether selecting lanes by a mask is an instruction of x86.
    pub(crate) blend: bool,
    /// Whether memory is asked for before it is needed.
    pub(crate) fetch: bool,
    /// Whether a vector in memory can be compared and exchanged.
    pub(crate) exchange_vectors: bool,
}

/// Emits a kernel; `None` where its own memory is too large for the frame of a worker.
pub(crate) fn emit(kernel: &Kernel, isa: &dyn TargetIsa, target: Target) -> Option<Emitted> {
    let mut shape = Shape::of(kernel);
    let mut slots = Slots::default();
    let mut frontend = FunctionBuilderContext::new();
    slots.lay_out(&shape)?;
    loop {
        let mut function = Function::with_name_signature(ir::UserFuncName::default(), signature(target));
        let builder = FunctionBuilder::new(&mut function, &mut frontend);
        let mut emitter = Emitter::new(&shape, &mut slots, builder, target);
        emitter.kernel();
        emitter.b.seal_all_blocks();
        emitter.b.finalize(isa.frontend_config());
        for row in slots.pinned.drain(..) {
            shape.cheap[row.index()] = false;
        }
        if !slots.lay_out(&shape)? {
            let (frame_bytes, kept_bytes) = (slots.frame_bytes, slots.kept_bytes);
            let (segmented, weight) = (shape.segmented, shape.weight());
            return Some(Emitted { function, frame_bytes, kept_bytes, segmented, weight });
        }
    }
}

/// Context, frame of the worker, worker.
fn signature(target: Target) -> ir::Signature {
    let mut signature = ir::Signature::new(target.call_conv);
    signature.params.extend([AbiParam::new(target.pointer); 3]);
    signature
}

/// A stretch of a region: the items from `start` to before `end`, and the rows before each of them and before `end`.
#[derive(Clone, Copy)]
struct Span {
    region: RegionId,
    start: u32,
    end: u32,
}

impl Span {
    fn positions(self) -> impl Iterator<Item = u32> {
        self.start..=self.end
    }
}

/// What is known of a row.
#[derive(Clone, Copy)]
enum Known {
    /// Its value.
    One(ValueId),
    /// Its value in each lane of a bundle.
    Lanes(ValueId),
}

/// A value that is to be kept at the end of a stretch.
#[derive(Clone, Copy)]
struct Keep {
    value: ValueId,
    key: Key,
    ty: Type,
    level: Level,
}

struct Emitter<'a, 'k> {
    shape: &'a Shape<'k>,
    slots: &'a mut Slots,
    b: FunctionBuilder<'a>,
    target: Target,
    /// The value of each row where the code is now.
    known: Vec<Option<ir::Value>>,
    /// The rows that are known, in the order in which they became so.
    log: Vec<Known>,
    /// What is known of rows in each lane of the bundle that the code at hand is for. What is known of its first lane is
    /// in `known`.
    vectors: FxHashMap<ValueId, Parts>,
    /// The lanes that the code at hand is for, where they are several at once.
    bundle: Option<Bundle>,
    /// How many rows and items of lanes there are in bundles so far.
    bundled: usize,
    /// For truth values of lanes of 64 bits, those lanes. Both were made in the same place.
    wide_masks: FxHashMap<ir::Value, [ir::Value; 2]>,
    /// For numbers of 32 bits, the same as 64 bits. Both were made in the same place.
    extended: FxHashMap<ir::Value, ir::Value>,
    /// In which segment a row was last defined.
    defined_in: Vec<u32>,
    segment: u32,
    context: ir::Value,
    frame: ir::Value,
    worker: ir::Value,
    /// Whether workers may have read slots since they met: they meet again before anybody writes.
    has_read: bool,
    /// The workgroup and lane that the code at hand is for.
    workgroup: Option<Workgroup>,
    lane: Option<Lane>,
    /// Where lanes that a round does one after the other find what they access side by side.
    side: Option<lanes::Side>,
    /// Where to go when work is to stop.
    leave: Block,
    /// Whether the code at hand seldom runs.
    is_rare: bool,
    /// How many loops of a workgroup are around the code at hand.
    group_loops: u32,
    /// Accesses that need no check where the code is now.
    proven: FxHashSet<bounds::Access>,
    /// How memory is accessed: own memory, then each buffer.
    own_flags: MemFlagsData,
    flags: Vec<MemFlagsData>,
}

/// The most buffers that are told apart by alias analysis.
const MAX_REGIONS: usize = 1000;

impl<'a, 'k> Emitter<'a, 'k> {
    fn new(shape: &'a Shape<'k>, slots: &'a mut Slots, mut b: FunctionBuilder<'a>, target: Target) -> Self {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let leave = b.create_block();
        let [context, frame, worker] = [0, 1, 2].map(|i: usize| b.block_params(entry)[i]);
        let base = MemFlagsData::new().with_notrap().with_endianness(ir::Endianness::Little);
        let mut region = |id: usize, what: &'static str| {
            let data = AliasRegionData { user_id: id as u32, description: what.into() };
            base.with_alias_region(Some(b.func.dfg.alias_regions.insert(data)))
        };
        let own_flags = region(0, "own");
        let flags =
            (0..shape.kernel.buffers.len()).map(|i| region(1 + i.min(MAX_REGIONS), "buffer")).collect();
        let count = shape.kernel.values.len();
        Emitter {
            shape,
            slots,
            b,
            target,
            known: vec![None; count],
            log: Vec::new(),
            vectors: FxHashMap::default(),
            bundle: None,
            bundled: 0,
            wide_masks: FxHashMap::default(),
            extended: FxHashMap::default(),
            defined_in: vec![0; count],
            segment: 0,
            context,
            frame,
            worker,
            has_read: false,
            workgroup: None,
            lane: None,
            side: None,
            leave,
            is_rare: false,
            group_loops: 0,
            proven: FxHashSet::default(),
            own_flags,
            flags,
        }
    }

    fn kernel(&mut self) {
        self.grid_region(Kernel::ENTRY, &[]);
        self.b.ins().jump(self.leave, &[]);
        self.b.switch_to_block(self.leave);
        self.b.ins().return_(&[]);
    }

    /// The level of the code at hand.
    fn level(&self) -> Level {
        match (&self.workgroup, &self.lane) {
            (None, _) => Level::Grid,
            (Some(_), None) => Level::Workgroup,
            (Some(_), Some(_)) => Level::Lane,
        }
    }

    fn know(&mut self, row: ValueId, value: ir::Value) {
        self.known[row.index()] = Some(value);
        self.log.push(Known::One(row));
    }

    /// Forgets what became known since.
    fn forget(&mut self, mark: usize) {
        for known in self.log.drain(mark..) {
            match known {
                Known::One(row) => self.known[row.index()] = None,
                Known::Lanes(row) => drop(self.vectors.remove(&row)),
            }
        }
    }

    /// A row's value where the code is now: that of the lane, or of the first lane of a bundle.
    fn get(&mut self, row: ValueId) -> ir::Value {
        if let Some(lane) = self.bundle.as_ref().and_then(|bundle| bundle.single) {
            return self.get_single(row, lane);
        }
        if let Some(value) = self.known[row.index()] {
            return value;
        }
        let value = self.shape.kernel.value(row);
        let level = self.shape.defined[row.index()];
        let found =
            if matches!(value, Value::Const(_)) || self.shape.cheap[row.index()] && level <= self.level() {
                self.compute(row, Self::get)
            } else {
                if self.shape.cheap[row.index()] {
                    self.slots.pin(row);
                }
                let slot = self.slot_elsewhere(row);
                let found = self.read_slot(slot);
                // All workers read what the first workgroup left. Nobody goes on to write it again before.
                self.has_read |= self.level() == Level::Grid;
                found
            };
        self.know(row, found);
        found
    }

    /// The slot of a row. Those of control share the slot of what they are made of.
    fn slot_of_row(&mut self, row: ValueId, kept: bool) -> Slot {
        let value = self.shape.kernel.value(row);
        self.slots.get(key_of(row, value), value.ty(), self.shape.defined[row.index()], kept)
    }

    /// The slot of a row that was defined elsewhere, perhaps before a grid barrier.
    fn slot_elsewhere(&mut self, row: ValueId) -> Slot {
        let kept = self.level() == Level::Grid || self.defined_in[row.index()] != self.segment;
        self.slot_of_row(row, kept)
    }

    /// Makes a row known that is defined here, and keeps it if somebody needs it elsewhere.
    fn define(&mut self, row: ValueId, value: ir::Value) {
        self.know(row, value);
        self.defined_in[row.index()] = self.segment;
        if let Some(slot) = self.slot_to_write(row) {
            self.write_slot(slot, value);
        }
    }

    /// The slot in which a row is kept where it is defined, if somebody needs it elsewhere.
    fn slot_to_write(&self, row: ValueId) -> Option<Slot> {
        match self.shape.kernel.value(row) {
            // What goes around in a loop of lanes is needed in it only; elsewhere its result is.
            Value::Param { item, .. } if self.shape.splits[item.index()] == Level::Lane => None,
            value => self.slots.find(key_of(row, value)),
        }
    }

    /// Computes the rows before an item that are defined at a level.
    fn rows(&mut self, region: RegionId, position: u32, level: Level) {
        let shape = self.shape;
        for (_, row) in shape.rows_at(region, position) {
            if shape.defined[row.index()] == level && !shape.cheap[row.index()] {
                let value = self.compute(*row, Self::get);
                self.define(*row, value);
            }
        }
    }

    /// Whether a stretch has nothing to do at a level or below.
    fn is_empty(&self, span: Span, level: Level, keeps: &[Keep]) -> bool {
        let shape = self.shape;
        let idle = |row: &(u32, ValueId)| shape.defined[row.1.index()] < level || shape.cheap[row.1.index()];
        span.start == span.end
            && keeps.iter().all(|keep| keep.level < level)
            && span.positions().all(|position| shape.rows_at(span.region, position).iter().all(idle))
    }

    /// A region at the level at which it is emitted. At its end the values are kept that are kept below that level.
    fn region(&mut self, level: Level, region: RegionId, keeps: &[Keep]) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match level {
            Level::Grid => self.grid_region(region, keeps),
            Level::Workgroup => {
                let end = self.shape.kernel.item_count(region);
                self.workgroup_span(Span { region, start: 0, end }, keeps);
            }
            Level::Lane => self.lane_region(region),
        });
    }

    /// A region that is emitted once: segments between what holds a grid barrier. Workers meet after every segment, at
    /// the barrier if one follows. Where nothing was done since they met, a barrier is no meeting.
    fn grid_region(&mut self, region: RegionId, keeps: &[Keep]) {
        let count = self.shape.kernel.item_count(region);
        let mut start = 0;
        for position in 0..count {
            self.rows(region, position, Level::Grid);
            let item = self.shape.kernel.item_at(region, position);
            if self.shape.splits[item.index()] == Level::Grid {
                let before = self.keeps_before(item, Level::Grid);
                let did = self.segment(Span { region, start, end: position }, &before);
                match self.shape.kernel.item(item) {
                    Item::Barrier { .. } if did => self.meet(true),
                    Item::Barrier { .. } => self.meet_again(),
                    Item::UniformLoad { .. } => {}
                    _ if did => self.meet(false),
                    _ => {}
                }
                self.control(Level::Grid, item);
                start = position + 1;
            }
        }
        self.rows(region, count, Level::Grid);
        let did = self.segment(Span { region, start, end: count }, keeps);
        // After the last segment of all there is nothing to wait for.
        if did && region != Kernel::ENTRY {
            self.meet(false);
        }
    }

    /// A stretch that is emitted once per workgroup: runs between what holds a barrier.
    fn workgroup_span(&mut self, span: Span, keeps: &[Keep]) {
        let mut start = span.start;
        for position in span.positions() {
            self.rows(span.region, position, Level::Workgroup);
            if position == span.end {
                break;
            }
            let item = self.shape.kernel.item_at(span.region, position);
            if self.shape.splits[item.index()] == Level::Workgroup {
                let before = self.keeps_before(item, Level::Workgroup);
                self.run(Span { start, end: position, ..span }, &before);
                self.control(Level::Workgroup, item);
                start = position + 1;
            }
        }
        self.run(Span { start, ..span }, keeps);
        self.keep(keeps, Level::Workgroup);
    }

    /// A region of lane code.
    fn lane_region(&mut self, region: RegionId) {
        let end = self.shape.kernel.item_count(region);
        self.lane_span(Span { region, start: 0, end });
    }

    fn lane_span(&mut self, span: Span) {
        for position in span.positions() {
            self.rows(span.region, position, Level::Lane);
            if position < span.end {
                let item = self.shape.kernel.item_at(span.region, position);
                self.control(Level::Lane, item);
            }
        }
    }

    /// Keeps values for other runs. All are read before one is written: they may be each other's.
    fn keep(&mut self, keeps: &[Keep], level: Level) {
        let keeps: Vec<&Keep> = keeps.iter().filter(|keep| keep.level == level).collect();
        let values: Vec<ir::Value> = keeps.iter().map(|keep| self.get(keep.value)).collect();
        for (keep, value) in keeps.into_iter().zip(values) {
            let slot = self.slot_to_keep(keep);
            self.write_slot(slot, value);
        }
    }

    fn slot_to_keep(&mut self, keep: &Keep) -> Slot {
        let kept = self.shape.segmented
            && matches!(keep.key, Key::Result(item, _) if self.shape.splits[item.index()] == Level::Grid);
        self.slots.get(keep.key, keep.ty, keep.level, kept)
    }

    /// What must be kept before control that is emitted at a level: first values that live below it, operands of
    /// subgroup operations.
    fn keeps_before(&self, id: ItemId, level: Level) -> Vec<Keep> {
        let item = self.shape.kernel.item(id);
        match item {
            Item::Loop { first, .. } => self.keeps(id, level, first.into_iter()),
            Item::Ballot { .. } | Item::Shuffle { .. } | Item::Reduce { .. } => {
                let operand = |(i, value): (u32, ValueId)| {
                    let ty = self.shape.kernel.value(value).ty();
                    Keep { value, key: Key::Operand(id, i), ty, level: Level::Lane }
                };
                (0..).zip(item.operands()).map(operand).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The values among the results of an item that live below a level.
    fn keeps(&self, id: ItemId, level: Level, values: impl Iterator<Item = ValueId>) -> Vec<Keep> {
        let keep = |(i, value): (usize, ValueId)| {
            let lives = self.shape.level_of(id, i)?;
            let ty = self.shape.kernel.value(value).ty();
            (lives > level).then_some(Keep { value, key: Key::Result(id, i as u32), ty, level: lives })
        };
        values.enumerate().filter_map(keep).collect()
    }

    /// Whether two integers compare so.
    fn icmp(&mut self, cc: IntCC, a: ir::Value, b: ir::Value) -> ir::Value {
        if self.b.func.dfg.value_type(a) == I64X2 {
            return self.compare_wide(cc, a, b);
        }
        self.b.ins().icmp(cc, a, b)
    }
}

/// The key of a row: results of control share the slot of what goes around.
fn key_of(row: ValueId, value: Value) -> Key {
    match value {
        Value::Param { item, index, .. } | Value::Out { item, index, .. } => Key::Result(item, index),
        _ => Key::Row(row),
    }
}

/// How a value stands in registers.
fn clif_type(ty: Type) -> ir::Type {
    match ty {
        Type::Bool => I8,
        Type::U32 | Type::I32 => I32,
        Type::U64 | Type::I64 => I64,
        Type::F32 => F32,
    }
}
