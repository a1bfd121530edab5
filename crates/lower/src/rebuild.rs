//! A kernel made anew from an edited one: what an optimizer leaves behind.
//!
//! An optimizer works on rows in place. It never removes any: it says that a row stands for another, and what becomes
//! of an item. Here that is carried out.

use crate::build::Builder;
use crate::columns;
use crate::finish;
use crate::kernel::{Item, ItemId, Kernel, RegionId, Value, ValueId};
use crate::lower::roomy;
use vyre_foundation::Type;

/// What becomes of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum Fate {
    /// It stays.
    #[default]
    Stays,
    /// A branch whose condition always holds: its first region stands in its place.
    Then,
    /// A branch whose condition never holds: its second region stands in its place.
    Otherwise,
    /// A loop that runs once: its body stands in its place.
    Once,
    /// A loop that runs at most once: a branch stands in its place.
    AtMostOnce,
    /// Nothing needs it.
    Gone,
}

impl Fate {
    /// The fate of a number, as a device has it.
    pub fn of(number: u32) -> Fate {
        use Fate::{AtMostOnce, Gone, Once, Otherwise, Stays, Then};
        let all = [Stays, Then, Otherwise, Once, AtMostOnce, Gone];
        all.into_iter().find(|fate| *fate as u32 == number).unwrap_or(Stays)
    }
}

/// A kernel's rows and items after an optimizer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// For each row its kind and arguments. New rows come after the kernel's own. Of equal ones all but one stand for
    /// another, or the new kernel says the same thing twice.
    pub rows: Vec<[u32; 4]>,
    /// For each row the one that stands for it; itself where nothing else does. What a row leads to is made of rows that
    /// exist wherever the row itself does.
    pub forward: Vec<u32>,
    /// For each item what becomes of it. The parameters and results of those that do not stay stand for other rows,
    /// where something needs them.
    pub fates: Vec<Fate>,
}

impl Edit {
    /// No change.
    pub fn of(kernel: &Kernel) -> Edit {
        let columns = &kernel.values;
        let row = |i: usize| [columns.kind[i], columns.args[0][i], columns.args[1][i], columns.args[2][i]];
        Edit {
            rows: (0..columns.len()).map(row).collect(),
            forward: (0..columns.len() as u32).collect(),
            fates: vec![Fate::Stays; kernel.items.len()],
        }
    }

    /// Makes every way to the row that stands for another one hop long. What control decides at once can make ways as
    /// long as the program.
    pub fn shorten(&mut self) {
        for row in 0..self.forward.len() as u32 {
            let last = self.resolve(row);
            let mut at = row;
            while at != last {
                at = std::mem::replace(&mut self.forward[at as usize], last);
            }
        }
    }

    /// The row that stands for a row.
    pub fn resolve(&self, mut row: u32) -> u32 {
        while self.forward[row as usize] != row {
            row = self.forward[row as usize];
        }
        row
    }
}

/// The kernel that an edit makes of a kernel.
///
/// # Panics
///
/// If the edit does not keep what it promises: a row leads to a parameter or result that does not exist there.
///
/// ```
/// use vyre_foundation::Program;
/// use vyre_lower::{Edit, lower, rebuild};
///
/// let text = "program p { buffer o: output u32[]; if global_id.x < 3 { o[global_id.x] = 1 + 2; } }";
/// let kernel = lower(&Program::parse(text).unwrap());
/// assert_eq!(rebuild(&kernel, &Edit::of(&kernel)), kernel);
/// ```
pub fn rebuild(kernel: &Kernel, edit: &Edit) -> Kernel {
    let mut rebuilding = Rebuilding {
        kernel,
        edit,
        builder: Builder::with_room(edit.rows.len()),
        new_row: vec![columns::NONE; edit.rows.len()],
        new_item: vec![None; kernel.items.len()],
        bodies: vec![Builder::ROOT; kernel.items.len()],
        asked: Vec::new(),
        nothing: ValueId(0),
    };
    rebuilding.nothing = rebuilding.builder.zero(Type::U32);
    rebuilding.region(Kernel::ENTRY, Builder::ROOT);
    rebuilding.fill();
    let mut builder = rebuilding.builder;
    let parts = finish::finish(&mut builder, &kernel.origins, &kernel.tags, &kernel.buffers);
    Kernel {
        name: kernel.name.clone(),
        workgroup_size: kernel.workgroup_size,
        subgroup_size: kernel.subgroup_size,
        buffers: kernel.buffers.clone(),
        tags: parts.tags,
        origins: parts.origins,
        values: parts.values,
        items: parts.items,
        regions: parts.regions,
        pool: parts.pool,
    }
}

struct Rebuilding<'a> {
    kernel: &'a Kernel,
    edit: &'a Edit,
    builder: Builder,
    /// The new number of each row that has one.
    new_row: Vec<u32>,
    /// The new number of each item, with the region in which it stands.
    new_item: Vec<Option<(ItemId, RegionId)>>,
    /// For each loop the region of its body.
    bodies: Vec<RegionId>,
    /// The parameters of loops and results of control that something uses and that were not filled in yet. The others
    /// stay [`nothing`](Rebuilding::nothing), and are left out at the end: what they were made of may be gone.
    asked: Vec<(ItemId, u32)>,
    nothing: ValueId,
}

