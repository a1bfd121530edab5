//! Connected components: each node gets the smallest node of its component as its label.
//!
//! Labels are parents in a forest at first. Each edge joins the trees of its two ends: the larger root gets the smaller
//! one as its parent, by a compare-exchange that fails only where somebody else has joined that root meanwhile; then
//! both ends are followed further up. Paths are halved on the way, so they stay short. When all edges have been seen
//! once, which takes one sweep and no rounds, a barrier follows and each node takes its root as its label.
//!
//! # Why that is right whatever the order
//!
//! A parent is always less than its child, so there are no cycles, and the root of a tree is its smallest node. A root
//! gets a parent at most once, so there are as many trees less as there are joins. Halving a path replaces a parent by
//! one that was its ancestor at some time, which is in the same component of joins; so each tree lies inside one such
//! component, there are equally many of both, and so they are the same. Nothing in this asks in which order the
//! invocations see each other's writes.

use crate::graph::{Graph, targets_of};
use crate::team::{Lanes, Team};
use vyre_foundation::build::prelude::*;

/// The fragment: labels that are being made.
///
/// Between [`start`](Components::start), [`link`](Components::link) and [`finish`](Components::finish) there must be grid
/// barriers.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_foundation::build::prelude::*;
/// use vyre_primitives::components::Components;
/// use vyre_primitives::{Lanes, Team};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Equal neighbours in a row of cells belong together.
/// let program = vyre_foundation::build::program("runs", |k| {
///     let team = Team::new(k, Lanes::default());
///     let cells = k.read::<u32>("cells");
///     let components = Components::new(k.output::<u32>("labels"));
///     components.start(k, team);
///     k.barrier(Scope::Grid);
///     team.for_each(k, cells.len().sat_sub(1), |i| {
///         k.if_(cells.load(i).eq(cells.load(i + 1)), || components.link(k, i, i + 1));
///     });
///     k.barrier(Scope::Grid);
///     components.finish(k, team);
/// })?;
/// let backend = vyre_driver::acquire("cpu")?;
/// let cells = backend.device_buffer_from(&[7u32, 7, 1, 7, 7, 7])?;
/// let labels = backend.device_buffer::<u32>(6)?;
/// backend.dispatch_with_device_buffers(&program, &[&cells, &labels], &DispatchConfig::new())?;
/// assert_eq!(labels.download()?, [0, 0, 2, 3, 3, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Components<A: access::Atomic + access::Shared> {
    labels: Buffer<u32, A>,
}

impl<A: access::Atomic + access::Shared> Components<A> {
    /// Components of as many nodes as `labels` has elements.
    pub fn new(labels: Buffer<u32, A>) -> Components<A> {
        Components { labels }
    }

    /// Makes each node a component of its own. Synchronises the workgroup.
    pub fn start(self, k: &Kernel, team: Team) {
        team.for_each(k, self.labels.len(), |node| self.labels.store(node, node));
    }

    /// Joins the components of two nodes. What is no node is joined with nothing.
    pub fn link(self, k: &Kernel, a: Value<u32>, b: Value<u32>) {
        let n = self.labels.len();
        k.if_(a.lt(n).and(b.lt(n)), || {
            let (low, high) = (k.var("low", a), k.var("high", b));
            k.for_named("step", 0, u32::MAX, |_| {
                let (a, b) = (self.root(k, low.get()), self.root(k, high.get()));
                k.if_(a.eq(b), || k.break_());
                low.set(a.min(b));
                high.set(a.max(b));
                let parent = self.labels.atomic_compare_exchange(high.get(), high.get(), low.get());
                // Otherwise it is no root any more.
                k.if_(parent.eq(high.get()), || k.break_());
            });
        });
    }

    /// The root of a node's tree at some moment; halves the path to it.
    fn root(self, k: &Kernel, node: Value<u32>) -> Value<u32> {
        let at = k.var("at", node);
        k.for_named("step", 0, u32::MAX, |_| {
            let parent = self.labels.atomic_load(at.get());
            let above = self.labels.atomic_load(parent);
            k.if_(parent.eq(above), || {
                at.set(parent);
                k.break_();
            });
            self.labels.atomic_store(at.get(), above);
            at.set(above);
        });
        at.get()
    }

    /// Gives each node the smallest node of its component as its label. Synchronises the workgroup; others see the labels
    /// after a grid barrier.
    pub fn finish(self, k: &Kernel, team: Team) {
        team.for_each(k, self.labels.len(), |node| {
            let at = k.var("at", node);
            k.for_named("step", 0, u32::MAX, |_| {
                let parent = self.labels.atomic_load(at.get());
                k.if_(parent.eq(at.get()), || k.break_());
                at.set(parent);
            });
            self.labels.atomic_store(node, at.get());
        });
    }

