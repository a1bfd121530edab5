//! The kernels of the optimisation set and their inputs, which come from fixed seeds.

use crate::cases::{Case, Text, Work, count};
use crate::data::{Buffer, Data};
use vyre_foundation::rng::SplitMix64;

/// A kernel as somebody wrote it who did not think of speed.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    text: &'static str,
    workgroup_size: usize,
    /// How many times fewer invocations than others it has, because each of them does so much more.
    fewer: usize,
    /// The buffers for so many invocations.
    buffers: fn(&mut Make, usize) -> Vec<Buffer>,
}

impl Kernel {
    /// The kernel with inputs for about so many invocations.
    pub(crate) fn case(&self, invocations: usize) -> Case {
        let workgroups = (invocations / self.fewer).div_ceil(self.workgroup_size).max(1);
        let n = workgroups * self.workgroup_size;
        let mut make = Make(SplitMix64::new(n as u64));
        Case {
            name: self.name,
            size: count(n),
            text: Text { name: self.name, vyre: self.text, others: None },
            buffers: (self.buffers)(&mut make, n),
            workgroup_size: [self.workgroup_size, 1],
            workgroups: [workgroups, 1],
            natural: |_| {},
            by_hand: None,
            work: Work::default(),
        }
    }
}

/// Makes the contents of buffers.
struct Make(SplitMix64);

impl Make {
    /// Words below a bound.
    fn words(&mut self, count: usize, bound: u64) -> Buffer {
        Buffer::input(Data::U32((0..count).map(|_| self.0.below(bound) as u32).collect()))
    }

    /// Any words.
    fn any(&mut self, count: usize) -> Buffer {
        self.words(count, 1 << 32)
    }

    fn bytes(&mut self, count: usize) -> Buffer {
        Buffer::input(Data::U8((0..count).map(|_| self.0.next_u64() as u8).collect()))
    }

    /// Floats from 0 to 1.
    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| (self.0.next_u64() >> 40) as f32 / (1 << 24) as f32).collect()
    }

    fn units(&mut self, count: usize) -> Buffer {
        Buffer::input(Data::F32(self.floats(count)))
    }
}

fn these(words: &[u32]) -> Buffer {
    Buffer::input(Data::U32(words.to_vec()))
}

fn these_floats(floats: &[f32]) -> Buffer {
    Buffer::input(Data::F32(floats.to_vec()))
}

fn words_out(count: usize) -> Buffer {
    Buffer::output(Data::U32(vec![0; count]))
}

fn bytes_out(count: usize) -> Buffer {
    Buffer::output(Data::U8(vec![0; count]))
}

fn floats_out(count: usize) -> Buffer {
    Buffer::output(Data::F32(vec![0.0; count]))
}

/// Rows of a sparse matrix of up to fifteen values each, in the order of `sparse_rows.vyre`.
fn sparse(make: &mut Make, n: usize) -> Vec<Buffer> {
    let mut starts = vec![0];
    for _ in 0..n {
        starts.push(starts[starts.len() - 1] + make.0.below(16) as u32);
    }
    let values = starts[n] as usize;
    let columns = make.words(values, n as u64);
    vec![these(&[3, 5]), these(&starts), columns, make.any(values), make.any(n), words_out(n)]
}

/// An entry: its name, its buffers, and more where it is not like the others.
macro_rules! kernel {
    ($name:literal, $buffers:expr) => {
        kernel!($name, 64, 1, $buffers)
    };
    ($name:literal, $workgroup_size:literal, $fewer:literal, $buffers:expr) => {
        Kernel {
            name: $name,
            text: include_str!(concat!("../../kernels/naive/", $name, ".vyre")),
            workgroup_size: $workgroup_size,
            fewer: $fewer,
            buffers: $buffers,
        }
    };
}

/// The set.
pub(crate) const KERNELS: &[Kernel] = &[
    kernel!("binning", 64, 64, |make, n| vec![
        make.words(64 * n, 70_000),
        Buffer::changed(Data::U32(vec![0; 256]))
    ]),
    kernel!("bit_count", |make, n| vec![make.any(n), words_out(n)]),
    kernel!("blend", |make, n| vec![make.any(n), make.any(n), words_out(n)]),
    kernel!("box_blur", |make, n| vec![make.words(n, 1 << 16), words_out(n)]),
    kernel!("calendar", |make, n| vec![make.words(n, 1_000_000), words_out(n)]),
    kernel!("dither", |make, n| {
        let thresholds = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5];
        vec![these(&thresholds), make.words(n, 256), words_out(n)]
    }),
    kernel!("fixed_gain", |make, n| vec![these(&[0x9000, 0x40]), make.any(n), words_out(n)]),
    kernel!("gather", |make, n| vec![make.any(n), make.any(4096), words_out(n)]),
    kernel!("grey", |make, n| vec![make.bytes(3 * n), bytes_out(n)]),
    kernel!("heat", |make, n| vec![these_floats(&[0.5, 0.1, 2.0]), make.units(n), floats_out(n)]),
    kernel!("lerp", |make, n| vec![make.units(257), make.units(n), floats_out(n)]),
    kernel!("life_wrapped", |make, n| vec![make.words(n, 2), words_out(n)]),
    kernel!("matvec", 64, 64, |make, n| vec![
        these(&[n as u32, 256]),
        these_floats(&[0.5]),
        make.units(256 * n),
        make.units(256),
        floats_out(n),
    ]),
    kernel!("max_pool", |make, n| vec![make.any(4 * n), words_out(n)]),
    kernel!("morton", |_, n| vec![words_out(n)]),
    kernel!("moving_sum", |make, n| vec![make.any(n), words_out(n)]),
    kernel!("nearest", 64, 8, |make, n| vec![
        make.words(128, 10_000),
        make.words(2 * n, 10_000),
        words_out(n)
    ]),
    kernel!("parity", |make, n| vec![make.any(n), words_out(n)]),
    kernel!("particles", |make, n| vec![
        these_floats(&[0.01, 9.81, 0.1, 1.0]),
        Buffer::changed(Data::F32(make.floats(8 * n)))
    ]),
    kernel!("polynomial", |make, n| vec![make.any(6), make.any(n), words_out(n)]),
    kernel!("quantize", |make, n| vec![these_floats(&[0.25, 0.75]), make.units(n), floats_out(n)]),
    kernel!("record_hash", |make, n| vec![make.bytes(16 * n), words_out(n)]),
    kernel!("resize", |make, n| vec![make.words(512 * 512, 1 << 16), words_out(n)]),
    kernel!("sobel", |make, n| vec![make.bytes(n), words_out(n)]),
    kernel!("sparse_rows", 64, 4, sparse),
    kernel!("swap_bytes", |make, n| vec![make.any(n), words_out(n)]),
    kernel!("tone_map", |make, n| vec![these_floats(&[0.5, 1.5]), make.units(3 * n), floats_out(3 * n)]),
    kernel!("transpose", 256, 1, |make, n| vec![make.any(n), words_out(n)]),
    kernel!("upper_case", |make, n| vec![make.bytes(n), bytes_out(n)]),
];
