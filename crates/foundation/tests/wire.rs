//! The wire form: files written by every version still read, and damaged bytes are refused.
//!
//! `wire/NAME.vN` is the program of `wire/NAME.vyre` as version N wrote it. These files are never changed; a new
//! version adds its own (run with `VYRE_WRITE_WIRE=1`).

use std::path::{Path, PathBuf};
use vyre_foundation::wire::WireError;
use vyre_foundation::{Axis, Expr, Node, Program};

const VERSION: u16 = 1;

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let entries = std::fs::read_dir(folder).expect("the folder of wire files");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "vyre"));
    files.sort();
    assert!(files.len() >= 4, "the wire files are missing");
    files
}

fn program(path: &Path) -> Program {
    let text = std::fs::read_to_string(path).expect("a program");
    Program::parse(&text).expect("it parses")
}

#[test]
fn files_of_every_version_read_as_their_programs() {
    for path in corpus() {
        let expected = program(&path);
        if std::env::var_os("VYRE_WRITE_WIRE").is_some() {
            let new = path.with_extension(format!("v{VERSION}"));
            std::fs::write(new, expected.to_wire()).expect("a wire file");
        }
        for version in 1..=VERSION {
            let file = path.with_extension(format!("v{version}"));
            let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let read =
                Program::from_wire(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(read == expected, "{}", file.display());
            assert_eq!(read.content_hash(), expected.content_hash());
            if version == VERSION {
                assert_eq!(
                    expected.to_wire(),
                    bytes,
                    "{}: the bytes of a version are stable",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn the_hash_is_the_same_on_every_machine() {
    let program =
        Program::new([], 64, [Node::let_bind("x", Expr::invocation_id(Axis::Y))]).with_name("hashed");
    assert_eq!(
        program.content_hash().to_string(),
        "12aab8f7bc89c94c99d0450b577e17fece43cda7205bd3dc8bed80d136d746c5"
    );
    // Where a program came from does not count, what it says does.
    let parsed = Program::parse(&program.to_string()).expect("it parses");
    assert_eq!(parsed.content_hash(), program.content_hash());
    assert_ne!(program.clone().with_workgroup_size([64, 1, 1]).content_hash(), program.content_hash());
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = program(&corpus()[0]).to_wire();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Program::from_wire(&damaged).is_err(), "a flipped bit at {at}");
        assert!(Program::from_wire(&bytes[..at]).is_err(), "cut at {at}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(Program::from_wire(&longer), Err(WireError::Checksum));
    let mut later = bytes;
    later[4] = 99;
    assert_eq!(Program::from_wire(&later), Err(WireError::Version { found: 99 }));
    assert_eq!(Program::from_wire(b"ELF"), Err(WireError::NotAProgram));
    assert_eq!(Program::from_wire(b""), Err(WireError::NotAProgram));
}

/// Bytes with a right checksum that ask for more than they hold.
#[test]
fn hostile_counts_are_refused_without_allocating() {
    let sealed = |payload: &[u8]| {
        let mut bytes = b"VYRE\x01\x00".to_vec();
        bytes.extend_from_slice(&blake3::hash(payload).as_bytes()[..16]);
        bytes.extend_from_slice(payload);
        bytes
    };
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let with = |start: &[u8], rest: &[u8]| [start, &huge[..], rest].concat();
    // Names; the length of a name; buffers; functions; the workgroup size; a number of 11 bytes.
    let named = [1, 1, b'p', 0, 1, 1, 32];
    let cases: Vec<Vec<u8>> = vec![
        with(&[], &[]),
        with(&[1], &[]),
        with(&named, &[]),
        with(&[&named[..], &[0]].concat(), &[]),
        with(&[1, 1, b'p', 0, 1], &[]),
        [&named[..], &[0xff; 11]].concat(),
        // An expression that only ever opens operands.
        [&named[..], &[0, 0, 5], &[11, 0].repeat(100_000)].concat(),
        // Blocks that only ever open.
        [&named[..], &[0, 0], &[10].repeat(2_000_000)].concat(),
    ];
    for payload in cases {
        assert!(Program::from_wire(&sealed(&payload)).is_err());
    }
    let smallest = [&named[..], &[0, 0, 0]].concat();
    assert!(Program::from_wire(&sealed(&smallest)).is_ok());
}
