//! The passes as one program of the language, over the columns of a kernel.
//!
//! The columns are uploaded as they are. The program does what the [host](crate::optimize) does, all rows of a level and
//! all items at once, in as many rounds as it takes, and leaves the rows that stay without gaps. So a call is one upload,
//! one dispatch and one read-back; `memory` lists the buffers.

mod arithmetic;
mod book;
mod decide;
mod kept;
mod memory;
mod needs;
mod sweep;

pub(crate) use memory::tally;

use crate::stats::{OnDevice, Pass, Stats};
use crate::{Optimized, as_differences, known_rows, size};
use book::Book;
use kept::Kept;
use memory::{Machine, ROUNDS, SECOND, mark};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use sweep::Sweep;
use vyre_driver::{
    BackendExt, DeviceBuffer, DeviceMemory, DispatchConfig, DispatchOutput, Feature, Optimization,
    ResidentRange, Result, VyreBackend,
};
use vyre_foundation::build::prelude::*;
use vyre_foundation::{BufferAccess, BufferDecl, Program};
use vyre_lower::columns::{Items, Values, item, op};
use vyre_lower::{Edit, Fate, Kernel as Flat, rebuild};
use vyre_primitives::{Compact, Frontier, Op, Scan};

/// Loops that carry more values are left to the host: each value is compared with all before it here.
const MOST_PAIRS: u32 = 256;

/// Kernels with regions further down are left to the host: each item looks at all regions around it here.
const MOST_NESTED: u32 = 512;

/// Kernels of more rows are left to the host: four words of each are numbered, and those of constants.
const MOST_ROWS: usize = 1 << 28;

/// Kernels of more levels are left to the host: each workgroup counts the rows of each.
const MOST_LEVELS: u32 = 1 << 18;

static BOOK: LazyLock<Book> = LazyLock::new(Book::new);

static PROGRAM: LazyLock<Program> = LazyLock::new(|| match written(&BOOK) {
    Ok(program) => program,
    Err(error) => unreachable!("the program does not depend on anything: {error}"),
});

/// The optimizer as a program of the language.
///
/// ```
/// let program = vyre_self_substrate::device::program();
/// let text = program.to_string();
/// assert_eq!(vyre_foundation::Program::parse(&text).as_ref(), Ok(program));
/// ```
pub fn program() -> &'static Program {
    &PROGRAM
}

fn written(book: &Book) -> std::result::Result<Program, BuildError> {
    vyre_foundation::build::program("optimizer", |k| {
        let m = Machine::new(k, book);
        let scan = Scan::new(k, m.team, "scan", Op::Sum);
        let frontier = Frontier::new(k, m.team, "frontier");
        let compact = Compact::with(scan);
        let sweep = Sweep::new(&m, scan);
        m.begin();
        let made = k.var("made", 0u32);
        let decided = k.var("decided", 0u32);
        k.for_named("turn_of_all", 0, ROUNDS, |round| {
            let rows = m.own() + made.get();
            k.if_(round.ne(0), || sweep.raise(rows));
            // Where levels do not fit, rows would not come after their operands: what is here stays as it is.
            let overflow = m.tally.grid_uniform_load(tally::OVERFLOW);
            k.if_(overflow.ne(0), || k.break_());
            sweep.run(made);
            // Rows are gone over last: what is decided can make some of them equal.
            k.if_(round.eq(ROUNDS - 1), || k.break_());
            m.decide();
            let now = m.marks.grid_uniform_load(mark::DECIDED);
            k.if_(now.eq(decided.get()), || k.break_());
            decided.set(now);
            m.shorten(m.own() + made.get());
        });
        m.finish(frontier, compact, m.own() + made.get());
        m.tell();
    })
}

impl Machine<'_> {
    /// Copies the columns to where they are worked on. Synchronises the grid.
    fn begin(&self) {
        let k = self.k;
        self.team.for_each(k, self.own(), |row| {
            let kind = k.let_("kind_here", self.kind.load(row));
            let args = self.args.map(|column| k.let_("argument", column.load(row)));
            self.rows.store(row * 4, kind);
            for (i, arg) in (1..).zip(args) {
                self.rows.store(row * 4 + i, arg);
            }
            self.link.store(row, row);
            self.rank.store(row, self.level.load(row));
            let operation = kind & 0xff;
            k.if_(operation.eq(op::PARAM).or(operation.eq(op::OUT)), || {
                k.if_(self.pairs.load(args[0]).eq(0), || self.result.store(args[0], row + 1)).else_(|| {
                    let is_result = operation.eq(op::OUT).cast::<u32>();
                    self.slots.store(self.list.load(args[0]) + args[1] * 2 + is_result, row + 1);
                });
            });
        });
        self.team.for_each(k, self.part_of.len(), |region| self.part_of.store(region, region));
        k.barrier(Scope::Grid);
        self.team.for_each(k, self.known.len() / 2, |i| {
            let row = k.let_("known_row", self.known.load(i * 2));
            let words = [sweep::constant(vyre_foundation::Type::U32).into(), self.known.load(i * 2 + 1)];
            for (at, word) in (0..).zip(words.into_iter().chain([0.into(), 0.into()])) {
                self.rows.store(row * 4 + at, word);
            }
        });
        k.barrier(Scope::Grid);
    }
}

