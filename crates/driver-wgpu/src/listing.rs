//! What a program becomes, for people and for other tools. Nothing here needs a device.

use crate::emit::{ENTRY, Form, Manner, emit_into};
use crate::pipeline::{STACK, legal_kernel};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use vyre_driver::{Error, Result, Unit};
use vyre_foundation::Program;

/// The program as WGSL. A program in segments has an entry point for each.
///
/// ```
/// use vyre_driver::Unit;
/// use vyre_foundation::Program;
///
/// let program = Program::parse("program p { buffer o: output u32[]; o[global_id.x] = 7; }").unwrap();
/// let text = vyre_driver_wgpu::wgsl(&Unit::new(program)?)?;
/// assert!(text.contains("@compute"));
/// # Ok::<(), vyre_driver::Error>(())
/// ```
pub fn wgsl(unit: &Unit) -> Result<String> {
    stacker::maybe_grow(STACK.0, STACK.1, || {
        let (module, info) = module(unit)?;
        let flags = naga::back::wgsl::WriterFlags::empty();
        naga::back::wgsl::write_string(&module, &info, flags).map_err(failed)
    })
}

/// The program as the words of a SPIR-V module. A program in segments has an entry point for each.
pub fn spirv(unit: &Unit) -> Result<Vec<u32>> {
    let mut options = naga::back::spv::Options {
        lang_version: (1, 3),
        force_loop_bounding: false,
        bounds_check_policies: naga::proc::BoundsCheckPolicies::default(),
        ..naga::back::spv::Options::default()
    };
    options.flags.remove(naga::back::spv::WriterFlags::ADJUST_COORDINATE_SPACE);
    stacker::maybe_grow(STACK.0, STACK.1, || {
        let (module, info) = module(unit)?;
        naga::back::spv::write_vec(&module, &info, &options, None).map_err(failed)
    })
}

/// A shader that naga refuses is a defect of the emitter: the whole chain of reasons is told.
fn failed(error: impl std::error::Error) -> Error {
    let mut text = format!("the shader cannot be written: {error}");
    let mut cause = error.source();
    while let Some(reason) = cause {
        text.push_str(": ");
        text.push_str(&reason.to_string());
        cause = reason.source();
    }
    Error::Internal(text)
}

/// The shader of a program, valid.
fn module(unit: &Unit) -> Result<(naga::Module, ModuleInfo)> {
    let mut module = naga::Module::default();
    let needs = unit.needs();
    if needs.grid_sync || needs.traps {
        let schedule = unit.schedule()?;
        if schedule.segments().is_empty() {
            // Barriers with nothing between them: a shader that does nothing.
            let program = unit.program();
            let empty = Program::new(Vec::new(), program.workgroup_size(), Vec::new());
            module = entry(module, ENTRY, &Unit::new(empty)?)?;
        }
        for (number, segment) in schedule.segments().iter().enumerate() {
            module = entry(module, &format!("segment{number}"), segment.unit())?;
        }
    } else {
        module = entry(module, ENTRY, unit)?;
    }
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    let info = validator.validate(&module).map_err(|error| failed(error.into_inner()))?;
    Ok((module, info))
}

fn entry(module: naga::Module, name: &str, unit: &Unit) -> Result<naga::Module> {
    let slots = unit.bindings().slots().len();
    let form =
        Form { windows: vec![1; slots], shifted: vec![false; slots], window_bits: 27, manner: Manner::PLAIN };
    let legal = legal_kernel(unit, form.manner.floats);
    emit_into(module, name, legal.as_ref().unwrap_or_else(|| unit.kernel()), &form)
}
