//! What the programs have in common: arguments, configuration and its reload, log, server, stop.

mod running;
mod server;
mod sweeper;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use axum::Router;
use clap::{Arg, ArgAction, Command, value_parser};
use signpost_kit::{
    clock::{Clock, SystemClock},
    command::{ask, health, print_line},
    config::Loaded,
    log_writer::write_final_line,
    logging::{Logging, log_warnings},
    reload::{Hangups, Reloader, control::Verb},
};
use signpost_store::{Store, changes::Watch};

use self::running::{ProgramReload, Running};
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
        .context("cannot create an HTTP client for the providers")?;
    // Not by the first request that needs it: many would wait for each other where the store hangs.
    let sealed = service.state.seal().await.map(drop);
    sealed.context("the key of redirect logins cannot be read")?;
    let watched = Arc::clone(service.state());
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
    if arguments.get_flag("reload") {
        return ask(file, Verb::Reload);
    }
    // The running program has the environment that the file is meant for.
    if arguments.get_flag("diff") {
        return ask(file, Verb::Diff);
    }
    if arguments.get_flag("health") {
        return health(file, || Ok(Config::load_settings(file)?.config.listen()));
    }
    let Loaded { config, settings } = Config::load_settings(file)?;
    if arguments.get_flag("check") {
        for warning in config.warnings() {
            print_line(&format!("warning: {warning}"));
        }
        print_line(&format!("{}: OK", file.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let log = Logging::start(config.log())?;
    log_warnings(&config.warnings());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.threads())
        .enable_all()
        .build()
        .context("cannot create threads to serve requests")?;
    let served = runtime.block_on(async {
        // First of all, so that a SIGHUP ends no process that is still starting.
        let hangups = Hangups::listen().context("cannot handle SIGHUP")?;
        let listen = config.listen();
        let (service, _watch) = start(config).await?;
        let running = Running::new(program, service);
        let reload = ProgramReload {
            running: running.clone(),
            log: log.clone(),
            listen,
        };
        let reloader = Reloader::new(reload, file.clone(), settings, hangups);
        tokio::spawn(reloader.run());
        server::serve(program, &running).await
    });
    // What still runs was given its time by the server.
    runtime.shutdown_background();
    log.writer().flush();
    served.map(|()| ExitCode::SUCCESS)
}

fn arguments(program: &Program) -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .default_value(program.config)
        .help("The configuration file");
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let check = flag("check")
        .help("Check a configuration: all problems at once, and what its weak choices mean: exit code 0 or 1");
    let diff = flag("diff")
        .requires("check")
        .help("With --check: let the program that runs with this file check it, and print what a reload would change");
    let reload = flag("reload")
        .conflicts_with("check")
        .help("Reload the configuration of the running program; print what changed, or why not: exit code 0 or 1");
    let health = flag("health").conflicts_with_all(["check", "reload"]).help(
        "Ask the program that runs with this configuration whether it can serve: exit code 0 or 1",
    );
    Command::new(program.name)
        .about(program.about)
        .version(program.version)
        .arg(config)
        .arg(check)
        .arg(diff)
        .arg(reload)
        .arg(health)
}

fn complain(error: &anyhow::Error) {
    write_final_line(format!("{error:#}"));
}
