//! How many elements each buffer of a dispatch has: declared, taken from the caller's bytes, or given as a
//! length.

use crate::{BufferDecl, Element, Name, Program, nearest};
use thiserror::Error;

/// The element counts of a dispatch, one per buffer of the program in declaration order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    counts: Vec<u32>,
}

/// Why the caller's bytes or lengths do not fit the program.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum InputError {
    /// Another number of inputs than the program has.
    #[error(
        "the program takes {expected} inputs, found {found}. help: give one per `read`, `uniform` and `read_write` buffer, in declaration order"
    )]
    InputCount {
        /// How many it takes.
        expected: usize,
        /// How many it got.
        found: usize,
    },
    /// The bytes are not a whole number of elements.
    #[error("`{buffer}` holds `{element}` of {} bytes each, but {bytes} bytes were given. help: give a multiple of {}", .element.size(), .element.size())]
    PartialElement {
        /// The buffer.
        buffer: Name,
        /// Its element type.
        element: Element,
        /// How many bytes were given.
        bytes: u64,
    },
    /// Another number of elements than the buffer has.
    #[error(
        "`{buffer}` has {expected} elements, but {found} were given. help: give {expected} elements, or leave the count open: `[]`"
    )]
    WrongCount {
        /// The buffer.
        buffer: Name,
        /// How many it has.
        expected: u32,
        /// How many were given.
        found: u64,
    },
    /// More elements than an index can name.
    #[error("`{buffer}` would have {count} elements, and indices are 32-bit. help: split it")]
    TooLong {
        /// The buffer.
        buffer: Name,
        /// How many elements.
        count: u64,
    },
    /// A returned or scratch buffer whose count nobody gave.
    #[error("the length of `{buffer}` is open. help: give it, for example `--len {buffer}=1024`")]
    LengthNeeded {
        /// The buffer.
        buffer: Name,
    },
    /// A length for a buffer that does not take one.
    #[error("`{buffer}` takes no length: {why}. help: leave the length out")]
    LengthUnused {
        /// The buffer.
        buffer: Name,
        /// Why.
        why: &'static str,
    },
    /// A name that no buffer has.
    #[error("the program has no buffer `{name}`. help: {}", match .nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("it declares {}", list(.declared)),
    })]
    UnknownBuffer {
        /// The name.
        name: Name,
        /// A buffer that is nearly spelled so.
        nearest: Option<Name>,
        /// The buffers that there are.
        declared: Vec<Name>,
    },
}

/// The first names of a list, for a help line.
fn list(names: &[Name]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "no buffers".to_owned(),
        n if n > SHOWN => format!("{} and {} more", shown.join(", "), n - SHOWN),
        _ => shown.join(", "),
    }
}

impl InputError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            InputError::InputCount { .. } => "I001",
            InputError::PartialElement { .. } => "I002",
            InputError::WrongCount { .. } => "I003",
            InputError::TooLong { .. } => "I004",
            InputError::LengthNeeded { .. } => "I005",
            InputError::LengthUnused { .. } => "I006",
            InputError::UnknownBuffer { .. } => "I007",
        }
    }

    /// A name that is not a buffer of the program, with the one that was likely meant.
    pub fn unknown(program: &Program, name: &str) -> InputError {
        let names = program.buffers().iter().map(|b| b.name().as_str());
        let nearest = nearest(name, names).map(Name::from);
        let declared = program.buffers().iter().map(|buffer| buffer.name().clone()).collect();
        InputError::UnknownBuffer { name: name.into(), nearest, declared }
    }
}

impl Layout {
    /// The counts of a dispatch with these input byte lengths (in declaration order) and given lengths.
    pub fn new(
        program: &Program,
        input_bytes: &[usize],
        lengths: &[(Name, u32)],
    ) -> Result<Layout, InputError> {
        let expected = program.inputs().count();
        if expected != input_bytes.len() {
            return Err(InputError::InputCount { expected, found: input_bytes.len() });
        }
        for (name, length) in lengths {
            check_length(program, name, *length)?;
        }
        let mut given = input_bytes.iter();
        let counts = program.buffers().iter().map(|buffer| {
            if buffer.consumes_input() {
                return input_count(buffer, given.next().copied().unwrap_or(0) as u64);
            }
            let length = lengths.iter().rev().find(|(name, _)| name == buffer.name()).map(|(_, n)| *n);
            let needed = || InputError::LengthNeeded { buffer: buffer.name().clone() };
            buffer.count().or(length).ok_or_else(needed)
        });
        Ok(Layout { counts: counts.collect::<Result<_, _>>()? })
    }

    /// The element counts, in declaration order.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }
}

fn input_count(buffer: &BufferDecl, bytes: u64) -> Result<u32, InputError> {
    let (name, element) = (buffer.name().clone(), buffer.element());
    let size = element.size() as u64;
    if !bytes.is_multiple_of(size) {
        return Err(InputError::PartialElement { buffer: name, element, bytes });
    }
    let found = bytes / size;
    match (buffer.count(), u32::try_from(found)) {
        (Some(expected), _) if u64::from(expected) != found => {
            Err(InputError::WrongCount { buffer: name, expected, found })
        }
        (_, Ok(count)) => Ok(count),
        (_, Err(_)) => Err(InputError::TooLong { buffer: name, count: found }),
    }
}

fn check_length(program: &Program, name: &Name, length: u32) -> Result<(), InputError> {
    let Some(buffer) = program.buffer(name) else {
        return Err(InputError::unknown(program, name));
    };
    let unused = |why| Err(InputError::LengthUnused { buffer: name.clone(), why });
    if buffer.consumes_input() {
        return unused("its length is that of the input");
    }
    match buffer.count() {
        Some(count) if count != length => unused("the program declares another one"),
        _ if !buffer.access().is_shared_by_grid() => unused("it is not shared by the grid"),
        _ => Ok(()),
    }
}
