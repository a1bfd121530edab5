//! The command line of vyre, as a library so that tests run what the binary runs.
//!
//! `args` says what can be asked for, `values` turns the values of `--in` into bytes, `run`, `check` and `fmt`
//! are the commands, `report` prints what came out, and `failure` what went wrong.

mod args;
mod check;
pub mod failure;
mod fmt;
mod npy;
mod print;
mod report;
pub mod run;
mod trace;
pub mod values;

pub use args::{Backend, RunArgs};

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => run::command(&args),
        Command::Check(args) => check::command(&args),
        Command::Fmt(args) => fmt::command(&args),
    }
}

/// The Rust in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
