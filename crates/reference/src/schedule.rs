//! Which invocation advances next, and when those that wait go on.
//!
//! Invocations are interleaved at accesses to memory that others can see: nothing else of an invocation is
//! visible, so every interleaving that matters is one of these. A [`Schedule`] decides the order. Whatever
//! waits stands before its instruction; when the last invocation of the scope that still runs has arrived, the
//! instruction is carried out for all of them at once. Ended invocations are not waited for.

use crate::code::{Code, Inst};
use crate::machine::{Calls, Ids, Step, Stop, Waits};
use crate::memory::{Memory, Owner, reserve};
use crate::{Error, Trap};
use vyre_foundation::arith;
use vyre_foundation::grid::Grid;
use vyre_foundation::rng::SplitMix64;

/// The order in which invocations advance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// Each workgroup, and in it each invocation, as far as it gets, in linear order. The fastest.
    #[default]
    InOrder,
    /// One access to shared memory each, in turn.
    RoundRobin,
    /// Each workgroup, and in it each invocation, as far as it gets, the last one first.
    Reversed,
    /// In an order and with turns drawn from this seed.
    Random(u64),
}

/// How many invocations are in flight at once where no barrier needs more.
const WINDOW: u64 = 1024;
/// How much memory their registers, `local` arrays and workgroup memory may take, where more than one workgroup
/// is in flight.
const WINDOW_BYTES: u64 = 64 << 20;
/// How many loop iterations run between two questions whether to stop.
const FUEL: u32 = 1 << 14;

#[derive(Clone, Copy, PartialEq)]
enum Status {
    Ready,
    Waiting(Waits),
    Ended,
}

/// How many invocations of a group still run, and how many of them wait for the group.
#[derive(Clone, Copy, Default)]
struct Group {
    live: u32,
    waiting: u32,
}

impl Group {
    fn is_complete(self) -> bool {
        self.live > 0 && self.waiting == self.live
    }
}

/// The invocations in flight.
pub(crate) struct Dispatch<'a> {
    code: &'a Code,
    grid: Grid,
    memory: &'a mut Memory,
    stop: &'a dyn Fn() -> bool,
    schedule: Schedule,
    rng: SplitMix64,
    /// The size of a workgroup and of a subgroup.
    size: usize,
    subgroup_size: usize,
    /// The first workgroup in flight and how many there are.
    first: u64,
    workgroups: usize,
    workgroup_ids: Vec<[u32; 3]>,
    local_ids: Vec<[u32; 3]>,
    registers: Vec<u64>,
    pcs: Vec<u32>,
    status: Vec<Status>,
    subgroup: Vec<Group>,
    workgroup: Vec<Group>,
    all: Group,
    ready: Vec<u32>,
    calls: Calls,
    fuel: u32,
    operations: u64,
    trap: Option<Trap>,
}

