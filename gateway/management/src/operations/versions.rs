//! The versions with their backends, who uses them, and what differs between a version and its shadow.

use std::{str::FromStr, sync::Arc, time::Duration};

use clap::{Args, value_parser};
use serde::Deserialize;
use signpost_kit::server::listener::UntilSent;
use signpost_protocol::version::Version;
use signpost_proxy::{Day, KEEP_SHADOW_DAYS, KEEP_USAGE_DAYS, Versions, parse_since};
use signpost_store::tables::usage::{self, OfPaths};
use tokio::sync::{Semaphore, SemaphorePermit};
use utoipa::ToSchema;

use super::{
    Context, Face, Input, Operation, Output, Result,
    input::{KnownIdent, List, NamedPage},
    problem::{ApiError, Code},
};
use crate::reports::{
    paths::PathUsage,
    retirement::Retirement,
    shadows::{Diff, Wanted},
    usage::Summary,
    versions::{ListedEndpoint, ListedVersion},
};

/// Days of a report, if no number is named.
const DEFAULT_DAYS: u16 = 30;
/// Limit on what a report reads of clients and applications: some 10 MB of JSON.
const MAX_ROWS: u32 = 20_000;
/// A report of many applications takes memory until it is sent: so many at a time.
pub(crate) const MAX_REPORTS: usize = 4;
static REPORTS: Semaphore = Semaphore::const_new(MAX_REPORTS);
/// When a call that gets no report should try again.
const RETRY: Duration = Duration::from_secs(5);

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&LIST).add(&REPORT).add(&RETIREMENT).add(&DIFF)
}

/// Lists the versions.
pub(crate) const LIST: Operation<(), NamedPage, List<ListedVersion>> = Operation::read(
    "/api/v1/versions",
    "Lists the versions with their dates, and their backends as this gateway sees them.",
    |context, (), page| Box::pin(async move { list(context, &page) }),
);

fn list(context: &Context, page: &NamedPage) -> Result<List<ListedVersion>> {
    let all = ListedVersion::all(context.versions(), &context.backends(), context.caller.at);
    Ok(page.of(all, |version| &version.version)?)
}

/// Which report.
#[derive(Args, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportInput {
    /// The last days to report, today included (UTC); by default 30.
    #[arg(long, value_name = "DAYS", default_value = "30", value_parser = value_parser!(u16).range(1..=i64::from(KEEP_USAGE_DAYS)), help = "The last days to report, today included (UTC)")]
    #[schema(minimum = 1, maximum = 90)]
    pub days: Option<u16>,
    /// Only this version.
    #[arg(long, value_name = "NAME", value_parser = version_name, help = "Report one version only")]
    pub version: Option<String>,
    /// Only the application with this ident, in versions that are configured.
    #[arg(long, value_name = "IDENT", help = "Report one application only")]
    #[schema(value_type = Option<String>)]
    pub app: Option<KnownIdent>,
    /// Whether each version has its paths, too, and who called them.
    #[arg(
        long,
        default_missing_value = "true",
        num_args = 0,
        help = "Report the paths that clients used, too"
    )]
    pub paths: Option<bool>,
}

fn version_name(text: &str) -> Result<String, <Version as FromStr>::Err> {
    Ok(text.parse::<Version>()?.to_string())
}

impl Input for ReportInput {}

impl Output for Summary {
    fn held(&self) -> Option<UntilSent> {
        Some(UntilSent(self.place.clone()?))
    }
}

impl ReportInput {
    fn days(&self) -> Result<u16, ApiError> {
        let days = self.days.unwrap_or(DEFAULT_DAYS);
        let is_kept = (1..=KEEP_USAGE_DAYS).contains(&days);
        let refused = || ApiError::invalid("days", format!("1 to {KEEP_USAGE_DAYS}"));
        is_kept.then_some(days).ok_or_else(refused)
    }
}

/// Reports who uses each version.
pub(crate) const REPORT: Operation<(), ReportInput, Summary> = Operation::read(
    "/api/v1/versions/report",
    "Reports who uses each version, and what retiring it would break. Of very many applications, only the command does.",
    |context, (), input| Box::pin(bounded_report(context, input)),
);

/// One of few at a time, and of not too many applications.
async fn bounded_report(context: &Context, input: ReportInput) -> Result<Summary> {
    input.days()?;
    let place = match &input.app {
        Some(_) => place_of_report()?,
        None => place_of_large_report(context).await?,
    };
    let mut summary = report(context, context.versions(), input).await?;
    summary.place = Some(Arc::new(place));
    Ok(summary)
}

