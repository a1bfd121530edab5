//! From a validated program to a kernel.
//!
//! Names become values, functions are inlined, and `return`, `break` and `continue` become conditions:
//! - `live` says whether an invocation still runs. After a statement that may end it, effects stand in an `If`
//!   on `live`. Where no barrier, uniform load or subgroup operation can follow any more, one `If` holds all the
//!   rest. Uniform control is entered by ended invocations too, so that they compute what it decides on.
//! - in a loop, `skip` says whether the rest of the body is left out, and `broke` whether the loop ends. After a
//!   statement that may jump, the rest of the body stands in an `If` on `!skip`.
//!
//! Recursion grows its stack on the heap: `else if` chains and sequences of jumps nest as deep as they are long.

use crate::build::Builder;
use crate::kernel::{Item, ItemId, Origin, RegionId, Value, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use vyre_foundation::validate::{self, Level};
use vyre_foundation::{
    BinOp, Body, Event, Expr, Literal, MemoryOrdering, Name, Node, Program, Scope, Type, Walk,
};

/// A variable of the program, or one that lowering adds.
type Variable = usize;

/// Whether an invocation still runs.
const LIVE: Variable = 0;

/// The loop that is being lowered.
struct OpenLoop {
    skip: Variable,
    broke: Variable,
}

pub(crate) struct Lowering<'p> {
    pub(crate) program: &'p Program,
    pub(crate) builder: Builder,
    levels: FxHashMap<usize, Level>,
    buffers: FxHashMap<&'p str, u32>,
    functions: FxHashMap<&'p str, usize>,
    /// The buffers that something is written to.
    written: Vec<bool>,
    /// What each variable holds.
    values: Vec<ValueId>,
    names: FxHashMap<&'p str, Variable>,
    /// What each change replaced, for undoing at the end of a branch.
    log: Vec<(Variable, ValueId)>,
    loops: Vec<OpenLoop>,
    region: RegionId,
    /// The conditions that hold in this region.
    known: Vec<ValueId>,
    /// Whether something that ended invocations must reach can follow the body that is being lowered.
    later: bool,
    /// Whether effects in expressions are guarded one by one.
    guard_each: bool,
    /// The uniform load of this statement.
    uniform: Option<ValueId>,
    /// The memory version of each buffer, and the next new one.
    versions: Vec<u32>,
    next_version: u32,
    pub(crate) tags: Vec<Name>,
    origin: u32,
    pub(crate) origins: Vec<Origin>,
    origin_numbers: FxHashMap<Origin, u32>,
    node: usize,
}

/// The buffers that some statement stores to, whether it is reached or not.
pub(crate) fn may_write(program: &Program) -> Vec<bool> {
    let mut written = vec![false; program.buffers().len()];
    let number = |name: &Name| program.buffers().iter().position(|buffer| buffer.name() == name);
    for event in Walk::new(program.entry()) {
        let Event::Node(node) = event else { continue };
        if let Node::Store { buffer, .. } = node
            && let Some(number) = number(buffer)
        {
            written[number] = true;
        }
        node.for_each_expr(&mut |expr| {
            let mut pending = vec![expr];
            while let Some(expr) = pending.pop() {
                if let Expr::Atomic { buffer, .. } = expr
                    && let Some(number) = number(buffer)
                {
                    written[number] = true;
                }
                expr.for_each_operand(&mut |operand| pending.push(operand));
            }
        });
    }
    written
}

/// Runs `body` with room on the stack.
pub(crate) fn roomy<R>(body: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(128 << 10, 4 << 20, body)
}

fn is_subgroup(expr: &Expr) -> bool {
    matches!(expr, Expr::SubgroupBallot { .. } | Expr::SubgroupShuffle { .. } | Expr::SubgroupReduce { .. })
}

/// Whether ended invocations must reach the expression.
fn expr_waits(expr: &Expr) -> bool {
    any(expr, &|e| is_subgroup(e) || matches!(e, Expr::UniformLoad { .. }))
}

fn any(root: &Expr, test: &dyn Fn(&Expr) -> bool) -> bool {
    let mut pending = vec![root];
    while let Some(expr) = pending.pop() {
        if test(expr) {
            return true;
        }
        expr.for_each_operand(&mut |operand| pending.push(operand));
    }
    false
}

