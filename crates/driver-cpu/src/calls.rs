//! The functions that generated code calls, but for those of a launch. What they compute is what the reference computes: they call it.

use crate::context::Context;
use std::sync::atomic::Ordering;
use vyre_foundation::{Element, SubgroupOp, Type, UnOp, arith, element};

/// Fills memory with zeros, or some of it where work is to stop.
///
/// # Safety
/// The bytes are the caller's to write, and the context is that of a launch.
pub(crate) unsafe extern "C" fn zero(context: *const Context, start: *mut u8, bytes: u64) {
    const AT_ONCE: u64 = 4 << 20;
    for done in (0..bytes).step_by(AT_ONCE as usize) {
        let count = AT_ONCE.min(bytes - done);
        // SAFETY: as promised; the flag lives as long as the launch.
        unsafe {
            start.add(done as usize).write_bytes(0, count as usize);
            if (*(*context).stop).load(Ordering::Relaxed) != 0 {
                return;
            }
        }
    }
}

/// Has the machine fetch the line of memory at an address, which may be any. The code generator has no instruction for
/// that. It changes no register, so calling it costs next to nothing: code says so by its calling convention.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn fetch(_address: *const u8) {
    core::arch::naked_asm!("prefetcht0 [rdi]", "ret")
}

/// Other machines are not asked to.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe extern "C" fn fetch(_address: *const u8) {}

/// What a subgroup operation does, as one number for generated code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SubgroupCode {
    /// A ballot, of 32 or 64 bits.
    Ballot {
        /// Whether the result has 64 bits.
        wide: bool,
    },
    /// A shuffle of elements of 4 or 8 bytes.
    Shuffle {
        /// Whether elements have 8 bytes.
        wide: bool,
    },
    /// A reduction.
    Reduce(SubgroupOp, Type),
}

impl SubgroupCode {
    /// The number.
    pub(crate) fn number(self) -> u32 {
        match self {
            SubgroupCode::Ballot { wide } => u32::from(wide),
            SubgroupCode::Shuffle { wide } => 2 + u32::from(wide),
            SubgroupCode::Reduce(op, ty) => 4 + (op as u32) * 16 + ty as u32,
        }
    }

    fn from_number(number: u32) -> SubgroupCode {
        match number {
            0 | 1 => SubgroupCode::Ballot { wide: number == 1 },
            2 | 3 => SubgroupCode::Shuffle { wide: number == 3 },
            n => SubgroupCode::Reduce(
                SubgroupOp::ALL[((n - 4) / 16) as usize],
                Type::ALL[((n - 4) % 16) as usize],
            ),
        }
    }
}

/// A subgroup operation for all lanes.
///
/// # Safety
/// `value` and `second` hold an element per lane, and `result` has room for as many: 4 bytes each, or 8 where
/// the operation says so. `second` is used by a shuffle alone.
pub(crate) unsafe extern "C" fn subgroup(
    code: u32,
    size: u32,
    lanes: u32,
    value: *const u8,
    second: *const u8,
    result: *mut u8,
) {
    let (size, lanes) = (size as usize, lanes as usize);
    match SubgroupCode::from_number(code) {
        SubgroupCode::Ballot { wide } => {
            for first in (0..lanes).step_by(size) {
                let members = first..(first + size).min(lanes);
                let votes = members.clone().fold(0u64, |votes, lane| {
                    // SAFETY: the lane exists, and votes have 4 bytes.
                    votes | u64::from(unsafe { read(value, lane, false) } != 0) << (lane - first)
                });
                // SAFETY: the lanes exist.
                members.for_each(|lane| unsafe { write(result, lane, wide, votes) });
            }
        }
        SubgroupCode::Shuffle { wide } => {
            for lane in 0..lanes {
                // SAFETY: the lane exists, and lane numbers have 4 bytes.
                let from = unsafe { read(second, lane, false) } as usize;
                let source = lane / size * size + from;
                let found = from < size && source < lanes;
                // SAFETY: the lanes exist.
                unsafe { write(result, lane, wide, if found { read(value, source, wide) } else { 0 }) };
            }
        }
        SubgroupCode::Reduce(op, ty) => {
            let wide = ty.bits() == 64;
            for first in (0..lanes).step_by(size) {
                let members = first..(first + size).min(lanes);
                // SAFETY: the lanes exist.
                let values = members.clone().map(|lane| unsafe { read(value, lane, wide) });
                let total = values.reduce(|a, b| arith::binary(op.combine(), ty, a, b)).unwrap_or(0);
                // SAFETY: the lanes exist.
                members.for_each(|lane| unsafe { write(result, lane, wide, total) });
            }
        }
    }
}

/// # Safety
/// The array has such an element.
unsafe fn read(array: *const u8, index: usize, wide: bool) -> u64 {
    // SAFETY: as promised; slots are aligned as their elements are.
    unsafe {
        if wide {
            array.cast::<u64>().add(index).read()
        } else {
            u64::from(array.cast::<u32>().add(index).read())
        }
    }
}

/// # Safety
/// The array has such an element.
unsafe fn write(array: *mut u8, index: usize, wide: bool, bits: u64) {
    // SAFETY: as promised; slots are aligned as their elements are.
    unsafe {
        if wide {
            array.cast::<u64>().add(index).write(bits);
        } else {
            array.cast::<u32>().add(index).write(bits as u32);
        }
    }
}

/// The element of an `f16` as `f32` bits.
pub(crate) extern "C" fn widen(bits: u32) -> u32 {
    element::load(Element::F16, &(bits as u16).to_le_bytes()) as u32
}

/// The `f16` nearest to `f32` bits.
pub(crate) extern "C" fn narrow(bits: u32) -> u32 {
    let mut bytes = [0; 2];
    element::store(Element::F16, u64::from(bits), &mut bytes);
    u32::from(u16::from_le_bytes(bytes))
}

/// `a * b + c`, rounded once.
pub(crate) extern "C" fn fma(a: u32, b: u32, c: u32) -> u32 {
    arith::fma(u64::from(a), u64::from(b), u64::from(c)) as u32
}

/// The ways of rounding, as [`round`] numbers them.
pub(crate) const ROUNDINGS: [UnOp; 4] = [UnOp::Floor, UnOp::Ceil, UnOp::Trunc, UnOp::Round];

/// Rounds `f32` bits in one of the [`ROUNDINGS`].
pub(crate) extern "C" fn round(how: u32, bits: u32) -> u32 {
    arith::unary(ROUNDINGS[how as usize & 3], Type::F32, u64::from(bits)) as u32
}
