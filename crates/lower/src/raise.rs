//! From a kernel back to a program that a person can read.
//!
//! Rows that are used once stand where they are used, unless that is in a loop that they do not need to be in; others
//! get a `let` at their home. Parameters of loops and
//! results of branches are variables. `lower(raise(k))` is `k`.

use crate::counter::Counter;
use crate::homes::Homes;
use crate::kernel::{Id, Item, ItemId, Kernel, Origin, RegionId, Value, ValueId};
use crate::lower::roomy;
use rustc_hash::FxHashMap;
use vyre_foundation::{
    AtomicOp, Expr, Literal, MemoryOrdering, Name, Node, Operand, Program, Scope, Type, UnOp,
};

/// Expressions deeper than this are broken up by `let`s.
const DEPTH: u32 = 64;

/// The program that a kernel stands for.
pub fn raise(kernel: &Kernel) -> Program {
    let homes = Homes::of(kernel);
    let mut by_home: Vec<Vec<ValueId>> = vec![Vec::new(); kernel.regions.start.len()];
    let mut results = FxHashMap::default();
    for id in (0..kernel.values.len() as u32).map(ValueId) {
        by_home[homes.region[id.index()].index()].push(id);
        if let Value::Out { item, index, ty } = kernel.value(id) {
            results.insert((item, index), ty);
        }
    }
    for rows in &mut by_home {
        rows.sort_by_key(|id| (homes.before[id.index()], *id));
    }
    let mut raising = Raising {
        kernel,
        homes,
        by_home,
        results,
        prefix: prefix(kernel),
        depth: vec![0; kernel.values.len()],
        context: 0,
    };
    for item in (0..kernel.items.len() as u32).map(ItemId) {
        raising.spare_counter(item);
    }
    let entry = raising.region(Kernel::ENTRY);
    Program::new(kernel.buffers.clone(), kernel.workgroup_size, entry)
        .with_name(kernel.name.clone())
        .with_subgroup_size(kernel.subgroup_size)
}

/// A beginning of names that no buffer has.
fn prefix(kernel: &Kernel) -> String {
    let mut prefix = String::new();
    while kernel.buffers.iter().any(|buffer| {
        buffer.name().starts_with(&format!("{prefix}v"))
            || buffer.name().starts_with(&format!("{prefix}p"))
            || buffer.name().starts_with(&format!("{prefix}m"))
    }) {
        prefix.push('_');
    }
    prefix
}

struct Raising<'k> {
    kernel: &'k Kernel,
    homes: Homes,
    /// The rows of each region, by the position before which they are computed.
    by_home: Vec<Vec<ValueId>>,
    /// The results of items that something uses, with their types.
    results: FxHashMap<(ItemId, u32), Type>,
    prefix: String,
    /// The depth of the expression that stands for each row so far.
    depth: Vec<u32>,
    /// The origin of the control item that is being raised.
    context: u32,
}

