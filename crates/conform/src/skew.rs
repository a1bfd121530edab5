//! Programs whose workgroups run far apart.
//!
//! A schedule of the reference lets every invocation advance in each round, so workgroups stay close together and
//! a workgroup barrier orders more than it promises. [`skewed`] rewrites a program so that workgroups and
//! subgroups lose turns at its beginning and after every barrier, each another number of them. What a
//! deterministic program computes stays the same.

use crate::Case;
use crate::reduce::edit::{holds_uniform_load, replace_statements};
use vyre_foundation::rng::SplitMix64;
use vyre_foundation::{Axis, BufferAccess, BufferDecl, Element, Expr, Name, Node};

/// The buffer whose loads take up turns. It is scratch, so inputs and outputs are as before.
const BUFFER: &str = "skew_buffer";
const COUNTER: &str = "skew_counter";

/// The case with delays that differ between workgroups, chosen by the seed.
pub(crate) fn skewed(case: &Case, seed: u64) -> Case {
    let mut rng = SplitMix64::new(seed);
    let program = replace_statements(&case.program, &mut |_, node| {
        let mut waits = matches!(node, Node::Barrier { .. });
        node.for_each_expr(&mut |expr| waits |= holds_uniform_load(expr));
        let compound = node.bodies().next().is_some();
        (waits && !compound).then(|| vec![node.clone(), delay(&mut rng)])
    });
    let mut entry = vec![delay(&mut rng)];
    entry.extend(program.entry().iter().cloned());
    let mut buffers = program.buffers().to_vec();
    buffers.push(BufferDecl::storage(Name::from(BUFFER), BufferAccess::Scratch, Element::U32).with_count(1));
    let program = program.with_rewritten_entry(entry).with_rewritten_buffers(buffers);
    Case { program, ..case.clone() }
}

/// A loop of loads whose number depends on the workgroup, or on the part of the workgroup.
fn delay(rng: &mut SplitMix64) -> Node {
    let axis = Axis::ALL[rng.below(4).min(2) as usize];
    let id = match rng.below(4) {
        0 => Expr::div(Expr::local_id(Axis::X), Expr::u32(2)),
        1 => Expr::workgroup_id(axis),
        _ => Expr::workgroup_id(Axis::X),
    };
    let classes = 2 + rng.below(3) as u32;
    let turned = Expr::add(Expr::mul(id, Expr::u32(1 + rng.below(3) as u32)), Expr::u32(rng.below(4) as u32));
    let turns = *rng.pick(&[3, 12, 40]);
    let count = Expr::mul(Expr::rem(turned, Expr::u32(classes)), Expr::u32(turns));
    Node::loop_for(COUNTER, Expr::u32(0), count, [Node::eval(Expr::atomic_load(BUFFER, Expr::u32(0)))])
}
