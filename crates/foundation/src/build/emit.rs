//! From what was recorded to a program: names, `let`s and statements.

use super::plan::Plan;
use super::state::{Action, At, BlockId, ENTRY, ItemId, Kind, Op, Routine, State, VarId};
use crate::{Body, Expr, Function, Name, Node, Program, is_identifier, is_reserved};
use rustc_hash::{FxHashMap, FxHashSet};

/// The lines of the Rust source that built the parts of a program.
pub(super) struct Lines {
    /// In the order in which statements begin.
    pub(super) statements: Vec<At>,
    pub(super) buffers: Vec<At>,
    pub(super) functions: Vec<At>,
}

pub(super) fn emit(state: &State) -> (Program, Lines) {
    let mut emitter = Emitter::new(state);
    let functions: Vec<Function> = state.routines.iter().map(|routine| emitter.function(routine)).collect();
    emitter.lines.clear();
    let entry = emitter.body(ENTRY);
    let buffers: Vec<_> = state.buffers.iter().map(|(decl, _)| decl.clone()).collect();
    let mut program = Program::new(buffers, state.workgroup_size, entry)
        .with_name(&state.name)
        .with_subgroup_size(state.subgroup_size);
    if !functions.is_empty() {
        program = program.with_functions(functions);
    }
    let lines = Lines {
        statements: emitter.lines,
        buffers: state.buffers.iter().map(|(_, at)| *at).collect(),
        functions: state.routines.iter().map(|routine| routine.at).collect(),
    };
    (program, lines)
}

struct Emitter<'s> {
    state: &'s State,
    plan: Plan,
    /// For each block the items that get a `let`, in order.
    lets: FxHashMap<BlockId, Vec<ItemId>>,
    item_names: FxHashMap<ItemId, Name>,
    var_names: FxHashMap<VarId, Name>,
    names: Names,
    lines: Vec<At>,
}

/// A block whose statements are being made.
struct Frame {
    block: BlockId,
    next: usize,
    next_let: usize,
    nodes: Vec<Node>,
    /// The bodies of the next statement that are done.
    bodies: Vec<Body>,
    /// How many names were visible before it.
    mark: usize,
}

