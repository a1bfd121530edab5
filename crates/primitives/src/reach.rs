//! Reachability from many sources at once: 32 sources to a word, a bit for each.
//!
//! Each node has `words` words. A node that has gained bits is visited in the next round and passes on those that it has
//! not passed on before, one word at a time, so a visit costs its edges once for each word that has changed. Bits only
//! ever come, and who adds the last one sees to another visit: the result does not depend on any order.

use crate::frontier::{Frontier, Round};
use crate::graph::{Graph, targets_of};
use crate::team::{Lanes, Team, divide_up};
use vyre_foundation::build::prelude::*;

/// The fragment: the memory besides the result.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    team: Team,
    frontier: Frontier,
    /// The bits that each node has passed on.
    passed: Buffer<u32, access::Scratch>,
    /// For each node the number of the round that pushes it, so that it is pushed once.
    stamp: Buffer<u32, access::Scratch>,
}

/// A graph, and which bits its nodes have.
#[derive(Clone, Copy)]
struct Bits<A: access::Load, B: access::Access> {
    graph: Graph<A>,
    words: Value<u32>,
    reached: Buffer<u32, B>,
}

impl Reach {
    /// Declares the memory: that of a [`Frontier`], `{name}_passed` and `{name}_stamp` (scratch), whose lengths are open:
    /// that of the result, and one for each node. It starts as zeros and is not cleared, so it serves for one traversal.
    pub fn new(k: &Kernel, team: Team, name: &str) -> Reach {
        Reach {
            team,
            frontier: Frontier::new(k, team, name),
            passed: k.scratch(format!("{name}_passed")),
            stamp: k.scratch(format!("{name}_stamp")),
        }
    }

    /// Runs `body` if there is memory for a graph of `n` nodes and `bits` words of result, see [`Frontier::require`].
    pub fn require(self, k: &Kernel, n: Value<u32>, bits: Value<u32>, body: impl FnOnce()) {
        self.frontier.require(k, n, || {
            k.if_(self.stamp.len().lt(n), || k.trap("there are too few stamps", n))
                .else_if(|| self.passed.len().lt(bits), || k.trap("too little can be passed on", bits))
                .else_(body);
        });
    }

    /// Sets bit `i % 32` of `reached[node * words + i / 32]` for each node that source number `i` reaches, itself
    /// included. Synchronises the grid.
    ///
    /// `words` is how many words a node has, at least one for each 32 sources; `count` and `words` are uniform for the
    /// workgroup. Bits that are set before stay set, but are not passed on. A source that is no node reaches nothing.
    pub fn run<A, B>(
        self,
        k: &Kernel,
        graph: Graph<A>,
        count: Value<u32>,
        sources: impl FnOnce(Value<u32>) -> Value<u32>,
        words: Value<u32>,
        reached: Buffer<u32, B>,
    ) where
        A: access::Load,
        B: access::Atomic + access::Shared,
    {
        let bits = Bits { graph, words, reached };
        self.frontier.run(
            k,
            |round| {
                self.team.for_each(k, count, |i| {
                    let source = sources(i);
                    k.if_(source.lt(graph.nodes()), || {
                        reached.atomic_or(source * words + i / 32, Value::from(1) << (i % 32));
                        self.push(k, round, source, 1.into());
                    });
                });
            },
            |round, node| self.visit(k, bits, round, node),
        );
    }

    /// Passes on what a node has gained.
    fn visit<A, B>(self, k: &Kernel, bits: Bits<A, B>, round: Round, node: Value<u32>)
    where
        A: access::Load,
        B: access::Atomic + access::Shared,
    {
        let Bits { graph, words, reached } = bits;
        k.for_named("word", 0, words, |word| {
            let at = node * words + word;
            let passed = self.passed.load(at);
            let fresh = reached.atomic_load(at) & !passed;
            k.if_(fresh.ne(0), || {
                self.passed.store(at, passed | fresh);
                graph.each_target(k, node, |target| {
                    let at = target * words + word;
                    let missing = |there: Value<u32>| (fresh & !there).ne(0);
                    k.if_(missing(reached.atomic_load(at)), || {
                        let gained = missing(reached.atomic_or(at, fresh));
                        // What seeds and earlier rounds have stamped is less.
                        k.if_(gained, || self.push(k, round, target, round.number() + 2));
                    });
                });
            });
        });
    }

