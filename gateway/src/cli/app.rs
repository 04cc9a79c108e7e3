//! `signpost app …`: manages the applications in the store of the running gateways.

mod card;
mod print;
mod transfer;

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::json;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::{app::AppIdent, sign::SignProfile, version::Version};

use self::{
    card::{Card, Subject},
    print::{print_state, show, show_card, show_key, show_new, table},
    transfer::IMPORT_FILE,
};
use super::{
    CommonOptions,
    account::{AppLogout, log_out_app},
    author::Why,
    many, print_error, print_line,
    sign::SignRules,
};
use crate::{
    config::{Applications, Config, OwnRate, weaknesses},
    directory::apps::{
        AppState,
        administration::{
            Administration, AppChanges, Change, ChangeRequest, Cursor, Listing, MAX_OVERLAP,
            MAX_PAGE,
        },
        open::open_store,
        rules::{AppName, Origin, Rules},
        seal::{new_app_ident, new_app_key},
        store::NewApp,
        stored::StoredApps,
    },
};

const MAX_OVERLAP_HOURS: u64 = MAX_OVERLAP.as_secs() / 3600;

#[derive(Debug, Subcommand)]
pub(super) enum AppCommand {
    /// Add an application. Its key is printed only once, with a card for its developers.
    Create(Create),
    /// Add all applications of a file, with existing idents and keys, or none.
    #[command(after_help = IMPORT_FILE)]
    Import(transfer::Import),
    /// Print all applications as JSON lines, which app import reads once each has a key: an export has none.
    Export(CommonOptions),
    /// Change an application. Options that are not given change nothing.
    Update(Box<Update>),
    /// List applications, oldest first, by pages.
    List(List),
    /// Show one application, with a card for its developers: the rules of its requests, and a first call.
    Show(Show),
    /// Replace an application's key. The new key is printed only once; the old one stays valid for a while.
    Rotate(Rotate),
    /// End the validity of the key before the last rotation now.
    EndOverlap(OneApp),
    /// Reject an application's requests.
    Disable(OneApp),
    /// Accept a disabled application's requests again.
    Enable(OneApp),
    /// End all logins to an application: every gateway and login service rejects their credentials within a second.
    ///
    /// Its users can log in again, unless it is disabled. In single-application mode, the gateway's configuration file must
    /// name the store of the login service.
    Logout(AppLogout),
    /// Delete an application permanently.
    Delete(OneApp),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only the application with this ident, and those whose names begin with this text, by name.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Maximum number of applications.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=MAX_PAGE as i64))]
    limit: u16,
    /// The next page: what the page before ended with.
    #[arg(long, value_name = "CURSOR")]
    after: Option<Cursor>,
    #[command(flatten)]
    common: CommonOptions,
}

/// Options of the commands that change an existing application.
#[derive(Debug, Args)]
struct ChangeOptions {
    /// Change nothing if the application has another revision: app show has it.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    revision: Option<i64>,
    #[command(flatten)]
    why: Why,
}

impl ChangeOptions {
    fn request(self) -> ChangeRequest {
        ChangeRequest {
            author: self.why.author(),
            at: SystemClock.now(),
            revision: self.revision,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct OneApp {
    /// The application's ident.
    ident: AppIdent,
    #[command(flatten)]
    change: ChangeOptions,
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
    why: Why,
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
    change: ChangeOptions,
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
    #[command(flatten)]
    change: ChangeOptions,
    #[command(flatten)]
    common: CommonOptions,
}

pub(super) async fn run(command: AppCommand) -> anyhow::Result<ExitCode> {
    match command {
        AppCommand::Create(create) => self::create(create).await?,
        AppCommand::Import(import) => transfer::import(import).await?,
        AppCommand::Export(common) => transfer::export(&common).await?,
        AppCommand::Update(update) => self::update(*update).await?,
        AppCommand::List(list) => self::list(list).await?,
        AppCommand::Show(show) => show_one(show).await?,
        AppCommand::Rotate(rotate) => self::rotate(rotate).await?,
        AppCommand::EndOverlap(one) => {
            let administration = administration(&one.common).await?;
            let ended = administration.end_overlap(one.ident, one.change.request());
            show(&ended.await?, None, one.common.json);
        }
        AppCommand::Disable(one) => set_state(one, AppState::Disabled).await?,
        AppCommand::Enable(one) => set_state(one, AppState::Active).await?,
        AppCommand::Logout(logout) => log_out_app(logout).await?,
        AppCommand::Delete(one) => {
            let administration = administration(&one.common).await?;
            let deleted = administration.delete(one.ident, one.change.request());
            deleted.await?;
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
        state: AppState::Active,
        created_at: SystemClock.now(),
    };
    print_weaknesses(app.profile.as_ref());
    let card = Card::new(&config, Subject::from(&app), create.card.address.as_ref())?;
    let created = administration.create(app.clone(), create.why.author());
    created.await?;
    show_new(app.ident, &app.key, &card, create.common.json);
    Ok(())
}

async fn list(list: List) -> anyhow::Result<()> {
    let administration = administration(&list.common).await?;
    let listing = Listing {
        search: list.search,
        after: list.after,
        limit: list.limit.into(),
    };
    let page = administration.list(&listing).await?;
    if list.common.json {
        print_line(&json!(page.apps).to_string());
    } else {
        table(&page.apps);
    }
    if let Some(next) = page.next {
        print_error(&format!("more applications follow: --after {next}"));
    }
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
    let app = administration.show(ident).await?;
    show(&app, Some(&card((&app).into())?), options.common.json);
    Ok(())
}

async fn update(update: Update) -> anyhow::Result<()> {
    let choice = update.rules.choice();
    let edit = AppChanges {
        name: update.name,
        return_to: change(
            (!update.return_to.is_empty()).then_some(update.return_to),
            update.no_return_to,
        ),
        profile: change(choice.is_any().then_some(choice), update.no_profile),
        default_version: change(update.default_version, update.no_default_version),
        rate_limit: change(update.rate_limit.flatten(), update.rate_limit.is_some()),
    };
    let changes_profile = matches!(edit.profile, Change::This(_));
    let administration = administration(&update.common).await?;
    let updated = administration
        .update(update.ident, &edit, update.change.request())
        .await?;
    print_weaknesses(updated.sign_profile.as_ref().filter(|_| changes_profile));
    show(&updated, None, update.common.json);
    Ok(())
}

/// The change of a setting that one option sets, and another one removes.
fn change<T>(new: Option<T>, is_removed: bool) -> Change<T> {
    match new {
        Some(new) => Change::This(new),
        None if is_removed => Change::None,
        None => Change::NotGiven,
    }
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
    let rotated = administration.rotate(rotate.ident, overlap, rotate.change.request());
    let (_, key) = rotated.await?;
    show_key(rotate.ident, &key, rotate.common.json);
    Ok(())
}

async fn set_state(one: OneApp, state: AppState) -> anyhow::Result<()> {
    let administration = administration(&one.common).await?;
    let set = administration.set_state(one.ident, state, one.change.request());
    set.await?;
    print_state(one.ident, state.as_str(), one.common.json);
    Ok(())
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
    let because = "replace [application] with [applications] to manage many";
    let multi = many(config, &common.config, because)?;
    Ok(open_store(config, multi).await?.1)
}
