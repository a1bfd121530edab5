//! `vyre emit`: what a backend makes of a program.

use crate::args::{EmitArgs, OnOff, Target};
use crate::failure::Failure;
use crate::print;
use crate::source::Source;
use std::io::IsTerminal;
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
    let unit = source.unit(!args.no_optimize)?;
    let bytes = match args.target {
        Target::Clif => of_cpu(&unit, Listing::Clif, args.simd)?,
        Target::Asm => of_cpu(&unit, Listing::Asm, args.simd)?,
        Target::Wgsl => as_lines(vyre_driver_wgpu::wgsl(&unit)?),
        Target::Spirv => vyre_driver_wgpu::spirv(&unit)?.iter().flat_map(|word| word.to_le_bytes()).collect(),
    };
    match &args.out {
        Some(path) => {
            std::fs::write(path, bytes).map_err(|error| Failure::Unwritable { path: path.clone(), error })
        }
        None if args.target == Target::Spirv && std::io::stdout().is_terminal() => Err(Failure::Usage {
            message: "SPIR-V is not for terminals".to_owned(),
            help: "write it to a file with `--out shader.spv`, or pipe it into `spirv-dis`".to_owned(),
        }),
        None => print::bytes(&bytes),
    }
}

/// What the CPU backend makes of a program. Nothing runs and nothing is kept.
fn of_cpu(unit: &Unit, listing: Listing, simd: OnOff) -> Result<Vec<u8>, Failure> {
    let options = CpuOptions { threads: 1, cache_folder: None, simd: simd.into(), ..CpuOptions::default() };
    let backend = CpuBackend::with_options(options)?;
    Ok(as_lines(backend.listing(unit, listing)?))
}

fn as_lines(mut text: String) -> Vec<u8> {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.into_bytes()
}
