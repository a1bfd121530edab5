//! What dispatches give: the bytes of the reference.

use super::{
    ADD_ONE, CONVERGES, Check, Failed, SUM, Start, TRAPS, Verdict, ensure, equal, program, refused, words,
};
use crate::{Case, DEFAULT_SIZE, Device, Executor, Failure, Reference, compare, generate};
use std::sync::Arc;
use vyre_driver::{BackendExt, DispatchConfig, Error, VyreBackend};
use vyre_foundation::Name;
use vyre_reference::Schedule;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "results: chosen programs equal the reference", run: chosen },
    Check { name: "results: generated programs equal the reference", run: generated },
    Check { name: "results: thread limits do not matter", run: thread_limits },
    Check { name: "results: fixpoints stop after the pass that changes nothing", run: fixpoints },
    Check { name: "results: asynchronous fixpoints equal blocking ones", run: pending_fixpoints },
    Check { name: "results: the smallest invocation that trapped is reported", run: traps },
    Check { name: "results: outputs are untouched by a failure", run: untouched },
    Check { name: "results: zero-length buffers and empty grids", run: empty },
    Check { name: "results: a workgroup size override edits the program", run: override_size },
];

/// How many generated programs are compared.
const GENERATED: u64 = 150;

/// A program with everything around it.
struct Chosen {
    text: &'static str,
    inputs: &'static [&'static [u32]],
    lengths: &'static [(&'static str, u32)],
    grid: Option<[u32; 3]>,
}

const CHOSEN: &[Chosen] = &[
    Chosen { text: ADD_ONE, inputs: &[&[1, 2, 3, u32::MAX, 5]], lengths: &[], grid: None },
    Chosen { text: SUM, inputs: &[&[1, 2, 3], &[10, 20, 30]], lengths: &[("o", 7)], grid: None },
    Chosen {
        text: "program narrow {
            workgroup_size 8;
            buffer a: read u8[];
            buffer b: write i16[];
            buffer h: output f16[];
            let i = global_id.x;
            b[i] = i32(a[i]) - 100i32;
            h[i] = f32(a[i]) / 3.0;
        }",
        inputs: &[&[0x0201_ff80, 0x7f00_1020]],
        lengths: &[("b", 8), ("h", 8)],
        grid: None,
    },
    Chosen {
        text: "program floats {
            workgroup_size 4;
            buffer a: read f32[];
            buffer o: output f32[];
            let i = global_id.x;
            let x = a[i];
            o[i] = fma(x, 3.0, sqrt(abs(x))) - 1.0 / x;
        }",
        inputs: &[&[0x3f80_0000, 0x0000_0001, 0x7fc0_1234, 0xff80_0000, 0x8000_0000]],
        lengths: &[("o", 5)],
        grid: None,
    },
    Chosen {
        text: "program reduction {
            workgroup_size 8;
            buffer a: read u32[];
            buffer o: output u32[];
            workgroup part: u32[8];
            local seen: u32[2];
            let lane = local_id.x;
            part[lane] = a[global_id.x];
            seen[lane % 2] = 1;
            for step in 0..3 {
                let distance = 4 >> step;
                barrier(workgroup);
                if lane < distance {
                    part[lane] = part[lane] + part[lane + distance];
                }
            }
            barrier(workgroup);
            if lane == 0 {
                o[workgroup_id.x] = part[0] + seen[0];
            }
        }",
        inputs: &[&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]],
        lengths: &[("o", 3)],
        grid: Some([3, 1, 1]),
    },
    Chosen {
        text: "program subgroups {
            workgroup_size 6;
            subgroup_size 4;
            buffer o: output u32[];
            let i = global_id.x;
            o[i] = subgroup_add(i) * 1000 + subgroup_ballot(i % 2 == 0) * 10 + subgroup_shuffle(i, 1);
        }",
        inputs: &[],
        lengths: &[("o", 12)],
        grid: None,
    },
    Chosen {
        text: "program whole_grid {
            workgroup_size 2;
            buffer o: output u32[];
            buffer turn: scratch u32[4];
            let i = global_id.x;
            for round_number in 0..3 {
                turn[i % 4] = turn[i % 4] + i;
                barrier(grid);
                o[i] = o[i] + turn[(i + 1) % 4];
                barrier(grid);
            }
        }",
        inputs: &[],
        lengths: &[("o", 4)],
        grid: None,
    },
    Chosen {
        text: "program wide {
            workgroup_size 2, 2;
            buffer o: output u64[];
            buffer n: output u32[1];
            let i = global_id.x + global_id.y * 6;
            o[i] = u64(i) * 0x100000001u64;
            atomic_max(n[0], i);
        }",
        inputs: &[],
        lengths: &[("o", 24)],
        grid: Some([3, 2, 1]),
    },
];

