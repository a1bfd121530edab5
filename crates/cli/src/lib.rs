//! The command line of vyre, as a library so that tests run what the binary runs.
//!
//! `args` says what can be asked for, `source` reads programs, `values` turns the values of `--in` into bytes,
//! `run`, `check`, `fmt`, `split`, `opt`, `emit` and `devices` are the commands, `report` prints what came out, and `failure`
//! what went wrong. While a program runs, `progress` tells a person so, and `trace` records where the time goes.

mod args;
mod check;
mod devices;
mod emit;
pub mod failure;
mod fmt;
mod npy;
mod opt;
mod print;
mod progress;
mod report;
pub mod run;
mod source;
mod split;
mod trace;
pub mod values;

pub use args::{Backend, RunArgs};

use args::{Cli, Command};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli.command,
        Err(error) => return usage(&error, arguments.iter().any(|argument| argument == "--json")),
    };
    match command {
        Command::Run(args) => run::command(&args),
        Command::Check(args) => check::command(&args),
        Command::Fmt(args) => fmt::command(&args),
        Command::Split(args) => split::command(&args),
        Command::Opt(args) => opt::command(&args),
        Command::Emit(args) => emit::command(&args),
        Command::Devices(args) => devices::command(&args),
    }
}

/// Says what is wrong with the command line, as JSON where that was asked for; or helps.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if !json || !error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
    }
    let text = error.render().to_string();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let message = lines.next().unwrap_or("wrong usage").trim_start_matches("error: ").to_owned();
    let help = lines.map(str::trim).collect::<Vec<_>>().join("; ");
    let failure = failure::Failure::Usage { message, help };
    failure.print(true);
    ExitCode::from(failure.exit_code())
}
