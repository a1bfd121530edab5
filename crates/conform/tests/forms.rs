//! The text and wire forms: generated programs survive them, and hostile input does no harm.

use std::path::Path;
use vyre_conform::{DEFAULT_SIZE, generate, hostile, roundtrip};

#[test]
fn programs_survive_text_layout_and_wire() {
    for seed in 0..400 {
        let case = generate(seed, DEFAULT_SIZE);
        if let Err(problem) = roundtrip::check(&case.program) {
            panic!("seed {seed}: {problem}\n{}", case.program);
        }
    }
}

#[test]
fn hostile_text_is_refused_in_peace() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files");
    // Elsewhere than in the repository there are no files, and generated programs are mutated alone.
    let corpus = hostile::Corpus::read(&files).unwrap_or_default();
    for seed in 0..1000 {
        let text = hostile::text(seed, &corpus);
        if let Err(problem) = hostile::check_text(&text) {
            panic!("seed {seed}: {problem}\n{}", text.chars().take(2000).collect::<String>());
        }
    }
}

#[test]
fn hostile_bytes_are_refused_in_peace() {
    for seed in 0..300 {
        if let Err(problem) = hostile::check_bytes(&hostile::bytes(seed)) {
            panic!("seed {seed}: {problem}");
        }
    }
}
