//! Traversal in rounds: each round visits what the round before has found, until one finds nothing.
//!
//! What is to be visited stands in a queue of two halves: a round reads one and writes the other. One grid barrier ends a
//! round, a `uniform_load` of how much was found, which also decides whether there is another one. All rounds are in one
//! dispatch.
//!
//! Workgroups collect what they find in their own memory and take places in the queue for many nodes at once: a counter
//! that every node of a large graph increments would be where all cores wait for each other.

use crate::graph::{Graph, targets_of};
use crate::team::{Lanes, Team};
use vyre_foundation::build::prelude::*;

/// The level of a node that is not reached.
pub const UNREACHED: u32 = u32::MAX;

/// How many nodes a workgroup collects; more go to the queue one by one.
const COLLECTED: u32 = 1024;

/// Elements of the memory in which a workgroup counts: how many nodes it has found, how many of these it moves to the
/// queue, and where they go.
const FOUND: u32 = 0;
const MOVED: u32 = 1;
const PLACE: u32 = 2;

/// The fragment: a queue of nodes to visit, for any number of traversals, one after the other.
///
/// The caller decides what a node is, what its neighbours are and whether one was visited before:
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_foundation::build::prelude::*;
/// use vyre_primitives::{Frontier, Lanes, Team, bitset};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Which numbers are made of 1 by doubling and by adding 3.
/// let program = vyre_foundation::build::program("numbers", |k| {
///     let team = Team::new(k, Lanes::default());
///     let made = k.output::<u32>("made");
///     let frontier = Frontier::new(k, team, "frontier");
///     let visit = |round: vyre_primitives::frontier::Round, number| {
///         // `set` tells one of all that come here at once that it is the first.
///         k.if_(bitset::set(made, number), || round.push(k, number));
///     };
///     frontier.run(k, |round| team.once(k, || visit(round, 1.into())), |round, number| {
///         visit(round, number * 2);
///         visit(round, number + 3);
///     });
/// })?;
/// let backend = vyre_driver::acquire("cpu")?;
/// let made = backend.device_buffer::<u32>(1)?;
/// let config = DispatchConfig::new().output_len("frontier_queue", 64);
/// backend.dispatch_with_device_buffers(&program, &[&made], &config)?;
/// let expected: u32 = (0..32).filter(|number| number % 3 != 0).map(|number| 1 << number).sum();
/// assert_eq!(made.download()?, [expected]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Frontier {
    team: Team,
    queue: Buffer<u32, access::Scratch>,
    /// How many nodes were pushed so far, in all rounds.
    pushed: Buffer<u32, access::Scratch>,
    collected: Buffer<u32, access::Workgroup>,
    tally: Buffer<u32, access::Workgroup>,
}

/// A round of a traversal: what its visits need to push nodes for the next one.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    frontier: Frontier,
    pub(crate) number: Value<u32>,
    /// How many nodes had been pushed when it began.
    pub(crate) begin: Value<u32>,
    /// Where the half of the queue begins that it writes.
    pub(crate) half: Value<u32>,
}

impl Frontier {
    /// Declares the memory: `{name}_queue` and `{name}_pushed` (scratch), `{name}_collected` and `{name}_tally`
    /// (workgroup). The length of `{name}_queue` is open: twice as many as a round pushes at most.
    pub fn new(k: &Kernel, team: Team, name: &str) -> Frontier {
        Frontier {
            team,
            queue: k.scratch(format!("{name}_queue")),
            pushed: k.scratch(format!("{name}_pushed")).with_count(1),
            collected: k.workgroup(format!("{name}_collected"), COLLECTED),
            tally: k.workgroup(format!("{name}_tally"), 3),
        }
    }

    /// How many nodes a round can push: half of the queue's length.
    pub fn capacity(self) -> Value<u32> {
        self.queue.len() / 2
    }

    /// Runs `body` if a round can push `n` nodes, which is uniform for the grid; traps if it cannot.
    ///
    /// The body stands in the branch and not behind it, where every lane would have to be asked whether it has trapped.
    pub fn require(self, k: &Kernel, n: Value<u32>, body: impl FnOnce()) {
        k.if_(self.capacity().lt(n), || k.trap("the queue is too short", n * 2)).else_(body);
    }

