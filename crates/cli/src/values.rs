//! The values of `--in`: from their spelling to the bytes of a buffer, and from bytes back to text.

use crate::npy;
use std::path::PathBuf;
use thiserror::Error;
use vyre_foundation::rng::SplitMix64;
use vyre_foundation::{Element, element};

/// Why a value does not fit its buffer.
#[derive(Debug, Error)]
pub enum ValueError {
    /// No form of value.
    #[error(
        "`{0}` is not a value. help: use [1,2,3], @file.bin, @file.npy, zeros:N, iota:N, fill:V:N or random:SEED:N"
    )]
    Form(String),
    /// No number of the element type.
    #[error("element {at}: `{text}` is not `{element}`. help: {}", if element.value_type().is_integer() {
        "write an integer, such as 12, -3 or 0xff" } else { "write a number, such as 1.5, 1e-3, inf or NaN" })]
    NotANumber {
        /// Which element.
        at: usize,
        /// How it is spelled.
        text: String,
        /// The element type.
        element: Element,
    },
    /// Outside the element type.
    #[error("element {at}: `{text}` does not fit `{element}`. help: {}", match range(*element) {
        Some((low, high)) => format!("it holds {low} to {high}"), None => "infinity is written inf".to_owned() })]
    Range {
        /// Which element.
        at: usize,
        /// How it is spelled.
        text: String,
        /// The element type.
        element: Element,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {error}. help: check the path and its permissions", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A NumPy file that does not fit.
    #[error("{}: {problem}. help: save it with NumPy as a little-endian array of the buffer's type, in C order (numpy.ascontiguousarray)", .path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// More elements than there is memory for.
    #[error("there is no room for {count} elements. help: use fewer; a buffer has at most 4294967295")]
    TooMany {
        /// How many.
        count: u64,
    },
}

impl ValueError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            ValueError::Form(_) => "C010",
            ValueError::NotANumber { .. } => "C011",
            ValueError::Range { .. } => "C012",
            ValueError::File { .. } => "C013",
            ValueError::Npy { .. } => "C014",
            ValueError::TooMany { .. } => "C015",
        }
    }
}

/// The ends of an integer element type.
fn range(element: Element) -> Option<(i128, i128)> {
    let bits = 8 * element.size() as u32;
    match element {
        Element::U8 | Element::U16 | Element::U32 | Element::U64 => Some((0, (1 << bits) - 1)),
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => {
            Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
        }
        Element::F16 | Element::BF16 | Element::F32 => None,
    }
}

/// The bytes that a value spells for a buffer of this element type.
///
/// ```
/// use vyre_cli::values::parse;
/// use vyre_foundation::Element;
/// assert_eq!(parse("[1,-1]", Element::I8).unwrap(), [1, 0xff]);
/// assert_eq!(parse("iota:3", Element::U8).unwrap(), [0, 1, 2]);
/// assert!(parse("[300]", Element::U8).is_err());
/// ```
pub fn parse(text: &str, element: Element) -> Result<Vec<u8>, ValueError> {
    if let Some(list) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        if list.trim().is_empty() {
            return Ok(Vec::new());
        }
        let items = list.split(',').map(|item| item.trim().trim_matches('"'));
        let mut bytes = Vec::new();
        for (at, item) in items.enumerate() {
            bytes.extend_from_slice(&number(item, at, element)?);
        }
        return Ok(bytes);
    }
    if let Some(path) = text.strip_prefix('@') {
        return file(PathBuf::from(path), element);
    }
    let form = || ValueError::Form(text.chars().take(60).collect());
    let parts: Vec<&str> = text.split(':').collect();
    let count = |text: &str| match text.parse::<u64>() {
        Ok(count) if count <= u64::from(u32::MAX) => Ok(count as usize),
        Ok(count) => Err(ValueError::TooMany { count }),
        Err(_) => Err(form()),
    };
    match parts[..] {
        ["zeros", n] => room(count(n)?, element).map(|(mut bytes, total)| {
            bytes.resize(total, 0);
            bytes
        }),
        ["iota", n] => iota(count(n)?, element),
        ["fill", value, n] => {
            let value = number(value, 0, element)?;
            let (mut bytes, total) = room(count(n)?, element)?;
            while bytes.len() < total {
                bytes.extend_from_slice(&value);
            }
            Ok(bytes)
        }
        ["random", seed, n] => {
            let seed = seed.parse().map_err(|_| form())?;
            random(seed, count(n)?, element)
        }
        _ => Err(form()),
    }
}

