//! Every method that users get, at least once. One table: a method that is not in it has no check.

use super::{ADD_ONE, Check, Failed, SUM, Start, Verdict, ensure, equal, program, words};
use std::sync::Arc;
use vyre_driver::{
    BackendExt, DispatchConfig, DispatchOutput, Error, Feature, RawHandle, ResidentRange, ResidentStep,
    Route, VyreBackend,
};
use vyre_foundation::Program;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "methods: each does what it says", run: each },
    Check { name: "methods: pipelines and programs are dispatched alike", run: pipelines },
    Check { name: "methods: every typed buffer holds its elements", run: typed },
];

/// A backend with programs and memory to use.
struct Bench {
    backend: Arc<dyn VyreBackend>,
    sum: Program,
    add_one: Program,
    a: Vec<u8>,
    b: Vec<u8>,
    /// Holds 1, 2, 3.
    x: RawHandle,
}

impl Bench {
    fn new(start: &Start<'_>) -> Result<Bench, Failed> {
        let backend = start();
        let x = backend.allocate(12)?;
        let bench = Bench {
            sum: program(SUM)?,
            add_one: program(ADD_ONE)?,
            a: words(&[1, 2, 3]),
            b: words(&[10, 20, 30]),
            x,
            backend,
        };
        bench.backend.upload_resident(x, &bench.a)?;
        Ok(bench)
    }

    fn config(&self) -> DispatchConfig {
        DispatchConfig::new().output_len("o", 3).label("suite")
    }

    fn inputs(&self) -> [&[u8]; 2] {
        [&self.a, &self.b]
    }

    fn is_sum(&self, output: &DispatchOutput) -> Verdict {
        equal("the backend", output.report.backend, self.backend.profile().backend)?;
        equal("the grid", output.report.grid.workgroups(), [1, 1, 1])?;
        equal("the passes", (output.report.passes, output.report.converged), (1, None))?;
        equal("the sum", &output.outputs, &vec![words(&[11, 22, 33])])
    }

    /// Whether a dispatch that is not left to the device can run by this route.
    fn splits(&self, route: Route) -> bool {
        match route {
            Route::Host => self.backend.allows_host_grid_sync_split(),
            _ => self.backend.supports_resident() || self.backend.allows_host_grid_sync_split(),
        }
    }

    /// A program with a grid barrier, segment by segment, whichever route is named: 1, 2, 3 is turned by one.
    fn split(&self, run: impl Fn(&Program, &DispatchConfig) -> Result<DispatchOutput, Error>) -> Verdict {
        let turns = program(
            "program turns { workgroup_size 2; buffer x: read_write u32[]; let i = global_id.x; let y = x[i];
             barrier(grid); if i < len(x) { x[(i + 1) % len(x)] = y; } }",
        )?;
        for route in [Route::Auto, Route::Native, Route::Resident, Route::Host] {
            let result = run(&turns, &DispatchConfig::new().route(route));
            if !self.splits(route) {
                super::refused("without the feature", result, "D003")?;
                continue;
            }
            let output = result?;
            let is_host = route == Route::Host || !self.backend.supports_resident();
            let taken = if is_host { Route::Host } else { Route::Resident };
            equal("the route", (output.report.route, output.report.segments), (taken, 2))?;
            equal("the bytes", output.outputs, vec![words(&[3, 1, 2])])?;
        }
        Ok(())
    }

    fn x_is(&self, values: &[u32]) -> Verdict {
        equal("resident memory", self.backend.download_resident(self.x)?, words(values))
    }
}

/// One method, in use.
type Use = fn(&Bench) -> Verdict;

