//! The memory discipline that makes generated programs deterministic.
//!
//! At each point of the program every shared buffer that can be written is in one phase, the same for all
//! invocations that share it, and only what the phase allows touches the buffer:
//!
//! - *owned*: an invocation touches only its own elements, in any way;
//! - *shared*: everybody loads any element, nobody writes;
//! - *gather*: everybody changes any element by atomics of one commutative kind, and nobody learns a result.
//!
//! Within a phase no order of the invocations matters, so a phase may last across anything. It changes only at a
//! barrier or uniform load whose scope covers everybody who shares the buffer. Loop bodies and branches end in
//! the phases they began with. Indices that are certainly out of range are harmless in every phase.

use super::literal::literal;
use vyre_foundation::rng::SplitMix64;
use vyre_foundation::{AtomicOp, BufferAccess, Element, Expr, Literal, Name, Scope};

/// A buffer of the program being generated.
pub(super) struct Buffer {
    pub(super) name: Name,
    pub(super) access: BufferAccess,
    pub(super) element: Element,
    /// The declared count; `None` leaves it open.
    pub(super) count: Option<u32>,
    /// The actual count.
    pub(super) len: u32,
    /// Whether the program uses atomics on it.
    pub(super) atomics: bool,
}

impl Buffer {
    /// Whether it has phases: others can see what one invocation writes.
    pub(super) fn is_phased(&self) -> bool {
        self.access.allows_store() && self.access != BufferAccess::Local
    }
}

/// Who shares the elements that an invocation may touch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Domain {
    /// All invocations share all elements.
    Grid,
    /// Each workgroup has a slice of a storage buffer: `pitch` elements per invocation.
    Slice { pitch: u32 },
    /// Workgroup memory.
    Group,
}

/// Which elements are an invocation's own: an injective function of its linear id, times a pitch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Ownership {
    /// How many neighbouring elements each invocation has.
    pub(super) pitch: u32,
    pub(super) order: Order,
}

/// An injective function of a linear id.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Order {
    Same,
    /// The last invocation comes first.
    Reversed,
    /// Moved up by a constant.
    Moved(u32),
    /// Multiplied by an odd constant, wrapping; a pitch of 1 only.
    Scattered(u32),
    /// Exclusive or with a constant; a pitch of 1 only.
    Crossed(u32),
}

