//! What a device can be trusted with: which short forms of float operations it has earned, and how its driver treats
//! loops and conditions.
//!
//! Every operation has a form that is right on any device whose integers are: a sequence of integer operations. The
//! short form leaves the operation to the device, with shielded operands. Drivers differ in which operations they round
//! right, keep subnormals in, and leave alone, and what they say about it cannot be relied on. So a device is tried out:
//! kind by kind, programs of random expression graphs run on it and on the reference, and one different byte means that
//! the kind stays in software. What was found is kept on disk, by device and version of its driver.

mod control;
pub(crate) mod graphs;
#[cfg(test)]
mod tests;

use crate::backend::Core;
use crate::emit::{Floats, Manner, Quirks};
use crate::execute::execute;
use crate::gpu::lock;
use crate::pipeline::WgpuPipeline;
use graphs::{Graphs, Kind};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock, Mutex};
use vyre_driver::cache::Key;
use vyre_driver::{
    Action, BackendExt, Batch, Deadline, DispatchConfig, Error, Launch, ReferenceBackend, Result, Stop,
    Temporary, Unit, Verdict,
};
use vyre_foundation::{Layout, Program, grid};

/// How many graphs a kind is tried with.
const GRAPHS: usize = 64;
/// How many rows of inputs each graph is computed for.
const ROWS: usize = 256;
/// Changes when devices must be tried again.
const VERSION: u8 = 7;

/// What was found in this process, by the names of devices and drivers.
static FOUND: LazyLock<Mutex<FxHashMap<String, Manner>>> = LazyLock::new(Mutex::default);

/// How a device is used, from what was found before or by trying.
pub(crate) fn manner(core: &Core) -> Result<Manner> {
    let gpu = core.gpu();
    let name = gpu.name();
    let disk = gpu.disk.as_deref();
    // Held while a device is tried: others that want it would only try it too.
    let mut found = lock(&FOUND);
    if let Some(manner) = found.get(&name) {
        return Ok(*manner);
    }
    let key = Key::new(&[b"manner", &[VERSION], name.as_bytes()]);
    let kept = disk.and_then(|disk| disk.get(&key)).and_then(|bytes| decode(&bytes));
    let manner = match kept {
        Some(manner) => manner,
        None => {
            let _span = tracing::debug_span!("probe", device = %name).entered();
            let quirks = quirks(core)?;
            let manner = Manner { floats: earned(core, quirks)?, quirks };
            if let Some(disk) = disk {
                disk.put(&key, &encode(manner));
            }
            manner
        }
    };
    found.insert(name, manner);
    Ok(manner)
}

/// A byte for each kind that was earned and for each quirk.
fn encode(Manner { floats, quirks }: Manner) -> Vec<u8> {
    let kinds = Kind::ALL.into_iter().map(|kind| floats.has(kind));
    let Quirks { cuts_loops, forgets_nesting, weak_exchange, follows_parameters } = quirks;
    kinds.chain([cuts_loops, forgets_nesting, weak_exchange, follows_parameters]).map(u8::from).collect()
}

fn decode(bytes: &[u8]) -> Option<Manner> {
    let (kinds, quirks) = bytes.split_last_chunk()?;
    let is_one = kinds.len() == Kind::ALL.len() && bytes.iter().all(|byte| *byte < 2);
    let earned = Kind::ALL.into_iter().zip(kinds).filter(|(_, byte)| **byte == 1);
    let floats = earned.fold(Floats::SOFTWARE, |floats, (kind, _)| floats.with(kind));
    let [cuts_loops, forgets_nesting, weak_exchange, follows_parameters] = quirks.map(|byte| byte == 1);
    let quirks = Quirks { cuts_loops, forgets_nesting, weak_exchange, follows_parameters };
    is_one.then_some(Manner { floats, quirks })
}

