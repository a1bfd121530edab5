//! The backend suite: everything that the contract of a backend promises, as checks that any backend's tests run.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use vyre_driver::ReferenceBackend;
//! # fn main() {
//! vyre_conform::suite::assert_passes(&|| Arc::new(ReferenceBackend::new()));
//! # }
//! ```
//! A backend that lacks a feature must say so with a typed error wherever a check needs it.

mod control;
mod grid_control;
mod grid_sync;
mod handles;
mod limits;
mod methods;
mod results;

use std::fmt::{self, Debug};
use std::sync::Arc;
use vyre_driver::{DispatchConfig, Error, Feature, VyreBackend};
use vyre_foundation::Program;

/// Starts a fresh instance of the backend that is checked.
pub type Start<'a> = dyn Fn() -> Arc<dyn VyreBackend> + Sync + 'a;

/// Why a check failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed(pub String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed(format!("unexpected error {}: {error}", error.code()))
    }
}

/// What a check says.
pub type Verdict = Result<(), Failed>;

/// One promise of the contract.
#[derive(Clone, Copy)]
pub struct Check {
    /// What is promised.
    pub name: &'static str,
    /// Checks it.
    pub run: fn(&Start<'_>) -> Verdict,
}

/// Every check.
pub fn checks() -> Vec<Check> {
    let groups = [
        results::CHECKS,
        methods::CHECKS,
        handles::CHECKS,
        control::CHECKS,
        limits::CHECKS,
        grid_sync::CHECKS,
        grid_control::CHECKS,
    ];
    groups.concat()
}

/// Runs every check and gives those that failed.
pub fn run(start: &Start<'_>) -> Vec<(&'static str, Failed)> {
    let failed = |check: Check| (check.run)(start).err().map(|failed| (check.name, failed));
    checks().into_iter().filter_map(failed).collect()
}

/// Runs every check.
///
/// # Panics
/// If one fails, with all that did.
pub fn assert_passes(start: &Start<'_>) {
    let failed: Vec<String> = run(start).into_iter().map(|(name, why)| format!("{name}: {why}")).collect();
    assert!(failed.is_empty(), "{} checks failed:\n{}", failed.len(), failed.join("\n"));
}

/// Fails unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err($crate::suite::Failed(format!($($message)*)));
        }
    };
}
use ensure;

/// Fails unless two values are equal.
fn equal<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Verdict {
    if found == expected {
        return Ok(());
    }
    Err(Failed(format!("{what}: expected {expected:?}, found {found:?}")))
}

/// Fails unless a call failed with this code.
fn refused<T>(what: &str, result: Result<T, Error>, code: &str) -> Result<Error, Failed> {
    match result {
        Ok(_) => Err(Failed(format!("{what}: expected error {code}, but it succeeded"))),
        Err(error) if error.code() == code => Ok(error),
        Err(error) => Err(Failed(format!("{what}: expected error {code}, found {}: {error}", error.code()))),
    }
}

/// A program of the suite.
fn program(text: &str) -> Result<Program, Failed> {
    Program::parse(text)
        .map_err(|errors| Failed(format!("a program of the suite does not parse: {errors:?}")))
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Adds one to each element.
const ADD_ONE: &str = "program add_one {
    workgroup_size 4;
    buffer x: read_write u32[];
    let i = global_id.x;
    x[i] = x[i] + 1;
}";

/// Sums two inputs.
const SUM: &str = "program sum {
    workgroup_size 4;
    buffer a: read u32[];
    buffer b: read u32[];
    buffer o: output u32[];
    let i = global_id.x;
    o[i] = a[i] + b[i];
}";

/// A dispatch that does not end for as long as anybody would wait: one launch where launches can be stopped, otherwise
/// launches without end.
fn endless(backend: &dyn VyreBackend) -> Result<(Program, DispatchConfig), Failed> {
    if backend.profile().features.has(Feature::Interrupts) {
        return Ok((program(ENDLESS)?, DispatchConfig::new()));
    }
    Ok((program(RESTLESS)?, DispatchConfig::new().fixpoint(u32::MAX)))
}

/// Never comes to rest.
const RESTLESS: &str = "program restless {
    buffer o: output u32[1];
    o[0] = o[0] + 1;
}";

/// Does not end for as long as anybody would wait.
const ENDLESS: &str = "program endless {
    buffer o: output u32[1];
    for i in 0..0xffffffff {
        for j in 0..0xffffffff {
            atomic_add(o[0], i ^ j);
        }
    }
}";

/// Each element moves towards 10, one step per pass.
const CONVERGES: &str = "program converges {
    workgroup_size 4;
    buffer x: read_write u32[];
    buffer seen: scratch u32[1];
    let i = global_id.x;
    atomic_add(seen[0], 1);
    if i < len(x) {
        x[i] = min(x[i] + 1, 10);
    }
}";

/// Traps in every invocation whose element is not zero.
const TRAPS: &str = "program traps {
    workgroup_size 4;
    buffer x: read u32[];
    buffer o: output u32[];
    let i = global_id.x;
    o[i] = 1;
    if x[i] != 0 {
        trap(\"bad element\", x[i]);
    }
}";
