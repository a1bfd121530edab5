//! The binary as a user meets it: exit codes, JSON, files, and errors for every mistake.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder of its own for a test, removed afterwards.
struct Folder(TempDir);

impl Folder {
    fn new(name: &str) -> Folder {
        let prefix = format!("vyre-{name}-");
        Folder(tempfile::Builder::new().prefix(&prefix).tempdir().expect("a folder for the test"))
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, contents).expect("a file for the test");
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// The binary, which keeps nothing on disk.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
    command.args(args).env("VYRE_CACHE_DIR", "");
    command
}

fn vyre(args: &[&str]) -> Output {
    command(args).output().expect("the binary starts")
}

/// The binary with a cache folder.
fn vyre_with_cache(folder: &Path, args: &[&str]) -> Output {
    command(args).env("VYRE_CACHE_DIR", folder).output().expect("the binary starts")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("the binary ends by itself")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", stdout(output), stderr(output)))
}

const ADD: &str = "program add { workgroup_size 64; buffer a: read i32[]; buffer o: output i32[];
    if global_id.x < len(a) { o[global_id.x] = a[global_id.x] + 1i32; } }\n";

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
fn devices_lists_backends_and_says_what_is_missing() {
    let report = json(&vyre(&["devices", "--json"]));
    let backends = report["backends"].as_array().expect("a list");
    let names: Vec<&str> = backends.iter().filter_map(|backend| backend["name"].as_str()).collect();
    assert_eq!(names, ["cpu", "wgpu", "reference"]);
    let (cpu, wgpu) = (&backends[0], &backends[1]);
    assert_eq!(cpu["available"], true);
    assert!(cpu["version"].as_str().is_some_and(|version| version.contains("cranelift")), "{cpu}");
    let features = cpu["features"].as_array().expect("a list");
    for feature in ["exact_floats", "native_grid_sync", "host_memory"] {
        assert!(features.iter().any(|other| other == feature), "{feature}");
    }
    assert!(cpu["limits"]["parallelism"].as_u64().is_some_and(|threads| threads > 0));
    let text = stdout(&vyre(&["devices"]));
    for words in ["cpu: all cores", "  features  exact_floats", "reference: ", "wgpu: any GPU"] {
        assert!(text.contains(words), "{text}");
    }
    if wgpu["available"] == true {
        let verdicts = wgpu["verdicts"].as_array().expect("a list");
        assert!(verdicts.iter().any(|verdict| verdict["what"] == "f32 fma"), "{wgpu}");
        assert!(text.contains("f32 fma"), "{text}");
    } else {
        assert_eq!(wgpu["error"]["code"], "D014");
        assert!(text.contains("missing   [D014]"), "{text}");
    }
}

