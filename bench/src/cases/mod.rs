//! What is measured: each kernel in four languages, its inputs and its natural Rust. Those with grid barriers are in two:
//! the other languages have none.
//!
//! The programs stand in `kernels/`, one file per language. All of them declare the buffers of the case in the same
//! order, so that a contender only needs bytes. Inputs come from fixed seeds.

mod avx2;
mod barriers;
mod bfs;
mod bfs_levels;
mod collatz;
mod components;
mod dfa;
mod graph;
mod gridsync;
mod hash;
mod histogram;
mod life;
mod mandelbrot;
mod map;
mod matmul;
mod nbody;
mod reduce;
mod saxpy;

use crate::data::{Buffer, Data};
use anyhow::{Context as _, Result};

pub(crate) use avx2::is_here as has_avx2;
pub(crate) use gridsync::barriers;

/// One kernel with its inputs.
pub(crate) struct Case {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// How much there is to do.
    pub(crate) size: String,
    /// The kernel in each language.
    pub(crate) text: Text,
    /// The buffers, in the order in which the kernels declare them.
    pub(crate) buffers: Vec<Buffer>,
    /// How many invocations a workgroup has on each axis.
    pub(crate) workgroup_size: [usize; 2],
    /// How many workgroups there are on each axis.
    pub(crate) workgroups: [usize; 2],
    /// Natural Rust, over the contents of the buffers, in the rayon pool that it is called in.
    pub(crate) natural: fn(&mut [Data]),
    /// The same with vectors of AVX2 by hand, where that was written.
    pub(crate) by_hand: Option<fn(&mut [Data])>,
    /// What the kernel must do at least, whoever does it.
    pub(crate) work: Work,
}

/// What a run must do at least, where that is known.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    /// The bytes that go between memory and cores: every input once, every result once.
    pub(crate) bytes: u64,
    /// The arithmetic of all invocations, in operations on numbers of 32 bits; one on 64 bits counts as two.
    pub(crate) operations: u64,
}

impl Case {
    /// How many workgroups there are, as a program is given it.
    pub(crate) fn grid(&self) -> Result<[u32; 3]> {
        let [x, y] = self.workgroups;
        Ok([u32::try_from(x)?, u32::try_from(y)?, 1])
    }

    /// Whether it computes with floats.
    pub(crate) fn has_floats(&self) -> bool {
        self.buffers.iter().any(|buffer| matches!(buffer.initial, Data::F32(_)))
    }
}

/// A kernel in each language. The name of the program and of the OpenCL kernel is that of its file.
pub(crate) struct Text {
    pub(crate) name: &'static str,
    pub(crate) vyre: &'static str,
    /// In the other languages; none where there are grid barriers.
    pub(crate) others: Option<Others>,
}

/// A kernel in the other languages.
pub(crate) struct Others {
    pub(crate) opencl: &'static str,
    // Only a build with the feature `wgpu` reads it.
    #[cfg_attr(not(feature = "wgpu"), allow(dead_code))]
    pub(crate) wgsl: &'static str,
}

/// The three texts of a kernel.
macro_rules! text {
    ($name:literal) => {
        $crate::cases::Text {
            name: $name,
            vyre: include_str!(concat!("../../kernels/", $name, ".vyre")),
            others: Some($crate::cases::Others {
                opencl: include_str!(concat!("../../kernels/", $name, ".cl")),
                wgsl: include_str!(concat!("../../kernels/", $name, ".wgsl")),
            }),
        }
    };
}
use text;

/// The text of a kernel with grid barriers.
macro_rules! grid_text {
    ($name:literal) => {
        $crate::cases::Text {
            name: $name,
            vyre: include_str!(concat!("../../kernels/", $name, ".vyre")),
            others: None,
        }
    };
}
use grid_text;

impl Text {
    /// Whether there are grid barriers.
    pub(crate) fn has_grid_barriers(&self) -> bool {
        self.others.is_none()
    }

    /// The text in the other languages.
    pub(crate) fn others(&self) -> Result<&Others> {
        self.others.as_ref().context("it has no barrier of the whole grid")
    }
}

