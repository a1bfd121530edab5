//! Counts what was checked and collects what failed, so that one run shows every operator that is
//! wrong.

use crate::integers::width;
use crate::oracle::Expected;
use std::fmt::Write;
use vyre_foundation::Type;

/// How many failures of one operator and type are shown.
const SHOWN: u64 = 5;

/// One operator on one type, or whatever else is counted together.
struct Group {
    name: String,
    cases: u64,
    failures: u64,
}

/// The outcome of a test.
pub(crate) struct Report {
    groups: Vec<Group>,
    text: String,
}

impl Report {
    pub(crate) fn new() -> Report {
        Report { groups: Vec::new(), text: String::new() }
    }

    /// Opens a group; the cases that follow are counted in it.
    pub(crate) fn group(&mut self, name: String) {
        self.groups.push(Group { name, cases: 0, failures: 0 });
    }

    /// Checks one case: operands with their types, the right result and the one at hand.
    #[inline]
    pub(crate) fn check(&mut self, operands: &[(Type, u64)], expected: Expected, got: u64) {
        let group = self.groups.last_mut().expect("a group is open");
        group.cases += 1;
        if !expected.accepts(got) {
            group.failures += 1;
            if group.failures <= SHOWN {
                self.describe(operands, expected, got);
            }
        }
    }

    #[cold]
    fn describe(&mut self, operands: &[(Type, u64)], expected: Expected, got: u64) {
        let name = self.groups.last().map_or("", |group| &group.name);
        let mut line = format!("{name}:");
        for &(ty, bits) in operands {
            let digits = width(ty).div_ceil(4) as usize + 2;
            let _ = write!(line, " {bits:#0digits$x}_{ty}");
        }
        let expected = match expected {
            Expected::Bits(bits) => format!("{bits:#010x}"),
            Expected::Nan => "a NaN".to_owned(),
        };
        let _ = writeln!(self.text, "{line}: expected {expected}, got {got:#010x}");
    }

    /// How many cases the groups of this name hold.
    pub(crate) fn cases(&self, name: &str) -> u64 {
        self.groups.iter().filter(|group| group.name == name).map(|group| group.cases).sum()
    }

    /// Fails the test if a case did.
    pub(crate) fn finish(self) {
        let failed: Vec<&Group> = self.groups.iter().filter(|g| g.failures > 0).collect();
        if failed.is_empty() {
            return;
        }
        let mut summary = String::new();
        for group in failed {
            let Group { name, cases, failures } = group;
            let _ = writeln!(summary, "{name}: {failures} of {cases} cases are wrong");
        }
        panic!("the arithmetic differs from the oracle\n{}{summary}", self.text);
    }
}