impl<'a> Dispatch<'a> {
    /// Runs the whole grid once; gives the operations that were executed.
    pub(crate) fn run(
        code: &'a Code,
        grid: Grid,
        subgroup_size: u32,
        memory: &'a mut Memory,
        schedule: Schedule,
        stop: &'a dyn Fn() -> bool,
    ) -> Result<u64, Error> {
        let size = grid.workgroup_size().iter().map(|n| u64::from(*n)).product::<u64>();
        let total = u64::try_from(grid.workgroup_count()).unwrap_or(u64::MAX);
        let each = 8 * u64::from(code.registers) + memory.bytes_per_invocation(size);
        let lanes = (WINDOW_BYTES / each.max(1)).clamp(1, WINDOW);
        let window = if code.waits_for_grid { total } else { total.min((lanes / size).max(1)) };
        let lanes = usize::try_from(window.saturating_mul(size)).unwrap_or(usize::MAX);
        let what = "the invocations in flight";
        if lanes > u32::MAX as usize {
            return Err(Error::OutOfMemory { what: what.into(), bytes: lanes as u64 });
        }
        reserve::<u64>(lanes.saturating_mul(code.registers as usize + 2), what)?;
        let workgroups = window as usize;
        memory.open(workgroups, lanes)?;
        let seed = if let Schedule::Random(seed) = schedule { seed } else { 0 };
        let local_ids = (0..size).map(|linear| grid.local_id(linear)).collect();
        let mut dispatch = Dispatch {
            code,
            grid,
            memory,
            stop,
            schedule,
            rng: SplitMix64::new(seed),
            size: size as usize,
            subgroup_size: subgroup_size as usize,
            first: 0,
            workgroups,
            workgroup_ids: vec![[0; 3]; workgroups],
            local_ids,
            registers: vec![0; lanes * code.registers as usize],
            pcs: vec![0; lanes],
            status: vec![Status::Ended; lanes],
            subgroup: Vec::new(),
            workgroup: Vec::new(),
            all: Group::default(),
            ready: Vec::new(),
            calls: Calls::default(),
            fuel: FUEL,
            operations: 0,
            trap: None,
        };
        while dispatch.first < total {
            let count = (total - dispatch.first).min(window) as usize;
            dispatch.open(count);
            dispatch.sweep()?;
            dispatch.first += count as u64;
        }
        dispatch.trap.map_or(Ok(dispatch.operations), |trap| Err(Error::Trap(trap)))
    }

    /// Puts the next workgroups in flight.
    fn open(&mut self, count: usize) {
        if self.first > 0 {
            self.memory.clear();
        }
        self.workgroups = count;
        for (slot, id) in self.workgroup_ids[..count].iter_mut().enumerate() {
            *id = self.grid.workgroup_id(self.first + slot as u64);
        }
        let lanes = count * self.size;
        self.pcs[..lanes].fill(0);
        self.status[..lanes].fill(Status::Ready);
        let per_workgroup = self.size.div_ceil(self.subgroup_size);
        self.workgroup.clear();
        self.workgroup.resize(count, Group { live: self.size as u32, waiting: 0 });
        self.subgroup.clear();
        for _ in 0..count {
            for first in (0..per_workgroup).map(|i| i * self.subgroup_size) {
                let live = self.subgroup_size.min(self.size - first) as u32;
                self.subgroup.push(Group { live, waiting: 0 });
            }
        }
        self.all = Group { live: lanes as u32, waiting: 0 };
        self.ready.clear();
        self.ready.extend(0..lanes as u32);
    }

    /// Advances the invocations in flight until all have ended.
    fn sweep(&mut self) -> Result<(), Error> {
        while !self.ready.is_empty() {
            self.check_stop()?;
            let mut current = std::mem::take(&mut self.ready);
            match self.schedule {
                Schedule::InOrder | Schedule::RoundRobin => {}
                Schedule::Reversed => current.sort_unstable_by(|a, b| b.cmp(a)),
                Schedule::Random(_) => self.shuffle(&mut current),
            }
            match self.schedule {
                Schedule::InOrder | Schedule::Reversed => self.by_workgroup(&current)?,
                Schedule::RoundRobin | Schedule::Random(_) => {
                    for lane in current {
                        let turns = match self.schedule {
                            Schedule::RoundRobin => 1,
                            _ => *self.rng.pick(&[0, 1, 1, 2, 3, 8, u32::MAX]),
                        };
                        self.advance(lane as usize, turns)?;
                    }
                }
            }
        }
        if self.all.live > 0 {
            return Err(Error::Internal("invocations wait for each other at different barriers".into()));
        }
        Ok(())
    }

    /// Runs each workgroup as far as it gets before the next one begins: only a grid barrier orders them.
    fn by_workgroup(&mut self, current: &[u32]) -> Result<(), Error> {
        let size = self.size as u32;
        for lanes in current.chunk_by(|a, b| a / size == b / size) {
            let workgroup = lanes[0] / size;
            let mut lanes = lanes.to_vec();
            while !lanes.is_empty() {
                let mark = self.ready.len();
                for lane in lanes {
                    self.advance(lane as usize, u32::MAX)?;
                }
                // What its own barriers have let go runs on; a grid barrier has let go others too.
                let released = &self.ready[mark..];
                let own = released.iter().all(|lane| lane / size == workgroup);
                lanes = if own { self.ready.split_off(mark) } else { Vec::new() };
                if self.schedule == Schedule::Reversed {
                    lanes.sort_unstable_by(|a, b| b.cmp(a));
                }
            }
        }
        Ok(())
    }

