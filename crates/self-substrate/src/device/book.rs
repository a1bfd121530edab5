//! The rules as words that a program reads: for each kind of row what may be done with it, and how.
//!
//! An *alternative* is a rule with types in place of letters and with operands on one side or the other where order does
//! not matter. It says of what kind the operands of a row must be; where they are, its *code* looks further, computes
//! constants and says what stands there instead. Folding is an alternative, too: the first one of every kind.
//!
//! Code is made of words, the operation in the lowest byte; see [`code`]. What it looks at are *places*: an operand of the
//! row, or an operand of that. Constants are computed on a small stack.

use super::arithmetic::Arithmetic;
use crate::row::{Row, is_commutative, mirrored};
use crate::rules::{Instance, RULES, Rule, Term};
use vyre_foundation::{BinOp, Type, UnOp};
use vyre_lower::columns::{kind, op};

/// The operations of code. Two places stand behind the operation, four bits each.
pub(super) mod code {
    /// Goes on if the rows at two places are the same.
    pub(crate) const SAME: u32 = 0;
    /// Goes on if the row at a place is of the kind that the next word says.
    pub(crate) const KIND: u32 = 1;
    /// Goes on if the constant at a place has the bits that the next two words say.
    pub(crate) const BITS: u32 = 2;
    /// Goes on if the constants at two places are the same.
    pub(crate) const SAME_BITS: u32 = 3;
    /// Pushes the constant at a place.
    pub(crate) const PUSH: u32 = 4;
    /// Pushes the next two words.
    pub(crate) const LITERAL: u32 = 5;
    /// Computes: the number of the operation in the next word, of as many values from the stack as stand in the second byte.
    pub(crate) const COMPUTE: u32 = 6;
    /// Goes on if what is on the stack is not 0, and takes it off.
    pub(crate) const WHEN: u32 = 7;
    /// The row at a place stands for this one.
    pub(crate) const OTHER: u32 = 8;
    /// The row is of the kind in the next word, with as many operands as stand in the second byte, of which each takes
    /// two words: its place and [`ANY_KIND`](super::ANY_KIND), or 0 and the kind of the constant that it is, the next one
    /// on the stack. A constant has one operand, itself.
    pub(crate) const ROW: u32 = 9;
}

/// The kind that an operand may have if it may have any. No row has it.
pub(super) const ANY_KIND: u32 = u32::MAX;

/// Words of an alternative: the kinds of the operands, where its code begins, and the number of its rule.
pub(super) const ALTERNATIVE: u32 = 5;

/// Words that each kind has: where its alternatives begin, how many there are, its form with operands the other way round,
/// and when it takes that.
pub(super) const HEAD: u32 = 4;

/// When a row takes its form with operands the other way round. If its second operand is a constant it never does.
pub(super) mod turn {
    /// Never.
    pub(crate) const NEVER: u32 = 0;
    /// If the first operand is a constant.
    pub(crate) const CONSTANT: u32 = 1;
    /// If the first operand is a constant, or has the larger number.
    pub(crate) const ORDER: u32 = 2;
    /// Always.
    pub(crate) const ALWAYS: u32 = 3;
}

/// An operand of a row, or of that the second number.
type Place = (u32, Option<u32>);

/// A place in four bits.
fn place((operand, inner): Place) -> u32 {
    operand | inner.unwrap_or(3) << 2
}

/// The tables.
pub(super) struct Book {
    /// For each kind, by [`Book::key`], the words of its head.
    pub(super) heads: Vec<u32>,
    /// The alternatives of all kinds.
    pub(super) alternatives: Vec<u32>,
    /// The code of all alternatives.
    pub(super) code: Vec<u32>,
    /// What code computes.
    pub(super) arithmetic: Arithmetic,
}

const TYPES: u32 = Type::ALL.len() as u32;
const BINARIES: u32 = BinOp::ALL.len() as u32;
const UNARIES: u32 = UnOp::ALL.len() as u32;

