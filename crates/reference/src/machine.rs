//! One invocation at a time: executes instructions until it ends, must wait, or has used its share of turns.

use crate::code::{Code, Id, Inst, Reg};
use crate::memory::{Memory, Owner};
use vyre_foundation::{Axis, Scope, arith};

/// Which invocations an instruction waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    Subgroup,
    Workgroup,
    Grid,
}

impl From<Scope> for Waits {
    fn from(scope: Scope) -> Waits {
        match scope {
            Scope::Workgroup => Waits::Workgroup,
            Scope::Grid => Waits::Grid,
        }
    }
}

/// Why an invocation stopped executing.
pub(crate) enum Stop {
    /// Its share of accesses to shared memory is used up; it stands before the next one.
    Turn,
    /// It stands at an instruction that waits for others.
    Waits(Waits),
    Returned,
    Trapped {
        tag: u32,
        value: u32,
    },
    /// The fuel of the dispatch is used up: time to ask whether to stop.
    Fuel,
}

/// What an invocation knows about itself.
#[derive(Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) workgroup: [u32; 3],
    pub(crate) local: [u32; 3],
    pub(crate) size: [u32; 3],
    pub(crate) num_workgroups: [u32; 3],
    pub(crate) lane: u32,
}

impl Ids {
    fn get(&self, id: Id, axis: Axis) -> u64 {
        let i = axis.index();
        u64::from(match id {
            Id::Workgroup => self.workgroup[i],
            Id::Local => self.local[i],
            Id::NumWorkgroups => self.num_workgroups[i],
            // The product fits: the grid has been checked.
            Id::Invocation => self.workgroup[i] * self.size[i] + self.local[i],
        })
    }
}

/// The frames of calls under way. Functions cannot recur, but chains of them may be long.
#[derive(Default)]
pub(crate) struct Calls {
    registers: Vec<u64>,
    frames: Vec<Frame>,
}

struct Frame {
    routine: u32,
    next: usize,
    base: usize,
    /// Where the caller wants the result, relative to its own registers.
    dst: Reg,
}

/// Executes an instruction that neither jumps, nor calls, nor touches anything but registers.
#[inline(always)]
fn pure(inst: Inst, regs: &mut [u64]) -> bool {
    let get = |regs: &[u64], reg: Reg| regs[reg as usize];
    let (dst, value) = match inst {
        Inst::Const { dst, bits } => (dst, bits),
        Inst::Copy { dst, src } => (dst, get(regs, src)),
        Inst::Binary { op, ty, dst, a, b } => (dst, arith::binary(op, ty, get(regs, a), get(regs, b))),
        Inst::Unary { op, ty, dst, a } => (dst, arith::unary(op, ty, get(regs, a))),
        Inst::Select { dst, cond, a, b } => (dst, get(regs, if get(regs, cond) != 0 { a } else { b })),
        Inst::Cast { from, to, dst, a } => (dst, arith::cast(from, to, get(regs, a))),
        Inst::Bitcast { from, dst, a } => (dst, arith::bitcast(from, get(regs, a))),
        Inst::Fma { dst, a, b, c } => (dst, arith::fma(get(regs, a), get(regs, b), get(regs, c))),
        _ => return false,
    };
    regs[dst as usize] = value;
    true
}

impl Calls {
    /// Runs a function to its result. It touches no memory, so nothing can interrupt it.
    fn run(&mut self, code: &Code, function: u32, args: &[u64]) -> u64 {
        self.registers.clear();
        self.frames.clear();
        self.enter(code, function, 0, 0);
        self.registers[..args.len()].copy_from_slice(args);
        loop {
            let Some(frame) = self.frames.last_mut() else { return 0 };
            let routine = &code.routines[frame.routine as usize];
            let Some(inst) = routine.insts.get(frame.next) else {
                let result = self.registers[frame.base + routine.result as usize];
                let dst = frame.dst;
                let base = frame.base;
                self.frames.pop();
                self.registers.truncate(base);
                match self.frames.last() {
                    Some(caller) => self.registers[caller.base + dst as usize] = result,
                    None => return result,
                }
                continue;
            };
            frame.next += 1;
            let base = frame.base;
            if let Inst::Call { function, dst, args } = *inst {
                let top = self.registers.len();
                self.enter(code, function, dst, top);
                let from = base + args as usize;
                let count = code.routines[function as usize].params as usize;
                self.registers.copy_within(from..from + count, top);
            } else {
                pure(*inst, &mut self.registers[base..]);
            }
        }
    }

