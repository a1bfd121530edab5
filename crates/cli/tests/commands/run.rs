//! `vyre run`.

use super::*;

#[test]
fn run_prints_outputs_and_says_where_it_ran() {
    let folder = Folder::new("run");
    let file = folder.file("add.vyre", ADD);
    let output = vyre(&["run", &file, "--in", "a=[1,-2,3]", "--len", "o=3"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), "o: i32[3] = [2, -1, 4]\n");
    assert!(stderr(&output).starts_with("cpu: 1 x 1 x 1 workgroups of 64"));
    let output = vyre(&["run", &file, "--in", "a=[1,-2,3]", "--len", "o=3", "--backend", "reference"]);
    assert_eq!(stdout(&output), "o: i32[3] = [2, -1, 4]\n");
    assert!(stderr(&output).starts_with("reference: 1 x 1 x 1 workgroups of 64"));
    // A long output is shortened, with its length and a digest.
    let output = vyre(&["run", &file, "--in", "a=iota:1000", "--len", "o=1000"]);
    let text = stdout(&output);
    assert!(text.starts_with("o: i32[1000] = [1, 2, 3, 4, 5, 6, 7, 8, …, 993,"), "{text}");
    assert!(text.contains("1000] blake3:"), "{text}");
}

#[test]
fn run_json_has_the_stable_names() {
    let folder = Folder::new("json");
    let file = folder.file("add.vyre", ADD);
    for (asked, ran) in [("auto", "cpu"), ("cpu", "cpu"), ("reference", "reference")] {
        let args = ["run", &file, "--in", "a=[1,2]", "--len", "o=2", "--json", "--backend", asked];
        check_names_of_report(&json(&vyre(&args)), ran);
    }
}

fn check_names_of_report(report: &Value, backend: &str) {
    assert_eq!(report["program"], "add");
    assert_eq!(report["backend"], backend);
    assert_eq!(report["route"], "none");
    assert_eq!(report["grid"], serde_json::json!([1, 1, 1]));
    assert_eq!(report["exact"], true);
    assert_eq!(report["passes"], Value::Null);
    assert_eq!(report["converged"], Value::Null);
    assert_eq!(report["outputs"], serde_json::json!({ "o": [2, 3] }));
    for name in ["compile", "wall", "device"] {
        assert!(report["timing"][name].is_u64(), "timing.{name}");
    }
    let expected = serde_json::json!({
        // A device that works in the memory of the host reads inputs where they are.
        "uploaded_bytes": 0, "downloaded_bytes": 8, "bytes_in": 8, "bytes_out": 8, "launches": 1, "segments": 1,
        "cache_hits": 0, "cache_misses": 1, "compiles": 1, "disk_hits": 0, "disk_misses": 0,
    });
    assert_eq!(report["telemetry"], expected);
}

#[test]
fn json_says_what_numbers_cannot() {
    let folder = Folder::new("floats");
    let text =
        "program f { buffer a: read f32[]; buffer o: output f32[4]; o[global_id.x] = a[global_id.x]; }";
    let file = folder.file("f.vyre", text);
    let report = json(&vyre(&["run", &file, "--in", "a=[NaN,\"-inf\",inf,0.1]", "--json"]));
    assert_eq!(report["outputs"]["o"].to_string(), r#"["NaN","-inf","inf",0.1]"#);
}

#[test]
fn fixpoints_report_passes_and_convergence() {
    let folder = Folder::new("fixpoint");
    let text = "program halve { buffer x: read_write u32[]; x[global_id.x] = x[global_id.x] / 2; }";
    let file = folder.file("halve.vyre", text);
    let report = json(&vyre(&["run", &file, "--in", "x=[8]", "--fixpoint", "100", "--json"]));
    // 4, 2, 1, 0, and a fifth pass that changes nothing.
    assert_eq!((&report["passes"], &report["converged"]), (&5.into(), &true.into()));
    let output = vyre(&["run", &file, "--in", "x=[8]", "--fixpoint", "2"]);
    assert_eq!(code(&output), 0);
    assert_eq!(stdout(&output), "x: u32[1] = [2]\n");
    let output = vyre(&["run", &file, "--in", "x=[8]", "--fixpoint", "2", "--require-convergence"]);
    assert_eq!(code(&output), 5);
    assert!(stdout(&output).is_empty());
    assert!(stderr(&output).contains("error[D011]") && stderr(&output).contains("--fixpoint"));
    assert_eq!(code(&vyre(&["run", &file, "--in", "x=[8]", "--fixpoint", "0"])), 2);
}

#[test]
fn traps_and_timeouts_have_their_exit_codes() {
    let folder = Folder::new("trap");
    let text = "program t { workgroup_size 4; if local_id.x > 1 { trap(\"too \\\"far\\\"\", local_id.x); } }";
    let file = folder.file("t.vyre", text);
    let output = vyre(&["run", &file, "--json"]);
    assert_eq!(code(&output), 4);
    let expected = serde_json::json!({ "tag": "too \"far\"", "value": 2, "invocation": 2 });
    assert_eq!(json(&output)["error"]["trap"], expected);
    let endless = "program e { buffer o: output u32[1];
        for i in 0..4294967295 { for k in 0..4294967295 { o[0] = o[0] + k; } } }";
    let file = folder.file("e.vyre", endless);
    for backend in ["cpu", "reference"] {
        let begun = Instant::now();
        let output = vyre(&["run", &file, "--timeout", "200ms", "--backend", backend, "--json"]);
        let took = begun.elapsed();
        assert_eq!(code(&output), 5, "{}", stderr(&output));
        assert!(Duration::from_millis(200) <= took && took < Duration::from_millis(900), "{took:?}");
        let error = &json(&output)["error"];
        assert_eq!(error["code"], "D007");
        assert!(error["message"].as_str().is_some_and(|message| message.contains("200ms")), "{error}");
        assert!(error["help"].as_str().is_some_and(|help| help.contains("--timeout")), "{error}");
    }
}