impl Chosen {
    fn case(&self) -> Result<Case, Failed> {
        Ok(Case {
            program: program(self.text)?,
            inputs: self.inputs.iter().map(|input| words(input)).collect(),
            grid: self.grid,
            lengths: self.lengths.iter().map(|(name, n)| (Name::from(*name), *n)).collect(),
            fixpoint: None,
        })
    }
}

fn against_reference(device: Device, case: &Case) -> Verdict {
    let executors: [Box<dyn Executor>; 2] = [Box::new(Reference::new(Schedule::InOrder)), Box::new(device)];
    match compare(case, &executors) {
        None => Ok(()),
        Some(mismatch) => Err(Failed(format!("{mismatch}\n{}", case.program))),
    }
}

fn chosen(start: &Start<'_>) -> Verdict {
    let backend = start();
    for chosen in CHOSEN {
        let case = chosen.case()?;
        let device = Device::new(Arc::clone(&backend));
        if let Err(Failure::Failed(why)) = device.run(&case) {
            return Err(Failed(format!("{why}\n{}", case.program)));
        }
        against_reference(device, &case)?;
    }
    Ok(())
}

fn generated(start: &Start<'_>) -> Verdict {
    let backend = start();
    let device = || Device::new(Arc::clone(&backend));
    (0..GENERATED).try_for_each(|seed| against_reference(device(), &generate(seed, DEFAULT_SIZE)))
}

fn thread_limits(start: &Start<'_>) -> Verdict {
    let backend = start();
    for seed in 0..20 {
        let case = generate(seed, DEFAULT_SIZE);
        for threads in [1, 2, 8] {
            against_reference(Device::new(Arc::clone(&backend)).with_threads(threads), &case)?;
        }
    }
    Ok(())
}

/// Bounds around every size of a chunk of passes.
const LIMITS: &[u32] = &[1, 2, 3, 4, 7, 8, 10, 11, 12, 100];

fn fixpoint_of(limit: u32, first: u32) -> (Vec<u32>, u32, Option<bool>) {
    let to_ten = 10u32.saturating_sub(first);
    let passes = limit.min(to_ten + 1);
    (vec![first + passes.min(to_ten), 10], passes, Some(limit > to_ten))
}

fn fixpoints(start: &Start<'_>) -> Verdict {
    let backend = start();
    let converges = program(CONVERGES)?;
    for limit in LIMITS {
        let config = DispatchConfig::new().fixpoint(*limit);
        let (values, passes, converged) = fixpoint_of(*limit, 0);
        let output = backend.dispatch_borrowed(&converges, &[&words(&[0, 10])], &config)?;
        equal(&format!("limit {limit}"), output.outputs, vec![words(&values)])?;
        equal("passes", (output.report.passes, output.report.converged), (passes, converged))?;
        let owned = backend.dispatch(&converges, vec![words(&[0, 10])], &config)?;
        equal("with bytes of its own", owned.outputs, vec![words(&values)])?;
        let handle = backend.allocate_resident(8)?;
        backend.upload_resident(handle, &words(&[0, 10]))?;
        let report = backend.dispatch_resident_timed(&converges, &[handle], &config)?;
        equal("resident", backend.download_resident(handle)?, words(&values))?;
        equal("resident passes", (report.passes, report.converged), (passes, converged))?;
        backend.free_resident(handle)?;
    }
    let strict = DispatchConfig::new().fixpoint(5).must_converge();
    refused("too few passes", backend.dispatch(&converges, vec![words(&[0])], &strict), "D011")?;
    refused(
        "no passes",
        backend.dispatch(&converges, vec![words(&[0])], &DispatchConfig::new().fixpoint(0)),
        "D002",
    )?;
    still_free(&backend)
}

fn pending_fixpoints(start: &Start<'_>) -> Verdict {
    let backend = start();
    let counts = program("program count { buffer x: read_write u32[1]; x[0] = min(x[0] + 1, 150); }")?;
    for limit in [1, 63, 64, 65, 128, 129, 150, 151, 1000] {
        let config = DispatchConfig::new().fixpoint(limit);
        let blocking = backend.dispatch_borrowed(&counts, &[&words(&[0])], &config)?;
        let pending = backend.dispatch_borrowed_async(&counts, &[&words(&[0])], &config)?;
        equal(&format!("limit {limit}"), pending.await_result()?, blocking)?;
    }
    still_free(&backend)
}

/// Fails where anything is still allocated.
pub(super) fn still_free(backend: &Arc<dyn VyreBackend>) -> Verdict {
    let counters = backend.snapshot_dispatch_telemetry();
    equal("resident bytes left", counters.resident_allocated, counters.resident_freed)
}

