//! The optimizer: passes over the flat form of a program.
//!
//! ```
//! use vyre_foundation::Program;
//! use vyre_lower::{lower, raise};
//! use vyre_self_substrate::{Options, optimize};
//!
//! let text = "program p { buffer x: read_write u32[]; let i = global_id.x; x[i] = x[i] * 8 / 8 * 0 + len(x) * 4; }";
//! let kernel = lower(&Program::parse(text).unwrap());
//! let optimized = optimize(&kernel, &Options::default());
//! assert!(raise(&optimized.kernel).to_string().contains("x[global_id.x] = len(x) << 2;"));
//! ```

pub mod device;
mod host;
pub mod row;
pub mod rules;
mod stats;

pub use device::Device;
pub use stats::{OnDevice, Pass, Stats};

use host::{Control, Levels, Simplifier, needed};
use row::Row;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;
use std::time::Instant;
use vyre_driver::{Feature, Optimization, Requirements, acquire_preferred};
use vyre_foundation::{BinOp, Type, arith, float_env};
use vyre_lower::columns::{self, op};
use vyre_lower::{Edit, Fate, Id, Kernel, Value, ValueId, rebuild};

vyre_driver::registry::submit! {
    vyre_driver::Optimizer {
        name: "vyre-self-substrate",
        optimize: |kernel| improved(kernel).kernel,
    }
}

/// From how many rows on, and how many to a level, a device is faster than the host. `vyre-bench` measures it.
const MANY_ROWS: usize = 200_000;
const MANY_TO_A_LEVEL: usize = 500;

/// The device that large kernels are optimised on: the best one that is linked in, if more than one core or lane works
/// there.
static DEVICE: LazyLock<Option<Device>> = LazyLock::new(|| {
    let acquired = acquire_preferred(&Requirements::new().feature(Feature::ExactFloats)).ok()?;
    (acquired.backend.profile().limits.parallelism > 1).then(|| Device::new(acquired.backend))
});

/// A kernel improved where that is faster.
fn improved(kernel: &Kernel) -> Optimized {
    let rows = kernel.values.len();
    let levels = || kernel.values.level.iter().max().map_or(1, |level| *level as usize + 1);
    let device = if rows >= MANY_ROWS && rows / levels() >= MANY_TO_A_LEVEL { DEVICE.as_ref() } else { None };
    let optimized = device.map(|device| device.optimize(kernel, Optimization::On));
    match optimized {
        Some(Ok(optimized)) => optimized,
        Some(Err(error)) => {
            tracing::warn!(%error, "the device could not optimise a kernel, so the host does");
            optimize(kernel, &Options::default())
        }
        None => optimize(kernel, &Options::default()),
    }
}

/// How to optimise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Stop after so many changes: the last one of a wrong program is the wrong one.
    pub fuel: Option<u64>,
}

/// A kernel after the optimizer, and what was done to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Optimized {
    /// The kernel. It gives the same bytes.
    pub kernel: Kernel,
    /// What was done.
    pub stats: Stats,
}

/// How often rows and items are gone over at the most. What one round decides is rarely more than one more can use.
const MOST_ROUNDS: usize = 16;

/// Optimises a kernel.
pub fn optimize(kernel: &Kernel, options: &Options) -> Optimized {
    optimize_watched(kernel, options, |_, _| {})
}

/// Optimises a kernel and shows what every pass leaves behind: [`rebuild`] makes a kernel of it.
pub fn optimize_watched(
    kernel: &Kernel,
    options: &Options,
    mut watch: impl FnMut(&Pass, &Edit),
) -> Optimized {
    let mut stats = Stats::new(options.fuel);
    stats.before = size(kernel);
    let kernel = float_env::with_default(|| on_host(kernel, &mut stats, &mut watch));
    stats.after = size(&kernel);
    Optimized { kernel, stats }
}

/// Rows and items.
fn size(kernel: &Kernel) -> [usize; 2] {
    [kernel.values.len(), kernel.items.len()]
}

