//! Applications.

use std::{mem, str::FromStr, time::Duration};

use clap::Args;
use serde::{Deserialize, Serialize};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppIdent, parse_digits, version::Version};
use signpost_proxy::{
    AppState, AppStoreError, Extension, OwnRate, new_app_ident, new_app_key, parse_short_duration,
};
use signpost_store::tables::{
    applications::{self, ApplicationRow},
    audit::Action,
};
use utoipa::ToSchema;

use super::{
    Context, Face, Input, Kind, Operation, Output, Result,
    input::{Change, Decision, Limit, List, Nothing, REVISION_HELP, Text, Why, given, given_list},
};
use crate::administration::{
    apps::{Administration, AdministrationError, Cursor, Listing},
    logins::EndedLogins,
    records::{extensions_json, extensions_of, origins_json, profile_json},
    rules::{AppName, Origin, ProfileChoice, Reason},
    summary::{AppSummary, NewApp},
    tokens::Role,
};

/// The longest overlap of a rotation: 30 days. CONTRACT 4.
const MAX_OVERLAP_HOURS: u64 = 30 * 24;
/// The overlap of a rotation that names none.
pub(crate) const DEFAULT_OVERLAP_HOURS: u64 = 24;
/// Time for which an expired key is kept, so that a client that still signs with it gets a hint (CONTRACT 3).
const PREVIOUS_KEY_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&LIST)
        .add(&SHOW)
        .add(&CREATE)
        .add(&UPDATE)
        .add(&ROTATE)
        .add(&END_OVERLAP)
        .add(&ENABLE)
        .add(&DISABLE)
        .add(&DELETE)
        .add(&LOGOUT)
}

impl Output for AppSummary {
    const REVISION: Option<fn(&Self) -> i64> = Some(|app| app.revision);
}

/// An application and its new key, which is shown only once.
#[derive(Serialize, ToSchema)]
pub struct WithKey {
    /// The application.
    pub app: AppSummary,
    /// The key that its clients sign with.
    pub key: String,
}

impl Output for WithKey {
    const REVISION: Option<fn(&Self) -> i64> = Some(|new| new.app.revision);
    const LOCATION: Option<fn(&Self) -> String> =
        Some(|new| format!("/api/v1/apps/{}", new.app.ident));
}

/// What a deletion leaves.
#[derive(Serialize, ToSchema)]
pub struct Deleted {
    /// What is no more.
    pub deleted: String,
}

impl Output for Deleted {}
impl Output for EndedLogins {}

/// Which applications.
#[derive(Args, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Only the application with this ident, and those whose names begin with this text, by name. Otherwise all, oldest
    /// first.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Maximum number of items.
    #[arg(long, value_name = "NUMBER", default_value_t)]
    #[serde(default)]
    #[schema(value_type = u16, minimum = 1, maximum = 1000)]
    pub limit: Limit,
    /// The `next` of the page before.
    #[arg(
        long,
        value_name = "CURSOR",
        help = "The next page: what the page before ended with"
    )]
    #[schema(value_type = Option<String>)]
    pub after: Option<Text<Cursor>>,
}

impl Input for Search {}

/// Lists applications.
pub const LIST: Operation<(), Search, List<AppSummary>> = Operation::read(
    "/api/v1/apps",
    "Lists applications.",
    |context, target, input| Box::pin(list(context, target, input)),
);

async fn list(context: &Context, (): (), input: Search) -> Result<List<AppSummary>> {
    let listing = Listing {
        search: input.search,
        after: input.after.map(|Text(after)| after),
        limit: input.limit.into(),
    };
    let page = context.apps().list(&listing).await?;
    Ok(List {
        items: page.apps,
        next: page.next.map(|next| next.to_string()),
    })
}

/// Shows an application.
pub const SHOW: Operation<AppIdent, Nothing, AppSummary> = Operation::read(
    "/api/v1/apps/{ident}",
    "Shows an application.",
    |context, target, input| Box::pin(show(context, target, input)),
);

