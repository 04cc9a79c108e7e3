//! `signpost master-key …`: replaces the master key.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;
use clap::Subcommand;
use serde_json::json;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_management::administration::reseal::{MasterKeyRotation, Progress, Unreadable};
use signpost_proxy::{Config, program::raise_statement_timeout};
use signpost_store::tables::audit::Author;

use super::{CommonOptions, author::Why, operation::configured_store, print_error, print_line};

/// Time from one line about the progress to the next.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Subcommand)]
pub(super) enum MasterKeyCommand {
    /// Encrypt all applications' keys with a new master key, while gateways run. No application's key changes.
    ///
    /// First set the new key as master_key and the one before as previous_master_key in the table applications of every
    /// gateway, and upgrade each. Then run this command once, with the configuration of one of them. If it is interrupted,
    /// run it again: it goes on where it was. Afterwards remove previous_master_key everywhere.
    ///
    /// Exit code 0 if all keys are encrypted with the new master key, otherwise 1.
    Rotate(Rotate),
}

#[derive(Debug, clap::Args)]
pub(super) struct Rotate {
    /// Change nothing, only print how far it is.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    common: CommonOptions,
}

pub(super) async fn run(command: MasterKeyCommand) -> anyhow::Result<ExitCode> {
    let MasterKeyCommand::Rotate(rotate) = command;
    let mut config = Config::load(&rotate.common.config)?;
    raise_statement_timeout(&mut config.store);
    let store = configured_store(&config, &rotate.common).await?;
    let store = MasterKeyRotation(store);
    let unreadable = if rotate.check {
        Unreadable::default()
    } else {
        reseal(&store, rotate.why.author(), rotate.common.json).await?
    };
    let progress = store.reseal_progress().await?;
    print(&store, &progress, rotate.common.json);
    for (ident, cause) in &unreadable.named {
        print_error(&format!("application {ident}: its key is {cause}"));
    }
    if unreadable.count > 0 {
        bail!(
            "keys of {} applications cannot be decrypted: restore their master key as previous_master_key and run the \
             command again, or rotate or delete these applications",
            unreadable.count
        );
    }
    Ok(ExitCode::from(u8::from(progress.remaining > 0)))
}

/// Seals all keys anew, and prints how far it is.
async fn reseal(
    store: &MasterKeyRotation,
    author: Author,
    is_json: bool,
) -> anyhow::Result<Unreadable> {
    let (new, before) = store.exchanged_master_keys()?;
    let Progress { remaining, .. } = store.reseal_progress().await?;
    let (mut done, mut printed_at) = (0, Instant::now());
    if !is_json {
        print_line(&format!(
            "encrypting the keys of {remaining} applications with master key {new} instead of {before}"
        ));
    }
    let on_progress = |replaced| {
        done += replaced;
        if !is_json && printed_at.elapsed() >= PROGRESS_INTERVAL {
            printed_at = Instant::now();
            print_line(&format!("{done} of {remaining}"));
        }
    };
    Ok(store
        .reseal_all(author, SystemClock.now(), on_progress)
        .await?)
}

fn print(store: &MasterKeyRotation, progress: &Progress, is_json: bool) {
    let Progress {
        applications,
        remaining,
    } = progress;
    let current = store.master_key();
    if is_json {
        let progress = json!({
            "applications": applications,
            "remaining": remaining,
            "master_key": current.to_string(),
        });
        print_line(&progress.to_string());
    } else if *remaining == 0 {
        print_line(&format!(
            "all keys of {applications} applications are encrypted with master key {current}: previous_master_key can be \
             removed"
        ));
    } else {
        print_line(&format!(
            "{remaining} of {applications} applications have a key that is not encrypted with master key {current}"
        ));
    }
}
