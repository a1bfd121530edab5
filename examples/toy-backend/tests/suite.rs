//! The backend suite, as any backend runs it.

use std::sync::Arc;
use vyre_toy_backend::ToyBackend;

#[test]
fn the_toy_device_passes_the_backend_suite() {
    vyre_conform::suite::assert_passes(&|| Arc::new(ToyBackend::new()));
}
