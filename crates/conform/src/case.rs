//! A case: a program together with everything that one dispatch of it needs.

use vyre_foundation::{Name, Program};

/// A program and its dispatch: what the generator makes, executors run and the reducer shrinks.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program.
    pub program: Program,
    /// The bytes of its inputs, in declaration order.
    pub inputs: Vec<Vec<u8>>,
    /// The workgroup counts; `None` leaves them to the program.
    pub grid: Option<[u32; 3]>,
    /// The lengths of buffers whose count is open and not given by an input.
    pub lengths: Vec<(Name, u32)>,
    /// At most this many passes, until nothing changes; `None` runs one pass.
    pub fixpoint: Option<u32>,
}

impl Case {
    /// The inputs as slices, as executors take them.
    pub fn input_slices(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }
}
