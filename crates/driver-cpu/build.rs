//! Gives the code generator a fingerprint: compiled programs on disk are of one version of its source, and of the
//! optimizer's, which is not linked in here but decides what is compiled.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

fn main() {
    let mut hasher = DefaultHasher::new();
    for folder in ["src", "../lower/src", "../foundation/src", "../self-substrate/src"] {
        println!("cargo::rerun-if-changed={folder}");
        hash_folder(Path::new(folder), &mut hasher);
    }
    println!("cargo::rustc-env=VYRE_CPU_SOURCE={:016x}", hasher.finish());
}

fn hash_folder(folder: &Path, hasher: &mut DefaultHasher) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_folder(&path, hasher);
        } else if let Ok(bytes) = std::fs::read(&path) {
            (path.file_name(), bytes).hash(hasher);
        }
    }
}
