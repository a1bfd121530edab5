//! Breadth-first search that changes direction.
//!
//! *Top-down*, a level goes through the edges of all nodes that the level before has reached, most of which lead back to
//! nodes that are known. Where a level holds a large part of a graph it is less work to go *bottom-up*: every node that is
//! not reached looks backwards, and stops at the first neighbour in the level.
//!
//! # When it changes
//!
//! - From top-down to bottom-up when more edges go out from the level than one [`ALPHA`]th of those that go out from all
//!   nodes that are not reached yet, and more than one [`BETA`]th of the number of nodes, all of which are looked at then.
//! - Back to top-down when the level has fewer than one [`BETA`]th of all nodes. The queue is then made by a sweep over
//!   the nodes.
//!
//! Top-down levels read and write a queue ([`Frontier`]); bottom-up levels need none, because the levels themselves tell
//! who is in the level before. Levels are the same in both directions, so the result does not depend on when it changes.
//!
//! A top-down level ends with two grid barriers, one for the nodes found and one for their edges; a bottom-up level has
//! one. On graphs with many small levels, such as long chains, [`frontier`](crate::frontier) is the better choice.

use crate::frontier::{Frontier, UNREACHED, claim};
use crate::graph::Graph;
use crate::team::{Lanes, Team};
use vyre_foundation::build::prelude::*;

/// How much less a backward look is expected to cost than an edge of the level.
pub const ALPHA: u32 = 14;

/// How small a part of the nodes a level must be for a queue to be worth it.
pub const BETA: u32 = 24;

/// Elements of the counters: nodes reached bottom-up, and edges that go out from nodes that are reached.
const NODES: u32 = 0;
const EDGES: u32 = 1;

/// The fragment: a search over a graph and the same graph with its edges reversed.
#[derive(Clone, Copy, Debug)]
pub struct Bfs {
    team: Team,
    frontier: Frontier,
    /// What is counted in all levels so far.
    counts: Buffer<u32, access::Scratch>,
    /// What a workgroup has counted and not added to `counts` yet.
    tally: Buffer<u32, access::Workgroup>,
}

/// A graph that can be walked both ways, and the levels of its nodes.
#[derive(Clone, Copy)]
struct Both<A: access::Load, B: access::Access> {
    forward: Graph<A>,
    backward: Graph<A>,
    levels: Buffer<u32, B>,
}

/// What is known about the level at hand; all of it is uniform for the grid.
#[derive(Clone, Copy)]
struct Level {
    /// Whether it is expanded bottom-up.
    up: Var<bool>,
    /// How many nodes it has.
    size: Var<u32>,
    /// Where its half of the queue begins, and how many nodes had been pushed after it.
    half: Var<u32>,
    end: Var<u32>,
    /// What the counters were when it was complete.
    nodes: Var<u32>,
    edges: Var<u32>,
}

impl Bfs {
    /// Declares the memory: that of a [`Frontier`], `{name}_counts` (scratch) and `{name}_found` (workgroup).
    pub fn new(k: &Kernel, team: Team, name: &str) -> Bfs {
        Bfs {
            team,
            frontier: Frontier::new(k, team, name),
            counts: k.scratch(format!("{name}_counts")).with_count(2),
            tally: k.workgroup(format!("{name}_found"), 2),
        }
    }

    /// Runs `body` if the queue is long enough for a graph of `n` nodes, see [`Frontier::require`].
    pub fn require(self, k: &Kernel, n: Value<u32>, body: impl FnOnce()) {
        self.frontier.require(k, n, body);
    }

