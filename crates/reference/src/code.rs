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
}
