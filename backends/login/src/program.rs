//! The `main` of every version: arguments, configuration and its reload, log, server, shutdown.

mod management;
mod running;
mod server;
mod sweeper;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use clap::{Arg, ArgAction, Command, value_parser};
use signpost_kit::{
    clock::{Clock, SystemClock},
    command::{print_health, print_line, send_command},
    config::Loaded,
    log::{Logging, ReopenSignals, log_warnings, writer::write_final_line},
    reload::{ReloadSignals, Reloader, control::Verb},
};
use signpost_store::{Store, changes::Watch};

use self::{
    management::ProcessCounts,
    running::{ProgramReload, Running},
};
use crate::{
    config::Config,
    http::{EndpointsError, Routes},
    service::{Service, Stores},
};

/// A program of this service.
pub struct Program {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description in `--help`.
    pub about: &'static str,
    /// Its version number.
    pub version: &'static str,
    /// Default of `--config`.
    pub config: &'static str,
    /// Creates its routes: at the start, and for each snapshot of a reload. An error ends the start.
    pub router: fn(Arc<Service>) -> Result<Routes, EndpointsError>,
}

/// Runs a program until it is stopped, as its `main`.
#[must_use]
pub fn run(program: &Program) -> ExitCode {
    match try_run(program) {
        Ok(code) => code,
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Opens the store, subscribes to its change feed, and creates the service.
///
/// # Errors
///
/// The database cannot be opened or migrated, or the HTTP client for the providers cannot be created.
pub async fn start(config: Config) -> anyhow::Result<(Arc<Service>, Watch)> {
    // An error means that one is installed already, for example by an earlier start in the same process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = Store::open(&config.store).await?;
    let address = &config.store.address;
    tracing::info!(store = %address, "using the store");
    let stores = Stores::new(&store);
    let service = Service::new(config, stores, Arc::new(SystemClock))
        .context("cannot create an HTTP client for the providers")?;
    // Read now and not by the first request: with a slow store, all requests that need the key would queue for it.
    let seal = service.state.seal().await.map(drop);
    seal.context("cannot read the key of redirect logins from the store")?;
    let state = Arc::clone(service.state());
    let watch = store.watch(since_epoch, move |change| state.on_change(&change));
    Ok((
        service,
        watch.context("cannot subscribe to the store's change feed")?,
    ))
}

fn since_epoch() -> Duration {
    SystemClock.now().since_epoch()
}

fn try_run(program: &Program) -> anyhow::Result<ExitCode> {
    // Before all else: without a handler, the signal of a log rotation would end the process.
    let reopen = ReopenSignals::listen().context("cannot handle SIGUSR1")?;
    let arguments = arguments(program).get_matches();
    let file: &PathBuf = arguments.get_one("config").expect("it has a default");
    if arguments.get_flag("reload") {
        return send_command(file, Verb::Reload);
    }
    // The running program checks the file, since its environment variables may differ from this command's.
    if arguments.get_flag("diff") {
        return send_command(file, Verb::Diff);
    }
    if arguments.get_flag("health") {
        return print_health(file, || Ok(Config::load_settings(file)?.config.listen));
    }
    let Loaded { config, settings } = Config::load_settings(file)?;
    if arguments.get_flag("check") {
        for warning in config.warnings() {
            print_line(&format!("warning: {warning}"));
        }
        print_line(&format!("{}: OK", file.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let log = Logging::start(&config.log, reopen)?;
    log_warnings(&config.warnings());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.threads)
        .enable_all()
        .build()
        .context("cannot create threads to serve requests")?;
    let served = runtime.block_on(async {
        // Before all else: without a handler, a SIGHUP during the start would end the process.
        let hangups = ReloadSignals::listen().context("cannot handle SIGHUP")?;
        let listen = config.listen;
        let (service, _watch) = start(config).await?;
        let running = Running::new(program, service)?;
        let reload = ProgramReload {
            running: running.clone(),
            log: log.clone(),
            listen,
        };
        let counts = ProcessCounts {
            reloads: Arc::default(),
            dropped_lines: log.writer().dropped_lines(),
        };
        let reloads = Arc::clone(&counts.reloads);
        let reloader = Reloader::new(reload, file.clone(), settings, hangups, reloads);
        tokio::spawn(reloader.run());
        let served = server::serve(program, &running, counts).await;
        served.map(|()| running.service())
    });
    // The server has waited for the remaining tasks as long as the grace period allows.
    runtime.shutdown_background();
    if let Ok(service) = &served {
        service.flush_spans();
    }
    log.writer().flush();
    served.map(|_| ExitCode::SUCCESS)
}

fn arguments(program: &Program) -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .default_value(program.config)
        .help("The configuration file");
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let check = flag("check").help(
        "Check the configuration file, and print all problems and warnings; exit code 0 or 1",
    );
    let diff = flag("diff")
        .requires("check")
        .help("With --check: have the running program check the file, and print what a reload would change");
    let reload = flag("reload")
        .conflicts_with("check")
        .help("Reload the running program's configuration, and print the changes or the errors; exit code 0 or 1");
    let health = flag("health")
        .conflicts_with_all(["check", "reload"])
        .help("Check whether the running program is ready to serve requests; exit code 0 or 1");
    Command::new(program.name)
        .about(program.about)
        .version(program.version)
        .arg(config)
        .arg(check)
        .arg(diff)
        .arg(reload)
        .arg(health)
}

fn print_error(error: &anyhow::Error) {
    write_final_line(format!("{error:#}"));
}
