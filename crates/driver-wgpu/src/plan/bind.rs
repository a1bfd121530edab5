//! How a program is launched over ranges: its shader, its bind group, its parameters, and the slices of its grid.

use super::{Dispatch, Op, Planner, Range};
use crate::NAME;
use crate::emit::parameter_words;
use crate::memory::ALIGNMENT;
use crate::pipeline::{Variant, WgpuPipeline};
use crate::utility::{ELEMENTS, Utility};
use std::sync::Arc;
use vyre_driver::{CompiledPipeline, Error, Result};

/// The most slices of a grid. One of them has billions of invocations, so this many do not end.
const MOST_SLICES: u128 = 1 << 17;

/// What a bind group is made of. Equal ones are one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    /// The shader.
    shader: u64,
    pub(crate) parameter_bytes: u64,
    /// Buffer, offset and size of each binding but the parameters.
    pub(crate) bindings: Vec<(usize, u64, u64)>,
}

/// How a slot is bound.
struct Bound {
    /// All of it, as one range.
    whole: Range,
    windows: u32,
    /// Where its first element is in that range, in elements, and how many there are.
    begin: u32,
    count: u32,
}

impl Planner<'_> {
    /// Launches a kernel of our own over so many elements.
    pub(super) fn kernel(&mut self, utility: Utility, ranges: &[Range], elements: u64) -> Result<()> {
        let pipeline = self.core.utilities.get(self.gpu, utility)?;
        let workgroups = u32::try_from(elements.div_ceil(ELEMENTS)).unwrap_or(u32::MAX);
        self.dispatch(&pipeline, ranges, [workgroups, 1, 1])
    }

    /// Adds the dispatches of a launch to the step under way.
    pub(super) fn dispatch(
        &mut self,
        pipeline: &WgpuPipeline,
        ranges: &[Range],
        workgroups: [u32; 3],
    ) -> Result<()> {
        let slots = pipeline.plan().slots();
        let mut used: Vec<(Range, bool)> =
            ranges.iter().zip(slots).map(|(range, slot)| (*range, slot.access().allows_store())).collect();
        self.part_readers(&mut used)?;
        let mut bound = Vec::with_capacity(slots.len());
        for ((range, is_written), slot) in used.iter().zip(slots) {
            bound.push(self.bind(*range, *is_written, slot.element().size() as u64)?);
        }
        let windows = bound.iter().map(|bound| bound.windows).collect();
        let shifted = bound.iter().map(|bound| bound.begin > 0).collect();
        let shader = pipeline.variant(self.gpu, windows, shifted)?;
        let most = self.gpu.limits.max_compute_workgroups_per_dimension;
        let slices = Slices::new(workgroups, most)?;
        let mut group = self.group(&shader, &bound);
        if shader.is_watched {
            let cut = self.cut()?;
            used.push((cut, true));
            group.bindings.push((cut.buffer, cut.offset, ALIGNMENT));
        }
        let group = self.number_of(group);
        let used: Arc<[(Range, bool)]> = used.into();
        for (base, count) in slices.iter() {
            let parameters = self.parameters(workgroups, base, &bound)?;
            let (shader, ranges) = (Arc::clone(&shader), Arc::clone(&used));
            self.pending.push(Dispatch {
                shader,
                group,
                parameters,
                workgroups: count,
                argument: None,
                ranges,
            });
        }
        Ok(())
    }

    /// A buffer cannot be read-only and written in one dispatch, even at different places: what is only read is then
    /// read from a copy.
    fn part_readers(&mut self, used: &mut [(Range, bool)]) -> Result<()> {
        for at in 0..used.len() {
            let (range, is_written) = used[at];
            let is_shared = |(other, written): &(Range, bool)| {
                *written && other.buffer == range.buffer && other.bytes > 0
            };
            if is_written || range.bytes == 0 || !used.iter().any(is_shared) {
                continue;
            }
            let from = range.outward(ALIGNMENT);
            let buffer = self.lease(from.bytes, false)?;
            self.plan.ops.push(Op::Copy { from, to: Range::new(buffer, 0, from.bytes) });
            used[at].0 = Range { buffer, offset: range.offset - from.offset, ..range };
        }
        Ok(())
    }

    fn bind(&mut self, range: Range, is_written: bool, element: u64) -> Result<Bound> {
        let count = (range.bytes / element) as u32;
        if count == 0 {
            return Ok(Bound { whole: self.nothing(is_written)?, windows: 1, begin: 0, count });
        }
        let limits = &self.gpu.limits;
        let alignment = u64::from(limits.min_storage_buffer_offset_alignment).max(ALIGNMENT);
        let offset = range.offset / alignment * alignment;
        // Whole vectors: a shader may load four words at once.
        let bytes = (range.end() - offset).next_multiple_of(ALIGNMENT);
        let most = limits.max_storage_buffer_binding_size;
        let windows = if bytes <= most { 1 } else { bytes.div_ceil(1 << most.ilog2()) as u32 };
        let begin = ((range.offset - offset) / element) as u32;
        if u64::from(begin) + u64::from(count) > 1 << 32 {
            return Err(Error::Unsupported {
                feature: format!(
                    "{count} elements that begin {begin} elements behind where they can be bound"
                ),
                backend: NAME,
                help: format!("bind them at a multiple of {alignment} bytes"),
            });
        }
        Ok(Bound { whole: Range::new(range.buffer, offset, bytes), windows, begin, count })
    }

    /// Memory for a slot without elements: something has to be bound.
    fn nothing(&mut self, is_written: bool) -> Result<Range> {
        let place = &mut self.nothing[usize::from(is_written)];
        if let Some(buffer) = place {
            return Ok(Range::new(*buffer, 0, ALIGNMENT));
        }
        let buffer = self.lease(ALIGNMENT, false)?;
        self.nothing[usize::from(is_written)] = Some(buffer);
        Ok(Range::new(buffer, 0, ALIGNMENT))
    }

    /// The word that says that a loop was cut off: one for all launches of the batch.
    fn cut(&mut self) -> Result<Range> {
        let buffer = match self.plan.cut {
            Some(buffer) => buffer,
            None => self.lease(ALIGNMENT, true)?,
        };
        self.plan.cut = Some(buffer);
        Ok(Range::new(buffer, 0, 4))
    }

    fn group(&self, shader: &Variant, bound: &[Bound]) -> Group {
        let window = 1u64 << self.gpu.limits.max_storage_buffer_binding_size.ilog2();
        let mut bindings = Vec::with_capacity(bound.len());
        for Bound { whole, windows, .. } in bound {
            let step = if *windows == 1 { whole.bytes } else { window };
            let starts = (0..u64::from(*windows)).map(|k| k * step);
            bindings.extend(
                starts.map(|start| (whole.buffer, whole.offset + start, (whole.bytes - start).min(step))),
            );
        }
        let parameter_bytes = parameter_words(bound.len()) as u64 * 4;
        Group { shader: shader.id, parameter_bytes, bindings }
    }

    /// The number of a bind group. Equal ones have one.
    fn number_of(&mut self, group: Group) -> usize {
        if let Some(known) = self.groups.get(&group) {
            return *known;
        }
        let number = self.plan.groups.len();
        self.groups.insert(group.clone(), number);
        self.plan.groups.push(group);
        number
    }

    /// Where the parameters of a slice are in the data.
    fn parameters(&mut self, grid: [u32; 3], base: [u32; 3], bound: &[Bound]) -> Result<u32> {
        let mut words = vec![grid[0], grid[1], grid[2], 0, base[0], base[1], base[2], 0, 0, 0, 0, 0];
        words.extend(bound.iter().flat_map(|bound| [bound.begin, bound.count]));
        words.resize(parameter_words(bound.len()), 0);
        if let Some(known) = self.parameters.get(&words) {
            return Ok(*known);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let alignment = u64::from(self.gpu.limits.min_uniform_buffer_offset_alignment).max(ALIGNMENT);
        let offset = self.append(&bytes, alignment, 0)?;
        let full = || Error::OutOfMemory { what: "parameters".to_owned(), asked: offset, available: None };
        let offset = u32::try_from(offset).map_err(|_| full())?;
        self.parameters.insert(words, offset);
        Ok(offset)
    }
}