    /// Draws an order, and now and then holds whole workgroups back while the others run on.
    fn shuffle(&mut self, current: &mut Vec<u32>) {
        for i in (1..current.len()).rev() {
            current.swap(i, self.rng.below(i as u64 + 1) as usize);
        }
        let held = if self.rng.chance(1, 2) { self.rng.next_u64() } else { 0 };
        let size = self.size as u32;
        let is_held = |lane: &u32| held >> (lane / size % 64) & 1 == 1;
        if !current.iter().all(is_held) {
            self.ready.extend(current.iter().filter(|lane| is_held(lane)));
            current.retain(|lane| !is_held(lane));
        }
    }

    fn check_stop(&mut self) -> Result<(), Error> {
        self.fuel = FUEL;
        if (self.stop)() { Err(Error::Timeout) } else { Ok(()) }
    }

    fn advance(&mut self, lane: usize, turns: u32) -> Result<(), Error> {
        let local = lane % self.size;
        let ids = Ids {
            workgroup: self.workgroup_ids[lane / self.size],
            local: self.local_ids[local],
            size: self.grid.workgroup_size(),
            num_workgroups: self.grid.workgroups(),
            lane: (local % self.subgroup_size) as u32,
        };
        let registers = self.code.registers as usize;
        loop {
            let stop = Step {
                code: self.code,
                memory: self.memory,
                calls: &mut self.calls,
                regs: &mut self.registers[lane * registers..(lane + 1) * registers],
                pc: &mut self.pcs[lane],
                owner: Owner { workgroup: lane / self.size, invocation: lane },
                ids: &ids,
                fuel: &mut self.fuel,
                operations: &mut self.operations,
            }
            .run(turns);
            match stop {
                Stop::Fuel => {
                    self.check_stop()?;
                    continue;
                }
                Stop::Turn => self.ready.push(lane as u32),
                Stop::Waits(waits) => self.arrive(lane, waits)?,
                Stop::Returned => self.end(lane)?,
                Stop::Trapped { tag, value } => {
                    let invocation = (self.first * self.size as u64).saturating_add(lane as u64);
                    if self.trap.as_ref().is_none_or(|trap| invocation < trap.invocation) {
                        let tag = self.code.tags[tag as usize].clone();
                        self.trap = Some(Trap { tag, value, invocation });
                    }
                    self.end(lane)?;
                }
            }
            return Ok(());
        }
    }

    fn subgroup_of(&self, lane: usize) -> usize {
        let per_workgroup = self.size.div_ceil(self.subgroup_size);
        lane / self.size * per_workgroup + lane % self.size / self.subgroup_size
    }

    fn group(&mut self, lane: usize, waits: Waits) -> &mut Group {
        match waits {
            Waits::Subgroup => {
                let subgroup = self.subgroup_of(lane);
                &mut self.subgroup[subgroup]
            }
            Waits::Workgroup => &mut self.workgroup[lane / self.size],
            Waits::Grid => &mut self.all,
        }
    }

    /// The invocations of the group that the lane is in.
    fn members(&self, lane: usize, waits: Waits) -> std::ops::Range<usize> {
        let workgroup = lane / self.size * self.size;
        match waits {
            Waits::Subgroup => {
                let start = lane - lane % self.size % self.subgroup_size;
                start..(start + self.subgroup_size).min(workgroup + self.size)
            }
            Waits::Workgroup => workgroup..workgroup + self.size,
            Waits::Grid => 0..self.workgroups * self.size,
        }
    }

    fn arrive(&mut self, lane: usize, waits: Waits) -> Result<(), Error> {
        self.status[lane] = Status::Waiting(waits);
        let group = self.group(lane, waits);
        group.waiting += 1;
        if group.is_complete() { self.release(lane, waits) } else { Ok(()) }
    }

