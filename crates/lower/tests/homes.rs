//! Rows are computed after what they are made of and before what needs them, also where rows are moved up.

use vyre_conform::{DEFAULT_SIZE, generate};
use vyre_lower::{Homes, Item, Kernel, RegionId, Value, ValueId, lower};

/// A place: before an item of a region, by its position.
type At = (RegionId, u32);

fn is_slot(value: Value) -> bool {
    matches!(value, Value::Param { .. } | Value::Out { .. })
}

/// Whether what happens at one place has happened at another: in the same region not later, or around it.
fn is_before(homes: &Homes, first: At, mut then: At) -> bool {
    while then.0 != first.0 {
        match homes.around(then.0) {
            Some(outer) => then = outer,
            None => return false,
        }
    }
    first.1 <= then.1
}

/// Where each item stands.
fn places(kernel: &Kernel) -> Vec<At> {
    let mut places = vec![(Kernel::ENTRY, 0); kernel.items.len()];
    for region in kernel.region_ids() {
        for (position, item) in (0..).zip(kernel.region(region)) {
            places[item.index()] = (region, position);
        }
    }
    places
}

/// Panics where a row is needed where it is not yet.
fn check(kernel: &Kernel, homes: &Homes, what: &str) {
    let places = places(kernel);
    let made = |row: ValueId| match kernel.value(row) {
        Value::Param { item, .. } => match kernel.item(item) {
            Item::Loop { body, .. } => (body, 0),
            _ => unreachable!("only loops have parameters"),
        },
        Value::Out { item, .. } => (places[item.index()].0, places[item.index()].1 + 1),
        _ => (homes.region[row.index()], homes.before[row.index()]),
    };
    let used = |row: ValueId, at: At, by: &str| {
        assert!(is_before(homes, made(row), at), "{what}: {row:?} is made too late for {by}");
    };
    for row in kernel.rows().filter(|row| homes.uses[row.index()] > 0 && !is_slot(kernel.value(*row))) {
        kernel.value(row).operands().for_each(|operand| used(operand, made(row), &format!("{row:?}")));
    }
    for region in kernel.region_ids() {
        for id in kernel.region(region) {
            let (item, at) = (kernel.item(id), places[id.index()]);
            let by = format!("{id:?}");
            item.operands().into_iter().for_each(|row| used(row, at, &by));
            let end = |region| (region, kernel.item_count(region));
            match item {
                Item::If { then, otherwise, yields, .. } => yields.into_iter().for_each(|(a, b)| {
                    used(a, end(then), &by);
                    used(b, end(otherwise), &by);
                }),
                Item::Loop { body, next, again, .. } => {
                    next.into_iter().chain([again]).for_each(|row| used(row, end(body), &by));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn rows_are_there_when_they_are_needed() {
    let count = std::env::var("VYRE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut moved = 0;
    for seed in 0..count {
        let kernel = lower(&generate(seed, DEFAULT_SIZE).program);
        let mut homes = Homes::of(&kernel);
        check(&kernel, &homes, &format!("seed {seed}"));
        let before = homes.before.clone();
        homes.shorten_lives(&kernel);
        check(&kernel, &homes, &format!("seed {seed}, rows moved"));
        moved += before.iter().zip(&homes.before).filter(|(before, after)| before != after).count();
    }
    assert!(moved > 0, "some are moved");
}
