//! `signpost app …`: applications in the store that the running gateways share.

#![allow(
    clippy::doc_markdown,
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "these comments are the help that a terminal shows"
)]

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use gateway_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
    version::Version,
};
use serde_json::{Value, json};
use url::Url;

use super::{say, sign::SignRules};
use crate::{
    apps::{
        AppState,
        open::open_store,
        seal::{new_app_ident, new_app_key},
        store::{AppStore, AppSummary, NewApp, Rotated, Rotation},
    },
    clock::{Clock, SystemClock},
    config::{Applications, Config, weaknesses},
};

/// The longest overlap of two keys, in hours: 30 days. CONTRACT 4.
const LONGEST_OVERLAP_HOURS: u64 = 30 * 24;

#[derive(Debug, Subcommand)]
pub(super) enum AppCommand {
    /// Add an application. Its key is printed once and never again.
    Create(Create),
    /// List all applications.
    List(Common),
    /// Show one application.
    Show(One),
    /// Give an application a new key, printed once; the old one stays valid for a while.
    Rotate(Rotate),
    /// Refuse an application's requests.
    Disable(One),
    /// Accept a disabled application's requests again.
    Enable(One),
    /// Remove an application for good.
    Delete(One),
}

#[derive(Debug, Args)]
pub(super) struct Common {
    /// The gateway's configuration file: it says where the store is.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct One {
    /// The application's ident.
    ident: AppIdent,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// What people call it; shown to those who log in.
    name: String,
    /// An origin that a login may return to, "https://app.example.com" say; may be given again.
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    return_to: Vec<String>,
    /// A sign profile of its own; what is not said is as the gateway's.
    #[command(flatten)]
    rules: SignRules,
    /// The version of its requests that name none.
    #[arg(long, value_name = "NAME")]
    default_version: Option<Version>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct Rotate {
    /// The application's ident.
    ident: AppIdent,
    /// How long the old key stays valid, in hours.
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u64).range(0..=LONGEST_OVERLAP_HOURS))]
    overlap: u64,
    /// End the validity of the key before the last rotation, if it is still valid.
    #[arg(long)]
    end_running_overlap: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(command: AppCommand) -> anyhow::Result<ExitCode> {
    match command {
        AppCommand::Create(create) => self::create(create).await?,
        AppCommand::List(common) => {
            let all = store(&common).await?.list().await?;
            if common.json {
                say(&json!(all).to_string())
            } else {
                table(&all)
            }
        }
        AppCommand::Show(one) => {
            let summary = store(&one.common).await?.summary(one.ident).await?;
            let summary = summary.ok_or_else(|| unknown(one.ident))?;
            if one.common.json {
                say(&json!(summary).to_string())
            } else {
                details(&summary)
            }
        }
        AppCommand::Rotate(rotate) => self::rotate(rotate).await?,
        AppCommand::Disable(one) => set_state(&one, AppState::Disabled).await?,
        AppCommand::Enable(one) => set_state(&one, AppState::Active).await?,
        AppCommand::Delete(one) => {
            done(
                store(&one.common).await?.delete(one.ident).await?,
                &one,
                "deleted",
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(create: Create) -> anyhow::Result<()> {
    let name = create.name.trim();
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        bail!("the name must have 1 to 64 characters");
    }
    let (config, store) = open(&create.common).await?;
    let profile = create
        .rules
        .is_given()
        .then(|| create.rules.profile(config.sign.profile));
    for weakness in profile.iter().flat_map(weaknesses) {
        super::complain(&format!("warning: {weakness}"));
    }
    let (ident, key) = (new_app_ident()?, new_app_key()?);
    let app = NewApp {
        ident,
        key: key.clone(),
        name: name.to_owned(),
        profile,
        return_to_origins: create.return_to,
        default_version: create.default_version,
        created_at: SystemClock.now(),
    };
    store.create(app).await?;
    show_key(ident, &key, &create.common);
    Ok(())
}

async fn rotate(rotate: Rotate) -> anyhow::Result<()> {
    let key = new_app_key()?;
    let rotation = Rotation {
        ident: rotate.ident,
        key: key.clone(),
        overlap: Duration::from_secs(rotate.overlap * 3600),
        ends_running_overlap: rotate.end_running_overlap,
        now: SystemClock.now(),
    };
    match store(&rotate.common).await?.rotate(rotation).await? {
        Rotated::Done => show_key(rotate.ident, &key, &rotate.common),
        Rotated::Unknown => return Err(unknown(rotate.ident)),
        Rotated::Overlapping { until } => {
            let minutes = until
                .saturating_sub(SystemClock.now().as_millis())
                .div_ceil(60_000);
            bail!(
                "the key before the last rotation is valid for another {minutes} minutes: wait, or end it \
                 now with --end-running-overlap"
            )
        }
    }
    Ok(())
}

async fn set_state(one: &One, state: AppState) -> anyhow::Result<()> {
    done(
        store(&one.common)
            .await?
            .set_state(one.ident, state)
            .await?,
        one,
        state.as_str(),
    )
}

async fn store(common: &Common) -> anyhow::Result<Arc<dyn AppStore>> {
    Ok(open(common).await?.1)
}

/// The configuration, and the store that it names.
async fn open(common: &Common) -> anyhow::Result<(Config, Arc<dyn AppStore>)> {
    let config = Config::load(&common.config)?;
    let store = match &config.applications {
        Applications::Multi(multi) => open_store(&config, multi).await?.1,
        Applications::Single(_) => bail!(
            "{} serves a single application: replace [application] by [applications] to manage many",
            common.config.display()
        ),
    };
    Ok((config, store))
}

fn done(is_done: bool, one: &One, state: &str) -> anyhow::Result<()> {
    if !is_done {
        return Err(unknown(one.ident));
    }
    if one.common.json {
        say(&json!({ "ident": one.ident.as_str(), "state": state }).to_string());
    } else {
        say(&format!("{} is {state}", one.ident));
    }
    Ok(())
}

fn unknown(ident: AppIdent) -> anyhow::Error {
    anyhow!("no application has the ident {ident}")
}

/// The one time that a key is shown.
fn show_key(ident: AppIdent, key: &AppKey, common: &Common) {
    if common.json {
        say(&json!({ "ident": ident.as_str(), "key": key.expose() }).to_string());
    } else {
        say(&format!("APP_IDENT  {ident}\nAPP_KEY    {}", key.expose()));
        super::complain(
            "The key is shown this once: keep it where only the application can read it.",
        );
    }
}

fn table(all: &[AppSummary]) {
    let rows = all.iter().map(|app| {
        [
            app.ident.clone(),
            app.state.clone(),
            profile(app),
            app.name.clone(),
        ]
    });
    let heads = ["IDENT", "STATE", "PROFILE", "NAME"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(heads).chain(rows).collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    for [ident, state, profile, name] in &rows {
        let [first, second, third] = widths;
        say(&format!(
            "{ident:first$}  {state:second$}  {profile:third$}  {name}"
        ));
    }
}

fn details(app: &AppSummary) {
    let Value::Object(members) = json!(app) else {
        return;
    };
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        say(&format!("{name:20}{value}"));
    }
}

/// The preset that the application's profile is, as far as it is one.
fn profile(app: &AppSummary) -> String {
    let Some(own) = &app.sign_profile else {
        return "the gateway's".to_owned();
    };
    let is_own = |name: &&str| SignProfile::preset(name).as_ref() == Some(own);
    SignProfile::PRESETS
        .into_iter()
        .find(is_own)
        .unwrap_or("its own")
        .to_owned()
}

fn origin(text: &str) -> Result<String, String> {
    let allowed = "an origin: http or https, a host, a port perhaps, and no more";
    let url = Url::parse(text).map_err(|_| allowed.to_owned())?;
    let is_bare =
        matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    let is_plain = url.username().is_empty() && url.password().is_none();
    if matches!(url.scheme(), "http" | "https") && is_bare && is_plain && url.has_host() {
        Ok(url.origin().ascii_serialization())
    } else {
        Err(allowed.to_owned())
    }
}