/// Where the kinds of each operation begin among the keys; those before `BINARY` have none.
pub(super) const fn first_key(operation: u32) -> u32 {
    match operation {
        op::BINARY => 0,
        op::UNARY => BINARIES * TYPES,
        op::SELECT => (BINARIES + UNARIES) * TYPES,
        op::CAST => (BINARIES + UNARIES + 1) * TYPES,
        op::BITCAST => (BINARIES + UNARIES + 1 + TYPES) * TYPES,
        op::FMA => (BINARIES + UNARIES + 1 + 2 * TYPES) * TYPES,
        _ => (BINARIES + UNARIES + 2 + 2 * TYPES) * TYPES,
    }
}

impl Book {
    /// The number of a kind among those that have alternatives: what tells it from others is the variant or, of
    /// conversions, the result.
    fn key(kind: u32) -> usize {
        let row = Row { kind, args: [0; 3] };
        let which = match row.op() {
            op::CAST | op::BITCAST => kind >> 24,
            _ => row.variant() as u32,
        };
        (first_key(row.op()) + which * TYPES + (kind >> 16 & 0xff)) as usize
    }

    pub(super) fn new() -> Book {
        let mut kinds = foldable();
        kinds.sort_by_key(|kind| Book::key(*kind));
        let mut rules: Vec<Vec<Instance>> = vec![Vec::new(); first_key(op::OUT) as usize];
        for (number, rule) in RULES.iter().enumerate() {
            for letters in rule.types.choices() {
                if let Some(kind) = rule.pattern.kind(letters) {
                    rules[Book::key(kind)].push(Instance { number, letters });
                }
            }
        }
        let mut book = Book {
            heads: vec![0; rules.len() * HEAD as usize],
            alternatives: Vec::new(),
            code: Vec::new(),
            arithmetic: Arithmetic::new(&kinds),
        };
        for kind in kinds {
            let key = Book::key(kind);
            let begin = book.alternatives.len() as u32;
            book.fold(kind);
            rules[key].iter().for_each(|instance| book.rule(instance));
            let count = (book.alternatives.len() as u32 - begin) / ALTERNATIVE;
            let (turned, when) = turned(kind);
            let head = [begin, count, turned, when];
            book.heads[key * HEAD as usize..][..HEAD as usize].copy_from_slice(&head);
        }
        book
    }

    fn alternative(&mut self, needs: [u32; 3], rule: usize) {
        self.alternatives.extend(needs);
        self.alternatives.extend([self.code.len() as u32, rule as u32]);
    }

    fn compute(&mut self, kind: u32) {
        let operands = op::operands(kind & 0xff) as u32;
        self.code.extend([code::COMPUTE | operands << 8, self.arithmetic.number(kind)]);
    }

    /// A row of constants is a constant.
    fn fold(&mut self, kind: u32) {
        let (from, to) = (Row { kind, args: [0; 3] }.operand_type(), Row { kind, args: [0; 3] }.ty());
        let operands = op::operands(kind & 0xff);
        let mut needs = [ANY_KIND; 3];
        needs[..operands].fill(constant(from));
        if kind & 0xff == op::SELECT {
            needs[0] = constant(Type::Bool);
        }
        self.alternative(needs, RULES.len());
        let places = (0..operands as u32).map(|operand| (operand, None));
        self.code.extend(places.map(|at| code::PUSH | place(at) << 8));
        self.compute(kind);
        self.constant_row(to);
    }

    fn constant_row(&mut self, ty: Type) {
        self.code.extend([code::ROW | 1 << 8, constant(ty), 0, constant(ty)]);
    }

    /// A rule, for every side on which operands may stand, in the order in which the host tries them.
    fn rule(&mut self, instance: &Instance) {
        let Instance { number, letters } = *instance;
        let rule = instance.rule();
        let operands = rule.pattern.operands(letters);
        for outer in turns(&rule.pattern, letters[0]) {
            let mut choices: Vec<Vec<bool>> = vec![Vec::new()];
            // Which side is tried first follows the order of the operands in the pattern, not in the row.
            for (term, ty) in &operands {
                let inner = turns(term, *ty);
                choices = choices
                    .into_iter()
                    .flat_map(|before| inner.iter().map(move |turn| [before.clone(), vec![*turn]].concat()))
                    .collect();
            }
            for inner in choices {
                let mut matcher = Matcher { book: self, instance, any: [None; 4], constants: [None; 4] };
                matcher.alternative(number, rule, outer, &inner);
            }
        }
    }
}