async fn show(context: &Context, ident: AppIdent, _: Nothing) -> Result<AppSummary> {
    Ok(context.apps().show(ident).await?)
}

/// A new application.
#[derive(Args, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAppInput {
    /// The display name, shown to users on login pages: 1 to 64 characters.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    pub name: Text<AppName>,
    /// Origins that a login may return to, for example `https://app.example.com`.
    #[arg(long, value_name = "ORIGIN")]
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub return_to: Vec<Text<Origin>>,
    /// Its own sign profile; without one, it has the gateway's.
    #[command(flatten)]
    pub profile: Option<ProfileChoice>,
    /// The version for requests that name none.
    #[arg(long, value_name = "NAME")]
    #[schema(value_type = Option<String>)]
    pub default_version: Option<Text<Version>>,
    /// Its own rate limit, for example "100/200" (a second, at once), or "unlimited".
    #[arg(long, value_name = "RATE", value_parser = own_rate, help = RATE_HELP)]
    #[schema(value_type = Option<String>)]
    pub rate_limit: Option<Change<Text<OwnRate>>>,
    /// Why, for the audit.
    #[arg(long, value_name = "TEXT")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
}

impl Input for NewAppInput {}

const RATE_HELP: &str = "Its own rate limit: signed requests per second, and at once, for example \"100/200\"; or \
                         \"unlimited\"; or \"default\", the gateway's";

/// Reads a command's rate limit: "default" removes an application's own.
fn own_rate(text: &str) -> Result<Change<Text<OwnRate>>, String> {
    let rate = || text.parse().map(Change::This);
    match text {
        "default" => Ok(Change::None),
        _ => rate().map_err(|allowed| format!("allowed: {allowed}; or \"default\"")),
    }
}

/// Creates an application.
pub const CREATE: Operation<(), NewAppInput, WithKey> = Operation::of(
    (Kind::Create, Role::Operator),
    "/api/v1/apps/create",
    "Creates an application. Its key is shown in this response only.",
    |context, target, input| Box::pin(create(context, target, input)),
);

async fn create(context: &Context, (): (), new: NewAppInput) -> Result<WithKey> {
    let apps = context.apps();
    let app = NewApp {
        ident: new_app_ident().map_err(AppStoreError::from)?,
        key: new_app_key().map_err(AppStoreError::from)?,
        name: new.name.0,
        profile: new.profile.and_then(|choice| apps.profile_of(&choice)),
        return_to: new
            .return_to
            .into_iter()
            .map(|Text(origin)| origin)
            .collect(),
        default_version: new.default_version.map(|Text(version)| version),
        rate_limit: match new.rate_limit {
            Some(Change::This(Text(rate))) => Some(rate),
            _ => None,
        },
        extensions: Vec::new(),
        state: AppState::Active,
        created_at: context.caller.at,
    };
    let key = app.key.expose().to_owned();
    let app = apps.create(app, context.author(new.reason)).await?;
    Ok(WithKey { app, key })
}

/// Changes of an application's settings. Members that are absent change nothing; null removes a setting.
#[derive(Args, Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The display name.
    #[arg(long)]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub name: Option<Text<AppName>>,
    /// Origins that a login may return to; replaces all of them.
    #[arg(long, value_name = "ORIGIN")]
    #[serde(default, deserialize_with = "given_list")]
    #[schema(value_type = Option<Vec<String>>)]
    pub return_to: Option<Vec<Text<Origin>>>,
    /// Settings of its own sign profile; without one, it has the gateway's.
    #[arg(skip)]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<ProfileChoice>)]
    pub profile: Option<Change<ProfileChoice>>,
    /// The version for requests that name none; without one, the gateway's.
    #[arg(long, value_name = "NAME")]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub default_version: Option<Change<Text<Version>>>,
    /// Its own rate limit; without one, the gateway's.
    #[arg(long, value_name = "RATE", value_parser = own_rate, help = RATE_HELP)]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub rate_limit: Option<Change<Text<OwnRate>>>,
    /// Until when it may use a version, without brown-outs and sunset: "v1=2027-03-01". "v1=none" ends that.
    #[arg(long, value_name = "VERSION=DATE")]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>, nullable = false)]
    pub extend: Option<Vec<Text<Extend>>>,
    /// What is changed.
    #[command(flatten)]
    #[serde(skip)]
    pub options: UpdateOptions,
    /// The revision that the change was decided upon; the header `If-Match` can name it, too.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..), help = REVISION_HELP)]
    #[schema(minimum = 1)]
    pub revision: Option<i64>,
    /// Why, for the audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
}

