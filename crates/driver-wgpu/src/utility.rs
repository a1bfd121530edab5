//! Kernels of our own: what transfers cannot do. They are programs like any other, so every device gets them the same
//! way.

use crate::emit::Manner;
use crate::gpu::{Gpu, lock};
use crate::pipeline::WgpuPipeline;
use std::sync::{Arc, Mutex};
use vyre_driver::{Error, Result, Unit};
use vyre_foundation::Program;

/// A kernel of our own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Utility {
    FillWords,
    FillBytes,
    CopyWords,
    CopyBytes,
    CompareWords,
    CompareBytes,
    Control,
}

/// How many elements a workgroup of those that fill, copy or compare takes.
pub(crate) const ELEMENTS: u64 = 1024;

impl Utility {
    fn text(self) -> &'static str {
        match self {
            Utility::FillWords => include_str!("utility/fill_words.vyre"),
            Utility::FillBytes => include_str!("utility/fill_bytes.vyre"),
            Utility::CopyWords => include_str!("utility/copy_words.vyre"),
            Utility::CopyBytes => include_str!("utility/copy_bytes.vyre"),
            Utility::CompareWords => include_str!("utility/compare_words.vyre"),
            Utility::CompareBytes => include_str!("utility/compare_bytes.vyre"),
            Utility::Control => include_str!("utility/control.vyre"),
        }
    }
}

/// The kernels that have been asked for.
#[derive(Default)]
pub(crate) struct Utilities {
    compiled: Mutex<[Option<Arc<WgpuPipeline>>; 7]>,
}

impl Utilities {
    /// The kernel, compiled now if it was not before.
    pub(crate) fn get(&self, gpu: &Gpu, utility: Utility) -> Result<Arc<WgpuPipeline>> {
        let place = &mut lock(&self.compiled)[utility as usize];
        if let Some(compiled) = place {
            return Ok(Arc::clone(compiled));
        }
        let wrong = |error: &dyn std::fmt::Debug| Error::Internal(format!("{utility:?}: {error:?}"));
        let program = Program::parse(utility.text()).map_err(|errors| wrong(&errors))?;
        let unit = Unit::new(program).map_err(|error| wrong(&error))?;
        let compiled = Arc::new(WgpuPipeline::compile(gpu, &unit, Manner::PLAIN)?);
        *place = Some(Arc::clone(&compiled));
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_a_valid_program() {
        let all = [
            Utility::FillWords,
            Utility::FillBytes,
            Utility::CopyWords,
            Utility::CopyBytes,
            Utility::CompareWords,
            Utility::CompareBytes,
            Utility::Control,
        ];
        for utility in all {
            let program = Program::parse(utility.text()).expect("a program");
            program.validate().expect("a valid program");
        }
    }
}