/// What a gather phase does to an element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Gather {
    /// One commutative operation (`add` and `sub` go together).
    Combine(AtomicOp),
    /// Everybody writes the same value, plainly or where an expected value stands.
    Same { expected: Literal, value: Literal },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Mode {
    Owned(Ownership),
    Shared,
    /// What happens to the elements at even and at odd indices.
    Gather([Gather; 2]),
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Phase {
    pub(super) domain: Domain,
    pub(super) mode: Mode,
}

impl Phase {
    /// The scope of the barrier that a change from one phase to the other needs; `None` without a change.
    pub(super) fn change(self, to: Phase) -> Option<Scope> {
        if self == to {
            return None;
        }
        // Slices of another pitch overlap the old ones, so they are a change for the whole grid.
        let stays = self.domain == to.domain && self.domain != Domain::Grid;
        Some(if stays { Scope::Workgroup } else { Scope::Grid })
    }

    /// A phase that the buffer may enter at a barrier of this scope, coming from `from`.
    pub(super) fn next(rng: &mut SplitMix64, buffer: &Buffer, from: Phase, scope: Scope) -> Phase {
        let domain = match (from.domain, scope) {
            (Domain::Group, _) => Domain::Group,
            (domain, Scope::Workgroup) => domain,
            (_, Scope::Grid) => any_domain(rng),
        };
        match (domain, scope) {
            (Domain::Grid, Scope::Workgroup) => from,
            _ => Phase { domain, mode: any_mode(rng, buffer, domain) },
        }
    }

    /// The phase in which the program begins.
    pub(super) fn first(rng: &mut SplitMix64, buffer: &Buffer) -> Phase {
        let group = buffer.access == BufferAccess::Workgroup;
        let domain = if group { Domain::Group } else { any_domain(rng) };
        Phase { domain, mode: any_mode(rng, buffer, domain) }
    }

    /// An owned phase in this domain.
    pub(super) fn owned(rng: &mut SplitMix64, domain: Domain) -> Phase {
        Phase { domain, mode: Mode::Owned(any_ownership(rng, domain)) }
    }
}

fn any_domain(rng: &mut SplitMix64) -> Domain {
    if rng.chance(1, 4) { Domain::Slice { pitch: 1 + rng.below(3) as u32 } } else { Domain::Grid }
}

fn any_mode(rng: &mut SplitMix64, buffer: &Buffer, domain: Domain) -> Mode {
    let owned = |rng: &mut SplitMix64| Mode::Owned(any_ownership(rng, domain));
    if !buffer.access.allows_load() {
        return owned(rng);
    }
    match rng.below(8) {
        0..=3 => owned(rng),
        4 | 5 => Mode::Shared,
        _ if !buffer.atomics => owned(rng),
        _ => Mode::Gather(any_gather(rng, buffer.element, domain)),
    }
}

fn any_ownership(rng: &mut SplitMix64, domain: Domain) -> Ownership {
    // An element past the end of a slice belongs to another workgroup, so slices are filled exactly.
    if let Domain::Slice { pitch } = domain {
        let order = if rng.chance(1, 3) { Order::Reversed } else { Order::Same };
        return Ownership { pitch, order };
    }
    match rng.below(24) {
        0..=14 => Ownership { pitch: 1, order: Order::Same },
        15..=17 => Ownership { pitch: 2 + rng.below(3) as u32, order: Order::Same },
        18 | 19 => Ownership { pitch: 1 + rng.below(2) as u32, order: Order::Reversed },
        20 | 21 => Ownership { pitch: 1 + rng.below(2) as u32, order: Order::Moved(1 + rng.below(4) as u32) },
        22 => Ownership { pitch: 1, order: Order::Scattered(*rng.pick(&[3, 5, 7, 0xffff_ffff])) },
        _ => Ownership { pitch: 1, order: Order::Crossed(1 + rng.below(7) as u32) },
    }
}

fn any_gather(rng: &mut SplitMix64, element: Element, domain: Domain) -> [Gather; 2] {
    let even = gather_kind(rng, element);
    // Indices in a slice are relative, so their parity is not that of the element.
    let split = rng.chance(1, 4) && !matches!(domain, Domain::Slice { .. });
    [even, if split { gather_kind(rng, element) } else { even }]
}

fn gather_kind(rng: &mut SplitMix64, element: Element) -> Gather {
    const COMMUTATIVE: [AtomicOp; 6] =
        [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::And, AtomicOp::Or, AtomicOp::Xor];
    if rng.chance(1, 7) {
        let ty = element.value_type();
        return Gather::Same { expected: Literal::from_bits(ty, 0), value: literal(rng, ty) };
    }
    Gather::Combine(*rng.pick(&COMMUTATIVE))
}

impl Gather {
    /// The operations that may be used together.
    pub(super) fn operations(self) -> &'static [AtomicOp] {
        match self {
            Gather::Combine(AtomicOp::Add | AtomicOp::Sub) => &[AtomicOp::Add, AtomicOp::Sub, AtomicOp::Load],
            Gather::Combine(AtomicOp::Min) => &[AtomicOp::Min, AtomicOp::Load],
            Gather::Combine(AtomicOp::Max) => &[AtomicOp::Max, AtomicOp::Load],
            Gather::Combine(AtomicOp::And) => &[AtomicOp::And, AtomicOp::Load],
            Gather::Combine(AtomicOp::Or) => &[AtomicOp::Or, AtomicOp::Load],
            Gather::Combine(_) => &[AtomicOp::Xor, AtomicOp::Load],
            Gather::Same { .. } => {
                &[AtomicOp::Store, AtomicOp::Exchange, AtomicOp::CompareExchange, AtomicOp::Load]
            }
        }
    }

    /// The operand that every invocation must give, if it is fixed.
    pub(super) fn fixed(self) -> Option<(Literal, Literal)> {
        match self {
            Gather::Combine(_) => None,
            Gather::Same { expected, value } => Some((expected, value)),
        }
    }
}

impl Ownership {
    /// The first of the elements that the invocation with this linear id owns, of `count` invocations.
    pub(super) fn start(self, id: Expr, count: u32) -> Expr {
        let placed = match self.order {
            Order::Same => id,
            Order::Reversed => Expr::sub(Expr::u32(count.wrapping_sub(1)), id),
            Order::Moved(by) => Expr::add(id, Expr::u32(by)),
            Order::Scattered(by) => Expr::mul(id, Expr::u32(by)),
            Order::Crossed(with) => Expr::bit_xor(id, Expr::u32(with)),
        };
        if self.pitch == 1 { placed } else { Expr::mul(placed, Expr::u32(self.pitch)) }
    }
}
