//! Passes on a device against plain Rust.

use vyre_driver::{BackendExt, DispatchConfig, ReferenceBackend, VyreBackend};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::Type;
use vyre_foundation::rng::SplitMix64;
use vyre_lower::columns::{kind, op};
use vyre_self_substrate::device;

/// Rows of a kernel: kind and arguments, operands first.
struct Rows {
    columns: [Vec<u32>; 4],
    level: Vec<u32>,
}

/// Rows of few kinds over few leaves, so that many are equal.
fn random(count: usize, seed: u64) -> Rows {
    let mut rng = SplitMix64::new(seed);
    let mut rows = Rows { columns: Default::default(), level: Vec::new() };
    for i in 0..count as u64 {
        let leaf = i < 4 || rng.below(8) == 0;
        let reach = rng.below(2) * 64 + 4;
        let mut operand = || (i - 1 - rng.below(reach.min(i))) as u32;
        let row = match leaf {
            true => [kind(op::CONST, 0, Type::U32, Type::U32), rng.below(4) as u32, 0, 0],
            false => match i % 3 {
                0 => [kind(op::UNARY, 2, Type::U32, Type::U32), operand(), 0, 0],
                1 => [kind(op::BINARY, 0, Type::U32, Type::U32), operand(), operand(), 0],
                _ => [kind(op::FMA, 0, Type::F32, Type::F32), operand(), operand(), operand()],
            },
        };
        let operands = &row[1..1 + op::operands(row[0] & 0xff)];
        let level = operands.iter().map(|operand| rows.level[*operand as usize] + 1).max();
        rows.level.push(level.unwrap_or(0));
        rows.columns.iter_mut().zip(row).for_each(|(column, part)| column.push(part));
    }
    rows
}

/// What stands for each row, one after the other.
fn numbered(rows: &Rows) -> Vec<u32> {
    let mut known = std::collections::HashMap::new();
    let mut numbers: Vec<u32> = Vec::new();
    for i in 0..rows.level.len() {
        let mut row = [0, 1, 2, 3].map(|k: usize| rows.columns[k][i]);
        let operands = op::operands(row[0] & 0xff);
        row[1..1 + operands].iter_mut().for_each(|operand| *operand = numbers[*operand as usize]);
        numbers.push(*known.entry(row).or_insert(i as u32));
    }
    numbers
}

fn on_device(backend: &dyn VyreBackend, rows: &Rows, groups: u32) -> Vec<u32> {
    let count = rows.level.len();
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_by_key(|row| rows.level[*row as usize]);
    let depth = rows.level.iter().max().map_or(0, |level| level + 1);
    let levels: Vec<u32> =
        (0..=depth).map(|level| rows.level.iter().filter(|of| **of < level).count() as u32).collect();
    let program = device::numbering().expect("it is valid");
    let [kind, a, b, c] = &rows.columns;
    let inputs: Vec<Vec<u8>> = [kind, a, b, c, &order, &levels]
        .map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect())
        .to_vec();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let config = DispatchConfig::new()
        .grid([groups, 1, 1])
        .output_len("slot", count as u32)
        .output_len("table", (2 * count).next_power_of_two() as u32)
        .output_len("number", count as u32);
    let outputs = backend.dispatch_borrowed(&program, &inputs, &config).expect("it runs").outputs;
    let words = outputs[3].chunks_exact(4);
    words.map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

#[test]
fn rows_get_the_same_numbers_on_every_device() {
    let options = CpuOptions { threads: 2, cache_folder: None, share_from: 0, ..CpuOptions::default() };
    let cpu = CpuBackend::with_options(options).expect("a CPU");
    for (seed, count) in (0..).zip([0, 1, 2, 5, 100, 1000, 5000, 20_000]) {
        let rows = random(count, seed);
        let expected = numbered(&rows);
        assert!(count < 100 || expected.iter().zip(0..).any(|(number, row)| *number != row));
        for groups in [1, 2, 7] {
            assert_eq!(on_device(&cpu, &rows, groups), expected, "{count} rows, {groups} workgroups");
        }
        if count <= 100 {
            assert_eq!(on_device(&ReferenceBackend::new(), &rows, 2), expected, "{count} rows, reference");
        }
    }
}
