//! What is refused before anything runs, and what is counted.

use super::{ADD_ONE, CONVERGES, Check, Failed, SUM, Start, Verdict, ensure, equal, program, refused, words};
use vyre_driver::{BackendExt, DispatchConfig, Error, Feature, FloatMode, Route, process_telemetry};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "limits: a memory budget is kept, with the numbers", run: budget },
    Check { name: "limits: inputs, lengths and grids that do not fit", run: inputs },
    Check { name: "limits: programs that are not valid", run: invalid },
    Check { name: "limits: features that the device lacks", run: features },
    Check { name: "limits: routes asked for by name", run: routes },
    Check { name: "limits: buffers that do not exist in any memory", run: huge },
    Check { name: "telemetry: what is done is counted", run: counts },
    Check { name: "telemetry: a program is compiled once", run: compiled_once },
];

fn budget(start: &Start<'_>) -> Verdict {
    let backend = start();
    let sum = program(SUM)?;
    let inputs: [&[u8]; 2] = [&words(&[1; 64]), &words(&[2; 64])];
    let before = backend.snapshot_dispatch_telemetry();
    let run = |config: &DispatchConfig| {
        backend.dispatch_borrowed(&sum, &inputs, &config.clone().output_len("o", 64))
    };
    let error = refused("no budget", run(&DispatchConfig::new().memory_budget(0)), "D005")?;
    let Error::OverBudget { needed, budget: 0 } = error else {
        return Err(Failed(format!("the numbers are not there: {error}")));
    };
    ensure!(needed >= 256, "an output of 256 bytes needs {needed}");
    refused("one byte less", run(&DispatchConfig::new().memory_budget(needed - 1)), "D005")?;
    let after = backend.snapshot_dispatch_telemetry();
    equal("launches of refused dispatches", after.launches, before.launches)?;
    run(&DispatchConfig::new().memory_budget(needed))?;
    let converges = program(CONVERGES)?;
    let needed = |fixpoint| -> Result<u64, Failed> {
        let config =
            DispatchConfig { fixpoint_iterations: fixpoint, ..DispatchConfig::new().memory_budget(0) };
        match backend.dispatch_borrowed(&converges, &[&words(&[0; 100])], &config) {
            Err(Error::OverBudget { needed, .. }) => Ok(needed),
            other => Err(Failed(format!("expected a refusal, found {other:?}"))),
        }
    };
    ensure!(needed(Some(2))? >= needed(None)? + 400, "the snapshots of a fixpoint are not counted");
    Ok(())
}

fn inputs(start: &Start<'_>) -> Verdict {
    let backend = start();
    let sum = program(SUM)?;
    let given = words(&[1]);
    let config = DispatchConfig::new().output_len("o", 1);
    let run = |inputs: &[&[u8]], config: &DispatchConfig| backend.dispatch_borrowed(&sum, inputs, config);
    refused("one input", run(&[&given], &config), "I001")?;
    refused("half an element", run(&[&given, &[1, 2]], &config), "I002")?;
    refused("no length", run(&[&given, &given], &DispatchConfig::new()), "I005")?;
    refused("a length of an input", run(&[&given, &given], &config.clone().output_len("a", 1)), "I006")?;
    refused("a name", run(&[&given, &given], &config.clone().output_len("oo", 1)), "I007")?;
    refused("no threads", run(&[&given, &given], &config.clone().threads(0)), "D002")?;
    refused("a grid", run(&[&given, &given], &config.grid([u32::MAX, 1, 1])), "G002")?;
    let flat = program("program flat { workgroup_size 2, 2; buffer o: output u32[4]; o[0] = 1; }")?;
    refused("counts", backend.dispatch(&flat, vec![], &DispatchConfig::new()), "G001")?;
    Ok(())
}

fn invalid(start: &Start<'_>) -> Verdict {
    let backend = start();
    let wrong = program("program wrong { buffer o: output u32[1]; o[0] = x; }")?;
    for _ in 0..2 {
        let error = backend.dispatch(&wrong, vec![], &DispatchConfig::new());
        ensure!(matches!(error, Err(Error::InvalidProgram(_))), "an invalid program gave {error:?}");
        let error = backend.compile_native(&wrong, &DispatchConfig::new());
        ensure!(matches!(error, Err(Error::InvalidProgram(_))), "an invalid program gave {error:?}");
    }
    Ok(())
}

