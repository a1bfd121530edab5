//! What a workgroup combines in its own memory: one value for each lane becomes what stands before it, and all of them
//! together.
//!
//! Lanes are taken in runs of [`RUN`]. One lane goes through each run, and one through the results. That is as much work
//! as a loop over all lanes, which is the least there is, and about as many steps as a tree has levels with its barriers.

use crate::op::{Op, Word};
use crate::team::Team;
use vyre_foundation::build::prelude::*;

/// How many lanes one lane goes through.
const RUN: u32 = 16;

/// Memory of a workgroup, one value for each lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<T: Word> {
    team: Team,
    op: Op,
    /// One value for each lane.
    part: Buffer<T, access::Workgroup>,
    /// One value for each run; the last element is the carry.
    runs: Buffer<T, access::Workgroup>,
}

/// What a fold begins with.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Begin {
    /// Nothing.
    Empty,
    /// What the fold before gave.
    Carry,
}

impl<T: Word> Block<T> {
    pub(crate) fn new(k: &Kernel, team: Team, name: &str, op: Op) -> Block<T> {
        Block {
            team,
            op,
            part: k.workgroup(format!("{name}_part"), team.lanes()),
            runs: k.workgroup(format!("{name}_runs"), run_count(team) + 1),
        }
    }

    pub(crate) fn identity(self) -> Value<T> {
        self.op.identity::<T>().into()
    }

    /// Sets the value of this lane.
    pub(crate) fn set(self, value: Value<T>) {
        self.part.store(self.team.lane(), value);
    }

    /// Combines a value into that of this lane.
    pub(crate) fn add(self, value: Value<T>) {
        self.set(self.op.of(self.part.load(self.team.lane()), value));
    }

    /// Combines the values of all lanes, in order. Afterwards [`before`](Block::before) and [`carry`](Block::carry)
    /// tell the results. Synchronises the workgroup.
    pub(crate) fn fold(self, k: &Kernel, begin: Begin) {
        let (lane, count) = (self.team.lane(), run_count(self.team));
        k.barrier(Scope::Workgroup);
        k.if_(lane.lt(count), || {
            let sum = k.var("sum", self.identity());
            let first = lane * RUN;
            k.for_named("i", first, first + self.team.lanes().min(RUN), |i| self.step(sum, self.part, i));
            self.runs.store(lane, sum.get());
        });
        k.barrier(Scope::Workgroup);
        k.if_(lane.eq(0), || {
            let first = if begin == Begin::Carry { self.carry() } else { self.identity() };
            let sum = k.var("sum", first);
            k.for_named("i", 0, count, |i| self.step(sum, self.runs, i));
            self.runs.store(count, sum.get());
        });
        k.barrier(Scope::Workgroup);
    }

    /// Puts the sum so far in the place of a value, and the value into the sum.
    fn step(self, sum: Var<T>, values: Buffer<T, access::Workgroup>, i: Value<u32>) {
        let value = values.load(i);
        values.store(i, sum.get());
        sum.set(self.op.of(sum.get(), value));
    }

    /// After a fold: what the lanes before this one give together, and what was carried.
    pub(crate) fn before(self) -> Value<T> {
        let lane = self.team.lane();
        self.op.of(self.runs.load(lane / RUN), self.part.load(lane))
    }

    /// After a fold: what all lanes give together, and what was carried. Only lane 0 may ask.
    pub(crate) fn carry(self) -> Value<T> {
        self.runs.load(run_count(self.team))
    }
}

fn run_count(team: Team) -> u32 {
    team.lanes().div_ceil(RUN)
}