#[test]
fn files_go_in_and_out() {
    let folder = Folder::new("files");
    let file = folder.file("add.vyre", ADD);
    let raw = folder.file("a.bin", [1, 0, 0, 0, 255, 255, 255, 255]);
    let (npy, trace) = (folder.path("o.npy"), folder.path("trace.json"));
    let input = format!("a=@{raw}");
    let out = format!("o={npy}");
    let output = vyre(&["run", &file, "--in", &input, "--len", "o=2", "--out", &out, "--trace", &trace]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), format!("o: i32[2] -> {npy}\n"));
    let written = std::fs::read(&npy).expect("the output");
    assert!(written.starts_with(b"\x93NUMPY"));
    assert_eq!(written[written.len() - 8..], [2, 0, 0, 0, 0, 0, 0, 0]);
    // What was written can be read back, and a raw output is the bytes alone.
    let raw_out = folder.path("o.bin");
    let output =
        vyre(&["run", &file, "--in", &format!("a=@{npy}"), "--len", "o=2", "--out", &format!("o={raw_out}")]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(std::fs::read(&raw_out).expect("the output"), [3, 0, 0, 0, 1, 0, 0, 0]);
    let trace: Value = serde_json::from_slice(&std::fs::read(&trace).expect("the trace")).expect("JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() >= 4));
}

#[test]
fn a_trace_shows_what_the_driver_does() {
    let folder = Folder::new("trace");
    let (file, path) = (folder.file("add.vyre", ADD), folder.path("trace.json"));
    let output = vyre(&["run", &file, "--in", "a=[1]", "--len", "o=1", "--trace", &path]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let trace: Value = serde_json::from_slice(&std::fs::read(&path).expect("the trace")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let find = |name: &str| {
        let found = events.iter().find(|event| event["name"] == name);
        found.unwrap_or_else(|| panic!("no span `{name}` in {trace}"))
    };
    for name in
        ["parse", "start", "validate", "compile", "lower", "inputs", "plan", "upload", "launch", "read_back"]
    {
        let event = find(name);
        assert!(event["ph"] == "X" && event["tid"].is_u64() && event["dur"].is_f64(), "{event}");
    }
    assert_eq!(find("compile")["args"]["program"], "add");
    // Spans are nested: what begins in a dispatch ends in it.
    let (dispatch, launch) = (find("dispatch"), find("launch"));
    let place = |event: &Value| {
        let begun = event["ts"].as_f64().expect("a time");
        (begun, begun + event["dur"].as_f64().expect("a duration"))
    };
    let (outer, inner) = (place(dispatch), place(launch));
    assert!(outer.0 <= inner.0 && inner.1 <= outer.1, "{dispatch} {launch}");
    // A run that fails leaves its trace too.
    let trap = folder.file("t.vyre", "program t { trap(\"no\", 1); }");
    let path = folder.path("failed.json");
    assert_eq!(code(&vyre(&["run", &trap, "--trace", &path])), 4);
    assert!(std::fs::read_to_string(&path).expect("the trace").contains("\"launch\""));
}

#[test]
fn threads_change_nothing() {
    let folder = Folder::new("threads");
    let text = "program t { workgroup_size 64; buffer o: output u32[]; let mut x = global_id.x;
        for i in 0..100 { x = x * 1664525 + 1013904223; } o[global_id.x] = x; }";
    let file = folder.file("t.vyre", text);
    let run = |threads: &str| {
        let report = json(&vyre(&["run", &file, "--len", "o=20000", "--json", "--threads", threads]));
        report["outputs"].clone()
    };
    let alone = run("1");
    assert_eq!(alone["o"].as_array().map(Vec::len), Some(20000));
    assert_eq!(run("2"), alone);
    assert_eq!(run("8"), alone);
}

#[test]
fn vectors_change_nothing() {
    let folder = Folder::new("simd");
    let text = "program t { workgroup_size 64; buffer o: output u32[]; let mut x = global_id.x;
        for i in 0..x % 9 { x = x * 1664525 + 1013904223; } o[global_id.x] = x; }";
    let file = folder.file("t.vyre", text);
    let run = |simd: &str| {
        let report = json(&vyre(&["run", &file, "--len", "o=1000", "--json", "--simd", simd]));
        report["outputs"].clone()
    };
    assert_eq!(run("on"), run("off"));
    let has_vectors =
        |simd: &str| stdout(&vyre(&["emit", &file, "--target", "clif", "--simd", simd])).contains("i32x4");
    assert!(has_vectors("on") && !has_vectors("off"));
    let output = vyre(&["run", &file, "--len", "o=1", "--simd", "on", "--backend", "reference"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("`--simd` is about code for CPUs"), "{}", stderr(&output));
}

#[test]
fn native_floats_say_so() {
    let folder = Folder::new("native");
    let file = folder.file("add.vyre", ADD);
    let args = ["run", &file, "--in", "a=[1]", "--len", "o=1", "--float", "native"];
    let output = vyre(&args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).contains("native floats: other backends may give other bytes"));
    assert_eq!(json(&vyre(&[&args[..], &["--json"]].concat()))["exact"], false);
}

#[test]
fn a_second_process_compiles_nothing() {
    let folder = Folder::new("cache");
    let file = folder.file("add.vyre", ADD);
    let cache = folder.0.path().join("cache");
    let args = ["run", &file, "--in", "a=[1,2]", "--len", "o=2", "--json"];
    let run = || json(&vyre_with_cache(&cache, &args));
    let (first, second) = (run(), run());
    let telemetry = |report: &Value| {
        let names = ["compiles", "disk_hits", "disk_misses", "cache_hits", "cache_misses"];
        names.map(|name| report["telemetry"][name].as_u64().expect("a counter"))
    };
    assert_eq!(telemetry(&first), [1, 0, 1, 0, 1]);
    assert_eq!(telemetry(&second), [0, 1, 0, 1, 0]);
    assert_eq!(first["outputs"], second["outputs"]);
    let output = vyre_with_cache(&cache, &args[..6]);
    assert!(stderr(&output).contains("(found compiled)"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_cache_folder_that_others_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("open");
    let file = folder.file("add.vyre", ADD);
    let cache = folder.0.path().join("cache");
    std::fs::create_dir(&cache).expect("a folder");
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).expect("its rights");
    for backend in ["auto", "cpu"] {
        let args = ["run", &file, "--in", "a=[1]", "--len", "o=1", "--backend", backend, "--json"];
        let output = vyre_with_cache(&cache, &args);
        assert_eq!(code(&output), 3, "{}", stderr(&output));
        let error = &json(&output)["error"];
        assert_eq!(error["code"], "D041");
        assert!(error["help"].as_str().is_some_and(|help| help.contains("chmod go-w")), "{error}");
    }
    assert_eq!(std::fs::read_dir(&cache).expect("the folder").count(), 0);
    // The reference needs no cache, and the list says why the other is missing.
    let args = ["run", &file, "--in", "a=[1]", "--len", "o=1", "--backend", "reference"];
    assert_eq!(code(&vyre_with_cache(&cache, &args)), 0);
    let output = vyre_with_cache(&cache, &["devices"]);
    assert_eq!(code(&output), 0);
    assert!(stdout(&output).contains("missing   [D041] others may write"), "{}", stdout(&output));
}

#[test]
fn run_json_says_the_route_and_how_many_segments() {
    let folder = Folder::new("route");
    let file = folder.file("turns.vyre", TURNS);
    for backend in ["cpu", "reference"] {
        for (asked, route, segments) in
            [("native", "native", 1), ("resident", "resident", 2), ("host", "host", 2)]
        {
            let args = ["run", &file, "--in", "x=iota:8", "--json", "--route", asked, "--backend", backend];
            let report = json(&vyre(&args));
            assert_eq!(report["route"], route, "{report}");
            assert_eq!(report["telemetry"]["segments"], segments, "{report}");
            assert_eq!(report["telemetry"]["launches"], segments, "{report}");
            assert_eq!(report["outputs"], serde_json::json!({ "x": [7, 0, 1, 2, 3, 4, 5, 6] }));
        }
    }
}
