//! What becomes of a program, shown: `split` and `opt`.

use super::*;

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
    // What an earlier run has left is gone, and what is not a dump stays.
    let [stale, other] = ["12-needs.vyre", "12-notes.vyre"].map(|name| Path::new(&dumps).join(name));
    for path in [&stale, &other] {
        std::fs::write(path, "program p {}").expect("a file");
    }
    assert_eq!(code(&vyre(&["opt", &file, "--dump", &dumps])), 0);
    assert_eq!([&stale, &other].map(|path| path.exists()), [false, true]);
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
