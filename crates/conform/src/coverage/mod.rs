//! What a set of programs uses of the language, and what it lacks.
//!
//! A program is broken down into named items: an operator on a type, a cast between two types, a barrier in a
//! loop. The items that the language has are enumerated from the same tables that define it, so an operator
//! that is added there is missing here until programs use it.

mod collect;
mod required;

use crate::Case;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vyre_foundation::Program;
use vyre_foundation::grid;

/// A named part of the language: the group it belongs to and its name in the group.
type Item = (&'static str, String);

/// Counts of what programs use.
///
/// ```
/// let mut coverage = vyre_conform::Coverage::default();
/// coverage.add(&vyre_foundation::Program::empty());
/// assert!(coverage.missing().iter().any(|item| item == "binary: + on u32"));
/// ```
#[derive(Clone, Default, Debug)]
pub struct Coverage {
    counts: BTreeMap<Item, u64>,
    programs: u64,
    cases: u64,
}

impl Coverage {
    /// Counts what a valid program uses.
    pub fn add(&mut self, program: &Program) {
        self.programs += 1;
        collect::program(program, &mut |group, name| *self.counts.entry((group, name)).or_default() += 1);
    }

    /// Counts what the program of a case uses, and how it is dispatched.
    pub fn add_case(&mut self, case: &Case) {
        self.add(&case.program);
        self.cases += 1;
        for name in dispatch(case) {
            *self.counts.entry(("dispatch", name.to_owned())).or_default() += 1;
        }
    }

    /// Counts what another set of programs uses.
    pub fn merge(&mut self, other: &Coverage) {
        for (item, count) in &other.counts {
            *self.counts.entry(item.clone()).or_default() += count;
        }
        self.programs += other.programs;
        self.cases += other.cases;
    }

    /// Everything that the language has and no program used. Dispatches count only where cases were added.
    pub fn missing(&self) -> Vec<String> {
        let needed = self.required();
        let lacking = needed.iter().filter(|item| !self.counts.contains_key(item));
        lacking.map(|(group, name)| format!("{group}: {name}")).collect()
    }

    fn required(&self) -> BTreeSet<Item> {
        let mut needed = BTreeSet::new();
        required::language(&mut |group, name| {
            needed.insert((group, name));
        });
        if self.cases > 0 {
            needed.extend(DISPATCHES.map(|name| ("dispatch", name.to_owned())));
        }
        needed
    }
}

const DISPATCHES: [&str; 8] = [
    "counts given on one axis",
    "counts given on several axes",
    "counts left to the program",
    "a count of 0",
    "partial last workgroup",
    "several workgroups",
    "length given",
    "fixpoint",
];

fn dispatch(case: &Case) -> Vec<&'static str> {
    let mut found = Vec::new();
    let lengths: Vec<usize> = case.inputs.iter().map(Vec::len).collect();
    let layout = vyre_foundation::Layout::new(&case.program, &lengths, &case.lengths);
    match case.grid {
        None => found.push(DISPATCHES[2]),
        Some([_, 1, 1]) => found.push(DISPATCHES[0]),
        Some(_) => found.push(DISPATCHES[1]),
    }
    if let Ok(layout) = layout
        && let Ok(resolved) = grid::resolve(&case.program, &layout, case.grid)
    {
        let size = u64::from(resolved.workgroup_size()[0]);
        let returned = case.program.buffers().iter().zip(layout.counts());
        let longest = returned.filter(|(b, _)| b.produces_output()).map(|(_, count)| *count).max();
        if resolved.workgroups().contains(&0) {
            found.push(DISPATCHES[3]);
        }
        if case.grid.is_none() && longest.is_some_and(|count| u64::from(count) % size != 0) {
            found.push(DISPATCHES[4]);
        }
        if resolved.workgroup_count() > 1 {
            found.push(DISPATCHES[5]);
        }
    }
    if !case.lengths.is_empty() {
        found.push(DISPATCHES[6]);
    }
    if case.fixpoint.is_some() {
        found.push(DISPATCHES[7]);
    }
    found
}

impl fmt::Display for Coverage {
    /// A table: for each group how much of it is covered, its rarest items and what is missing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "coverage of {} programs, {} dispatches", self.programs, self.cases)?;
        let mut groups: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
        let needed = self.required();
        for item in &needed {
            let count = self.counts.get(item).copied().unwrap_or(0);
            groups.entry(item.0).or_default().push((count, &item.1));
        }
        for (group, mut items) in groups {
            items.sort();
            let covered = items.iter().filter(|(count, _)| *count > 0).count();
            let total: u64 = items.iter().map(|(count, _)| count).sum();
            let rarest: Vec<_> = items.iter().take(3).map(|(n, name)| format!("{name} {n}")).collect();
            let of = format!("{covered} of {}", items.len());
            writeln!(f, "  {group:<20} {of:>12} {total:>10} uses  rarest: {}", rarest.join(", "))?;
        }
        let missing = self.missing();
        if missing.is_empty() {
            return writeln!(f, "nothing is missing");
        }
        writeln!(f, "missing {}:", missing.len())?;
        missing.iter().try_for_each(|item| writeln!(f, "  {item}"))
    }
}
