//! Which short forms of float operations a device has earned.
//!
//! Every operation has a form that is right on any device whose integers are: a sequence of integer operations. The
//! short form leaves the operation to the device, with shielded operands. Drivers differ in which operations they round
//! right, keep subnormals in, and leave alone, and what they say about it cannot be relied on. So a device is tried out:
//! kind by kind, programs of random expression graphs run on it and on the reference, and one different byte means that
//! the kind stays in software. What was found is kept on disk, by device and version of its driver.

pub(crate) mod graphs;
#[cfg(test)]
mod tests;

use crate::backend::Core;
use crate::emit::Floats;
use crate::execute::execute;
use crate::gpu::lock;
use crate::pipeline::WgpuPipeline;
use graphs::{Graphs, Kind};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock, Mutex};
use vyre_driver::cache::{DiskCache, Key};
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
const VERSION: u8 = 1;

/// What was found in this process, by the names of devices and drivers.
static FOUND: LazyLock<Mutex<FxHashMap<String, Floats>>> = LazyLock::new(Mutex::default);

/// The forms that a device has earned, from what was found before or by trying.
pub(crate) fn floats(core: &Core, disk: Option<&DiskCache>) -> Result<Floats> {
    let profile = core.profile();
    let name = format!("{} {}", profile.device, profile.version);
    // Held while a device is tried: others that want it would only try it too.
    let mut found = lock(&FOUND);
    if let Some(floats) = found.get(&name) {
        return Ok(*floats);
    }
    let key = Key::new(&[b"floats", &[VERSION], name.as_bytes()]);
    let kept = disk.and_then(|disk| disk.get(&key)).and_then(|bytes| decode(&bytes));
    let floats = match kept {
        Some(floats) => floats,
        None => {
            let _span = tracing::debug_span!("probe", device = %name).entered();
            let floats = earned(core)?;
            if let Some(disk) = disk {
                disk.put(&key, &encode(floats));
            }
            floats
        }
    };
    found.insert(name, floats);
    Ok(floats)
}

/// A byte per kind: whether it was earned.
fn encode(floats: Floats) -> Vec<u8> {
    Kind::ALL.into_iter().map(|kind| u8::from(floats.has(kind))).collect()
}

fn decode(bytes: &[u8]) -> Option<Floats> {
    let is_one = bytes.len() == Kind::ALL.len() && bytes.iter().all(|byte| *byte < 2);
    let earned = Kind::ALL.into_iter().zip(bytes).filter(|(_, byte)| **byte == 1);
    is_one.then(|| earned.fold(Floats::SOFTWARE, |floats, (kind, _)| floats.with(kind)))
}

/// What users are told.
pub(crate) fn verdicts(floats: Floats, backend: wgpu::Backend) -> Vec<Verdict> {
    // What the project tests thoroughly is Vulkan; elsewhere the trial at the start is all there is.
    let doubt = (backend != wgpu::Backend::Vulkan)
        .then_some("only tried at the start, on no driver of this kind tested");
    let verdict = |kind: Kind| Verdict { what: kind.name(), by_device: floats.has(kind), doubt };
    Kind::ALL.into_iter().map(verdict).collect()
}

/// Tries a device out.
fn earned(core: &Core) -> Result<Floats> {
    let reference = ReferenceBackend::new();
    let mut floats = Floats::SOFTWARE;
    // Every kind is tried together with those that were earned before it: it is between operations that things break.
    let mut kinds = Vec::new();
    for kind in Kind::ALL {
        let tried = floats.with(kind);
        kinds.push(kind);
        let mixed = Graphs { seed: 1, count: GRAPHS, rows: ROWS, kinds: &kinds };
        let alone = Graphs { seed: 2, count: GRAPHS / 2, rows: ROWS, kinds: &[kind] };
        let is_right = agrees(core, &reference, &alone, tried)? && agrees(core, &reference, &mixed, tried)?;
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
    floats: Floats,
) -> Result<bool> {
    let (program, input) = graphs.program();
    let config = DispatchConfig::new().grid([1, 1, 1]);
    let expected = reference.dispatch_borrowed(&program, &[&input], &config)?;
    let given = run(core, program, &input, floats)?;
    Ok(expected.outputs.first() == Some(&given))
}

/// Runs a program of graphs in one workgroup, with these forms.
fn run(core: &Core, program: Program, input: &[u8], floats: Floats) -> Result<Vec<u8>> {
    let unit = Unit::new(program)?;
    let slots = unit.bindings().slots();
    let bytes = slots.get(1).and_then(|slot| slot.count()).map_or(0, |count| u64::from(count) * 4);
    let layout = Layout::new(unit.program(), &[input.len()], &[])?;
    let grid = grid::resolve(unit.program(), &layout, Some([1, 1, 1]))?;
    let mut batch = Batch::default();
    let x = batch.temporary(Temporary::Borrowed(Cow::Borrowed(input)));
    let o = batch.temporary(Temporary::Zeroed { bytes });
    let pipeline = Arc::new(WgpuPipeline::compile(&core.gpu(), &unit, floats)?);
    batch.push(Action::Launch(Launch { pipeline, bindings: vec![x, o], grid }));
    batch.push(Action::Read { from: o });
    let pins = core.pin(&batch)?;
    let outcome = execute(core, &batch, &pins, &Stop::new(), Deadline::NEVER)?;
    let given = outcome.reads.into_iter().next().flatten();
    given.ok_or_else(|| Error::Internal("a trial gave nothing".to_owned()))
}
