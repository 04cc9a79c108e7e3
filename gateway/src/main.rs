//! Entry point: parses the arguments, runs the command, returns the exit code.

mod cli;
mod process {
    //! The running program: its start, reload, upgrade and stop, and what it shows of its state.

    pub(crate) mod certificate_watch;
    pub(crate) mod drain_watch;
    pub(crate) mod listeners;
    pub(crate) mod old_rows;
    pub(crate) mod presence;
    pub(crate) mod rate_sharing;
    pub(crate) mod reconnect;
    pub(crate) mod reload;
    pub(crate) mod start;
    pub(crate) mod stop;
    pub(crate) mod upgrade;
    pub(crate) mod version_ends;
}

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