fn traps(start: &Start<'_>) -> Verdict {
    let backend = start();
    let traps = program(TRAPS)?;
    let mut elements = vec![0; 1000];
    for at in [999, 998, 500, 3] {
        elements[at] = at as u32 + 7;
        let config = DispatchConfig::new().output_len("o", 1000);
        let error = refused("a trap", backend.dispatch(&traps, vec![words(&elements)], &config), "D009")?;
        let Error::Trap(trap) = error else { return Err(Failed("not a trap".to_owned())) };
        equal(
            "the trap",
            (trap.tag.as_str(), trap.value, trap.invocation),
            ("bad element", at as u32 + 7, at as u64),
        )?;
    }
    let config = DispatchConfig::new().output_len("o", 4);
    let fine = backend.dispatch(&traps, vec![words(&[0; 4])], &config)?;
    equal("after a trap", fine.outputs, vec![words(&[1; 4])])?;
    let late = program(
        "program late { buffer x: read_write u32[1]; x[0] = x[0] + 1; if x[0] == 5 { trap(\"five\", x[0]); } }",
    )?;
    let config = DispatchConfig::new().fixpoint(100);
    refused("a trap in a fixpoint", backend.dispatch(&late, vec![words(&[0])], &config), "D009")?;
    still_free(&backend)
}

fn untouched(start: &Start<'_>) -> Verdict {
    let backend = start();
    let traps = program(TRAPS)?;
    let before = vec![vec![1, 2, 3], vec![4]];
    let mut outputs = before.clone();
    let config = DispatchConfig::new().output_len("o", 2);
    let result = backend.dispatch_borrowed_into(&traps, &[&words(&[0, 1])], &mut outputs, &config);
    refused("a trap", result, "D009")?;
    equal("outputs after a trap", &outputs, &before)?;
    let result = backend.dispatch_borrowed_into(&traps, &[&[1, 2, 3]], &mut outputs, &config);
    refused("half an element", result, "I002")?;
    equal("outputs after a wrong input", &outputs, &before)?;
    let input = words(&[1, 2, 3]);
    backend.dispatch_borrowed(&program(ADD_ONE)?, &[&input], &DispatchConfig::new())?;
    equal("inputs", input, words(&[1, 2, 3]))
}

fn empty(start: &Start<'_>) -> Verdict {
    let backend = start();
    let (sum, add_one) = (program(SUM)?, program(ADD_ONE)?);
    let config = DispatchConfig::new().output_len("o", 0);
    let output = backend.dispatch_borrowed(&sum, &[&[], &[]], &config)?;
    equal("no elements", output.outputs, vec![vec![]])?;
    let config = DispatchConfig::new().output_len("o", 2).grid([1, 1, 1]);
    let output = backend.dispatch_borrowed(&sum, &[&[], &words(&[5])], &config)?;
    equal("an empty input reads as zeros", output.outputs, vec![words(&[5, 0])])?;
    let output =
        backend.dispatch_borrowed(&add_one, &[&words(&[7])], &DispatchConfig::new().grid([0, 5, 1]))?;
    equal("no workgroups", output.outputs, vec![words(&[7])])?;
    let config = DispatchConfig::new().grid([0, 1, 1]).fixpoint(9);
    let output = backend.dispatch_borrowed(&add_one, &[&words(&[7])], &config)?;
    equal("a fixpoint of nothing", (output.report.passes, output.report.converged), (1, Some(true)))?;
    let nothing = program("program nothing { }")?;
    equal("no buffers", backend.dispatch(&nothing, vec![], &DispatchConfig::new())?.outputs, vec![])?;
    let handle = backend.allocate_resident(0)?;
    backend.upload_resident(handle, &[])?;
    equal("an empty handle", backend.download_resident(handle)?, vec![])?;
    backend.dispatch_resident_timed(&add_one, &[handle], &DispatchConfig::new())?;
    backend.free_resident(handle)?;
    Ok(())
}

fn override_size(start: &Start<'_>) -> Verdict {
    let backend = start();
    let sizes =
        program("program sizes { workgroup_size 4; buffer o: output u32[6]; o[global_id.x] = local_id.x; }")?;
    let pipeline = backend.compile_native(&sizes, &DispatchConfig::new())?;
    let plain = backend.dispatch(&pipeline, vec![], &DispatchConfig::new())?;
    equal("its own size", plain.outputs, vec![words(&[0, 1, 2, 3, 0, 1])])?;
    for size in [1u32, 3, 64] {
        let config = DispatchConfig::new().workgroup_size(size);
        let expected = words(&(0..6).map(|i| i % size).collect::<Vec<_>>());
        equal("a program", backend.dispatch(&sizes, vec![], &config)?.outputs, vec![expected.clone()])?;
        equal("a pipeline", backend.dispatch(&pipeline, vec![], &config)?.outputs, vec![expected])?;
    }
    let zero = DispatchConfig::new().workgroup_size(0);
    ensure!(backend.dispatch(&sizes, vec![], &zero).is_err(), "a workgroup size of 0 was accepted");
    Ok(())
}
