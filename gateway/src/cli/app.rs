//! `signpost app …`: manages the applications in the store of the running gateways.

mod card;
mod print;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::{app::AppIdent, sign::SignProfile, version::Version};
use signpost_store::tables::applications::Change;

use self::{
    card::{Card, Subject},
    print::{print_state, show, show_card, show_key, show_new, table},
};
use super::{CommonOptions, print_error, print_line, sign::SignRules};
use crate::{
    config::{Applications, Config, OwnRate, weaknesses},
    directory::apps::{
        AppState,
        administration::{Administration, AppChanges, MAX_OVERLAP},
        import::{ImportError, read_file},
        open::{open_store, raise_statement_timeout},
        rules::{AppName, Origin, Rules},
        seal::{new_app_ident, new_app_key},
        store::NewApp,
        stored::StoredApps,
    },
};

const MAX_OVERLAP_HOURS: u64 = MAX_OVERLAP.as_secs() / 3600;

/// The file format, for `signpost app import --help`.
const IMPORT_FILE: &str = r#"The file is CSV with a header row, or JSON lines (one object per line), in UTF-8; its first character decides:

  ident,key,name,origins,profile,default_version
  team-1,4283fefc63f0cd0e873a0000c6d07ef7,First team,https://a.example https://b.example,wechat,v2

  {"ident":"team-1","key":"4283…","name":"First team","origins":["https://a.example"],"profile":"wechat"}

ident            required: 1 to 64 of A-Z a-z 0-9 . _ -
key              required: the key that its clients sign with: at least 128 bits (32 hex digits), no white space
name             required: 1 to 64 characters
origins          origins that a login may return to: separated by spaces in CSV, a list in JSON
profile          a sign profile of its own: a preset (sign --help lists them) with the gateway's algorithm, cover and
                 replay, or an object as in app list --json. Default: the gateway's profile
default_version  one of the gateway's versions

The columns may be in any order; the last three are optional. If the file has problems, all of them are reported by
line, and nothing is imported. Limits: 250,000 applications and 64 MiB; 100,000 take some seconds. Running gateways
accept the applications within a second. The file contains keys: protect it, and delete it afterwards."#;

#[derive(Debug, Subcommand)]
pub(super) enum AppCommand {
    /// Add an application. Its key is printed only once, with a card for its developers.
    Create(Create),
    /// Add all applications of a file, with existing idents and keys, or none.
    #[command(after_help = IMPORT_FILE)]
    Import(Import),
    /// Change an application. Options that are not given change nothing.
    Update(Box<Update>),
    /// List all applications.
    List(CommonOptions),
    /// Show one application, with a card for its developers: the rules of its requests, and a first call.
    Show(Show),
    /// Replace an application's key. The new key is printed only once; the old one stays valid for a while.
    Rotate(Rotate),
    /// Reject an application's requests.
    Disable(OneApp),
    /// Accept a disabled application's requests again.
    Enable(OneApp),
    /// Delete an application permanently.
    Delete(OneApp),
}

#[derive(Debug, Args)]
pub(super) struct OneApp {
    /// The application's ident.
    ident: AppIdent,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The application's ident; none in single-application mode.
    ident: Option<AppIdent>,
    #[command(flatten)]
    card: CardOptions,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Debug, Args)]
struct CardOptions {
    /// The gateway's address on the card, for example "https://api.example.com". Default: public_url.
    #[arg(long, value_name = "URL")]
    address: Option<Origin>,
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// The display name, shown to users on login pages.
    name: AppName,
    /// An origin that a login may return to, for example "https://app.example.com"; repeatable.
    #[arg(long, value_name = "ORIGIN")]
    return_to: Vec<Origin>,
    /// Its own sign profile; options that are not given keep the gateway's settings.
    #[command(flatten)]
    rules: SignRules,
    /// The version for requests that name none; must be one of the gateway's.
    #[arg(long, value_name = "NAME")]
    default_version: Option<Version>,
    /// Its own rate limit: signed requests per second, and at once, for example "100/200"; or "unlimited". Default: the
    /// gateway's.
    #[arg(long, value_name = "RATE", value_parser = rate_limit)]
    rate_limit: Option<OptionalRate>,
    #[command(flatten)]
    card: CardOptions,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// The file, or "-" for standard input.
    file: PathBuf,
    /// Accept keys under 128 bits, like allow_weak_key = true in the configuration.
    #[arg(long)]
    allow_weak_key: bool,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Debug, Args)]