/// Room for `count` elements, and how many bytes they take.
fn room(count: usize, element: Element) -> Result<(Vec<u8>, usize), ValueError> {
    let total = count * element.size();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(total).map_err(|_| ValueError::TooMany { count: count as u64 })?;
    Ok((bytes, total))
}

/// The numbers from 0 on.
fn iota(count: usize, element: Element) -> Result<Vec<u8>, ValueError> {
    let (mut bytes, total) = room(count, element)?;
    // Up to here every number is exact as an integer and as an f32, so that a store rounds it once.
    const EXACT: usize = 1 << 24;
    if let Some((_, high)) = range(element)
        && let Some(at) = usize::try_from(high).ok().and_then(|high| high.checked_add(1))
        && at < count
    {
        return Err(ValueError::Range { at, text: at.to_string(), element });
    }
    bytes.resize(total, 0);
    for (at, place) in bytes.chunks_exact_mut(element.size()).enumerate() {
        if range(element).is_some() {
            element::store(element, at as u64, place);
        } else if at <= EXACT && element != Element::F16 {
            element::store(element, u64::from((at as f32).to_bits()), place);
        } else {
            place.copy_from_slice(&number(&at.to_string(), at, element)?);
        }
    }
    Ok(bytes)
}

/// The outputs of SplitMix64 as little-endian bytes.
fn random(seed: u64, count: usize, element: Element) -> Result<Vec<u8>, ValueError> {
    let (mut bytes, total) = room(count, element)?;
    let mut rng = SplitMix64::new(seed);
    while bytes.len() < total {
        let next = rng.next_u64().to_le_bytes();
        bytes.extend_from_slice(&next[..next.len().min(total - bytes.len())]);
    }
    Ok(bytes)
}

fn file(path: PathBuf, element: Element) -> Result<Vec<u8>, ValueError> {
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => return Err(ValueError::File { path, error }),
    };
    if path.extension().is_some_and(|extension| extension == "npy") {
        return npy::read(&bytes, element).map_err(|problem| ValueError::Npy { path, problem });
    }
    Ok(bytes)
}

/// The bytes of one number, rounded once to the element type.
fn number(text: &str, at: usize, element: Element) -> Result<Vec<u8>, ValueError> {
    let not_a_number = || ValueError::NotANumber { at, text: text.chars().take(40).collect(), element };
    let out_of_range = || ValueError::Range { at, text: text.chars().take(40).collect(), element };
    let bits = match range(element) {
        Some((low, high)) => {
            let value = integer(text).ok_or_else(not_a_number)?.ok_or_else(out_of_range)?;
            if value < low || value > high {
                return Err(out_of_range());
            }
            value as u64
        }
        None => match float(text, element).ok_or_else(not_a_number)? {
            Some(bits) => return Ok(bits),
            None => return Err(out_of_range()),
        },
    };
    let mut bytes = vec![0; element.size()];
    element::store(element, bits, &mut bytes);
    Ok(bytes)
}

/// An integer in decimal or hexadecimal. The outer `None` is no integer, the inner one is too long for any type.
fn integer(text: &str) -> Option<Option<i128>> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(rest) => (rest, 16),
        None => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some(i128::from_str_radix(digits, radix).ok().map(|value| if negative { -value } else { value }))
}

/// The bytes of a float. The outer `None` is no number, the inner one overflows.
fn float(text: &str, element: Element) -> Option<Option<Vec<u8>>> {
    let special = match text {
        "NaN" | "nan" => Some(f32::NAN),
        "inf" => Some(f32::INFINITY),
        "-inf" => Some(f32::NEG_INFINITY),
        _ => None,
    };
    let store = |bits: u32| {
        let mut bytes = vec![0; element.size()];
        element::store(element, u64::from(bits), &mut bytes);
        bytes
    };
    if let Some(value) = special {
        return Some(Some(store(value.to_bits())));
    }
    // Rust also reads "infinity" and the like: only digits, signs, a point and an exponent are meant here.
    if !text.chars().all(|c| matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-')) {
        return None;
    }
    let bits = match element {
        Element::F32 => text.parse::<f32>().ok()?.to_bits(),
        _ => round_to_odd(text)?,
    };
    let bytes = store(bits);
    let finite = f32::from_bits(element::load(element, &bytes) as u32).is_finite();
    Some(finite.then_some(bytes))
}