    /// Pushes a node unless it has this stamp already.
    fn push(self, k: &Kernel, round: Round, node: Value<u32>, stamp: Value<u32>) {
        k.if_(self.stamp.atomic_load(node).ne(stamp), || {
            k.if_(self.stamp.atomic_exchange(node, stamp).ne(stamp), || round.push(k, node));
        });
    }
}

/// The program: which nodes each source reaches. It has no parameters that could make it fail.
///
/// | buffer | access | element | length | |
/// |---|---|---|---|---|
/// | `offsets` | `read` | `u32` | nodes + 1 | where each node's targets begin, see [`graph`](crate::graph) |
/// | `targets` | `read` | `u32` | edges | the targets |
/// | `sources` | `read` | `u32` | any | the sources; also several times the same |
/// | `reached` | `output` | `u32` | nodes · words | bit `i % 32` of word `i / 32` of a node: whether source `i` reaches it |
/// | `reach_queue` | `scratch` | `u32` | 2 · nodes | |
/// | `reach_passed` | `scratch` | `u32` | nodes · words | |
/// | `reach_stamp` | `scratch` | `u32` | nodes | |
///
/// There are `words` = sources / 32, rounded up, for each node. It traps where `scratch` memory is too short. Any grid
/// will do; without one there is a workgroup for each 256 words of the result.
///
/// ```
/// use vyre_driver::{BackendExt, DispatchConfig};
/// use vyre_primitives::{Lanes, graph, reach};
/// # use vyre_driver_cpu as _;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (offsets, targets) = graph::from_edges(4, &[(0, 1), (1, 2), (3, 2)]);
/// let backend = vyre_driver::acquire("cpu")?;
/// let offsets = backend.device_buffer_from(&offsets)?;
/// let targets = backend.device_buffer_from(&targets)?;
/// let sources = backend.device_buffer_from(&[0u32, 3])?;
/// let reached = backend.device_buffer::<u32>(4)?;
/// let buffers: [&dyn vyre_driver::DeviceMemory; 4] = [&offsets, &targets, &sources, &reached];
/// let config = DispatchConfig::new();
/// let config = config.output_len("reach_queue", 8).output_len("reach_passed", 4).output_len("reach_stamp", 4);
/// backend.dispatch_with_device_buffers(&reach::program(Lanes::default()), &buffers, &config)?;
/// assert_eq!(reached.download()?, [0b01, 0b01, 0b11, 0b10]);
/// # Ok(())
/// # }
/// ```
pub fn program(lanes: Lanes) -> Program {
    crate::program("reach", |k| {
        let team = Team::new(k, lanes);
        let graph = Graph::new(k.read::<u32>("offsets"), k.read::<u32>("targets"));
        let sources = k.read::<u32>("sources");
        let reached = k.output::<u32>("reached");
        let words = divide_up(sources.len(), 32);
        let graph = graph.within(reached.len() / words);
        let reach = Reach::new(k, team, "reach");
        reach.require(k, graph.nodes(), graph.nodes() * words, || {
            reach.run(k, graph, sources.len(), |i| sources.load(i), words, reached);
        });
    })
}

/// The oracle: the words of all nodes.
pub fn oracle(offsets: &[u32], targets: &[u32], sources: &[u32]) -> Vec<u32> {
    let (nodes, words) = (offsets.len().saturating_sub(1), sources.len().div_ceil(32));
    let mut reached = vec![0; nodes * words];
    for (i, source) in sources.iter().enumerate() {
        let (word, bit) = (i / 32, 1 << (i % 32));
        let mut pending = vec![*source];
        while let Some(node) = pending.pop() {
            let Some(there) = reached.get_mut(node as usize * words + word) else { continue };
            if *there & bit == 0 {
                *there |= bit;
                pending.extend(targets_of(offsets, targets, node));
            }
        }
    }
    reached
}
