//! The `main` of every version: arguments, configuration and its reload, log, server, shutdown.

mod check;
mod management;
mod running;
mod server;
mod sweeper;

use std::{path::Path, process::ExitCode, sync::Arc};

use anyhow::Context;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches as _, Subcommand as _};
use mimalloc::MiMalloc;
use signpost_kit::{
    clock::{Clock, SystemClock},
    command::{ConfigFile, SharedCommand, print_line},
    config::{ConfigError, Loaded},
    log::{Logging, ReopenSignals, check_output, log_warnings, writer::write_final_line},
    reload::{ReloadSignals, Reloader},
    server::signals::end_at_signals,
};
use signpost_store::{Store, changes::Watch};
use tokio::runtime;

pub(crate) use self::sweeper::sweep;
use self::{
    management::ProcessCounts,
    running::{Running, Snapshot},
};
use crate::{
    config::Config,
    http::{Configured, Version, Versions},
    metrics::FAMILIES,
    records::accounts::providers_with_accounts,
    service::Service,
};

/// Needs fewer instructions per allocation than the system's allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// A program of this service.
#[derive(Clone, Copy)]
pub struct Program {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description in `--help`.
    pub about: &'static str,
    /// Its version number.
    pub version: &'static str,
    /// Default of `--config`.
    pub config: &'static str,
}

/// Runs the program of one version until it is stopped, as its `main`.
#[must_use]
pub fn run<V: Version>(program: &Program) -> ExitCode {
    run_all(program, &Versions::one::<V>())
}

/// Runs a program that serves these versions until it is stopped, as its `main`.
#[must_use]
pub fn run_all(program: &Program, versions: &Versions) -> ExitCode {
    try_run(program, versions).unwrap_or_else(|error| {
        write_final_line(format!("{error:#}"));
        ExitCode::FAILURE
    })
}

/// Opens the store, subscribes to its change feed, and creates the service.
///
/// # Errors
///
/// The database cannot be opened or migrated, or the HTTP client for the providers cannot be created.
async fn start(config: Config) -> anyhow::Result<(Arc<Service>, Watch)> {
    // An error means that one is installed already, for example by an earlier start in the same process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = Store::open(&config.store).await?;
    tracing::info!(store = %config.store.address, "using the store");
    let service = Service::new(config, &store, Arc::new(SystemClock))
        .context("cannot create an HTTP client for the providers")?;
    let names = providers_with_accounts(&store).await;
    let names = names.context("cannot read the accounts' providers from the store")?;
    log_warnings(&check::warnings(&service.config, &names));
    // Read now and not by the first request: with a slow store, all requests that need the key would queue for it.
    let seal = service.state.seal().await.map(drop);
    seal.context("cannot read the key of redirect logins from the store")?;
    let state = Arc::clone(&service.state);
    // Before the first request fills a cache: a change in between would be missed.
    let watch = store.watch(
        || SystemClock.now().since_epoch(),
        move |change| state.on_change(&change),
    );
    let watch = watch.context("cannot subscribe to the store's change feed")?;
    Ok((service, watch))
}

fn try_run(program: &Program, versions: &Versions) -> anyhow::Result<ExitCode> {
    // Before all else: without a handler, the signal of a log rotation would end the process.
    let reopen = ReopenSignals::listen().context("cannot handle SIGUSR1")?;
    let matches = command(program).get_matches();
    let is_command = matches.subcommand().is_some();
    end_at_signals(is_command).context("cannot handle SIGTERM, SIGINT and SIGHUP")?;
    if is_command {
        return run_command(command(program), &matches, versions);
    }
    let ConfigFile { config: file } = ConfigFile::from_arg_matches(&matches)?;
    let Loaded { config, settings } = load(&file, versions)?;
    let (mut config, configured) = config;
    config.store.program = format!("{} {}", program.name, program.version);
    let log = Logging::start(&config.log, reopen)?;
    log_warnings(&config.warnings());
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(config.threads)
        .enable_all()
        .build()
        .context("cannot create threads to serve requests")?;
    let served = runtime.block_on(async {
        // First: a reload follows each SIGHUP from here on.
        let hangups = ReloadSignals::listen().context("cannot handle SIGHUP")?;
        let (service, _watch) = start(config).await?;
        let snapshot = Snapshot::new(service, configured).await?;
        let running = Running::new(*program, versions.clone(), snapshot, log.clone());
        let counts = ProcessCounts {
            last_reload: Arc::default(),
            dropped_lines: log.writer().dropped_lines(),
        };
        let last = Arc::clone(&counts.last_reload);
        let reloader = Reloader::new(running.clone(), file, settings, hangups, last);
        tokio::spawn(reloader.run());
        let served = server::serve(&running, counts).await;
        served.map(|()| running.service())
    });
    // The server has waited for the remaining tasks as long as the grace period allows.
    runtime.shutdown_background();
    // Before the log: the exporter logs what the collector did not take.
    if let Some(tracer) = served.iter().find_map(|service| service.tracer.as_ref()) {
        tracer.flush();
    }
    log.writer().flush();
    served.map(|_| ExitCode::SUCCESS)
}

/// Runs a command, which needs no running program.
fn run_command(
    program: Command,
    matches: &ArgMatches,
    versions: &Versions,
) -> anyhow::Result<ExitCode> {
    let is_online = matches
        .subcommand()
        .is_some_and(|(_, options)| matches!(options.try_get_one("online"), Ok(Some(true))));
    let load = |file: &Path| anyhow::Ok(load(file, versions)?.config.0);
    let mut online = (Vec::new(), true);
    let code = SharedCommand::from_arg_matches(matches)?.run(
        program,
        || Config::keys(|root| versions.read(root), &versions.examples()),
        &[FAMILIES],
        |file| {
            let config = load(file)?;
            check_output(&config.log, file)?;
            let mut warnings = config.warnings();
            let runtime = runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                warnings.extend(check::lost_accounts(&config).await?);
                if is_online {
                    online = check::online(&config).await?;
                }
                anyhow::Ok(warnings)
            })
        },
        |file| Ok(load(file)?.listen.into()),
    )?;
    let (lines, is_well) = online;
    lines.iter().for_each(|line| print_line(line));
    Ok(if is_well { code } else { ExitCode::FAILURE })
}

/// Reads the shared keys, and the keys of each version.
fn load(file: &Path, versions: &Versions) -> Result<Loaded<(Config, Configured)>, ConfigError> {
    Config::load(file, |root| versions.read(root))
}

/// The option of `check` that only this service has.
fn online() -> Arg {
    Arg::new("online")
        .long("online")
        .action(ArgAction::SetTrue)
        .conflicts_with("diff")
        .help("Also call each provider, and print what would fail at the first login")
}

/// Without a command, the program serves requests.
fn command(program: &Program) -> Command {
    let with_default = |arg: Arg| match arg.get_id() == "config" {
        true => arg.default_value(program.config),
        false => arg,
    };
    let command = Command::new(program.name)
        .version(program.version)
        .args_conflicts_with_subcommands(true);
    // The texts of `--help` in the kit would replace the program's.
    SharedCommand::augment_subcommands(ConfigFile::augment_args(command))
        .about(program.about)
        .mut_args(with_default)
        .mut_subcommands(|command| command.mut_args(with_default))
        .mut_subcommand("check", |check| check.arg(online()))
}
