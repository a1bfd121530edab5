//! Every rule is right, ends, and is in its best form.
//!
//! `VYRE_BITS=8 VYRE_CASES=10000000 cargo test --release -p vyre-self-substrate --test rules` is the long run.

mod small;

use small::Small;
use vyre_foundation::{BufferDecl, Element, Literal, Type, arith, float_env, rng::SplitMix64};
use vyre_lower::{Item, Kernel, KernelBuilder, Value, ValueId};
use vyre_self_substrate::rules::{self, Letters, RULES, Rule, Term};
use vyre_self_substrate::{Options, optimize};

/// The variables of a term: how often each occurs.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
struct Occurs {
    any: [usize; 4],
    constants: [usize; 4],
}

fn occurs(term: &Term, found: &mut Occurs) {
    match term {
        Term::Any(k) => found.any[usize::from(*k)] += 1,
        Term::Const(k) => found.constants[usize::from(*k)] += 1,
        term => term.operands([Type::Bool; 3]).into_iter().for_each(|(term, _)| occurs(term, found)),
    }
}

/// The type of each variable.
#[derive(Default, Clone, Copy, Debug)]
struct Types {
    any: [Option<Type>; 4],
    constants: [Option<Type>; 4],
}

fn types(term: &Term, ty: Type, letters: Letters, found: &mut Types) {
    let slot = match term {
        Term::Any(k) => &mut found.any[usize::from(*k)],
        Term::Const(k) => &mut found.constants[usize::from(*k)],
        term => {
            let operands = term.operands(letters).into_iter();
            return operands.for_each(|(operand, ty)| types(operand, ty, letters, found));
        }
    };
    assert_eq!(*slot.get_or_insert(ty), ty, "a variable has one type");
}

fn variables(rule: &Rule, letters: Letters) -> (Types, Type) {
    let ty = rule.pattern.ty(Type::Bool, letters);
    let mut found = Types::default();
    types(&rule.pattern, ty, letters, &mut found);
    let known = found;
    types(&rule.result, ty, letters, &mut found);
    if let Some(when) = &rule.when {
        types(when, Type::Bool, letters, &mut found);
    }
    assert_eq!(
        (known.any, known.constants),
        (found.any, found.constants),
        "{}: a variable that the pattern does not bind",
        rule.name
    );
    (found, ty)
}

#[test]
fn rules_are_well_formed_and_end() {
    let mut names = std::collections::HashSet::new();
    for rule in RULES {
        assert!(names.insert(rule.name), "{} stands twice", rule.name);
        assert!(!rule.types.choices().is_empty(), "{}: no types", rule.name);
        for letters in rule.types.choices() {
            assert!(rule.pattern.kind(letters).is_some(), "{}: no such row with {letters:?}", rule.name);
            let (_, ty) = variables(rule, letters);
            assert_eq!(rule.result.ty(ty, letters), ty, "{} changes the type of {letters:?}", rule.name);
            for (operand, _) in rule.result.operands(letters) {
                let is_simple = matches!(operand, Term::Any(_)) || operand.is_constant();
                assert!(is_simple, "{}: the result is more than a row and constants", rule.name);
            }
        }
        assert!(rule.result.weight() < rule.pattern.weight(), "{} does not make it lighter", rule.name);
        let (mut before, mut after) = (Occurs::default(), Occurs::default());
        occurs(&rule.pattern, &mut before);
        occurs(&rule.result, &mut after);
        for k in 0..4 {
            assert!(after.any[k] <= before.any[k], "{} holds a variable more often", rule.name);
        }
    }
}

/// The numbers at which things happen.
fn edge(ty: Type, rng: &mut SplitMix64) -> u64 {
    let width = ty.bits();
    let mask = u64::MAX >> (64 - width);
    let floats = [0.0f32, -0.0, 1.0, -1.0, 0.5, 2.0, f32::MIN_POSITIVE, 1.0e-45, f32::MAX, f32::INFINITY];
    let number = match ty {
        Type::F32 => match rng.below(4) {
            0 => u64::from(floats[rng.below(10) as usize].to_bits()),
            1 => u64::from(f32::NAN.to_bits()),
            2 => (rng.below(256) << 23) | rng.below(2) << 31,
            _ => rng.next_u64(),
        },
        _ => match rng.below(5) {
            0 => rng.below(4).wrapping_sub(2),
            1 => 1u64 << rng.below(u64::from(width)),
            2 => (1u64 << (width - 1)).wrapping_add(rng.below(3)).wrapping_sub(1),
            3 => rng.below(2 * u64::from(width)),
            _ => rng.next_u64(),
        },
    };
    number & mask
}