    /// Gives each node its distance from the nearest source, as [`frontier::levels`](crate::frontier::levels) does.
    /// `backward` has the edges of `forward` reversed; for a graph whose edges all go both ways it may be the same.
    /// Synchronises the grid.
    pub fn run<A, B>(
        self,
        k: &Kernel,
        [forward, backward]: [Graph<A>; 2],
        count: Value<u32>,
        sources: impl FnOnce(Value<u32>) -> Value<u32>,
        levels: Buffer<u32, B>,
    ) where
        A: access::Load,
        B: access::Atomic + access::Shared,
    {
        k.region("vyre_primitives::bfs", || {
            let n = forward.nodes().min(backward.nodes()).min(levels.len());
            let graph = Both { forward: forward.within(n), backward: backward.within(n), levels };
            self.team.for_each(k, levels.len(), |node| levels.store(node, UNREACHED));
            let level = self.seed(k, graph, count, sources);
            k.for_named("number", 0, n, |number| {
                k.if_(level.size.get().eq(0), || k.break_());
                self.choose(k, graph, level, number);
                k.if_(level.up.get(), || self.bottom_up(k, graph, level, number))
                    .else_(|| self.top_down(k, graph, level, number));
            });
        });
    }

    /// Reaches the sources.
    fn seed<A, B>(
        self,
        k: &Kernel,
        graph: Both<A, B>,
        count: Value<u32>,
        sources: impl FnOnce(Value<u32>) -> Value<u32>,
    ) -> Level
    where
        A: access::Load,
        B: access::Atomic + access::Shared,
    {
        let begin = self.frontier.count();
        let level = Level {
            up: k.var("up", false),
            size: k.var("size", 0u32),
            half: k.var("half", 0u32),
            end: k.var("end", begin),
            nodes: k.var("nodes", self.counts.grid_uniform_load(NODES)),
            edges: k.var("edges", self.counts.grid_uniform_load(EDGES)),
        };
        let round = self.frontier.round(0.into(), begin, 0.into());
        self.team.for_each(k, count, |i| {
            let source = sources(i);
            k.if_(source.lt(graph.forward.nodes()), || {
                claim(k, graph.levels, source, 0.into(), || {
                    round.push(k, source);
                    self.tally.atomic_add(EDGES, graph.forward.degree(source));
                });
            });
        });
        self.frontier.flush(k, round);
        self.add_up(k);
        self.take(level);
        level
    }

    /// Adds what the workgroup has counted to what all have. A workgroup barrier stands before and a barrier follows.
    fn add_up(self, k: &Kernel) {
        self.team.once_in_group(k, || {
            for what in [NODES, EDGES] {
                let found = self.tally.load(what);
                k.if_(found.ne(0), || {
                    self.counts.atomic_add(what, found);
                    self.tally.store(what, 0);
                });
            }
        });
    }

    /// Takes what was pushed as the next level.
    fn take(self, level: Level) {
        let end = self.frontier.count();
        level.size.set(end - level.end.get());
        level.end.set(end);
    }

    /// Decides about the direction, and makes the queue where it is needed again.
    fn choose<A, B>(self, k: &Kernel, graph: Both<A, B>, level: Level, number: Value<u32>)
    where
        A: access::Load,
        B: access::Atomic + access::Shared,
    {
        let n = graph.forward.nodes();
        k.if_(level.up.get(), || {
            k.if_(level.size.get().lt(n / BETA), || {
                level.up.set(false);
                level.half.set(0);
                level.edges.set(self.counts.grid_uniform_load(EDGES));
                let round = self.frontier.round(number, level.end.get(), 0.into());
                self.team.for_each(k, n, |node| {
                    k.if_(graph.levels.load(node).eq(number), || round.push(k, node));
                });
                self.frontier.flush(k, round);
                self.take(level);
            });
        })
        .else_(|| {
            let edges = self.counts.grid_uniform_load(EDGES);
            let left = graph.forward.edges().sat_sub(edges);
            level.up.set((edges - level.edges.get()).gt((left / ALPHA).max(n / BETA)));
            level.edges.set(edges);
        });
    }

    /// Each node of the level looks for neighbours that are not reached.
    fn top_down<A, B>(self, k: &Kernel, graph: Both<A, B>, level: Level, number: Value<u32>)
    where
        A: access::Load,
        B: access::Atomic + access::Shared,
    {
        let (half, frontier) = (level.half.get(), self.frontier);
        let round = frontier.round(number, level.end.get(), frontier.other_half(half));
        frontier.visit(k, half, level.size.get(), round, |round, node| {
            graph.forward.each_target(k, node, |target| {
                claim(k, graph.levels, target, number + 1, || {
                    round.push(k, target);
                    self.tally.atomic_add(EDGES, graph.forward.degree(target));
                });
            });
        });
        self.add_up(k);
        level.half.set(round.half);
        self.take(level);
    }

