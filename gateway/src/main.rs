//! Signpost: arguments in, exit code out; the only place that ends the process.

use std::process::ExitCode;

use clap::Parser;
use gateway::cli::{self, Arguments};

fn main() -> ExitCode {
    match cli::run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            cli::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