    /// The components of a graph. Synchronises the grid.
    pub fn of_graph<B: access::Load>(self, k: &Kernel, team: Team, graph: Graph<B>) {
        let graph = graph.within(self.labels.len());
        self.of(k, team, graph.nodes(), |node| {
            graph.each_target(k, node, |target| self.link(k, node, target));
        });
    }

    /// The components that edges make, of which there are `count`. `edge(i)` gives both ends of one. Synchronises the grid;
    /// `count` is uniform for the workgroup.
    pub fn of_edges(
        self,
        k: &Kernel,
        team: Team,
        count: Value<u32>,
        edge: impl FnOnce(Value<u32>) -> [Value<u32>; 2],
    ) {
        self.of(k, team, count, |i| {
            let [a, b] = edge(i);
            self.link(k, a, b);
        });
    }

    fn of(self, k: &Kernel, team: Team, count: Value<u32>, link: impl FnOnce(Value<u32>)) {
        k.region("vyre_primitives::components", || {
            self.start(k, team);
            k.barrier(Scope::Grid);
            team.for_each(k, count, link);
            k.barrier(Scope::Grid);
            self.finish(k, team);
            k.barrier(Scope::Grid);
        });
    }
}

/// The program: the components of a graph. It has no parameters that could make it fail.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `offsets` | `read` | `u32` | nodes + 1 | where each node's targets begin, see [`graph`](crate::graph) |
/// | `targets` | `read` | `u32` | edges | the targets; an edge may stand in one direction or in both |
/// | `labels` | `output` | `u32` | nodes | the smallest node of each node's component |
///
/// Any grid will do; without one there is a workgroup for each 256 nodes.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_primitives::{Lanes, components, graph};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (offsets, targets) = graph::from_edges(5, &[(4, 1), (3, 0)]);
/// let backend = vyre_driver::acquire("cpu")?;
/// let offsets = backend.device_buffer_from(&offsets)?;
/// let targets = backend.device_buffer_from(&targets)?;
/// let labels = backend.device_buffer::<u32>(5)?;
/// let program = components::program(Lanes::default());
/// backend.dispatch_with_device_buffers(&program, &[&offsets, &targets, &labels], &DispatchConfig::new())?;
/// assert_eq!(labels.download()?, [0, 1, 2, 0, 1]);
/// # Ok(())
/// # }
/// ```
pub fn program(lanes: Lanes) -> Program {
    crate::program("components", |k| {
        let team = Team::new(k, lanes);
        let graph = Graph::new(k.read::<u32>("offsets"), k.read::<u32>("targets"));
        Components::new(k.output::<u32>("labels")).of_graph(k, team, graph);
    })
}

/// The program: the components of a list of edges. It has no parameters that could make it fail.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `ends` | `read` | `u32` | edges | one end of each edge |
/// | `other_ends` | `read` | `u32` | edges | the other end |
/// | `labels` | `output` | `u32` | nodes | the smallest node of each node's component |
///
/// Any grid will do; without one there is a workgroup for each 256 nodes.
pub fn edges_program(lanes: Lanes) -> Program {
    crate::program("components_of_edges", |k| {
        let team = Team::new(k, lanes);
        let (from, to) = (k.read::<u32>("ends"), k.read::<u32>("other_ends"));
        let labels = Components::new(k.output::<u32>("labels"));
        labels.of_edges(k, team, from.len(), |i| [from.load(i), to.load(i)]);
    })
}

/// The oracle of [`program`].
pub fn oracle(offsets: &[u32], targets: &[u32]) -> Vec<u32> {
    let nodes = offsets.len().saturating_sub(1) as u32;
    let edges = (0..nodes).flat_map(|from| targets_of(offsets, targets, from).map(move |to| (from, to)));
    edges_oracle(nodes, &edges.collect::<Vec<_>>())
}

/// The oracle of [`edges_program`].
pub fn edges_oracle(nodes: u32, edges: &[(u32, u32)]) -> Vec<u32> {
    let mut labels: Vec<u32> = (0..nodes).collect();
    let root = |labels: &[u32], mut node: u32| {
        while labels[node as usize] != node {
            node = labels[node as usize];
        }
        node
    };
    for (a, b) in edges.iter().filter(|(a, b)| a.max(b) < &nodes) {
        let (a, b) = (root(&labels, *a), root(&labels, *b));
        labels[a.max(b) as usize] = a.min(b);
    }
    (0..nodes).map(|node| root(&labels, node)).collect()
}