    fn enter(&mut self, code: &Code, routine: u32, dst: Reg, base: usize) {
        self.frames.push(Frame { routine, next: 0, base, dst });
        let registers = code.routines[routine as usize].registers as usize;
        self.registers.resize(base + registers, 0);
    }
}

/// Everything an invocation needs to execute.
pub(crate) struct Step<'a> {
    pub(crate) code: &'a Code,
    pub(crate) memory: &'a mut Memory,
    pub(crate) calls: &'a mut Calls,
    pub(crate) regs: &'a mut [u64],
    pub(crate) pc: &'a mut u32,
    pub(crate) owner: Owner,
    pub(crate) ids: &'a Ids,
    pub(crate) fuel: &'a mut u32,
    /// The operations done so far.
    pub(crate) operations: &'a mut u64,
}

impl Step<'_> {
    /// Executes until the invocation stops, with at most `turns` accesses to memory that others can see.
    pub(crate) fn run(&mut self, mut turns: u32) -> Stop {
        let Step { code, memory, calls, regs, pc, owner, ids, fuel, operations } = self;
        let owner = *owner;
        let mut at = **pc as usize;
        // Where it has come to by a jump. What was done since is counted at the next one.
        let mut since = at;
        let mut jump = |since: &mut usize, at: usize, to: usize| {
            **operations += code.operations(*since, at + 1);
            *since = to;
            to
        };
        let stop = loop {
            let inst = code.insts[at];
            if pure(inst, regs) {
                at += 1;
                continue;
            }
            let get = |regs: &[u64], reg: Reg| regs[reg as usize];
            match inst {
                Inst::Jump { to } => {
                    at = jump(&mut since, at, to as usize);
                    continue;
                }
                Inst::JumpUnless { cond, to } => {
                    at = if get(regs, cond) != 0 { at + 1 } else { jump(&mut since, at, to as usize) };
                    continue;
                }
                Inst::LoopTest { var, end, exit } => {
                    let goes_on = get(regs, var) < get(regs, end);
                    at = if goes_on { at + 1 } else { jump(&mut since, at, exit as usize) };
                    continue;
                }
                Inst::LoopNext { var, head } => {
                    if **fuel == 0 {
                        break Stop::Fuel;
                    }
                    **fuel -= 1;
                    // Below the end, so it cannot wrap.
                    regs[var as usize] += 1;
                    at = jump(&mut since, at, head as usize);
                    continue;
                }
                Inst::Id { dst, id, axis } => regs[dst as usize] = ids.get(id, axis),
                Inst::SubgroupLane { dst } => regs[dst as usize] = u64::from(ids.lane),
                Inst::Len { dst, buffer } => regs[dst as usize] = u64::from(memory.len(buffer)),
                Inst::Call { function, dst, args } => {
                    let count = code.routines[function as usize].params as usize;
                    let args = args as usize;
                    regs[dst as usize] = calls.run(code, function, &regs[args..args + count]);
                }
                Inst::Load { buffer, .. } | Inst::Store { buffer, .. } | Inst::Atomic { buffer, .. } => {
                    if memory.is_shared(buffer) {
                        if turns == 0 {
                            break Stop::Turn;
                        }
                        turns -= 1;
                    }
                    access(inst, memory, owner, regs);
                }
                Inst::Return => break Stop::Returned,
                Inst::Trap { tag, value } => break Stop::Trapped { tag, value: get(regs, value) as u32 },
                Inst::Barrier { scope } | Inst::UniformLoad { scope, .. } => break Stop::Waits(scope.into()),
                Inst::Ballot { .. } | Inst::Shuffle { .. } | Inst::Reduce { .. } => {
                    break Stop::Waits(Waits::Subgroup);
                }
                _ => unreachable!("pure instructions are executed above"),
            }
            at += 1;
        };
        **operations += code.operations(since, at);
        **pc = at as u32;
        stop
    }
}

#[inline]
fn access(inst: Inst, memory: &mut Memory, owner: Owner, regs: &mut [u64]) {
    let get = |reg: Reg| regs[reg as usize];
    match inst {
        Inst::Load { dst, buffer, index } => regs[dst as usize] = memory.load(buffer, owner, get(index)),
        Inst::Store { buffer, index, value } => memory.store(buffer, owner, get(index), get(value)),
        Inst::Atomic { op, dst, buffer, index, expected, value } => {
            let operands = [get(expected), get(value)];
            regs[dst as usize] = memory.atomic(op, buffer, owner, get(index), operands);
        }
        _ => unreachable!("called for accesses only"),
    }
}
