//! A schedule: what the engine does for a program with grid barriers when it cannot leave them to the device.

use super::formula::Formula;
use crate::error::{Error, Result};
use crate::unit::Unit;
use vyre_foundation::grid::Grid;
use vyre_foundation::{Element, Name, Program, Type};
use vyre_lower::ValueId;

/// Launches, loops and branches over segments, and the storage between them.
///
/// It depends on the program alone: equal programs give equal schedules, on every run and machine, and it grows with the
/// program's text, never with how often its loops run.
pub struct Schedule {
    pub(super) segments: Vec<Segment>,
    /// Lists of nodes; the first one is the entry.
    pub(super) blocks: Vec<Vec<Node>>,
    pub(super) hidden: Vec<Hidden>,
    /// What the names of hidden storage begin with.
    pub(super) prefix: String,
    /// The words from which on a 64-bit value stands that the grid shares.
    pub(super) wide: Vec<u32>,
    /// Where traps are noted, if the program has any.
    pub(super) traps: Option<Traps>,
    /// The buffers, as the program declares them: those that the grid shares have a slot each, in order.
    pub(super) program: Program,
}

/// One launch.
pub struct Segment {
    pub(super) unit: Unit,
    /// What each slot of its binding plan is bound to.
    pub(super) bindings: Vec<Binding>,
    /// Whether one invocation does it for the whole grid.
    pub(super) is_once: bool,
    /// Words that it finds for the grid, by number, and that others read once it is done.
    pub(super) found: Vec<u32>,
    /// The region of the program that its first item came from.
    pub(super) origin: Option<String>,
}

/// What a slot of a segment is bound to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// Which memory.
    pub storage: Storage,
    /// Whether the segment may write it.
    pub is_stored: bool,
    /// Whether it needs the contents; otherwise it asks for the length alone.
    pub is_touched: bool,
}

/// Memory that segments share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Storage {
    /// A buffer of the program, by its number.
    Buffer(u32),
    /// Hidden storage, by its number.
    Hidden(u32),
}

/// Storage that the program does not see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hidden {
    /// How many of them there are.
    pub extent: Extent,
    /// The bytes of each.
    pub bytes: u64,
    /// What it is for.
    pub purpose: Purpose,
}

/// How often hidden storage is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extent {
    /// Once per invocation.
    Invocation,
    /// Once per workgroup.
    Workgroup,
    /// Once.
    Grid,
}

/// What hidden storage is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A value that is held across barriers.
    Values,
    /// A `workgroup` or `local` buffer that is used on both sides of a barrier, by its number.
    Buffer(u32),
    /// Values that the whole grid shares.
    Uniforms,
    /// Such values as a launch finds them, until it is done.
    Found,
    /// Whether an invocation has trapped.
    Trapped,
    /// Which invocations have, with tag and value.
    Traps,
}

/// Where traps are noted.
pub(super) struct Traps {
    /// The word that is not 0 when an invocation has trapped.
    pub(super) flag: u32,
    /// For each invocation the number of its tag, from 1, and above it the value.
    pub(super) notes: u32,
    pub(super) tags: Vec<Name>,
}

/// What the engine does.
pub enum Node {
    /// A launch of a segment, by its number.
    Launch(usize),
    /// A grid barrier: a dispatch in which an invocation has trapped ends here.
    Barrier,
    /// The engine learns a value that the device has.
    Let {
        /// The row.
        row: ValueId,
        /// Where it is.
        from: Given,
    },
    /// A guarded do-while.
    While {
        /// Whether the body runs at all.
        guard: Formula,
        /// What goes around and the engine needs to know.
        carried: Vec<Carried>,
        /// The block that is repeated.
        body: usize,
        /// Whether it is repeated once more.
        again: Formula,
    },
    /// One of two blocks.
    Branch {
        /// Which.
        cond: Formula,
        /// The block where it holds.
        then: usize,
        /// The block where it does not.
        otherwise: usize,
        /// What they leave and the engine needs to know.
        carried: Vec<Carried>,
    },
}

