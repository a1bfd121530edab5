//! Hostile bytes.

use crate::{DEFAULT_SIZE, generate};
use vyre_foundation::rng::SplitMix64;

/// The header of the wire form: magic, version and checksum, in front of the payload.
const CHECKSUM: std::ops::Range<usize> = 6..22;

/// The bytes of a seed: an encoded program with damage, mostly with a checksum that fits the damage, so that the
/// decoder proper sees it.
pub fn bytes(seed: u64) -> Vec<u8> {
    let mut rng = SplitMix64::new(seed);
    let mut wire = program(&mut rng);
    match rng.below(12) {
        0..=5 => {
            for _ in 0..1 + rng.below(5) {
                damage(&mut rng, &mut wire);
            }
        }
        6 => wire.truncate(CHECKSUM.end + rng.below((wire.len() - CHECKSUM.end) as u64) as usize),
        7 => {
            wire.truncate(CHECKSUM.end);
            wire.extend((0..rng.below(2000)).map(|_| rng.next_u64() as u8));
        }
        8 => repeat(&mut rng, &mut wire),
        9 => {
            let other = program(&mut rng);
            let head = CHECKSUM.end + rng.below((wire.len() - CHECKSUM.end) as u64) as usize;
            let tail = CHECKSUM.end + rng.below((other.len() - CHECKSUM.end) as u64) as usize;
            wire.truncate(head);
            wire.extend_from_slice(&other[tail..]);
        }
        10 => deep(&mut rng, &mut wire),
        _ => {
            // Damage that the checksum shows, or that reaches the header.
            let at = rng.below(wire.len() as u64) as usize;
            wire[at] ^= 1 << rng.below(8);
            wire.truncate(wire.len() - rng.below(wire.len() as u64) as usize);
            return wire;
        }
    }
    correct_checksum(&mut wire);
    wire
}

fn program(rng: &mut SplitMix64) -> Vec<u8> {
    generate(rng.below(400), DEFAULT_SIZE / 4).program.to_wire()
}

fn correct_checksum(wire: &mut [u8]) {
    if wire.len() >= CHECKSUM.end {
        let (header, payload) = wire.split_at_mut(CHECKSUM.end);
        let hash = blake3::hash(payload);
        header[CHECKSUM].copy_from_slice(&hash.as_bytes()[..CHECKSUM.len()]);
    }
}

fn damage(rng: &mut SplitMix64, wire: &mut Vec<u8>) {
    let payload = (wire.len() - CHECKSUM.end) as u64;
    if payload == 0 {
        return;
    }
    let at = CHECKSUM.end + rng.below(payload) as usize;
    match rng.below(6) {
        0 => wire[at] = rng.next_u64() as u8,
        1 => wire[at] ^= 1 << rng.below(8),
        2 => wire[at] = wire[at].wrapping_add(1),
        3 => drop(wire.remove(at)),
        4 => wire.insert(at, rng.below(32) as u8),
        // A number far larger than anything that follows it.
        _ => {
            let huge: &[u8] = match rng.below(3) {
                0 => &[0xff, 0xff, 0xff, 0xff, 0x0f],
                1 => &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                _ => &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
            };
            wire.splice(at..at + 1, huge.iter().copied());
        }
    }
}

/// Repeats a part of the payload many times.
fn repeat(rng: &mut SplitMix64, wire: &mut Vec<u8>) {
    let payload = (wire.len() - CHECKSUM.end) as u64;
    let at = CHECKSUM.end + rng.below(payload) as usize;
    let end = (at + 1 + rng.below(12) as usize).min(wire.len());
    let part = wire[at..end].to_vec();
    let copies = 1 + rng.below(20_000) as usize;
    wire.splice(at..at, part.repeat(copies));
}

/// One byte many times, which nests whatever it opens.
fn deep(rng: &mut SplitMix64, wire: &mut Vec<u8>) {
    let payload = (wire.len() - CHECKSUM.end) as u64;
    let at = CHECKSUM.end + rng.below(payload) as usize;
    let opener = rng.below(24) as u8;
    let count = *rng.pick(&[100, 600, 5_000, 200_000]);
    wire.splice(at..at, std::iter::repeat_n(opener, count));
}
