//! Entry point: parses the arguments, runs the command, returns the exit code.

mod cli;
mod process;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Needs fewer instructions per allocation than the system's allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments = match cli::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match cli::run(arguments) {
        Ok(code) => code,
        Err(error) => {
            cli::print_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
