//! Every valid test file and example becomes a shader that naga's validator, and `spirv-val` where it is installed,
//! accept. No device is needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use vyre_driver::Unit;
use vyre_foundation::Program;

fn programs() -> Vec<(PathBuf, Unit)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("tests/files"), root.join("examples")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of test files") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "vyre") {
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let Ok(program) = Program::parse(&text) else { continue };
                found.extend(Unit::new(program).ok().map(|unit| (path, unit)));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(found.len() > 300, "only {} programs were found", found.len());
    found
}

/// What follows an early return stands in a branch, and naga goes over branches in branches by recursion.
#[test]
fn programs_with_many_returns_have_shaders() {
    let returns: String = (0..5000).map(|k| format!("if x[i] == {k} {{ return; }} ")).collect();
    let text = format!(
        "program returns {{ buffer x: read u32[]; buffer o: output u32[4]; let i = global_id.x; {returns} o[i] = 1; }}"
    );
    let unit = Unit::new(Program::parse(&text).expect("it parses")).expect("it is valid");
    assert!(vyre_driver_wgpu::wgsl(&unit).expect("a shader").contains("@compute"));
    assert!(!vyre_driver_wgpu::spirv(&unit).expect("a shader").is_empty());
}

#[test]
fn every_program_has_a_valid_shader() {
    let has_validator = Command::new("spirv-val").arg("--version").output().is_ok();
    let folder = tempfile::tempdir().expect("a folder");
    let mut failures = Vec::new();
    for (path, unit) in programs() {
        let name = path.display();
        match vyre_driver_wgpu::spirv(&unit) {
            Err(error) => failures.push(format!("{name}: {error}")),
            Ok(words) if has_validator => {
                let file = folder.path().join("shader.spv");
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                std::fs::write(&file, bytes).expect("a file");
                let out = Command::new("spirv-val").args(["--target-env", "vulkan1.2"]).arg(&file).output();
                let out = out.expect("spirv-val");
                if !out.status.success() {
                    failures.push(format!("{name}: {}", String::from_utf8_lossy(&out.stderr)));
                }
            }
            Ok(_) => {}
        }
        if let Err(error) = vyre_driver_wgpu::wgsl(&unit) {
            failures.push(format!("{name}: {error}"));
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}
