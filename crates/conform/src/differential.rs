//! Runs one case on several executors and compares what they give, byte for byte.
//!
//! A backend takes part by implementing [`Executor`]. The reference takes part under different schedules, which
//! must not matter to a deterministic program, and through the text and wire forms, which must not either.

use crate::Case;
use crate::skew::skewed;
use std::fmt;
use std::time::{Duration, Instant};
use vyre_foundation::{Name, Program};
use vyre_reference::{Error, Options, Schedule, run};

/// What a dispatch gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Observed {
    /// The returned buffers, in declaration order.
    Outputs {
        /// Their bytes.
        outputs: Vec<Vec<u8>>,
        /// How many passes ran.
        passes: u32,
        /// Whether the last pass changed nothing; `None` without a fixpoint.
        converged: Option<bool>,
    },
    /// The program trapped.
    Trap {
        /// The tag of the trap.
        tag: Name,
        /// Its value.
        value: u32,
        /// The linear index of the invocation.
        invocation: u64,
    },
}

/// Why an executor gave nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// It does not have what the program needs, and says so: not a mismatch.
    Unsupported(String),
    /// It failed at something that it must be able to do.
    Failed(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unsupported(why) => write!(f, "unsupported: {why}"),
            Failure::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

/// Something that runs cases.
pub trait Executor {
    /// What to call it in a report.
    fn name(&self) -> String;

    /// Runs a case.
    fn run(&self, case: &Case) -> Result<Observed, Failure>;
}

/// The reference interpreter under a schedule.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// The order in which invocations advance.
    pub schedule: Schedule,
    /// How long it may take; longer is a failure.
    pub patience: Duration,
}

impl Reference {
    /// The reference under this schedule, with far more time than a generated case needs.
    pub fn new(schedule: Schedule) -> Reference {
        Reference { schedule, patience: Duration::from_secs(20) }
    }
}

impl Executor for Reference {
    fn name(&self) -> String {
        format!("reference, {:?}", self.schedule)
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let options = Options {
            grid: case.grid,
            lengths: case.lengths.clone(),
            fixpoint: case.fixpoint,
            schedule: self.schedule,
            deadline: Some(Instant::now() + self.patience),
        };
        match run(&case.program, &case.input_slices(), &options) {
            Ok(outcome) => Ok(Observed::Outputs {
                outputs: outcome.outputs,
                passes: outcome.passes,
                converged: outcome.converged,
            }),
            Err(Error::Trap(trap)) => {
                Ok(Observed::Trap { tag: trap.tag, value: trap.value, invocation: trap.invocation })
            }
            Err(error) => Err(Failure::Failed(error.to_string())),
        }
    }
}

/// The reference on what the text of the program parses to.
pub struct ThroughText;

impl Executor for ThroughText {
    fn name(&self) -> String {
        "reference, through text".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let program = Program::parse(&case.program.to_string());
        let program = program.map_err(|errors| Failure::Failed(format!("{errors:?}")))?;
        Reference::new(Schedule::InOrder).run(&Case { program, ..case.clone() })
    }
}

/// The reference on what the wire form of the program decodes to.
pub struct ThroughWire;

impl Executor for ThroughWire {
    fn name(&self) -> String {
        "reference, through wire".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        let program = Program::from_wire(&case.program.to_wire());
        let program = program.map_err(|error| Failure::Failed(error.to_string()))?;
        Reference::new(Schedule::InOrder).run(&Case { program, ..case.clone() })
    }
}

/// The reference on the program with delays that let workgroups run far apart.
#[derive(Clone, Copy, Debug)]
pub struct Skewed {
    /// Chooses the delays.
    pub seed: u64,
    /// The reference that runs it.
    pub reference: Reference,
}

impl Executor for Skewed {
    fn name(&self) -> String {
        format!("{}, skewed by {}", self.reference.name(), self.seed)
    }

    fn run(&self, case: &Case) -> Result<Observed, Failure> {
        self.reference.run(&skewed(case, self.seed))
    }
}

