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
use crate::scan::{Waiting, is_subgroup, node_waits};
use rustc_hash::{FxHashMap, FxHashSet};
use vyre_foundation::validate::{self, Level};
use vyre_foundation::{Expr, MemoryOrdering, Name, Node, Program, Scope, Type};

/// A variable of the program, or one that lowering adds.
pub(crate) type Variable = usize;

/// Whether an invocation still runs.
pub(crate) const LIVE: Variable = 0;

/// The loop that is being lowered.
pub(crate) struct OpenLoop {
    pub(crate) skip: Variable,
    pub(crate) broke: Variable,
}

pub(crate) struct Lowering<'p> {
    pub(crate) program: &'p Program,
    pub(crate) builder: Builder,
    pub(crate) levels: FxHashMap<usize, Level>,
    pub(crate) buffers: FxHashMap<&'p str, u32>,
    pub(crate) functions: FxHashMap<&'p str, usize>,
    /// The buffers that something is written to.
    pub(crate) written: Vec<bool>,
    /// What each variable holds.
    pub(crate) values: Vec<ValueId>,
    pub(crate) names: FxHashMap<&'p str, Variable>,
    /// What each change replaced, for undoing at the end of a branch.
    pub(crate) log: Vec<(Variable, ValueId)>,
    pub(crate) loops: Vec<OpenLoop>,
    pub(crate) region: RegionId,
    /// The conditions that hold in this region.
    pub(crate) known: FxHashSet<ValueId>,
    /// What ended invocations must reach.
    pub(crate) waiting: Waiting,
    /// Whether something that ended invocations must reach can follow the body that is being lowered.
    pub(crate) later: bool,
    /// Whether effects in expressions are guarded one by one.
    pub(crate) guard_each: bool,
    /// The uniform load of this statement.
    pub(crate) uniform: Option<ValueId>,
    pub(crate) tags: Vec<Name>,
    pub(crate) origin: u32,
    pub(crate) origins: Vec<Origin>,
    pub(crate) origin_numbers: FxHashMap<Origin, u32>,
    pub(crate) node: usize,
}

/// Runs `body` with room on the stack.
pub(crate) fn roomy<R>(body: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(128 << 10, 4 << 20, body)
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
            buffers,
            functions: program.functions().iter().zip(0..).map(|(f, i)| (f.name.as_str(), i)).collect(),
            written,
            values: vec![live],
            names: FxHashMap::default(),
            log: Vec::new(),
            loops: Vec::new(),
            region: Builder::ROOT,
            known: FxHashSet::default(),
            waiting: Waiting::of(program),
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

    pub(crate) fn variable(&mut self, value: ValueId) -> Variable {
        self.values.push(value);
        self.values.len() - 1
    }

    pub(crate) fn set(&mut self, variable: Variable, value: ValueId) {
        let old = std::mem::replace(&mut self.values[variable], value);
        self.log.push((variable, old));
    }

    pub(crate) fn live(&self) -> ValueId {
        self.values[LIVE]
    }

    /// Whether every invocation that comes here still runs.
    pub(crate) fn is_live(&self) -> bool {
        self.builder.as_bool(self.live()) == Some(true) || self.known.contains(&self.live())
    }

    pub(crate) fn effect(&mut self, item: Item) -> ItemId {
        self.builder.item(self.region, item, self.origin)
    }

    /// The result of an effect.
    pub(crate) fn out(&mut self, item: ItemId, ty: Type) -> ValueId {
        self.builder.row(Value::Out { item, index: 0, ty }, self.region)
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

    // --- Statements ------------------------------------------------------------------------------------------

    pub(crate) fn statement(&mut self, node: &'p Node, opened: &mut Vec<&'p str>) {
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
    pub(crate) fn intern_origin(&mut self, origin: Origin) -> u32 {
        let next = self.origins.len() as u32 + 1;
        let number = *self.origin_numbers.entry(origin.clone()).or_insert(next);
        if number == next {
            self.origins.push(origin);
        }
        number
    }

    /// The value of a statement's expression.
    pub(crate) fn value_of(&mut self, node: &'p Node, expr: &'p Expr) -> ValueId {
        let value = self.effectful(node, |this| Some(this.expr(expr)));
        value.unwrap_or_else(|| self.builder.zero(Type::U32))
    }

    pub(crate) fn end(&mut self) {
        let no = self.builder.bool(false);
        self.set(LIVE, no);
    }

    pub(crate) fn jump(&mut self, leaves: bool) {
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
    pub(crate) fn hoist(&mut self, node: &'p Node) {
        let Some(Expr::UniformLoad { scope, buffer, index }) = node.uniform_load() else { return };
        let index = self.expr(index);
        let number = self.buffers[buffer.as_str()];
        let item = self.effect(Item::UniformLoad { scope: *scope, buffer: number, index });
        let ty = self.program.buffers()[number as usize].element().value_type();
        self.uniform = Some(self.out(item, ty));
    }

    /// Runs the effects of a statement for the invocations that are live, and gives its value.
    pub(crate) fn effectful(
        &mut self,
        node: &'p Node,
        body: impl FnOnce(&mut Self) -> Option<ValueId>,
    ) -> Option<ValueId> {
        self.hoist(node);
        let (mut effects, mut subgroups) = (matches!(node, Node::Store { .. } | Node::Trap { .. }), false);
        node.for_each_expr(&mut |expr| {
            subgroups |= expr.any(&is_subgroup);
            effects |= expr.any(&|e| match e {
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
    pub(crate) fn guard_effect(
        &mut self,
        body: impl FnOnce(&mut Self) -> Option<ValueId>,
    ) -> Option<ValueId> {
        if !self.guard_each {
            return body(self);
        }
        self.guard_each = false;
        let live = self.live();
        let value = self.guarded_value(live, body);
        self.guard_each = true;
        value
    }
}
