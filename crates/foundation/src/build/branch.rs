//! What may follow an `if`.

use super::error::What;
use super::state::{self, Action, At, BlockId};
use super::{Kernel, Value};
use std::fmt;
use std::panic::Location;

/// An `if` that may go on with [`else_`](Branch::else_) or [`else_if`](Branch::else_if), called on it directly.
pub struct Branch<'k> {
    kernel: &'k Kernel,
    placed: Option<Placed>,
    /// The blocks that hold the links of the chain. What their conditions made can be used by later links.
    links: Vec<BlockId>,
}

/// Where an `if` stands: its block, its place in it, and how many values there were after it.
#[derive(Clone, Copy)]
pub(super) struct Placed {
    pub(super) block: BlockId,
    pub(super) index: usize,
    pub(super) items: usize,
}

impl fmt::Debug for Branch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Branch#{}", self.links.len())
    }
}

impl Drop for Branch<'_> {
    fn drop(&mut self) {
        let links = std::mem::take(&mut self.links);
        if !links.is_empty() {
            // It may be dropped while another build is open: that one has other blocks.
            state::with(|state| {
                if self.kernel.is_of(state) {
                    links.into_iter().for_each(|block| state.close(block));
                }
            });
        }
    }
}

impl<'k> Branch<'k> {
    pub(super) fn new(kernel: &'k Kernel, placed: Option<Placed>) -> Branch<'k> {
        Branch { kernel, placed, links: Vec::new() }
    }

    /// Runs `otherwise` where no condition of the chain held.
    #[track_caller]
    pub fn else_(mut self, otherwise: impl FnOnce()) {
        let link = self.link(otherwise, Location::caller());
        self.links.extend(link);
    }

    /// Where no condition before held: evaluates `cond` and runs `then` where it holds.
    #[track_caller]
    pub fn else_if(mut self, cond: impl FnOnce() -> Value<bool>, then: impl FnOnce()) -> Branch<'k> {
        let (at, kernel) = (Location::caller(), self.kernel);
        let mut placed = None;
        let link = self.link(|| placed = kernel.conditional(cond(), then, at), at);
        let mut links = std::mem::take(&mut self.links);
        links.extend(link);
        Branch { kernel, placed, links }
    }

    /// Fills the `else` of the `if`; gives its block, which is not closed.
    fn link(&mut self, body: impl FnOnce(), at: At) -> Option<BlockId> {
        let Placed { block, index, items } = self.placed?;
        let entered = self.kernel.with(at, |state| {
            let last = state.blocks[block].statements.len() == index + 1;
            if !last || state.items.len() != items {
                state.mistake(What::ElseApart, at);
                return None;
            }
            Some(state.enter_under(block, false))
        });
        let entered = entered.flatten()?;
        state::inside(entered, body);
        self.kernel.with(at, |state| {
            if let Some(statement) = state.blocks[block].statements.get_mut(index)
                && let Action::If { otherwise, .. } = &mut statement.action
            {
                *otherwise = Some(entered.block);
            }
        });
        Some(entered.block)
    }
}
