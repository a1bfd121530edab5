//! Branches and loops, also on drivers that cannot be trusted with them.
//!
//! Some drivers end a loop after so many rounds, and some forget conditions that are nested too deep; both without a
//! word. Which do is found out by trying (`probe`). There a loop is *watched*: each round notes whether another one is to
//! follow, in a way that the driver cannot see through, and who leaves the loop with that note was cut off. And branches
//! that are nested too deep are flattened: every operation is total, so both sides are computed, effects ask for a
//! predicate, and results are selected.
//!
//! A driver that fills its vectors up with lanes that do not exist lets these decide about loops too, by what they have
//! loaded, which is nothing; at the next barrier nobody meets any more. So conditions ask whether the lane exists.

use super::build::{Builder, Value};
use super::{Emitter, Zeros};
use naga::{
    AddressSpace, Block, GlobalVariable, Handle, LocalVariable, MemoryDecorations, ResourceBinding, Scalar,
    Statement, StorageAccess,
};
use vyre_driver::{Error, Result};
use vyre_lower::{Item, ItemId, Kernel, RegionId, ValueId};

/// What a driver cannot be trusted with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Quirks {
    /// It ends loops after some tens of thousands of rounds.
    pub(crate) cuts_loops: bool,
    /// It forgets conditions that are nested deep.
    pub(crate) forgets_nesting: bool,
    /// A compare-exchange may leave a value alone that is the expected one.
    pub(crate) weak_exchange: bool,
    /// It looks for conditions that are made of parameters alone, along every way through what they are made of. There
    /// are too many ways where values are used more than once.
    pub(crate) follows_parameters: bool,
}

/// How many blocks may be open on a driver that forgets them.
const DEPTH: usize = 64;

/// How many blocks may be open anywhere: what reads modules walks blocks by recursion. Every early return opens one.
const DEEPEST: usize = 576;

/// How many rows a body that is unrolled has at most.
const SMALL: usize = 48;

/// How many rounds drivers unroll at most.
const UNROLLED: u32 = 32;

/// The most lanes that a driver computes at once.
const VECTOR: u64 = 32;

/// So few rounds no driver cuts off.
const ROUNDS: u64 = 1 << 14;

/// Whether the loops of a kernel are watched.
pub(crate) fn is_watched(kernel: &Kernel, quirks: Quirks) -> bool {
    quirks.cuts_loops && rounds(kernel) > ROUNDS
}

/// Whether a driver may fill up the workgroups of a kernel with lanes that do not exist, and there is control that they
/// could disturb.
pub(super) fn has_gaps(kernel: &Kernel) -> bool {
    let (row, lanes) = (kernel.workgroup_size.size()[0], kernel.workgroup_size.invocations());
    let is_full = u64::from(row).is_multiple_of(VECTOR) && lanes.is_multiple_of(VECTOR);
    !is_full && kernel.regions.start.len() > 1
}

/// How many rounds all loops of a kernel make in one invocation, where that is known; otherwise far too many.
fn rounds(kernel: &Kernel) -> u64 {
    let mut outer = vec![1u64; kernel.regions.start.len()];
    let mut sum = 0u64;
    // Regions are numbered before what is nested in them.
    for region in kernel.region_ids() {
        let here = outer[region.index()];
        for id in kernel.region(region) {
            match kernel.item(id) {
                Item::If { then, otherwise, .. } => {
                    outer[then.index()] = here;
                    outer[otherwise.index()] = here;
                }
                Item::Loop { body, .. } => {
                    let rounds = kernel.counter(id).and_then(|counter| counter.rounds(kernel));
                    let all = here.saturating_mul(rounds.map_or(u64::MAX, u64::from));
                    outer[body.index()] = all;
                    sum = sum.saturating_add(all);
                }
                // These are loops over the lanes of a subgroup.
                Item::Ballot { .. } | Item::Reduce { .. } => {
                    let all = here.saturating_mul(u64::from(kernel.subgroup_size));
                    sum = sum.saturating_add(all);
                }
                _ => {}
            }
        }
    }
    sum
}

/// The note of an invocation that a loop was cut off, and the word for the host.
pub(super) fn watch(b: &mut Builder, binding: u32) -> (Handle<LocalVariable>, Handle<GlobalVariable>) {
    let ty = b.array_type(Scalar::U32, false, None);
    let word = b.global(GlobalVariable {
        name: Some("cut_off".to_owned()),
        space: AddressSpace::Storage { access: StorageAccess::LOAD | StorageAccess::STORE },
        binding: Some(ResourceBinding { group: 0, binding }),
        ty,
        init: None,
        memory_decorations: MemoryDecorations::empty(),
    });
    let ty = b.scalar_type(Scalar::U32);
    (b.local(ty), word)
}

