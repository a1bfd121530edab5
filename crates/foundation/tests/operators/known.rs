//! Results worked out by hand or long known, so that the oracle itself is not taken on trust.

use crate::exact::{self, BF16, F16, F32, Rounding};
use crate::integers;
use vyre_foundation::{BinOp, Type};

const ONE: u32 = 0x3f80_0000;
const MINUS: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const LARGEST: u32 = 0x7f7f_ffff;

#[test]
fn sums_products_and_quotients() {
    // 0.1 + 0.2 and 0.1 * 0.1 on the nearest f32; 1/3; 2/3.
    assert_eq!(exact::add(0x3dcc_cccd, 0x3e4c_cccd), 0x3e99_999a);
    assert_eq!(exact::mul(0x3dcc_cccd, 0x3dcc_cccd), 0x3c23_d70b);
    assert_eq!(exact::div(ONE, 0x4040_0000), 0x3eaa_aaab);
    assert_eq!(exact::div(0x4000_0000, 0x4040_0000), 0x3f2a_aaab);
    // 2^24 + 1 is a tie and goes to even; 2^24 + 3 does too, upwards.
    assert_eq!(exact::add(0x4b80_0000, ONE), 0x4b80_0000);
    assert_eq!(exact::add(0x4b80_0001, ONE), 0x4b80_0002);
    // The signs of zero sums.
    assert_eq!(exact::add(MINUS, MINUS), MINUS);
    assert_eq!(exact::add(MINUS, 0), 0);
    assert_eq!(exact::sub(ONE, ONE), 0);
    assert_eq!(exact::sub(MINUS, 0), MINUS);
    // Half of the least subnormal goes to even: 1/2 to 0, 3/2 to 2.
    assert_eq!(exact::mul(1, 0x3f00_0000), 0);
    assert_eq!(exact::mul(3, 0x3f00_0000), 2);
    assert_eq!(exact::div(MINUS | 1, 0x4000_0000), MINUS);
    // Half a unit above the largest number is infinite, anything less is not.
    assert_eq!(exact::add(LARGEST, 0x7300_0000), INFINITY);
    assert_eq!(exact::add(LARGEST, 0x72ff_ffff), LARGEST);
    assert_eq!(exact::div(ONE, MINUS), INFINITY | MINUS);
    assert!(F32.is_nan(exact::div(0, MINUS)));
    assert!(F32.is_nan(exact::mul(INFINITY, 0)));
    assert!(F32.is_nan(exact::sub(INFINITY, INFINITY)));
}

#[test]
fn fused_and_roots() {
    // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 is a tie: 2^-80 more or less decides it, and through an f64
    // it would be lost.
    let (a, tiny) = (0x3f80_0800, 0x1780_0000);
    assert_eq!(exact::fma(a, a, 0), 0x3f80_1000);
    assert_eq!(exact::fma(a, a, tiny), 0x3f80_1001);
    assert_eq!(exact::fma(a, a, tiny | MINUS), 0x3f80_1000);
    // What the product's rounding loses: -(2^-24).
    assert_eq!(exact::fma(a, a, 0xbf80_1000), 0x3380_0000);
    // An overflowing product comes back.
    assert_eq!(exact::fma(0x7f00_0000, 0x4000_0000, LARGEST | MINUS), 0x7380_0000);
    assert_eq!(exact::fma(LARGEST, LARGEST, INFINITY | MINUS), INFINITY | MINUS);
    assert!(F32.is_nan(exact::fma(INFINITY, ONE, INFINITY | MINUS)));
    // The roots of 2, 3, 4, -0 and of the least subnormal, 2^-149; 1 / sqrt(2) and 1 / sqrt(3).
    assert_eq!(exact::sqrt(0x4000_0000), 0x3fb5_04f3);
    assert_eq!(exact::sqrt(0x4040_0000), 0x3fdd_b3d7);
    assert_eq!(exact::sqrt(0x4080_0000), 0x4000_0000);
    assert_eq!(exact::sqrt(MINUS), MINUS);
    assert_eq!(exact::sqrt(1), 0x1a35_04f3);
    assert!(F32.is_nan(exact::sqrt(MINUS | 1)));
    assert_eq!(exact::inverse_sqrt(0x4000_0000), 0x3f35_04f3);
    assert_eq!(exact::inverse_sqrt(0x4080_0000), 0x3f00_0000);
    assert_eq!(exact::inverse_sqrt(MINUS), INFINITY | MINUS);
    assert_eq!(exact::inverse_sqrt(INFINITY), 0);
}