#[test]
fn emit_prints_what_the_cpu_runs() {
    let folder = Folder::new("emit");
    let file = folder.file("add.vyre", ADD);
    let output = vyre(&["emit", &file, "--target", "clif"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).starts_with("function u0:0("), "{}", stdout(&output));
    let path = folder.path("add.s");
    let output = vyre(&["emit", &file, "--target", "asm", "--out", &path]);
    assert_eq!((code(&output), stdout(&output)), (0, String::new()));
    assert!(
        std::fs::read_to_string(&path).is_ok_and(|text| text.lines().count() > 10 && text.ends_with('\n'))
    );
    let output = vyre(&["emit", &file, "--target", "wgsl"]);
    assert_eq!(code(&output), 0);
    assert!(stdout(&output).contains("@compute"), "{}", stdout(&output));
    let output = vyre(&["emit", &file, "--target", "spirv"]);
    assert_eq!((code(&output), &output.stdout[..4]), (0, &0x0723_0203u32.to_le_bytes()[..]));
    assert_eq!(code(&vyre(&["emit", &file])), 2);
    assert_eq!(code(&vyre(&["emit", &file, "--target", "clif", "--out", &folder.path("no/such.s")])), 1);
    let broken = folder.file("broken.vyre", "program b { let x = 1 + true; }");
    let output = vyre(&["emit", &broken, "--target", "clif"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("error[V011]") && stderr(&output).contains("broken.vyre:1:"));
}

/// Every mistake with its exit code, error code and words that must stand in the message or help.
#[test]
fn mistakes_are_explained() {
    let folder = Folder::new("mistakes");
    let add = folder.file("add.vyre", ADD);
    let grid = folder.file("grid.vyre", "program g { workgroup_size 2, 2; barrier(grid); }");
    let fixed = folder.file("fixed.vyre", "program f { buffer a: read u8[4]; }");
    let broken = folder.file("broken.vyre", "program b { let x = 1 + true; }");
    let odd = folder.file("odd.bin", [1, 2, 3]);
    let binary = folder.file("binary.vyre", [0xff, 0xfe, 0]);
    let missing = folder.path("missing.vyre");
    let no_file = format!("a=@{}", folder.path("none.bin"));
    let (odd, bad_out) = (format!("a=@{odd}"), format!("o={}", folder.path("no/such/folder.bin")));
    let huge = "2000000000,2000000000,4000000000";
    let cases: Vec<(i32, &str, &[&str], Vec<&str>)> = vec![
        (1, "C003", &["`a` is missing", "--in a="], vec!["run", &add, "--len", "o=1"]),
        (1, "I007", &["no buffer `aa`", "did you mean `a`"], vec!["run", &add, "--in", "aa=[1]"]),
        (1, "I007", &["it declares `a`, `o`"], vec!["run", &add, "--in", "zebra=[1]"]),
        (1, "C004", &["`o` is `output`"], vec!["run", &add, "--in", "o=[1]"]),
        (1, "C006", &["twice"], vec!["run", &add, "--in", "a=[1]", "--in", "a=[2]"]),
        (
            1,
            "C006",
            &["--len o", "twice"],
            vec!["run", &add, "--in", "a=[1]", "--len", "o=1", "--len", "o=2"],
        ),
        (1, "I005", &["length of `o`", "--len o="], vec!["run", &add, "--in", "a=[1]"]),
        (1, "I006", &["`a` takes no length"], vec!["run", &add, "--in", "a=[1]", "--len", "a=1"]),
        (1, "C012", &["element 1", "does not fit `i32`"], vec!["run", &add, "--in", "a=[1,3000000000]"]),
        (1, "C011", &["`1.5` is not `i32`"], vec!["run", &add, "--in", "a=[1.5]"]),
        (1, "C010", &["is not a value", "iota:N"], vec!["run", &add, "--in", "a=1,2"]),
        (1, "C013", &["cannot read"], vec!["run", &add, "--in", &no_file]),
        (1, "I002", &["3 bytes"], vec!["run", &add, "--in", &odd, "--len", "o=1"]),
        (1, "I003", &["has 4 elements, but 2"], vec!["run", &fixed, "--in", "a=[1,2]"]),
        (1, "C001", &["cannot read"], vec!["run", &missing]),
        (1, "C002", &["cannot write"], vec!["run", &add, "--in", "a=[1]", "--len", "o=1", "--out", &bad_out]),
        (1, "C005", &["`a` is `read`"], vec!["run", &add, "--in", "a=[1]", "--len", "o=1", "--out", "a=x"]),
        (1, "G001", &["2 axes", "--grid"], vec!["run", &grid]),
        (1, "G002", &["axis y"], vec!["run", &grid, "--grid", "1,4294967295"]),
        (1, "D004", &["no memory"], vec!["run", &grid, "--grid", huge, "--backend", "reference"]),
        (3, "D003", &["a grid of", "vyre devices"], vec!["run", &grid, "--grid", huge]),
        (1, "V011", &["one type"], vec!["run", &broken]),
        (3, "D014", &["`no such thing`"], vec!["run", &add, "--device", "no such thing"]),
        (2, "C017", &["--device"], vec!["run", &add, "--backend", "cpu", "--device", "any"]),
        (1, "C016", &["not UTF-8"], vec!["run", &binary]),
        (1, "C015", &["99999999999"], vec!["run", &add, "--in", "a=zeros:99999999999"]),
        (
            3,
            "D003",
            &["native float mode", "native_floats", "vyre devices"],
            vec!["run", &add, "--backend", "reference", "--float", "native"],
        ),
    ];
    for (exit, error, words, args) in cases {
        let output = vyre(&args);
        assert_eq!(code(&output), exit, "{args:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{args:?}");
        let text = stderr(&output);
        assert!(text.contains(&format!("error[{error}]")), "{args:?}: {text}");
        assert!(text.contains("help: "), "{args:?}: {text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{args:?}: {text}"));
        let mut args = args.clone();
        args.push("--json");
        let output = vyre(&args);
        assert_eq!(code(&output), exit);
        let failure = &json(&output)["error"];
        assert_eq!(failure["code"], error, "{args:?}");
        assert!(failure["help"].as_str().is_some_and(|help| !help.is_empty()), "{args:?}");
        assert!(!failure["message"].as_str().unwrap_or("help: ").contains("help: "), "{args:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::new("pipe");
    let file = folder.file("add.vyre", ADD);
    for more in [&["--len", "o=3"][..], &["--len", "o=3", "--json"], &[]] {
        let mut command = command(&["run", &file, "--in", "a=[1,-2,3]"]);
        command.args(more);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command.stdout(writer).output().expect("the binary starts");
        assert_eq!(code(&output), i32::from(more.is_empty()), "{}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let cases: [&[&str]; 7] = [
        &[],
        &["walk"],
        &["run"],
        &["run", "x", "--grid", "a"],
        &["run", "x", "--timeout", "5"],
        &["run", "x", "--threads", "0"],
        &["check"],
    ];
    for args in cases {
        assert_eq!(code(&vyre(args)), 2, "{args:?}");
    }
    let output = vyre(&["run", "x", "--json", "--grid", "1,2,3,4"]);
    assert_eq!(code(&output), 2);
    assert_eq!(json(&output)["error"]["code"], "C017");
    assert_eq!(code(&vyre(&["--version"])), 0);
}

#[test]
fn a_full_disk_is_an_error() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = Folder::new("full");
    let file = folder.file("add.vyre", ADD);
    for more in [&[][..], &["--json"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
        let mut command = command(&["run", &file, "--in", "a=[1]", "--len", "o=1"]);
        command.args(more);
        let output = command.stdout(full).output().expect("the binary starts");
        assert_eq!(code(&output), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains("standard output"), "{}", stderr(&output));
    }
}

#[test]
fn what_a_program_says_stays_in_its_place() {
    let folder = Folder::new("tag");
    let text = "program t { trap(\"bad. help: \\u{1b}[31mred\", 1); }";
    let output = vyre(&["run", &folder.file("t.vyre", text), "--json"]);
    let error = &json(&output)["error"];
    assert_eq!(error["trap"]["tag"], "bad. help: \u{1b}[31mred");
    assert!(error["message"].as_str().is_some_and(|m| m.contains("red") && !m.contains('\u{1b}')));
    assert!(error["help"].as_str().is_some_and(|help| help.starts_with("the program itself")));
}

#[test]
fn check_reports_all_files() {
    let folder = Folder::new("check");
    let good = folder.file("good.vyre", ADD);
    let warn = folder.file("warn.vyre", "program w { let mut x = 1; }");
    let bad = folder.file("bad.vyre", "program b {\n    let x = y;\n    z = 1;\n}");
    assert_eq!(code(&vyre(&["check", &good, &warn])), 0);
    let output = vyre(&["check", &good, &warn, &bad]);
    assert_eq!(code(&output), 1);
    let text = stderr(&output);
    assert!(text.ends_with("3 files checked: 2 errors, 1 warning\n"), "{text}");
    let report = json(&vyre(&["check", &bad, &warn, "--json"]));
    assert_eq!((&report["errors"], &report["warnings"]), (&2.into(), &1.into()));
    let first = &report["files"][0]["diagnostics"][0];
    assert_eq!((&first["code"], &first["severity"]), (&"V008".into(), &"error".into()));
    assert_eq!((&first["span"]["line"], &first["span"]["column"]), (&2.into(), &13.into()));
    assert_eq!(first["path"], "entry[0].value");
}

#[test]
fn fmt_changes_files_once() {
    let folder = Folder::new("fmt");
    let file = folder.file("a.vyre", "program a{let x=0xff;// kept\n\n\n\nif x==1{return;}else{}}");
    assert_eq!(code(&vyre(&["fmt", "--check", &file])), 1);
    assert_eq!(code(&vyre(&["fmt", &file])), 0);
    let tidy = std::fs::read_to_string(Path::new(&file)).expect("the file");
    let expected =
        "program a {\n    let x = 0xff; // kept\n\n    if x == 1 {\n        return;\n    } else {}\n}\n";
    assert_eq!(tidy, expected);
    assert_eq!(code(&vyre(&["fmt", "--check", &file])), 0);
    let bad = folder.file("bad.vyre", "program");
    assert_eq!(code(&vyre(&["fmt", &bad])), 1);
    assert_eq!(std::fs::read_to_string(Path::new(&bad)).expect("the file"), "program");
}

const TURNS: &str = "program turns { workgroup_size 2; buffer x: read_write u32[8]; let i = global_id.x;
    let y = x[i]; region \"turn\" from \"a test\" { barrier(grid); x[(i + 1) % 8] = y; } }\n";

#[test]
fn split_shows_the_schedule() {
    let folder = Folder::new("split");
    let file = folder.file("turns.vyre", TURNS);
    let output = vyre(&["split", &file]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for line in [
        "schedule of turns\n  launch 1\n  barrier\n  launch 2\n",
        "segment 1 of 2, by the whole grid\n",
        "segment 2 of 2, by the whole grid, from turn from a test\n",
        "  writes  hidden0\n",
        "  hidden0        4 bytes per invocation values held across barriers\n",
    ] {
        assert!(text.contains(line), "no {line:?} in {text}");
    }
    assert!(!text.contains("on a grid"), "{text}");
    let text = stdout(&vyre(&["split", &file, "--grid", "1000,2"]));
    assert!(text.ends_with("on a grid of [1000, 2, 1] workgroups: 16000 bytes\n"), "{text}");
    let text = stdout(&vyre(&["split", &file, "--programs"]));
    assert_eq!(text.matches("program turns_segment {\n").count(), 2, "{text}");
    let text = stdout(&vyre(&["split", &file, "--dot"]));
    assert!(text.starts_with("digraph \"turns\" {\n") && text.ends_with("}\n"), "{text}");
    assert!(text.contains("  n0 -> n1;\n") && text.contains("shape=hexagon"), "{text}");
    // A program without grid barriers is one segment.
    let text = stdout(&vyre(&["split", &folder.file("add.vyre", ADD)]));
    assert!(text.contains("segment 1 of 1") && text.contains("no hidden storage"), "{text}");
}

#[test]
fn split_json_has_the_stable_names() {
    let folder = Folder::new("split-json");
    let file = folder.file("turns.vyre", TURNS);
    let report = json(&vyre(&["split", &file, "--json", "--grid", "4"]));
    assert_eq!((&report["program"], &report["nodes"]), (&"turns".into(), &3.into()));
    assert_eq!(
        report["hidden"],
        serde_json::json!([{ "bytes": 4, "per": "invocation", "purpose": "values" }])
    );
    assert_eq!(report["hidden_bytes"], 32);
    let segments = report["segments"].as_array().expect("segments");
    assert_eq!(segments.len(), 2);
    let traffic = |bytes: u64| {
        serde_json::json!({
            "per_invocation": bytes, "per_workgroup": 0, "per_grid": 0, "total": bytes * 8,
        })
    };
    let binding = |name: &str, hidden: bool, writes: bool| serde_json::json!({ "storage": name, "hidden": hidden, "writes": writes, "contents": true });
    assert_eq!(segments[0]["region"], Value::Null);
    assert_eq!(segments[0]["hidden_written"], traffic(4));
    assert_eq!(segments[1]["region"], "turn from a test");
    assert_eq!(segments[1]["hidden_read"], traffic(4));
    assert_eq!(segments[1]["once"], false);
    assert_eq!(
        segments[1]["bindings"],
        serde_json::json!([binding("hidden0", true, false), binding("x", false, true)])
    );
    for segment in segments {
        let program = segment["program"].as_str().expect("a program");
        assert_eq!(code(&vyre(&["check", &folder.file("segment.vyre", program)])), 0, "{program}");
    }
    assert_eq!(json(&vyre(&["split", &file, "--json"]))["hidden_bytes"], Value::Null);
}

#[test]
fn split_says_what_is_wrong() {
    let folder = Folder::new("split-wrong");
    let output = vyre(&["split", &folder.path("nothing.vyre")]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("error[C001]") && stdout(&output).is_empty());
    let wrong = folder.file("wrong.vyre", "program wrong { y[0] = 1; }\n");
    let output = vyre(&["split", &wrong]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("error[V009]"), "{}", stderr(&output));
    let output = vyre(&["split", &wrong, "--json"]);
    assert_eq!(code(&output), 1);
    assert_eq!(json(&output)["error"]["code"], "V009");
    assert_eq!(code(&vyre(&["split", &wrong, "--json", "--dot"])), 2);
}

/// Processes that place their memory anywhere plan alike.
#[test]
fn split_is_the_same_in_every_process() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["tests/files/grid_barriers/types_loop.vyre", "examples/components.vyre"] {
        let file = root.join(name).display().to_string();
        let first = vyre(&["split", &file, "--json"]);
        assert_eq!(code(&first), 0, "{}", stderr(&first));
        for _ in 0..5 {
            assert_eq!(stdout(&vyre(&["split", &file, "--json"])), stdout(&first), "{name}");
        }
        let dots = [(); 2].map(|()| stdout(&vyre(&["split", &file, "--dot"])));
        assert_eq!(dots[0], dots[1], "{name}");
    }
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

const CLUMSY: &str = "program clumsy {
    buffer x: read_write u32[];

    let i = global_id.x;
    if 1 < 2 {
        x[i * 1] = x[i] * 8 / 8 + 0;
    }
}
";

#[test]
fn opt_prints_what_the_optimizer_makes() {
    let folder = Folder::new("opt");
    let file = folder.file("clumsy.vyre", CLUMSY);
    let output = vyre(&["opt", &file]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let optimized = "program clumsy {
    buffer x: read_write u32[];

    let m0_0 = x[global_id.x];
    x[global_id.x] = m0_0 & 536870911;
}
";
    assert_eq!(stdout(&output), optimized);
    let text = stdout(&vyre(&["opt", &file, "--stats"]));
    assert!(text.starts_with("pass            rows     items           time\nlowered "), "{text}");
    assert!(text.contains("\nmultiply by one                                  1\n"), "{text}");
    assert!(text.contains("\non the host\n"), "{text}");
    // On a device the passes are a program, which does the same.
    let text = stdout(&vyre(&["opt", &file, "--stats", "--backend", "cpu"]));
    assert!(text.contains("\non cpu, native route: ") && text.contains(" in transfer\n"), "{text}");
    assert!(text.contains("\nmultiply by one                                  1\n"), "{text}");
    let report = json(&vyre(&["opt", &file, "--json", "--backend", "cpu"]));
    assert_eq!((&report["program"], &report["backend"]), (&optimized.into(), &"cpu".into()));
    assert_eq!(code(&vyre(&["opt", &file, "--backend", "cpu", "--opt-fuel", "3"])), 2);
    // What is not for a terminal has no colours.
    let text = stdout(&vyre(&["opt", &file, "--diff"]));
    assert!(text.contains("\n+    x[global_id.x] = m0_0 & 536870911;\n"), "{text}");
    let report = json(&vyre(&["opt", &file, "--json"]));
    assert_eq!((&report["program"], &report["changes"]["multiply by one"]), (&optimized.into(), &1.into()));
    // Without fuel nothing is rewritten, and with some a part.
    let text = stdout(&vyre(&["opt", &file, "--opt-fuel", "0"]));
    assert!(text.contains("* 8 / 8 + 0") && text.contains("if "), "{text}");
    let dumps = folder.path("dumps");
    assert_eq!(code(&vyre(&["opt", &file, "--dump", &dumps])), 0);
    let last = std::fs::read_to_string(Path::new(&dumps).join("06-optimized.vyre"));
    assert_eq!(last.expect("a dump of each pass"), optimized);
    let output = vyre(&["opt", &file, "--dump", &folder.file("taken", "")]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
}

#[test]
fn optimising_changes_nothing_but_the_work() {
    let folder = Folder::new("optimize");
    let file = folder.file("clumsy.vyre", CLUMSY);
    let outputs = ["cpu", "reference"].map(|backend| {
        ["--optimize", "--no-optimize"].map(|option| {
            stdout(&vyre(&["run", &file, "--backend", backend, option, "--in", "x=[1,4294967295]"]))
        })
    });
    for output in outputs.iter().flatten() {
        assert_eq!(output, "x: u32[2] = [1, 536870911]\n");
    }
}
