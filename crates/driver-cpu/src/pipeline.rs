//! A compiled program: its code, and what a launch of it needs. Also how it stands on disk.

use crate::code::Code;
use crate::compile::Compiled;
use std::sync::Arc;
use vyre_driver::{BindingPlan, CompiledPipeline, Error, Result, Telemetry, Unit};
use vyre_foundation::grid::Grid;
use vyre_foundation::{Name, Program};

/// A program compiled for this machine.
pub(crate) struct CpuPipeline {
    pub(crate) plan: BindingPlan,
    pub(crate) code: Code,
    /// The numbers of the buffers that are bound, in the order of the plan.
    pub(crate) bound: Vec<usize>,
    /// How many buffers the program declares.
    pub(crate) buffers: usize,
    /// The tags of traps, by their numbers.
    pub(crate) tags: Vec<Name>,
    pub(crate) frame_bytes: u64,
    pub(crate) kept_bytes: u64,
    pub(crate) segmented: bool,
    pub(crate) stack_bytes: u64,
    /// About how many operations an invocation does.
    pub(crate) weight: u32,
    /// How many threads a launch may use.
    pub(crate) threads: usize,
}

/// What is kept on disk of a compiled program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stored {
    pub(crate) compiled: Compiled,
    pub(crate) tags: Vec<Name>,
}

impl CpuPipeline {
    /// Makes stored code executable.
    pub(crate) fn new(
        unit: &Unit,
        stored: Stored,
        threads: usize,
        telemetry: Arc<Telemetry>,
    ) -> Result<CpuPipeline> {
        let Stored { compiled, tags } = stored;
        let code = Code::new(&compiled.code, telemetry).map_err(|_| Error::OutOfMemory {
            what: "executable code".to_owned(),
            asked: compiled.code.len() as u64,
            available: None,
        })?;
        let program: &Program = unit.program();
        let shared = program.buffers().iter().enumerate();
        let bound =
            shared.filter(|(_, buffer)| buffer.access().is_shared_by_grid()).map(|(i, _)| i).collect();
        Ok(CpuPipeline {
            plan: BindingPlan::of(program),
            code,
            bound,
            buffers: program.buffers().len(),
            tags,
            frame_bytes: compiled.frame_bytes,
            kept_bytes: compiled.kept_bytes,
            segmented: compiled.segmented,
            stack_bytes: compiled.stack_bytes,
            weight: compiled.weight,
            threads,
        })
    }
}

impl CompiledPipeline for CpuPipeline {
    fn plan(&self) -> &BindingPlan {
        &self.plan
    }

    fn hidden_bytes(&self, grid: Grid) -> u64 {
        let kept = grid.workgroup_count().saturating_mul(u128::from(self.kept_bytes));
        let frames = self.frame_bytes.saturating_mul(self.threads as u64);
        u64::try_from(kept).unwrap_or(u64::MAX).saturating_add(frames)
    }

    fn fits_natively(&self, _grid: Grid) -> bool {
        // Workgroups need not all be there at once: what they keep waits for them.
        true
    }

    fn code_bytes(&self) -> u64 {
        self.code.length()
    }
}

impl Stored {
    /// The bytes on disk: sizes, then tags, then code.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let Compiled { code, frame_bytes, kept_bytes, segmented, weight, stack_bytes } = &self.compiled;
        let mut bytes = Vec::with_capacity(code.len() + 64);
        bytes.extend_from_slice(&frame_bytes.to_le_bytes());
        bytes.extend_from_slice(&kept_bytes.to_le_bytes());
        bytes.extend_from_slice(&stack_bytes.to_le_bytes());
        bytes.extend_from_slice(&u32::from(*segmented).to_le_bytes());
        bytes.extend_from_slice(&weight.to_le_bytes());
        bytes.extend_from_slice(&(self.tags.len() as u32).to_le_bytes());
        for tag in &self.tags {
            bytes.extend_from_slice(&(tag.as_str().len() as u32).to_le_bytes());
            bytes.extend_from_slice(tag.as_str().as_bytes());
        }
        bytes.extend_from_slice(code);
        bytes
    }

    /// What stands in such bytes; `None` where they are something else.
    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<Stored> {
        fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
            let (head, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(*head)
        }
        let frame_bytes = u64::from_le_bytes(take(&mut bytes)?);
        let kept_bytes = u64::from_le_bytes(take(&mut bytes)?);
        let stack_bytes = u64::from_le_bytes(take(&mut bytes)?);
        let segmented = u32::from_le_bytes(take(&mut bytes)?) != 0;
        let weight = u32::from_le_bytes(take(&mut bytes)?);
        let count = u32::from_le_bytes(take(&mut bytes)?);
        let mut tags = Vec::new();
        for _ in 0..count {
            let length = u32::from_le_bytes(take(&mut bytes)?) as usize;
            let (tag, rest) = bytes.split_at_checked(length)?;
            tags.push(Name::from(std::str::from_utf8(tag).ok()?));
            bytes = rest;
        }
        let code = bytes.to_vec();
        let compiled = Compiled { code, frame_bytes, kept_bytes, segmented, weight, stack_bytes };
        Some(Stored { compiled, tags })
    }
}