    /// Visits what `seeds` pushes, then what that pushes, until nothing is pushed. Synchronises the grid.
    ///
    /// A grid barrier stands before `seeds`, which runs where control is uniform for the grid. `visit` gets each node
    /// that was pushed in the round before, as often as it was pushed, in one invocation and in no order; its round's
    /// [number](Round::number) counts from 0. Nodes that do not fit the queue are lost: see
    /// [`require`](Frontier::require). Afterwards what the visits wrote is visible to all.
    pub fn run(self, k: &Kernel, seeds: impl FnOnce(Round), visit: impl FnOnce(Round, Value<u32>)) {
        k.region("vyre_primitives::frontier", || {
            let begin = k.var("begin", self.count());
            let round = self.round(0.into(), begin.get(), 0.into());
            seeds(round);
            self.flush(k, round);
            k.for_named("turn", 0, u32::MAX, |number| {
                let end = self.count();
                let size = end - begin.get();
                k.if_(size.eq(0), || k.break_());
                begin.set(end);
                let half = (number & 1) * self.capacity();
                let round = self.round(number, end, self.other_half(half));
                self.visit(k, half, size, round, visit);
            });
        });
    }

    pub(crate) fn round(self, number: Value<u32>, begin: Value<u32>, half: Value<u32>) -> Round {
        Round { frontier: self, number, begin, half }
    }

    pub(crate) fn other_half(self, half: Value<u32>) -> Value<u32> {
        self.capacity() - half
    }

    /// How many nodes were pushed so far. Synchronises the grid.
    pub(crate) fn count(self) -> Value<u32> {
        self.pushed.grid_uniform_load(0)
    }

    /// Visits the `size` nodes of a half of the queue. Synchronises the workgroup.
    pub(crate) fn visit(
        self,
        k: &Kernel,
        half: Value<u32>,
        size: Value<u32>,
        round: Round,
        visit: impl FnOnce(Round, Value<u32>),
    ) {
        let mine = self.team.stretch(self.team.rows(size), None);
        k.for_named("row", mine.first, mine.end, |row| {
            let base = row * self.team.lanes();
            k.if_(self.team.lane().lt(size - base), || {
                visit(round, self.queue.load(half + base + self.team.lane()));
            });
            self.flush(k, round);
        });
    }

    /// Moves what the workgroup has collected to the queue. Synchronises the workgroup.
    pub(crate) fn flush(self, k: &Kernel, round: Round) {
        k.barrier(Scope::Workgroup);
        self.team.once_in_group(k, || {
            let moved = self.tally.load(FOUND).min(COLLECTED);
            self.tally.store(MOVED, moved);
            k.if_(moved.ne(0), || {
                self.tally.store(FOUND, 0);
                self.tally.store(PLACE, self.pushed.atomic_add(0, moved) - round.begin);
            });
        });
        let moved = self.tally.workgroup_uniform_load(MOVED);
        self.team.for_each_in_group(k, moved, |i| {
            self.enqueue(k, round, self.tally.load(PLACE) + i, self.collected.load(i));
        });
    }

    fn enqueue(self, k: &Kernel, round: Round, place: Value<u32>, node: Value<u32>) {
        k.if_(place.lt(self.capacity()), || self.queue.store(round.half + place, node));
    }
}

impl Round {
    /// Which round this is; the first one is 0.
    pub fn number(self) -> Value<u32> {
        self.number
    }

    /// Has a node visited in the next round. Whether it was pushed before is not looked at.
    pub fn push(self, k: &Kernel, node: Value<u32>) {
        let frontier = self.frontier;
        let found = frontier.tally.atomic_add(FOUND, 1);
        k.if_(found.lt(COLLECTED), || frontier.collected.store(found, node)).else_(|| {
            let place = frontier.pushed.atomic_add(0, 1) - self.begin;
            frontier.enqueue(k, self, place, node);
        });
    }
}