/// Where the engine finds a value.
pub enum Given {
    /// In a word of the values that launches find.
    Word(u32),
    /// In an element of a buffer.
    Element {
        /// The buffer, by its number.
        buffer: u32,
        /// The index.
        index: Formula,
    },
}

/// A value of control: the first and the next one of a loop, or those of two branches.
pub struct Carried {
    /// The rows that name it.
    pub(super) rows: Vec<ValueId>,
    pub(super) values: [Formula; 2],
}

impl Schedule {
    /// The segments as programs of their own: each takes what it reads and returns what it may have written.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The storage between segments that the program does not see.
    pub fn hidden(&self) -> &[Hidden] {
        &self.hidden
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// How many bytes of hidden storage a grid needs.
    pub fn hidden_bytes(&self, grid: Grid) -> u64 {
        let sizes = self.hidden.iter().map(|hidden| hidden.size(grid).unwrap_or(u64::MAX));
        sizes.fold(0, u64::saturating_add)
    }

    /// Whether a 64-bit value begins at a word that the grid shares.
    pub(super) fn is_wide(&self, word: u32) -> bool {
        self.wide.binary_search(&word).is_ok()
    }

    /// Refuses a grid whose hidden storage cannot be indexed.
    pub(crate) fn check_grid(&self, grid: Grid, backend: &'static str) -> Result<()> {
        let refuse = |feature: String| {
            let help = "let each invocation do more, or use the route `native`".to_owned();
            Err(Error::Unsupported { feature, backend, help })
        };
        let (_, invocations) = counts(grid);
        if invocations > u128::from(u32::MAX) {
            return refuse(format!("a grid of {invocations} invocations between split grid barriers"));
        }
        for hidden in &self.hidden {
            let elements = hidden.size(grid).unwrap_or(u64::MAX) / hidden.element_bytes(&self.program);
            if elements > u64::from(u32::MAX) {
                return refuse(format!("hidden storage of {elements} elements"));
            }
        }
        Ok(())
    }
}

/// How many workgroups and invocations a grid has.
fn counts(grid: Grid) -> (u128, u128) {
    let workgroups = grid.workgroup_count();
    (workgroups, workgroups * grid.workgroup_size().iter().map(|n| u128::from(*n)).product::<u128>())
}

impl Hidden {
    /// How many bytes it takes on a grid; `None` where that is too many to say.
    pub fn size(self, grid: Grid) -> Option<u64> {
        let (workgroups, invocations) = counts(grid);
        let units = match self.extent {
            Extent::Grid => 1,
            Extent::Workgroup => workgroups,
            Extent::Invocation => invocations,
        };
        u64::try_from(units.checked_mul(u128::from(self.bytes))?).ok()
    }

    fn element_bytes(self, program: &Program) -> u64 {
        match self.purpose {
            Purpose::Buffer(number) => program.buffers()[number as usize].element().size() as u64,
            Purpose::Values | Purpose::Traps => self.bytes,
            _ => 4,
        }
    }

    /// Whether it must be zero when a pass begins: memory of workgroups and invocations is.
    pub(crate) fn starts_as_zeros(self) -> bool {
        matches!(self.purpose, Purpose::Buffer(_))
    }
}

impl Segment {
    /// The program.
    pub fn program(&self) -> &Program {
        self.unit.program()
    }

    /// What is compiled.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// What each buffer that the grid shares is bound to, in declaration order.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// Whether one invocation does it for the whole grid.
    pub fn is_once(&self) -> bool {
        self.is_once
    }

    /// The region of the program that it came from.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }
}

/// How a value is stored as an element. A `bool` takes a word.
pub(super) fn element_of(ty: Type) -> Element {
    match ty {
        Type::Bool | Type::U32 => Element::U32,
        Type::I32 => Element::I32,
        Type::U64 => Element::U64,
        Type::I64 => Element::I64,
        Type::F32 => Element::F32,
    }
}
