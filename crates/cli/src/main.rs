//! The binary `vyre`.

fn main() -> std::process::ExitCode {
    vyre_cli::main()
}
