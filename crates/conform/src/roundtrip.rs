//! The laws of the text and wire forms: a program survives both unchanged, and print's layout is canonical.

use vyre_foundation::{Program, text};

/// Checks every law on a program and says which one does not hold.
///
/// ```
/// let program = vyre_foundation::Program::empty();
/// assert_eq!(vyre_conform::roundtrip::check(&program), Ok(()));
/// ```
pub fn check(program: &Program) -> Result<(), String> {
    let printed = program.to_string();
    let parsed = Program::parse(&printed).map_err(|errors| format!("print does not parse: {errors:?}"))?;
    if parsed != *program {
        return Err(format!("parse(print(p)) is another program:\n{parsed}"));
    }
    if parsed.content_hash() != program.content_hash() {
        return Err("parse(print(p)) has another hash".to_owned());
    }
    if parsed.to_string() != printed {
        return Err("print(parse(print(p))) is another text".to_owned());
    }
    if let Err(errors) = parsed.validate() {
        return Err(format!("print parses to an invalid program: {errors:?}"));
    }
    match text::format(&printed) {
        Err(errors) => return Err(format!("format refuses print's text: {errors:?}")),
        Ok(formatted) if formatted != printed => {
            return Err(format!(
                "format changes print's layout:\n{}",
                first_difference(&printed, &formatted)
            ));
        }
        Ok(_) => {}
    }
    let decoded = Program::from_wire(&program.to_wire()).map_err(|e| format!("wire does not decode: {e}"))?;
    if decoded != *program || decoded.content_hash() != program.content_hash() {
        return Err("from_wire(to_wire(p)) is another program".to_owned());
    }
    Ok(())
}

fn first_difference(a: &str, b: &str) -> String {
    let mut lines = a.lines().zip(b.lines());
    match lines.find(|(a, b)| a != b) {
        Some((a, b)) => format!("- {a}\n+ {b}"),
        None => "one text is a prefix of the other".to_owned(),
    }
}
