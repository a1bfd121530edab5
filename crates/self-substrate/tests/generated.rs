//! Generated programs give the same bytes after the optimizer.
//!
//! `VYRE_CASES=100000 cargo test --release -p vyre-self-substrate --test generated` is the long run; `VYRE_SEED` is where
//! it begins.

use vyre_conform::{
    Case, DEFAULT_SIZE, Executor, Failure, Observed, Reference, compare, generate, reduce, test_file,
};
use vyre_foundation::validate::limits;
use vyre_lower::{lower, raise};
use vyre_reference::Schedule;
use vyre_self_substrate::{Options, optimize};

/// The reference on the program that is raised from the optimised kernel.
struct Optimized(Schedule);

impl Executor for Optimized {
    fn name(&self) -> String {
        format!("optimised, {:?}", self.0)
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let optimized = optimize(&lower(&case.program), &Options::default());
        let program = raise(&optimized.kernel);
        if program.stats().nesting > limits::NESTING {
            return Err(Failure::Unsupported("the raised program nests too deep".to_owned()));
        }
        Reference::new(self.0).run(&Case { program, ..case.clone() })
    }
}

fn executors() -> Vec<Box<dyn Executor>> {
    vec![
        Box::new(Reference::new(Schedule::InOrder)),
        Box::new(Optimized(Schedule::InOrder)),
        Box::new(Optimized(Schedule::Random(7))),
    ]
}

#[test]
fn generated_programs_mean_the_same() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let (seed, count) = (number("VYRE_SEED").unwrap_or(0), number("VYRE_CASES").unwrap_or(300));
    for seed in seed..seed + count {
        let case = generate(seed, DEFAULT_SIZE);
        if compare(&case, &executors()).is_none() {
            continue;
        }
        let small = reduce(&case, &mut |case| compare(case, &executors()).is_some());
        let why = compare(&small, &executors()).map(|mismatch| mismatch.to_string());
        let optimized = raise(&optimize(&lower(&small.program), &Options::default()).kernel);
        let expected = Reference::new(Schedule::InOrder).run(&small).expect("it runs");
        let file = test_file(&small, &expected, "a failure");
        panic!("seed {seed}: {}\n{file}\noptimised:\n{optimized}", why.unwrap_or_default());
    }
}
