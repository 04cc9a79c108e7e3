//! The commands of `signpost`. Their output is for people, except with `--json`.

#![allow(
    clippy::doc_markdown,
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "many comments are the help that a terminal shows"
)]

mod account;
mod app;
mod audit;
mod author;
mod bridge;
mod call;
mod connect;
mod doctor;
mod explain;
mod gateways;
mod login;
mod master_key;
mod operation;
mod parse;
mod problems;
mod sign;
mod source;
mod store;
mod table;
mod token;
mod vectors;
mod versions;

use std::{
    future::Future,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::{
    CommandFactory as _, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use signpost_kit::{
    clock::{Clock, SystemClock, Timestamp},
    command::{ConfigFile, SharedCommand, print_line, send_command},
    log::{Logging, ReopenSignals, check_output, writer::write_final_line},
    reload::control::Verb,
    server::signals::end_at_signals,
};
use signpost_management::{operations::audit::AuditSearch, reports::inspect::inspect};
use signpost_protocol::language::Language;
use signpost_proxy::{
    Config, MultiApplications, parse_since,
    program::{Applications, FAMILIES},
};
use signpost_release::RELEASE;
use signpost_store::{Store, error::is_encoding};

pub(crate) use self::parse::parse;
use crate::process::{
    reload::needs_restart,
    start,
    upgrade::{TAKE_OVER, TakenOver},
};

/// A gateway that verifies signed requests and routes them by version.
#[derive(Debug, Parser)]
#[command(name = "signpost", version = RELEASE, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve requests until SIGTERM or SIGINT.
    Run(RunArguments),
    #[command(flatten)]
    Shared(SharedCommand),
    /// Replace the running gateway by a new process of the program's new file, without refusing a connection. Exit code 0
    /// or 1.
    Upgrade(ConfigFile),
    /// Manage applications (multi-application mode).
    App {
        #[command(subcommand)]
        command: app::AppCommand,
    },
    /// End the logins of a user.
    Account {
        #[command(subcommand)]
        command: account::AccountCommand,
    },
    /// Show who changed what: the newest changes first, by pages (multi-application mode).
    Audit(operation::Told<AuditSearch>),
    /// Replace the key that encrypts the applications' keys (multi-application mode).
    MasterKey {
        #[command(subcommand)]
        command: master_key::MasterKeyCommand,
    },
    /// Manage the tokens of the management API (multi-application mode).
    Token {
        #[command(subcommand)]
        command: token::TokenCommand,
    },
    /// List the gateways of the store: state, release, configuration (multi-application mode).
    Gateways(CommonOptions),
    /// Show the versions, their dates and backends, and who uses them.
    Versions {
        #[command(subcommand)]
        command: versions::VersionsCommand,
    },
    /// Check or draft the changes by which one version is served by another (multi-application mode).
    Bridge {
        #[command(subcommand)]
        command: bridge::BridgeCommand,
    },
    /// Back up, restore or copy the store.
    Store {
        #[command(subcommand)]
        command: store::StoreCommand,
    },
    /// Sign parameters and print them as a query or form body.
    Sign(sign::SignArguments),
    /// Sign a request, send it, and print the response.
    Call(Box<call::CallArguments>),
    /// Log in by polling, and store the credential for `call --login`.
    Login(Box<login::LoginArguments>),
    /// Sign Doctor: show step by step what is wrong with a request, and how it is right. Exit code 0 if it is right, otherwise 1.
    Doctor(Box<doctor::DoctorArguments>),
    /// Show why a request was rejected, by its id: asks all gateways of the store that have a management API (multi-application
    /// mode).
    Explain(explain::ExplainArguments),
    /// Print the codes of problems as /problems/CODE does: status, whether a retry helps (no, yes, new_login: in a new login,
    /// log_in: once the user has logged in), title and detail.
    Problems(problems::ProblemsArguments),
    /// Print the test vectors, for developers of clients, and how to use them.
    Vectors(vectors::VectorsArguments),
}

#[derive(Debug, clap::Args)]
struct RunArguments {
    #[command(flatten)]
    file: ConfigFile,
    /// Take over the listening sockets of the process that started this one.
    #[arg(long = TAKE_OVER, hide = true)]
    takes_over: bool,
}

/// Options of the commands that read the store.
#[derive(Debug, clap::Args)]
struct CommonOptions {
    /// The gateway's configuration file, which names the store.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// The command fails; the error is for people.
pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    // Before all else: without a handler, the signal of a log rotation would end the process. A service manager may send it
    // to a command, too.
    let reopen = ReopenSignals::listen().context("cannot handle SIGUSR1")?;
    let is_command = !matches!(arguments.command, Command::Run(_));
    end_at_signals(is_command).context("cannot handle SIGTERM, SIGINT and SIGHUP")?;
    match arguments.command {
        Command::Run(arguments) => run_server(arguments, reopen),
        Command::Shared(command) => command.run(
            Arguments::command(),
            || Config::keys(|key| needs_restart(key, &[key])),
            &FAMILIES,
            |file| {
                let config = Config::load(file)?;
                check_output(&config.log, file)?;
                wait_for(warnings(&config))
            },
            |file| Ok(Config::load(file)?.management.health_address()),
        ),
        Command::Upgrade(file) => send_command(&file.config, Verb::Upgrade),
        Command::App { command } => wait_for(app::run(command)),
        Command::Account { command } => wait_for(account::run(command)),
        Command::Audit(arguments) => wait_for(audit::run(arguments)),
        Command::MasterKey { command } => wait_for(master_key::run(command)),
        Command::Token { command } => wait_for(token::run(command)),
        Command::Gateways(common) => wait_for(gateways::run(common)),
        Command::Versions { command } => wait_for(versions::run(command)),
        Command::Bridge { command } => wait_for(bridge::run(command)),
        Command::Store { command } => wait_for(store::run(command)),
        Command::Sign(arguments) => sign::run(&arguments),
        Command::Call(arguments) => wait_for(call::run(*arguments)),
        Command::Login(arguments) => wait_for(login::run(*arguments)),
        Command::Doctor(arguments) => wait_for(doctor::run(*arguments)),
        Command::Explain(arguments) => wait_for(explain::run(arguments)),
        Command::Problems(arguments) => problems::run(&arguments),
        Command::Vectors(arguments) => vectors::run(&arguments),
    }
}

fn run_server(arguments: RunArguments, reopen: ReopenSignals) -> anyhow::Result<ExitCode> {
    let file = arguments.file.config;
    let taken = arguments.takes_over.then(TakenOver::receive).transpose()?;
    let serve = || {
        let loaded = Config::load_settings(&file)?;
        let log = Logging::start(&loaded.config.log, reopen)?;
        start::run(loaded, file.clone(), log, taken.as_ref())
    };
    serve().inspect_err(|error| {
        if let Some(taken) = &taken {
            taken.fail(error);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The applications of the configured store. For a single application, the command fails: `because` says why.
fn many<'c>(
    config: &'c Config,
    file: &Path,
    because: &str,
) -> anyhow::Result<&'c MultiApplications> {
    match &config.applications {
        Applications::Multi(multi) => Ok(multi),
        Applications::Single(_) => {
            bail!("{} serves a single application: {because}", file.display())
        }
    }
}

/// Reads `--since`.
fn since(text: &str) -> Result<Timestamp, String> {
    parse_since(text, SystemClock.now()).map_err(|allowed| format!("allowed: {allowed}"))
}

/// Reads the tag of a language.
fn language() -> impl TypedValueParser<Value = Language> {
    PossibleValuesParser::new(Language::ALL.map(Language::tag))
        .map(|tag| Language::of_request(Some(tag.as_bytes()), []))
}

/// Warnings about the configuration and its store.
async fn warnings(config: &Config) -> anyhow::Result<Vec<String>> {
    let mut warnings = config.warnings();
    if let Applications::Multi(multi) = &config.applications {
        warnings.extend(inspect(config, multi, None).await?);
    } else if config.requests_need_store()
        && let Err(error) = Store::open_read_only(&config.store)
            .await
            .map_err(anyhow::Error::from)
        && is_encoding(error.root_cause())
    {
        return Err(error);
    }
    Ok(warnings)
}

fn wait_for<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

/// Prints a line to standard error. If it is blocked, the process ends nevertheless.
pub(crate) fn print_error(line: &str) {
    write_final_line(line.to_owned());
}
