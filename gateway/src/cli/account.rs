//! `signpost account …`, and the end of logins that it shares with `signpost app logout`.

use std::{path::Path, process::ExitCode};

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use signpost_kit::clock::{Clock, SystemClock};
use signpost_management::administration::logins::{AccountName, EndedLogins, Logins, LogoutError};
use signpost_protocol::app::AppIdent;
use signpost_proxy::{Config, program::Applications};
use signpost_store::Store;

use super::{
    CommonOptions,
    author::Why,
    many, print_line,
    table::{printable, printable_json},
};

#[derive(Debug, Subcommand)]
pub(super) enum AccountCommand {
    /// End all logins of an account: every gateway and login service rejects their credentials within a second.
    ///
    /// The user can log in again. In single-application mode, the gateway's configuration file must name the store of the
    /// login service.
    Logout(Logout),
}

#[derive(Debug, Args)]
pub(super) struct Logout {
    /// The provider's name in the configuration of the login service: an account's "provider", in v1 its "type".
    provider: String,
    /// The account's "username".
    username: String,
    /// Only logins to the application with this ident.
    #[arg(long, value_name = "IDENT")]
    app: Option<AppIdent>,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Debug, Args)]
pub(super) struct AppLogout {
    /// The application's ident; none in single-application mode.
    ident: Option<AppIdent>,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    common: CommonOptions,
}

pub(super) async fn run(command: AccountCommand) -> anyhow::Result<ExitCode> {
    let AccountCommand::Logout(logout) = command;
    let config = Config::load(&logout.common.config)?;
    if logout.app.is_some() {
        many(&config, &logout.common.config, "leave --app out")?;
    }
    let name = AccountName {
        provider: logout.provider,
        username: logout.username,
    };
    let (logins, at) = (
        open(&config, &logout.common.config).await?,
        SystemClock.now(),
    );
    let ended = logins
        .end_of_account(&name, logout.app, logout.why.author(), at)
        .await;
    let ended = ended.map_err(|error| match error {
        LogoutError::UnknownAccount => anyhow::anyhow!("{error} in {}", config.store.address),
        error => error.into(),
    })?;
    let AccountName { provider, username } = name;
    let members = json!({ "provider": provider, "username": username });
    print_ended(
        members,
        &format!("{provider} {username}"),
        ended,
        &logout.common,
    );
    Ok(ExitCode::SUCCESS)
}

/// Ends all logins to an application.
pub(super) async fn log_out_app(logout: AppLogout) -> anyhow::Result<()> {
    let file = &logout.common.config;
    let config = Config::load(file)?;
    match (&config.applications, logout.ident) {
        (Applications::Multi(_), None) => {
            bail!("IDENT is missing: app list shows the applications and their idents")
        }
        (Applications::Single(_), Some(_)) => {
            many(&config, file, "leave IDENT out")?;
        }
        _ => {}
    }
    let (logins, at) = (open(&config, file).await?, SystemClock.now());
    let ended = logins.end_of_app(logout.ident, logout.why.author(), at);
    let ended = ended.await?;
    let ident = logout.ident.map(|ident| ident.to_string());
    let name = ident.as_deref().unwrap_or("the application");
    print_ended(json!({ "ident": ident }), name, ended, &logout.common);
    Ok(())
}

/// Opens the configured store. With a single application, a gateway may never have opened it: then it is not created.
async fn open(config: &Config, file: &Path) -> anyhow::Result<Logins> {
    if Store::open_read_only(&config.store).await?.is_none() {
        bail!(
            "{} has no tables: `store` in {} must be the store of the login service",
            config.store.address,
            file.display()
        );
    }
    Ok(Logins::new(Store::open(&config.store).await?))
}

fn print_ended(mut members: Value, whose: &str, ended: EndedLogins, common: &CommonOptions) {
    if common.json {
        members["ended"] = json!(ended.ended);
        return print_line(&printable_json(&members.to_string()));
    }
    print_line(&format!(
        "{} logins of {} ended",
        ended.ended,
        printable(whose)
    ));
}