impl Input for Update {
    const REVISION: Option<fn(&mut Self) -> &mut Option<i64>> = Some(|input| &mut input.revision);
}

/// A change of an extension.
#[derive(Clone, Debug)]
pub struct Extend {
    version: Version,
    until: Option<Timestamp>,
}

impl FromStr for Extend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let none = text.strip_suffix("=none").map(str::parse);
        if let Some(Ok(version)) = none {
            return Ok(Self {
                version,
                until: None,
            });
        }
        let Extension { version, until } = text
            .parse()
            .map_err(|allowed| format!("{allowed}, or \"v1=none\""))?;
        let until = Some(until);
        Ok(Self { version, until })
    }
}

/// What only the command says so.
#[derive(Args, Clone, Debug, Default)]
pub struct UpdateOptions {
    #[command(flatten)]
    profile: ProfileChoice,
    /// Remove all origins that a login may return to.
    #[arg(long, conflicts_with = "return_to")]
    no_return_to: bool,
    /// Remove its own sign profile: use the gateway's.
    #[arg(long, conflicts_with_all = ["preset", "algorithm", "cover", "replay"])]
    no_profile: bool,
    /// Remove its default version: use the gateway's.
    #[arg(long, conflicts_with = "default_version")]
    no_default_version: bool,
}

impl Update {
    /// Moves the command's options into the members that the API has, too. A sign profile without a choice changes
    /// nothing.
    fn chosen(mut self) -> Self {
        let options = mem::take(&mut self.options);
        if options.no_return_to {
            self.return_to = Some(Vec::new());
        }
        if options.no_profile {
            self.profile = Some(Change::None);
        } else if options.profile.is_any() {
            self.profile = Some(Change::This(options.profile));
        }
        if options.no_default_version {
            self.default_version = Some(Change::None);
        }
        self.profile = self
            .profile
            .filter(|profile| !matches!(profile, Change::This(choice) if !choice.is_any()));
        self
    }

    /// Whether a command's options change its own sign profile.
    pub fn chooses_profile(&self) -> bool {
        self.options.profile.is_any()
    }

    /// Whether nothing is to change.
    fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.return_to.is_none()
            && self.profile.is_none()
            && self.default_version.is_none()
            && self.rate_limit.is_none()
            && self.extend.as_ref().is_none_or(Vec::is_empty)
    }

    fn apply_to(&self, mut row: ApplicationRow, apps: &Administration) -> ApplicationRow {
        let settings = &mut row.settings;
        if let Some(Text(name)) = &self.name {
            row.name = name.clone().into();
        }
        if let Some(origins) = &self.return_to {
            settings.return_to_origins = origins_json(origins.iter().map(|Text(origin)| origin));
        }
        let own = settings.sign_profile.take();
        settings.sign_profile = match &self.profile {
            None => own,
            Some(Change::None) => None,
            Some(Change::This(choice)) => {
                // Settings that were not chosen keep their values.
                let own = own.and_then(|json| serde_json::from_str(&json).ok());
                let base = own.unwrap_or_else(|| apps.rules.gateway_profile.clone());
                Some(profile_json(&choice.apply_to(base)))
            }
        };
        if let Some(version) = &self.default_version {
            settings.default_version = version.this().map(|Text(version)| version.to_string());
        }
        if let Some(rate) = &self.rate_limit {
            settings.rate_limit = rate.this().map(|Text(rate)| rate.numbers());
        }
        if let Some(extend) = &self.extend {
            let mut all = extensions_of(settings.extensions.as_deref());
            for Text(Extend { version, until }) in extend {
                all.retain(|one| one.version != *version);
                let version = version.clone();
                all.extend(until.map(|until| Extension { version, until }));
            }
            all.sort_by(|one, other| one.version.cmp(&other.version));
            settings.extensions = extensions_json(&all);
        }
        row
    }
}

