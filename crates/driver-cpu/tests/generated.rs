//! Generated programs give the reference's bytes, with any number of threads.

use std::borrow::Cow;
use std::sync::Arc;
use vyre_conform::{Case, DEFAULT_SIZE, generate};
use vyre_driver::{Action, Batch, CompileOptions, Deadline, Error, Launch, Temporary, Unit, VyreBackend};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::{Layout, grid};

fn run(backend: &CpuBackend, case: &Case, threads: usize) -> Result<Vec<Vec<u8>>, Error> {
    let unit = Unit::new(case.program.clone())?;
    let pipeline = backend.compile(&unit, &CompileOptions::default())?;
    let lengths: Vec<usize> = case.inputs.iter().map(Vec::len).collect();
    let layout = Layout::new(unit.program(), &lengths, &case.lengths)?;
    let grid = grid::resolve(unit.program(), &layout, case.grid)?;
    let mut batch = Batch::default();
    let mut inputs = case.inputs.iter();
    let mut bindings = Vec::new();
    let mut outputs = Vec::new();
    for (buffer, count) in unit.program().buffers().iter().zip(layout.counts()) {
        if !buffer.access().is_shared_by_grid() {
            continue;
        }
        let span = batch.temporary(if buffer.consumes_input() {
            Temporary::Initial(Cow::Borrowed(inputs.next().unwrap()))
        } else {
            Temporary::Zeroed { bytes: u64::from(*count) * buffer.element().size() as u64 }
        });
        bindings.push(span);
        if buffer.produces_output() {
            outputs.push(span);
        }
    }
    batch.push(Action::Launch(Launch { pipeline, bindings, grid }));
    outputs.into_iter().for_each(|from| batch.push(Action::Read { from }));
    batch.threads = Some(threads);
    Ok(backend.run(batch, Deadline::NEVER)?.reads.into_iter().map(Option::unwrap).collect())
}

#[test]
fn equals_the_reference() {
    let cases: u64 = std::env::var("VYRE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let first: u64 = std::env::var("VYRE_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let backend = Arc::new(
        CpuBackend::with_options(CpuOptions {
            threads: 8,
            cache_folder: None,
            placement: if std::env::var_os("VYRE_HEAP").is_some() {
                Default::default()
            } else {
                vyre_driver_cpu::Placement::Guarded
            },
            ..Default::default()
        })
        .unwrap(),
    );
    let mut skipped = 0;
    for seed in first..first + cases {
        let case = generate(seed, DEFAULT_SIZE);
        if case.fixpoint.is_some() {
            skipped += 1;
            continue;
        }
        let inputs: Vec<&[u8]> = case.inputs.iter().map(Vec::as_slice).collect();
        let options =
            vyre_reference::Options { grid: case.grid, lengths: case.lengths.clone(), ..Default::default() };
        let expected = vyre_reference::run(&case.program, &inputs, &options)
            .map(|o| o.outputs)
            .map_err(|e| e.to_string());
        for threads in [1, 2, 8] {
            let found = run(&backend, &case, threads).map_err(|e| e.to_string());
            assert!(
                found == expected,
                "seed {seed}, {threads} threads\n{}\nexpected {expected:?}\nfound {found:?}",
                case.program
            );
        }
    }
    eprintln!("skipped {skipped}");
}
