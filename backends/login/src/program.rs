//! What the programs have in common: arguments, configuration, log, server, stop.

mod logging;
mod server;
mod sweeper;

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context;
use axum::Router;
use clap::{Arg, ArgAction, Command, value_parser};
use signpost_store::{Database, changes};

use crate::{
    clock::SystemClock,
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
        Ok(()) => ExitCode::SUCCESS,
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
pub fn start(config: Config) -> anyhow::Result<(Arc<Service>, changes::Watch)> {
    // An error says that somebody else installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let database = Database::open(config.store())?;
    let stores = Stores::sqlite(&database);
    let service = Service::new(config, stores, Arc::new(SystemClock))
        .context("no HTTP client for the providers")?;
    let watched = Arc::clone(&service);
    let watch = changes::watch(&database, move |change| watched.on_change(&change));
    Ok((
        service,
        watch.context("the store's changes cannot be watched")?,
    ))
}

fn try_run(program: &Program) -> anyhow::Result<()> {
    let arguments = arguments(program).get_matches();
    let file: &PathBuf = arguments.get_one("config").expect("it has a default");
    let config = Config::load(file)?;
    if arguments.get_flag("check") {
        say(&format!("{}: nothing to complain about", file.display()));
        return Ok(());
    }
    logging::start(config.log());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.worker_threads())
        .enable_all()
        .build()
        .context("no threads to serve requests with")?;
    let (service, _watch) = start(config)?;
    let app = (program.router)(Arc::clone(&service));
    let served = runtime.block_on(server::serve(program, &service, app));
    // What still runs was given its time by the server.
    runtime.shutdown_background();
    served
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
    Command::new(program.name)
        .about(program.about)
        .version(program.version)
        .arg(config)
        .arg(check)
}

#[expect(
    clippy::print_stdout,
    reason = "the answer to --check is the program's output"
)]
fn say(line: &str) {
    println!("{line}");
}

#[expect(
    clippy::print_stderr,
    reason = "there may be no log yet, and whoever starts the program looks here"
)]
fn complain(error: &anyhow::Error) {
    eprintln!("{error:#}");
}
