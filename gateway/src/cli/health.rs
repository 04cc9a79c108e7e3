//! `signpost health`: asks the running gateway whether it can serve.

use std::process::ExitCode;

use super::{ConfigFile, say};

/// Prints what `/readyz` of the management listener answers; success is 200.
pub(super) fn run(file: &ConfigFile) -> anyhow::Result<ExitCode> {
    let health = signpost_kit::health::ask_program(&file.config, || Ok(file.load()?.management))?;
    say(&health.words);
    Ok(if health.is_ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
