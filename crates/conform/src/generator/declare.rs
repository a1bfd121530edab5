//! The buffers of a generated program, how long they are and what the caller puts into them.

use super::Emphasis;
use super::feature::Feature;
use super::literal;
use super::phase::Buffer;
use super::shape::Shape;
use vyre_foundation::rng::SplitMix64;
use vyre_foundation::{BufferAccess, BufferDecl, Element, Name};

/// No generated buffer is longer, so that comparing outputs stays cheap; larger grids may have as many elements as
/// invocations.
const LONGEST: u32 = 3000;

/// The buffers that the features need, one output that every program has, and some more.
pub(super) fn buffers(
    rng: &mut SplitMix64,
    shape: &Shape,
    features: &[Feature],
    wide_atomics: bool,
    emphasis: Emphasis,
) -> Vec<Buffer> {
    let mut wanted: Vec<(BufferAccess, Element, Option<bool>, bool)> = Vec::new();
    for feature in features {
        let Some((access, element)) = feature.buffer() else { continue };
        let open = match feature {
            Feature::Declare(_, _, open) => Some(*open),
            _ => None,
        };
        let empty = matches!(feature, Feature::Empty(_));
        let known = wanted.iter().any(|(a, e, _, zero)| (*a, *e) == (access, element) && !zero);
        if !known || open.is_some() || empty {
            wanted.push((access, element, open, empty));
        }
    }
    wanted.push((BufferAccess::Output, Element::U32, None, false));
    // Memory through which invocations can talk to each other.
    let common = [Element::U32, Element::I32, Element::U64, Element::F32];
    wanted.push((BufferAccess::Workgroup, *rng.pick(&common), None, false));
    let storage = *rng.pick(&[BufferAccess::Scratch, BufferAccess::ReadWrite, BufferAccess::Output]);
    wanted.push((storage, *rng.pick(&common), None, false));
    if emphasis == Emphasis::GridBarriers {
        wanted.push((BufferAccess::Local, *rng.pick(&Element::ALL), None, false));
    }
    for _ in 0..2 + rng.below(4) {
        let element = if rng.chance(1, 2) {
            *rng.pick(&[Element::U32, Element::I32, Element::U64, Element::I64, Element::F32])
        } else {
            *rng.pick(&Element::ALL)
        };
        wanted.push((*rng.pick(&BufferAccess::ALL), element, None, rng.chance(1, 40)));
    }
    // The order of declarations is the order of inputs and outputs.
    for i in (1..wanted.len()).rev() {
        wanted.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let mut buffers = Vec::new();
    for (access, element, open, empty) in wanted {
        let name = name(access, buffers.len());
        let len = if empty { 0 } else { length(rng, shape, access) };
        let open = open.unwrap_or_else(|| access.allows_open_count() && rng.chance(1, 2));
        let count = if open { None } else { Some(len) };
        let atomics = access.allows_atomics() && element.is_atomic() && (wide_atomics || element.size() == 4);
        buffers.push(Buffer { name, access, element, count, len, atomics });
    }
    fit_extent(&mut buffers, shape);
    buffers
}

fn name(access: BufferAccess, number: usize) -> Name {
    let stem = match access {
        BufferAccess::ReadOnly => "given",
        BufferAccess::Uniform => "params",
        BufferAccess::ReadWrite => "state",
        BufferAccess::Output => "out",
        BufferAccess::WriteOnly => "sink",
        BufferAccess::Scratch => "temp",
        BufferAccess::Workgroup => "shared",
        BufferAccess::Local => "own",
    };
    Name::from(format!("{stem}{number}"))
}

fn length(rng: &mut SplitMix64, shape: &Shape, access: BufferAccess) -> u32 {
    let around = match access {
        BufferAccess::Local => return 1 + rng.below(6) as u32,
        BufferAccess::Uniform => return 1 + rng.below(8) as u32,
        BufferAccess::Workgroup => shape.group(),
        _ => shape.total(),
    };
    let len = match rng.below(10) {
        0 => 1,
        1 => 5,
        2 => around.saturating_sub(1),
        3 => around + 3,
        4 => around * 2,
        5 => around * 3 + 1,
        _ => around,
    };
    len.clamp(1, LONGEST.max(shape.total()))
}

/// Makes the longest returned buffer as long as the default grid was derived from.
fn fit_extent(buffers: &mut [Buffer], shape: &Shape) {
    let Some(extent) = shape.extent else { return };
    let mut longest = 0;
    for buffer in buffers.iter_mut().filter(|b| b.access.produces_output()) {
        buffer.len = buffer.len.min(extent);
        longest = longest.max(buffer.len);
    }
    let is_main = |b: &&mut Buffer| b.access == BufferAccess::Output && b.element == Element::U32;
    if longest < extent
        && let Some(main) = buffers.iter_mut().find(is_main)
    {
        main.len = extent;
    }
    for buffer in buffers.iter_mut() {
        buffer.count = buffer.count.map(|_| buffer.len);
    }
}

impl Buffer {
    /// The declaration.
    pub(super) fn declaration(&self) -> BufferDecl {
        let open = BufferDecl::storage(&self.name, self.access, self.element);
        match self.count {
            Some(count) => open.with_count(count),
            None => open,
        }
    }
}

/// The bytes of the inputs and the lengths of open buffers that take none.
pub(super) fn contents(rng: &mut SplitMix64, buffers: &[Buffer]) -> (Vec<Vec<u8>>, Vec<(Name, u32)>) {
    let mut inputs = Vec::new();
    let mut lengths = Vec::new();
    for buffer in buffers {
        if buffer.access.consumes_input() {
            inputs.push(literal::input(rng, buffer.access, buffer.element, buffer.len));
        } else if buffer.count.is_none() {
            lengths.push((buffer.name.clone(), buffer.len));
        }
    }
    (inputs, lengths)
}
