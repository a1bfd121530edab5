//! Which values get a `let` of their own and which stand where they are used.

use super::state::{BlockId, ItemId, Kind, State};

/// An expression of more parts than this is cut into `let`s, which keeps lines readable and depth far from the
/// limit.
const LARGEST: u32 = 32;

/// What is decided.
pub(super) struct Plan {
    /// For each item whether a `let` names it.
    pub(super) named: Vec<bool>,
    /// For each item whether anything uses it.
    pub(super) used: Vec<bool>,
}

/// A point of a block between two fences.
#[derive(Clone, Copy, Default)]
struct Site {
    block: BlockId,
    fence: u32,
}

#[derive(Clone, Copy, Default)]
struct Use {
    count: u32,
    last: Site,
}

impl Plan {
    pub(super) fn of(state: &State) -> Plan {
        let uses = uses(state);
        let used = uses.iter().map(|u| u.count > 0).collect();
        let mut named: Vec<bool> = (0..state.items.len()).map(|id| is_named(state, id, &uses[id])).collect();
        let mut sizes = vec![1u32; state.items.len()];
        // Operands come before what uses them.
        for (id, item) in state.items.iter().enumerate() {
            if matches!(item.kind, Kind::Pure | Kind::Read) && !named[id] {
                let size = 1 + item.args().iter().map(|arg| sizes[*arg as usize]).sum::<u32>();
                named[id] = size > LARGEST && item.kind == Kind::Pure && uses[id].count > 0;
                sizes[id] = if named[id] { 1 } else { size };
            }
        }
        Plan { named, used }
    }
}

/// How often each item is used by what is used itself, and where.
fn uses(state: &State) -> Vec<Use> {
    let mut uses = vec![Use::default(); state.items.len()];
    let note = |uses: &mut Vec<Use>, id: ItemId, site: Site| {
        let u = &mut uses[id as usize];
        *u = Use { count: u.count.saturating_add(1), last: site };
    };
    for (block, recorded) in state.blocks.iter().enumerate() {
        for statement in &recorded.statements {
            let site = Site { block, fence: statement.fence };
            for id in statement.action.operands().into_iter().flatten() {
                note(&mut uses, id, site);
            }
        }
    }
    for routine in &state.routines {
        let site = Site { block: routine.block, fence: state.blocks[routine.block].fence };
        note(&mut uses, routine.result, site);
    }
    // What uses an item comes after it, so its uses are complete when it is met.
    for (id, item) in state.items.iter().enumerate().rev() {
        let own = Site { block: item.block, fence: item.fence };
        let site = match item.kind {
            Kind::Effect => own,
            _ if uses[id].count == 0 => continue,
            _ if is_named(state, id, &uses[id]) => own,
            _ => uses[id].last,
        };
        for arg in item.args() {
            note(&mut uses, *arg, site);
        }
    }
    uses
}

/// Whether an item needs a name for the sake of its uses.
fn is_named(state: &State, id: usize, uses: &Use) -> bool {
    let item = &state.items[id];
    let site = uses.last;
    match (item.kind, uses.count) {
        // An effect is a statement already.
        (Kind::Leaf | Kind::Effect, _) | (_, 0) => false,
        // Out of a loop, it is computed once.
        (Kind::Pure, 1) => state.blocks[site.block].innermost_loop != state.blocks[item.block].innermost_loop,
        // Between it and its use nothing may happen.
        (Kind::Read, 1) => site.block != item.block || site.fence != item.fence,
        _ => true,
    }
}
