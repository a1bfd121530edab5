//! The catalogue of what a program can hold, dealt out to seeds in turn.
//!
//! Random choice alone leaves rare combinations uncovered for a long time. So each seed also takes the next few
//! entries of the catalogue and works them into its program: consecutive seeds cover all of it.

use vyre_foundation::{
    AtomicOp, BinOp, BufferAccess, Element, Literal, MemoryOrdering, Scope, SubgroupOp, Type, UnOp,
};

/// Something that a program must hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Feature {
    Binary(BinOp, Type),
    Unary(UnOp, Type),
    Select(Type),
    Clamp(Type),
    Cast(Type, Type),
    Bitcast(Type, Type),
    Fma,
    Constant(Literal),
    Load(BufferAccess, Element),
    Store(BufferAccess, Element),
    Length(BufferAccess),
    Atomic(AtomicOp, BufferAccess, Element),
    Ordering(AtomicOp, MemoryOrdering),
    UniformLoad(Scope, BufferAccess, Element),
    Ballot,
    Shuffle(Type),
    Reduce(SubgroupOp, Type),
    /// A declaration with an open (`true`) or static count.
    Declare(BufferAccess, Element, bool),
    /// A buffer without elements.
    Empty(BufferAccess),
    /// A function with this result.
    Function(Type),
}

/// How many entries of the catalogue a seed takes.
const PER_SEED: u64 = 6;

/// Every how many seeds a program uses what only some backends have.
const CAPABILITIES_EVERY: u64 = 4;

/// Whether the program of a seed may use what only some backends have: atomics of 64 bits and orderings other
/// than `relaxed`. The others run everywhere.
pub(super) fn uses_capabilities(seed: u64) -> bool {
    seed.is_multiple_of(CAPABILITIES_EVERY)
}

/// The features of a seed.
pub(super) fn for_seed(seed: u64) -> Vec<Feature> {
    let capability = uses_capabilities(seed);
    let entries: Vec<_> = catalogue().into_iter().filter(|f| f.is_capability() == capability).collect();
    let length = entries.len() as u64;
    // The position of the seed among those that take from the same part of the catalogue.
    let round = seed / CAPABILITIES_EVERY;
    let turn = if capability { round } else { seed - round - 1 };
    let first = (turn % length) * PER_SEED;
    // A stride that shares no factor with the length mixes the kinds in each program and still meets all.
    let stride = (length / 3..).find(|n| greatest_common_divisor(*n, length) == 1).unwrap_or(1);
    (first..first + PER_SEED).map(|i| entries[(i * stride % length) as usize]).collect()
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn catalogue() -> Vec<Feature> {
    let mut all = Vec::new();
    operators(&mut all);
    memory(&mut all);
    atomics(&mut all);
    subgroups(&mut all);
    all
}

fn operators(all: &mut Vec<Feature>) {
    for ty in Type::ALL {
        let binary = BinOp::ALL.into_iter().filter(|op| op.result(ty).is_some());
        all.extend(binary.map(|op| Feature::Binary(op, ty)));
        let unary = UnOp::ALL.into_iter().filter(|op| op.result(ty).is_some());
        all.extend(unary.map(|op| Feature::Unary(op, ty)));
        all.extend([Feature::Select(ty), Feature::Function(ty)]);
        if ty != Type::Bool {
            all.push(Feature::Clamp(ty));
        }
        for to in Type::ALL {
            all.push(Feature::Cast(ty, to));
            if ty.bits() == to.bits() && ty != Type::Bool {
                all.push(Feature::Bitcast(ty, to));
            }
        }
    }
    all.push(Feature::Fma);
    for ty in [Type::U32, Type::I32, Type::U64, Type::I64] {
        let top = 1u64 << (ty.bits() - 1);
        let patterns = [0, 1, top - 1, top, u64::MAX, 0xabcd];
        all.extend(patterns.map(|bits| Feature::Constant(Literal::from_bits(ty, bits))));
    }
    all.extend([true, false].map(|value| Feature::Constant(Literal::Bool(value))));
    let float = |value: &f32| Feature::Constant(Literal::from_bits(Type::F32, u64::from(value.to_bits())));
    all.extend(super::literal::FLOATS.iter().map(float));
}

fn memory(all: &mut Vec<Feature>) {
    for access in BufferAccess::ALL {
        all.extend([Feature::Empty(access), Feature::Length(access)]);
        for element in Element::ALL {
            all.push(Feature::Declare(access, element, false));
            if access.allows_open_count() {
                all.push(Feature::Declare(access, element, true));
            }
            if access.allows_load() {
                all.push(Feature::Load(access, element));
            }
            if access.allows_store() {
                all.push(Feature::Store(access, element));
            }
            let loads = access.allows_load() && access != BufferAccess::Local;
            if loads && access != BufferAccess::Workgroup {
                all.push(Feature::UniformLoad(Scope::Grid, access, element));
            }
            if loads {
                all.push(Feature::UniformLoad(Scope::Workgroup, access, element));
            }
        }
    }
}

fn atomics(all: &mut Vec<Feature>) {
    for op in AtomicOp::ALL {
        for access in BufferAccess::ALL.into_iter().filter(|access| access.allows_atomics()) {
            let elements = Element::ALL.into_iter().filter(|element| element.is_atomic());
            all.extend(elements.map(|element| Feature::Atomic(op, access, element)));
        }
        let orderings = MemoryOrdering::ALL.into_iter().filter(|ordering| ordering.is_legal_for(op));
        all.extend(orderings.map(|ordering| Feature::Ordering(op, ordering)));
    }
}

fn subgroups(all: &mut Vec<Feature>) {
    all.push(Feature::Ballot);
    all.extend(Type::ALL.map(Feature::Shuffle));
    for ty in Type::ALL.into_iter().filter(|ty| ty.is_integer()) {
        all.extend(SubgroupOp::ALL.map(|op| Feature::Reduce(op, ty)));
    }
}

impl Feature {
    /// Whether only some backends have it.
    fn is_capability(self) -> bool {
        match self {
            Feature::Atomic(_, _, element) => element.size() == 8,
            Feature::Ordering(_, ordering) => ordering != MemoryOrdering::Relaxed,
            _ => false,
        }
    }

    /// The buffer that it needs.
    pub(super) fn buffer(self) -> Option<(BufferAccess, Element)> {
        match self {
            Feature::Load(access, element)
            | Feature::Store(access, element)
            | Feature::Atomic(_, access, element)
            | Feature::UniformLoad(_, access, element)
            | Feature::Declare(access, element, _) => Some((access, element)),
            Feature::Empty(access) | Feature::Length(access) => Some((access, Element::I32)),
            Feature::Ordering(..) => Some((BufferAccess::Output, Element::U32)),
            _ => None,
        }
    }
}
