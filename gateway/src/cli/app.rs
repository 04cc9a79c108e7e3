//! `signpost app …`: applications in the store that the running gateways share.

#![allow(
    clippy::doc_markdown,
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "these comments are the help that a terminal shows"
)]

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use gateway_protocol::{app::AppIdent, sign::SignProfile, version::Version};
use serde_json::{Value, json};
use signpost_kit::clock::{Clock, SystemClock};

use super::{print_error, print_line, sign::SignRules};
use crate::{
    apps::{
        AppState,
        administration::{
            Administration, AppDescription, AppEdit, AppName, MAX_OVERLAP, NewKey, Origin, Rules,
        },
        import::{ImportError, read_file},
        open::{allow_bulk, open_store},
        store::{AppStore, AppSummary, Edit},
    },
    config::{Applications, Config, weaknesses},
};

const MAX_OVERLAP_HOURS: u64 = MAX_OVERLAP.as_secs() / 3600;

/// What `signpost app import --help` says of the file.
const IMPORT_FILE: &str = r#"The file is CSV with a header row, or JSON lines (an object a line), in UTF-8; its first character tells which:

  ident,key,name,origins,profile,default_version
  team-1,4283fefc63f0cd0e873a0000c6d07ef7,First team,https://a.example https://b.example,wechat,v2

  {"ident":"team-1","key":"4283…","name":"First team","origins":["https://a.example"],"profile":"wechat"}

ident            needed: 1 to 64 of A-Z a-z 0-9 . _ -
key              needed: the key that its clients sign with, without white space, of at least 128 bits (32 hex digits)
name             needed: 1 to 64 characters
origins          origins that a login may return to: in CSV separated by spaces, in JSON a list
profile          a sign profile of its own: plain, decoded, bilibili, alipay, wechat or top, which keep the gateway's
                 algorithm, cover and replay; or an object, as app list --json shows it. Default: the gateway's
default_version  one of the gateway's versions

The columns may come in any order, and the last three may be left out or empty. Every problem is told, by its line,
and then nothing is imported. At most 250,000 applications and 64 MiB; 100,000 take some seconds. Running gateways
accept the applications within a second. The file holds keys: keep it from others, and delete it afterwards."#;

#[derive(Debug, Subcommand)]
pub(super) enum AppCommand {
    /// Add an application. Its key is printed once and never again.
    Create(Create),
    /// Add the applications of a file, with the idents and keys that they have already: all of them, or none.
    #[command(after_help = IMPORT_FILE)]
    Import(Import),
    /// Change an application. What is not named stays as it is.
    Update(Box<Update>),
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
    name: AppName,
    /// An origin that a login may return to, "https://app.example.com" say; may be given again.
    #[arg(long, value_name = "ORIGIN")]
    return_to: Vec<Origin>,
    /// A sign profile of its own; what is not said is as the gateway's.
    #[command(flatten)]
    rules: SignRules,
    /// The version of its requests that name none: one of the gateway's.
    #[arg(long, value_name = "NAME")]
    default_version: Option<Version>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// The file; "-" is the standard input.
    file: PathBuf,
    /// Take keys under 128 bits, too, as allow_weak_key = true of the configuration does.
    #[arg(long)]
    allow_weak_key: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct Update {
    /// The application's ident.
    ident: AppIdent,
    /// What people call it; shown to those who log in.
    #[arg(long)]
    name: Option<AppName>,
    /// An origin that a login may return to, in place of all that there are; may be given again.
    #[arg(long, value_name = "ORIGIN")]
    return_to: Vec<Origin>,
    /// Let logins return nowhere.
    #[arg(long, conflicts_with = "return_to")]
    no_return_to: bool,
    /// Its own sign profile; what is not said is as it was.
    #[command(flatten)]
    rules: SignRules,
    /// Sign as the gateway's configuration says, without a profile of its own.
    #[arg(long, conflicts_with_all = ["preset", "algorithm", "cover", "replay"])]
    no_profile: bool,
    /// The version of its requests that name none: one of the gateway's.
    #[arg(long, value_name = "NAME")]
    default_version: Option<Version>,
    /// Send its requests that name no version where the gateway's configuration says.
    #[arg(long, conflicts_with = "default_version")]
    no_default_version: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct Rotate {
    /// The application's ident.
    ident: AppIdent,
    /// How long the old key stays valid, in hours.
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u64).range(0..=MAX_OVERLAP_HOURS))]
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
        AppCommand::Import(import) => self::import(import).await?,
        AppCommand::Update(update) => self::update(*update).await?,
        AppCommand::List(common) => {
            let all = store(&common).await?.list().await?;
            if common.json {
                print_line(&json!(all).to_string())
            } else {
                table(&all)
            }
        }
        AppCommand::Show(one) => {
            let summary = administration(&one.common)
                .await?
                .summary(one.ident)
                .await?;
            show(&summary, &one.common);
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
    let administration = administration(&create.common).await?;
    let described = AppDescription {
        name: create.name,
        return_to: create.return_to,
        profile: create.rules.choice(),
        default_version: create.default_version,
    };
    warn_of(administration.profile_of(&described.profile).as_ref());
    let created = administration.create(described, SystemClock.now()).await?;
    show_key(&created, &create.common);
    Ok(())
}