/// A device that optimises kernels, and what it keeps for that.
pub struct Device {
    backend: Arc<dyn VyreBackend>,
    kept: Kept,
}

impl Device {
    /// The optimizer on this device.
    pub fn new(backend: Arc<dyn VyreBackend>) -> Device {
        Device { backend, kept: Kept::default() }
    }

    /// Optimises a kernel. What does not fit the program is done by the host; [`Stats::device`] says so. Whether the
    /// optimizer's own program is optimised changes nothing but its speed.
    ///
    /// ```
    /// use vyre_driver::{Optimization, acquire};
    /// use vyre_foundation::Program;
    /// use vyre_lower::lower;
    /// use vyre_self_substrate::{Device, Options, optimize};
    /// # use vyre_driver_cpu as _;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let program = Program::parse("program p { buffer x: read_write u32[]; x[0] = x[0] * 8 / 8; }")?;
    /// let kernel = lower(&program);
    /// let optimized = Device::new(acquire("cpu")?).optimize(&kernel, Optimization::On)?;
    /// assert_eq!(optimized.kernel, optimize(&kernel, &Options::default()).kernel);
    /// # Ok(())
    /// # }
    /// ```
    pub fn optimize(&self, kernel: &Flat, own: Optimization) -> Result<Optimized> {
        let counts = kernel.items.lists[1].iter().zip(&kernel.items.kind);
        let loops = counts.filter(|(_, kind)| **kind & 0xff == item::LOOP);
        let fits = loops.map(|(pairs, _)| *pairs).max().unwrap_or(0) <= MOST_PAIRS
            && kernel.values.len() <= MOST_ROWS
            && kernel.values.level.iter().max().is_none_or(|level| *level < MOST_LEVELS);
        let optimized = if fits { self.run(kernel, own)? } else { None };
        Ok(optimized.unwrap_or_else(|| crate::optimize(kernel, &crate::Options::default())))
    }

    fn run(&self, kernel: &Flat, own: Optimization) -> Result<Option<Optimized>> {
        let (values, items) = (&kernel.values, &kernel.items);
        let known: Vec<u32> = known_rows(kernel).flat_map(|(row, is)| [row.index() as u32, is]).collect();
        let Some((home, owner)) = places(kernel) else { return Ok(None) };
        let words: [&[u32]; 19] = [
            &values.kind,
            &values.args[0],
            &values.args[1],
            &values.args[2],
            &values.level,
            &known,
            &items.kind,
            &items.args[0],
            &items.args[1],
            &items.args[2],
            &items.args[3],
            &items.lists[0],
            &items.lists[1],
            &home,
            &owner,
            &kernel.pool,
            &BOOK.heads,
            &BOOK.alternatives,
            &BOOK.code,
        ];
        let config = config(&*self.backend, kernel).optimization(own);
        let dispatched = Instant::now();
        let output = self.dispatch(&words, &config)?;
        Ok(read_back(kernel, output, dispatched.elapsed()))
    }

    /// One dispatch of the program over these columns.
    fn dispatch(&self, words: &[&[u32]], config: &DispatchConfig) -> Result<DispatchOutput> {
        let features = self.backend.profile().features;
        if features.has(Feature::HostMemory) || !features.has(Feature::Resident) {
            let inputs: Vec<&[u8]> = words.iter().map(|words| bytemuck::cast_slice(words)).collect();
            return self.backend.dispatch_borrowed_timed(program(), &inputs, config);
        }
        let columns = self.kept.columns(&self.backend, words)?;
        let length = |buffer: &BufferDecl| {
            let open = config.lengths.iter().find(|(name, _)| name == buffer.name());
            buffer.count().or(open.map(|(_, length)| *length)).unwrap_or(0) as usize
        };
        let declared = program().buffers().iter().filter(|buffer| buffer.access() == BufferAccess::Output);
        let results: Vec<DeviceBuffer<u32>> =
            declared.map(|buffer| self.backend.device_buffer(length(buffer))).collect::<Result<_>>()?;
        let results_of = results.iter().map(|result| result as &dyn DeviceMemory);
        let memory: Vec<&dyn DeviceMemory> =
            columns.iter().map(|column| &**column as &dyn DeviceMemory).chain(results_of).collect();
        let report = self.backend.dispatch_with_device_buffers(program(), &memory, config)?;
        let ranges: Vec<ResidentRange> = results.iter().map(|result| result.handle().into()).collect();
        let mut outputs = Vec::new();
        self.backend.download_resident_ranges_into(&ranges, &mut outputs)?;
        Ok(DispatchOutput { outputs, report })
    }
}

