//! Who does what: workgroups of a fixed size that share work out among themselves.
//!
//! Work is a count of things. They are taken in *rows*, one thing for each lane of a workgroup, and each workgroup takes
//! a *stretch* of rows side by side, so that what it touches lies close together.

use vyre_foundation::build::prelude::*;

/// How many invocations a workgroup has: a power of two up to 1024.
///
/// ```
/// use vyre_primitives::Lanes;
/// assert_eq!(Lanes::new(64).map(Lanes::get), Some(64));
/// assert_eq!(Lanes::new(48), None);
/// assert_eq!(Lanes::default().get(), 256);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lanes(u32);

impl Lanes {
    /// So many; `None` where that is no power of two or too many.
    pub const fn new(lanes: u32) -> Option<Lanes> {
        if lanes.is_power_of_two() && lanes <= 1024 { Some(Lanes(lanes)) } else { None }
    }

    /// How many.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Lanes {
    /// 256: what every device takes, and enough for a CPU to compute many lanes at once.
    fn default() -> Lanes {
        Lanes(256)
    }
}

/// The invocations of a dispatch and how they share out work.
///
/// ```
/// use vyre_foundation::build::prelude::*;
/// use vyre_primitives::{Lanes, Team};
///
/// let program = vyre_foundation::build::program("squares", |k| {
///     let team = Team::new(k, Lanes::default());
///     let x = k.read_write::<u32>("x");
///     team.for_each(k, x.len(), |i| x.store(i, x.load(i) * x.load(i)));
/// })?;
/// assert_eq!(program.workgroup_size().size(), [256, 1, 1]);
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Team {
    lanes: Lanes,
    lane: Value<u32>,
    group: Value<u32>,
    groups: Value<u32>,
}

/// The part of some units of work that a workgroup takes: those from `first` to `end - 1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) first: Value<u32>,
    pub(crate) end: Value<u32>,
}

impl Team {
    /// Sets the workgroup size of the program. A program has one team, made before any body is opened.
    pub fn new(k: &Kernel, lanes: Lanes) -> Team {
        k.workgroup_size(lanes.get());
        let (id, count) = (k.workgroup_id(), k.num_workgroups());
        Team {
            lanes,
            lane: k.local_id().x,
            group: id.x + count.x * (id.y + count.y * id.z),
            groups: count.x * count.y * count.z,
        }
    }

    /// How many invocations a workgroup has.
    pub fn lanes(self) -> u32 {
        self.lanes.get()
    }

    /// Which invocation of its workgroup this is.
    pub fn lane(self) -> Value<u32> {
        self.lane
    }

    /// Which workgroup this is, over all axes.
    pub fn group(self) -> Value<u32> {
        self.group
    }

    /// How many workgroups there are, over all axes.
    pub fn groups(self) -> Value<u32> {
        self.groups
    }

    /// Runs `body` for each number below `n`, each in one invocation of the grid. Synchronises the workgroup.
    pub fn for_each(self, k: &Kernel, n: impl IntoValue<u32>, body: impl FnOnce(Value<u32>)) {
        let n = n.into_value();
        let mine = self.stretch(self.rows(n), None);
        self.each_row(k, mine, n, body);
    }

    /// Runs `body` for each number below `n`, each in one invocation of this workgroup. Synchronises the workgroup.
    pub fn for_each_in_group(self, k: &Kernel, n: impl IntoValue<u32>, body: impl FnOnce(Value<u32>)) {
        let n = n.into_value();
        self.each_row(k, Stretch { first: 0.into(), end: self.rows(n) }, n, body);
    }

    /// Runs `body` in one invocation of the grid.
    pub fn once(self, k: &Kernel, body: impl FnOnce()) {
        k.if_(self.group.eq(0), || self.once_in_group(k, body));
    }

    /// Runs `body` in one invocation of each workgroup.
    pub fn once_in_group(self, k: &Kernel, body: impl FnOnce()) {
        k.if_(self.lane.eq(0), body);
    }

    /// How many rows `n` things make.
    pub(crate) fn rows(self, n: Value<u32>) -> Value<u32> {
        divide_up(n, self.lanes())
    }

    /// The part of `units` that this workgroup takes, where at most `most` workgroups take any.
    pub(crate) fn stretch(self, units: Value<u32>, most: Option<u32>) -> Stretch {
        let groups = most.map_or(self.groups, |most| self.groups.min(most));
        let each = divide_up(units, groups);
        // Taking no more than `groups` keeps the product small.
        let first = (self.group.min(groups) * each).min(units);
        Stretch { first, end: (first + each).min(units) }
    }

    /// Runs `body` for the things below `n` in these rows.
    ///
    /// The barrier makes a workgroup finish one row before the next: on a CPU, where one thread runs all lanes, a lane
    /// would otherwise go through all its rows alone. Lanes are compared with a count, not indices with `n`, because
    /// a CPU then loops over these lanes only.
    pub(crate) fn each_row(self, k: &Kernel, rows: Stretch, n: Value<u32>, body: impl FnOnce(Value<u32>)) {
        k.for_named("row", rows.first, rows.end, |row| {
            let base = row * self.lanes();
            k.if_(self.lane.lt(n - base), || body(base + self.lane));
            k.barrier(Scope::Workgroup);
        });
    }
}

/// `n / by`, rounded up.
pub(crate) fn divide_up(n: Value<u32>, by: impl IntoValue<u32>) -> Value<u32> {
    let by = by.into_value();
    (n + (by - 1)) / by
}

#[cfg(test)]
mod tests {
    use super::*;
    use vyre_reference::{Options, run};

    /// What each workgroup of a grid takes of `units`.
    fn stretches(units: u32, groups: u32, most: Option<u32>) -> Vec<(u32, u32)> {
        let program = vyre_foundation::build::program("stretches", |k| {
            let team = Team::new(k, Lanes(1));
            let units = k.uniform::<u32>("units").with_count(1);
            let out = k.output::<u32>("out");
            let mine = team.stretch(units.load(0), most);
            out.store(team.group() * 2, mine.first);
            out.store(team.group() * 2 + 1, mine.end);
        });
        let lengths = vec![("out".into(), groups * 2)];
        let options = Options { grid: Some([groups, 1, 1]), lengths, ..Options::default() };
        let outcome = run(&program.unwrap(), &[&units.to_le_bytes()], &options).unwrap();
        let words: Vec<u32> =
            outcome.outputs[0].chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        words.chunks(2).map(|pair| (pair[0], pair[1])).collect()
    }

    #[test]
    fn stretches_cover_everything_once() {
        for units in [0, 1, 2, 7, 255, 256, 257, 1000, 1 << 31] {
            for groups in [1, 2, 3, 7, 256, 1000] {
                for most in [None, Some(256)] {
                    let found = stretches(units, groups, most);
                    let mut end = 0;
                    for (first, behind) in &found {
                        assert_eq!((*first, end <= *behind), (end, true), "{units} for {groups}: {found:?}");
                        end = *behind;
                    }
                    assert_eq!(end, units);
                    let busy = found.iter().filter(|(first, end)| first < end).count();
                    assert!(busy <= most.map_or(usize::MAX, |most| most as usize));
                }
            }
        }
    }
}
