//! A device for the tests.

// Each test file uses a part of it, and whoever runs them is to see what was skipped.
#![allow(dead_code, clippy::print_stderr)]

use std::sync::Arc;
use vyre_driver_wgpu::WgpuBackend;

/// A backend on the device of this machine. Where there is none the test is skipped, unless `VYRE_REQUIRE_WGPU=1`.
pub(crate) fn start() -> Option<Arc<WgpuBackend>> {
    match WgpuBackend::new() {
        Ok(backend) => Some(Arc::new(backend)),
        Err(error) => {
            let is_required = std::env::var("VYRE_REQUIRE_WGPU").is_ok_and(|value| value == "1");
            assert!(!is_required, "a device is required: {error}");
            eprintln!("\n*** SKIPPED: there is no device for wgpu on this machine: {error} ***\n");
            None
        }
    }
}

pub(crate) fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Numbers that look random and are the same every time.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 32)) % end.max(1)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
