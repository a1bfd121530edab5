//! What the interpreter executes: the statements of a program with names resolved to registers and buffers to
//! numbers, and structured control turned into jumps. Nothing is optimised, reordered or merged: each
//! expression of the tree is one instruction, in evaluation order.

use vyre_foundation::{AtomicOp, Axis, BinOp, Name, Scope, SubgroupOp, Type, UnOp};

/// A register of an invocation, or of a call of a function.
pub(crate) type Reg = u32;

/// Which id an instruction reads.
#[derive(Clone, Copy)]
pub(crate) enum Id {
    Invocation,
    Workgroup,
    Local,
    NumWorkgroups,
}

/// One instruction.
#[derive(Clone, Copy)]
pub(crate) enum Inst {
    Const {
        dst: Reg,
        bits: u64,
    },
    Copy {
        dst: Reg,
        src: Reg,
    },
    Binary {
        op: BinOp,
        ty: Type,
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    Unary {
        op: UnOp,
        ty: Type,
        dst: Reg,
        a: Reg,
    },
    Select {
        dst: Reg,
        cond: Reg,
        a: Reg,
        b: Reg,
    },
    Cast {
        from: Type,
        to: Type,
        dst: Reg,
        a: Reg,
    },
    Bitcast {
        from: Type,
        dst: Reg,
        a: Reg,
    },
    Fma {
        dst: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Call {
        function: u32,
        dst: Reg,
        args: Reg,
    },
    Len {
        dst: Reg,
        buffer: u32,
    },
    Id {
        dst: Reg,
        id: Id,
        axis: Axis,
    },
    SubgroupLane {
        dst: Reg,
    },
    Load {
        dst: Reg,
        buffer: u32,
        index: Reg,
    },
    Store {
        buffer: u32,
        index: Reg,
        value: Reg,
    },
    Atomic {
        op: AtomicOp,
        dst: Reg,
        buffer: u32,
        index: Reg,
        expected: Reg,
        value: Reg,
    },
    Jump {
        to: u32,
    },
    JumpUnless {
        cond: Reg,
        to: u32,
    },
    /// Leaves the loop when its variable has reached the end.
    LoopTest {
        var: Reg,
        end: Reg,
        exit: u32,
    },
    /// Counts the loop variable up and goes back to the test.
    LoopNext {
        var: Reg,
        head: u32,
    },
    Return,
    Trap {
        tag: u32,
        value: Reg,
    },
    // The rest waits for other invocations.
    Barrier {
        scope: Scope,
    },
    UniformLoad {
        scope: Scope,
        dst: Reg,
        buffer: u32,
        index: Reg,
    },
    Ballot {
        dst: Reg,
        cond: Reg,
    },
    Shuffle {
        dst: Reg,
        value: Reg,
        lane: Reg,
    },
    Reduce {
        op: SubgroupOp,
        ty: Type,
        dst: Reg,
        value: Reg,
    },
}

/// A function: pure instructions over registers of its own. Arguments stand in the first ones.
pub(crate) struct Routine {
    pub(crate) insts: Vec<Inst>,
    pub(crate) params: u32,
    pub(crate) registers: u32,
    pub(crate) result: Reg,
}

/// A program ready to be executed.
pub(crate) struct Code {
    pub(crate) insts: Vec<Inst>,
    pub(crate) registers: u32,
    pub(crate) routines: Vec<Routine>,
    pub(crate) tags: Vec<Name>,
    /// Whether an instruction waits for the whole grid.
    pub(crate) waits_for_grid: bool,
    /// How many operations stand before each instruction, and in all. What ran without a jump from one instruction to
    /// another did as many as the two differ by, so only jumps count.
    pub(crate) before: Vec<u64>,
}

impl Code {
    /// Counts the operations, once all instructions are there.
    pub(crate) fn count(&mut self) {
        let routines = self.routine_operations();
        let sums = self.insts.iter().scan(0, |sum: &mut u64, inst| {
            *sum += inst.operations(&routines);
            Some(*sum)
        });
        self.before = std::iter::once(0).chain(sums).collect();
    }

    /// The operations of a call of each routine: nothing jumps in one, so every call takes as many.
    fn routine_operations(&self) -> Vec<u64> {
        let mut known = vec![false; self.routines.len()];
        let mut operations = vec![0; self.routines.len()];
        let mut pending: Vec<usize> = (0..self.routines.len()).collect();
        while let Some(routine) = pending.last().copied() {
            let insts = &self.routines[routine].insts;
            let called = insts.iter().filter_map(|inst| match inst {
                Inst::Call { function, .. } => Some(*function as usize),
                _ => None,
            });
            let before = pending.len();
            // What it calls comes first. Routines do not recur, so this ends.
            pending.extend(called.filter(|called| !known[*called] && !known[routine]));
            if pending.len() == before {
                pending.pop();
                known[routine] = true;
                operations[routine] = insts.iter().map(|inst| inst.operations(&operations)).sum();
            }
        }
        operations
    }

    /// The operations of the instructions from one to before another, as they stand.
    #[inline]
    pub(crate) fn operations(&self, from: usize, to: usize) -> u64 {
        self.before[to] - self.before[from]
    }
}

impl Inst {
    /// How many operations it is, by the operations of each routine. [`crate::Outcome::operations`] says what counts.
    fn operations(&self, routines: &[u64]) -> u64 {
        match self {
            Inst::Const { .. } | Inst::Copy { .. } | Inst::Id { .. } | Inst::SubgroupLane { .. } => 0,
            Inst::Len { .. } | Inst::Jump { .. } | Inst::LoopTest { .. } | Inst::Return => 0,
            Inst::Call { function, .. } => routines[*function as usize],
            _ => 1,
        }
    }
}