/// The kind of a constant.
fn constant(ty: Type) -> u32 {
    kind(op::CONST, 0, ty, ty)
}

/// Whether operands stand as the term says, or the other way round; all ways in which a row can fit. Where a constant
/// stands second it only ever does: one of two constants is folded.
fn turns(term: &Term, ty: Type) -> Vec<bool> {
    let (either_way, constant_last) = match term {
        Term::Binary(operator, own, a, b) => {
            let ty = if *own == crate::rules::Ty::T { ty } else { own.of([ty; 3]) };
            (is_commutative(*operator, ty), b.is_constant() && !a.is_constant())
        }
        Term::Fma(..) => (true, false),
        _ => (false, false),
    };
    if either_way && !constant_last { vec![false, true] } else { vec![false] }
}

/// Every kind of row that is computed of its operands alone.
fn foldable() -> Vec<u32> {
    let mut kinds = vec![kind(op::FMA, 0, Type::F32, Type::F32)];
    for ty in Type::ALL {
        let binary = BinOp::ALL.into_iter().filter_map(|operator| Some((operator, operator.result(ty)?)));
        kinds.extend(binary.map(|(operator, result)| kind(op::BINARY, operator as u32, ty, result)));
        let unary = UnOp::ALL.into_iter().filter_map(|operator| Some((operator, operator.result(ty)?)));
        kinds.extend(unary.map(|(operator, result)| kind(op::UNARY, operator as u32, ty, result)));
        kinds.push(kind(op::SELECT, 0, ty, ty));
        kinds.extend(Type::ALL.map(|to| kind(op::CAST, 0, ty, to)));
        let same_width = |to: &Type| ty != Type::Bool && *to != Type::Bool && to.bits() == ty.bits();
        kinds.extend(Type::ALL.into_iter().filter(same_width).map(|to| kind(op::BITCAST, 0, ty, to)));
    }
    kinds
}

/// The form with operands the other way round, and when a row takes it: see [`Row::canonical`].
fn turned(of: u32) -> (u32, u32) {
    let row = Row { kind: of, args: [0; 3] };
    if row.op() == op::FMA {
        return (of, turn::ORDER);
    }
    if row.op() != op::BINARY {
        return (of, turn::NEVER);
    }
    let operator = BinOp::ALL[row.variant()];
    if is_commutative(operator, row.operand_type()) {
        return (of, turn::ORDER);
    }
    let when = if matches!(operator, BinOp::Gt | BinOp::Ge) { turn::ALWAYS } else { turn::CONSTANT };
    mirrored(operator).map_or((of, turn::NEVER), |operator| {
        (kind(op::BINARY, operator as u32, row.operand_type(), row.ty()), when)
    })
}

/// Writes the code of an alternative.
struct Matcher<'b> {
    book: &'b mut Book,
    instance: &'b Instance,
    /// Where the variables of the rule were first met.
    any: [Option<Place>; 4],
    constants: [Option<Place>; 4],
}