/// What users are told.
pub(crate) fn verdicts(Manner { floats, quirks }: Manner, backend: wgpu::Backend) -> Vec<Verdict> {
    // What the project tests thoroughly is Vulkan; elsewhere the trial at the start is all there is.
    let doubt = (backend != wgpu::Backend::Vulkan).then_some("tried at the start only");
    let verdict = |what, by_device| Verdict { what, by_device, doubt };
    let kinds = Kind::ALL.into_iter().map(|kind| verdict(kind.name(), floats.has(kind)));
    let control = [
        ("long loops", !quirks.cuts_loops),
        ("deep nesting", !quirks.forgets_nesting),
        ("exchange", !quirks.weak_exchange),
    ];
    kinds.chain(control.map(|(what, by_device)| verdict(what, by_device))).collect()
}

/// Tries how a driver treats loops and conditions.
fn quirks(core: &Core) -> Result<Quirks> {
    let reference = ReferenceBackend::new();
    let is_right = |(program, input): (Program, Vec<u8>)| -> Result<bool> {
        let config = DispatchConfig::new().grid([1, 1, 1]);
        let expected = reference.dispatch_borrowed(&program, &[&input], &config)?;
        let given = run(core, program, &input, Manner::PLAIN)?;
        Ok(expected.outputs.first() == Some(&given))
    };
    let cuts_loops = !is_right(control::long_loop())?;
    let forgets_nesting = !is_right(control::deep_nesting())?;
    // Nothing that a trial could find: it is what the language of its shaders offers.
    let weak_exchange = core.gpu().info.backend == wgpu::Backend::Metal;
    // And this would be found by a trial that does not end.
    let follows_parameters = core.gpu().info.driver == "llvmpipe";
    tracing::debug!(cuts_loops, forgets_nesting, weak_exchange, follows_parameters, "tried");
    Ok(Quirks { cuts_loops, forgets_nesting, weak_exchange, follows_parameters })
}

/// Tries which float operations a device does right.
fn earned(core: &Core, quirks: Quirks) -> Result<Floats> {
    let reference = ReferenceBackend::new();
    let mut floats = Floats::SOFTWARE;
    // Every kind is tried together with those that were earned before it: it is between operations that things break.
    let mut kinds = Vec::new();
    for kind in Kind::ALL {
        let tried = floats.with(kind);
        kinds.push(kind);
        let mixed = Graphs { seed: 1, count: GRAPHS, rows: ROWS, kinds: &kinds };
        let alone = Graphs { seed: 2, count: GRAPHS / 2, rows: ROWS, kinds: &[kind] };
        let manner = Manner { floats: tried, quirks };
        let is_right = agrees(core, &reference, &alone, manner)? && agrees(core, &reference, &mixed, manner)?;
        tracing::debug!(kind = kind.name(), is_right, "tried");
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
    core: &Core,
    reference: &ReferenceBackend,
    graphs: &Graphs<'_>,
    manner: Manner,
) -> Result<bool> {
    let (program, input) = graphs.program();
    let config = DispatchConfig::new().grid([1, 1, 1]);
    let expected = reference.dispatch_borrowed(&program, &[&input], &config)?;
    let given = run(core, program, &input, manner)?;
    Ok(expected.outputs.first() == Some(&given))
}

/// Runs a program with one input and one output in one workgroup.
fn run(core: &Core, program: Program, input: &[u8], manner: Manner) -> Result<Vec<u8>> {
    let unit = Unit::new(program)?;
    let slots = unit.bindings().slots();
    let bytes = slots.get(1).and_then(|slot| slot.count()).map_or(0, |count| u64::from(count) * 4);
    let layout = Layout::new(unit.program(), &[input.len()], &[])?;
    let grid = grid::resolve(unit.program(), &layout, Some([1, 1, 1]))?;
    let mut batch = Batch::default();
    let x = batch.temporary(Temporary::Borrowed(Cow::Borrowed(input)));
    let o = batch.temporary(Temporary::Zeroed { bytes });
    let pipeline = Arc::new(WgpuPipeline::compile(&core.gpu(), &unit, manner)?);
    batch.push(Action::Launch(Launch { pipeline, bindings: vec![x, o], grid }));
    batch.push(Action::Read { from: o });
    let pins = core.pin(&batch)?;
    let outcome = execute(core, &batch, &pins, &Stop::new(), Deadline::NEVER)?;
    let given = outcome.reads.into_iter().next().flatten();
    given.ok_or_else(|| Error::Internal("a trial gave nothing".to_owned()))
}
