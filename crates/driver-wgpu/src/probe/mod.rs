//! Which short forms of float operations a device has earned.
//!
//! Every operation has a form that is right on any device whose integers are: a sequence of integer operations. The
//! short form leaves the operation to the device, with shielded operands. Drivers differ in which operations they round
//! right, keep subnormals in, and leave alone, and what they say about it cannot be relied on. So a device is tried out:
//! kind by kind, programs of random expression graphs run on it and on the reference, and one different byte means that
//! the kind stays in software. A device has no say in what cannot be tried out.

pub(crate) mod graphs;

use crate::emit::Floats;
use graphs::{Graphs, Kind};
use vyre_driver::{BackendExt, DispatchConfig, ReferenceBackend, Result};
use vyre_foundation::Program;

/// How many graphs a kind is tried with.
const GRAPHS: usize = 96;
/// How many rows of inputs each graph is computed for.
const ROWS: usize = 256;

/// Runs a program with these forms and gives the bytes of its output.
pub(crate) type Run<'a> = &'a mut dyn FnMut(&Program, &[u8], Floats) -> Result<Vec<u8>>;

/// The forms that a device has earned.
pub(crate) fn earned(run: Run<'_>) -> Result<Floats> {
    let reference = ReferenceBackend::new();
    let mut floats = Floats::SOFTWARE;
    // Every kind is tried together with those that were earned before it: it is between operations that things break.
    let mut kinds = Vec::new();
    for kind in Kind::ALL {
        let tried = floats.with(kind);
        kinds.push(kind);
        // One half of the graphs with all kinds so far, the other with this one alone.
        let mixed = Graphs { seed: 1, count: GRAPHS / 2, rows: ROWS, kinds: &kinds };
        let alone = Graphs { seed: 2, count: GRAPHS / 2, rows: ROWS, kinds: &[kind] };
        let mut is_right = true;
        for graphs in [mixed, alone] {
            is_right = is_right && agrees(&reference, run, &graphs, tried)?;
        }
        if is_right {
            floats = tried;
        } else {
            kinds.pop();
        }
    }
    Ok(floats)
}

/// Whether a device computes graphs as the reference does.
pub(crate) fn agrees(
    reference: &ReferenceBackend,
    run: Run<'_>,
    graphs: &Graphs<'_>,
    floats: Floats,
) -> Result<bool> {
    let (program, input) = graphs.program();
    let expected =
        reference.dispatch_borrowed(&program, &[&input], &DispatchConfig::new().grid([1, 1, 1]))?;
    let given = run(&program, &input, floats)?;
    Ok(expected.outputs.first() == Some(&given))
}