/// The decimal rounded to `f32` so that rounding the result to a narrower float gives what rounding the decimal
/// itself would: if it is not exact, the neighbour with an odd significand, which is never half way.
fn round_to_odd(text: &str) -> Option<u32> {
    let nearest: f32 = text.parse().ok()?;
    if nearest.is_infinite() || nearest.to_bits() & 1 == 1 {
        return Some(nearest.to_bits());
    }
    // Compare the decimal with the rounded value, both as exact decimals.
    let exact = format!("{:.160}", nearest.abs());
    match compare_decimals(text.trim_start_matches(['-', '+']), &exact) {
        std::cmp::Ordering::Equal => Some(nearest.to_bits()),
        std::cmp::Ordering::Greater => Some(nearest.to_bits() + 1),
        // Below zero there is nothing: a decimal that rounds to zero is not less than it.
        std::cmp::Ordering::Less => Some(nearest.to_bits() - 1),
    }
}

/// Compares two non-negative decimals exactly.
fn compare_decimals(a: &str, b: &str) -> std::cmp::Ordering {
    let (a, b) = (Decimal::new(a), Decimal::new(b));
    match (a.digits.is_empty(), b.digits.is_empty()) {
        (true, true) => std::cmp::Ordering::Equal,
        (true, false) => std::cmp::Ordering::Less,
        (false, true) => std::cmp::Ordering::Greater,
        _ => a.point.cmp(&b.point).then_with(|| a.digits.cmp(&b.digits)),
    }
}

/// `0.digits` times ten to the power of `point`, without zeros at either end.
struct Decimal {
    digits: String,
    point: i64,
}

impl Decimal {
    fn new(text: &str) -> Decimal {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i64>().unwrap_or(0)),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let zeros = all.len() - all.trim_start_matches('0').len();
        let point = (whole.len() as i64 - zeros as i64).saturating_add(exponent);
        Decimal { digits: all.trim_matches('0').to_owned(), point }
    }
}

/// One element as text: the shortest that reads back as the same bits.
pub fn show(element: Element, bytes: &[u8]) -> String {
    let bits = element::load(element, bytes);
    match element {
        Element::U8 | Element::U16 | Element::U32 | Element::U64 => bits.to_string(),
        Element::I8 | Element::I16 | Element::I32 => (bits as u32 as i32).to_string(),
        Element::I64 => (bits as i64).to_string(),
        Element::F16 | Element::BF16 | Element::F32 => {
            let value = f32::from_bits(bits as u32);
            if value.is_nan() { "NaN".to_owned() } else { format!("{value:?}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f16(text: &str) -> u16 {
        let bytes = parse(&format!("[{text}]"), Element::F16).unwrap();
        u16::from_le_bytes([bytes[0], bytes[1]])
    }

    #[test]
    fn narrow_floats_round_once() {
        // 1 + 2^-11 is half way between two f16; a hair above it must round up, although f32 cannot hold the hair.
        assert_eq!(f16("1.00048828125"), 0x3c00);
        assert_eq!(f16("1.000488281250000000000001"), 0x3c01);
        assert_eq!(f16("1.00048828124999999999999"), 0x3c00);
        assert_eq!(f16("-1.000488281250000000000001"), 0xbc01);
        assert_eq!(f16("1e-50"), 0);
        // Half of the smallest subnormal rounds to even, a hair more rounds up.
        assert_eq!(f16("2.98023223876953125e-8"), 0);
        assert_eq!(f16("2.98023223876953126e-8"), 1);
        assert_eq!(f16("65504"), 0x7bff);
        assert!(parse("[65520]", Element::F16).is_err());
        assert!(parse("[1e39]", Element::BF16).is_err());
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for (text, element) in [
            ("[256]", Element::U8),
            ("[-1]", Element::U64),
            ("[-129]", Element::I8),
            ("[18446744073709551616]", Element::U64),
            ("[1e39]", Element::F32),
            ("iota:257", Element::U8),
            ("fill:1.5:2", Element::U32),
            ("[1,,2]", Element::U32),
            ("[0x]", Element::U32),
            ("random:x:2", Element::U32),
            ("zeros:-1", Element::U32),
            ("nothing", Element::U32),
        ] {
            assert!(parse(text, element).is_err(), "{text} as {element}");
        }
    }

    #[test]
    fn random_is_the_bytes_of_splitmix64() {
        let wide = parse("random:7:2", Element::U64).unwrap();
        assert_eq!(parse("random:7:16", Element::U8).unwrap(), wide);
        assert_eq!(parse("random:7:3", Element::U8).unwrap(), wide[..3]);
        let mut rng = SplitMix64::new(7);
        assert_eq!(wide[..8], rng.next_u64().to_le_bytes());
    }
}
