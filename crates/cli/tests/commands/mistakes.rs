//! Everything that goes wrong has an exit code, and words.

use super::*;

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