/// Whether two values of a type are the same: all NaNs are.
fn same(ty: Type, a: u64, b: u64) -> bool {
    match ty {
        Type::F32 => arith::canonical_f32(a as u32) == arith::canonical_f32(b as u32),
        _ => a == b,
    }
}

#[test]
fn rules_hold_for_random_values() {
    let cases: u64 = std::env::var("VYRE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000);
    float_env::with_default(|| {
        for (number, rule) in RULES.iter().enumerate() {
            for letters in rule.types.choices() {
                random_values(number, rule, letters, cases);
            }
        }
    });
}

fn random_values(number: usize, rule: &Rule, letters: Letters, cases: u64) {
    let (types, ty) = variables(rule, letters);
    let mut rng = SplitMix64::new(number as u64);
    let mut held = 0;
    for _ in 0..cases {
        // The same value for several variables is where rules go wrong.
        let shared = rng.below(4) == 0;
        let first = rng.next_u64();
        let mut draw = |ty: Option<Type>| match ty {
            Some(ty) if shared => first & u64::MAX >> (64 - ty.bits()),
            Some(ty) => edge(ty, &mut rng),
            None => 0,
        };
        let any = types.any.map(&mut draw);
        let mut constants = types.constants.map(&mut draw);
        if let [Some(c), Some(d), ..] = types.constants
            && c.is_integer()
            && c == d
            && rng.below(4) == 0
        {
            // Two counts that are the width together.
            constants[0] = rng.below(u64::from(c.bits()));
            constants[1] = u64::from(c.bits()) - constants[0];
        }
        let (x, c) = (|k: u8| any[usize::from(k)], |k: u8| constants[usize::from(k)]);
        if rule.when.as_ref().is_some_and(|when| when.value(Type::Bool, letters, &x, &c) == 0) {
            continue;
        }
        held += 1;
        let before = rule.pattern.value(ty, letters, &x, &c);
        let after = rule.result.value(ty, letters, &x, &c);
        assert!(
            same(ty, before, after),
            "{} ({rule}) with {letters:?}: {any:x?} {constants:x?} give {before:x} and {after:x}",
            rule.name
        );
    }
    assert!(held > 0, "{}: its condition never holds for {letters:?}", rule.name);
}

/// The row of a term in a kernel under construction, with variables for rows that say nothing about themselves.
fn row_of(
    builder: &mut KernelBuilder,
    term: &Term,
    ty: Type,
    letters: Letters,
    constants: &[u64; 4],
) -> ValueId {
    let constant = |bits: u64| Value::Const(Literal::from_bits(ty, bits));
    let mut operands = Vec::new();
    for (operand, ty) in term.operands(letters) {
        operands.push(row_of(builder, operand, ty, letters, constants));
    }
    let value = match term {
        Term::Any(k) => return variable(builder, *k, ty),
        Term::Const(k) => constant(constants[usize::from(*k)]),
        Term::Lit(lit) => constant(lit.bits(ty)),
        Term::Binary(op, ty, ..) => {
            Value::Binary { op: *op, ty: ty.of(letters), a: operands[0], b: operands[1] }
        }
        Term::Unary(op, ty, _) => Value::Unary { op: *op, ty: ty.of(letters), a: operands[0] },
        Term::Select(ty, ..) => {
            Value::Select { ty: ty.of(letters), cond: operands[0], a: operands[1], b: operands[2] }
        }
        Term::Cast(from, to, _) => Value::Cast { from: from.of(letters), to: to.of(letters), a: operands[0] },
        Term::Bitcast(from, to, _) => {
            Value::Bitcast { from: from.of(letters), to: to.of(letters), a: operands[0] }
        }
        Term::Fma(..) => Value::Fma { a: operands[0], b: operands[1], c: operands[2] },
    };
    builder.value(value)
}

/// What a read-only buffer holds at an index of its own.
fn variable(builder: &mut KernelBuilder, k: u8, ty: Type) -> ValueId {
    let index = builder.value(Value::Const(Literal::U32(u32::from(k))));
    // Truth does not stand in memory.
    let stored = if ty == Type::Bool { Type::U32 } else { ty };
    let load = builder.value(Value::Load { buffer: stored as u32 - 1, index, ty: stored });
    match ty {
        Type::Bool => builder.value(Value::Cast { from: Type::U32, to: Type::Bool, a: load }),
        _ => load,
    }
}

/// A kernel that stores the pattern of a rule.
fn kernel_of(rule: &Rule, letters: Letters, constants: &[u64; 4]) -> Kernel {
    let mut builder = KernelBuilder::new();
    let ty = rule.pattern.ty(Type::Bool, letters);
    let mut value = row_of(&mut builder, &rule.pattern, ty, letters, constants);
    if ty == Type::Bool {
        value = builder.value(Value::Cast { from: ty, to: Type::U32, a: value });
    }
    let elements = [Element::U32, Element::I32, Element::U64, Element::I64, Element::F32];
    let mut buffers: Vec<BufferDecl> =
        elements.map(|element| BufferDecl::read(element.name(), element)).to_vec();
    buffers.extend(elements.map(|element| BufferDecl::output(format!("{}_o", element.name()), element)));
    let stored = if ty == Type::Bool { Type::U32 } else { ty };
    let index = builder.value(Value::Const(Literal::U32(0)));
    let item = Item::Store { buffer: 4 + stored as u32, index, value };
    builder.item(KernelBuilder::ENTRY, item, 0);
    builder.finish("rule".into(), 1.into(), 32, buffers, &[])
}

/// The page of the documentation. `VYRE_BLESS=1` writes it.
#[test]
fn the_page_is_of_this_table() {
    let mut page = String::from(
        "# Rules\n\nWhat the [optimizer](optimizer.md) writes instead of what. `x y z c` are any values, `C D E` \
         constants; of operands whose\norder does not matter either may come first. Printed from the table.\n\n\
         | rule | | for |\n|---|---|---|\n",
    );
    for rule in RULES {
        let types: Vec<String> = match rule.types {
            rules::Types::Each(types) => types.iter().map(Type::to_string).collect(),
            rules::Types::All(_) => vec![format!("{} choices of types", rule.types.choices().len())],
        };
        let text = rule.to_string().replace('|', "\\|");
        page.push_str(&format!("| {} | `{text}` | {} |\n", rule.name, types.join(" ")));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md");
    if std::env::var_os("VYRE_BLESS").is_some() {
        std::fs::write(path, &page).expect("the page is written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == page, "docs/rules.md is not of this table: run this test with VYRE_BLESS=1");
}

#[test]
fn every_rule_is_applied() {
    for (number, rule) in RULES.iter().enumerate() {
        for letters in rule.types.choices() {
            let (types, _) = variables(rule, letters);
            let mut rng = SplitMix64::new(7);
            let fires = (0..2_000).any(|_| {
                let mut constants = types.constants.map(|ty| ty.map_or(0, |ty| edge(ty, &mut rng)));
                if rng.below(2) == 0 && types.constants[1].is_some() {
                    constants[1] = u64::from(letters[0].bits()).wrapping_sub(constants[0]);
                }
                let none = |_: u8| 0;
                let given = |k: u8| constants[usize::from(k)];
                let holds = rule.when.as_ref();
                let holds = holds.is_none_or(|when| when.value(Type::Bool, letters, &none, &given) != 0);
                holds && {
                    let kernel = kernel_of(rule, letters, &constants);
                    optimize(&kernel, &Options::default()).stats.fired[number] > 0
                }
            });
            assert!(fires, "{} ({rule}) is never applied with {letters:?}", rule.name);
        }
    }
}

/// Rules on integers and truth alone, on all values of a few bits.
#[test]
fn rules_hold_for_all_values_of_few_bits() {
    let width = std::env::var("VYRE_BITS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    for rule in RULES {
        for letters in rule.types.choices() {
            let small = Small { letters, width };
            if letters.iter().any(|ty| !ty.is_integer() && *ty != Type::Bool) || small.stands_for_another() {
                continue;
            }
            let (types, ty) = variables(rule, letters);
            let mut ranges = [1u64; 8];
            for (range, ty) in ranges.iter_mut().zip(types.any.iter().chain(&types.constants)) {
                *range = ty.map_or(1, |ty| 1 << small.bits(ty));
            }
            let total: u64 = ranges.iter().product();
            for case in 0..total {
                let mut rest = case;
                let values = ranges.map(|range| {
                    let value = rest % range;
                    rest /= range;
                    value
                });
                let value = |term: &Term, ty: Type| small.value(term, ty, &values);
                if rule.when.as_ref().is_some_and(|when| value(when, Type::Bool) == 0) {
                    continue;
                }
                let (before, after) = (value(&rule.pattern, ty), value(&rule.result, ty));
                assert_eq!(before, after, "{} ({rule}) with {letters:?}: {values:?}", rule.name);
            }
        }
    }
}
