//! Uniformity: which values and which control are the same for all invocations of the grid or of a workgroup.
//!
//! The walk over the program builds a graph instead of iterating to a fixed point: a node is a value or a
//! point of control, an edge says "is at most as uniform as". Variables are resolved to the assignments that
//! reach (a join where several do, a loop's head included), so back edges are ordinary edges. Solving is then
//! one breadth-first search per level from the values that differ by nature, linear in the program, and the
//! search tree is the explanation that a diagnostic shows: the shortest way by which something came to differ.

use crate::Name;
use crate::diagnostic::{Cause, Place, Problem};
use rustc_hash::FxHashMap;

/// A value or a point of control. The first node is whatever is the same for the whole grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Uniform(u32);

impl Uniform {
    /// The same for all invocations of the grid.
    pub(super) const GRID: Uniform = Uniform(0);
}

/// How far a value or control is the same: a higher level is less uniform.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The same for all invocations of the grid.
    Grid,
    /// The same for all invocations of a workgroup.
    Workgroup,
    /// It may differ between any two invocations.
    Divergent,
}

/// Where something is, by the numbers of statement and expression.
#[derive(Clone, Copy)]
pub(super) enum At {
    Expr { node: u32, expr: u32 },
    Name { node: u32 },
    Statement { node: u32 },
}

impl At {
    pub(super) fn node(self) -> usize {
        match self {
            At::Expr { node, .. } | At::Name { node } | At::Statement { node } => node as usize,
        }
    }
}

/// Something that is legal only where a node is uniform enough.
struct Demand {
    node: Uniform,
    at_most: Level,
    problem: Problem,
    place: Place,
}

/// A store that is a race if neither its control nor its index differs between the invocations of a workgroup.
struct Shared {
    nodes: [Uniform; 2],
    problem: Problem,
    place: Place,
}

/// A cause at a place, for a note.
pub(super) type Reason = (At, Cause);

/// The number that stands for no reason and no node.
const NONE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Graph {
    /// For each node after the first the number of its reason, if there is something to say.
    reason: Vec<u32>,
    reasons: Vec<Reason>,
    /// What joins become once there are too many of them.
    lost: Option<Uniform>,
    /// The nodes that differ by nature.
    sources: Vec<(Uniform, Level)>,
    /// From the more uniform side to the node that cannot be more uniform than it.
    edges: Vec<(Uniform, Uniform)>,
    demands: Vec<Demand>,
    shared: Vec<Shared>,
    /// The control inside each `if` and `for`, by the number of the statement.
    controls: Vec<(usize, Uniform)>,
}

impl Graph {
    /// Beyond this many nodes and edges joins of variables count as divergent instead of being followed. Only
    /// programs made to be slow have so many: hundreds of nested loops or branches that assign thousands of
    /// variables each.
    const MAX_SIZE: usize = 16_000_000;

    pub(super) fn node(&mut self, reason: Option<Reason>) -> Uniform {
        let number = reason.map_or(NONE, |reason| {
            self.reasons.push(reason);
            self.reasons.len() as u32 - 1
        });
        self.reason.push(number);
        Uniform(self.reason.len() as u32)
    }

    /// The node that stands for a join where the graph has grown too large, else nothing.
    pub(super) fn lost(&mut self) -> Option<Uniform> {
        if self.reason.len() + self.edges.len() <= Graph::MAX_SIZE {
            return None;
        }
        Some(match self.lost {
            Some(lost) => lost,
            None => {
                let why = "this program has too many joins of variables to follow";
                let lost = self.source(Level::Divergent, At::Statement { node: 0 }, why);
                *self.lost.insert(lost)
            }
        })
    }

    pub(super) fn edge(&mut self, from: Uniform, to: Uniform) {
        if from != Uniform::GRID && from != to {
            self.edges.push((from, to));
        }
    }

    /// A value that differs by nature.
    pub(super) fn source(&mut self, level: Level, at: At, why: &'static str) -> Uniform {
        let node = self.node(Some((at, Cause::Differs(why))));
        self.sources.push((node, level));
        node
    }

    /// As uniform as the less uniform of the two.
    pub(super) fn join(&mut self, a: Uniform, b: Uniform) -> Uniform {
        if a == Uniform::GRID || a == b {
            return b;
        }
        if b == Uniform::GRID {
            return a;
        }
        let node = self.node(None);
        self.edge(a, node);
        self.edge(b, node);
        node
    }

    /// The same node with something to say about how it came to differ.
    pub(super) fn because(&mut self, node: Uniform, at: At, cause: Cause) -> Uniform {
        if node == Uniform::GRID {
            return node;
        }
        let wrapped = self.node(Some((at, cause)));
        self.edge(node, wrapped);
        wrapped
    }

    pub(super) fn demand(&mut self, node: Uniform, at_most: Level, problem: Problem, place: Place) {
        if node != Uniform::GRID {
            self.demands.push(Demand { node, at_most, problem, place });
        }
    }

    /// Remembers a store by all invocations that come here, to warn if they all store to one element.
    pub(super) fn shared_store(&mut self, nodes: [Uniform; 2], problem: Problem, place: Place) {
        self.shared.push(Shared { nodes, problem, place });
    }

