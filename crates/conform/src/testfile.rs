//! Test files: a case and what it must give, as one `.vyre` file that runs on every backend.

use crate::{Case, Observed};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};
use vyre_foundation::{Element, Type, element};

/// The text of a test file. NaNs of inputs are written as `NaN`, which stands for the canonical one.
///
/// ```
/// use vyre_conform::{Case, Observed, test_file};
/// let program = vyre_foundation::Program::parse("program p { buffer o: output u32[2]; o[0] = 7; }").unwrap();
/// let case = Case { program, inputs: vec![], grid: Some([1, 1, 1]), lengths: vec![], fixpoint: None };
/// let outputs = vec![vec![7, 0, 0, 0, 0, 0, 0, 0]];
/// let expected = Observed::Outputs { outputs, passes: 1, converged: None };
/// let text = test_file(&case, &expected, "One store.");
/// assert!(text.starts_with("// One store.\n// run: --grid 1,1,1\n// expect: o = [7, 0]\nprogram p {"));
/// ```
pub fn test_file(case: &Case, expected: &Observed, comment: &str) -> String {
    let mut text = String::new();
    for line in comment.lines() {
        text.push_str("// ");
        text.push_str(line);
        text.push('\n');
    }
    text.push_str("// run:");
    // Writing to a string cannot fail.
    if let Some([x, y, z]) = case.grid {
        let _ = write!(text, " --grid {x},{y},{z}");
    }
    for (buffer, bytes) in case.program.inputs().zip(&case.inputs) {
        let _ = write!(text, " --in {}=[{}]", buffer.name(), elements(buffer.element(), bytes, ","));
    }
    for (name, length) in &case.lengths {
        let _ = write!(text, " --len {name}={length}");
    }
    if let Some(passes) = case.fixpoint {
        let _ = write!(text, " --fixpoint {passes}");
    }
    text.push('\n');
    match expected {
        Observed::Outputs { outputs, passes, converged } => {
            for (buffer, bytes) in case.program.outputs().zip(outputs) {
                let values = elements(buffer.element(), bytes, ", ");
                let _ = writeln!(text, "// expect: {} = [{values}]", buffer.name());
            }
            if let Some(converged) = converged {
                let _ = writeln!(text, "// passes: {passes}\n// converged: {converged}");
            }
        }
        Observed::Trap { tag, value, invocation } => {
            let _ = writeln!(text, "// trap: {:?} {value} {invocation}", tag.as_str());
        }
    }
    text.push_str(&case.program.to_string());
    text
}

/// Writes the [text](test_file) to a file.
pub fn write_test_file(case: &Case, expected: &Observed, comment: &str, path: &Path) -> io::Result<()> {
    fs::write(path, test_file(case, expected, comment))
}

/// The elements in decimal; floats in the shortest form that reads back as the same number.
fn elements(kind: Element, bytes: &[u8], separator: &str) -> String {
    let values = bytes.chunks_exact(kind.size()).map(|memory| {
        let bits = element::load(kind, memory);
        match kind.value_type() {
            Type::I32 => (bits as u32 as i32).to_string(),
            Type::I64 => (bits as i64).to_string(),
            Type::F32 => float(f32::from_bits(bits as u32)),
            Type::Bool | Type::U32 | Type::U64 => bits.to_string(),
        }
    });
    values.collect::<Vec<_>>().join(separator)
}

fn float(value: f32) -> String {
    // `{:?}` is the shortest form that round-trips, and spells infinities as `inf` and `-inf`.
    if value.is_nan() { "NaN".to_owned() } else { format!("{value:?}") }
}
