//! What nests as deep as the program is long lowers on a small stack.

use vyre_foundation::Program;
use vyre_lower::{Homes, lower};

fn lowered(text: String) -> usize {
    let lower = move || {
        let program = Program::parse(&text).expect("it parses");
        program.validate().expect("it is valid");
        let kernel = lower(&program);
        assert_eq!(Homes::of(&kernel).region.len(), kernel.values.len());
        kernel.items.len()
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(lower).expect("a thread");
    thread.join().expect("the thread ends without a panic")
}

#[test]
fn else_if_chains_and_sequences_of_jumps_lower() {
    let n = 3000;
    let links: Vec<String> = (0..n).map(|i| format!("if x == {i} {{ o[x] = {i}; }}")).collect();
    let chain =
        format!("program p {{ buffer o: output u32[1]; let x = global_id.x; {} }}", links.join(" else "));
    assert_eq!(lowered(chain), 2 * n);
    let jumps: String = (0..n).map(|i| format!("if o[i] == {i} {{ continue; }} ")).collect();
    let jumps = format!("program p {{ buffer o: output u32[1]; for i in 0..9 {{ {jumps} o[i] = 1; }} }}");
    // The loop, a load for each jump, an `if` for each rest, and the store.
    assert_eq!(lowered(jumps), 2 + 2 * n);
}

#[test]
fn long_programs_lower() {
    let text = format!(
        "program p {{ buffer o: output u32[1]; let mut x = global_id.x; {} o[0] = x; }}",
        "x = x * 3 + o[x]; ".repeat(20_000)
    );
    assert_eq!(lowered(text), 20_001);
}
