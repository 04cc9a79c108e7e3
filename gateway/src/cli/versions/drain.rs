//! `signpost versions drain` and `undrain`: an address gets no new requests for a time, at all gateways of the store.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use signpost_kit::{
    clock::{Clock, SystemClock},
    command::print_line,
    reload::control::{Verb, send},
};
use signpost_management::{administration::drains::Drains, reports::versions::configured};
use signpost_proxy::{
    BackendStatus, Config, DrainedAddress, program::parse_short_duration, rfc3339,
};
use signpost_store::Store;

use super::list::running;
use crate::cli::{author::Why, many};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DrainArguments {
    #[command(flatten)]
    of: AddressArguments,
    /// For how long, 1 second to 7 days: 10m, 1h30m or 2d.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    duration: Duration,
    /// Also if no other address of the backend is available: its requests are rejected then.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AddressArguments {
    /// The backend, as versions list shows it: for example v2, or "v2 (canary next)".
    backend: String,
    /// Its address, as versions list shows it: an IP address and a port.
    address: SocketAddr,
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
    #[command(flatten)]
    why: Why,
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    parse_short_duration(text).ok_or("allowed: a duration as 10m, 1h30m, 2d")
}

pub(super) async fn drain(arguments: DrainArguments) -> anyhow::Result<ExitCode> {
    let DrainArguments {
        of,
        duration,
        force,
    } = arguments;
    let config = Config::load(&of.config)?;
    let drains = open(&config, &of).await?;
    let now = SystemClock.now();
    let new = DrainedAddress {
        backend: of.backend,
        address: of.address,
        until: now.plus(duration),
        is_forced: force,
    };
    let backends = match running(send(&of.config, Verb::Status)) {
        Ok(Some(status)) => status.backends,
        // Names are resolved by a gateway only.
        Ok(None) | Err(_) => in_file(&config),
    };
    drains.drain(&new, &backends, &of.why.author(), now).await?;
    print_line(&format!(
        "{} of {} gets no new requests until {}; signpost versions list shows those in flight",
        new.address,
        new.backend,
        rfc3339(new.until)
    ));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn undrain(of: AddressArguments) -> anyhow::Result<ExitCode> {
    let drains = open(&Config::load(&of.config)?, &of).await?;
    let (author, now) = (of.why.author(), SystemClock.now());
    drains
        .undrain(&of.backend, of.address, &author, now)
        .await?;
    print_line(&format!(
        "{} of {} gets requests again",
        of.address, of.backend
    ));
    Ok(ExitCode::SUCCESS)
}

async fn open(config: &Config, of: &AddressArguments) -> anyhow::Result<Drains> {
    let because = "its gateway reads no store while it runs. Change the backend's addresses in the file, and reload it";
    many(config, &of.config, because)?;
    Ok(Drains::new(Store::open(&config.store).await?))
}

fn in_file(config: &Config) -> Vec<BackendStatus> {
    let backends = config.versions.backends();
    let status = backends.map(|backend| BackendStatus {
        backend: backend.name.to_string(),
        addresses: configured(&backend.upstream),
        leaving: 0,
    });
    status.collect()
}
