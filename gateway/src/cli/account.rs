//! `signpost account …`, and the end of logins that it shares with `signpost app logout`.

use std::{path::Path, process::ExitCode};

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use signpost_management::{
    administration::logins::{EndedLogins, LogoutError},
    operations::{
        Context, OperationError,
        accounts::{self, AccountLogout},
        apps,
        input::Why,
    },
};
use signpost_protocol::app::AppIdent;
use signpost_proxy::{Config, program::Applications};
use signpost_store::Store;

use super::{
    CommonOptions, many,
    operation::{Told, of_store},
    print_line,
    table::{printable, printable_json},
};

#[derive(Debug, Subcommand)]
pub(super) enum AccountCommand {
    /// End all logins of an account: every gateway and login service rejects their credentials within a second.
    ///
    /// The user can log in again. In single-application mode, the gateway's configuration file must name the store of the
    /// login service.
    Logout(Told<AccountLogout>),
}

#[derive(Debug, Args)]
pub(super) struct AppLogout {
    /// The application's ident; none in single-application mode.
    ident: Option<AppIdent>,
    #[command(flatten)]
    told: Told<Why>,
}

pub(super) async fn run(command: AccountCommand) -> anyhow::Result<ExitCode> {
    let AccountCommand::Logout(Told { input, common }) = command;
    let config = Config::load(&common.config)?;
    if input.app.is_some() {
        many(&config, &common.config, "leave --app out")?;
    }
    let (provider, username) = (input.provider.clone(), input.username.clone());
    let context = open(&config, &common.config).await?;
    let ended = (accounts::LOGOUT.run)(&context, (), input).await;
    let ended = ended.map_err(|OperationError { cause, .. }| {
        match cause.downcast_ref::<LogoutError>() {
            Some(LogoutError::UnknownAccount) => {
                anyhow::anyhow!("{cause} in {}", config.store.address)
            }
            _ => cause,
        }
    })?;
    let members = json!({ "provider": provider, "username": username });
    print_ended(members, &format!("{provider} {username}"), ended, &common);
    Ok(ExitCode::SUCCESS)
}

/// Ends all logins to an application.
pub(super) async fn log_out_app(AppLogout { ident, told }: AppLogout) -> anyhow::Result<()> {
    let Told { input, common } = told;
    let config = Config::load(&common.config)?;
    match (&config.applications, ident) {
        (Applications::Multi(_), None) => {
            bail!("IDENT is missing: app list shows the applications and their idents")
        }
        (Applications::Single(_), Some(_)) => {
            many(&config, &common.config, "leave IDENT out")?;
        }
        _ => {}
    }
    let context = open(&config, &common.config).await?;
    let ended = apps::end_logins(&context, ident, input).await?;
    let ident = ident.map(|ident| ident.to_string());
    let name = ident.as_deref().unwrap_or("the application");
    print_ended(json!({ "ident": ident }), name, ended, &common);
    Ok(())
}

/// Opens the configured store. With a single application, a gateway may never have opened it: then it is not created.
async fn open(config: &Config, file: &Path) -> anyhow::Result<Context> {
    if Store::open_read_only(&config.store).await?.is_none() {
        bail!(
            "{} has no tables: `store` in {} must be the store of the login service",
            config.store.address,
            file.display()
        );
    }
    Ok(of_store(Store::open(&config.store).await?))
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
