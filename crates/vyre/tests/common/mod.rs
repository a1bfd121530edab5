//! Running programs on plain Rust data.

use vyre::Program;
use vyre::build::Storable;
use vyre_reference::{Options, run};

/// An element as bytes.
pub(crate) trait Plain: Storable + PartialEq + std::fmt::Debug {
    fn bytes(self) -> Vec<u8>;
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($ty:ty)*) => {$(
        impl Plain for $ty {
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn read(bytes: &[u8]) -> Self {
                <$ty>::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}

plain!(u8 i8 u16 i16 u32 i32 u64 i64 vyre::build::f16 vyre::build::bf16);

impl Plain for f32 {
    /// A NaN that leaves a program is always the same one. Decided by bits: Rust may change a NaN's.
    fn bytes(self) -> Vec<u8> {
        let bits = self.to_bits();
        let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
        (if is_nan { 0x7fc0_0000 } else { bits }).to_le_bytes().to_vec()
    }
    fn read(bytes: &[u8]) -> f32 {
        f32::from_le_bytes(bytes.try_into().unwrap())
    }
}

pub(crate) fn bytes<T: Plain>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| value.bytes()).collect()
}

pub(crate) fn values<T: Plain>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks(T::ELEMENT.size()).map(T::read).collect()
}

/// Runs a program on one workgroup or what its outputs ask for; also checks that its text means the same.
pub(crate) fn outputs(program: &Program, inputs: &[Vec<u8>], options: &Options) -> Vec<Vec<u8>> {
    let text = program.to_string();
    let parsed = Program::parse(&text).unwrap_or_else(|found| panic!("{found}\n{text}"));
    assert_eq!(parsed, *program, "{text}");
    parsed.validate().unwrap();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    run(program, &inputs, options).unwrap_or_else(|error| panic!("{error}\n{text}")).outputs
}
