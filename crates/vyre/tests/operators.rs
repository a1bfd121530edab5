//! Every operator and method of values, against plain Rust.

mod common;

use common::{Plain, bytes, outputs, values};
use vyre::build::{Scalar, Storable};
use vyre::prelude::*;
use vyre_reference::Options;

/// What `f` computes for each pair.
fn map2<A, R>(pairs: &[(A, A)], f: impl Fn(Value<A>, Value<A>) -> Value<R>) -> Vec<R>
where
    A: Plain + Scalar + Storable<Value = A>,
    R: Plain + Scalar + Storable<Value = R>,
{
    let program = vyre::program("map", |k| {
        let (a, b) = (k.read::<A>("a"), k.read::<A>("b"));
        let out = k.output::<R>("out").with_count(pairs.len() as u32);
        let i = k.global_id().x;
        out.store(i, f(a.load(i), b.load(i)));
    })
    .unwrap();
    let (a, b): (Vec<A>, Vec<A>) = pairs.iter().copied().unzip();
    values(&outputs(&program, &[bytes(&a), bytes(&b)], &Options::default())[0])
}

fn check2<A, R>(pairs: &[(A, A)], f: impl Fn(Value<A>, Value<A>) -> Value<R>, plain: impl Fn(A, A) -> R)
where
    A: Plain + Scalar + Storable<Value = A>,
    R: Plain + Scalar + Storable<Value = R>,
{
    let expected: Vec<R> = pairs.iter().map(|(a, b)| plain(*a, *b)).collect();
    for ((pair, found), expected) in pairs.iter().zip(map2(pairs, f)).zip(expected) {
        // As bits: a NaN equals itself here.
        assert_eq!(found.bytes(), expected.bytes(), "{pair:?}: {found:?}, not {expected:?}");
    }
}

/// A comparison, as a number.
fn check_bool<A>(
    pairs: &[(A, A)],
    f: impl Fn(Value<A>, Value<A>) -> Value<bool>,
    plain: impl Fn(A, A) -> bool,
) where
    A: Plain + Scalar + Storable<Value = A>,
{
    check2(pairs, |a, b| f(a, b).cast::<u32>(), |a, b| u32::from(plain(a, b)));
}

fn pairs<A: Copy>(edge: &[A]) -> Vec<(A, A)> {
    edge.iter().flat_map(|a| edge.iter().map(|b| (*a, *b))).collect()
}