async fn import(import: Import) -> anyhow::Result<()> {
    let mut config = Config::load(&import.common.config)?;
    allow_bulk(&mut config.store);
    let file = read(&import.file).with_context(|| name_of(&import.file))?;
    let administration = opened(&config, &import.common).await?;
    let imported = administration.import(&file, import.allow_weak_key, SystemClock.now());
    let imported = imported.await.map_err(|error| match error {
        ImportError::Problems(problems) => {
            let name = name_of(&import.file);
            let lines = problems.to_string().replace('\n', &format!("\n{name}: "));
            anyhow!("{name}: {lines}\nnothing was imported")
        }
        other => anyhow::Error::new(other).context(name_of(&import.file)),
    })?;
    for (weakness, count) in &imported.weaknesses {
        print_error(&format!("warning: {count} applications: {weakness}"));
    }
    if imported.weak_keys > 0 {
        print_error(&format!(
            "warning: {} applications have keys under 128 bits, which can be guessed from one signed request",
            imported.weak_keys
        ));
    }
    if import.common.json {
        print_line(&json!({ "imported": imported.applications }).to_string());
    } else {
        print_line(&format!("imported {} applications", imported.applications));
    }
    Ok(())
}

fn read(file: &Path) -> Result<impl std::ops::Deref<Target = Vec<u8>> + use<>, ImportError> {
    if file == Path::new("-") {
        return read_file(io::stdin().lock(), 0);
    }
    let file = File::open(file)?;
    let length = file.metadata()?.len();
    read_file(file, usize::try_from(length).unwrap_or(usize::MAX))
}

fn name_of(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

async fn update(update: Update) -> anyhow::Result<()> {
    let choice = update.rules.choice();
    let edit = AppEdit {
        name: update.name,
        return_to: (update.no_return_to || !update.return_to.is_empty())
            .then_some(update.return_to),
        profile: match (update.no_profile, choice.is_any()) {
            (true, _) => Edit::Unset,
            (false, true) => Edit::Set(choice),
            (false, false) => Edit::Keep,
        },
        default_version: match (update.no_default_version, update.default_version) {
            (true, _) => Edit::Unset,
            (false, Some(version)) => Edit::Set(version),
            (false, None) => Edit::Keep,
        },
    };
    let changes_profile = edit.profile.value().is_some();
    let administration = administration(&update.common).await?;
    let updated = administration.update(update.ident, edit).await?;
    warn_of(updated.sign_profile.as_ref().filter(|_| changes_profile));
    show(&updated, &update.common);
    Ok(())
}

fn warn_of(profile: Option<&SignProfile>) {
    for weakness in profile.into_iter().flat_map(weaknesses) {
        print_error(&format!("warning: {weakness}"));
    }
}

async fn rotate(rotate: Rotate) -> anyhow::Result<()> {
    let administration = administration(&rotate.common).await?;
    let overlap = Duration::from_secs(rotate.overlap * 3600);
    let rotated = administration
        .rotate(
            rotate.ident,
            overlap,
            rotate.end_running_overlap,
            SystemClock.now(),
        )
        .await?;
    show_key(&rotated, &rotate.common);
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
    Ok(Arc::clone(administration(common).await?.store()))
}

/// The applications of the configuration's store.
async fn administration(common: &Common) -> anyhow::Result<Administration> {
    opened(&Config::load(&common.config)?, common).await
}

async fn opened(config: &Config, common: &Common) -> anyhow::Result<Administration> {
    match &config.applications {
        Applications::Multi(multi) => {
            let (_, store) = open_store(config, multi).await?;
            Ok(Administration::new(store, Rules::of(config)))
        }
        Applications::Single(_) => bail!(
            "{} serves a single application: replace [application] by [applications] to manage many",
            common.config.display()
        ),
    }
}

fn done(is_done: bool, one: &One, state: &str) -> anyhow::Result<()> {
    if !is_done {
        return Err(unknown(one.ident));
    }
    if one.common.json {
        print_line(&json!({ "ident": one.ident.as_str(), "state": state }).to_string());
    } else {
        print_line(&format!("{} is {state}", one.ident));
    }
    Ok(())
}

fn unknown(ident: AppIdent) -> anyhow::Error {
    anyhow!("no application has the ident {ident}")
}

/// The one time that a key is shown.
fn show_key(NewKey { ident, key }: &NewKey, common: &Common) {
    if common.json {
        print_line(&json!({ "ident": ident.as_str(), "key": key.expose() }).to_string());
    } else {
        print_line(&format!("APP_IDENT  {ident}\nAPP_KEY    {}", key.expose()));
        print_error("The key is shown this once: keep it where only the application can read it.");
    }
}

fn show(app: &AppSummary, common: &Common) {
    if common.json {
        print_line(&json!(app).to_string());
    } else {
        details(app);
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
        print_line(&format!(
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
        print_line(&format!("{name:20}{value}"));
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
