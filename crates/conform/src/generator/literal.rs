//! Constants and input data: mostly the values at which operations change their behaviour.

use vyre_foundation::rng::SplitMix64;
use vyre_foundation::{BufferAccess, Element, Expr, Literal, Type, element};

/// Bit patterns of integers at which something happens: ends of ranges, shift widths, alternating bits.
const INTEGERS: [u64; 20] = [
    0,
    1,
    2,
    3,
    5,
    7,
    31,
    32,
    33,
    63,
    64,
    255,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x5555_5555_5555_5555,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Floats at which something happens: zeros, ties, subnormals, ends of the integer ranges, overflow to
/// infinity in `f16` and `bf16`.
pub(super) const FLOATS: [f32; 36] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.1,
    0.33333334,
    -7.25,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    1e-45,
    -1e-45,
    5.877472e-39,
    1.1754942e-38,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    8388607.5,
    16777216.0,
    -16777218.0,
    2147483600.0,
    2147483648.0,
    -2147483648.0,
    4294967296.0,
    9.223372e18,
    -9.223372e18,
    1.8446744e19,
    65504.0,
    65520.0,
    2049.0,
    5.9604645e-8,
];

/// A constant of this type.
pub(super) fn literal(rng: &mut SplitMix64, ty: Type) -> Literal {
    let bits = match ty {
        Type::F32 => match rng.below(8) {
            0 => rng.next_u64(),
            1 | 2 => u64::from((rng.below(64) as f32 / 4.0 - 4.0).to_bits()),
            _ => u64::from(rng.pick(&FLOATS).to_bits()),
        },
        _ => integer_bits(rng),
    };
    Literal::from_bits(ty, bits)
}

fn integer_bits(rng: &mut SplitMix64) -> u64 {
    match rng.below(8) {
        0 => rng.next_u64(),
        1 | 2 => rng.below(16),
        3 => rng.below(16).wrapping_neg(),
        _ => *rng.pick(&INTEGERS),
    }
}

/// A constant expression of this type.
pub(super) fn constant(rng: &mut SplitMix64, ty: Type) -> Expr {
    Expr::Literal(literal(rng, ty))
}

/// The bytes of an input.
pub(super) fn input(rng: &mut SplitMix64, access: BufferAccess, kind: Element, count: u32) -> Vec<u8> {
    let mut bytes = vec![0; count as usize * kind.size()];
    let small = rng.chance(1, 3);
    // Arbitrary bits include NaNs that are not canonical. They may stand only where nothing returns them
    // unchanged, because text cannot write them.
    let raw = access != BufferAccess::ReadWrite && rng.chance(1, 4);
    for place in bytes.chunks_exact_mut(kind.size()) {
        let bits = match kind.value_type() {
            Type::F32 if small => u64::from((rng.below(32) as f32 / 2.0 - 4.0).to_bits()),
            _ if small => rng.below(16),
            ty => literal(rng, ty).bits(),
        };
        if raw {
            place.copy_from_slice(&rng.next_u64().to_le_bytes()[..kind.size()]);
        } else {
            element::store(kind, bits, place);
        }
    }
    bytes
}