macro_rules! integer_tests {
    ($($ty:ident $unsigned:ident $wide:ident),*) => {$(
        #[test]
        fn $ty() {
            type T = $ty;
            let pairs = pairs::<T>(&[0, 1, 2, 7, 31, 100, T::MAX / 2, T::MAX, T::MIN, T::MIN + 1, T::MAX - 6]);
            let p = pairs.as_slice();
            check2(p, |a, b| a + b, T::wrapping_add);
            check2(p, |a, b| a - b, T::wrapping_sub);
            check2(p, |a, b| a * b, T::wrapping_mul);
            check2(p, |a, b| a / b, |a, b| if b == 0 { a } else { a.wrapping_div(b) });
            check2(p, |a, b| a % b, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) });
            check2(p, |a, b| a & b, |a, b| a & b);
            check2(p, |a, b| a | b, |a, b| a | b);
            check2(p, |a, b| a ^ b, |a, b| a ^ b);
            check2(p, |a, _| !a, |a, _| !a);
            check2(p, |a, b| a << b, |a, b| a.wrapping_shl(b as u32));
            check2(p, |a, b| a >> b, |a, b| a.wrapping_shr(b as u32));
            check2(p, |a, b| a.rotl(b), |a, b| a.rotate_left((b as u32) % T::BITS));
            check2(p, |a, b| a.rotr(b), |a, b| a.rotate_right((b as u32) % T::BITS));
            check2(p, |a, b| a.min(b), T::min);
            check2(p, |a, b| a.max(b), T::max);
            check2(p, |a, b| a.clamp(3, b), |a, b| a.max(3).min(b));
            check2(p, |a, b| a.abs_diff(b), |a, b| a.abs_diff(b) as $unsigned);
            check2(p, |a, b| a.sat_add(b), T::saturating_add);
            check2(p, |a, b| a.sat_sub(b), T::saturating_sub);
            check2(p, |a, b| a.mul_hi(b), |a, b| ((a as $wide * b as $wide) >> T::BITS) as T);
            check2(p, |a, _| a.popcount(), |a, _| a.count_ones());
            check2(p, |a, _| a.clz(), |a, _| a.leading_zeros());
            check2(p, |a, _| a.ctz(), |a, _| a.trailing_zeros());
            check2(p, |a, _| a.reverse_bits(), |a, _| a.reverse_bits());
            check_bool(p, |a, b| a.lt(b), |a, b| a < b);
            check_bool(p, |a, b| a.le(b), |a, b| a <= b);
            check_bool(p, |a, b| a.gt(b), |a, b| a > b);
            check_bool(p, |a, b| a.ge(b), |a, b| a >= b);
            check_bool(p, |a, b| a.eq(b), |a, b| a == b);
            check_bool(p, |a, b| a.ne(b), |a, b| a != b);
            check2(p, |a, b| a.lt(b).select(a, b), |a, b| if a < b { a } else { b });
            // Numbers on either side.
            check2(p, |a, _| 3 + a - 1, |a, _| a.wrapping_add(2));
            check2(p, |a, _| 10 - a * 2, |a, _| (10 as T).wrapping_sub(a.wrapping_mul(2)));
            check2(p, |a, _| 3 * a, |a, _| a.wrapping_mul(3));
            check2(p, |a, _| 100 / a, |a, _| if a == 0 { 100 } else { (100 as T).wrapping_div(a) });
            check2(p, |a, _| 100 % a, |a, _| if a == 0 { 0 } else { (100 as T).wrapping_rem(a) });
            check2(p, |a, _| (6 & a) | (1 ^ a), |a, _| (6 & a) | (1 ^ a));
            check2(p, |a, _| (5 | a) & 77, |a, _| (5 | a) & 77);
            check2(p, |a, _| 1 << a, |a, _| (1 as T).wrapping_shl(a as u32));
            check2(p, |a, _| 77 >> a, |a, _| (77 as T).wrapping_shr(a as u32));
            check2(p, |a, _| a >> 3 << 1, |a, _| a >> 3 << 1);
            // Casts and bits.
            check2(p, |a, _| a.cast::<u32>(), |a, _| a as u32);
            check2(p, |a, _| a.cast::<i32>(), |a, _| a as i32);
            check2(p, |a, _| a.cast::<u64>(), |a, _| a as u64);
            check2(p, |a, _| a.cast::<i64>(), |a, _| a as i64);
            check2(p, |a, _| a.cast::<f32>(), |a, _| a as f32);
            check_bool(p, |a, _| a.cast::<bool>(), |a, _| a != 0);
            check2(p, |a, _| a.bitcast::<$unsigned>(), |a, _| a as $unsigned);
            check2(p, |a, _| a.bitcast::<$unsigned>().bitcast::<T>(), |a, _| a);
            // Assigning operators.
            let assigned = |mut a: Value<T>, b: Value<T>| {
                a += b;
                a -= 3;
                a *= b;
                a ^= 12;
                a &= 0x7f;
                a |= 0x10;
                a <<= 2;
                a >>= 1;
                a /= 3;
                a %= 50;
                a
            };
            check2(p, assigned, |a, b| {
                let a = a.wrapping_add(b).wrapping_sub(3).wrapping_mul(b) ^ 12;
                (((a & 0x7f) | 0x10) << 2 >> 1) / 3 % 50
            });
        }
    )*};
}

integer_tests!(u32 u32 u64, i32 u32 i64, u64 u64 u128, i64 u64 i128);

#[test]
fn signed_integers() {
    let p = pairs(&[0, 1, -1, -7, i32::MIN, i32::MAX]);
    check2(&p, |a, _| -a, |a, _| a.wrapping_neg());
    check2(&p, |a, _| a.abs(), |a, _| a.wrapping_abs());
    check2(
        &p,
        |a, _| a.bitcast::<f32>().bitcast::<i32>(),
        |a, _| {
            let canonical = if f32::from_bits(a as u32).is_nan() { 0x7fc0_0000 } else { a as u32 };
            canonical as i32
        },
    );
    let p = pairs(&[0, 1, -1, -7, i64::MIN, i64::MAX]);
    check2(&p, |a, _| -a, |a, _| a.wrapping_neg());
    check2(&p, |a, _| a.abs(), |a, _| a.wrapping_abs());
}

