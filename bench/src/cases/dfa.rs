//! An automaton over text: bound by the latency of a table in the first cache.
//!
//! The automaton finds a few words (Aho and Corasick). Its states are numbered so that the accepting ones are last.

use super::{Case, Work, count, scaled, text};
use crate::data::{Buffer, Data};
use rayon::prelude::*;
use vyre_foundation::rng::SplitMix64;

/// The bytes that one invocation scans.
const CHUNK: usize = 4096;

/// The words to find.
const WORDS: [&str; 5] = ["error", "fatal", "panic", "timeout", "refused"];

/// The states that the table has room for.
const STATES: usize = 32;

pub(super) fn case(scale: f64) -> Case {
    let bytes = scaled(64 << 20, scale, CHUNK * 16);
    let (table, first_accepting) = automaton();
    Case {
        name: "dfa",
        size: format!("{} bytes", count(bytes)),
        text: text!("dfa"),
        buffers: vec![
            Buffer::input(Data::U32(vec![first_accepting])),
            Buffer::input(Data::U8(table)),
            Buffer::input(Data::U8(prose(bytes))),
            Buffer::output(Data::U32(vec![0; bytes / CHUNK])),
        ],
        workgroup_size: [16, 1],
        workgroups: [bytes / CHUNK / 16, 1],
        natural,
        by_hand: None,
        work: Work { bytes: bytes as u64, operations: bytes as u64 * 4 },
    }
}

fn natural(data: &mut [Data]) {
    let [Data::U32(settings), Data::U8(table), Data::U8(text), Data::U32(matches)] = data else {
        unreachable!()
    };
    let first_accepting = settings[0];
    matches.par_iter_mut().zip(text.par_chunks(CHUNK)).for_each(|(matches, chunk)| {
        let mut state = 0;
        let mut count = 0;
        for byte in chunk {
            state = u32::from(table[state as usize * 256 + usize::from(*byte)]);
            count += u32::from(state >= first_accepting);
        }
        *matches = count;
    });
}

/// Lower case letters and spaces, with one of the words here and there.
fn prose(bytes: usize) -> Vec<u8> {
    let mut rng = SplitMix64::new(6);
    let mut text = Vec::with_capacity(bytes + 64);
    while text.len() < bytes {
        if rng.chance(1, 32) {
            text.extend_from_slice(rng.pick(&WORDS).as_bytes());
        } else {
            let mut letters = rng.next_u64();
            for _ in 0..2 + letters % 8 {
                letters >>= 5;
                text.push(b'a' + (letters % 26) as u8);
            }
        }
        text.push(b' ');
    }
    text.truncate(bytes);
    text
}

/// The table of next states, and the first accepting state.
fn automaton() -> (Vec<u8>, u32) {
    // Each state is a prefix of a word; those that are a whole word come last.
    let mut prefixes: Vec<&str> =
        WORDS.iter().flat_map(|word| (0..=word.len()).map(|n| &word[..n])).collect();
    prefixes.sort_unstable_by_key(|prefix| (WORDS.contains(prefix), prefix.len(), *prefix));
    prefixes.dedup();
    let first_accepting = prefixes.len() - WORDS.len();

    let mut table = vec![0; STATES * 256];
    for (state, prefix) in prefixes.iter().enumerate() {
        for byte in 0..=255_u8 {
            // The longest suffix of what has been read that is a prefix of a word.
            let mut read = prefix.as_bytes().to_vec();
            read.push(byte);
            let next = (0..=read.len())
                .find_map(|start| prefixes.iter().position(|prefix| prefix.as_bytes() == &read[start..]));
            table[state * 256 + usize::from(byte)] = next.unwrap_or(0) as u8;
        }
    }
    (table, first_accepting as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_words() {
        let (table, first_accepting) = automaton();
        assert_eq!(table.len(), 8192);
        let found = |text: &str| {
            let step = |(state, count), byte: u8| {
                let state = u32::from(table[state as usize * 256 + usize::from(byte)]);
                (state, count + u32::from(state >= first_accepting))
            };
            text.bytes().fold((0, 0), step).1
        };
        assert_eq!(found("a fatal error, fatalerror, err or timeoutimeout"), 6);
        assert_eq!(found("no such word"), 0);
    }
}
