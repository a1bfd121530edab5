//! What a backend executes: a flat list of steps over memory.
//!
//! Memory is resident, or temporary: temporaries belong to the batch, start as zeros or as the caller's bytes,
//! and end with it. Steps run in order. A step may carry a predicate, a word of memory that decides when the step
//! is reached whether it runs, so that loops and branches can be made of batches without asking the host.
//!
//! [`Batch::check`] proves that every step stays inside its memory. Every backend calls it before it does
//! anything; after it, offsets fit and no written range is bound twice.

use crate::backend::CompiledPipeline;
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::handle::{HandleError, RawHandle, check_range};
use std::borrow::Cow;
use std::sync::Arc;
use vyre_foundation::grid::Grid;

/// Memory of a batch.
#[derive(Clone, Debug)]
pub enum Temporary<'a> {
    /// Zeros.
    Zeroed {
        /// How many bytes.
        bytes: u64,
    },
    /// Bytes that no step writes. A blocking run may use them where they are.
    Borrowed(Cow<'a, [u8]>),
    /// Bytes that steps may write. The caller's own bytes stay as they are.
    Initial(Cow<'a, [u8]>),
}

impl Temporary<'_> {
    /// How large it is.
    pub fn bytes(&self) -> u64 {
        match self {
            Temporary::Zeroed { bytes } => *bytes,
            Temporary::Borrowed(bytes) | Temporary::Initial(bytes) => bytes.len() as u64,
        }
    }

    fn into_owned(self) -> Temporary<'static> {
        match self {
            Temporary::Zeroed { bytes } => Temporary::Zeroed { bytes },
            Temporary::Borrowed(bytes) => Temporary::Borrowed(Cow::Owned(bytes.into_owned())),
            Temporary::Initial(bytes) => Temporary::Initial(Cow::Owned(bytes.into_owned())),
        }
    }
}

/// Which memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Memory {
    /// A temporary of the batch, by its number.
    Temporary(usize),
    /// Resident memory.
    Resident(RawHandle),
}

/// A range of memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// Which memory.
    pub memory: Memory,
    /// Where the range starts.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

impl Span {
    /// All of a resident buffer.
    pub fn resident(handle: RawHandle) -> Span {
        Span { memory: Memory::Resident(handle), offset: 0, bytes: handle.bytes() }
    }

    pub(crate) fn overlaps(self, other: Span) -> bool {
        self.memory == other.memory
            && self.bytes > 0
            && other.bytes > 0
            && self.offset < other.offset.saturating_add(other.bytes)
            && other.offset < self.offset.saturating_add(self.bytes)
    }
}

/// A word of memory that decides whether a step runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predicate {
    /// Four bytes.
    pub word: Span,
    /// The step runs where the word is not zero; with `false`, where it is zero.
    pub holds: bool,
}

/// One launch of a compiled program.
#[derive(Clone)]
pub struct Launch {
    /// What to run.
    pub pipeline: Arc<dyn CompiledPipeline>,
    /// The memory of each slot of the pipeline's [`crate::BindingPlan`].
    pub bindings: Vec<Span>,
    /// The grid.
    pub grid: Grid,
}

/// What a step does.
#[derive(Clone)]
pub enum Action<'a> {
    /// Fills a range with a byte.
    Fill {
        /// Where.
        target: Span,
        /// The byte.
        byte: u8,
    },
    /// Writes the caller's bytes.
    Write {
        /// Where; as long as the bytes.
        target: Span,
        /// What.
        bytes: Cow<'a, [u8]>,
    },
    /// Copies a range to another one that does not overlap it.
    Copy {
        /// From where.
        from: Span,
        /// To where; equally long.
        to: Span,
    },
    /// Makes a word 1 where two ranges of one length differ, and leaves it as it is where they are equal.
    Compare {
        /// One range.
        a: Span,
        /// The other one.
        b: Span,
        /// Four bytes.
        differs: Span,
    },
    /// Gives the bytes of a range back, as the next of [`Outcome::reads`].
    Read {
        /// What.
        from: Span,
    },
    /// Runs a program.
    Launch(Launch),
}

