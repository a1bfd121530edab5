//! Hostile text.

use super::Corpus;
use crate::{DEFAULT_SIZE, generate};
use vyre_foundation::RESERVED;
use vyre_foundation::rng::SplitMix64;

/// Signs, names and numbers that soup is made of, besides the reserved words.
const PIECES: &str = concat!(
    "{ } ( ) [ ] , ; : = < > + - * / % & | ^ ! ~ . == != <= >= << >> && || .. -> // \" \"text\" \\ ",
    "a b buf out f x y z 0 1 7i32 0x 0xffu64 1.5 1e-3f32 1e999 12u9 99999999999999999999 -3 \u{221e} \0"
);

/// Spellings of numbers, right and wrong ones.
const NUMBERS: &str = concat!(
    "0 00 4294967295 4294967296 -2147483648i32 -2147483649i32 2147483648i32 0x1f32 0xffffffffffffffffu64 0x ",
    "1f32 1. .5 1.5e 1e+ 3.4028235e38 3.4028236e38 1e-46 7.006492321624085e-46 16777217.0 0.1u32 1_000 -0.0 ",
    "18446744073709551616u64"
);

/// The text of a seed: a program of the corpus or a generated one with mistakes, soup, or deep nesting.
pub fn text(seed: u64, corpus: &Corpus) -> String {
    let mut rng = SplitMix64::new(seed);
    match rng.below(16) {
        0..=5 => {
            let program = program(&mut rng, corpus);
            mutate_pieces(&mut rng, &program, corpus)
        }
        6..=9 => {
            let program = program(&mut rng, corpus);
            mutate_characters(&mut rng, &program)
        }
        10 | 11 => soup(&mut rng),
        12 => deep(&mut rng),
        13 => {
            let program = program(&mut rng, corpus);
            respell(&mut rng, &program)
        }
        14 => {
            let bytes: Vec<u8> = (0..rng.below(300)).map(|_| rng.next_u64() as u8).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => {
            let (a, b) = (program(&mut rng, corpus), program(&mut rng, corpus));
            splice(&mut rng, &a, &b)
        }
    }
}

fn program(rng: &mut SplitMix64, corpus: &Corpus) -> String {
    if !corpus.is_empty() && rng.chance(1, 2) {
        return rng.pick(&corpus.texts).clone();
    }
    // A few hundred programs are enough to mutate.
    generate(rng.below(400), DEFAULT_SIZE / 4).program.to_string()
}

/// The text cut into words, numbers, signs and white space.
fn pieces(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let class = |c: char| (c.is_alphanumeric() || c == '_', c.is_whitespace());
        let single = class(first) == (false, false);
        let end = match single {
            true => first.len_utf8(),
            false => rest.find(|c| class(c) != class(first)).unwrap_or(rest.len()),
        };
        let (piece, after) = rest.split_at(end);
        found.push(piece);
        rest = after;
    }
    found
}

/// One of the words that a text holds.
fn any_word(rng: &mut SplitMix64, words: &'static str) -> &'static str {
    let count = words.split(' ').count() as u64;
    words.split(' ').nth(rng.below(count) as usize).unwrap_or_default()
}

fn any_piece(rng: &mut SplitMix64) -> &'static str {
    match rng.below(4) {
        0 => RESERVED[rng.below(RESERVED.len() as u64) as usize],
        1 => any_word(rng, NUMBERS),
        _ => any_word(rng, PIECES),
    }
}

fn mutate_pieces(rng: &mut SplitMix64, text: &str, corpus: &Corpus) -> String {
    let other = program(rng, corpus);
    let others = pieces(&other);
    let mut parts = pieces(text);
    for _ in 0..1 + rng.below(4) {
        if parts.is_empty() || others.is_empty() {
            break;
        }
        let at = rng.below(parts.len() as u64) as usize;
        let to = rng.below(parts.len() as u64) as usize;
        match rng.below(7) {
            0 => drop(parts.remove(at)),
            1 => parts.insert(at, parts[to]),
            2 => parts.swap(at, to),
            3 => parts[at] = any_piece(rng),
            4 => parts[at] = parts[to],
            5 => parts[at] = *rng.pick(&others),
            _ => {
                let end = (at + rng.below(30) as usize).min(parts.len());
                let copied: Vec<_> = parts[at..end].to_vec();
                parts.splice(to..to, copied);
            }
        }
    }
    parts.concat()
}