/// How a case is made from a scale, with its name and what it shows.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    // Only a build with the feature `wgpu` asks before a case is made.
    #[cfg_attr(not(feature = "wgpu"), allow(dead_code))]
    pub(crate) has_grid_barriers: bool,
    pub(crate) make: fn(f64) -> Case,
}

/// Every case.
pub(crate) const CASES: &[Entry] = &[
    entry("saxpy", "y = a * x + y over 64 M f32", saxpy::case),
    entry("hash", "64 rounds of an integer hash over 4 M u32", hash::case),
    entry("bfs", "one level of breadth-first search, 1 M nodes and 8 M edges", bfs::case),
    Entry {
        name: "bfs_levels",
        what: "all levels of breadth-first search, a grid barrier for each",
        has_grid_barriers: true,
        make: bfs_levels::case,
    },
    Entry {
        name: "components",
        what: "connected components, a grid barrier for each sweep",
        has_grid_barriers: true,
        make: components::case,
    },
    entry("collatz", "steps to reach 1 from each of 1 to 2 million", collatz::case),
    entry("nbody", "one step of 8192 bodies, every pair", nbody::case),
    entry("dfa", "matches of an automaton in 64 MB of text, by chunks of 4 KB", dfa::case),
    entry("reduce", "sums of 256 elements by 9 workgroup barriers, 16 M u32", reduce::case),
    entry("histogram", "16 M u32 into 256 bins, by atomics on workgroup memory", histogram::case),
    entry("matmul", "product of two matrices of 512 x 512 f32, by tiles of 16 x 16", matmul::case),
    entry("mandelbrot", "1024 x 1024 points, at most 256 steps each", mandelbrot::case),
    entry("life", "one generation of 4096 x 4096 cells", life::case),
    entry("map1m", "a map over 1 M u32", map::case),
    entry("barriers", "1 M invocations through 32 workgroup barriers", barriers::case),
];

/// A case in all four languages.
const fn entry(name: &'static str, what: &'static str, make: fn(f64) -> Case) -> Entry {
    Entry { name, what, has_grid_barriers: false, make }
}

/// The case of one workgroup whose launches are timed one by one.
pub(crate) fn one_workgroup() -> Case {
    map::of("dispatch", 64)
}

/// The case whose grid barriers are timed.
pub(crate) fn grid_barriers(scale: f64) -> Case {
    gridsync::case(scale)
}

/// A small saxpy, for the time from text to a first result.
pub(crate) fn small_saxpy() -> Case {
    saxpy::of(256)
}

/// A size under a scale, as a multiple of a unit and at least one unit.
pub(crate) fn scaled(size: usize, scale: f64, unit: usize) -> usize {
    ((size as f64 * scale / unit as f64).round() as usize).max(1) * unit
}

/// The sum of what natural Rust writes into a single buffer.
fn sum_of(natural: fn(&mut [Data]), n: usize) -> u64 {
    let mut data = [Data::U32(vec![0; n])];
    natural(&mut data);
    let [Data::U32(numbers)] = data else { unreachable!() };
    numbers.into_iter().map(u64::from).sum()
}

/// A count for people: `64 M`, `4096`.
pub(crate) fn count(n: usize) -> String {
    const M: usize = 1 << 20;
    const K: usize = 1 << 10;
    match n {
        n if n >= M && n.is_multiple_of(M) => format!("{} M", n / M),
        n if n >= 10 * M => format!("{:.1} M", n as f64 / M as f64),
        n if n >= 64 * K => format!("{:.0} K", n as f64 / K as f64),
        n => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_units() {
        assert_eq!(scaled(1 << 20, 0.1, 256), 104_960 / 256 * 256);
        assert_eq!(scaled(1 << 20, 0.0, 256), 256);
    }

    #[test]
    fn counts_are_short() {
        assert_eq!(count(64 << 20), "64 M");
        assert_eq!(count(4096), "4096");
        assert_eq!(count(104_960), "102 K");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = CASES.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }

    #[test]
    fn grid_barriers_are_announced() {
        for entry in CASES {
            assert_eq!(
                (entry.make)(0.002).text.has_grid_barriers(),
                entry.has_grid_barriers,
                "{}",
                entry.name
            );
        }
    }
}