/// A step of a batch.
#[derive(Clone)]
pub struct Step<'a> {
    /// What it does.
    pub action: Action<'a>,
    /// Whether it runs; always, without one.
    pub when: Option<Predicate>,
}

impl<'a> From<Action<'a>> for Step<'a> {
    fn from(action: Action<'a>) -> Step<'a> {
        Step { action, when: None }
    }
}

/// Steps over memory. A batch that borrows nothing (`Batch<'static>`) can be submitted.
#[derive(Clone, Default)]
pub struct Batch<'a> {
    /// Its own memory.
    pub temporaries: Vec<Temporary<'a>>,
    /// What to do, in order.
    pub steps: Vec<Step<'a>>,
    /// At most this many threads, on a backend that has threads.
    pub threads: Option<usize>,
    /// When a submitted batch gives up. A blocking run is given its deadline as an argument.
    pub deadline: Deadline,
}

/// What a batch gives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The bytes of each [`Action::Read`], in order; `None` where its predicate did not hold.
    pub reads: Vec<Option<Vec<u8>>>,
    /// How long the launches took on the device, where it can tell.
    pub device_nanos: Option<u64>,
}

impl<'a> Batch<'a> {
    /// Adds memory.
    pub fn temporary(&mut self, temporary: Temporary<'a>) -> Span {
        let bytes = temporary.bytes();
        self.temporaries.push(temporary);
        Span { memory: Memory::Temporary(self.temporaries.len() - 1), offset: 0, bytes }
    }

    /// Adds a step that always runs.
    pub fn push(&mut self, action: Action<'a>) {
        self.steps.push(action.into());
    }

    /// The same batch with bytes of its own.
    pub fn into_owned(self) -> Batch<'static> {
        let action = |action| match action {
            Action::Write { target, bytes } => {
                Action::Write { target, bytes: Cow::Owned(bytes.into_owned()) }
            }
            Action::Fill { target, byte } => Action::Fill { target, byte },
            Action::Copy { from, to } => Action::Copy { from, to },
            Action::Compare { a, b, differs } => Action::Compare { a, b, differs },
            Action::Read { from } => Action::Read { from },
            Action::Launch(launch) => Action::Launch(launch),
        };
        Batch {
            temporaries: self.temporaries.into_iter().map(Temporary::into_owned).collect(),
            steps: self.steps.into_iter().map(|s| Step { action: action(s.action), when: s.when }).collect(),
            threads: self.threads,
            deadline: self.deadline,
        }
    }

    /// Every range that a step names, with whether the step writes it.
    fn spans(step: &Step<'_>) -> impl Iterator<Item = (Span, bool)> {
        let (fixed, launch) = match &step.action {
            Action::Fill { target, .. } | Action::Write { target, .. } => {
                ([Some((*target, true)), None, None], None)
            }
            Action::Copy { from, to } => ([Some((*from, false)), Some((*to, true)), None], None),
            Action::Compare { a, b, differs } => {
                ([Some((*a, false)), Some((*b, false)), Some((*differs, true))], None)
            }
            Action::Read { from } => ([Some((*from, false)), None, None], None),
            Action::Launch(launch) => ([None; 3], Some(launch)),
        };
        let bound = launch.into_iter().flat_map(|launch| {
            let written = launch.pipeline.plan().slots().iter().map(|slot| slot.access().allows_store());
            launch.bindings.iter().copied().zip(written)
        });
        let predicate = step.when.map(|when| (when.word, false));
        fixed.into_iter().flatten().chain(bound).chain(predicate)
    }

    /// Proves that the batch can be executed without touching a byte that it does not name. Whether the handles
    /// are alive is for the table that keeps them.
    pub fn check(&self) -> Result<()> {
        for (number, step) in self.steps.iter().enumerate() {
            let wrong = |what: &str| Err(Error::Batch { step: number, what: what.to_owned() });
            if let Action::Launch(launch) = &step.action {
                check_bindings(launch, number)?;
            }
            for (span, written) in Batch::spans(step) {
                self.check_span(number, span, written)?;
            }
            match &step.action {
                Action::Write { target, bytes } if target.bytes != bytes.len() as u64 => {
                    return wrong("the range and the bytes differ in length");
                }
                Action::Copy { from, to } if from.bytes != to.bytes => {
                    return wrong("the two ranges differ in length");
                }
                Action::Copy { from, to } if from.overlaps(*to) => return wrong("the ranges overlap"),
                Action::Compare { a, b, .. } if a.bytes != b.bytes => {
                    return wrong("the two ranges differ in length");
                }
                Action::Compare { a, b, differs }
                    if differs.bytes != 4 || differs.overlaps(*a) || differs.overlaps(*b) =>
                {
                    return wrong("the flag is a word outside the ranges");
                }
                _ => {}
            }
            if step.when.is_some_and(|when| when.word.bytes != 4) {
                return wrong("the predicate is not a word");
            }
        }
        Ok(())
    }

    fn check_span(&self, step: usize, span: Span, written: bool) -> Result<()> {
        match span.memory {
            Memory::Resident(handle) => check_range(handle, span.offset, span.bytes),
            Memory::Temporary(number) => {
                let wrong = |what: &str| Err(Error::Batch { step, what: what.to_owned() });
                let Some(temporary) = self.temporaries.get(number) else {
                    return wrong("there is no such temporary");
                };
                match span.offset.checked_add(span.bytes) {
                    Some(end) if end <= temporary.bytes() => {}
                    _ => return wrong("the range leaves its temporary"),
                }
                if written && matches!(temporary, Temporary::Borrowed(_)) {
                    return wrong("a borrowed temporary is written");
                }
                Ok(())
            }
        }
    }

    /// The last step that names a temporary.
    pub fn last_use(&self, temporary: usize) -> Option<usize> {
        let named = |(span, _): (Span, bool)| span.memory == Memory::Temporary(temporary);
        self.steps.iter().rposition(|step| Batch::spans(step).any(named))
    }

    /// The resident buffers that the steps name.
    pub fn handles(&self) -> impl Iterator<Item = RawHandle> {
        self.steps.iter().flat_map(Batch::spans).filter_map(|(span, _)| match span.memory {
            Memory::Resident(handle) => Some(handle),
            Memory::Temporary(_) => None,
        })
    }
}