impl Matcher<'_> {
    fn alternative(&mut self, number: usize, rule: &Rule, outer: bool, inner: &[bool]) {
        let letters = self.instance.letters;
        let operands = rule.pattern.operands(letters);
        let mut needs = [ANY_KIND; 3];
        let at = |index: usize| if outer && index < 2 { 1 - index } else { index };
        for (index, (term, ty)) in operands.iter().enumerate() {
            needs[at(index)] = match term {
                Term::Any(_) => ANY_KIND,
                Term::Const(_) | Term::Lit(_) => constant(*ty),
                term => term.kind(letters).unwrap_or(ANY_KIND),
            };
        }
        self.book.alternative(needs, number);
        for (index, ((term, ty), turned)) in operands.iter().zip(inner).enumerate() {
            let operand = at(index) as u32;
            self.leaf(term, *ty, (operand, None));
            for (index, (term, ty)) in (0..).zip(term.operands(letters)) {
                let inner = (operand, Some(if *turned && index < 2 { 1 - index } else { index }));
                if matches!(term, Term::Const(_) | Term::Lit(_)) {
                    self.book.code.extend([code::KIND | place(inner) << 8, constant(ty)]);
                }
                self.leaf(term, ty, inner);
            }
        }
        if let Some(when) = &rule.when {
            self.push(when, Type::Bool);
            self.book.code.push(code::WHEN);
        }
        self.result(rule);
    }

    /// A variable or a constant of a pattern. Patterns are terms of terms of these, no deeper: a test says so.
    fn leaf(&mut self, term: &Term, ty: Type, at: Place) {
        let (known, check) = match term {
            Term::Any(k) => (&mut self.any[usize::from(*k)], code::SAME),
            Term::Const(k) => (&mut self.constants[usize::from(*k)], code::SAME_BITS),
            Term::Lit(lit) => {
                let bits = lit.bits(ty);
                return self.book.code.extend([
                    code::BITS | place(at) << 8,
                    bits as u32,
                    (bits >> 32) as u32,
                ]);
            }
            _ => return,
        };
        match *known {
            None => *known = Some(at),
            Some(first) => self.book.code.push(check | place(first) << 8 | place(at) << 12),
        }
    }

    /// Computes a term of constants.
    fn push(&mut self, term: &Term, ty: Type) {
        let letters = self.instance.letters;
        match term {
            // A variable has been met where it is used: the pattern holds all of them.
            Term::Any(_) => {}
            Term::Const(k) => {
                let at = self.constants[usize::from(*k)].unwrap_or((0, None));
                self.book.code.push(code::PUSH | place(at) << 8);
            }
            Term::Lit(lit) => {
                let bits = lit.bits(ty);
                self.book.code.extend([code::LITERAL, bits as u32, (bits >> 32) as u32]);
            }
            term => {
                for (operand, ty) in term.operands(letters) {
                    self.push(operand, ty);
                }
                if let Some(kind) = term.kind(letters) {
                    self.book.compute(kind);
                }
            }
        }
    }

    fn result(&mut self, rule: &Rule) {
        let letters = self.instance.letters;
        let ty = Row { kind: rule.pattern.kind(letters).unwrap_or(0), args: [0; 3] }.ty();
        let known = |this: &Self, k: u8| place(this.any[usize::from(k)].unwrap_or((0, None)));
        match &rule.result {
            Term::Any(k) => self.book.code.push(code::OTHER | known(self, *k) << 8),
            term if term.is_constant() => {
                self.push(term, ty);
                self.book.constant_row(ty);
            }
            term => {
                let operands = term.operands(letters);
                for (operand, ty) in &operands {
                    if operand.is_constant() {
                        self.push(operand, *ty);
                    }
                }
                let count = operands.len() as u32;
                self.book.code.extend([code::ROW | count << 8, term.kind(letters).unwrap_or(0)]);
                for (operand, ty) in operands {
                    let words = match operand {
                        Term::Any(k) => [known(self, *k), ANY_KIND],
                        _ => [0, constant(ty)],
                    };
                    self.book.code.extend(words);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_no_deeper_than_two_terms() {
        for rule in RULES {
            for letters in rule.types.choices() {
                let inner =
                    rule.pattern.operands(letters).into_iter().flat_map(|(term, _)| term.operands(letters));
                let leaves = inner
                    .into_iter()
                    .all(|(term, _)| matches!(term, Term::Any(_) | Term::Const(_) | Term::Lit(_)));
                assert!(leaves, "{rule}");
                let simple = |(term, _): &(&Term, Type)| matches!(term, Term::Any(_)) || term.is_constant();
                assert!(rule.result.operands(letters).iter().all(simple), "{rule}");
            }
        }
    }

    #[test]
    fn every_kind_has_its_own_key() {
        let mut keys: Vec<usize> = foldable().into_iter().map(Book::key).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
        assert!(keys.iter().all(|key| *key < first_key(op::OUT) as usize));
    }
}
