//! Graphs as *compressed sparse rows*, on the device and on the host.
//!
//! The edges of a graph of `n` nodes are one list of targets, sorted by where they come from. `offsets`, of length
//! `n + 1`, says where in the list the edges of each node begin and end.

use vyre_foundation::build::prelude::*;

/// A graph in buffers of the program that is being built.
///
/// A target that is no node is no edge.
///
/// ```
/// use vyre_foundation::build::prelude::*;
/// use vyre_primitives::{Graph, Lanes, Team};
///
/// // How many edges come in at each node.
/// vyre_foundation::build::program("incoming", |k| {
///     let team = Team::new(k, Lanes::default());
///     let graph = Graph::new(k.read::<u32>("offsets"), k.read::<u32>("targets"));
///     let incoming = k.output::<u32>("incoming");
///     team.for_each(k, graph.nodes(), |node| {
///         graph.each_target(k, node, |target| {
///             incoming.atomic_add(target, 1);
///         });
///     });
/// })?;
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Graph<A: access::Load> {
    offsets: Buffer<u32, A>,
    targets: Buffer<u32, A>,
    nodes: Value<u32>,
    edges: Value<u32>,
}

impl<A: access::Load> Graph<A> {
    /// The graph in these buffers.
    pub fn new(offsets: Buffer<u32, A>, targets: Buffer<u32, A>) -> Graph<A> {
        Graph { offsets, targets, nodes: offsets.len().sat_sub(1), edges: targets.len() }
    }

    /// The part of the graph that has its first `nodes` nodes only.
    #[must_use]
    pub fn within(self, nodes: Value<u32>) -> Graph<A> {
        Graph { nodes: self.nodes.min(nodes), ..self }
    }

    /// How many nodes it has.
    pub fn nodes(self) -> Value<u32> {
        self.nodes
    }

    /// How many edges it has at most.
    pub fn edges(self) -> Value<u32> {
        self.edges
    }

    /// How many edges go out from a node, also those to what is no node.
    pub fn degree(self, node: Value<u32>) -> Value<u32> {
        self.offsets.load(node + 1) - self.offsets.load(node)
    }

    /// Runs `body` for each target of a node, in order, in a loop: a `break_` in it ends that.
    pub fn each_target(self, k: &Kernel, node: Value<u32>, body: impl FnOnce(Value<u32>)) {
        k.for_named("edge", self.offsets.load(node), self.offsets.load(node + 1), |edge| {
            let target = self.targets.load(edge);
            k.if_(target.lt(self.nodes), || body(target));
        });
    }
}

/// The offsets and targets of a graph with these edges; the targets of each node are in the order of `edges`. Edges from
/// what is no node are left out.
///
/// ```
/// use vyre_primitives::graph;
/// let (offsets, targets) = graph::from_edges(3, &[(2, 0), (0, 1), (0, 2)]);
/// assert_eq!((&offsets[..], &targets[..]), (&[0, 2, 2, 3][..], &[1, 2, 0][..]));
/// ```
pub fn from_edges(nodes: u32, edges: &[(u32, u32)]) -> (Vec<u32>, Vec<u32>) {
    let edges = || edges.iter().filter(|(from, _)| *from < nodes);
    let mut offsets = vec![0u32; nodes as usize + 1];
    edges().for_each(|(from, _)| offsets[*from as usize + 1] += 1);
    for node in 0..nodes as usize {
        offsets[node + 1] += offsets[node];
    }
    let mut next = offsets.clone();
    let mut targets = vec![0; edges().count()];
    for (from, to) in edges() {
        let at = &mut next[*from as usize];
        targets[*at as usize] = *to;
        *at += 1;
    }
    (offsets, targets)
}

/// The same graph with every edge the other way round. Targets that are no nodes are left out.
pub fn reversed(offsets: &[u32], targets: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let nodes = offsets.len().saturating_sub(1) as u32;
    let edges = (0..nodes).flat_map(|from| targets_of(offsets, targets, from).map(move |to| (to, from)));
    from_edges(nodes, &edges.collect::<Vec<_>>())
}

/// The targets of a node that are nodes.
pub(crate) fn targets_of<'a>(
    offsets: &[u32],
    targets: &'a [u32],
    node: u32,
) -> impl Iterator<Item = u32> + use<'a> {
    let nodes = offsets.len().saturating_sub(1) as u32;
    let (from, to) = (offsets[node as usize] as usize, offsets[node as usize + 1] as usize);
    targets[from..to].iter().copied().filter(move |target| *target < nodes)
}
