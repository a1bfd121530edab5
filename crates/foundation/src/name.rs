//! Names, and the words that cannot be names.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A name of a program, buffer, function or variable. Cloning it is cheap.
///
/// A `Name` may hold any text; [validation](crate::validate()) refuses the ones that are no identifier or that
/// are [reserved](is_reserved).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name(text.into())
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Name {
        name.clone()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

/// Whether the text has the form of a name: `[A-Za-z_][A-Za-z0-9_]*`.
pub fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    matches!(bytes.next(), Some(b'A'..=b'Z' | b'a'..=b'z' | b'_'))
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Every word that cannot be a name, sorted: keywords, access words, types, builtins and builtin functions.
pub const RESERVED: &[&str] = &[
    "abs",
    "abs_diff",
    "acq_rel",
    "acquire",
    "atomic_add",
    "atomic_and",
    "atomic_compare_exchange",
    "atomic_exchange",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_store",
    "atomic_sub",
    "atomic_xor",
    "barrier",
    "bf16",
    "bitcast",
    "bool",
    "break",
    "buffer",
    "ceil",
    "clamp",
    "clz",
    "continue",
    "ctz",
    "else",
    "f16",
    "f32",
    "false",
    "floor",
    "fma",
    "fn",
    "for",
    "from",
    "global_id",
    "grid",
    "i16",
    "i32",
    "i64",
    "i8",
    "if",
    "in",
    "inf",
    "inverse_sqrt",
    "is_inf",
    "is_nan",
    "len",
    "let",
    "local",
    "local_id",
    "max",
    "min",
    "mul_hi",
    "mut",
    "nan",
    "num_workgroups",
    "output",
    "popcount",
    "program",
    "read",
    "read_write",
    "region",
    "relaxed",
    "release",
    "return",
    "reverse_bits",
    "rotl",
    "rotr",
    "round",
    "sat_add",
    "sat_sub",
    "scratch",
    "select",
    "seq_cst",
    "sqrt",
    "subgroup_add",
    "subgroup_and",
    "subgroup_ballot",
    "subgroup_lane",
    "subgroup_max",
    "subgroup_min",
    "subgroup_mul",
    "subgroup_or",
    "subgroup_shuffle",
    "subgroup_size",
    "subgroup_xor",
    "trap",
    "true",
    "trunc",
    "u16",
    "u32",
    "u64",
    "u8",
    "uniform",
    "uniform_load",
    "workgroup",
    "workgroup_id",
    "workgroup_size",
    "write",
];

/// Whether the word is one of [`RESERVED`].
pub fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok()
}

/// The candidate nearest to `word`, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Typing errors are short; comparing megabytes of text against every name would not be.
    if word.len() > 64 {
        return None;
    }
    candidates
        .into_iter()
        .filter(|c| c.len() <= 64)
        .map(|c| (strsim::osa_distance(word, c), c))
        .filter(|&(distance, c)| distance <= word.len().min(c.len()).div_ceil(3) && distance < word.len())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted_identifiers() {
        assert!(RESERVED.windows(2).all(|w| w[0] < w[1]));
        assert!(RESERVED.iter().all(|w| is_identifier(w)));
    }

    #[test]
    fn nearest_finds_slips_and_refuses_strangers() {
        assert_eq!(nearest("lable", ["label", "offsets"]), Some("label"));
        assert_eq!(nearest("x", ["y", "label", "offsets"]), None);
    }
}
