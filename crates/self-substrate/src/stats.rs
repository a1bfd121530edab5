//! What the optimizer did.

use crate::device::tally;
use crate::rules::RULES;
use std::time::Duration;
use vyre_driver::{Route, Timing};

/// One pass over a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    /// What it goes over: `rows`, `items`, or `needs`.
    pub name: &'static str,
    /// How many rows nothing else stands for afterwards.
    pub rows: usize,
    /// How many items stay.
    pub items: usize,
    /// How long it took.
    pub time: Duration,
}

/// How often each thing was done, and how much may still be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Rows and items before.
    pub before: [usize; 2],
    /// Rows and items afterwards.
    pub after: [usize; 2],
    /// What was gone over, in order.
    pub passes: Vec<Pass>,
    /// Rows whose operands were put in order.
    pub canonicalised: usize,
    /// Rows of constants that became a constant.
    pub folded: usize,
    /// How often each rule was applied, by its number.
    pub fired: Vec<usize>,
    /// Rows that were equal to another.
    pub merged: usize,
    /// Loads that were made before.
    pub loads: usize,
    /// Branches that were decided.
    pub branches: usize,
    /// Loops that run at most once.
    pub loops: usize,
    /// Parameters that never change, or always equal another.
    pub carried: usize,
    /// Where that was done, if not on the host.
    pub device: Option<OnDevice>,
    /// How many more changes may be made; `None` is no limit.
    fuel: Option<u64>,
}

/// Where passes ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnDevice {
    /// The backend.
    pub backend: &'static str,
    /// How its grid barriers ran.
    pub route: Route,
    /// How long it took: all of it, and the device alone.
    pub timing: Option<Timing>,
}

impl Stats {
    /// Nothing was done yet, and at most `fuel` changes may be made.
    pub(crate) fn new(fuel: Option<u64>) -> Stats {
        Stats {
            before: [0; 2],
            after: [0; 2],
            passes: Vec::new(),
            canonicalised: 0,
            folded: 0,
            fired: vec![0; RULES.len()],
            merged: 0,
            loads: 0,
            branches: 0,
            loops: 0,
            carried: 0,
            device: None,
            fuel,
        }
    }

    /// Takes what a device has counted.
    pub(crate) fn count(&mut self, tally: &[u32]) {
        let of = |what: u32| tally[what as usize] as usize;
        let rules = &tally[tally::COUNT as usize..];
        self.canonicalised = of(tally::CANONICALISED);
        self.folded = rules[RULES.len()] as usize;
        self.fired = rules[..RULES.len()].iter().map(|count| *count as usize).collect();
        self.merged = of(tally::MERGED);
        self.loads = of(tally::LOADS);
        self.branches = of(tally::BRANCHES);
        self.loops = of(tally::LOOPS);
        self.carried = of(tally::CARRIED);
    }

    /// Whether one more change may be made.
    pub(crate) fn spend(&mut self) -> bool {
        match &mut self.fuel {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}