/// Changes settings.
pub const UPDATE: Operation<AppIdent, Update, AppSummary> = Operation::change(
    "/api/v1/apps/{ident}/update",
    "Changes an application's settings.",
    |context, target, input| Box::pin(update(context, target, input)),
);

async fn update(context: &Context, ident: AppIdent, input: Update) -> Result<AppSummary> {
    let apps = context.apps();
    let input = input.chosen();
    if input.is_empty() {
        return Err(AdministrationError::NothingToChange.into());
    }
    let origins = input.return_to.as_ref().map_or(0, Vec::len);
    let version = input.default_version.as_ref().and_then(Change::this);
    apps.check(origins, version.map(|Text(version)| version))?;
    for Text(Extend { version, until }) in input.extend.iter().flatten() {
        let checked = apps
            .rules
            .check_extension(version, *until, context.caller.at);
        checked.map_err(AdministrationError::from)?;
    }
    let request = context.change(input.revision, input.reason.clone());
    let updated = |row| Ok(input.apply_to(row, apps));
    let updated = apps.change(ident, Action::UpdateApp, &request, updated);
    Ok(updated.await?)
}

/// A rotation.
#[derive(Args, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rotation {
    /// Hours for which the old key stays valid.
    #[arg(long = "overlap", value_name = "DURATION", default_value = "24h", value_parser = overlap, help = "For how long the old key stays valid, in whole hours: 12h, 7d; at most 30d")]
    #[serde(default = "default_overlap")]
    #[schema(minimum = 0, maximum = 720, default = 24)]
    pub overlap_hours: u64,
    /// The revision that the change was decided upon; the header `If-Match` can name it, too.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..), help = REVISION_HELP)]
    #[schema(minimum = 1)]
    pub revision: Option<i64>,
    /// Why, for the audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
}

impl Input for Rotation {
    const REVISION: Option<fn(&mut Self) -> &mut Option<i64>> = Some(|input| &mut input.revision);
}

/// Reads a command's overlap. A number alone is hours.
fn overlap(text: &str) -> Result<u64, &'static str> {
    let hours = || {
        let seconds = parse_short_duration(text)?.as_secs();
        (seconds % 3600 == 0).then_some(seconds / 3600)
    };
    let hours = parse_digits(text).or_else(hours);
    let hours = hours.filter(|hours| *hours <= MAX_OVERLAP_HOURS);
    hours.ok_or("allowed: whole hours, as 0h, 12h or 7d; at most 30d")
}

const fn default_overlap() -> u64 {
    DEFAULT_OVERLAP_HOURS
}

/// Replaces the key.
pub const ROTATE: Operation<AppIdent, Rotation, WithKey> = Operation::change(
    "/api/v1/apps/{ident}/rotate",
    "Replaces an application's key. The new key is shown in this response only.",
    |context, target, input| Box::pin(rotate(context, target, input)),
);

async fn rotate(context: &Context, ident: AppIdent, input: Rotation) -> Result<WithKey> {
    if input.overlap_hours > MAX_OVERLAP_HOURS {
        return Err(AdministrationError::OverlapTooLong.into());
    }
    let (apps, now) = (context.apps(), context.caller.at);
    let until = now.plus(Duration::from_secs(input.overlap_hours * 3600));
    let new = new_app_key().map_err(AppStoreError::from)?;
    let rotated = |row: ApplicationRow| match row.previous_until {
        Some(until) if until >= now => {
            let minutes = until.seconds_from(now).div_ceil(60);
            Err(AdministrationError::Overlapping { minutes })
        }
        _ => Ok(apps.rotated(ident, row, &new, until)?),
    };
    let request = context.change(input.revision, input.reason);
    let app = apps
        .change(ident, Action::RotateApp, &request, rotated)
        .await?;
    let ended_before = now.minus(PREVIOUS_KEY_RETENTION);
    // The new key must be returned even if this clean-up fails; the next rotation retries it.
    let _ = applications::delete_previous_keys(&context.store, ended_before).await;
    let key = new.expose().to_owned();
    Ok(WithKey { app, key })
}