/// A grid in slices that a device takes.
struct Slices {
    workgroups: [u32; 3],
    most: u32,
}

impl Slices {
    fn new(workgroups: [u32; 3], most: u32) -> Result<Slices> {
        let count: u128 = workgroups.iter().map(|n| u128::from(n.div_ceil(most))).product();
        if count > MOST_SLICES {
            let help =
                format!("this device takes {MOST_SLICES} launches of at most {most} workgroups on each axis");
            let feature = format!("a grid of {workgroups:?} workgroups");
            return Err(Error::Unsupported { feature, backend: NAME, help });
        }
        Ok(Slices { workgroups, most })
    }

    /// The first workgroup of each slice, and how many it has on each axis.
    fn iter(&self) -> impl Iterator<Item = ([u32; 3], [u32; 3])> {
        let along = |axis: usize| {
            let (all, most) = (self.workgroups[axis], self.most);
            (0..all.div_ceil(most)).map(move |k| (k * most, (all - k * most).min(most)))
        };
        along(2).flat_map(move |(z, of_z)| {
            along(1).flat_map(move |(y, of_y)| along(0).map(move |(x, of_x)| ([x, y, z], [of_x, of_y, of_z])))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_a_grid_once() {
        let slices = Slices::new([7, 1, 5], 3).expect("few slices");
        let mut seen = vec![0; 35];
        for (base, count) in slices.iter() {
            for z in base[2]..base[2] + count[2] {
                for x in base[0]..base[0] + count[0] {
                    seen[(z * 7 + x) as usize] += 1;
                }
            }
        }
        assert_eq!(seen, vec![1; 35]);
        assert_eq!(Slices::new([u32::MAX, 0, 9], 65535).expect("no slices").iter().count(), 0);
        assert!(Slices::new([u32::MAX, 1, 1], 65535).is_ok());
        assert!(Slices::new([u32::MAX; 3], 65535).is_err());
    }
}