pub(super) struct Update {
    /// The application's ident.
    ident: AppIdent,
    /// The display name, shown to users on login pages.
    #[arg(long)]
    name: Option<AppName>,
    /// An origin that a login may return to; repeatable; replaces all current ones.
    #[arg(long, value_name = "ORIGIN")]
    return_to: Vec<Origin>,
    /// Remove all origins that a login may return to.
    #[arg(long, conflicts_with = "return_to")]
    no_return_to: bool,
    /// Its own sign profile; options that are not given keep the current settings.
    #[command(flatten)]
    rules: SignRules,
    /// Remove its own sign profile: use the gateway's.
    #[arg(long, conflicts_with_all = ["preset", "algorithm", "cover", "replay"])]
    no_profile: bool,
    /// The version for requests that name none; must be one of the gateway's.
    #[arg(long, value_name = "NAME")]
    default_version: Option<Version>,
    /// Remove its default version: use the gateway's.
    #[arg(long, conflicts_with = "default_version")]
    no_default_version: bool,
    /// Its own rate limit: signed requests per second, and at once, for example "100/200"; or "unlimited"; or "default",
    /// the gateway's.
    #[arg(long, value_name = "RATE", value_parser = rate_limit)]
    rate_limit: Option<OptionalRate>,
    #[command(flatten)]
    common: CommonOptions,
}

/// Not written as an `Option`, which would make the option's value optional.
type OptionalRate = Option<OwnRate>;

