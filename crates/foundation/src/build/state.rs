//! What a build has recorded: an arena of values, blocks of statements, and mistakes.
//!
//! Values are numbers into the arena, so they are `Copy` and operators need no builder at hand: the build that is
//! open on this thread takes them. Statements keep the numbers; expressions are made of them only at the
//! end, when it is known how often each value is used.

use super::error::{Mistake, What};
use crate::{BufferDecl, Expr, MemoryOrdering, Name, Program, Type, WorkgroupSize};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) type At = &'static Location<'static>;
pub(super) type ItemId = u32;
pub(super) type BlockId = usize;
pub(super) type VarId = usize;

/// What a value is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    /// A constant, an id, a length or the name of something that never changes: free to repeat.
    Leaf,
    /// An operator on other values: free to move, not to repeat.
    Pure,
    /// A load or the value of a variable: must not move over what may change it.
    Read,
    /// An atomic, subgroup operation or uniform load: a statement of its own.
    Effect,
}

pub(super) enum Op {
    Variable(VarId),
    /// An expression whose operands are replaced by `args`.
    Expr {
        template: Expr,
        args: Vec<ItemId>,
    },
}

/// A value.
pub(super) struct Item {
    pub(super) op: Op,
    pub(super) kind: Kind,
    /// Where it was made: the block, how many statements the block had, and how many of them were fences.
    pub(super) block: BlockId,
    pub(super) position: usize,
    pub(super) fence: u32,
    /// The name that the user wants for the result of an effect.
    pub(super) hint: Option<Name>,
    pub(super) at: At,
}

impl Item {
    pub(super) fn args(&self) -> &[ItemId] {
        match &self.op {
            Op::Variable(_) => &[],
            Op::Expr { args, .. } => args,
        }
    }

    fn is_constant(&self) -> bool {
        matches!(&self.op, Op::Expr { template: Expr::Literal(_), .. })
    }
}

pub(super) enum Action {
    Let {
        var: VarId,
        value: ItemId,
    },
    Assign {
        var: VarId,
        value: ItemId,
    },
    Store {
        buffer: Name,
        index: ItemId,
        value: ItemId,
    },
    /// Carries out an item of kind `Effect`.
    Effect {
        item: ItemId,
    },
    If {
        cond: ItemId,
        then: BlockId,
        otherwise: Option<BlockId>,
    },
    Loop {
        var: VarId,
        from: ItemId,
        to: ItemId,
        body: BlockId,
    },
    Region {
        generator: Name,
        source: Option<Name>,
        body: BlockId,
    },
    Block {
        body: BlockId,
    },
    Barrier {
        ordering: MemoryOrdering,
    },
    Trap {
        tag: Name,
        value: ItemId,
    },
    Break,
    Continue,
    Return,
}

impl Action {
    /// The values that the statement takes itself.
    pub(super) fn operands(&self) -> [Option<ItemId>; 2] {
        match *self {
            Action::Let { value, .. } | Action::Assign { value, .. } | Action::Trap { value, .. } => {
                [Some(value), None]
            }
            Action::Store { index, value, .. } => [Some(index), Some(value)],
            Action::If { cond, .. } => [Some(cond), None],
            Action::Loop { from, to, .. } => [Some(from), Some(to)],
            _ => [None, None],
        }
    }

    /// The blocks in the statement, in order.
    pub(super) fn blocks(&self) -> [Option<BlockId>; 2] {
        match *self {
            Action::If { then, otherwise, .. } => [Some(then), otherwise],
            Action::Loop { body, .. } | Action::Region { body, .. } | Action::Block { body } => {
                [Some(body), None]
            }
            _ => [None, None],
        }
    }
}

pub(super) struct Statement {
    pub(super) action: Action,
    /// How many fences the block had before it.
    pub(super) fence: u32,
    pub(super) at: At,
}

pub(super) struct Block {
    pub(super) statements: Vec<Statement>,
    /// The innermost loop body that it is in.
    pub(super) innermost_loop: Option<BlockId>,
    /// The function that it is in; `None` for the entry.
    pub(super) function: Option<usize>,
    pub(super) fence: u32,
    open: bool,
}

/// A block that has been entered, and how many were entered before.
#[derive(Clone, Copy)]
pub(super) struct Entered {
    pub(super) block: BlockId,
    depth: usize,
}

/// A named variable: a `let`, a variable, a loop variable or a parameter.
pub(super) struct Variable {
    /// The name that the user wants; `None` for a loop variable without wishes.
    pub(super) hint: Option<Name>,
    block: BlockId,
    at: At,
}