impl Raising<'_> {
    fn name(&self, letter: char, item: ItemId, index: u32) -> Name {
        format!("{}_{index}", self.name_of(letter, item)).into()
    }

    /// A name of an item that has but one of its kind.
    fn name_of(&self, letter: char, item: ItemId) -> Name {
        format!("{}{letter}{}", self.prefix, item.index()).into()
    }

    fn value_name(&self, value: ValueId) -> Name {
        match self.kernel.value(value) {
            Value::Param { item, index, .. } => self.name('p', item, index),
            Value::Out { item, index, .. } => match self.kernel.item(item) {
                Item::Loop { .. } => self.name('p', item, index),
                _ => self.name('m', item, index),
            },
            _ => format!("{}v{}", self.prefix, value.index()).into(),
        }
    }

    /// A `for` does its own counting: what the kernel computes for it is not needed, unless something else does.
    fn spare_counter(&mut self, id: ItemId) {
        let Some(counted) = self.counted(id) else { return };
        let Item::Loop { guard, next, again, .. } = self.kernel.item(id) else { return };
        let mut pending = vec![guard, next[counted.index], again];
        // A row that is no longer used uses nothing; the end is used by the `for`, what must hold besides by the `break`.
        self.homes.uses[counted.end.index()] += 1;
        if let Some(extra) = counted.besides {
            self.homes.uses[extra.index()] += 1;
        }
        while let Some(value) = pending.pop() {
            let uses = &mut self.homes.uses[value.index()];
            *uses -= 1;
            if *uses == 0 {
                pending.extend(self.kernel.value(value).operands());
            }
        }
    }

    /// Whether the row is written where it is used.
    fn is_inline(&self, id: ValueId) -> bool {
        let leaf = self.kernel.value(id).operands().next().is_none();
        let once = self.homes.uses[id.index()] <= 1 && !self.homes.leaves_loop[id.index()];
        leaf || once && self.depth[id.index()] < DEPTH
    }

    fn use_value(&self, id: ValueId) -> Expr {
        match self.kernel.value(id) {
            Value::Param { .. } | Value::Out { .. } => Expr::Var(self.value_name(id)),
            _ if self.is_inline(id) => self.define(id),
            _ => Expr::Var(self.value_name(id)),
        }
    }

    fn buffer(&self, number: u32) -> Name {
        self.kernel.buffers[number as usize].name().clone()
    }

    /// The expression of a row. Inline operands are at most [`DEPTH`] deep, so recursion is bounded.
    fn define(&self, id: ValueId) -> Expr {
        let operand = |value: ValueId| Operand::from(self.use_value(value));
        match self.kernel.value(id) {
            Value::Const(literal) => Expr::Literal(literal),
            Value::Id(Id::Invocation, axis) => Expr::InvocationId { axis },
            Value::Id(Id::Workgroup, axis) => Expr::WorkgroupId { axis },
            Value::Id(Id::Local, axis) => Expr::LocalId { axis },
            Value::Id(Id::NumWorkgroups, axis) => Expr::NumWorkgroups { axis },
            Value::SubgroupLane => Expr::SubgroupLocalId,
            Value::Len(buffer) => Expr::BufLen { buffer: self.buffer(buffer) },
            Value::Load { buffer, index, .. } => {
                Expr::Load { buffer: self.buffer(buffer), index: operand(index) }
            }
            Value::Binary { op, a, b, .. } => Expr::BinOp { op, left: operand(a), right: operand(b) },
            Value::Unary { op, a, .. } => Expr::UnOp { op, operand: operand(a) },
            Value::Select { cond, a, b, .. } => {
                Expr::Select { cond: operand(cond), if_true: operand(a), if_false: operand(b) }
            }
            Value::Cast { to, a, .. } => Expr::Cast { to, value: operand(a) },
            Value::Bitcast { to, a, .. } => Expr::Bitcast { to, value: operand(a) },
            Value::Fma { a, b, c } => Expr::Fma { a: operand(a), b: operand(b), c: operand(c) },
            Value::Param { .. } | Value::Out { .. } => Expr::Var(self.value_name(id)),
        }
    }

    /// Opens the rows that are computed before the item at `position`.
    fn rows(&mut self, region: RegionId, position: u32, next: &mut usize, nodes: &mut Vec<Node>) {
        while let Some(&id) = self.by_home[region.index()].get(*next) {
            if self.homes.before[id.index()] > position {
                return;
            }
            *next += 1;
            let value = self.kernel.value(id);
            let unused = self.homes.uses[id.index()] == 0;
            if unused || matches!(value, Value::Param { .. } | Value::Out { .. }) {
                continue;
            }
            let inline_depth = |operand: ValueId| {
                let row = self.kernel.value(operand);
                let named = matches!(row, Value::Param { .. } | Value::Out { .. });
                if named || !self.is_inline(operand) { 1 } else { self.depth[operand.index()] }
            };
            self.depth[id.index()] = 1 + value.operands().map(inline_depth).max().unwrap_or(0);
            if !self.is_inline(id) {
                let expr = self.define(id);
                nodes.push(Node::Let { name: self.value_name(id), value: expr });
            }
        }
    }

    fn region(&mut self, region: RegionId) -> Vec<Node> {
        roomy(|| self.region_nodes(region))
    }

    /// The statements of a region, with what its end needs.
    fn region_nodes(&mut self, region: RegionId) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut next = 0;
        let items: Vec<ItemId> = self.kernel.region(region).collect();
        for (position, item) in (0..).zip(&items) {
            self.rows(region, position, &mut next, &mut nodes);
            self.item(*item, &mut nodes);
        }
        self.rows(region, items.len() as u32, &mut next, &mut nodes);
        nodes
    }

    fn item(&mut self, id: ItemId, nodes: &mut Vec<Node>) {
        let origin = self.kernel.items.origin[id.index()];
        match self.kernel.item(id) {
            Item::If { cond, then, otherwise, yields } => {
                let cond = self.use_value(cond);
                for (k, (a, _)) in (0..).zip(&yields) {
                    let zero = Literal::from_bits(self.kernel.value(*a).ty(), 0);
                    nodes.push(Node::Let { name: self.name('m', id, k), value: Expr::Literal(zero) });
                }
                let outer = std::mem::replace(&mut self.context, origin);
                let mut then = self.region(then);
                let mut otherwise = self.region(otherwise);
                self.context = outer;
                for (k, (a, b)) in (0..).zip(yields) {
                    let name = self.name('m', id, k);
                    then.push(Node::Assign { name: name.clone(), value: self.use_value(a) });
                    otherwise.push(Node::Assign { name, value: self.use_value(b) });
                }
                let node = Node::If { cond, then: then.into(), otherwise: otherwise.into() };
                self.push(node, origin, nodes);
            }
            Item::Loop { .. } => self.loop_item(id, origin, nodes),
            item => self.effect(id, item, origin, nodes),
        }
    }

    /// Puts a statement into the regions of the program that it came from.
    fn push(&self, node: Node, origin: u32, nodes: &mut Vec<Node>) {
        let mut node = node;
        let mut origin = origin;
        while origin > 0 && origin != self.context {
            let Origin { generator, source, parent } = self.kernel.origins[origin as usize - 1].clone();
            node = Node::Region { generator, source_region: source, body: [node].into() };
            origin = parent;
        }
        nodes.push(node);
    }

    fn effect(&mut self, id: ItemId, item: Item, origin: u32, nodes: &mut Vec<Node>) {
        let operand = |value: ValueId| Operand::from(self.use_value(value));
        let expr = match item {
            Item::Store { buffer, index, value } => {
                let node = Node::Store {
                    buffer: self.buffer(buffer),
                    index: self.use_value(index),
                    value: self.use_value(value),
                };
                return self.push(node, origin, nodes);
            }
            Item::Trap { tag, value } => {
                let tag = self.kernel.tags[tag as usize].clone();
                return self.push(Node::Trap { tag, value: self.use_value(value) }, origin, nodes);
            }
            Item::Barrier { scope } => {
                let ordering = match scope {
                    Scope::Grid => MemoryOrdering::GridSync,
                    Scope::Workgroup => MemoryOrdering::SeqCst,
                };
                return self.push(Node::Barrier { ordering }, origin, nodes);
            }
            Item::Load { buffer, index, .. } => {
                Expr::Load { buffer: self.buffer(buffer), index: operand(index) }
            }
            Item::Atomic { op, ordering, buffer, index, expected, value } => Expr::Atomic {
                op,
                buffer: self.buffer(buffer),
                index: operand(index),
                expected: expected.map(operand),
                value: value.map(operand),
                ordering,
            },
            Item::UniformLoad { scope, buffer, index } => {
                Expr::UniformLoad { scope, buffer: self.buffer(buffer), index: operand(index) }
            }
            Item::Ballot { cond } => Expr::SubgroupBallot { cond: operand(cond) },
            Item::Shuffle { value, lane } => {
                Expr::SubgroupShuffle { value: operand(value), lane: operand(lane) }
            }
            Item::Reduce { op, value } => Expr::SubgroupReduce { op, value: operand(value) },
            Item::If { .. } | Item::Loop { .. } => unreachable!("control is not an effect"),
        };
        self.result(id, expr, origin, nodes);
    }

    /// Names the result of an effect, if something uses it.
    fn result(&self, id: ItemId, expr: Expr, origin: u32, nodes: &mut Vec<Node>) {
        let Some(ty) = self.result_type(id) else {
            return self.push(Node::Eval { expr }, origin, nodes);
        };
        let name = self.name('m', id, 0);
        if origin == self.context {
            return nodes.push(Node::Let { name, value: expr });
        }
        // A region is a scope: the name is opened outside it.
        let zero = Expr::Literal(Literal::from_bits(ty, 0));
        nodes.push(Node::Let { name: name.clone(), value: zero });
        self.push(Node::Assign { name, value: expr }, origin, nodes);
    }

    /// The type of an effect's result; `None` where nothing uses it.
    fn result_type(&self, id: ItemId) -> Option<Type> {
        if matches!(self.kernel.item(id), Item::Atomic { op: AtomicOp::Store, .. }) {
            return None;
        }
        self.results.get(&(id, 0)).copied()
    }

    fn loop_item(&mut self, id: ItemId, origin: u32, nodes: &mut Vec<Node>) {
        let Item::Loop { guard, first, body, next, again } = self.kernel.item(id) else {
            unreachable!("called for loops only");
        };
        let counted = self.counted(id);
        let counter = counted.as_ref().map(|counted| counted.index as u32);
        for (k, value) in (0..).zip(&first) {
            if counter != Some(k) {
                let value = self.use_value(*value);
                nodes.push(Node::Let { name: self.name('p', id, k), value });
            }
        }
        let outer = std::mem::replace(&mut self.context, origin);
        let mut inside = self.region(body);
        self.context = outer;
        let extra = match &counted {
            Some(counted) => counted.besides,
            None => Some(again),
        };
        // All next values are computed before any parameter changes.
        let goes_on = self.name_of('m', id);
        if let Some(extra) = extra {
            inside.push(Node::Let { name: goes_on.clone(), value: self.use_value(extra) });
        }
        let changing: Vec<u32> = (0..next.len() as u32).filter(|k| counter != Some(*k)).collect();
        for k in &changing {
            let value = self.use_value(next[*k as usize]);
            inside.push(Node::Let { name: self.name('m', id, *k), value });
        }
        for k in &changing {
            let value = Expr::Var(self.name('m', id, *k));
            inside.push(Node::Assign { name: self.name('p', id, *k), value });
        }
        if extra.is_some() {
            let leave = Expr::unary(UnOp::Not, Expr::Var(goes_on));
            inside.push(Node::if_then(leave, [Node::Break]));
        }
        let node = match counted {
            Some(Counter { index, from, end, .. }) => Node::Loop {
                var: self.name('p', id, index as u32),
                from: self.use_value(from),
                to: self.use_value(end),
                body: inside.into(),
            },
            None => {
                let var = self.name_of('p', id);
                let body = Node::loop_for(var, Expr::u32(0), Expr::u32(u32::MAX), inside);
                Node::if_then(self.use_value(guard), [body])
            }
        };
        self.push(node, origin, nodes);
    }

    /// The loop as a count, if it is one and nothing needs the number afterwards.
    fn counted(&self, id: ItemId) -> Option<Counter> {
        let counter = self.kernel.counter(id)?;
        (!self.results.contains_key(&(id, counter.index as u32))).then_some(counter)
    }
}