#[derive(Debug, Args)]
pub(super) struct Rotate {
    /// The application's ident.
    ident: AppIdent,
    /// Hours for which the old key stays valid.
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u64).range(0..=MAX_OVERLAP_HOURS))]
    overlap: u64,
    /// Rotate even if the key before the last rotation is still valid, and end its validity now.
    #[arg(long)]
    end_running_overlap: bool,
    #[command(flatten)]
    common: CommonOptions,
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
        AppCommand::Show(show) => show_one(show).await?,
        AppCommand::Rotate(rotate) => self::rotate(rotate).await?,
        AppCommand::Disable(one) => set_state(&one, AppState::Disabled).await?,
        AppCommand::Enable(one) => set_state(&one, AppState::Active).await?,
        AppCommand::Delete(one) => {
            store(&one.common).await?.delete(one.ident).await?;
            print_state(one.ident, "deleted", one.common.json);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(create: Create) -> anyhow::Result<()> {
    let config = Config::load(&create.common.config)?;
    let administration = open_administration(&config, &create.common).await?;
    let app = NewApp {
        ident: new_app_ident()?,
        key: new_app_key()?,
        name: create.name,
        profile: administration.profile_of(&create.rules.choice()),
        return_to: create.return_to,
        default_version: create.default_version,
        rate_limit: create.rate_limit.flatten(),
        created_at: SystemClock.now(),
    };
    print_weaknesses(app.profile.as_ref());
    let card = Card::new(&config, Subject::from(&app), create.card.address.as_ref())?;
    administration.create(app.clone()).await?;
    show_new(app.ident, &app.key, &card, create.common.json);
    Ok(())
}

async fn show_one(options: Show) -> anyhow::Result<()> {
    let config = Config::load(&options.common.config)?;
    let card = |subject| Card::new(&config, subject, options.card.address.as_ref());
    let Some(ident) = options.ident else {
        if matches!(config.applications, Applications::Multi(_)) {
            bail!("IDENT is missing: app list shows the applications and their idents");
        }
        show_card(&card(Subject::default())?, options.common.json);
        return Ok(());
    };
    let administration = open_administration(&config, &options.common).await?;
    let app = administration.store().summary(ident).await?;
    show(&app, Some(&card((&app).into())?), options.common.json);
    Ok(())
}

async fn import(import: Import) -> anyhow::Result<()> {
    let mut config = Config::load(&import.common.config)?;
    raise_statement_timeout(&mut config.store);
    let file = read(&import.file).with_context(|| display_name(&import.file))?;
    let administration = open_administration(&config, &import.common).await?;
    let imported = administration.import(&file, import.allow_weak_key, SystemClock.now());
    let imported = imported.await.map_err(|error| match error {
        ImportError::Problems(problems) => {
            let name = display_name(&import.file);
            let lines = problems.to_string().replace('\n', &format!("\n{name}: "));
            anyhow!("{name}: {lines}\nnothing was imported")
        }
        other => anyhow::Error::new(other).context(display_name(&import.file)),
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

fn display_name(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

async fn update(update: Update) -> anyhow::Result<()> {
    let choice = update.rules.choice();
    let edit = AppChanges {
        name: update.name,
        return_to: (update.no_return_to || !update.return_to.is_empty())
            .then_some(update.return_to),
        profile: change(choice.is_any().then_some(choice), update.no_profile),
        default_version: change(update.default_version, update.no_default_version),
        rate_limit: update.rate_limit,
    };
    let changes_profile = matches!(edit.profile, Some(Some(_)));
    let administration = administration(&update.common).await?;
    let updated = administration.update(update.ident, edit).await?;
    print_weaknesses(updated.sign_profile.as_ref().filter(|_| changes_profile));
    show(&updated, None, update.common.json);
    Ok(())
}

/// The change of a setting that one option sets, and another one removes.
fn change<T>(new: Option<T>, is_removed: bool) -> Change<T> {
    new.map(Some).or(is_removed.then_some(None))
}

/// `None` removes an application's own rate limit.
fn rate_limit(text: &str) -> Result<OptionalRate, String> {
    match text {
        "default" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|error| format!("allowed: {error}; or \"default\"")),
    }
}

fn print_weaknesses(profile: Option<&SignProfile>) {
    for weakness in profile.into_iter().flat_map(weaknesses) {
        print_error(&format!("warning: {weakness}"));
    }
}

async fn rotate(rotate: Rotate) -> anyhow::Result<()> {
    let administration = administration(&rotate.common).await?;
    let overlap = Duration::from_secs(rotate.overlap * 3600);
    let key = administration
        .rotate(
            rotate.ident,
            overlap,
            rotate.end_running_overlap,
            SystemClock.now(),
        )
        .await?;
    show_key(rotate.ident, &key, rotate.common.json);
    Ok(())
}

async fn set_state(one: &OneApp, state: AppState) -> anyhow::Result<()> {
    let store = store(&one.common).await?;
    store.set_state(one.ident, state).await?;
    print_state(one.ident, state.as_str(), one.common.json);
    Ok(())
}

async fn store(common: &CommonOptions) -> anyhow::Result<StoredApps> {
    Ok(administration(common).await?.store().clone())
}

/// Opens the administration of the configured store.
async fn administration(common: &CommonOptions) -> anyhow::Result<Administration> {
    open_administration(&Config::load(&common.config)?, common).await
}

async fn open_administration(
    config: &Config,
    common: &CommonOptions,
) -> anyhow::Result<Administration> {
    let store = configured_store(config, common).await?;
    Ok(Administration::new(store, Rules::from_config(config)))
}

/// Opens the configured store of applications.
pub(super) async fn configured_store(
    config: &Config,
    common: &CommonOptions,
) -> anyhow::Result<StoredApps> {
    match &config.applications {
        Applications::Multi(multi) => Ok(open_store(config, multi).await?.1),
        Applications::Single(_) => bail!(
            "{} serves a single application: replace [application] with [applications] to manage many",
            common.config.display()
        ),
    }
}