/// A function; its block holds its `let`s.
pub(super) struct Routine {
    pub(super) name: Name,
    pub(super) params: Vec<(VarId, Type)>,
    pub(super) result_type: Type,
    pub(super) block: BlockId,
    pub(super) result: ItemId,
    pub(super) at: At,
}

/// Keeps a handle on the thread whose build it belongs to.
pub(super) type OneThread = PhantomData<*const ()>;

/// A value as a handle holds it: a constant, or an item of a build.
#[derive(Clone, Copy)]
pub(super) enum Repr {
    Constant(crate::Literal),
    Item { build: u64, id: ItemId },
}

impl Repr {
    /// A value made where no build was open. No build has number 0, so each refuses it.
    pub(super) const NOWHERE: Repr = Repr::Item { build: 0, id: 0 };
}

pub(super) struct State {
    pub(super) build: u64,
    pub(super) name: Name,
    pub(super) workgroup_size: WorkgroupSize,
    pub(super) subgroup_size: u32,
    pub(super) buffers: Vec<(BufferDecl, At)>,
    pub(super) routines: Vec<Routine>,
    pub(super) items: Vec<Item>,
    pub(super) vars: Vec<Variable>,
    pub(super) blocks: Vec<Block>,
    pub(super) mistakes: Vec<Mistake>,
    /// The ballots: whether each has 64 bits.
    pub(super) ballots: Vec<(bool, At)>,
    current: Vec<BlockId>,
}

pub(super) const ENTRY: BlockId = 0;

impl State {
    fn new(name: Name) -> State {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let entry =
            Block { statements: Vec::new(), innermost_loop: None, function: None, fence: 0, open: true };
        State {
            build: NEXT.fetch_add(1, Ordering::Relaxed),
            name,
            workgroup_size: WorkgroupSize::default(),
            subgroup_size: Program::DEFAULT_SUBGROUP_SIZE,
            buffers: Vec::new(),
            routines: Vec::new(),
            items: Vec::new(),
            vars: Vec::new(),
            blocks: vec![entry],
            mistakes: Vec::new(),
            ballots: Vec::new(),
            current: Vec::new(),
        }
    }

    pub(super) fn current(&self) -> BlockId {
        self.current.last().copied().unwrap_or(ENTRY)
    }

    pub(super) fn mistake(&mut self, what: What, at: At) {
        self.mistakes.push(Mistake::new(what, Some(at)));
    }

    /// Whether a handle belongs to this build; if not, that is a mistake.
    pub(super) fn owns(&mut self, build: u64, at: At) -> bool {
        let owns = build == self.build;
        if !owns {
            self.mistake(What::OtherBuild, at);
        }
        owns
    }

    /// Whether what was made in `block` may be used in the current one; if not, that is a mistake.
    fn in_scope(&mut self, block: BlockId, made: At, at: At) -> bool {
        let here = self.blocks[self.current()].function;
        let what = match &self.blocks[block] {
            Block { open: false, .. } => What::OutOfScope { made },
            Block { function, .. } if *function != here => What::CapturedByFunction { made },
            _ => return true,
        };
        self.mistake(what, at);
        false
    }

    /// The item that a handle stands for, as an operand of something in the current block.
    pub(super) fn operand(&mut self, repr: Repr, at: At) -> ItemId {
        match repr {
            Repr::Constant(literal) => self.leaf(Expr::Literal(literal), at),
            Repr::Item { build, id } if self.owns(build, at) => {
                let item = &self.items[id as usize];
                let (block, made) = (item.block, item.at);
                if !item.is_constant() {
                    self.in_scope(block, made, at);
                }
                id
            }
            // The build fails; anything will do.
            Repr::Item { .. } => self.leaf(Expr::bool(false), at),
        }
    }

    /// Whether a variable may be used in the current block.
    pub(super) fn variable_in_scope(&mut self, var: VarId, at: At) -> bool {
        let Variable { block, at: made, .. } = self.vars[var];
        self.in_scope(block, made, at)
    }

    pub(super) fn item(&mut self, op: Op, kind: Kind, at: At) -> ItemId {
        let block = self.current();
        let Block { fence, statements, .. } = &self.blocks[block];
        let item = Item { op, kind, block, position: statements.len(), fence: *fence, hint: None, at };
        self.items.push(item);
        (self.items.len() - 1) as ItemId
    }

    /// A value that holds everywhere in the entry, wherever it was made.
    pub(super) fn leaf(&mut self, expr: Expr, at: At) -> ItemId {
        let op = Op::Expr { template: expr, args: Vec::new() };
        let item = Item { op, kind: Kind::Leaf, block: ENTRY, position: 0, fence: 0, hint: None, at };
        self.items.push(item);
        (self.items.len() - 1) as ItemId
    }