const METHODS: &[(&str, Use)] = &[
    ("dispatch", |t| t.is_sum(&t.backend.dispatch(&t.sum, vec![t.a.clone(), t.b.clone()], &t.config())?)),
    ("dispatch_borrowed", |t| t.is_sum(&t.backend.dispatch_borrowed(&t.sum, &t.inputs(), &t.config())?)),
    ("dispatch_borrowed_into", |t| {
        let mut outputs = vec![Vec::with_capacity(64), vec![1]];
        let place = outputs[0].as_ptr();
        let report = t.backend.dispatch_borrowed_into(&t.sum, &t.inputs(), &mut outputs, &t.config())?;
        ensure!(outputs[0].as_ptr() == place, "the caller's buffer is not used again");
        t.is_sum(&DispatchOutput { outputs, report })
    }),
    ("dispatch_borrowed_timed", |t| {
        let output = t.backend.dispatch_borrowed_timed(&t.sum, &t.inputs(), &t.config())?;
        let timing = output.report.timing.ok_or_else(|| Failed("no timing".to_owned()))?;
        ensure!(timing.total >= timing.prepare, "a part takes longer than the whole: {timing:?}");
        t.is_sum(&output)
    }),
    ("dispatch_async", |t| {
        let pending = t.backend.dispatch_async(&t.sum, vec![t.a.clone(), t.b.clone()], &t.config())?;
        t.is_sum(&pending.await_result()?)
    }),
    ("dispatch_borrowed_async", |t| {
        let pending = t.backend.dispatch_borrowed_async(&t.sum, &t.inputs(), &t.config())?;
        while !pending.is_ready() {
            std::thread::yield_now();
        }
        t.is_sum(&pending.await_result()?)
    }),
    ("allocate_resident", |t| {
        let handle = t.backend.allocate_resident(5)?;
        equal("its size", handle.bytes(), 5)?;
        equal("its contents", t.backend.download_resident(handle)?, vec![0; 5])?;
        Ok(t.backend.free_resident(handle)?)
    }),
    ("free_resident", |t| {
        let handle = t.backend.allocate_resident(5)?;
        Ok(t.backend.free_resident(handle)?)
    }),
    ("upload_resident", |t| {
        t.backend.upload_resident(t.x, &words(&[7, 8, 9]))?;
        t.x_is(&[7, 8, 9])
    }),
    ("upload_resident_many", |t| {
        t.backend.upload_resident_many(&[(t.x, &words(&[0; 3])), (t.x, &words(&[4, 5, 6]))])?;
        t.x_is(&[4, 5, 6])
    }),
    ("upload_resident_at", |t| {
        t.backend.upload_resident_at(t.x, 4, &words(&[7]))?;
        t.x_is(&[1, 7, 3])
    }),
    ("upload_resident_at_many", |t| {
        t.backend.upload_resident_at_many(&[(t.x, 8, &words(&[7])), (t.x, 1, &[1, 1])])?;
        t.x_is(&[0x0001_0101, 2, 7])
    }),
    ("download_resident", |t| equal("all", t.backend.download_resident(t.x)?, words(&[1, 2, 3]))),
    ("download_resident_into", |t| {
        let mut output = vec![9; 100];
        let place = output.as_ptr();
        t.backend.download_resident_into(t.x, &mut output)?;
        ensure!(output.as_ptr() == place, "the caller's buffer is not used again");
        equal("all", output, words(&[1, 2, 3]))
    }),
    ("download_resident_range", |t| {
        let range = ResidentRange { handle: t.x, offset: 4, bytes: 5 };
        equal("a range", t.backend.download_resident_range(range)?, vec![2, 0, 0, 0, 3])
    }),
    ("download_resident_range_into", |t| {
        let mut output = vec![];
        let range = ResidentRange { handle: t.x, offset: 8, bytes: 1 };
        t.backend.download_resident_range_into(range, &mut output)?;
        equal("a range", output, vec![3])
    }),
    ("download_resident_ranges_into", |t| {
        let mut outputs = vec![vec![], vec![1], vec![2], vec![3]];
        let ranges = [t.x.into(), ResidentRange { handle: t.x, offset: 0, bytes: 1 }];
        t.backend.download_resident_ranges_into(&ranges, &mut outputs)?;
        equal("ranges", outputs, vec![words(&[1, 2, 3]), vec![1]])
    }),
    ("dispatch_resident_timed", |t| {
        let report = t.backend.dispatch_resident_timed(&t.add_one, &[t.x], &DispatchConfig::new())?;
        ensure!(report.timing.is_some(), "no timing");
        t.x_is(&[2, 3, 4])
    }),
    ("dispatch_resident_sequence_read_ranges_into", |t| {
        let o = t.backend.allocate_resident(12)?;
        t.backend.upload_resident(o, &words(&[99; 3]))?;
        let config = DispatchConfig::new();
        let (first, second) = ([t.x], [t.x, t.x, o]);
        let steps =
            [ResidentStep::new(&t.add_one, &first, &config), ResidentStep::new(&t.sum, &second, &config)];
        let mut outputs = vec![];
        t.backend.dispatch_resident_sequence_read_ranges_into(&steps, &[o.into()], &mut outputs)?;
        equal("the result", outputs, vec![words(&[4, 6, 8])])?;
        Ok(t.backend.free_resident(o)?)
    }),
    ("dispatch_resident_sequence_read_ranges_timed_into", |t| {
        let config = DispatchConfig::new();
        let buffers = [t.x];
        let step = ResidentStep::new(&t.add_one, &buffers, &config);
        let mut outputs = vec![];
        let read = [t.x.into()];
        t.backend.dispatch_resident_sequence_read_ranges_timed_into(&[step, step], &read, &mut outputs)?;
        equal("the result", outputs, vec![words(&[3, 4, 5])])
    }),
    ("dispatch_resident_repeated_sequence_read_ranges_into", |t| {
        let config = DispatchConfig::new();
        let buffers = [t.x];
        let step = ResidentStep::new(&t.add_one, &buffers, &config);
        let mut outputs = vec![];
        for (rounds, expected) in [(0, 1), (1, 2), (1500, 1502)] {
            let read = [ResidentRange { handle: t.x, offset: 0, bytes: 4 }];
            t.backend.dispatch_resident_repeated_sequence_read_ranges_into(
                &[step],
                rounds,
                &read,
                &mut outputs,
            )?;
            equal("the result", &outputs, &vec![words(&[expected])])?;
        }
        Ok(())
    }),
    ("dispatch_with_grid_sync_split", |t| {
        t.split(|turns, config| t.backend.dispatch_with_grid_sync_split(turns, &[&t.a], config))
    }),
    ("dispatch_with_grid_sync_split_into", |t| {
        t.split(|turns, config| {
            let mut outputs = vec![Vec::with_capacity(64), vec![1]];
            let report =
                t.backend.dispatch_with_grid_sync_split_into(turns, &[&t.a], &mut outputs, config)?;
            Ok(DispatchOutput { outputs, report })
        })
    }),
    ("dispatch_with_grid_sync_split_timed", |t| {
        t.split(|turns, config| {
            let output = t.backend.dispatch_with_grid_sync_split_timed(turns, &[&t.a], config)?;
            match output.report.timing {
                Some(_) => Ok(output),
                None => Err(Error::Internal("no timing".to_owned())),
            }
        })
    }),
    ("dispatch_resident_with_grid_sync_split_timed", |t| {
        t.split(|turns, config| {
            t.backend.upload_resident(t.x, &t.a)?;
            let report = t.backend.dispatch_resident_with_grid_sync_split_timed(turns, &[t.x], config)?;
            Ok(DispatchOutput { outputs: vec![t.backend.download_resident(t.x)?], report })
        })
    }),
    ("dispatch_resident_grid_sync_fixpoint_into", |t| {
        let chain = program(
            "program chain { workgroup_size 4; buffer x: read_write u32[]; let i = global_id.x;
             let y = x[i - min(i, 1)]; barrier(grid); x[i] = max(x[i], y); }",
        )?;
        for route in [Route::Auto, Route::Resident, Route::Host] {
            let config = DispatchConfig::new().route(route);
            for (limit, passes, values) in [(1, 1, [9, 9, 0]), (2, 2, [9, 9, 9]), (50, 3, [9, 9, 9])] {
                t.backend.upload_resident(t.x, &words(&[9, 0, 0]))?;
                let ranges = [t.x.into(), ResidentRange { handle: t.x, offset: 4, bytes: 4 }];
                let mut outputs = vec![vec![7]];
                let result = t.backend.dispatch_resident_grid_sync_fixpoint_into(
                    &chain,
                    &[t.x],
                    limit,
                    &ranges,
                    &mut outputs,
                    &config,
                );
                if !t.splits(route) {
                    super::refused("without the feature", result, "D003")?;
                    equal("the caller's buffers", outputs, vec![vec![7]])?;
                    continue;
                }
                let report = result?;
                equal("the ranges", outputs, vec![words(&values), words(&values[1..2])])?;
                equal("passes", (report.passes, report.converged), (passes, Some(limit > 2)))?;
            }
        }
        Ok(())
    }),
    ("dispatch_with_device_buffers", |t| {
        let a = t.backend.device_buffer_from(&[1u32, 2, 3])?;
        let o = t.backend.device_buffer::<u32>(3)?;
        t.backend.dispatch_with_device_buffers(&t.sum, &[&a, &t.x, &o], &DispatchConfig::new())?;
        equal("the sum", o.download()?, vec![2, 4, 6])?;
        let wrong = t.backend.device_buffer::<f32>(3)?;
        let result = t.backend.dispatch_with_device_buffers(&t.sum, &[&a, &t.x, &wrong], &t.config());
        super::refused("floats for integers", result, "D002")?;
        drop((a, o, wrong));
        Ok(())
    }),
    ("compile_native", |t| {
        let pipeline = t.backend.compile_native(&t.sum, &DispatchConfig::new())?;
        t.is_sum(&t.backend.dispatch_borrowed(&pipeline, &t.inputs(), &t.config())?)
    }),
    ("compile_native_shared", |t| {
        let pipeline = t.backend.compile_native_shared(&t.sum, &DispatchConfig::new())?;
        t.is_sum(&t.backend.dispatch_borrowed(&pipeline, &t.inputs(), &t.config())?)
    }),
    ("prepare", |t| {
        t.backend.prepare(&t.sum, &DispatchConfig::new())?;
        let before = t.backend.pipeline_cache_snapshot();
        t.is_sum(&t.backend.dispatch_borrowed(&t.sum, &t.inputs(), &t.config())?)?;
        equal("misses after it", t.backend.pipeline_cache_snapshot().misses, before.misses)
    }),
    ("pipeline_cache_snapshot", |t| {
        t.backend.prepare(&t.sum, &DispatchConfig::new())?;
        equal("entries", t.backend.pipeline_cache_snapshot().entries, 1)
    }),
    ("backend_metric_snapshot", |t| {
        let names: Vec<_> = t.backend.backend_metric_snapshot().into_iter().map(|(name, _)| name).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        equal("unique names", unique.len(), names.len())
    }),
    ("snapshot_dispatch_telemetry", |t| {
        equal("launches", t.backend.snapshot_dispatch_telemetry().launches, 0)
    }),
    ("supports", |t| {
        let b = &t.backend;
        let answers = [
            (b.supports_atomics64(), Feature::Atomics64),
            (b.supports_orderings(), Feature::Orderings),
            (b.supports_traps(), Feature::Traps),
            (b.supports_interrupts(), Feature::Interrupts),
            (b.supports_exact_floats(), Feature::ExactFloats),
            (b.supports_native_floats(), Feature::NativeFloats),
            (b.supports_native_grid_sync(), Feature::NativeGridSync),
            (b.supports_resident(), Feature::Resident),
            (b.allows_host_grid_sync_split(), Feature::HostGridSync),
        ];
        let wrong = answers.iter().find(|(answer, feature)| *answer != b.profile().features.has(*feature));
        equal("a wrong answer", wrong, None)
    }),
    ("max", |t| {
        let limits = &t.backend.profile().limits;
        equal("buffers", t.backend.max_buffer_bytes(), limits.max_buffer_bytes)?;
        equal("workgroups", t.backend.max_workgroups(), limits.max_workgroups)?;
        equal("invocations", t.backend.max_workgroup_invocations(), limits.max_workgroup_invocations)?;
        equal("memory", t.backend.max_workgroup_bytes(), limits.max_workgroup_bytes)
    }),
    ("supported_ops", |t| {
        ensure!(t.backend.supported_ops().contains(&"sqrt"), "no square root");
        Ok(())
    }),
    ("subgroup_size", |t| equal("lanes", t.backend.subgroup_size(), 32)),
    ("cooperative_grid_sync_fits", |t| {
        let meets = program("program meets { buffer o: output u32[4]; o[0] = 1; barrier(grid); o[1] = 2; }")?;
        let config = DispatchConfig::new();
        let fits = t.backend.cooperative_grid_sync_fits(&meets, &[], &config)?;
        let config = config.route(Route::Native);
        equal("a native dispatch", t.backend.dispatch(&meets, vec![], &config).is_ok(), fits)
    }),
    ("flush", |t| {
        let pending = t.backend.dispatch_async(&t.add_one, vec![words(&[1])], &DispatchConfig::new())?;
        t.backend.flush()?;
        ensure!(pending.is_ready(), "flush does not wait");
        Ok(())
    }),
    ("device_lost", |t| equal("lost", t.backend.device_lost(), false)),
    ("try_recover", |t| {
        t.backend.try_recover()?;
        t.is_sum(&t.backend.dispatch_borrowed(&t.sum, &t.inputs(), &t.config())?)
    }),
];