/// Reports who uses each of these versions.
///
/// # Errors
///
/// A member of the input is not allowed, or the store is unavailable.
pub async fn report(context: &Context, versions: &Versions, input: ReportInput) -> Result<Summary> {
    let days = input.days()?;
    let app = match input.app {
        Some(KnownIdent(ident)) => {
            let id = usage::application_id(&context.store, ident.as_str()).await?;
            Some(id.ok_or(ApiError::from(Code::AppNotFound))?)
        }
        None => None,
    };
    let (store, now) = (&context.store, context.caller.at);
    let mut summary = Summary::read(store, days, now, versions, app).await?;
    if let Some(version) = input.version {
        summary.versions.retain(|usage| usage.version == version);
        if summary.versions.is_empty() {
            return Err(UnusedVersion { version, days }.into());
        }
    }
    if input.paths == Some(true) {
        let of = OfPaths {
            day: Day::at(now).minus(days - 1).number(),
            application: app,
            ..OfPaths::default()
        };
        let mut paths = PathUsage::read(store, &of).await?;
        for version in &mut summary.versions {
            let mut paths = paths.remove(&version.version).unwrap_or_default();
            let configured = versions.named(version.version.as_bytes());
            let endpoints = configured.map_or(&[][..], |version| version.endpoints());
            for path in &mut paths {
                let found = endpoints.iter();
                let found = found.filter(|one| one.covers(&path.method, &path.path));
                path.ends = found.map(|one| ListedEndpoint::new(one, now)).collect();
            }
            version.paths = Some(paths);
        }
    }
    Ok(summary)
}

/// A report of a version that has nothing to report.
#[derive(Debug, thiserror::Error)]
#[error("version {version} is not configured, and no request went to it in the last {days} days")]
struct UnusedVersion {
    version: String,
    days: u16,
}

impl From<UnusedVersion> for ApiError {
    fn from(_: UnusedVersion) -> Self {
        let allowed = "one that is configured, or has requests in these days";
        Self::invalid("version", allowed)
    }
}

fn place_of_report() -> Result<SemaphorePermit<'static>, ApiError> {
    let busy = |_| ApiError::from(Code::RateLimited).retry_after(RETRY);
    REPORTS.try_acquire().map_err(busy)
}

/// One of few at a time, if the store is not too large for a report of all applications.
async fn place_of_large_report(context: &Context) -> Result<SemaphorePermit<'static>> {
    let place = place_of_report()?;
    match usage::is_large(&context.store, MAX_ROWS).await? {
        true => Err(ApiError::from(Code::ReportTooLarge).into()),
        false => Ok(place),
    }
}

/// Which version shall be retired.
#[derive(Args, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetirementInput {
    /// The version.
    pub version: String,
    /// When, for example 2026-12-01 or 2026-12-01T10:00:00Z. By default its sunset.
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
}

impl Input for RetirementInput {}

impl Output for Retirement {}

/// Checks whether a version can be retired.
pub(crate) const RETIREMENT: Operation<(), RetirementInput, Retirement> = Operation::read(
    "/api/v1/versions/retirement",
    "Checks all stages of a version's retirement, and says what is open. The texts are in the caller's language.",
    |context, (), input| {
        Box::pin(async move {
            // Until it is read: what is sent is small.
            let _place = place_of_large_report(context).await?;
            retirement(context, context.versions(), input).await
        })
    },
);

/// Checks whether one of these versions can be retired.
///
/// # Errors
///
/// As of [`report`].
pub async fn retirement(
    context: &Context,
    versions: &Versions,
    input: RetirementInput,
) -> Result<Retirement> {
    let caller = &context.caller;
    let version = versions.named(input.version.as_bytes());
    let known = || ApiError::invalid("version", "one that is configured");
    let version = version.ok_or_else(known)?;
    let at = input.at.map(|text| parse_since(&text, caller.at));
    let at = at.transpose();
    let at = at.map_err(|allowed| ApiError::invalid("at", allowed))?;
    let by = (caller.at, caller.language);
    Ok(Retirement::read(&context.store, versions, version, at, by).await?)
}

/// Which pairs.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffInput {
    /// The version whose clients got the responses; it has a shadow.
    pub version: String,
    /// Only pairs since a date, since a time of RFC 3339, or of the last time: `7d`, `12h` or `30m`. By default all that are kept.
    pub since: Option<String>,
    /// Only pairs to which the present changes of the version were applied; by default those without any changes.
    pub changed: Option<bool>,
}

impl Input for DiffInput {}

impl Output for Diff {
    fn held(&self) -> Option<UntilSent> {
        Some(UntilSent(self.place.clone()?))
    }
}

/// Reports what differs between a version and its shadow.
pub(crate) const DIFF: Operation<(), DiffInput, Diff> = Operation::read(
    "/api/v1/versions/diff",
    "Reports what differs between a version and its shadow, and for which applications.",
    |context, (), input| Box::pin(diff(context, input)),
);

async fn diff(context: &Context, input: DiffInput) -> Result<Diff> {
    let place = place_of_report()?;
    let now = context.caller.at;
    let version = context.versions().named(input.version.as_bytes());
    let with_shadow = version.and_then(|version| Some((version, version.shadow()?)));
    let allowed = "a version with a shadow";
    let (version, shadow) = with_shadow.ok_or_else(|| ApiError::invalid("version", allowed))?;
    let since = match &input.since {
        Some(text) => {
            parse_since(text, now).map_err(|allowed| ApiError::invalid("since", allowed))?
        }
        None => now.minus(Duration::from_secs(u64::from(KEEP_SHADOW_DAYS) * 86_400)),
    };
    let changes = version.changes().filter(|_| input.changed == Some(true));
    if input.changed == Some(true) && changes.is_none() {
        return Err(ApiError::invalid("changed", "only of a version with changes").into());
    }
    let wanted = Wanted {
        version,
        to: &shadow.to,
        changes: changes.map(|changes| &**changes),
        since,
    };
    let mut diff = Diff::read(&context.store, &wanted).await?;
    diff.place = Some(Arc::new(place));
    Ok(diff)
}