impl<'s> Emitter<'s> {
    fn new(state: &'s State) -> Emitter<'s> {
        let plan = Plan::of(state);
        let mut lets: FxHashMap<BlockId, Vec<ItemId>> = FxHashMap::default();
        for (id, item) in state.items.iter().enumerate().filter(|(id, _)| plan.named[*id]) {
            lets.entry(item.block).or_default().push(id as ItemId);
        }
        let (item_names, var_names) = (FxHashMap::default(), FxHashMap::default());
        Emitter { state, plan, lets, item_names, var_names, names: Names::new(state), lines: Vec::new() }
    }

    fn function(&mut self, routine: &Routine) -> Function {
        let mark = self.names.opened.len();
        let params = routine.params.iter().map(|(var, ty)| (self.declare(*var), *ty)).collect();
        let lets = self.nodes(routine.block).into_iter().filter_map(|node| match node {
            Node::Let { name, value } => Some((name, value)),
            _ => None,
        });
        let lets = lets.collect();
        let result = self.operand(routine.result);
        self.names.close(mark);
        Function { name: routine.name.clone(), params, result_type: routine.result_type, lets, result }
    }

    fn body(&mut self, block: BlockId) -> Body {
        self.nodes(block).into()
    }

    /// The statements of a block. It keeps its own stack: an `else if` chain may be long.
    fn nodes(&mut self, block: BlockId) -> Vec<Node> {
        let state = self.state;
        let mut stack = vec![self.frame(block)];
        loop {
            let Some(frame) = stack.last_mut() else { return Vec::new() };
            let statement = state.blocks[frame.block].statements.get(frame.next);
            if frame.bodies.is_empty() {
                self.pending_lets(frame);
                self.lines.extend(statement.map(|statement| statement.at));
            }
            let Some(statement) = statement else {
                self.names.close(frame.mark);
                let Some(done) = stack.pop() else { return Vec::new() };
                match stack.last_mut() {
                    Some(outer) => outer.bodies.push(done.nodes.into()),
                    None => return done.nodes,
                }
                continue;
            };
            let inner = statement.action.blocks().into_iter().flatten().nth(frame.bodies.len());
            if let Some(inner) = inner {
                let inner = self.frame(inner);
                if let Action::Loop { var, .. } = statement.action {
                    self.declare(var);
                }
                stack.push(inner);
                continue;
            }
            frame.next += 1;
            let bodies = std::mem::take(&mut frame.bodies);
            let node = self.node(&statement.action, bodies);
            frame.nodes.push(node);
        }
    }

    fn frame(&self, block: BlockId) -> Frame {
        let mark = self.names.opened.len();
        Frame { block, next: 0, next_let: 0, nodes: Vec::new(), bodies: Vec::new(), mark }
    }

    /// The `let`s of values that were made before the next statement.
    fn pending_lets(&mut self, frame: &mut Frame) {
        while let Some(id) = self.lets.get(&frame.block).and_then(|lets| lets.get(frame.next_let)).copied() {
            let item = &self.state.items[id as usize];
            if item.position > frame.next {
                break;
            }
            frame.next_let += 1;
            let value = self.expr(id);
            let name = self.name_item(id);
            self.lines.push(item.at);
            frame.nodes.push(Node::let_bind(name, value));
        }
    }

    /// A name for a variable.
    fn declare(&mut self, var: VarId) -> Name {
        let name = match &self.state.vars[var].hint {
            Some(hint) => self.names.open(hint),
            None => self.names.open_loop(),
        };
        self.var_names.insert(var, name.clone());
        name
    }

    /// A name for a value: that of the buffer or variable it comes from, with a number.
    fn name_item(&mut self, id: ItemId) -> Name {
        let item = &self.state.items[id as usize];
        let from = match &item.op {
            Op::Variable(var) => self.var_names.get(var),
            Op::Expr { template, .. } => template.buffer(),
        };
        let name = match (&item.hint, from.filter(|name| is_identifier(name))) {
            (Some(hint), _) => self.names.open(hint),
            (None, Some(from)) => self.names.fresh(&format!("{from}_")),
            (None, None) => self.names.fresh("t"),
        };
        self.item_names.insert(id, name.clone());
        name
    }

    fn var(&self, var: VarId) -> Name {
        self.var_names.get(&var).cloned().unwrap_or_else(no_name)
    }

    /// An item where it is used.
    fn operand(&self, id: ItemId) -> Expr {
        let is_statement = self.plan.named[id as usize] || self.state.items[id as usize].kind == Kind::Effect;
        match self.item_names.get(&id) {
            Some(name) => Expr::var(name),
            None if is_statement => Expr::Var(no_name()),
            None => self.expr(id),
        }
    }

    /// An item itself. What it holds without names is small, so this does not recur deeply.
    fn expr(&self, id: ItemId) -> Expr {
        match &self.state.items[id as usize].op {
            Op::Variable(var) => Expr::var(self.var(*var)),
            Op::Expr { template, args } => {
                let mut args = args.iter();
                template.clone().map_operands(&mut |hole| args.next().map_or(hole, |arg| self.operand(*arg)))
            }
        }
    }

    fn node(&mut self, action: &Action, bodies: Vec<Body>) -> Node {
        let mut bodies = bodies.into_iter();
        let mut body = || bodies.next().unwrap_or_default();
        match action {
            Action::Let { var, value } => {
                let value = self.operand(*value);
                Node::let_bind(self.declare(*var), value)
            }
            Action::Assign { var, value } => Node::assign(self.var(*var), self.operand(*value)),
            Action::Store { buffer, index, value } => {
                Node::store(buffer, self.operand(*index), self.operand(*value))
            }
            Action::Effect { item } => {
                let expr = self.expr(*item);
                match self.plan.used[*item as usize] {
                    true => Node::let_bind(self.name_item(*item), expr),
                    false => Node::eval(expr),
                }
            }
            Action::If { cond, .. } => Node::if_then_else(self.operand(*cond), body(), body()),
            Action::Loop { var, from, to, .. } => {
                Node::loop_for(self.var(*var), self.operand(*from), self.operand(*to), body())
            }
            Action::Region { generator, source, .. } => {
                let (generator, source_region) = (generator.clone(), source.clone());
                Node::Region { generator, source_region, body: body() }
            }
            Action::Block { .. } => Node::block(body()),
            Action::Barrier { ordering } => Node::barrier_with_ordering(*ordering),
            Action::Trap { tag, value } => Node::trap(tag, self.operand(*value)),
            Action::Break => Node::Break,
            Action::Continue => Node::Continue,
            Action::Return => Node::Return,
        }
    }
}

/// Stands for what has no name where it is used. Validation refuses it: a program is never silently another one.
fn no_name() -> Name {
    "?".into()
}

/// The names that are visible, and those that may not be made up.
struct Names {
    visible: FxHashSet<Name>,
    /// The visible variables, in order.
    opened: Vec<Name>,
    /// What the user named, anywhere in the program, and what was made up.
    taken: FxHashSet<Name>,
    counters: FxHashMap<String, u64>,
}

impl Names {
    fn new(state: &State) -> Names {
        let buffers = state.buffers.iter().map(|(decl, _)| decl.name());
        let visible: FxHashSet<Name> =
            buffers.chain(state.routines.iter().map(|routine| &routine.name)).cloned().collect();
        let vars = state.vars.iter().filter_map(|var| var.hint.as_ref());
        let effects = state.items.iter().filter_map(|item| item.hint.as_ref());
        let taken = visible.iter().chain(vars).chain(effects).cloned().collect();
        Names { visible, opened: Vec::new(), taken, counters: FxHashMap::default() }
    }

    /// Opens the name a user wants, with a number if it is visible already.
    fn open(&mut self, hint: &Name) -> Name {
        let name = if self.visible.contains(hint) { self.made_up(&format!("{hint}_")) } else { hint.clone() };
        self.opened(name)
    }

    /// Opens a name for a loop variable: a customary one where that is free.
    fn open_loop(&mut self) -> Name {
        let mut customary = ["i", "j", "k", "l", "m", "n"].into_iter();
        match customary.find(|name| !self.taken.contains(*name) && !self.visible.contains(*name)) {
            Some(name) => self.opened(name.into()),
            None => self.fresh("i_"),
        }
    }

    /// Opens a name that nothing else has.
    fn fresh(&mut self, stem: &str) -> Name {
        let name = self.made_up(stem);
        self.opened(name)
    }

    fn opened(&mut self, name: Name) -> Name {
        self.visible.insert(name.clone());
        self.opened.push(name.clone());
        name
    }

    fn made_up(&mut self, stem: &str) -> Name {
        let counter = self.counters.entry(stem.into()).or_default();
        loop {
            *counter += 1;
            let name = Name::from(format!("{stem}{counter}"));
            if !is_reserved(&name) && self.taken.insert(name.clone()) {
                return name;
            }
        }
    }

    /// Closes the names that were opened since.
    fn close(&mut self, mark: usize) {
        for name in self.opened.drain(mark..) {
            self.visible.remove(&name);
        }
    }
}
