//! `vyre emit`: what a backend makes of a program.

use crate::args::{EmitArgs, Target};
use crate::failure::Failure;
use crate::print;
use crate::source::Source;
use std::process::ExitCode;
use vyre_driver::Unit;
use vyre_driver_cpu::{CpuBackend, CpuOptions, Listing};

pub(crate) fn command(args: &EmitArgs) -> ExitCode {
    match emit(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(false);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn emit(args: &EmitArgs) -> Result<(), Failure> {
    let source = Source::read(&args.file)?;
    let unit = Unit::of(&source.program).map_err(|error| source.failure(error))?;
    let listing = match args.target {
        Target::Clif => Listing::Clif,
        Target::Asm => Listing::Asm,
        Target::Wgsl | Target::Spirv => return Err(Failure::NoBackend("wgpu")),
    };
    // Nothing runs and nothing is kept.
    let backend =
        CpuBackend::with_options(CpuOptions { threads: 1, cache_folder: None, ..CpuOptions::default() })?;
    let mut text = backend.listing(&unit, listing)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match &args.out {
        Some(path) => {
            std::fs::write(path, text).map_err(|error| Failure::Unwritable { path: path.clone(), error })
        }
        None => print::out(&text),
    }
}
