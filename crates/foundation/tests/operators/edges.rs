//! The edge values of each type: where carries, signs, roundings and thresholds lie.

use crate::integers;
use vyre_foundation::Type;

/// The magnitudes of the `f32` edges; each stands with both signs.
const F32_MAGNITUDES: &[u32] = &[
    // Zero; the subnormals' ends and middle; the smallest normals.
    0x0000_0000,
    0x0000_0001,
    0x0000_0002,
    0x0000_0003,
    0x0000_0005,
    0x003f_ffff,
    0x0040_0000,
    0x0040_0001,
    0x007f_fffe,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x00ff_ffff,
    0x0100_0000,
    0x0100_0001,
    // Whose products lie half way between subnormals, or a hair off: near 2^-75, 2^-63 and 2^-87.
    0x19ff_ffff,
    0x1a00_0000,
    0x1a00_0001,
    0x1a40_0000,
    0x1a7f_ffff,
    0x1a80_0000,
    0x1400_0001,
    0x2000_0000,
    0x203f_ffff,
    // Far below a sum, for sticky bits alone: 2^-80, 2^-64, 2^-30.
    0x1780_0000,
    0x1f80_0000,
    0x3080_0000,
    // Whose reciprocals are subnormal, or just not: 2^126, 2^127 and neighbours.
    0x7e7f_ffff,
    0x7e80_0000,
    0x7e80_0001,
    0x7f00_0000,
    0x7f00_0001,
    // f16: half the least subnormal, the subnormals, the step to the normals.
    0x32ff_ffff,
    0x3300_0000,
    0x3300_0001,
    0x337f_ffff,
    0x3380_0000,
    0x3380_0001,
    0x33c0_0000,
    0x387f_c000,
    0x387f_dfff,
    0x387f_e000,
    0x387f_e001,
    0x3880_0000,
    // Units in the last place of 1.
    0x3400_0000,
    0x3480_0000,
    // Fractions for the roundings to integers.
    0x3e80_0000,
    0x3eaa_aaab,
    0x3eff_ffff,
    0x3f00_0000,
    0x3f00_0001,
    0x3f40_0000,
    0x3f7f_fffe,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x3f80_0002,
    0x3fc0_0000,
    0x3fff_ffff,
    0x4000_0000,
    0x4020_0000,
    0x4040_0000,
    0x4049_0fdb,
    0x4060_0000,
    0x4080_0000,
    // 1 + 2^-12: its square is a tie of two f32, which anything tiny must break.
    0x3f80_0800,
    // f16 and bf16 ties around 1, towards even and towards odd.
    0x3f80_0fff,
    0x3f80_1000,
    0x3f80_1001,
    0x3f80_3000,
    0x3f80_7fff,
    0x3f80_8000,
    0x3f80_8001,
    0x3f81_8000,
    // Where halves, then units, stop: 2^22 + 0.5 and + 1.5, 2^23 - 0.5, 2^23, 2^24 and neighbours.
    0x4a80_0001,
    0x4a80_0003,
    0x4aff_ffff,
    0x4b00_0000,
    0x4b00_0001,
    0x4b7f_ffff,
    0x4b80_0000,
    0x4b80_0001,
    0x4b80_0002,
    // The integers' ends: 2^31, 2^32, 2^63, 2^64 and neighbours.
    0x4eff_ffff,
    0x4f00_0000,
    0x4f00_0001,
    0x4f7f_ffff,
    0x4f80_0000,
    0x4f80_0001,
    0x5eff_ffff,
    0x5f00_0000,
    0x5f00_0001,
    0x5f7f_ffff,
    0x5f80_0000,
    0x5f80_0001,
    // f16 overflow: 65504, the last that rounds to it, 65520, 65536.
    0x477f_e000,
    0x477f_efff,
    0x477f_f000,
    0x477f_f001,
    0x4780_0000,
    // Half a unit of the largest number, the largest numbers, bf16 overflow.
    0x72ff_ffff,
    0x7300_0000,
    0x7380_0000,
    0x7f7f_0000,
    0x7f7f_7fff,
    0x7f7f_8000,
    0x7f7f_8001,
    0x7f7f_fffe,
    0x7f7f_ffff,
    // Infinity; signalling NaNs, quiet NaNs, with payload and without.
    0x7f80_0000,
    0x7f80_0001,
    0x7fa0_1234,
    0x7fc0_0000,
    0x7fc1_2345,
    0x7fff_ffff,
];

/// The magnitudes of which `fma` takes all triples.
const FMA_MAGNITUDES: &[u32] = &[
    0x0000_0000,
    0x0000_0001,
    0x0000_0003,
    0x0040_0000,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x1780_0000,
    0x1a00_0000,
    0x1a00_0001,
    0x1a40_0000,
    0x1f80_0000,
    0x2000_0000,
    0x203f_ffff,
    0x3380_0000,
    0x3400_0000,
    0x3f00_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x3f80_0800,
    0x3f80_0801,
    0x3fc0_0000,
    0x3fff_ffff,
    0x4000_0000,
    0x4040_0000,
    0x4b7f_ffff,
    0x4b80_0001,
    0x5f7f_ffff,
    0x5f80_0000,
    0x7300_0000,
    0x7e80_0000,
    0x7f00_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7f80_0001,
    0x7fc1_2345,
];

/// Every magnitude with both signs.
fn signed(magnitudes: &[u32]) -> Vec<u64> {
    magnitudes.iter().flat_map(|&m| [u64::from(m), u64::from(m | 1 << 31)]).collect()
}

/// The register bits of the edge values of a type, each once.
pub(crate) fn of(ty: Type) -> Vec<u64> {
    match ty {
        Type::Bool => vec![0, 1],
        Type::F32 => signed(F32_MAGNITUDES),
        _ => integer(ty),
    }
}

/// The edge values of `fma`.
pub(crate) fn of_fma() -> Vec<u64> {
    signed(FMA_MAGNITUDES)
}

/// The ends, small numbers and bit patterns, and every power of two with its neighbours and
/// negatives.
fn integer(ty: Type) -> Vec<u64> {
    let (least, greatest) = integers::ends(ty);
    let mut values = vec![0, 3, 5, 7, 10, 100, least, least + 1, greatest, greatest - 1];
    values.extend([0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa, 0x3333_cccc_0f0f_f0f0]);
    // Products and sums of f32 significands: 24 bits all set, and a tie of the cast to f32.
    values.extend([0x00ff_ffff, 0x01ff_ffff, 0x00ff_ffff_8000_0000, 0x0100_0001_8000_0000]);
    for power in 0..integers::width(ty) {
        let p = 1 << power;
        values.extend([p, p - 1, p + 1, -p, -p - 1, 1 - p]);
    }
    let mut bits: Vec<u64> = values.into_iter().map(|v| integers::wrap(ty, v)).collect();
    bits.sort_unstable();
    bits.dedup();
    bits
}