    /// Each node that is not reached looks for a neighbour in the level.
    fn bottom_up<A, B>(self, k: &Kernel, graph: Both<A, B>, level: Level, number: Value<u32>)
    where
        A: access::Load,
        B: access::Atomic + access::Shared,
    {
        let levels = graph.levels;
        self.team.for_each(k, graph.forward.nodes(), |node| {
            k.if_(levels.atomic_load(node).eq(UNREACHED), || {
                graph.backward.each_target(k, node, |neighbour| {
                    k.if_(levels.atomic_load(neighbour).eq(number), || {
                        levels.atomic_store(node, number + 1);
                        self.tally.atomic_add(NODES, 1);
                        self.tally.atomic_add(EDGES, graph.forward.degree(node));
                        k.break_();
                    });
                });
            });
        });
        self.add_up(k);
        let nodes = self.counts.grid_uniform_load(NODES);
        level.size.set(nodes - level.nodes.get());
        level.nodes.set(nodes);
    }
}

/// The program: the distance of each node from the nearest source. It has no parameters that could make it fail.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `offsets` | `read` | `u32` | nodes + 1 | where each node's targets begin, see [`graph`](crate::graph) |
/// | `targets` | `read` | `u32` | edges | the targets |
/// | `back_offsets` | `read` | `u32` | nodes + 1 | the same graph with its edges reversed |
/// | `back_targets` | `read` | `u32` | edges | |
/// | `sources` | `read` | `u32` | any | where it starts; also nodes that are listed twice |
/// | `levels` | `output` | `u32` | nodes | the distances, [`UNREACHED`] where there is none |
/// | `bfs_queue` | `scratch` | `u32` | 2 · nodes | |
///
/// Where all edges go both ways, the same memory may be bound for both directions. It traps with "the queue is too short"
/// where that is so. Any grid will do; without one there is a workgroup for each 256 nodes.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_primitives::{Lanes, bfs, frontier, graph};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (offsets, targets) = graph::from_edges(5, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
/// let back = graph::reversed(&offsets, &targets);
/// let backend = vyre_driver::acquire("cpu")?;
/// let [offsets, targets, back_offsets, back_targets, sources] =
///     [&offsets, &targets, &back.0, &back.1, &vec![0]].map(|data| backend.device_buffer_from(data));
/// let levels = backend.device_buffer::<u32>(5)?;
/// let buffers: [&dyn vyre_driver::DeviceMemory; 6] =
///     [&offsets?, &targets?, &back_offsets?, &back_targets?, &sources?, &levels];
/// let config = DispatchConfig::new().output_len("bfs_queue", 10);
/// backend.dispatch_with_device_buffers(&bfs::program(Lanes::default()), &buffers, &config)?;
/// assert_eq!(levels.download()?, [0, 1, 1, 2, frontier::UNREACHED]);
/// # Ok(())
/// # }
/// ```
pub fn program(lanes: Lanes) -> Program {
    crate::program("bfs", |k| {
        let team = Team::new(k, lanes);
        let forward = Graph::new(k.read::<u32>("offsets"), k.read::<u32>("targets"));
        let backward = Graph::new(k.read::<u32>("back_offsets"), k.read::<u32>("back_targets"));
        let sources = k.read::<u32>("sources");
        let levels = k.output::<u32>("levels");
        let bfs = Bfs::new(k, team, "bfs");
        bfs.require(k, forward.nodes().min(levels.len()), || {
            bfs.run(k, [forward, backward], sources.len(), |i| sources.load(i), levels);
        });
    })
}

/// The oracle: that of [`frontier`](crate::frontier), whose result is the same.
pub fn oracle(offsets: &[u32], targets: &[u32], sources: &[u32]) -> Vec<u32> {
    crate::frontier::oracle(offsets, targets, sources)
}