fn node_waits(node: &Node) -> bool {
    let mut waits = matches!(node, Node::Barrier { .. });
    node.for_each_expr(&mut |expr| waits |= expr_waits(expr));
    waits
}

/// Whether ended invocations must reach something in these statements.
fn waits(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| {
        node_waits(node)
            || node.bodies().any(|body| {
                Walk::new(body).any(|event| matches!(event, Event::Node(node) if node_waits(node)))
            })
    })
}

impl<'p> Lowering<'p> {
    /// A lowering that takes these buffers to be written.
    pub(crate) fn new(program: &'p Program, written: Vec<bool>) -> Lowering<'p> {
        let mut builder = Builder::new();
        let live = builder.bool(true);
        let buffers: FxHashMap<&str, u32> =
            program.buffers().iter().zip(0..).map(|(b, i)| (b.name().as_str(), i)).collect();
        Lowering {
            program,
            builder,
            levels: validate::control_levels(program),
            versions: vec![0; buffers.len()],
            next_version: 1,
            buffers,
            functions: program.functions().iter().zip(0..).map(|(f, i)| (f.name.as_str(), i)).collect(),
            written,
            values: vec![live],
            names: FxHashMap::default(),
            log: Vec::new(),
            loops: Vec::new(),
            region: Builder::ROOT,
            known: Vec::new(),
            later: false,
            guard_each: false,
            uniform: None,
            tags: Vec::new(),
            origin: 0,
            origins: Vec::new(),
            origin_numbers: FxHashMap::default(),
            node: 0,
        }
    }

    pub(crate) fn entry(&mut self) {
        self.body(self.program.entry());
    }

    /// The buffers that something is stored to. Statements that are never reached have left no items.
    pub(crate) fn written(&self) -> Vec<bool> {
        let mut written = vec![false; self.written.len()];
        for item in &self.builder.items {
            if let Item::Store { buffer, .. } | Item::Atomic { buffer, .. } = item {
                written[*buffer as usize] = true;
            }
        }
        written
    }

    fn variable(&mut self, value: ValueId) -> Variable {
        self.values.push(value);
        self.values.len() - 1
    }

    fn set(&mut self, variable: Variable, value: ValueId) {
        let old = std::mem::replace(&mut self.values[variable], value);
        self.log.push((variable, old));
    }

    pub(crate) fn live(&self) -> ValueId {
        self.values[LIVE]
    }

    /// Whether every invocation that comes here still runs.
    fn is_live(&self) -> bool {
        self.builder.as_bool(self.live()) == Some(true) || self.known.contains(&self.live())
    }

    pub(crate) fn effect(&mut self, item: Item) -> ItemId {
        self.builder.item(self.region, item, self.origin)
    }

    /// The result of an effect.
    pub(crate) fn out(&mut self, item: ItemId, ty: Type) -> ValueId {
        self.builder.row(Value::Out { item, index: 0, ty }, self.region)
    }

    /// Memory may have changed: loads after it see another version.
    pub(crate) fn touch(&mut self, buffer: u32) {
        self.versions[buffer as usize] = self.next_version;
        self.next_version += 1;
    }

    fn touch_shared(&mut self) {
        for (i, buffer) in self.program.buffers().iter().enumerate() {
            if self.written[i] && buffer.access() != vyre_foundation::BufferAccess::Local {
                self.touch(i as u32);
            }
        }
    }

    // --- Names -----------------------------------------------------------------------------------------------

    pub(crate) fn variable_value(&self, name: &str) -> ValueId {
        self.values[self.names[name]]
    }

    pub(crate) fn buffer_number(&self, name: &str) -> u32 {
        self.buffers[name]
    }

    pub(crate) fn function_number(&self, name: &str) -> usize {
        self.functions[name]
    }

    pub(crate) fn element_type(&self, buffer: u32) -> Type {
        self.program.buffers()[buffer as usize].element().value_type()
    }

    pub(crate) fn is_written(&self, buffer: u32) -> bool {
        self.written[buffer as usize]
    }

    pub(crate) fn version(&self, buffer: u32) -> u32 {
        self.versions[buffer as usize]
    }

    /// The value of this statement's uniform load.
    pub(crate) fn hoisted(&mut self) -> ValueId {
        self.uniform.unwrap_or_else(|| self.builder.zero(Type::U32))
    }

    /// Hides the variables of the caller; gives them, for [`Lowering::leave_function`].
    pub(crate) fn enter_function(&mut self) -> (FxHashMap<&'p str, Variable>, usize) {
        (std::mem::take(&mut self.names), self.values.len())
    }

    pub(crate) fn leave_function(&mut self, (names, declared): (FxHashMap<&'p str, Variable>, usize)) {
        self.names = names;
        self.values.truncate(declared);
    }

    pub(crate) fn bind(&mut self, name: &'p str, value: ValueId) {
        let variable = self.variable(value);
        self.names.insert(name, variable);
    }

    /// The result of one effect, for the invocations that are live.
    pub(crate) fn guarded_out(&mut self, ty: Type, effect: impl FnOnce(&mut Self) -> ItemId) -> ValueId {
        let value = self.guard_effect(|this| {
            let item = effect(this);
            Some(this.out(item, ty))
        });
        value.unwrap_or_else(|| self.builder.zero(ty))
    }

    // --- Bodies and branches ---------------------------------------------------------------------------------

    fn body(&mut self, body: &'p Body) {
        let mut opened = Vec::new();
        roomy(|| self.statements(body, &mut opened));
        for name in opened {
            self.names.remove(name);
        }
    }

    fn statements(&mut self, nodes: &'p [Node], opened: &mut Vec<&'p str>) {
        for (i, node) in nodes.iter().enumerate() {
            let rest = &nodes[i + 1..];
            let later = self.later;
            // What follows this statement follows everything in it.
            if !later && node.bodies().next().is_some() {
                self.later = waits(rest);
            }
            self.statement(node, opened);
            self.later = later;
            if self.ended() {
                return self.skip_statements(rest);
            }
            if rest.is_empty() {
                continue;
            }
            let skip = self.loops.last().map(|open| open.skip);
            if let Some(skip) = skip.filter(|skip| self.builder.as_bool(self.values[*skip]) != Some(false)) {
                let go_on = self.builder.not(self.values[skip]);
                let no = self.builder.bool(false);
                return self.guarded(go_on, |this| {
                    this.set(skip, no);
                    roomy(|| this.statements(rest, opened));
                });
            }
            if !self.is_live() && !self.later && !waits(rest) {
                let live = self.live();
                return self.guarded(live, |this| {
                    this.revive();
                    roomy(|| this.statements(rest, opened));
                });
            }
        }
    }

    /// Inside an `If` on `live`, every invocation is.
    fn revive(&mut self) {
        let yes = self.builder.bool(true);
        self.set(LIVE, yes);
    }

    /// Whether no invocation reaches what follows in this body.
    fn ended(&self) -> bool {
        let skips =
            self.loops.last().is_some_and(|open| self.builder.as_bool(self.values[open.skip]) == Some(true));
        skips || self.builder.as_bool(self.live()) == Some(false)
    }

    /// Counts statements that are never reached.
    fn skip_statements(&mut self, nodes: &'p [Node]) {
        for node in nodes {
            self.node += 1;
            for body in node.bodies() {
                self.node += Walk::new(body).filter(|event| matches!(event, Event::Node(_))).count();
            }
        }
    }

    /// Runs `body` in a new region; gives the region and what it left in the variables it changed, undone here.
    fn branch(
        &mut self,
        cond: ValueId,
        body: impl FnOnce(&mut Self),
    ) -> (RegionId, FxHashMap<Variable, ValueId>) {
        let outer = self.region;
        self.known.push(cond);
        let (mark, declared) = (self.log.len(), self.values.len());
        self.region = self.builder.region(outer);
        body(self);
        self.known.pop();
        let region = std::mem::replace(&mut self.region, outer);
        let mut left = FxHashMap::default();
        while self.log.len() > mark {
            if let Some((variable, old)) = self.log.pop() {
                let now = std::mem::replace(&mut self.values[variable], old);
                if variable < declared {
                    left.entry(variable).or_insert(now);
                }
            }
        }
        // Variables that the branch opened are gone with it.
        self.values.truncate(declared);
        (region, left)
    }

    /// Runs `body` where `cond` holds.
    fn guarded(&mut self, cond: ValueId, body: impl FnOnce(&mut Self)) {
        if self.known.contains(&cond) {
            return body(self);
        }
        let before = self.versions.clone();
        let then = self.branch(cond, body);
        self.join(cond, then, None, None, before);
    }

    /// Runs `body` where `cond` holds, and gives its value; zero where it does not hold.
    fn guarded_value(
        &mut self,
        cond: ValueId,
        body: impl FnOnce(&mut Self) -> Option<ValueId>,
    ) -> Option<ValueId> {
        if self.known.contains(&cond) {
            return body(self);
        }
        let before = self.versions.clone();
        let mut value = None;
        let then = self.branch(cond, |this| value = body(this));
        self.join(cond, then, None, value, before)
    }

    /// Puts an `If` over two branches that have been lowered, and merges what they left.
    fn join(
        &mut self,
        cond: ValueId,
        (then, then_left): (RegionId, FxHashMap<Variable, ValueId>),
        otherwise: Option<(RegionId, FxHashMap<Variable, ValueId>)>,
        value: Option<ValueId>,
        before: Vec<u32>,
    ) -> Option<ValueId> {
        let (otherwise, else_left) = match otherwise {
            Some(branch) => branch,
            None => (self.builder.region(self.region), FxHashMap::default()),
        };
        let mut changed: Vec<Variable> = then_left.keys().chain(else_left.keys()).copied().collect();
        changed.sort_unstable();
        changed.dedup();
        let empty = [then, otherwise].iter().all(|r| self.builder.regions[r.index()].items.is_empty());
        let item = ItemId(self.builder.items.len() as u32);
        let mut yields = Vec::new();
        let ended = |left: &FxHashMap<Variable, ValueId>| {
            left.get(&LIVE).is_some_and(|live| self.builder.as_bool(*live) == Some(false))
        };
        let (then_ended, else_ended) = (ended(&then_left), ended(&else_left));
        for variable in changed {
            let old = self.values[variable];
            let mut a = then_left.get(&variable).copied().unwrap_or(old);
            let mut b = else_left.get(&variable).copied().unwrap_or(old);
            // A branch that ends every invocation contributes nothing: those that took it go on as if they had
            // taken the other one, so that they compute what uniform control decides on.
            if variable != LIVE && then_ended && self.builder.exists_in(b, self.region) {
                a = b;
            } else if variable != LIVE && else_ended && self.builder.exists_in(a, self.region) {
                b = a;
            }
            let merged = self.merge(cond, item, (a, b), &mut yields);
            self.set(variable, merged);
        }
        let value = value.map(|a| {
            let zero = self.builder.zero(self.builder.ty(a));
            self.merge(cond, item, (a, zero), &mut yields)
        });
        if !empty {
            let changed: Vec<u32> = (0..)
                .zip(self.versions.iter().zip(&before))
                .filter(|(_, (now, old))| now != old)
                .map(|(i, _)| i)
                .collect();
            changed.into_iter().for_each(|buffer| self.touch(buffer));
            self.effect(Item::If { cond, then, otherwise, yields });
        }
        value
    }

    /// The value after two branches that leave `a` and `b`.
    fn merge(
        &mut self,
        cond: ValueId,
        item: ItemId,
        (a, b): (ValueId, ValueId),
        yields: &mut Vec<(ValueId, ValueId)>,
    ) -> ValueId {
        if a == b {
            return a;
        }
        if [a, b].iter().all(|value| self.builder.exists_in(*value, self.region)) {
            return self.builder.select(cond, a, b);
        }
        let index = yields.len() as u32;
        yields.push((a, b));
        let ty = self.builder.ty(a);
        self.builder.row(Value::Out { item, index, ty }, self.region)
    }

    // --- Statements ------------------------------------------------------------------------------------------

    fn statement(&mut self, node: &'p Node, opened: &mut Vec<&'p str>) {
        let number = self.node;
        self.node += 1;
        match node {
            Node::Let { name, value } => {
                let value = self.value_of(node, value);
                let variable = self.variable(value);
                self.names.insert(name, variable);
                opened.push(name);
            }
            Node::Assign { name, value } => {
                let value = self.value_of(node, value);
                self.set(self.names[name.as_str()], value);
            }
            Node::Store { buffer, index, value } => {
                let buffer = self.buffers[buffer.as_str()];
                self.effectful(node, |this| {
                    let index = this.expr(index);
                    let value = this.expr(value);
                    this.guard_effect(|this| {
                        this.effect(Item::Store { buffer, index, value });
                        this.touch(buffer);
                        None
                    })
                });
            }
            Node::Eval { expr } => {
                self.effectful(node, |this| Some(this.expr(expr)));
            }
            Node::If { .. } | Node::Loop { .. } => {
                let divergent = self.levels.get(&number) == Some(&Level::Divergent);
                // What everyone must reach is computed before ended invocations are turned away.
                let ready = if node_waits(node) { Some(self.for_everyone(node)) } else { None };
                if divergent && !self.is_live() {
                    let live = self.live();
                    self.guarded(live, |this| {
                        this.revive();
                        this.control(node, ready, divergent);
                    });
                } else {
                    self.control(node, ready, divergent);
                }
            }
            Node::Break | Node::Continue => self.jump(matches!(node, Node::Break)),
            Node::Block { body } => self.body(body),
            Node::Region { generator, source_region, body } => {
                let outer = self.origin;
                let (generator, source) = (generator.clone(), source_region.clone());
                self.origin = self.intern_origin(Origin { generator, source, parent: outer });
                self.body(body);
                self.origin = outer;
            }
            Node::Barrier { ordering } => {
                let scope =
                    if *ordering == MemoryOrdering::GridSync { Scope::Grid } else { Scope::Workgroup };
                self.effect(Item::Barrier { scope });
                self.touch_shared();
            }
            Node::Return => self.end(),
            Node::Trap { tag, value } => {
                let number = self.tags.len() as u32;
                self.tags.push(tag.clone());
                self.effectful(node, |this| {
                    let value = this.expr(value);
                    this.guard_effect(|this| {
                        this.effect(Item::Trap { tag: number, value });
                        None
                    })
                });
                self.end();
            }
        }
        self.uniform = None;
    }

    /// The number of an origin; equal ones share it.
    fn intern_origin(&mut self, origin: Origin) -> u32 {
        let next = self.origins.len() as u32 + 1;
        let number = *self.origin_numbers.entry(origin.clone()).or_insert(next);
        if number == next {
            self.origins.push(origin);
        }
        number
    }

    /// The value of a statement's expression.
    fn value_of(&mut self, node: &'p Node, expr: &'p Expr) -> ValueId {
        let value = self.effectful(node, |this| Some(this.expr(expr)));
        value.unwrap_or_else(|| self.builder.zero(Type::U32))
    }

    fn end(&mut self) {
        let no = self.builder.bool(false);
        self.set(LIVE, no);
    }

    fn jump(&mut self, leaves: bool) {
        let yes = self.builder.bool(true);
        if let Some(OpenLoop { skip, broke }) = self.loops.last() {
            let (skip, broke) = (*skip, *broke);
            self.set(skip, yes);
            if leaves {
                self.set(broke, yes);
            }
        }
    }

    /// Lowers the uniform load of a statement before the rest of it.
    fn hoist(&mut self, node: &'p Node) {
        let mut found = None;
        let mut pending = Vec::new();
        node.for_each_expr(&mut |expr| pending.push(expr));
        while let Some(expr) = pending.pop() {
            if let Expr::UniformLoad { scope, buffer, index } = expr {
                found = Some((*scope, buffer, index));
                break;
            }
            expr.for_each_operand(&mut |operand| pending.push(operand));
        }
        let Some((scope, buffer, index)) = found else { return };
        let index = self.expr(index);
        let number = self.buffers[buffer.as_str()];
        let item = self.effect(Item::UniformLoad { scope, buffer: number, index });
        self.touch_shared();
        let ty = self.program.buffers()[number as usize].element().value_type();
        self.uniform = Some(self.out(item, ty));
    }

    /// Runs the effects of a statement for the invocations that are live, and gives its value.
    fn effectful(
        &mut self,
        node: &'p Node,
        body: impl FnOnce(&mut Self) -> Option<ValueId>,
    ) -> Option<ValueId> {
        self.hoist(node);
        let (mut effects, mut subgroups) = (matches!(node, Node::Store { .. } | Node::Trap { .. }), false);
        node.for_each_expr(&mut |expr| {
            subgroups |= any(expr, &is_subgroup);
            effects |= any(expr, &|e| match e {
                Expr::Atomic { .. } => true,
                Expr::Load { buffer, .. } => self.written[self.buffers[buffer.as_str()] as usize],
                _ => false,
            });
        });
        if self.is_live() || !effects && !subgroups {
            return body(self);
        }
        if subgroups {
            self.guard_each = true;
            let value = body(self);
            self.guard_each = false;
            return value;
        }
        let live = self.live();
        // Nothing in an expression ends an invocation, so `live` is what it was.
        self.guarded_value(live, body)
    }

    /// Runs one effect for the invocations that are live, where effects are guarded one by one.
    fn guard_effect(&mut self, body: impl FnOnce(&mut Self) -> Option<ValueId>) -> Option<ValueId> {
        if !self.guard_each {
            return body(self);
        }
        self.guard_each = false;
        let live = self.live();
        let value = self.guarded_value(live, body);
        self.guard_each = true;
        value
    }

    /// The expressions of a statement, evaluated by everyone; each effect in them by live invocations alone.
    fn for_everyone(&mut self, node: &'p Node) -> Vec<ValueId> {
        self.hoist(node);
        self.guard_each = !self.is_live();
        let values = self.exprs(node);
        self.guard_each = false;
        values
    }

    fn exprs(&mut self, node: &'p Node) -> Vec<ValueId> {
        let mut exprs = Vec::new();
        node.for_each_expr(&mut |expr| exprs.push(expr));
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    /// An `if` or a `for`, with its condition or bounds if they have been evaluated already.
    fn control(&mut self, node: &'p Node, ready: Option<Vec<ValueId>>, divergent: bool) {
        let values = ready.unwrap_or_else(|| self.exprs(node));
        self.uniform = None;
        match node {
            Node::If { then, otherwise, .. } => self.if_statement(values[0], then, otherwise),
            Node::Loop { var, body, .. } => self.for_loop(var, [values[0], values[1]], body, divergent),
            _ => unreachable!("called for control only"),
        }
    }

    /// Whether the statements only compute.
    fn is_pure(&self, nodes: &[Node]) -> bool {
        let has_effect = |e: &Expr| match e {
            Expr::Load { buffer, .. } => self.written[self.buffers[buffer.as_str()] as usize],
            Expr::Atomic { .. } | Expr::UniformLoad { .. } => true,
            _ => is_subgroup(e),
        };
        let computes = |node: &Node| {
            let mut pure = matches!(
                node,
                Node::Let { .. }
                    | Node::Assign { .. }
                    | Node::If { .. }
                    | Node::Block { .. }
                    | Node::Region { .. }
            );
            node.for_each_expr(&mut |expr| pure &= !any(expr, &has_effect));
            pure
        };
        let nested = |node: &Node| {
            node.bodies()
                .flat_map(Walk::new)
                .all(|event| !matches!(event, Event::Node(node) if !computes(node)))
        };
        nodes.iter().all(|node| computes(node) && nested(node))
    }

    fn if_statement(&mut self, cond: ValueId, then: &'p Body, otherwise: &'p Body) {
        let opposite = self.builder.not(cond);
        for (known, taken, passed) in [(cond, then, otherwise), (opposite, otherwise, then)] {
            // A condition that holds here already chooses a branch, if the other one has no effects to keep.
            let constant = self.builder.as_bool(cond).is_some();
            if !constant && self.known.contains(&known) && self.is_pure(passed) {
                if std::ptr::eq(passed, then) {
                    self.skip_statements(passed);
                }
                self.body(taken);
                if std::ptr::eq(passed, otherwise) {
                    self.skip_statements(passed);
                }
                return;
            }
        }
        let before = self.versions.clone();
        let then = self.branch(cond, |this| this.body(then));
        let after_then = std::mem::replace(&mut self.versions, before.clone());
        let otherwise = self.branch(opposite, |this| this.body(otherwise));
        // A buffer that either branch touched has a new version after both.
        for (i, version) in after_then.into_iter().enumerate() {
            if version != before[i] {
                self.versions[i] = version;
            }
        }
        self.join(cond, then, Some(otherwise), None, before);
    }

    fn for_loop(&mut self, name: &'p Name, [from, to]: [ValueId; 2], body: &'p Body, divergent: bool) {
        let guard = self.builder.binary(BinOp::Lt, from, to);
        let (carried, ends) = self.assigned(body);
        // The item keeps its place; what it is is known after the body.
        let item = self.effect(Item::Barrier { scope: Scope::Workgroup });
        let mut first = vec![from];
        first.extend(carried.iter().map(|variable| self.values[*variable]));
        // Memory that the body touches has a version of its own at its head, and another one after the loop.
        let touched = self.touched(body);
        touched.iter().for_each(|buffer| self.touch(*buffer));
        let no = self.builder.bool(false);
        let (skip, broke) = (self.variable(no), self.variable(no));
        self.loops.push(OpenLoop { skip, broke });
        let later = self.later;
        self.later |= waits(body);
        let mut params = Vec::new();
        let outer = self.region;
        let mark = self.log.len();
        let region = self.builder.region(outer);
        self.region = region;
        for (index, value) in first.iter().enumerate() {
            let ty = self.builder.ty(*value);
            params.push(self.builder.row(Value::Param { item, index: index as u32, ty }, region));
        }
        for (variable, param) in carried.iter().zip(&params[1..]) {
            self.set(*variable, *param);
        }
        if ends && divergent {
            // Only live invocations come here: the guard and `again` see to it.
            self.revive();
        }
        let counter = self.variable(params[0]);
        self.names.insert(name, counter);
        self.body(body);
        self.names.remove(name.as_str());
        let one = self.builder.constant(Literal::U32(1));
        let counted = self.builder.binary(BinOp::Add, params[0], one);
        let more = self.builder.binary(BinOp::Lt, counted, to);
        let mut stays = self.builder.not(self.values[broke]);
        if ends && divergent {
            stays = self.builder.and(stays, self.live());
        }
        let again = match self.builder.as_bool(stays) {
            Some(true) => more,
            _ => self.builder.binary(BinOp::And, more, stays),
        };
        let mut next = vec![counted];
        next.extend(carried.iter().map(|variable| self.values[*variable]));
        self.loops.pop();
        self.later = later;
        self.region = outer;
        while self.log.len() > mark {
            if let Some((variable, old)) = self.log.pop() {
                self.values[variable] = old;
            }
        }
        touched.iter().for_each(|buffer| self.touch(*buffer));
        self.builder.items[item.index()] = Item::Loop { guard, first, body: region, next, again };
        for (i, variable) in carried.iter().enumerate() {
            let ty = self.builder.ty(params[i + 1]);
            let out = Value::Out { item, index: i as u32 + 1, ty };
            let out = self.builder.row(out, outer);
            self.set(*variable, out);
        }
    }

    /// The variables outside a loop that its body assigns, in order, and whether it may end invocations.
    fn assigned(&self, body: &'p Body) -> (Vec<Variable>, bool) {
        let mut carried = FxHashSet::default();
        let mut ends = false;
        for event in Walk::new(body) {
            match event {
                Event::Node(Node::Assign { name, .. }) => carried.extend(self.names.get(name.as_str())),
                Event::Node(Node::Return | Node::Trap { .. }) => ends = true,
                _ => {}
            }
        }
        if ends {
            carried.insert(LIVE);
        }
        let mut carried: Vec<_> = carried.into_iter().collect();
        carried.sort_unstable();
        (carried, ends)
    }

    /// The buffers whose contents a body may change or see changed.
    fn touched(&self, body: &Body) -> Vec<u32> {
        let mut touched = FxHashSet::default();
        let mut all = false;
        for event in Walk::new(body) {
            let Event::Node(node) = event else { continue };
            if let Node::Store { buffer, .. } = node {
                touched.insert(self.buffers[buffer.as_str()]);
            }
            all |= matches!(node, Node::Barrier { .. });
            node.for_each_expr(&mut |expr| {
                let mut pending = vec![expr];
                while let Some(expr) = pending.pop() {
                    match expr {
                        Expr::Atomic { buffer, .. } => {
                            touched.insert(self.buffers[buffer.as_str()]);
                        }
                        Expr::UniformLoad { .. } => all = true,
                        _ => {}
                    }
                    expr.for_each_operand(&mut |operand| pending.push(operand));
                }
            });
        }
        if all {
            touched.extend((0..self.written.len() as u32).filter(|i| self.written[*i as usize]));
        }
        let mut touched: Vec<_> = touched.into_iter().collect();
        touched.sort_unstable();
        touched
    }
}