    /// The demands that do not hold, each with the way by which the node came to differ, source last.
    pub(super) fn solve(&mut self) -> Vec<(Problem, Place, Vec<Reason>)> {
        let demands = std::mem::take(&mut self.demands);
        let shared = std::mem::take(&mut self.shared);
        if demands.is_empty() && shared.is_empty() {
            return Vec::new();
        }
        let solution = self.levels();
        let level = |node: Uniform| solution.levels[node.0 as usize];
        let races = shared.into_iter().filter(|s| s.nodes.iter().all(|n| level(*n) <= Level::Workgroup));
        let races = races.map(|store| (store.problem, store.place, Vec::new()));
        let broken = demands.into_iter().filter(|d| level(d.node) > d.at_most);
        broken
            .map(|demand| {
                let mut reasons = Vec::new();
                let mut next = Some(demand.node);
                while let Some(node) = next {
                    reasons.extend(self.reasons.get(self.reason[node.0 as usize - 1] as usize).cloned());
                    let by = solution.raised_by[node.0 as usize];
                    next = (by != NONE).then_some(Uniform(by));
                }
                (demand.problem, demand.place, summarize(reasons))
            })
            .chain(races)
            .collect()
    }

    /// Remembers the control inside a statement.
    pub(super) fn control_of(&mut self, statement: usize, control: Uniform) {
        self.controls.push((statement, control));
    }

    /// How uniform the control inside each `if` and `for` is, by the number of the statement.
    pub(super) fn control_levels(&self) -> FxHashMap<usize, Level> {
        let levels = self.levels().levels;
        self.controls.iter().map(|(statement, node)| (*statement, levels[node.0 as usize])).collect()
    }

    fn levels(&self) -> Solution {
        let count = self.reason.len() + 1;
        // Edges by their start, as offsets into one array.
        let mut offsets = vec![0u32; count + 1];
        for (from, _) in &self.edges {
            offsets[from.0 as usize + 1] += 1;
        }
        for i in 0..count {
            offsets[i + 1] += offsets[i];
        }
        let mut targets = vec![Uniform::GRID; self.edges.len()];
        let mut filled = offsets.clone();
        for (from, to) in &self.edges {
            let slot = &mut filled[from.0 as usize];
            targets[*slot as usize] = *to;
            *slot += 1;
        }
        let mut levels = vec![Level::Grid; count];
        let mut raised_by = vec![NONE; count];
        // The least uniform level first: each node is then reached once, at its final level.
        for level in [Level::Divergent, Level::Workgroup] {
            let fits = |(_, own): &&(Uniform, Level)| *own == level;
            let mut queue: std::collections::VecDeque<_> =
                self.sources.iter().filter(fits).map(|(node, _)| (*node, NONE)).collect();
            while let Some((node, by)) = queue.pop_front() {
                let i = node.0 as usize;
                if levels[i] >= level {
                    continue;
                }
                levels[i] = level;
                raised_by[i] = by;
                let dependents = &targets[offsets[i] as usize..offsets[i + 1] as usize];
                queue.extend(dependents.iter().map(|to| (*to, node.0)));
            }
        }
        Solution { levels, raised_by }
    }
}

struct Solution {
    levels: Vec<Level>,
    raised_by: Vec<u32>,
}

/// The first steps and the source; a long chain of copies in between helps nobody.
fn summarize(mut reasons: Vec<Reason>) -> Vec<Reason> {
    const SHOWN: usize = 8;
    if reasons.len() > SHOWN {
        let source = reasons.pop();
        reasons.truncate(SHOWN - 1);
        reasons.extend(source);
    }
    reasons
}

/// A loop that the walk is in.
pub(super) struct OpenLoop {
    /// The control of its body: bounds, and every `break` in it.
    pub(super) control: Uniform,
    /// The control that `continue`s leave for the rest of the body.
    pub(super) rest: Uniform,
    /// The variables assigned in it: their number, the join at its head and the join after it.
    pub(super) carried: Vec<(usize, Uniform, Uniform)>,
    /// Whether the values of these are no longer followed.
    pub(super) lost: bool,
}

/// The control flow around the statement that is being checked.
pub(super) struct Flows {
    /// The control of the body that is being checked.
    pub(super) control: Uniform,
    pub(super) loops: Vec<OpenLoop>,
    /// Whether a statement before has ended every invocation that could come here.
    pub(super) dead: bool,
    /// What each assignment replaced, for undoing at the end of a branch.
    pub(super) log: Vec<(usize, Uniform)>,
    /// How many bodies around may never run although control reaches them: under a constant condition, say.
    pub(super) doubtful: u32,
}

impl Default for Flows {
    fn default() -> Flows {
        Flows { control: Uniform::GRID, loops: Vec::new(), dead: false, log: Vec::new(), doubtful: 0 }
    }
}

/// What the assignments of a branch left in each variable, if control can leave its end.
pub(super) struct Branch {
    pub(super) falls: bool,
    pub(super) left: Vec<(usize, Uniform)>,
    /// What its `continue`s leave for the rest of the loop's body.
    pub(super) rest: Uniform,
}

/// A note that an assignment made a variable differ.
pub(super) fn assigned(name: &Name) -> Cause {
    Cause::Assigned(name.clone())
}
