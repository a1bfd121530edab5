//! Generated programs mean the same after lowering and raising, and the kernel comes back unchanged.
//!
//! `VYRE_CASES=50000 cargo test --release -p vyre-lower` is the long run.

use vyre_conform::{
    Case, DEFAULT_SIZE, Executor, Failure, Observed, Reference, compare, generate, reduce, test_file,
};
use vyre_lower::{lower, raise};
use vyre_reference::Schedule;

/// The reference on the program that is raised from the kernel.
struct Raised(Schedule);

impl Executor for Raised {
    fn name(&self) -> String {
        format!("raised, {:?}", self.0)
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let program = raise(&lower(&case.program));
        if program.stats().nesting > vyre_foundation::validate::limits::NESTING {
            return Err(Failure::Unsupported("the raised program nests too deep".to_owned()));
        }
        Reference::new(self.0).run(&Case { program, ..case.clone() })
    }
}

fn executors() -> Vec<Box<dyn Executor>> {
    vec![
        Box::new(Reference::new(Schedule::InOrder)),
        Box::new(Raised(Schedule::InOrder)),
        Box::new(Raised(Schedule::Reversed)),
        Box::new(Raised(Schedule::Random(7))),
    ]
}

/// Whether the kernel comes back from its own program. A trap ends its invocation in the raised program as well,
/// next to the condition that says so, so programs that trap come back with both.
fn comes_back(case: &Case) -> bool {
    let kernel = lower(&case.program);
    case.program.stats().traps > 0 || lower(&raise(&kernel)) == kernel
}

fn fails(case: &Case) -> bool {
    compare(case, &executors()).is_some() || !comes_back(case)
}

#[test]
fn generated_programs_survive_lowering_and_raising() {
    let count = std::env::var("VYRE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    for seed in 0..count {
        let case = generate(seed, DEFAULT_SIZE);
        if fails(&case) {
            let small = reduce(&case, &mut |case| fails(case));
            let why = match compare(&small, &executors()) {
                Some(mismatch) => mismatch.to_string(),
                None => "the kernel does not come back".to_owned(),
            };
            let raised = raise(&lower(&small.program));
            let again = raise(&lower(&raised));
            let file = test_file(
                &small,
                &Reference::new(Schedule::InOrder).run(&small).expect("it runs"),
                "a failure",
            );
            panic!("seed {seed}: {why}\n{file}\nraised:\n{raised}\nagain:\n{again}");
        }
    }
}
