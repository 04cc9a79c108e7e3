//! `signpost versions drain` and `undrain`: an address gets no new requests for a time, at all gateways of the store.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use clap::Args;
use signpost_kit::{
    command::print_line,
    reload::control::{Verb, send},
};
use signpost_management::{
    operations::{
        Context,
        backends::{self, DrainInput, UNDRAIN, UndrainInput},
    },
    reports::versions::configured,
};
use signpost_proxy::{BackendStatus, Config, rfc3339};

use super::list::running;
use crate::cli::operation::on_many;

/// What an operation is told, and the file that names its store.
#[derive(Debug, Args)]
pub(in crate::cli) struct OfFile<I: Args> {
    #[command(flatten)]
    input: I,
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
}

impl<I: Args> OfFile<I> {
    async fn open(self) -> anyhow::Result<(I, Config, Context)> {
        let config = Config::load(&self.config)?;
        let because = "its gateway reads no store while it runs. Change the backend's addresses in the file, and reload it";
        let context = on_many(&config, &self.config, because).await?;
        Ok((self.input, config, context))
    }
}

pub(super) async fn drain(arguments: OfFile<DrainInput>) -> anyhow::Result<ExitCode> {
    let status = running(send(&arguments.config, Verb::Status));
    let (input, config, context) = arguments.open().await?;
    let backends = match status {
        Ok(Some(status)) => status.backends,
        // Names are resolved by a gateway only.
        Ok(None) | Err(_) => in_file(&config),
    };
    let drained = backends::drain(&context, &backends, input).await?;
    print_line(&format!(
        "{} of {} gets no new requests until {}; signpost versions list shows those in flight",
        drained.address,
        drained.backend,
        rfc3339(drained.until)
    ));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn undrain(arguments: OfFile<UndrainInput>) -> anyhow::Result<ExitCode> {
    let (input, _, context) = arguments.open().await?;
    let undrained = (UNDRAIN.run)(&context, (), input).await?;
    print_line(&format!(
        "{} of {} gets requests again",
        undrained.address, undrained.backend
    ));
    Ok(ExitCode::SUCCESS)
}

fn in_file(config: &Config) -> Vec<BackendStatus> {
    let backends = config.versions.backends();
    let status = backends.map(|backend| BackendStatus {
        backend: backend.name.to_string(),
        addresses: configured(&backend.upstream),
        leaving: 0,
        responses: BTreeMap::new(),
    });
    status.collect()
}
