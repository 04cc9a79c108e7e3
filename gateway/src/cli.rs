//! The commands. What they print is for people, but for `--json`.

mod address;
mod app;
mod call;
mod key;
mod parse;
mod sign;
mod store;

use std::{future::Future, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use signpost_kit::{
    command::{ask, health, print_line},
    config::ConfigError,
    log_writer::write_final_line,
    logging::Logging,
    reload::control::Verb,
};

pub use self::parse::parse;
use crate::{
    apps::{
        administration::unknown_defaults_warning,
        inspect::{Inspected, inspect},
    },
    config::{Applications, Config},
    server,
};

/// A gateway that verifies signed requests and routes them by version.
#[derive(Debug, Parser)]
#[command(name = "signpost", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve requests until told to stop.
    Run(ConfigFile),
    /// Check a configuration: all problems at once, and what its weak choices mean.
    Check(CheckArguments),
    /// Reload the configuration of the running gateway; print what changed, or why not: exit code 0 or 1.
    Reload(ConfigFile),
    /// Ask the gateway that runs with this configuration whether it can serve: exit code 0 or 1.
    Health(ConfigFile),
    /// Manage applications (multi-application mode).
    App {
        #[command(subcommand)]
        command: app::AppCommand,
    },
    /// Move the store.
    Store {
        #[command(subcommand)]
        command: store::StoreCommand,
    },
    /// Print a signed query, or form body, for the given parameters.
    Sign(sign::SignArguments),
    /// Sign a request, send it, and print the answer.
    Call(Box<call::CallArguments>),
}

#[derive(Debug, clap::Args)]
struct ConfigFile {
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
}

#[derive(Debug, clap::Args)]
struct CheckArguments {
    #[command(flatten)]
    file: ConfigFile,
    /// Let the gateway that runs with this file check it, and print what a reload would change.
    #[arg(long)]
    diff: bool,
}

impl ConfigFile {
    fn load(&self) -> Result<Config, ConfigError> {
        Config::load(&self.config)
    }
}

/// Does what the arguments say.
///
/// # Errors
///
/// Whatever goes wrong, for a person to read.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Run(file) => {
            let loaded = Config::load_settings(&file.config)?;
            let log = Logging::start(&loaded.config.log)?;
            server::run(loaded, file.config, log)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Check(arguments) => check(&arguments),
        Command::Reload(file) => ask(&file.config, Verb::Reload),
        Command::Health(file) => health(&file.config, || Ok(file.load()?.management)),
        Command::App { command } => wait_for(app::run(command)),
        Command::Store { command } => wait_for(store::run(command)),
        Command::Sign(arguments) => sign::run(&arguments),
        Command::Call(arguments) => wait_for(call::run(*arguments)),
    }
}

fn check(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let file = &arguments.file;
    // The running gateway has the environment that the file is meant for.
    if arguments.diff {
        return ask(&file.config, Verb::Diff);
    }
    let config = file.load()?;
    for warning in wait_for(warnings(&config))? {
        print_line(&format!("warning: {warning}"));
    }
    print_line(&format!("{}: OK", file.config.display()));
    Ok(ExitCode::SUCCESS)
}

/// What a careful operator should know of the configuration, and of the store that it names.
async fn warnings(config: &Config) -> anyhow::Result<Vec<String>> {
    let mut warnings = config.warnings();
    if let Applications::Multi(multi) = &config.applications {
        match inspect(config, multi).await? {
            Inspected::Unreachable(error) => warnings.push(format!(
                "the store cannot be looked at now, so that the master key and default versions were not checked: {error:#}"
            )),
            Inspected::Missing => {}
            Inspected::Seen { unknown_defaults } => {
                warnings.extend(unknown_defaults_warning(&unknown_defaults));
            }
        }
    }
    Ok(warnings)
}

fn wait_for<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

/// Prints a line beside the output. A standard error that nobody reads does not keep the process from ending.
pub fn print_error(line: &str) {
    write_final_line(line.to_owned());
}