/// Ends the validity of the key before.
pub const END_OVERLAP: Operation<AppIdent, Decision, AppSummary> = Operation::change(
    "/api/v1/apps/{ident}/end-overlap",
    "Ends the validity of the key before the last rotation.",
    |context, target, input| Box::pin(end_overlap(context, target, input)),
);

async fn end_overlap(
    context: &Context,
    ident: AppIdent,
    Decision { revision, reason }: Decision,
) -> Result<AppSummary> {
    let (apps, at) = (context.apps(), context.caller.at);
    let ended = |row| Ok(apps.without_overlap(ident, row, at)?);
    let request = context.change(revision, reason);
    let ended = apps.change(ident, Action::EndOverlap, &request, ended);
    Ok(ended.await?)
}

/// Accepts requests again.
pub const ENABLE: Operation<AppIdent, Decision, AppSummary> = Operation::change(
    "/api/v1/apps/{ident}/enable",
    "Accepts a disabled application's requests again.",
    |context, ident, decision| {
        let state = (Action::EnableApp, AppState::Active);
        Box::pin(set_state(context, ident, state, decision))
    },
);

/// Rejects requests.
pub const DISABLE: Operation<AppIdent, Decision, AppSummary> = Operation::change(
    "/api/v1/apps/{ident}/disable",
    "Rejects an application's requests.",
    |context, ident, decision| {
        let state = (Action::DisableApp, AppState::Disabled);
        Box::pin(set_state(context, ident, state, decision))
    },
);

/// If it is so already, nothing changes.
async fn set_state(
    context: &Context,
    ident: AppIdent,
    (action, state): (Action, AppState),
    Decision { revision, reason }: Decision,
) -> Result<AppSummary> {
    let set = |row| {
        let state = state.as_str().to_owned();
        Ok(ApplicationRow { state, ..row })
    };
    let request = context.change(revision, reason);
    let set = context.apps().change(ident, action, &request, set);
    Ok(set.await?)
}

/// Deletes an application.
pub const DELETE: Operation<AppIdent, Decision, Deleted> = Operation::change(
    "/api/v1/apps/{ident}/delete",
    "Deletes an application permanently.",
    |context, target, input| Box::pin(delete(context, target, input)),
);

async fn delete(
    context: &Context,
    ident: AppIdent,
    Decision { revision, reason }: Decision,
) -> Result<Deleted> {
    let request = context.change(revision, reason);
    context.apps().delete(ident, request).await?;
    let deleted = ident.to_string();
    Ok(Deleted { deleted })
}

pub(crate) const LOGOUT: Operation<AppIdent, Why, EndedLogins> = Operation::change(
    "/api/v1/apps/{ident}/logout",
    "Ends all logins to an application: every gateway and login service rejects their credentials within a second. Its \
         users can log in again. The application itself does not change, so that no revision is named.",
    |context, target, input| Box::pin(logout(context, target, input)),
);

async fn logout(context: &Context, ident: AppIdent, why: Why) -> Result<EndedLogins> {
    end_logins(context, Some(ident), why).await
}

/// Ends all logins to an application; to the only one, if there is no ident.
///
/// # Errors
///
/// The application is unknown, or the store is unavailable.
pub async fn end_logins(
    context: &Context,
    ident: Option<AppIdent>,
    Why { reason }: Why,
) -> Result<EndedLogins> {
    let (author, at) = (context.author(reason), context.caller.at);
    let logins = context.logins();
    Ok(logins.end_of_app(ident, author, at).await?)
}
