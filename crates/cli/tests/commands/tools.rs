//! `check`, `fmt`, `devices` and `emit`.

use super::*;

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
