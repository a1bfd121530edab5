//! The other routes of vyre through grid barriers: one launch per segment, with what lives between them on the device or
//! in the host's memory. The native route, one launch for all, is what [`crate::vyre`] measures.

use crate::cases::Case;
use crate::contender::{Contender, Platform};
use crate::data::Role;
use anyhow::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vyre_driver::{BackendExt, DispatchConfig, Pipeline, RawHandle, Route, VyreBackend};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::Program;

/// The routes that are not native.
pub(crate) const OTHERS: [Route; 2] = [Route::Resident, Route::Host];

/// Whether a platform is one of these routes.
pub(crate) fn is_route(platform: &str) -> bool {
    OTHERS.into_iter().any(|route| name(route) == platform)
}

fn name(route: Route) -> &'static str {
    match route {
        Route::Auto => "auto",
        Route::Native => "native",
        Route::Resident => "resident",
        Route::Host => "host",
    }
}

/// The CPU backend by one of the routes.
pub(crate) struct Routed {
    backend: CpuBackend,
    route: Route,
    threads: Vec<usize>,
}

impl Routed {
    /// A backend that can use so many threads.
    pub(crate) fn new(threads: &[usize], route: Route) -> Result<Routed> {
        let most = threads.iter().copied().max().unwrap_or(1);
        let options = CpuOptions { threads: most, cache_folder: None, ..CpuOptions::default() };
        Ok(Routed { backend: CpuBackend::with_options(options)?, route, threads: threads.to_vec() })
    }
}

impl Platform for Routed {
    fn name(&self) -> &'static str {
        name(self.route)
    }

    fn about(&self) -> String {
        format!("vyre {}, one launch per segment", self.backend.profile().version)
    }

    fn threads(&self) -> Vec<usize> {
        self.threads.clone()
    }

    fn concerns(&self, case: &Case) -> bool {
        case.text.has_grid_barriers()
    }

    fn prepare<'a>(&'a self, case: &'a Case) -> Result<Box<dyn Contender + 'a>> {
        let grid = case.grid()?;
        let config = DispatchConfig::new().grid(grid).route(self.route);
        let pipeline = self.backend.compile_native_shared(&Program::parse(case.text.vyre)?, &config)?;
        // From here on dropping frees what has been allocated.
        let mut prepared = Prepared { backend: &self.backend, case, pipeline, config, handles: Vec::new() };
        for buffer in case.buffers.iter().filter(|buffer| buffer.role != Role::Scratch) {
            let bytes = buffer.initial.bytes();
            let handle = self.backend.allocate_resident(bytes.len() as u64)?;
            prepared.handles.push(handle);
            self.backend.upload_resident(handle, bytes)?;
        }
        // Says why where the route cannot be taken.
        prepared.run(1)?;
        Ok(Box::new(prepared))
    }
}

struct Prepared<'a> {
    backend: &'a CpuBackend,
    case: &'a Case,
    pipeline: Arc<Pipeline>,
    config: DispatchConfig,
    /// The buffers that are not scratch.
    handles: Vec<RawHandle>,
}

impl<'a> Prepared<'a> {
    fn buffers(&self) -> impl Iterator<Item = (RawHandle, &'a crate::data::Buffer)> {
        let buffers = self.case.buffers.iter().filter(|buffer| buffer.role != Role::Scratch);
        self.handles.iter().copied().zip(buffers)
    }
}

impl Contender for Prepared<'_> {
    fn reset(&mut self) -> Result<()> {
        for (handle, buffer) in self.buffers().filter(|(_, buffer)| buffer.is_result()) {
            self.backend.upload_resident(handle, buffer.initial.bytes())?;
        }
        Ok(())
    }

    fn run(&mut self, threads: usize) -> Result<Duration> {
        let config = self.config.clone().threads(threads);
        let start = Instant::now();
        self.backend.dispatch_resident_timed(&self.pipeline, &self.handles, &config)?;
        Ok(start.elapsed())
    }

    fn results(&mut self) -> Result<Vec<Vec<u8>>> {
        let results = self.buffers().filter(|(_, buffer)| buffer.is_result());
        Ok(results.map(|(handle, _)| self.backend.download_resident(handle)).collect::<Result<_, _>>()?)
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        for handle in &self.handles {
            // Freeing what was just in use can only fail if the backend is gone.
            let _ = self.backend.free_resident(*handle);
        }
    }
}
