//! What a pass of the optimizer costs on the device and on the host: value numbering of kernels of many rows.

pub(crate) mod spirv;

use anyhow::{Context as _, Result, bail};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vyre_driver::{BackendExt as _, DeviceBuffer, DeviceMemory, DispatchConfig};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::{Axis, BinOp, BufferDecl, Element, Literal, Type, rng::SplitMix64};
use vyre_lower::columns::{kind, op};
use vyre_lower::{Id, Item, Kernel, KernelBuilder, Value, ValueId};
use vyre_self_substrate::{Options, device, optimize};

/// The shapes that are measured: rows, and how deep they are.
const SHAPES: [(usize, usize); 7] = [
    (10_000, 10),
    (10_000, 200),
    (100_000, 200),
    (1_000_000, 10),
    (1_000_000, 200),
    (1_000_000, 20_000),
    (100_000, 100_000),
];

/// How long numbering took.
pub(crate) struct Numbering {
    pub(crate) rows: usize,
    pub(crate) depth: usize,
    pub(crate) host: Vec<Duration>,
    /// By the number of threads: with transfers, and the launch alone.
    pub(crate) device: Vec<(usize, Vec<[Duration; 2]>)>,
    /// All passes on the host, from kernel to kernel.
    pub(crate) all: Vec<Duration>,
    /// How many rows these get: what nothing needs never comes into a kernel.
    pub(crate) kernel_rows: usize,
}

/// Rows in layers: each is made of one of the layer before and of another, and some are equal.
struct Layers {
    columns: [Vec<u32>; 4],
    /// Rows are in order of their levels already.
    levels: Vec<u32>,
}

impl Layers {
    fn new(rows: usize, depth: usize) -> Layers {
        let mut rng = SplitMix64::new((rows + depth) as u64);
        let mut columns: [Vec<u32>; 4] = Default::default();
        let levels: Vec<u32> = (0..=depth).map(|level| (rows * level / depth) as u32).collect();
        for (level, ends) in levels.windows(2).enumerate() {
            for row in ends[0]..ends[1] {
                let parts = if level == 0 {
                    [kind(op::CONST, 0, Type::U32, Type::U32), row, 0, 0]
                } else {
                    let (before, width) = (levels[level - 1], u64::from(ends[0] - levels[level - 1]));
                    let near = before + rng.below(width.div_ceil(2)) as u32;
                    let far = rng.below(u64::from(ends[0]).min(4)) as u32;
                    [kind(op::BINARY, BinOp::Add as u32, Type::U32, Type::U32), near, far, 0]
                };
                columns.iter_mut().zip(parts).for_each(|(column, part)| column.push(part));
            }
        }
        Layers { columns, levels }
    }

    /// A kernel of these rows, whose last layer is stored.
    fn kernel(&self) -> Kernel {
        let mut builder = KernelBuilder::new();
        let index = builder.value(Value::Id(Id::Invocation, Axis::X));
        let mut rows: Vec<ValueId> = Vec::new();
        for i in 0..self.columns[0].len() {
            let [a, b] = [1, 2].map(|k: usize| self.columns[k][i]);
            let value = match self.columns[0][i] & 0xff {
                // Not constants, or nothing would be left.
                op::CONST => {
                    let number = builder.value(Value::Const(Literal::U32(a)));
                    Value::Load { buffer: 0, index: number, ty: Type::U32 }
                }
                _ => {
                    let [a, b] = [a, b].map(|operand| rows[operand as usize]);
                    let op = if i % 2 == 0 { BinOp::BitXor } else { BinOp::Mul };
                    Value::Binary { op, ty: Type::U32, a, b }
                }
            };
            rows.push(builder.value(value));
        }
        let last = self.levels[self.levels.len() - 2] as usize;
        for value in rows.split_off(last) {
            builder.item(KernelBuilder::ENTRY, Item::Store { buffer: 1, index, value }, 0);
        }
        let buffers = vec![BufferDecl::read("x", Element::U32), BufferDecl::output("o", Element::U32)];
        builder.finish("layers".into(), 1.into(), 32, buffers, &[])
    }

    /// The same on the host: one walk in order, with a table of row numbers.
    fn on_host(&self) -> Vec<u32> {
        let count = self.columns[0].len();
        let mask = (2 * count).next_power_of_two() - 1;
        let mut table = vec![0u32; mask + 1];
        let mut rows: Vec<[u32; 4]> = Vec::with_capacity(count);
        let mut numbers: Vec<u32> = Vec::with_capacity(count);
        for i in 0..count {
            let mut row = [0, 1, 2, 3].map(|k: usize| self.columns[k][i]);
            let operands = op::operands(row[0] & 0xff);
            row[1..1 + operands].iter_mut().for_each(|operand| *operand = numbers[*operand as usize]);
            rows.push(row);
            let mixed = row.iter().fold(0u64, |hash, word| {
                (hash.rotate_left(5) ^ u64::from(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            });
            let mut at = (mixed >> 32) as usize & mask;
            let number = loop {
                match table[at] {
                    0 => {
                        table[at] = i as u32 + 1;
                        break i as u32;
                    }
                    taken if rows[taken as usize - 1] == row => break taken - 1,
                    _ => at = (at + 1) & mask,
                }
            };
            numbers.push(number);
        }
        numbers
    }
}

pub(crate) fn measure(threads: &[usize], turns: usize) -> Result<Vec<Numbering>> {
    let program = device::numbering()?;
    let mut all = Vec::new();
    for (rows, depth) in SHAPES {
        let layers = Layers::new(rows, depth);
        let expected = layers.on_host();
        let kernel = layers.kernel();
        let kernel_rows = kernel.values.len();
        let (host, device) = (Vec::new(), Vec::new());
        let mut numbering = Numbering { rows, depth, host, device, all: Vec::new(), kernel_rows };
        for _ in 0..turns {
            let begun = Instant::now();
            std::hint::black_box(layers.on_host());
            numbering.host.push(begun.elapsed());
            let begun = Instant::now();
            std::hint::black_box(optimize(&kernel, &Options::default()));
            numbering.all.push(begun.elapsed());
        }
        for threads in threads {
            let options = CpuOptions { threads: *threads, cache_folder: None, ..CpuOptions::default() };
            let backend = Arc::new(CpuBackend::with_options(options)?);
            let pipeline = backend.compile_native(&program, &DispatchConfig::new())?;
            let config = DispatchConfig::new()
                .grid([4 * *threads as u32, 1, 1])
                .output_len("slot", rows as u32)
                .output_len("table", (2 * rows).next_power_of_two() as u32);
            let order: Vec<u32> = (0..rows as u32).collect();
            let mut times = Vec::new();
            for _ in 0..turns {
                let begun = Instant::now();
                let [kinds, a, b, c] = &layers.columns;
                let inputs = [kinds, a, b, c, &order, &layers.levels];
                let mut buffers: Vec<DeviceBuffer<u32>> = Vec::new();
                for words in inputs {
                    buffers.push(backend.device_buffer_from(words)?);
                }
                buffers.push(backend.device_buffer::<u32>(rows)?);
                let bound: Vec<&dyn DeviceMemory> = buffers.iter().map(|buffer| buffer as _).collect();
                let launched = Instant::now();
                backend.dispatch_with_device_buffers(&pipeline, &bound, &config)?;
                let launch = launched.elapsed();
                let numbers = buffers.last().context("there are seven")?.download()?;
                times.push([begun.elapsed(), launch]);
                if numbers != expected {
                    bail!("value numbering of {rows} rows differs on the device");
                }
            }
            numbering.device.push((*threads, times));
        }
        all.push(numbering);
    }
    Ok(all)
}