impl Emitter<'_> {
    /// At the end: tells the host that a loop was cut off.
    pub(super) fn report_cut(&mut self) {
        let Some((note, word)) = self.watch else { return };
        let noted = self.b.load_local(note);
        let (zero, one) = (self.b.u32(0), self.b.u32(1));
        let condition = self.b.binary(naga::BinaryOperator::NotEqual, noted, zero);
        self.b.open();
        let base = self.b.global_value(word);
        let pointer = self.b.access(base, zero);
        self.b.store(pointer, one);
        let accept = self.b.close();
        self.b.push(Statement::If { condition, accept, reject: Block::new() });
    }

    /// A condition that no lane fulfils that does not exist.
    fn existing(&mut self, condition: Value) -> Value {
        match self.exists {
            Some(exists) => self.b.both(condition, exists),
            None => condition,
        }
    }

    /// Whether this lane exists, where a driver may have others.
    pub(super) fn note_existence(&mut self) {
        let Some(Zeros { others: zero, .. }) = self.zeros.filter(|_| has_gaps(self.kernel)) else { return };
        // What the index is beyond that of its row: the id on the first axis may be known to be 0. That it is always
        // inside must not be known either.
        let [row, column, _] = self.kernel.workgroup_size.size();
        let mut x = self.arguments.index;
        for (axis, size) in [(1, row), (2, row * column)] {
            let id = self.b.access_index(self.arguments.local, axis);
            let size = self.b.u32(size);
            let before = self.b.mul(id, size);
            x = self.b.sub(x, before);
        }
        let x = self.b.xor(x, zero);
        let row = self.b.u32(row);
        self.exists = Some(self.b.less(x, row));
    }

    /// A condition and the predicate, where there is one.
    pub(super) fn predicated(&mut self, condition: Value) -> Value {
        match self.predicate {
            Some(predicate) => self.b.both(predicate, condition),
            None => condition,
        }
    }

    pub(super) fn branch(
        &mut self,
        id: ItemId,
        cond: ValueId,
        regions: [RegionId; 2],
        yields: &[(ValueId, ValueId)],
    ) -> Result<()> {
        let condition = self.get(cond)?;
        if self.b.depth() >= self.deepest() || self.predicate.is_some() {
            return self.flat_branch(id, condition, regions, yields);
        }
        let variables: Vec<_> = (0..yields.len() as u32).map(|k| self.variable(id, k)).collect();
        let [accept, reject] = [0, 1].map(|side: usize| -> Result<Block> {
            self.b.open();
            let ran = self.region(regions[side]).and_then(|()| {
                let yielded = yields.iter().map(|(a, b)| if side == 0 { *a } else { *b });
                self.store_all(&variables, yielded)
            });
            let block = self.b.close();
            ran.map(|()| block)
        });
        // A lane that does not exist may as well do the other side.
        let condition = self.existing(condition);
        self.b.push(Statement::If { condition, accept: accept?, reject: reject? });
        self.load_results(id, &variables);
        Ok(())
    }

    /// From how many open blocks on branches are no blocks of their own.
    fn deepest(&self) -> usize {
        if self.form.manner.quirks.forgets_nesting { DEPTH } else { DEEPEST }
    }

    /// Both sides of a branch, with their effects under a predicate.
    fn flat_branch(
        &mut self,
        id: ItemId,
        condition: Value,
        regions: [RegionId; 2],
        yields: &[(ValueId, ValueId)],
    ) -> Result<()> {
        let outer = self.predicate;
        let not = self.b.not(condition);
        for (side, region) in [condition, not].into_iter().zip(regions) {
            self.predicate = outer;
            self.predicate = Some(self.predicated(side));
            self.region(region)?;
        }
        self.predicate = outer;
        for (k, (a, b)) in (0..).zip(yields) {
            if self.named.contains_key(&(id, k)) {
                let (a, b) = (self.get(*a)?, self.get(*b)?);
                let value = self.b.select(condition, a, b);
                self.name(id, k, value);
            }
        }
        Ok(())
    }

    fn store_all(
        &mut self,
        variables: &[Option<Handle<LocalVariable>>],
        values: impl Iterator<Item = ValueId>,
    ) -> Result<()> {
        for (value, variable) in values.zip(variables) {
            if let Some(variable) = variable {
                let value = self.get(value)?;
                self.b.store_local(*variable, value);
            }
        }
        Ok(())
    }

    fn load_results(&mut self, id: ItemId, variables: &[Option<Handle<LocalVariable>>]) {
        for (k, variable) in (0..).zip(variables) {
            if let Some(variable) = variable {
                let value = self.b.load_local(*variable);
                self.name(id, k, value);
            }
        }
    }

    /// A guarded do-while. All parameters are read before the body runs and written after it.
    pub(super) fn repeat(
        &mut self,
        id: ItemId,
        guard: ValueId,
        first: &[ValueId],
        body: RegionId,
        (next, again): (&[ValueId], ValueId),
    ) -> Result<()> {
        let guard = self.get(guard)?;
        let condition = self.predicated(guard);
        let condition = self.existing(condition);
        let variables: Vec<_> = (0..first.len() as u32).map(|k| self.variable(id, k)).collect();
        self.store_all(&variables, first.iter().copied())?;
        let watched = self.begin_watch();
        // From here on the guard says it.
        let predicate = self.predicate.take();
        self.b.open();
        self.b.open();
        let ran = self.body(id, &variables, body, (next, again), watched);
        let mut break_if = ran.as_ref().ok().copied();
        if let (Some(condition), true) = (break_if, self.is_small(body) && !self.is_long(id)) {
            // Drivers unroll a loop that breaks in its body, and leave one alone that breaks behind it. That is faster
            // for small ones, and takes too long to compile for others. One that is not unrolled anyway is a fifth
            // faster with the break behind it on a driver that runs on the CPU: less goes into its mask.
            let accept = Block::from_vec(vec![Statement::Break]);
            self.b.push(Statement::If { condition, accept, reject: Block::new() });
            break_if = None;
        }
        let inside = self.b.close();
        self.b.push(Statement::Loop { body: inside, continuing: Block::new(), break_if });
        let accept = self.b.close();
        self.predicate = predicate;
        ran?;
        self.b.push(Statement::If { condition, accept, reject: Block::new() });
        self.end_watch(watched);
        self.load_results(id, &variables);
        Ok(())
    }

    /// Whether a region has nothing in it that repeats, and not much else.
    fn is_small(&self, region: RegionId) -> bool {
        let has_control = self
            .kernel
            .region(region)
            .any(|id| matches!(self.kernel.item(id), Item::If { .. } | Item::Loop { .. }));
        !has_control && self.by_home[region.index()].len() <= SMALL
    }

    /// Whether a loop is known to make more rounds than drivers unroll.
    fn is_long(&self, id: ItemId) -> bool {
        let rounds = self.kernel.counter(id).and_then(|counter| counter.rounds(self.kernel));
        rounds.is_some_and(|rounds| rounds > UNROLLED)
    }

    /// A round of a loop. Gives whether it was the last one.
    fn body(
        &mut self,
        id: ItemId,
        variables: &[Option<Handle<LocalVariable>>],
        body: RegionId,
        (next, again): (&[ValueId], ValueId),
        watched: Option<Handle<LocalVariable>>,
    ) -> Result<Value> {
        let deepest = self.deepest();
        if self.b.depth() >= deepest + 8 {
            return Err(Error::Unsupported {
                feature: "a loop inside so many others".to_owned(),
                backend: crate::NAME,
                help: format!("the driver takes about {deepest} conditions and loops in each other"),
            });
        }
        self.load_results(id, variables);
        self.region(body)?;
        self.store_all(variables, next.iter().copied())?;
        let again = self.get(again)?;
        let again = self.existing(again);
        self.note_round(watched, again);
        Ok(self.b.not(again))
    }

    /// Notes whether another round follows, so that the driver does not know it.
    pub(super) fn note_round(&mut self, watched: Option<Handle<LocalVariable>>, again: Value) {
        if let (Some(watched), Some(Zeros { others: zero, .. })) = (watched, self.zeros) {
            let (none, one) = (self.b.u32(0), self.b.u32(1));
            let more = self.b.select(again, one, none);
            let more = self.b.xor(more, zero);
            self.b.store_local(watched, more);
        }
    }

    /// The note that another round of a loop is to follow, where it is watched.
    pub(super) fn begin_watch(&mut self) -> Option<Handle<LocalVariable>> {
        self.watch?;
        let ty = self.b.scalar_type(Scalar::U32);
        let watched = self.b.local(ty);
        let none = self.b.u32(0);
        self.b.store_local(watched, none);
        Some(watched)
    }

    pub(super) fn end_watch(&mut self, watched: Option<Handle<LocalVariable>>) {
        let (Some(watched), Some((note, _))) = (watched, self.watch) else { return };
        let (left, noted) = (self.b.load_local(watched), self.b.load_local(note));
        let noted = self.b.or(noted, left);
        self.b.store_local(note, noted);
    }
}