fn each(start: &Start<'_>) -> Verdict {
    for (name, method) in METHODS {
        let bench = Bench::new(start)?;
        method(&bench).map_err(|failed| Failed(format!("{name}: {failed}")))?;
        if *name != "try_recover" {
            bench.backend.free_resident(bench.x)?;
        }
        super::results::still_free(&bench.backend).map_err(|failed| Failed(format!("{name}: {failed}")))?;
    }
    Ok(())
}

fn pipelines(start: &Start<'_>) -> Verdict {
    let bench = Bench::new(start)?;
    let (backend, config) = (&bench.backend, bench.config());
    let pipeline = backend.compile_native(&bench.sum, &config)?;
    let launches = backend.snapshot_dispatch_telemetry().compiles;
    for _ in 0..3 {
        bench.is_sum(&backend.dispatch(&pipeline, vec![bench.a.clone(), bench.b.clone()], &config)?)?;
        bench
            .is_sum(&backend.dispatch_borrowed_async(&pipeline, &bench.inputs(), &config)?.await_result()?)?;
        let o = backend.allocate_resident(12)?;
        backend.dispatch_resident_timed(&pipeline, &[bench.x, bench.x, o], &DispatchConfig::new())?;
        equal("resident", backend.download_resident(o)?, words(&[2, 4, 6]))?;
        backend.free_resident(o)?;
    }
    equal("compiles", backend.snapshot_dispatch_telemetry().compiles, launches)
}

fn typed(start: &Start<'_>) -> Verdict {
    let backend = start();
    macro_rules! holds {
        ($($type:ty),*) => {$(
            let values: [$type; 3] = [<$type>::MIN, 0 as $type, <$type>::MAX];
            let buffer = backend.device_buffer_from(&values)?;
            equal(stringify!($type), (buffer.download()?, buffer.len()), (values.to_vec(), 3))?;
            buffer.upload(&[1 as $type; 3])?;
            equal(stringify!($type), buffer.download()?, vec![1 as $type; 3])?;
            super::refused("another length", buffer.upload(&[]), "D024")?;
            drop(buffer);
        )*};
    }
    holds!(u8, i8, u16, i16, u32, i32, u64, i64, f32);
    super::results::still_free(&backend)
}
