//! What a generated statement can see: variables, each with a level of uniformity that holds for its whole life.
//!
//! The validator follows assignments; the generator instead gives every variable a level like a type and only
//! assigns values, under control, that are at least as uniform. Whatever the validator then finds is at most as
//! divergent as the generator believes, loops included, so a generated barrier is never refused.

use vyre_foundation::{Name, Type};

/// For whom a value or control is the same: a higher level is less uniform.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// For every invocation.
    Grid,
    /// For the invocations of a workgroup.
    Workgroup,
    /// For one invocation only.
    Divergent,
}

/// A variable, loop variable or parameter.
#[derive(Clone)]
pub(super) struct Variable {
    pub(super) name: Name,
    pub(super) ty: Type,
    pub(super) level: Level,
    /// Whether the program may assign it.
    pub(super) mutable: bool,
}

/// The visible variables and the names in use.
#[derive(Default)]
pub(super) struct Variables {
    visible: Vec<Variable>,
    opened: u32,
}

/// Short names that disjoint scopes reuse, so that resolving by name alone goes wrong.
const REUSED: [&str; 8] = ["a", "b", "c", "d", "i", "j", "x", "y"];

impl Variables {
    pub(super) fn open(&mut self, variable: Variable) {
        self.visible.push(variable);
    }

    /// A name that is not visible now; `pick` chooses among the names that scopes reuse.
    pub(super) fn fresh_name(&mut self, pick: u64) -> Name {
        let reused = REUSED.get(pick as usize);
        if let Some(name) = reused.filter(|name| self.visible.iter().all(|v| v.name != **name)) {
            return Name::from(*name);
        }
        self.opened += 1;
        Name::from(format!("v{}", self.opened))
    }

    /// How many variables are visible: a mark to return to.
    pub(super) fn mark(&self) -> usize {
        self.visible.len()
    }

    /// Ends the scope that began at the mark.
    pub(super) fn close(&mut self, mark: usize) {
        self.visible.truncate(mark);
    }

    /// The variables that the scope since the mark has opened.
    pub(super) fn since(&self, mark: usize) -> &[Variable] {
        &self.visible[mark..]
    }

    /// The variables of a type that are at least as uniform as `level`.
    pub(super) fn readable(&self, ty: Type, level: Level) -> Vec<&Variable> {
        self.visible.iter().filter(|v| v.ty == ty && v.level <= level).collect()
    }

    /// The variables that may be assigned under this control.
    pub(super) fn assignable(&self, control: Level) -> Vec<&Variable> {
        self.visible.iter().filter(|v| v.mutable && v.level >= control).collect()
    }
}