#[test]
fn roundings_and_conversions() {
    use Rounding::{Down, NearestEven, TowardZero, Up};
    let minus_half = 0xbf00_0000;
    for (mode, right) in [(Down, 0xbf80_0000), (Up, MINUS), (TowardZero, MINUS), (NearestEven, MINUS)] {
        assert_eq!(exact::round_to_integer(minus_half, mode), right);
    }
    // 0.5, 1.5, 2.5 and the largest number below 0.5.
    let halves = [(0x3f00_0000, 0), (0x3fc0_0000, 0x4000_0000), (0x4020_0000, 0x4000_0000)];
    for (half, right) in halves.into_iter().chain([(0x3eff_ffff, 0)]) {
        assert_eq!(exact::round_to_integer(half, NearestEven), right);
    }
    // i32::MAX and u64::MAX round up to powers of two; 2^24 + 1 to even.
    assert_eq!(exact::from_integer(i32::MAX.into()), 0x4f00_0000);
    assert_eq!(exact::from_integer(u64::MAX.into()), 0x5f80_0000);
    assert_eq!(exact::from_integer(-(1 << 24) - 1), 0xcb80_0000);
    let (least, greatest) = integers::ends(Type::I32);
    assert_eq!((least, greatest), (i32::MIN.into(), i32::MAX.into()));
    assert_eq!(exact::to_integer(0x4f00_0000, least, greatest), greatest);
    assert_eq!(exact::to_integer(0xbfff_ffff, least, greatest), -1);
    assert_eq!(exact::to_integer(0xffc0_0000, least, greatest), 0);
    // f16: 1/3, 65504, the first that overflows, the least subnormal and half of it.
    let f16 = [(0x3eaa_aaab, 0x3555), (0x477f_e000, 0x7bff), (0x477f_efff, 0x7bff)];
    let f16_edges = [(0x477f_f000, 0x7c00), (0x3380_0000, 1), (0x3300_0000, 0), (0x3300_0001, 1)];
    for (bits, right) in f16.into_iter().chain(f16_edges).chain([(0xffff_ffff, 0x7e00)]) {
        assert_eq!(exact::convert(&F32, &F16, bits), right, "{bits:#010x}");
    }
    for (bits, right) in [(0x3eaa_aaab, 0x3eab), (LARGEST, 0x7f80), (0xff80_0001, 0x7fc0)] {
        assert_eq!(exact::convert(&F32, &BF16, bits), right, "{bits:#010x}");
    }
    assert_eq!(exact::convert(&F16, &F32, 0x0001), 0x3380_0000);
    assert_eq!(exact::convert(&F16, &F32, 0xc000), 0xc000_0000);
}

#[test]
fn integer_operators() {
    let i64_least = 1 << 63;
    let known = [
        (BinOp::MulHi, Type::U64, u64::MAX, u64::MAX, u64::MAX - 1),
        (BinOp::MulHi, Type::I64, u64::MAX, u64::MAX, 0),
        (BinOp::MulHi, Type::I64, i64_least, i64_least, 1 << 62),
        (BinOp::MulHi, Type::I64, i64_least, 1, u64::MAX),
        (BinOp::MulHi, Type::I32, 0x8000_0000, 0x7fff_ffff, 0xc000_0000),
        (BinOp::Mul, Type::U32, 0xffff_ffff, 0xffff_ffff, 1),
        (BinOp::Div, Type::I32, 0x8000_0000, 0xffff_ffff, 0x8000_0000),
        (BinOp::Rem, Type::I32, 0x8000_0000, 0xffff_ffff, 0),
        (BinOp::Div, Type::I32, 0xffff_fff9, 2, 0xffff_fffd),
        (BinOp::Rem, Type::I32, 0xffff_fff9, 2, 0xffff_ffff),
        (BinOp::Div, Type::U64, 7, 0, 7),
        (BinOp::Rem, Type::U64, 7, 0, 0),
        (BinOp::Shr, Type::I32, 0x8000_0000, 31, 0xffff_ffff),
        (BinOp::Shl, Type::U32, 1, 33, 2),
        (BinOp::Shl, Type::I32, 1, 0xffff_ffff, 0x8000_0000),
        (BinOp::RotL, Type::U32, 0x8000_0001, 1, 3),
        (BinOp::RotR, Type::U64, 1, 1, i64_least),
        (BinOp::AbsDiff, Type::I32, 0x8000_0000, 0x7fff_ffff, 0xffff_ffff),
        (BinOp::SatAdd, Type::I32, 0x7fff_ffff, 1, 0x7fff_ffff),
        (BinOp::SatSub, Type::I64, i64_least, 1, i64_least),
        (BinOp::SatSub, Type::U32, 1, 2, 0),
    ];
    for (op, ty, a, b, right) in known {
        assert_eq!(integers::binary(op, ty, a, b), Some(right), "{op:?} on {ty}: {a:#x} {b:#x}");
    }
}
