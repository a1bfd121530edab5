//! How elements stand in memory: little-endian, narrow ones widened by a load and narrowed by a store.

use crate::Element;
use crate::arith::canonical_f32;
use half::{bf16, f16};

/// The element at the start of `memory` as register bits of [`Element::value_type`]; 0 if it does not fit.
///
/// ```
/// use vyre_foundation::{element, Element};
/// assert_eq!(element::load(Element::I8, &[0xff]), 0xffff_ffff);
/// ```
#[inline]
pub fn load(element: Element, memory: &[u8]) -> u64 {
    match element {
        Element::U8 => read(memory).map_or(0, |[b]: [u8; 1]| u64::from(b)),
        Element::I8 => read(memory).map_or(0, |[b]: [u8; 1]| u64::from(i32::from(b as i8) as u32)),
        Element::U16 => read(memory).map_or(0, |b| u64::from(u16::from_le_bytes(b))),
        Element::I16 => read(memory).map_or(0, |b| u64::from(i32::from(i16::from_le_bytes(b)) as u32)),
        Element::U32 | Element::I32 | Element::F32 => {
            read(memory).map_or(0, |b| u64::from(u32::from_le_bytes(b)))
        }
        Element::U64 | Element::I64 => read(memory).map_or(0, u64::from_le_bytes),
        Element::F16 => read(memory).map_or(0, |b| u64::from(f16::from_le_bytes(b).to_f32().to_bits())),
        Element::BF16 => read(memory).map_or(0, |b| u64::from(u16::from_le_bytes(b)) << 16),
    }
}

/// Stores register bits as the element at the start of `memory`; nothing if it does not fit.
///
/// Integers keep their low bits. Floats round to nearest even, keep subnormals, overflow to infinity, and every
/// NaN becomes the canonical one of the element type.
#[inline]
pub fn store(element: Element, bits: u64, memory: &mut [u8]) {
    match element {
        Element::U8 | Element::I8 => write(memory, [bits as u8]),
        Element::U16 | Element::I16 => write(memory, (bits as u16).to_le_bytes()),
        Element::U32 | Element::I32 => write(memory, (bits as u32).to_le_bytes()),
        Element::U64 | Element::I64 => write(memory, bits.to_le_bytes()),
        Element::F32 => write(memory, canonical_f32(bits as u32).to_le_bytes()),
        Element::F16 => {
            let value = f32::from_bits(bits as u32);
            let narrow = if value.is_nan() { 0x7e00 } else { f16::from_f32(value).to_bits() };
            write(memory, narrow.to_le_bytes());
        }
        Element::BF16 => {
            let value = f32::from_bits(bits as u32);
            let narrow = if value.is_nan() { 0x7fc0 } else { bf16::from_f32(value).to_bits() };
            write(memory, narrow.to_le_bytes());
        }
    }
}

#[inline]
fn read<const N: usize>(memory: &[u8]) -> Option<[u8; N]> {
    memory.first_chunk().copied()
}

#[inline]
fn write<const N: usize>(memory: &mut [u8], bytes: [u8; N]) {
    if let Some(place) = memory.first_chunk_mut() {
        *place = bytes;
    }
}