/// Checks that bindings fit their slots, and that nothing written is bound twice.
fn check_bindings(launch: &Launch, step: usize) -> Result<()> {
    let slots = launch.pipeline.plan().slots();
    if slots.len() != launch.bindings.len() {
        let what =
            format!("{} buffers are bound where the program has {}", launch.bindings.len(), slots.len());
        return Err(Error::Batch { step, what });
    }
    for (slot, span) in slots.iter().zip(&launch.bindings) {
        let size = slot.element().size() as u64;
        let expected = slot.count().map(|count| u64::from(count) * size);
        let whole = span.bytes.is_multiple_of(size) && span.bytes / size <= u64::from(u32::MAX);
        if whole && expected.is_none_or(|expected| expected == span.bytes) {
            // Atomics and wide loads want the natural alignment of the element.
            if span.offset.is_multiple_of(size) {
                continue;
            }
            let what = format!(
                "`{}` is bound at offset {}, which its elements do not fit",
                slot.name(),
                span.offset
            );
            return Err(Error::Batch { step, what });
        }
        let expected = expected.unwrap_or(span.bytes / size * size);
        return Err(match span.memory {
            Memory::Resident(handle) => HandleError::Size {
                handle,
                expected,
                given: span.bytes,
                help: "bind exactly the bytes of the buffer's elements",
            }
            .into(),
            Memory::Temporary(_) => {
                let what = format!("`{}` takes {expected} bytes and is bound to {}", slot.name(), span.bytes);
                Error::Batch { step, what }
            }
        });
    }
    for (i, a) in launch.bindings.iter().enumerate() {
        for (j, b) in launch.bindings.iter().enumerate().skip(i + 1) {
            let written = slots[i].access().allows_store() || slots[j].access().allows_store();
            if written && a.overlaps(*b) {
                return Err(match a.memory {
                    Memory::Resident(handle) => HandleError::Aliased(handle).into(),
                    Memory::Temporary(_) => {
                        let what = format!("`{}` and `{}` share memory", slots[i].name(), slots[j].name());
                        Error::Batch { step, what }
                    }
                });
            }
        }
    }
    Ok(())
}