/// What the program made of a kernel, in so much time; `None` where its memory did not suffice.
fn read_back(kernel: &Flat, output: DispatchOutput, time: Duration) -> Option<Optimized> {
    let DispatchOutput { outputs, report } = output;
    // What is converted is given back at once: the largest kernels decide how much memory this takes.
    let mut outputs = outputs.into_iter();
    let mut next = || outputs.next().unwrap_or_default();
    let (dense, fates) = (next(), words_of(&next()));
    let args = [0; 4].map(|_| words_of(&next()));
    let (pool, tally) = (words_of(&next()), words_of(&next()));
    let stay = tally[tally::STAY as usize] as usize;
    let rows = dense.get(..16 * stay).filter(|_| tally[tally::OVERFLOW as usize] == 0)?;
    let rows: Vec<[u32; 4]> = bytemuck::pod_collect_to_vec(rows);
    drop(dense);
    let fates: Vec<Fate> = fates.into_iter().map(Fate::of).collect();
    let mut stats = Stats::new(None);
    stats.before = size(kernel);
    stats.count(&tally);
    let kept = fates.iter().filter(|fate| matches!(fate, Fate::Stays | Fate::AtMostOnce)).count();
    stats.passes.push(Pass { name: "device", rows: stay, items: kept, time });
    stats.device = Some(OnDevice { backend: report.backend, route: report.route, timing: report.timing });
    let mut edit = Edit { rows, forward: (0..stay as u32).collect(), fates };
    as_differences(&mut edit);
    let after = Flat { items: Items { args, ..kernel.items.clone() }, pool, ..without_columns(kernel) };
    let kernel = rebuild(&after, &edit);
    stats.after = size(&kernel);
    Some(Optimized { kernel, stats })
}

fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytemuck::pod_collect_to_vec(bytes)
}

/// What a kernel is besides its rows and items.
fn without_columns(kernel: &Flat) -> Flat {
    Flat {
        name: kernel.name.clone(),
        workgroup_size: kernel.workgroup_size,
        subgroup_size: kernel.subgroup_size,
        buffers: kernel.buffers.clone(),
        tags: kernel.tags.clone(),
        origins: kernel.origins.clone(),
        values: Values::default(),
        items: Items::default(),
        regions: kernel.regions.clone(),
        pool: Vec::new(),
    }
}

/// The region of each item, and the item that holds each region, with [`SECOND`] where it is the second of a branch; `None`
/// where regions are nested too deep.
fn places(kernel: &Flat) -> Option<(Vec<u32>, Vec<u32>)> {
    let mut home = vec![0; kernel.items.len()];
    let mut owner = vec![0; kernel.regions.start.len()];
    let mut depth = vec![0; owner.len()];
    // Regions have smaller numbers than those in them.
    for region in kernel.region_ids() {
        let inside = depth[region.index()] + 1;
        for id in kernel.region(region) {
            let number = id.index() as u32;
            home[id.index()] = region.index() as u32;
            let arg = |which: usize| kernel.items.args[which][id.index()] as usize;
            let mut holds = |region: usize, owned: u32| (owner[region], depth[region]) = (owned, inside);
            match kernel.items.kind[id.index()] & 0xff {
                item::IF => {
                    holds(arg(1), number);
                    holds(arg(2), number | SECOND);
                }
                item::LOOP => holds(arg(1), number),
                _ => {}
            }
        }
    }
    depth.iter().all(|depth| *depth <= MOST_NESTED).then_some((home, owner))
}

/// The grid, and the lengths of all buffers whose length is open.
fn config(backend: &dyn VyreBackend, kernel: &Flat) -> DispatchConfig {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (own, items) = (count(kernel.values.len()), count(kernel.items.len()));
    let (regions, pool) = (count(kernel.regions.start.len()), count(kernel.pool.len()));
    // Room for a constant for every row, and for levels that rise.
    let constants = own.saturating_add(64);
    let rows = own.saturating_add(constants);
    let levels =
        kernel.values.level.iter().max().map_or(1, |level| level + 1).saturating_mul(2).saturating_add(64);
    let groups = backend.profile().limits.parallelism.saturating_mul(4).clamp(4, 64);
    let table = |n: u32| n.saturating_mul(2).checked_next_power_of_two().unwrap_or(1 << 31).max(64);
    let loads = kernel.items.kind.iter().filter(|kind| **kind & 0xff == item::LOAD).count();
    let nodes = rows.saturating_add(items);
    let lengths = [
        ("rows", rows.saturating_mul(4)),
        ("link", rows),
        ("rank", rows),
        ("order", rows),
        ("counts", levels.saturating_mul(groups)),
        ("begins", levels + 1),
        ("table", table(own)),
        ("maker", constants),
        ("slots", pool),
        ("stands", pool),
        ("result", items),
        ("stands_for_result", items),
        ("part_of", regions),
        ("loads", table(count(loads))),
        ("needed", nodes.div_ceil(32)),
        ("frontier_queue", nodes.saturating_mul(2)),
        // Rows that stay are hardly ever more than there were.
        ("dense", own.saturating_add(own / 8 + 64).saturating_mul(4)),
        ("fate", items),
        ("item_0_after", items),
        ("item_1_after", items),
        ("item_2_after", items),
        ("item_3_after", items),
        ("pool_after", pool),
    ];
    let config = DispatchConfig::new().grid([groups, 1, 1]);
    lengths.into_iter().fold(config, |config, (name, length)| config.output_len(name, length))
}