fn mutate_characters(rng: &mut SplitMix64, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..1 + rng.below(6) {
        if characters.is_empty() {
            break;
        }
        let at = rng.below(characters.len() as u64) as usize;
        let new = match rng.below(4) {
            0 => char::from_u32(rng.below(0x11_0000) as u32).unwrap_or('\u{fffd}'),
            1 => *rng.pick(&['\0', '\r', '\n', '\t', '"', '\\', '/', 'é', '\u{feff}', '\u{202e}']),
            _ => char::from(32 + rng.below(95) as u8),
        };
        match rng.below(4) {
            0 => drop(characters.remove(at)),
            1 => characters.insert(at, new),
            2 => characters.truncate(at),
            _ => characters[at] = new,
        }
    }
    characters.into_iter().collect()
}

fn soup(rng: &mut SplitMix64) -> String {
    let mut text = String::new();
    let framed = rng.chance(2, 3);
    if framed {
        text.push_str("program p { buffer buf: read_write u32[8]; buffer out: output f32[]; ");
    }
    for _ in 0..rng.below(400) {
        text.push_str(any_piece(rng));
        if rng.chance(3, 4) {
            text.push(' ');
        }
    }
    if framed {
        text.push('}');
    }
    text
}

/// Nesting around the limits and far beyond, of everything that nests.
fn deep(rng: &mut SplitMix64) -> String {
    let depth = *rng.pick(&[10, 254, 255, 256, 257, 510, 511, 512, 513, 3000, 50_000]);
    let nested = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
    };
    let body = match rng.below(19) {
        0 => format!("let a = {};", nested("(", "1", ")")),
        1 => format!("let a = {};", nested("~", "1", "")),
        2 => format!("let a = {};", nested("min(1, ", "1", ")")),
        3 => format!("let a = {};", nested("u32(", "1", ")")),
        4 => nested("{", "", "}"),
        5 => nested("if true {", "", "}"),
        6 => nested("if true {} else ", "{}", ""),
        7 => (0..depth).map(|i| format!("for i{i} in 0..1 {{")).collect::<String>() + &"}".repeat(depth),
        8 => nested("region \"r\" {", "", "}"),
        9 => format!("let a = {};", nested("1 + ", "1", "")),
        10 => format!("let a = {};", nested("1 - (", "1", ")")),
        11 => format!("let a = {};", nested("buf[", "0", "]")),
        12 => nested("(", "", ""),
        13 => (0..depth.min(5000)).map(|i| format!("let a{i} = {i};")).collect(),
        // Past the limit on statements at the greatest depth.
        14 => "return;".repeat(depth * 21),
        15 => "let same = 1;".repeat(depth.min(3000)),
        16 => "if local_id.x == 0 { barrier(workgroup); } ".repeat(depth.min(3000)),
        17 => jumps(depth.min(1000)),
        _ => return doubling(depth.min(3000)),
    };
    format!("program deep {{ buffer buf: read u32[1]; {body} }}")
}

/// A loop with this many variables and as many jumps, each of which carries all of them.
fn jumps(count: usize) -> String {
    let lets: String = (0..count).map(|i| format!("let mut a{i} = 0;")).collect();
    let assigns: String = (0..count).map(|i| format!("a{i} = i;")).collect();
    let jumps = "if local_id.x == i { continue; } ".repeat(count);
    format!("{lets} for i in 0..4 {{ {assigns} {jumps} }}")
}

/// Functions each of which calls the one before it twice: small as text, huge when calls are expanded.
fn doubling(count: usize) -> String {
    let function = |i: usize| match i {
        0 => "fn f0(a: u32) -> u32 { return a + 1; } ".to_owned(),
        _ => format!("fn f{i}(a: u32) -> u32 {{ return f{0}(a) + f{0}(a); }} ", i - 1),
    };
    let functions: String = (0..count).map(function).collect();
    format!("program doubling {{ {functions} let a = f{}(1); }}", count.saturating_sub(1))
}

/// Other spellings of the numbers in a program.
fn respell(rng: &mut SplitMix64, text: &str) -> String {
    let mut parts: Vec<String> = pieces(text).into_iter().map(str::to_owned).collect();
    let numbers: Vec<usize> =
        (0..parts.len()).filter(|i| parts[*i].starts_with(|c: char| c.is_ascii_digit())).collect();
    for _ in 0..1 + rng.below(8) {
        if numbers.is_empty() {
            break;
        }
        let part = &mut parts[*rng.pick(&numbers)];
        *part = match (rng.below(3), part.parse::<u64>()) {
            (0, Ok(value)) => format!("0x{value:X}"),
            (1, Ok(value)) => format!("{value}u32"),
            _ => any_word(rng, NUMBERS).to_owned(),
        };
    }
    parts.concat()
}

fn splice(rng: &mut SplitMix64, a: &str, b: &str) -> String {
    let (a, b) = (pieces(a), pieces(b));
    let head = rng.below(a.len() as u64 + 1) as usize;
    let tail = rng.below(b.len() as u64 + 1) as usize;
    a[..head].concat() + &b[tail..].concat()
}