fn features(start: &Start<'_>) -> Verdict {
    let backend = start();
    let wide = program("program wide { buffer o: output u64[1]; atomic_add(o[0], 1u64); }")?;
    let ordered = program("program ordered { buffer o: output u32[1]; atomic_add(o[0], 1, seq_cst); }")?;
    let floats = program("program floats { buffer o: output f32[1]; o[0] = 1.5; }")?;
    let plain = DispatchConfig::new();
    let native = DispatchConfig::new().float_mode(FloatMode::Native);
    let wanted = [
        (&wide, &plain, Feature::Atomics64),
        (&ordered, &plain, Feature::Orderings),
        (&floats, &plain, Feature::ExactFloats),
        (&floats, &native, Feature::NativeFloats),
    ];
    for (program, config, feature) in wanted {
        let result = backend.dispatch(program, vec![], config);
        if backend.supports(feature) {
            result?;
        } else {
            refused(feature.name(), result, "D003")?;
        }
    }
    Ok(())
}

fn routes(start: &Start<'_>) -> Verdict {
    let backend = start();
    let meets = program(
        "program meets { workgroup_size 2; buffer s: scratch u32[4]; buffer o: output u32[4];
         let i = global_id.x; s[i] = i + 1; barrier(grid); o[i] = s[3 - i]; }",
    )?;
    for route in [Route::Auto, Route::Native, Route::Resident, Route::Host] {
        match backend.dispatch(&meets, vec![], &DispatchConfig::new().route(route)) {
            Ok(output) => {
                equal("the bytes", &output.outputs[..], &[words(&[4, 3, 2, 1])])?;
                let taken = output.report.route;
                ensure!(taken == route || route == Route::Auto, "asked for {route}, took {taken}");
            }
            Err(Error::Unsupported { .. } | Error::ResidencyExceeded { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn huge(start: &Start<'_>) -> Verdict {
    let backend = start();
    refused("allocate", backend.allocate_resident(u64::MAX), "D004")?;
    refused("allocate", backend.allocate_resident(1 << 60), "D004")?;
    super::results::still_free(&backend)
}

fn counts(start: &Start<'_>) -> Verdict {
    let backend = start();
    let add_one = program(ADD_ONE)?;
    let all = process_telemetry();
    let before = backend.snapshot_dispatch_telemetry();
    let mut outputs = Vec::new();
    for _ in 0..3 {
        backend.dispatch_borrowed_into(&add_one, &[&words(&[1, 2])], &mut outputs, &DispatchConfig::new())?;
    }
    let handle = backend.allocate_resident(100)?;
    let now = backend.snapshot_dispatch_telemetry();
    equal("launches", now.launches - before.launches, 3)?;
    equal("bytes in", now.bytes_in - before.bytes_in, 24)?;
    equal("bytes out", now.bytes_out - before.bytes_out, 24)?;
    equal("passes", now.passes - before.passes, 3)?;
    equal("outputs made", now.outputs_appended - before.outputs_appended, 1)?;
    equal("outputs reused", now.outputs_reused - before.outputs_reused, 2)?;
    equal("allocated", now.resident_allocated - before.resident_allocated, 100)?;
    backend.free_resident(handle)?;
    super::results::still_free(&backend)?;
    ensure!(process_telemetry().launches >= all.launches + 3, "the process does not count its backends");
    let metrics = backend.backend_metric_snapshot();
    let found = metrics.iter().find(|(name, _)| *name == "launches").map(|(_, count)| *count);
    equal("the metric", found, Some(now.launches))
}

fn compiled_once(start: &Start<'_>) -> Verdict {
    let backend = start();
    let run = |text: &str| -> Verdict {
        backend.dispatch(&program(text)?, vec![words(&[1])], &DispatchConfig::new())?;
        Ok(())
    };
    run(ADD_ONE)?;
    let first = backend.pipeline_cache_snapshot();
    equal("misses", (first.misses, first.entries), (1, 1))?;
    run(ADD_ONE)?;
    run(&ADD_ONE.replace("    ", " "))?;
    let then = backend.pipeline_cache_snapshot();
    equal("misses", (then.misses, then.entries, then.hits), (1, 1, first.hits + 2))?;
    equal("compiles", backend.snapshot_dispatch_telemetry().compiles <= 1, true)
}