fn on_host(kernel: &Kernel, stats: &mut Stats, watch: &mut dyn FnMut(&Pass, &Edit)) -> Kernel {
    let mut edit = prepared(kernel);
    let mut control = Control::new(kernel);
    let mut levels = Levels::of(kernel);
    let mut begun = Instant::now();
    let mut ended = |name: &'static str, edit: &Edit, stats: &mut Stats| {
        let rows = (0..).zip(&edit.forward).filter(|(row, by)| row == *by).count();
        let items = edit.fates.iter().filter(|fate| matches!(fate, Fate::Stays | Fate::AtMostOnce)).count();
        let pass = Pass { name, rows, items, time: begun.elapsed() };
        watch(&pass, edit);
        stats.passes.push(pass);
        begun = Instant::now();
    };
    for round in 0..MOST_ROUNDS {
        if round > 0 {
            levels.raise(&edit);
        }
        let order = levels.order(&edit);
        Simplifier::walk(&mut edit, &order, stats);
        ended("rows", &edit, stats);
        if round + 1 == MOST_ROUNDS {
            // Rows are gone over last: what control decides can make some of them equal.
            break;
        }
        let changed = control.walk(&mut edit, stats);
        ended("items", &edit, stats);
        if !changed {
            break;
        }
    }
    needed(kernel, &mut edit);
    ended("needs", &edit, stats);
    as_differences(&mut edit);
    rebuild(kernel, &edit)
}

/// Writes sums with numbers below zero as differences: `x - 1` rather than `x + 4294967295`. While rows are simplified all
/// are sums, so that constants meet.
fn as_differences(edit: &mut Edit) {
    let mut constants: FxHashMap<[u32; 4], u32> = FxHashMap::default();
    let own = edit.rows.len();
    for number in 0..own {
        let Some(negated) = negated_addend(edit, number) else { continue };
        if constants.is_empty() {
            let rows = (0..).zip(&edit.rows).filter(|(number, row)| {
                Row::from(**row).op() == op::CONST && edit.forward[*number as usize] == *number
            });
            constants.extend(rows.map(|(number, row)| (*row, number)));
        }
        let next = edit.rows.len() as u32;
        let constant = *constants.entry(negated.into()).or_insert(next);
        if constant == next {
            edit.rows.push(negated.into());
            edit.forward.push(next);
        }
        let ty = negated.ty();
        let [_, first, ..] = edit.rows[number];
        edit.rows[number] = [columns::kind(op::BINARY, BinOp::Sub as u32, ty, ty), first, constant, 0];
    }
}

/// The negated constant of a sum with a constant below zero.
fn negated_addend(edit: &Edit, number: usize) -> Option<Row> {
    let row = Row::from(edit.rows[number]);
    let ty = row.ty();
    let is_sum = row.op() == op::BINARY && row.variant() == BinOp::Add as usize && ty.is_integer();
    if !is_sum || edit.forward[number] as usize != number {
        return None;
    }
    let bits = Row::from(edit.rows[edit.resolve(row.args[1]) as usize]).bits()?;
    let negated = arith::binary(BinOp::Sub, ty, 0, bits);
    // The smallest number is its own negation.
    (bits >> (ty.bits() - 1) & 1 == 1 && negated != bits).then(|| Row::constant(ty, negated))
}

/// The rows of a kernel, with what its declarations say in the place of what asks for it.
fn prepared(kernel: &Kernel) -> Edit {
    let mut edit = Edit::of(kernel);
    for (row, known) in known_rows(kernel) {
        edit.rows[row.index()] = Row::constant(Type::U32, u64::from(known)).into();
    }
    edit
}

/// The rows that the declarations of a kernel say, with what they are: lengths that are known, and ids on axes on which a
/// workgroup has one invocation.
fn known_rows(kernel: &Kernel) -> impl Iterator<Item = (ValueId, u32)> {
    let size = kernel.workgroup_size.size();
    let asks = |row: &ValueId| matches!(kernel.values.kind[row.index()] & 0xff, op::LEN | op::ID);
    kernel.rows().filter(asks).filter_map(move |row| {
        let known = match kernel.value(row) {
            Value::Len(buffer) => kernel.buffers[buffer as usize].count()?,
            Value::Id(Id::Local, axis) if size[axis.index()] == 1 => 0,
            _ => return None,
        };
        Some((row, known))
    })
}