    fn end(&mut self, lane: usize) -> Result<(), Error> {
        self.status[lane] = Status::Ended;
        for waits in [Waits::Subgroup, Waits::Workgroup, Waits::Grid] {
            let group = self.group(lane, waits);
            group.live -= 1;
            if group.is_complete() {
                self.release(lane, waits)?;
            }
        }
        Ok(())
    }

    /// Carries out the instruction that all invocations of a group wait at, and lets them go on.
    fn release(&mut self, lane: usize, waits: Waits) -> Result<(), Error> {
        self.group(lane, waits).waiting = 0;
        let waiting = |lane: &usize| self.status[*lane] == Status::Waiting(waits);
        let lanes: Vec<usize> = self.members(lane, waits).filter(waiting).collect();
        let pc = self.pcs[lanes[0]];
        if lanes.iter().any(|lane| self.pcs[*lane] != pc) {
            return Err(Error::Internal("invocations wait at different barriers of one scope".into()));
        }
        if let (Waits::Grid, Some(trap)) = (waits, &self.trap) {
            return Err(Error::Trap(trap.clone()));
        }
        match self.code.insts[pc as usize] {
            Inst::Barrier { .. } => {}
            Inst::UniformLoad { dst, buffer, index, .. } => {
                let at = self.register(lanes[0], index);
                if lanes.iter().any(|lane| self.register(*lane, index) != at) {
                    let name = self.memory.name(buffer);
                    return Err(Error::Internal(format!("a uniform load of `{name}` has two indices")));
                }
                let owner = Owner { workgroup: lanes[0] / self.size, invocation: lanes[0] };
                let value = self.memory.load(buffer, owner, at);
                lanes.iter().for_each(|lane| self.set_register(*lane, dst, value));
            }
            inst => self.combine(inst, &lanes),
        }
        // Invocations stood before it, so they have not counted it.
        self.operations += lanes.len() as u64 * self.code.operations(pc as usize, pc as usize + 1);
        for lane in lanes {
            self.pcs[lane] += 1;
            self.status[lane] = Status::Ready;
            self.ready.push(lane as u32);
        }
        Ok(())
    }

    /// A subgroup operation over the lanes that take part.
    fn combine(&mut self, inst: Inst, lanes: &[usize]) {
        let lane_id = |lane: usize| lane % self.size % self.subgroup_size;
        match inst {
            Inst::Ballot { dst, cond } => {
                let bits = lanes.iter().map(|lane| self.register(*lane, cond) << lane_id(*lane));
                let ballot = bits.fold(0, |a, b| a | b);
                lanes.iter().for_each(|lane| self.set_register(*lane, dst, ballot));
            }
            Inst::Shuffle { dst, value, lane: source } => {
                let first = lanes[0] - lane_id(lanes[0]);
                let results: Vec<u64> = lanes
                    .iter()
                    .map(|lane| {
                        let source = first as u64 + self.register(*lane, source);
                        let present = lanes.iter().find(|other| **other as u64 == source);
                        present.map_or(0, |other| self.register(*other, value))
                    })
                    .collect();
                for (lane, result) in lanes.iter().zip(results) {
                    self.set_register(*lane, dst, result);
                }
            }
            Inst::Reduce { op, ty, dst, value } => {
                let values = lanes.iter().map(|lane| self.register(*lane, value));
                let combine = |a, b| arith::binary(op.combine(), ty, a, b);
                let result = values.reduce(combine).unwrap_or(0);
                lanes.iter().for_each(|lane| self.set_register(*lane, dst, result));
            }
            _ => unreachable!("only these wait for a subgroup"),
        }
    }

    fn register(&self, lane: usize, register: u32) -> u64 {
        self.registers[lane * self.code.registers as usize + register as usize]
    }

    fn set_register(&mut self, lane: usize, register: u32, value: u64) {
        self.registers[lane * self.code.registers as usize + register as usize] = value;
    }
}
