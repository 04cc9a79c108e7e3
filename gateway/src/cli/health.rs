//! `signpost health`: asks the running gateway whether it can serve.

use std::{net::SocketAddr, process::ExitCode};

use super::say;

/// Prints what `/readyz` of the management listener answers; success is 200.
pub(super) fn run(management: SocketAddr) -> anyhow::Result<ExitCode> {
    let health = signpost_kit::health::ask(management)?;
    say(&health.words);
    Ok(if health.is_ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
