//! Typed arrays that every contender can take as bytes.

/// The contents of a buffer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Data {
    /// Bytes.
    U8(Vec<u8>),
    /// 32-bit integers.
    U32(Vec<u32>),
    /// 32-bit floats.
    F32(Vec<f32>),
}

impl Data {
    /// The bytes, little-endian as the machine has them.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Data::U8(data) => data,
            Data::U32(data) => bytemuck::cast_slice(data),
            Data::F32(data) => bytemuck::cast_slice(data),
        }
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Data::U8(data) => data.len(),
            Data::U32(data) => data.len(),
            Data::F32(data) => data.len(),
        }
    }

    /// Takes over the contents of another array of the same type and length, without allocating.
    pub(crate) fn copy_from(&mut self, other: &Data) {
        match (self, other) {
            (Data::U8(to), Data::U8(from)) => to.copy_from_slice(from),
            (Data::U32(to), Data::U32(from)) => to.copy_from_slice(from),
            (Data::F32(to), Data::F32(from)) => to.copy_from_slice(from),
            _ => unreachable!("buffers keep their types"),
        }
    }
}

/// What a kernel does with a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Only reads it.
    Input,
    /// Reads and writes it; its contents are a result.
    Changed,
    /// Writes it; its contents are a result.
    Output,
    /// Works with it, from zeros on; nobody looks at it afterwards.
    Scratch,
}

/// A buffer of a case: what it is for, and what is in it at the start.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) role: Role,
    pub(crate) initial: Data,
}

impl Buffer {
    /// A buffer that is only read.
    pub(crate) fn input(initial: Data) -> Buffer {
        Buffer { role: Role::Input, initial }
    }

    /// A buffer that is changed in place.
    pub(crate) fn changed(initial: Data) -> Buffer {
        Buffer { role: Role::Changed, initial }
    }

    /// A buffer of zeros that is written.
    pub(crate) fn output(initial: Data) -> Buffer {
        Buffer { role: Role::Output, initial }
    }

    /// A buffer of zeros that the kernel works with.
    pub(crate) fn scratch(initial: Data) -> Buffer {
        Buffer { role: Role::Scratch, initial }
    }

    /// Whether its contents at the end are compared.
    pub(crate) fn is_result(&self) -> bool {
        matches!(self.role, Role::Changed | Role::Output)
    }
}
