//! Compiled programs in memory: by program, options and device, the least recently used one leaving first.

use crate::backend::CompiledPipeline;
use crate::config::CompileOptions;
use crate::error::Result;
use crate::telemetry::Telemetry;
use crate::unit::Unit;
use indexmap::IndexMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vyre_foundation::ProgramHash;

/// The compiled programs of one backend instance. The instance is the device of the key.
pub struct PipelineCache {
    limit: u64,
    held: Mutex<Held>,
}

/// Ordered by use, the least recent first.
#[derive(Default)]
struct Held {
    entries: IndexMap<(ProgramHash, CompileOptions), Arc<dyn CompiledPipeline>>,
    bytes: u64,
}

/// What a cache holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheUse {
    /// How many programs.
    pub entries: u64,
    /// How many bytes of code.
    pub bytes: u64,
}

impl PipelineCache {
    /// A cache for at most so many bytes of code.
    pub fn new(limit: u64) -> PipelineCache {
        PipelineCache { limit, held: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pipeline of a program, compiled now if it is not there. Two threads that ask at once may both compile;
    /// one result is kept.
    pub fn get_or_compile(
        &self,
        unit: &Unit,
        options: &CompileOptions,
        telemetry: &Telemetry,
        compile: impl FnOnce() -> Result<Arc<dyn CompiledPipeline>>,
    ) -> Result<Arc<dyn CompiledPipeline>> {
        let key = (unit.hash(), *options);
        if let Some(found) = self.touch(&key) {
            telemetry.memory_hits(1);
            return Ok(found);
        }
        telemetry.memory_misses(1);
        let made = compile()?;
        let mut held = self.lock();
        if let Some(first) = held.entries.get(&key) {
            return Ok(Arc::clone(first));
        }
        held.bytes += made.code_bytes();
        telemetry.pipelines_kept(1);
        telemetry.code_kept(made.code_bytes());
        held.entries.insert(key, Arc::clone(&made));
        while held.bytes > self.limit && held.entries.len() > 1 {
            let Some((_, oldest)) = held.entries.shift_remove_index(0) else { break };
            held.bytes -= oldest.code_bytes();
            telemetry.pipelines_dropped(1);
            telemetry.code_dropped(oldest.code_bytes());
        }
        Ok(made)
    }

    /// The pipeline of a program that was compiled before.
    pub fn find(&self, hash: ProgramHash, options: &CompileOptions) -> Option<Arc<dyn CompiledPipeline>> {
        self.touch(&(hash, *options))
    }

    fn touch(&self, key: &(ProgramHash, CompileOptions)) -> Option<Arc<dyn CompiledPipeline>> {
        let mut held = self.lock();
        let place = held.entries.get_index_of(key)?;
        let last = held.entries.len() - 1;
        held.entries.move_index(place, last);
        Some(Arc::clone(&held.entries[last]))
    }

    /// What it holds.
    pub fn in_use(&self) -> CacheUse {
        let held = self.lock();
        CacheUse { entries: held.entries.len() as u64, bytes: held.bytes }
    }

    /// Forgets everything. Pipelines that are still in use stay until then.
    pub fn clear(&self, telemetry: &Telemetry) {
        let mut held = self.lock();
        telemetry.pipelines_dropped(held.entries.len() as u64);
        telemetry.code_dropped(held.bytes);
        held.entries.clear();
        held.bytes = 0;
    }
}
