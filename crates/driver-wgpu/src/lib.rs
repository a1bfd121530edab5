//! The wgpu backend of vyre: the same program and the same bytes on Vulkan, Metal and DX12.
//!
//! A kernel becomes a naga module (`emit`), never shader text.

mod emit;
mod listing;

pub use listing::{spirv, wgsl};

/// The name of the backend.
pub const NAME: &str = "wgpu";
