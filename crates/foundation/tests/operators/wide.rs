//! Integers of 576 bits: wide enough to hold every sum of two `f32` products and addends exactly,
//! so that addition and `fma` need no argument about guard bits.
//!
//! The widest case is a product at exponent -298 below an addend whose top bit is 2^127, or a
//! product whose top bit is 2^255 above an addend at exponent -149: at most 426 bits, one more for
//! the carry.

use std::cmp::Ordering;

const LIMBS: usize = 9;

/// An unsigned integer, least significant limb first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wide([u64; LIMBS]);

impl Wide {
    /// `significand << shift`.
    pub(crate) fn place(significand: u64, shift: u32) -> Wide {
        let (limb, bit) = ((shift / 64) as usize, shift % 64);
        let spread = u128::from(significand) << bit;
        let (low, high) = (spread as u64, (spread >> 64) as u64);
        let mut limbs = [0; LIMBS];
        limbs[limb] = low;
        if high != 0 {
            limbs[limb + 1] = high;
        }
        Wide(limbs)
    }

    /// `self + other`; the callers' operands leave room for the carry.
    pub(crate) fn plus(self, other: Wide) -> Wide {
        let mut limbs = [0; LIMBS];
        let mut carry = 0;
        for (i, limb) in limbs.iter_mut().enumerate() {
            let sum = u128::from(self.0[i]) + u128::from(other.0[i]) + carry;
            *limb = sum as u64;
            carry = sum >> 64;
        }
        assert_eq!(carry, 0, "the oracle's wide integer is too narrow");
        Wide(limbs)
    }

    /// `self - other` where `other` is not larger.
    pub(crate) fn minus(self, other: Wide) -> Wide {
        let mut limbs = [0; LIMBS];
        let mut borrow = 0;
        for (i, limb) in limbs.iter_mut().enumerate() {
            let difference = i128::from(self.0[i]) - i128::from(other.0[i]) - borrow;
            borrow = i128::from(difference < 0);
            *limb = difference as u64;
        }
        assert_eq!(borrow, 0, "the oracle subtracted the larger number");
        Wide(limbs)
    }

    /// Which of two numbers is larger.
    pub(crate) fn order(self, other: Wide) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }

    /// The leading bits, how far they stand above bit 0, and whether a bit below them is set.
    pub(crate) fn leading(self) -> (u64, u32, bool) {
        let Some(top) = (0..LIMBS).rev().find(|&i| self.0[i] != 0) else { return (0, 0, false) };
        if top == 0 {
            return (self.0[0], 0, false);
        }
        let used = (0..64).rev().find(|&i| self.0[top] >> i & 1 == 1).unwrap_or(0) + 1;
        let pair = u128::from(self.0[top]) << 64 | u128::from(self.0[top - 1]);
        let lost = pair & ((1 << used) - 1);
        let sticky = lost != 0 || self.0[..top - 1].iter().any(|&limb| limb != 0);
        ((pair >> used) as u64, (top as u32 - 1) * 64 + used, sticky)
    }
}
