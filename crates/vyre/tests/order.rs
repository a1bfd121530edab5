//! A built program behaves as if each line of Rust took place where it is called: generated programs against a
//! direct execution.

mod common;

use common::{bytes, outputs, values};
use vyre::prelude::*;
use vyre_foundation::rng::SplitMix64;
use vyre_reference::Options;

const CELLS: usize = 4;

/// A step makes a value or changes something. Values are numbered; numbers wrap around at what is visible.
enum Step {
    Constant(u32),
    Operator(u32, usize, usize),
    Load(usize),
    Store(usize, usize),
    Get(usize),
    Set(usize, usize),
    Add(usize, usize),
    If(usize, Vec<Step>, Vec<Step>),
    Loop(u32, Vec<Step>),
}

fn steps(rng: &mut SplitMix64, count: u64, depth: u32) -> Vec<Step> {
    let mut list = Vec::new();
    for _ in 0..count {
        let (a, b) = (rng.next_u64() as usize, rng.next_u64() as usize);
        let kinds = if depth == 0 { 12 } else { 14 };
        list.push(match rng.next_u64() % kinds {
            0 => Step::Constant(a as u32 % 5),
            1..=4 => Step::Operator(a as u32 % 4, a >> 8, b),
            5 | 6 => Step::Load(a),
            7 => Step::Store(a, b),
            8 | 9 => Step::Get(a % 2),
            10 => Step::Set(a % 2, b),
            11 => Step::Add(a, b),
            12 => {
                let then = steps(rng, count / 2, depth - 1);
                Step::If(a, then, steps(rng, b as u64 % 4, depth - 1))
            }
            _ => Step::Loop(a as u32 % 4, steps(rng, count / 2, depth - 1)),
        });
    }
    list
}

/// What the steps mean.
fn execute(steps: &[Step], values: &mut Vec<u32>, vars: &mut [u32; 2], cells: &mut [u32; CELLS]) {
    let visible = values.len();
    for step in steps {
        let at = |values: &[u32], n: usize| values[n % values.len()];
        match step {
            Step::Constant(n) => values.push(*n),
            Step::Operator(op, a, b) => {
                let (a, b) = (at(values, *a), at(values, *b));
                values.push(match op {
                    0 => a.wrapping_add(b),
                    1 => a.wrapping_mul(b),
                    2 => a ^ b,
                    _ => a.min(b),
                });
            }
            Step::Load(a) => values.push(cells[at(values, *a) as usize % CELLS]),
            Step::Store(a, b) => cells[at(values, *a) as usize % CELLS] = at(values, *b),
            Step::Get(var) => values.push(vars[*var]),
            Step::Set(var, a) => vars[*var] = at(values, *a),
            Step::Add(a, b) => {
                let cell = &mut cells[at(values, *a) as usize % CELLS];
                let old = *cell;
                *cell = old.wrapping_add(at(values, *b));
                values.push(old);
            }
            Step::If(a, then, otherwise) => {
                let taken = if at(values, *a) % 2 == 0 { then } else { otherwise };
                execute(taken, values, vars, cells);
            }
            Step::Loop(count, body) => {
                for i in 0..*count {
                    values.push(i);
                    execute(body, values, vars, cells);
                    values.pop();
                }
            }
        }
    }
    values.truncate(visible);
}

struct Builder<'k> {
    k: &'k Kernel,
    cells: Buffer<u32, access::ReadWrite>,
    vars: [Var<u32>; 2],
}

impl Builder<'_> {
    fn build(&self, steps: &[Step], values: &[Value<u32>]) {
        let mut values = values.to_vec();
        for step in steps {
            let at = |n: &usize| values[n % values.len()];
            let value = match step {
                Step::Constant(n) => Value::from(*n),
                Step::Operator(0, a, b) => at(a) + at(b),
                Step::Operator(1, a, b) => at(a) * at(b),
                Step::Operator(2, a, b) => at(a) ^ at(b),
                Step::Operator(_, a, b) => at(a).min(at(b)),
                Step::Load(a) => self.cells.load(at(a) % CELLS as u32),
                Step::Get(var) => self.vars[*var].get(),
                Step::Add(a, b) => self.cells.atomic_add(at(a) % CELLS as u32, at(b)),
                Step::Store(a, b) => {
                    self.cells.store(at(a) % CELLS as u32, at(b));
                    continue;
                }
                Step::Set(var, a) => {
                    self.vars[*var].set(at(a));
                    continue;
                }
                Step::If(a, then, otherwise) => {
                    let even = (at(a) % 2).eq(0);
                    self.k.if_(even, || self.build(then, &values)).else_(|| self.build(otherwise, &values));
                    continue;
                }
                Step::Loop(count, body) => {
                    self.k.for_(0, *count, |i| {
                        values.push(i);
                        self.build(body, &values);
                        values.pop();
                    });
                    continue;
                }
            };
            values.push(value);
        }
    }
}

#[test]
fn everything_happens_where_it_is_called() {
    let mut rng = SplitMix64::new(7);
    for case in 0..400 {
        let steps = steps(&mut rng, 4 + case % 20, 2);
        let start = [1, 2, 3, 4];
        let (mut cells, mut vars) = (start, [5, 6]);
        execute(&steps, &mut vec![0], &mut vars, &mut cells);
        let program = vyre::program("p", |k| {
            let cells = k.read_write::<u32>("cells");
            let out = k.output::<u32>("out").with_count(2);
            let vars = [k.var("v", 5u32), k.var("w", 6u32)];
            Builder { k, cells, vars }.build(&steps, &[Value::from(0)]);
            out.store(0, vars[0].get());
            out.store(1, vars[1].get());
        })
        .unwrap_or_else(|error| panic!("{error}"));
        let options = Options { grid: Some([1, 1, 1]), ..Options::default() };
        let found = outputs(&program, &[bytes(&start)], &options);
        assert_eq!(values::<u32>(&found[0]), cells, "{program}");
        assert_eq!(values::<u32>(&found[1]), vars, "{program}");
    }
}