    /// An expression over operands. An effect becomes a statement at once.
    pub(super) fn expr(&mut self, template: Expr, kind: Kind, operands: &[Repr], at: At) -> ItemId {
        let args = operands.iter().map(|repr| self.operand(*repr, at)).collect();
        let id = self.item(Op::Expr { template, args }, kind, at);
        if kind == Kind::Effect {
            self.act(Action::Effect { item: id }, at);
        }
        id
    }

    /// Names the result of an effect of the current block, which is a `let` already; gives whether it was one.
    pub(super) fn name_effect(&mut self, id: ItemId, name: &Name) -> bool {
        let current = self.current();
        let item = &mut self.items[id as usize];
        let nameless = item.kind == Kind::Effect && item.block == current && item.hint.is_none();
        if nameless {
            item.hint = Some(name.clone());
        }
        nameless
    }

    pub(super) fn var(&mut self, hint: Option<Name>, at: At) -> VarId {
        self.vars.push(Variable { hint, block: self.current(), at });
        self.vars.len() - 1
    }

    /// Adds a statement to the current block; gives its place in it.
    pub(super) fn act(&mut self, action: Action, at: At) -> usize {
        let current = self.current();
        let is_let = matches!(action, Action::Let { .. });
        let block = &mut self.blocks[current];
        let statement = Statement { action, fence: block.fence, at };
        block.fence += u32::from(!is_let);
        block.statements.push(statement);
        let index = block.statements.len() - 1;
        if block.function.is_some() && !is_let {
            self.mistake(What::StatementInFunction, at);
        }
        index
    }

    /// Opens a block inside the current one.
    pub(super) fn enter(&mut self, is_loop: bool) -> Entered {
        self.enter_under(self.current(), is_loop)
    }

    /// Opens a block inside one that may have been left, but is not closed.
    pub(super) fn enter_under(&mut self, parent: BlockId, is_loop: bool) -> Entered {
        let Block { innermost_loop, function, .. } = self.blocks[parent];
        self.push_block(innermost_loop, function, is_loop)
    }

    /// Opens the block of a function.
    pub(super) fn enter_function(&mut self, number: usize) -> Entered {
        self.push_block(None, Some(number), false)
    }

    fn push_block(&mut self, outer: Option<BlockId>, function: Option<usize>, is_loop: bool) -> Entered {
        let block = self.blocks.len();
        let innermost_loop = if is_loop { Some(block) } else { outer };
        self.blocks.push(Block { statements: Vec::new(), innermost_loop, function, fence: 0, open: true });
        let entered = Entered { block, depth: self.current.len() };
        self.current.push(block);
        entered
    }

    /// Goes back to where a block was entered.
    fn leave(&mut self, entered: Entered) {
        self.current.truncate(entered.depth);
    }

    /// Ends a block: what was made in it cannot be used any more.
    pub(super) fn close(&mut self, block: BlockId) {
        self.blocks[block].open = false;
    }
}

thread_local! {
    static OPEN: RefCell<Vec<State>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` on the innermost open build of this thread. `f` calls nothing of the user's.
pub(super) fn with<R>(f: impl FnOnce(&mut State) -> R) -> Option<R> {
    OPEN.try_with(|open| open.try_borrow_mut().ok()?.last_mut().map(f)).ok()?
}

/// Keeps a build open, also for closing it when the user's code panics.
pub(super) struct Open {
    depth: usize,
}

impl Open {
    /// Opens a build on this thread; gives its number.
    pub(super) fn new(name: Name) -> (Open, u64) {
        OPEN.with_borrow_mut(|open| {
            let state = State::new(name);
            let build = state.build;
            open.push(state);
            (Open { depth: open.len() }, build)
        })
    }

    /// Closes the build and gives what it recorded.
    pub(super) fn finish(self) -> Option<State> {
        OPEN.with_borrow_mut(|open| {
            open.truncate(self.depth);
            open.pop()
        })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // After `finish` there is nothing left to cut.
        let _ = OPEN.try_with(|open| {
            if let Ok(mut open) = open.try_borrow_mut() {
                open.truncate(self.depth.saturating_sub(1));
            }
        });
    }
}

/// Runs the user's `body` in a block that has been entered, and leaves the block, also when `body` panics.
pub(super) fn inside<R>(entered: Entered, body: impl FnOnce() -> R) -> R {
    struct Leave(Entered);
    impl Drop for Leave {
        fn drop(&mut self) {
            with(|state| {
                state.leave(self.0);
                // Nothing will record a body that has panicked.
                if std::thread::panicking() {
                    state.close(self.0.block);
                }
            });
        }
    }
    let _leave = Leave(entered);
    body()
}
