//! How many invocations a generated program has: workgroup size, grid and subgroup size.

use vyre_foundation::WorkgroupSize;
use vyre_foundation::rng::SplitMix64;

/// Workgroup sizes on one axis, with the odd ones that leave partial subgroups.
const SIZES: [u32; 14] = [1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 100, 128];

/// How the invocations of a case are arranged.
pub(super) struct Shape {
    pub(super) size: WorkgroupSize,
    /// The workgroups on each axis, whether the case gives them or not.
    pub(super) counts: [u32; 3],
    /// `Some(E)` where the case gives no counts and the longest returned buffer has `E` elements.
    pub(super) extent: Option<u32>,
    pub(super) subgroup: u32,
}

impl Shape {
    pub(super) fn new(rng: &mut SplitMix64) -> Shape {
        // Mostly small: what breaks on many invocations nearly always breaks on two workgroups.
        let cap = *rng.pick(&[4, 16, 64, 64, 64, 64, 160, 160, 320, 1100]);
        let axes = *rng.pick(&[1, 1, 1, 1, 2, 2, 3]);
        let size = workgroup_size(rng, axes, cap);
        let room = (cap / size.invocations() as u32).max(1);
        let (counts, extent) = if axes == 1 && rng.chance(2, 5) {
            let extent = if rng.chance(1, 24) { 0 } else { 1 + rng.below(u64::from(cap)) as u32 };
            ([extent.div_ceil(size.size()[0]), 1, 1], Some(extent))
        } else {
            (given_counts(rng, axes, room), None)
        };
        let subgroup = *rng.pick(&[1, 2, 4, 8, 16, 32, 32, 64, 64]);
        Shape { size, counts, extent, subgroup }
    }

    /// A shape for grid barriers: mostly some small workgroups, sometimes any shape, and about once in fifty times
    /// hundreds or thousands of tiny workgroups.
    pub(super) fn for_grid_barriers(rng: &mut SplitMix64) -> Shape {
        if rng.chance(1, 50) {
            return Shape::of_many_workgroups(rng);
        }
        let any = Shape::new(rng);
        if any.extent == Some(0) || any.counts.contains(&0) || rng.chance(1, 3) {
            return any;
        }
        let size = *rng.pick(&[1, 1, 2, 3, 4, 5, 8]);
        let most = *rng.pick(&[2, 4, 9, 9, 20, 40]);
        let counts = match rng.below(5) {
            0 => [1 + rng.below(4) as u32, 1 + rng.below(4) as u32, 1 + rng.below(2) as u32],
            _ => [1 + rng.below(most) as u32, 1, 1],
        };
        Shape { size: size.into(), counts, extent: None, subgroup: any.subgroup }
    }

    /// Up to 10,000 workgroups of one to three invocations.
    fn of_many_workgroups(rng: &mut SplitMix64) -> Shape {
        let size: u32 = *rng.pick(&[1, 1, 1, 2, 3]);
        let most = *rng.pick(&[600, 1500, 4000, 10_000]);
        let count = 300 + rng.below(most - 299) as u32;
        let counts = match rng.below(4) {
            0 => [count / 16, 4, 4],
            1 => [7, count / 7, 1],
            _ => [count, 1, 1],
        };
        Shape { size: size.into(), counts, extent: None, subgroup: *rng.pick(&[1, 4, 32, 64]) }
    }

    /// The invocations of a workgroup.
    pub(super) fn group(&self) -> u32 {
        self.size.invocations() as u32
    }

    /// The invocations of the dispatch.
    pub(super) fn total(&self) -> u32 {
        self.group() * self.counts.iter().product::<u32>()
    }

    /// Whether x alone tells the invocations apart.
    pub(super) fn is_linear(&self) -> bool {
        self.counts[1..] == [1, 1] && self.size.size()[1..] == [1, 1]
    }
}

fn workgroup_size(rng: &mut SplitMix64, axes: u32, cap: u32) -> WorkgroupSize {
    let mut room = cap.min(128);
    let mut axis = |rng: &mut SplitMix64| {
        let fitting: Vec<u32> = SIZES.into_iter().filter(|n| *n <= room).collect();
        let n = *rng.pick(&fitting);
        room = (room / n).max(1);
        n
    };
    match axes {
        1 => axis(rng).into(),
        2 => {
            let small = 1 + rng.below(4) as u32;
            let other = axis(rng).min(32);
            if rng.chance(1, 2) { [small, other].into() } else { [other, small].into() }
        }
        _ => [axis(rng).min(8), 1 + rng.below(3) as u32, 1 + rng.below(3) as u32].into(),
    }
}

fn given_counts(rng: &mut SplitMix64, axes: u32, room: u32) -> [u32; 3] {
    let room = u64::from(room);
    let mut counts = [1 + rng.below(room.min(12)) as u32, 1, 1];
    // A program of one axis may also be dispatched on several.
    if axes > 1 || rng.chance(1, 6) {
        counts[1] = 1 + rng.below((room / u64::from(counts[0])).clamp(1, 4)) as u32;
    }
    if axes > 2 || rng.chance(1, 12) {
        let left = room / u64::from(counts[0] * counts[1]);
        counts[2] = 1 + rng.below(left.clamp(1, 3)) as u32;
    }
    if rng.chance(1, 48) {
        counts[rng.below(3) as usize] = 0;
    }
    counts
}
