//! The types of values and of buffer elements.
//!
//! Values live in registers and have one of six types. Buffers hold elements of eleven types; the narrow ones
//! exist only in memory: a load widens them to a value type and a store narrows the value again
//! ([`crate::element`] says how).

use std::fmt;

/// The type of a value in a register.
///
/// ```
/// use vyre_foundation::Type;
/// assert_eq!(Type::from_name("i64"), Some(Type::I64));
/// assert_eq!(Type::F32.to_string(), "f32");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Type {
    /// A truth value. It never stands in memory.
    Bool,
    /// An unsigned 32-bit integer: indices, lengths and ids have this type.
    U32,
    /// A signed 32-bit integer in two's complement.
    I32,
    /// An unsigned 64-bit integer.
    U64,
    /// A signed 64-bit integer in two's complement.
    I64,
    /// An IEEE-754 binary32 number with gradual underflow.
    F32,
}

impl Type {
    /// Every value type, in declaration order.
    pub const ALL: [Type; 6] = [Type::Bool, Type::U32, Type::I32, Type::U64, Type::I64, Type::F32];

    /// The spelling in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::U32 => "u32",
            Type::I32 => "i32",
            Type::U64 => "u64",
            Type::I64 => "i64",
            Type::F32 => "f32",
        }
    }

    /// The type with this spelling.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Whether this is one of the four integer types.
    pub const fn is_integer(self) -> bool {
        matches!(self, Type::U32 | Type::I32 | Type::U64 | Type::I64)
    }

    /// Whether negative values exist: `i32`, `i64` and `f32`.
    pub const fn is_signed(self) -> bool {
        matches!(self, Type::I32 | Type::I64 | Type::F32)
    }

    /// How many bits a value has. A `bool` has one.
    pub const fn bits(self) -> u32 {
        match self {
            Type::Bool => 1,
            Type::U32 | Type::I32 | Type::F32 => 32,
            Type::U64 | Type::I64 => 64,
        }
    }

    /// The unsigned integer type of the same width; itself for types that are not signed integers.
    pub const fn to_unsigned(self) -> Type {
        match self {
            Type::I32 => Type::U32,
            Type::I64 => Type::U64,
            other => other,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of one element of a buffer.
///
/// ```
/// use vyre_foundation::{Element, Type};
/// assert_eq!(Element::F16.size(), 2);
/// assert_eq!(Element::F16.value_type(), Type::F32);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Element {
    /// Unsigned 8-bit; loads as `u32`.
    U8,
    /// Signed 8-bit; loads as `i32`.
    I8,
    /// Unsigned 16-bit; loads as `u32`.
    U16,
    /// Signed 16-bit; loads as `i32`.
    I16,
    /// Unsigned 32-bit.
    U32,
    /// Signed 32-bit.
    I32,
    /// Unsigned 64-bit.
    U64,
    /// Signed 64-bit.
    I64,
    /// IEEE-754 binary16; loads as `f32`.
    F16,
    /// The upper half of a binary32; loads as `f32`.
    BF16,
    /// IEEE-754 binary32.
    F32,
}

impl Element {
    /// Every element type, in declaration order.
    pub const ALL: [Element; 11] = [
        Element::U8,
        Element::I8,
        Element::U16,
        Element::I16,
        Element::U32,
        Element::I32,
        Element::U64,
        Element::I64,
        Element::F16,
        Element::BF16,
        Element::F32,
    ];

    /// The spelling in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Element::U8 => "u8",
            Element::I8 => "i8",
            Element::U16 => "u16",
            Element::I16 => "i16",
            Element::U32 => "u32",
            Element::I32 => "i32",
            Element::U64 => "u64",
            Element::I64 => "i64",
            Element::F16 => "f16",
            Element::BF16 => "bf16",
            Element::F32 => "f32",
        }
    }

    /// The element type with this spelling.
    pub fn from_name(name: &str) -> Option<Element> {
        Element::ALL.into_iter().find(|e| e.name() == name)
    }

    /// How many bytes one element takes.
    pub const fn size(self) -> usize {
        match self {
            Element::U8 | Element::I8 => 1,
            Element::U16 | Element::I16 | Element::F16 | Element::BF16 => 2,
            Element::U32 | Element::I32 | Element::F32 => 4,
            Element::U64 | Element::I64 => 8,
        }
    }

    /// The type that a load gives and a store takes.
    pub const fn value_type(self) -> Type {
        match self {
            Element::U8 | Element::U16 | Element::U32 => Type::U32,
            Element::I8 | Element::I16 | Element::I32 => Type::I32,
            Element::U64 => Type::U64,
            Element::I64 => Type::I64,
            Element::F16 | Element::BF16 | Element::F32 => Type::F32,
        }
    }

    /// Whether atomics work on this element: `u32`, `i32`, `u64` and `i64`.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Element::U32 | Element::I32 | Element::U64 | Element::I64)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