/// The reference in this many orders: in order, reversed, round robin, then skewed and random ones in turn.
pub fn schedules(seed: u64, count: usize) -> Vec<Box<dyn Executor>> {
    orders(seed, count, Reference::new(Schedule::InOrder).patience)
}

fn orders(seed: u64, count: usize, patience: Duration) -> Vec<Box<dyn Executor>> {
    let fixed = [Schedule::InOrder, Schedule::Reversed, Schedule::RoundRobin];
    let order = |i: usize| -> Box<dyn Executor> {
        let seed = seed.wrapping_mul(1 << 20).wrapping_add(i as u64);
        let random = Reference { schedule: Schedule::Random(seed), patience };
        match (fixed.get(i), i % 4) {
            (Some(schedule), _) => Box::new(Reference { schedule: *schedule, patience }),
            (None, 3) => {
                Box::new(Skewed { seed, reference: Reference { schedule: Schedule::RoundRobin, patience } })
            }
            (None, 1) => Box::new(Skewed { seed, reference: random }),
            (None, _) => Box::new(random),
        }
    };
    (0..count).map(order).collect()
}

/// Two executors that disagree on a case.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The executor that came first, and what it gave.
    pub expected: (String, Result<Observed, Failure>),
    /// The executor that differs, and what it gave.
    pub found: (String, Result<Observed, Failure>),
    /// Where they first differ.
    pub difference: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` differs from `{}`: {}", self.found.0, self.expected.0, self.difference)
    }
}

/// Runs the case on each executor and gives the first that disagrees with the first of them. One that does not
/// support the program takes no part.
pub fn compare(case: &Case, executors: &[Box<dyn Executor>]) -> Option<Mismatch> {
    let mut expected: Option<(String, Result<Observed, Failure>)> = None;
    for executor in executors {
        let result = executor.run(case);
        if matches!(result, Err(Failure::Unsupported(_))) {
            continue;
        }
        let found = (executor.name(), result);
        match &expected {
            None if found.1.is_err() => {
                let difference = describe(case, &found.1, &found.1);
                return Some(Mismatch { expected: found.clone(), found, difference });
            }
            None => expected = Some(found),
            Some(expected) if expected.1 != found.1 => {
                let difference = describe(case, &expected.1, &found.1);
                return Some(Mismatch { expected: expected.clone(), found, difference });
            }
            Some(_) => {}
        }
    }
    None
}

/// Where two results first differ, in a line.
fn describe(case: &Case, a: &Result<Observed, Failure>, b: &Result<Observed, Failure>) -> String {
    let (Ok(Observed::Outputs { outputs: x, .. }), Ok(Observed::Outputs { outputs: y, .. })) = (a, b) else {
        return format!("expected {}, found {}", summary(a), summary(b));
    };
    for ((buffer, x), y) in case.program.outputs().zip(x).zip(y) {
        let size = buffer.element().size();
        let elements = x.chunks(size).zip(y.chunks(size)).enumerate();
        if let Some((i, (x, y))) = elements.into_iter().find(|(_, (x, y))| x != y) {
            return format!("`{}[{i}]` should be {x:02x?}, found {y:02x?}", buffer.name());
        }
        if x.len() != y.len() {
            return format!("`{}` should have {} bytes, found {}", buffer.name(), x.len(), y.len());
        }
    }
    format!("expected {}, found {}", summary(a), summary(b))
}

fn summary(result: &Result<Observed, Failure>) -> String {
    match result {
        Ok(Observed::Outputs { passes, converged, .. }) => {
            format!("outputs after {passes} passes (converged: {converged:?})")
        }
        Ok(Observed::Trap { tag, value, invocation }) => {
            format!("trap {:?} with {value} in invocation {invocation}", tag.as_str())
        }
        Err(failure) => failure.to_string(),
    }
}

/// Whether the reference runs the case in time and agrees with itself under several schedules: what a reduction
/// must preserve.
pub fn is_deterministic(case: &Case, patience: Duration) -> bool {
    let mut results = orders(0x5eed, 8, patience).into_iter().map(|order| order.run(case));
    match results.next() {
        Some(Ok(first)) => results.all(|other| other.as_ref() == Ok(&first)),
        _ => false,
    }
}
