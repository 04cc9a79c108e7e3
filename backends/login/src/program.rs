//! What the programs have in common: arguments, configuration, log, server, stop.

mod logging;
mod server;
mod sweeper;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use axum::Router;
use clap::{Arg, ArgAction, Command, value_parser};
use signpost_kit::clock::{Clock, SystemClock};
use signpost_kit::log_writer::write_last_words;
use signpost_store::{Store, changes::Watch};

use crate::{
    config::Config,
    service::{Service, Stores},
};

/// One program of this service.
pub struct Program {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, for `--help`.
    pub about: &'static str,
    /// Its own version.
    pub version: &'static str,
    /// Where its configuration is unless told otherwise.
    pub config: &'static str,
    /// Makes its routes.
    pub router: fn(Arc<Service>) -> Router,
}

/// Runs a program until it is told to stop: `main`, but for the name.
#[must_use]
pub fn run(program: &Program) -> ExitCode {
    match try_run(program) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// Opens the store, watches it for changes of other processes, and puts the service together.
///
/// # Errors
///
/// The database cannot be opened or migrated, or the HTTP client for the providers cannot be made.
pub async fn start(config: Config) -> anyhow::Result<(Arc<Service>, Watch)> {
    // An error says that somebody else installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = Store::open(config.store()).await?;
    let address = &config.store().address;
    tracing::info!(store = %address, "the store is {address}");
    let stores = Stores::of(&store);
    let service = Service::new(config, stores, Arc::new(SystemClock))
        .context("no HTTP client for the providers")?;
    // Not by the first request that needs it: many would wait for each other where the store hangs.
    let sealed = service.seal().await.map(drop);
    sealed.context("the key of redirect logins cannot be read")?;
    let watched = Arc::clone(&service);
    let watch = store.watch(since_epoch, move |change| watched.on_change(&change));
    Ok((
        service,
        watch.context("the store's changes cannot be watched")?,
    ))
}

fn since_epoch() -> Duration {
    SystemClock.now().since_epoch()
}

fn try_run(program: &Program) -> anyhow::Result<ExitCode> {
    let arguments = arguments(program).get_matches();
    let file: &PathBuf = arguments.get_one("config").expect("it has a default");
    let config = Config::load(file)?;
    if arguments.get_flag("check") {
        for warning in config.warnings() {
            say(&format!("warning: {warning}"));
        }
        say(&format!("{}: nothing to complain about", file.display()));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.get_flag("health") {
        let health = signpost_kit::health::ask(config.listen())?;
        say(&health.words);
        return Ok(if health.is_ready {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let log = logging::start(config.log())?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.worker_threads())
        .enable_all()
        .build()
        .context("no threads to serve requests with")?;
    let served = runtime.block_on(async {
        let (service, _watch) = start(config).await?;
        let app = (program.router)(Arc::clone(&service));
        server::serve(program, &service, app).await
    });
    // What still runs was given its time by the server.
    runtime.shutdown_background();
    log.flush();
    served.map(|()| ExitCode::SUCCESS)
}

fn arguments(program: &Program) -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .default_value(program.config)
        .help("The configuration file");
    let check = Arg::new("check")
        .long("check")
        .action(ArgAction::SetTrue)
        .help("Only check the configuration: every problem is told, exit code 0 or 1");
    let health = Arg::new("health")
        .long("health")
        .action(ArgAction::SetTrue)
        .conflicts_with("check")
        .help("Ask the program that runs with this configuration whether it can serve: exit code 0 or 1");
    Command::new(program.name)
        .about(program.about)
        .version(program.version)
        .arg(config)
        .arg(check)
        .arg(health)
}

#[expect(
    clippy::print_stdout,
    reason = "the answers to --check and --health are the program's output"
)]
fn say(line: &str) {
    println!("{line}");
}

fn complain(error: &anyhow::Error) {
    write_last_words(format!("{error:#}"));
}