#[test]
fn f32() {
    let edge =
        [0.0, -0.0, 1.0, -1.5, 2.5, 3.5, 0.1, 1e-40, 3e38, -7.25, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let pairs = pairs(&edge);
    let p = pairs.as_slice();
    let bits = |a: f32| u32::from_le_bytes(a.bytes().try_into().unwrap());
    check2(p, |a, b| a + b, |a, b| a + b);
    check2(p, |a, b| a - b, |a, b| a - b);
    check2(p, |a, b| a * b, |a, b| a * b);
    check2(p, |a, b| a / b, |a, b| a / b);
    check2(p, |a, _| -a, |a, _| -a);
    check2(p, |a, _| a.abs(), |a, _| a.abs());
    check2(p, |a, b| a.min(b), |a, b| if b < a || a.is_nan() { b } else { a });
    check2(p, |a, b| a.max(b), |a, b| if b > a || a.is_nan() { b } else { a });
    check2(p, |a, _| a.clamp(-1.0, 2.0), |a, _| if a.is_nan() { -1.0 } else { a.clamp(-1.0, 2.0) });
    check2(p, |a, _| a.sqrt(), |a, _| a.sqrt());
    check2(p, |a, _| a.inverse_sqrt(), |a, _| 1.0 / a.sqrt());
    check2(p, |a, _| a.floor(), |a, _| a.floor());
    check2(p, |a, _| a.ceil(), |a, _| a.ceil());
    check2(p, |a, _| a.trunc(), |a, _| a.trunc());
    check2(p, |a, _| a.round(), |a, _| a.round_ties_even());
    check2(p, |a, b| a.fma(b, 0.1), |a, b| a.mul_add(b, 0.1));
    check_bool(p, |a, _| a.is_nan(), |a, _| a.is_nan());
    check_bool(p, |a, _| a.is_inf(), |a, _| a.is_infinite());
    check_bool(p, |a, b| a.lt(b), |a, b| a < b);
    check_bool(p, |a, b| a.le(b), |a, b| a <= b);
    check_bool(p, |a, b| a.gt(b), |a, b| a > b);
    check_bool(p, |a, b| a.ge(b), |a, b| a >= b);
    check_bool(p, |a, b| a.eq(b), |a, b| a == b);
    check_bool(p, |a, b| a.ne(b), |a, b| a != b);
    check2(p, |a, _| 2.0 * a + 1.0, |a, _| 2.0 * a + 1.0);
    check2(p, |a, _| 1.0 - 3.0 / a - 0.5, |a, _| 1.0 - 3.0 / a - 0.5);
    check2(p, |a, _| a.cast::<u32>(), |a, _| a as u32);
    check2(p, |a, _| a.cast::<i32>(), |a, _| a as i32);
    check2(p, |a, _| a.cast::<u64>(), |a, _| a as u64);
    check2(p, |a, _| a.cast::<i64>(), |a, _| a as i64);
    check2(p, |a, _| a.cast::<f32>(), |a, _| a);
    check2(p, |a, _| a.bitcast::<u32>(), |a, _| bits(a));
    check2(p, |a, _| a.bitcast::<i32>(), |a, _| bits(a) as i32);
}

#[test]
fn bools() {
    let p = pairs(&[0u32, 1]);
    let of = |a: Value<u32>| a.cast::<bool>();
    check_bool(&p, |a, b| of(a) & of(b), |a, b| a == 1 && b == 1);
    check_bool(&p, |a, b| of(a) | of(b), |a, b| a == 1 || b == 1);
    check_bool(&p, |a, b| of(a) ^ of(b), |a, b| a != b);
    check_bool(&p, |a, b| of(a).and(of(b)), |a, b| a == 1 && b == 1);
    check_bool(&p, |a, b| of(a).or(of(b)), |a, b| a == 1 || b == 1);
    check_bool(&p, |a, _| !of(a), |a, _| a != 1);
    check_bool(&p, |a, b| of(a).eq(of(b)), |a, b| a == b);
    check_bool(&p, |a, b| of(a).ne(of(b)), |a, b| a != b);
    check_bool(&p, |a, _| (true & of(a)) ^ (false | of(a)), |_, _| false);
    check_bool(&p, |a, _| true ^ of(a) & true, |a, _| a != 1);
    check_bool(&p, |a, b| of(a).select(of(b), true), |a, b| a != 1 || b == 1);
    check2(&p, |a, _| of(a).cast::<f32>(), |a, _| a as f32);
    check2(&p, |a, _| of(a).select(7u32, 9), |a, _| if a == 1 { 7 } else { 9 });
}

#[test]
fn constants_stand_on_both_sides() {
    let constant = Value::from(3u32);
    assert_eq!(format!("{constant:?}"), "3");
    check2(&[(1u32, 2u32)], |_, _| constant + 4, |_, _| 7);
}
