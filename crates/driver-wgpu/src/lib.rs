//! The wgpu backend of vyre: the same program and the same bytes on Vulkan, Metal and DX12.
//!
//! A kernel becomes a naga module (`emit`), never shader text. A batch becomes a plan of native transfers and
//! dispatches (`plan`), which is recorded into command buffers and waited for once (`execute`).

mod backend;
mod device;
mod emit;
mod execute;
mod gpu;
mod listing;
mod memory;
mod pipeline;
mod plan;
mod probe;
mod record;
mod timer;
mod utility;

pub use backend::WgpuBackend;
pub use device::WgpuOptions;
pub use listing::{spirv, wgsl};

/// The name of the backend.
pub const NAME: &str = "wgpu";
