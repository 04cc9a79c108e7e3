//! Signpost: arguments in, exit code out; the only place that ends the process.

use std::process::ExitCode;

use clap::Parser;
use gateway::cli::{self, Arguments};
use mimalloc::MiMalloc;

/// A request makes dozens of small allocations, most of them in pingora. Against the system's allocator this
/// saves a sixth of the CPU time per request, for 9 MiB of idle memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match cli::run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            cli::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
