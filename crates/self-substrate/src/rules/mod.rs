//! What may be written instead of what: the rules of the optimizer, as data.
//!
//! A [`Rule`] says that one term may stand for another. Everything comes from the one table in [`RULES`]: the host
//! applies it, the device's program is generated from it, its documentation is printed from it, and its tests go
//! through it.
//!
//! Two promises, both tests:
//! - **Right.** Both sides are the same value for every value of their variables, in the arithmetic of the language. A
//!   rule that does not hold for `f32`, because of NaN, signed zeros or rounding, does not list `f32`. Two NaNs are the
//!   same value: a store and a bitcast let only one out.
//! - **Ends.** The result weighs less than the pattern ([`Term::weight`]), and holds no variable more often.
//!
//! An operand may stand on either side where order does not matter, and a constant always comes last
//! ([`canonical`](crate::row::Row::canonical)), so patterns are written that way only.

mod table;
mod term;

pub use table::RULES;
pub use term::{Lit, Term, Ty};

use std::fmt;
use std::sync::LazyLock;
use vyre_foundation::Type;

/// One term for another.
#[derive(Debug)]
pub struct Rule {
    /// Its name in statistics.
    pub name: &'static str,
    /// For which types it holds.
    pub types: Types,
    /// What is replaced.
    pub pattern: Term,
    /// What must hold of its constants.
    pub when: Option<Term>,
    /// What stands there afterwards.
    pub result: Term,
}

/// The types that the letters `T`, `A` and `B` of a rule stand for.
pub type Letters = [Type; 3];

/// For which types a rule holds.
#[derive(Clone, Copy, Debug)]
pub enum Types {
    /// For each of these as `T`.
    Each(&'static [Type]),
    /// For all choices of `T`, `A` and `B` that pass.
    All(fn(Letters) -> bool),
}

impl Types {
    /// Every choice.
    pub fn choices(self) -> Vec<Letters> {
        match self {
            Types::Each(types) => types.iter().map(|ty| [*ty; 3]).collect(),
            Types::All(holds) => {
                let mut all = Vec::new();
                for t in Type::ALL {
                    for a in Type::ALL {
                        all.extend(
                            Type::ALL.map(|b| [t, a, b]).into_iter().filter(|letters| holds(*letters)),
                        );
                    }
                }
                all
            }
        }
    }
}

/// A rule with types in place of its letters.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// Which rule of [`RULES`].
    pub number: usize,
    /// What its letters stand for.
    pub letters: Letters,
}

impl Instance {
    /// The rule.
    pub fn rule(&self) -> &'static Rule {
        &RULES[self.number]
    }
}

/// The rules by the kind of row that they replace.
pub(crate) struct Index {
    /// Kinds, in order, with where their instances begin.
    kinds: Vec<(u32, usize)>,
    instances: Vec<Instance>,
}

impl Index {
    fn new() -> Index {
        let mut all: Vec<(u32, Instance)> = Vec::new();
        for (number, rule) in RULES.iter().enumerate() {
            let choices = rule.types.choices().into_iter();
            all.extend(
                choices
                    .filter_map(|letters| Some((rule.pattern.kind(letters)?, Instance { number, letters }))),
            );
        }
        // Rules of one kind stay in the order of the table: the first that fits is taken.
        all.sort_by_key(|(kind, _)| *kind);
        let mut kinds: Vec<(u32, usize)> = Vec::new();
        for (i, (kind, _)) in all.iter().enumerate() {
            if kinds.last().is_none_or(|(last, _)| last != kind) {
                kinds.push((*kind, i));
            }
        }
        Index { kinds, instances: all.into_iter().map(|(_, instance)| instance).collect() }
    }

    /// The rules for rows of a kind.
    pub(crate) fn of(&self, kind: u32) -> &[Instance] {
        let Ok(at) = self.kinds.binary_search_by_key(&kind, |(kind, _)| *kind) else { return &[] };
        let end = self.kinds.get(at + 1).map_or(self.instances.len(), |(_, start)| *start);
        &self.instances[self.kinds[at].1..end]
    }
}

pub(crate) static INDEX: LazyLock<Index> = LazyLock::new(Index::new);

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} => {}", self.pattern, self.result)?;
        match &self.when {
            Some(when) => write!(f, " where {when}"),
            None => Ok(()),
        }
    }
}
