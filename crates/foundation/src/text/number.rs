//! From the spelling of a number to a constant.

use crate::diagnostic::Problem;
use crate::{F32, Literal, Type};

/// The constant that `text` spells, with a prefix minus if `negative`.
pub(super) fn parse(text: &str, negative: bool) -> Result<Literal, Problem> {
    let malformed = || Problem::MalformedNumber(shorten(text));
    if let Some(rest) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
        if digits == 0 {
            return Err(malformed());
        }
        let ty = integer_type(&rest[digits..]).ok_or_else(malformed)?;
        return integer(&rest[..digits], 16, ty, text, negative);
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match integer_type(&text[digits..]) {
        Some(ty) => integer(&text[..digits], 10, ty, text, negative),
        None => decimal(text, negative).ok_or_else(malformed)?,
    }
}

fn integer_type(suffix: &str) -> Option<Type> {
    match suffix {
        "" => Some(Type::U32),
        _ => Type::from_name(suffix).filter(|ty| ty.is_integer()),
    }
}

fn integer(digits: &str, radix: u32, ty: Type, text: &str, negative: bool) -> Result<Literal, Problem> {
    if negative && !ty.is_signed() {
        return Err(Problem::NegativeUnsigned { text: shorten(text), ty });
    }
    let range = || Problem::LiteralRange {
        text: format!("{}{}", if negative { "-" } else { "" }, shorten(text)),
        ty,
    };
    let magnitude = i128::from(u64::from_str_radix(digits, radix).map_err(|_| range())?);
    let value = if negative { -magnitude } else { magnitude };
    match ty {
        Type::U32 => u32::try_from(value).map(Literal::U32).ok(),
        Type::I32 => i32::try_from(value).map(Literal::I32).ok(),
        Type::U64 => u64::try_from(value).map(Literal::U64).ok(),
        _ => i64::try_from(value).map(Literal::I64).ok(),
    }
    .ok_or_else(range)
}

/// A decimal of the form `digits [. digits] [e [sign] digits] [f32]`; `None` if it has another form.
fn decimal(text: &str, negative: bool) -> Option<Result<Literal, Problem>> {
    let body = text.strip_suffix("f32").unwrap_or(text);
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let exponent = exponent.map_or("0", |e| e.strip_prefix(['+', '-']).unwrap_or(e));
    if !(all_digits(whole) && all_digits(fraction) && all_digits(exponent)) {
        return None;
    }
    // Rust's parser rounds once, directly to `f32`.
    let value: f32 = body.parse().ok()?;
    if value.is_infinite() {
        return Some(Err(Problem::LiteralRange { text: shorten(text), ty: Type::F32 }));
    }
    let value = if negative { -value } else { value };
    Some(Ok(Literal::F32(F32::from_bits(value.to_bits()))))
}

/// At most 40 characters of a spelling, for a message.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
