//! The binary as a user meets it: exit codes, JSON, files, and errors for every mistake.

mod mistakes;
mod run;
mod shown;
mod tools;

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

const TURNS: &str = "program turns { workgroup_size 2; buffer x: read_write u32[8]; let i = global_id.x;
    let y = x[i]; region \"turn\" from \"a test\" { barrier(grid); x[(i + 1) % 8] = y; } }\n";