impl Rebuilding<'_> {
    fn region(&mut self, old: RegionId, new: RegionId) {
        for item in self.kernel.region(old) {
            roomy(|| self.item(item, new));
        }
    }

    fn item(&mut self, old: ItemId, region: RegionId) {
        let item = self.kernel.item(old);
        match (self.edit.fates[old.index()], &item) {
            (Fate::Gone, _) => {}
            (Fate::Then, Item::If { then, .. }) => self.region(*then, region),
            (Fate::Otherwise, Item::If { otherwise, .. }) => self.region(*otherwise, region),
            (Fate::Once, Item::Loop { body, .. }) => self.region(*body, region),
            (fate, _) => {
                // Its number is needed for what is inside it.
                let placeholder = Item::Barrier { scope: vyre_foundation::Scope::Grid };
                let origin = self.kernel.items.origin[old.index()];
                let new = self.builder.item(region, placeholder, origin);
                self.new_item[old.index()] = Some((new, region));
                let item = self.renewed(old, item, region, fate == Fate::AtMostOnce);
                self.builder.items[new.index()] = item;
            }
        }
    }

    fn renewed(&mut self, old: ItemId, item: Item, region: RegionId, at_most_once: bool) -> Item {
        match item {
            Item::If { cond, then, otherwise, yields } => {
                let cond = self.row(cond);
                let arms = [then, otherwise].map(|arm| {
                    let new = self.builder.region(region);
                    self.region(arm, new);
                    new
                });
                let yields = vec![(self.nothing, self.nothing); yields.len()];
                Item::If { cond, then: arms[0], otherwise: arms[1], yields }
            }
            Item::Loop { guard, first, body, again, .. } => {
                let guard = self.row(guard);
                let inside = self.builder.region(region);
                self.bodies[old.index()] = inside;
                self.region(body, inside);
                let count = first.len();
                if at_most_once {
                    let otherwise = self.builder.region(region);
                    let yields = vec![(self.nothing, self.nothing); count];
                    return Item::If { cond: guard, then: inside, otherwise, yields };
                }
                let nothing = vec![self.nothing; count];
                let again = self.row(again);
                Item::Loop { guard, first: nothing.clone(), body: inside, next: nothing, again }
            }
            mut effect => {
                effect.for_each_operand_mut(|row| *row = self.row(*row));
                effect
            }
        }
    }

    /// Fills in what goes around loops and what branches leave, as far as something uses it.
    fn fill(&mut self) {
        while let Some((old, index)) = self.asked.pop() {
            let Some((new, _)) = self.new_item[old.index()] else { continue };
            let (a, b) = self.kernel.pair(old, index);
            let (a, b) = (self.row(a), self.row(b));
            let was_loop = matches!(self.kernel.item(old), Item::Loop { .. });
            match &mut self.builder.items[new.index()] {
                // The pair of a loop is its first and its next value.
                Item::If { yields, .. } if was_loop => yields[index as usize] = (b, a),
                Item::If { yields, .. } => yields[index as usize] = (a, b),
                Item::Loop { first, next, .. } => {
                    (first[index as usize], next[index as usize]) = (a, b);
                }
                _ => {}
            }
        }
    }

    /// The new number of a row; what it is made of comes first.
    fn row(&mut self, root: ValueId) -> ValueId {
        let root = self.edit.resolve(root.0);
        let mut pending = vec![root];
        while let Some(&top) = pending.last() {
            let at = top as usize;
            if self.new_row[at] != columns::NONE {
                pending.pop();
                continue;
            }
            let [kind, args @ ..] = self.edit.rows[at];
            let mut args = args;
            let before = pending.len();
            for arg in args.iter_mut().take(columns::op::operands(kind & 0xff)) {
                let operand = self.edit.resolve(*arg);
                match self.new_row[operand as usize] {
                    columns::NONE => pending.push(operand),
                    new => *arg = new,
                }
            }
            if pending.len() > before {
                // In the order in which rows are numbered in the end.
                pending[before..].reverse();
                continue;
            }
            pending.pop();
            self.new_row[at] = self.made(columns::value(kind, args)).0;
        }
        ValueId(self.new_row[root as usize])
    }

    /// A row whose operands have their new numbers.
    fn made(&mut self, value: Value) -> ValueId {
        let place = |this: &Self, item: ItemId| match this.new_item[item.index()] {
            Some(place) => place,
            None => panic!("an edit lets {value:?} stand where {item:?} has not been reached"),
        };
        if let Value::Param { item, index, .. } | Value::Out { item, index, .. } = value
            && self.kernel.items.lists[1][item.index()] > 0
        {
            self.asked.push((item, index));
        }
        match value {
            Value::Param { item, index, ty } => {
                let value = Value::Param { item: place(self, item).0, index, ty };
                self.builder.row(value, self.bodies[item.index()])
            }
            Value::Out { item, index, ty } => {
                let (item, region) = place(self, item);
                self.builder.row(Value::Out { item, index, ty }, region)
            }
            value => self.builder.distinct(value),
        }
    }
}