/// Gives each node of a graph its distance from the nearest source, [`UNREACHED`] where there is none. Synchronises the
/// grid.
///
/// `sources(i)` is source number `i` of `count`, which is uniform for the workgroup; one that is no node counts for
/// nothing. `levels` is overwritten as far as it has room: the graph is taken to have no more nodes than that.
pub fn levels<A, B>(
    k: &Kernel,
    frontier: Frontier,
    graph: Graph<A>,
    count: Value<u32>,
    sources: impl FnOnce(Value<u32>) -> Value<u32>,
    levels: Buffer<u32, B>,
) where
    A: access::Load,
    B: access::Atomic + access::Shared,
{
    let team = frontier.team;
    let graph = graph.within(levels.len());
    team.for_each(k, levels.len(), |node| levels.store(node, UNREACHED));
    frontier.run(
        k,
        |round| {
            team.for_each(k, count, |i| {
                let source = sources(i);
                k.if_(source.lt(graph.nodes()), || {
                    claim(k, levels, source, 0.into(), || round.push(k, source));
                });
            });
        },
        |round, node| {
            graph.each_target(k, node, |target| {
                claim(k, levels, target, round.number() + 1, || round.push(k, target));
            });
        },
    );
}

/// Gives a node a level if it has none; runs `first` in the one invocation that did.
pub(crate) fn claim<A: access::Atomic>(
    k: &Kernel,
    levels: Buffer<u32, A>,
    node: Value<u32>,
    level: Value<u32>,
    first: impl FnOnce(),
) {
    // Looked at first: most edges lead to nodes that have a level.
    k.if_(levels.atomic_load(node).eq(UNREACHED), || {
        k.if_(levels.atomic_compare_exchange(node, UNREACHED, level).eq(UNREACHED), first);
    });
}

/// The program: the distance of each node from the nearest source. It has no parameters that could make it fail.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `offsets` | `read` | `u32` | nodes + 1 | where each node's targets begin, see [`graph`](crate::graph) |
/// | `targets` | `read` | `u32` | edges | the targets |
/// | `sources` | `read` | `u32` | any | where it starts; also nodes that are listed twice |
/// | `levels` | `output` | `u32` | nodes | the distances, [`UNREACHED`] where there is none |
/// | `frontier_queue` | `scratch` | `u32` | 2 · nodes | |
///
/// It traps with "the queue is too short" where that is so. Any grid will do; without one there is a workgroup for each
/// 256 nodes.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_primitives::{Lanes, frontier, graph};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (offsets, targets) = graph::from_edges(5, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
/// let backend = vyre_driver::acquire("cpu")?;
/// let offsets = backend.device_buffer_from(&offsets)?;
/// let targets = backend.device_buffer_from(&targets)?;
/// let sources = backend.device_buffer_from(&[0u32])?;
/// let levels = backend.device_buffer::<u32>(5)?;
/// let buffers: [&dyn vyre_driver::DeviceMemory; 4] = [&offsets, &targets, &sources, &levels];
/// let config = DispatchConfig::new().output_len("frontier_queue", 10);
/// backend.dispatch_with_device_buffers(&frontier::program(Lanes::default()), &buffers, &config)?;
/// assert_eq!(levels.download()?, [0, 1, 1, 2, frontier::UNREACHED]);
/// # Ok(())
/// # }
/// ```
pub fn program(lanes: Lanes) -> Program {
    crate::program("levels", |k| {
        let team = Team::new(k, lanes);
        let graph = Graph::new(k.read::<u32>("offsets"), k.read::<u32>("targets"));
        let sources = k.read::<u32>("sources");
        let out = k.output::<u32>("levels");
        let frontier = Frontier::new(k, team, "frontier");
        frontier.require(k, graph.nodes().min(out.len()), || {
            levels(k, frontier, graph, sources.len(), |i| sources.load(i), out);
        });
    })
}

/// The oracle: the distance of each node from the nearest source.
pub fn oracle(offsets: &[u32], targets: &[u32], sources: &[u32]) -> Vec<u32> {
    let mut levels = vec![UNREACHED; offsets.len().saturating_sub(1)];
    let mut queue = Vec::new();
    let claim = |levels: &mut Vec<u32>, queue: &mut Vec<u32>, node: u32, level: u32| {
        if levels.get(node as usize) == Some(&UNREACHED) {
            levels[node as usize] = level;
            queue.push(node);
        }
    };
    sources.iter().for_each(|source| claim(&mut levels, &mut queue, *source, 0));
    let mut next = 0;
    while let Some(&node) = queue.get(next) {
        next += 1;
        let level = levels[node as usize] + 1;
        targets_of(offsets, targets, node).for_each(|target| claim(&mut levels, &mut queue, target, level));
    }
    levels
}
