//! The flat form of a program, and the way there and back.
//!
//! [`lower`] turns a validated [`Program`] into a [`Kernel`]: columns of `u32` that optimizer and emitters work
//! on. [`raise`] turns a kernel into a program again that means the same, so that the reference can check
//! whatever was done to it. [`Homes`] says where floating rows are computed. [`legalize`] comes before all that: it
//! replaces what a device cannot do exactly.
//!
//! ```
//! use vyre_foundation::Program;
//! use vyre_lower::{lower, raise};
//!
//! let text = "program p { buffer o: output u32[]; if global_id.x < 3 { o[global_id.x] = 1 + 2; } }";
//! let kernel = lower(&Program::parse(text).unwrap());
//! assert_eq!(kernel.items.len(), 2);
//! assert_eq!(lower(&raise(&kernel)), kernel);
//! ```

mod affine;
mod branch;
mod build;
pub mod columns;
mod control;
mod counter;
mod edit;
mod expr;
mod finish;
mod flow;
mod homes;
mod kernel;
mod legalize;
mod lower;
mod raise;
mod rebuild;
mod scan;
mod uniformity;
mod versions;

pub use counter::Counter;
pub use edit::KernelBuilder;
pub use homes::Homes;
pub use kernel::{Id, Item, ItemId, Kernel, Origin, RegionId, Value, ValueId};
pub use legalize::{Legal, legalize};
pub use raise::raise;
pub use rebuild::{Edit, Fate, rebuild};

use vyre_foundation::Program;

/// Lowers a program that has passed validation.
///
/// Functions are inlined and equal pure rows are one row. Rows and items stand in one canonical order, so equal
/// programs give equal kernels. The kernel of a raised program is the kernel it was raised from; only programs
/// that trap come back with more, because a trap ends its invocation by itself and the condition that says so
/// stays beside it.
pub fn lower(program: &Program) -> Kernel {
    let (mut kernel, mut settled) = lower_once(program);
    // A parameter that turned out never to change can decide conditions that were lowered before that was known.
    // Lowering what the kernel says finds them. One more round is nearly always the last.
    for _ in 0..ROUNDS {
        if settled {
            break;
        }
        let (next, done) = lower_once(&raise(&kernel));
        settled = done || next == kernel;
        kernel = next;
    }
    kernel
}

/// How often a kernel is lowered again at the most.
const ROUNDS: usize = 8;

/// How deep regions may nest for a kernel to be lowered once more from its own program.
const DEEP: u32 = 128;

/// A kernel, and whether lowering it once more could change nothing.
fn lower_once(program: &Program) -> (Kernel, bool) {
    // Loads of memory that is never written are pure. What is written is known once the code that is reached is.
    let mut written = scan::may_write(program);
    let mut lowering = loop {
        let mut lowering = lower::Lowering::new(program, written.clone());
        lowering.entry();
        let found = lowering.written();
        if found == written {
            break lowering;
        }
        written = found;
    };
    let depth = lowering.builder.regions.iter().map(|region| region.depth).max().unwrap_or(0);
    let parts = finish::finish(&mut lowering.builder, &lowering.origins, &lowering.tags, program.buffers());
    // A raised trap says twice that its invocation has ended, so such a kernel would only grow.
    let settled = parts.settled || !parts.tags.is_empty() || depth > DEEP;
    let kernel = Kernel {
        name: program.name().clone(),
        workgroup_size: program.workgroup_size(),
        subgroup_size: program.subgroup_size(),
        buffers: program.buffers().to_vec(),
        tags: parts.tags,
        origins: parts.origins,
        values: parts.values,
        items: parts.items,
        regions: parts.regions,
        pool: parts.pool,
    };
    (kernel, settled)
}
