//! Elements in memory: what a load widens and a store narrows, for all eleven element types. The
//! 16-bit floats are checked exhaustively: each pattern, and each place where two of them meet.

use crate::exact::{self, BF16, Class, F16, F32, Format};
use crate::oracle::Expected;
use crate::random::{self, Operands};
use crate::report::Report;
use crate::{edges, oracle};
use vyre_foundation::{Element, Type, element};

/// The type that the report shows stored bits as.
fn stored_type(element: Element) -> Type {
    if oracle::size(element) == 8 { Type::U64 } else { Type::U32 }
}

/// The element's bytes at the start of a memory that goes on.
fn memory_of(stored: u64) -> [u8; 16] {
    let mut memory = [0xa5; 16];
    for (i, byte) in memory.iter_mut().take(8).enumerate() {
        *byte = (stored >> (8 * i)) as u8;
    }
    memory
}

/// Checks a load of these stored bits, whatever follows them in memory.
fn check_load(report: &mut Report, element: Element, stored: u64) {
    let mut memory = memory_of(stored);
    memory[oracle::size(element)..].fill(0xa5);
    let (right, got) = (oracle::load(element, stored), element::load(element, &memory));
    report.check(&[(stored_type(element), stored)], right, got);
}

/// Checks a store: the element's bytes are right and no other byte changes.
fn check_store(report: &mut Report, element: Element, bits: u64) {
    let size = oracle::size(element);
    let mut memory = [0xa5; 16];
    element::store(element, bits, &mut memory);
    let right = oracle::store(element, bits);
    let mut got = 0;
    for (i, &byte) in memory.iter().take(size).enumerate() {
        got |= u64::from(byte) << (8 * i);
    }
    assert!(memory[size..].iter().all(|&b| b == 0xa5), "store {element} writes {size} bytes");
    report.check(&[(oracle::value_type(element), bits)], Expected::Bits(right), got);
}

#[test]
fn elements() {
    let mut report = Report::new();
    for (index, element) in Element::ALL.into_iter().enumerate() {
        assert_eq!(element as usize, index, "Element::ALL lists each element type once");
        assert_eq!(element.size(), oracle::size(element), "the size of {element}");
        let ty = oracle::value_type(element);
        assert_eq!(element.value_type(), ty, "the value type of {element}");
        let edges = edges::of(ty);
        let all = u64::MAX >> (64 - 8 * oracle::size(element));

        report.group(format!("load of {element}"));
        edges.iter().for_each(|&bits| check_load(&mut report, element, bits & all));
        (0..=all.min(0xffff)).for_each(|bits| check_load(&mut report, element, bits));
        let mut operands = Operands::new(ty, &edges, 0x600 + element as u64);
        for _ in 0..random::cases() {
            check_load(&mut report, element, operands.one() & all);
        }

        report.group(format!("store of {element}"));
        edges.iter().for_each(|&bits| check_store(&mut report, element, bits));
        (0..random::cases()).for_each(|_| check_store(&mut report, element, operands.one()));
    }
    report.finish();
}

/// Every pattern of a 16-bit float, and the `f32` around it and half way to the next one.
fn check_narrow_float(element: Element, format: &Format) {
    let mut report = Report::new();
    report.group(format!("store of {element}"));
    for pattern in 0..=0xffff_u32 {
        let mut memory = memory_of(pattern.into());
        let value = element::load(element, &memory);
        element::store(element, value, &mut memory[..2]);
        let nan = format.is_nan(pattern);
        let right = if nan { format.nan() } else { pattern };
        let back = u32::from(u16::from_le_bytes([memory[0], memory[1]]));
        assert_eq!(back, right, "{element} {pattern:#06x} loaded and stored again");
        let Class::Finite(n) = exact::decode(format, pattern) else { continue };
        // The next number away from zero is one unit on, infinity too as far as rounding goes.
        let middle = u128::from(2 * n.significand + 1);
        let middle = exact::encode(&F32, n.negative, middle, n.exponent - 1, false);
        let here = exact::convert(format, &F32, pattern);
        for bits in [here, middle] {
            for near in [bits.wrapping_sub(1), bits, bits + 1] {
                check_store(&mut report, element, near.into());
            }
        }
    }
    report.finish();
}

#[test]
fn every_f16() {
    check_narrow_float(Element::F16, &F16);
}

#[test]
fn every_bf16() {
    check_narrow_float(Element::BF16, &BF16);
}

/// An element that does not fit loads as 0, and a store of it changes nothing.
#[test]
fn elements_that_do_not_fit() {
    for element in Element::ALL {
        let bits = 0x0123_4567;
        for length in 0..oracle::size(element) {
            let mut memory = vec![0xa5; length];
            assert_eq!(element::load(element, &memory), 0, "load {element} from {length} bytes");
            element::store(element, bits, &mut memory);
            assert_eq!(memory, vec![0xa5; length], "store {element} to {length} bytes");
        }
        let mut memory = vec![0xa5; oracle::size(element)];
        element::store(element, 0, &mut memory);
        assert_eq!(memory, vec![0; oracle::size(element)], "store {element} where it just fits");
        assert_eq!(element::load(element, &memory), 0, "load {element} where it just fits");
    }
}
