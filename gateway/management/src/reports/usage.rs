//! Who uses each version, and what retiring it would break. Its JSON is stable for scripts: `conf/guides/versions.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Serialize, Serializer};
use signpost_kit::clock::Timestamp;
use signpost_protocol::version::VersionSource;
use signpost_proxy::{Counts, Day, Stage, UnknownVersion, Versions, as_rfc3339, rfc3339};
use signpost_store::{
    Store, StoreError,
    tables::usage::{Only, StoredApp, StoredClient, StoredCount, StoredUsage, read},
};
use tokio::sync::SemaphorePermit;
use utoipa::ToSchema;

pub use super::paths::AppKind;
use super::paths::PathUsage;
use crate::administration::records::extensions_of;

/// State of an application that the store no longer has.
const DELETED: &str = "deleted";

/// The report.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = UsageReport)]
pub struct Summary {
    /// The days of the report.
    pub days: u16,
    /// The first one, as `2026-11-22`.
    pub first_day: String,
    /// The last one: today.
    pub last_day: String,
    /// When counting began; `None` if no gateway has counted yet.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub counted_since: Option<Timestamp>,
    /// Whether all days of the report were counted.
    pub is_complete: bool,
    /// The configured default version.
    pub default_version: String,
    /// Whether a request that names an unknown version is rejected.
    pub rejects_unknown: bool,
    /// The configured versions, and those that have requests; ordered by name.
    pub versions: Vec<VersionSummary>,
    /// Its place among the reports of the API, until it is sent.
    #[serde(skip)]
    pub(crate) place: Option<Arc<SemaphorePermit<'static>>>,
}

/// A version.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct VersionSummary {
    /// Its name.
    pub version: String,
    /// Whether it is configured now.
    pub is_configured: bool,
    /// Whether it is the default version now.
    pub is_default: bool,
    /// Whether its requests get 410 now.
    pub is_retired: bool,
    /// All requests.
    #[serde(flatten)]
    pub requests: Requests,
    /// By application; the one with the most requests first.
    pub applications: Vec<AppUsage>,
    /// What retiring it would break.
    pub retiring: Retiring,
    /// The paths that were used, if the report was asked for them: at most 500, the one with the most requests first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathUsage>>,
}

/// Numbers of requests.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Requests {
    /// All.
    pub requests: u64,
    /// Those that were signed: nobody but the application can have sent them.
    pub signed: u64,
    /// By the words of `Acme-X-Version-Source`.
    #[serde(serialize_with = "by_word")]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub sources: Counts,
    /// Those of them that were signed.
    #[serde(skip)]
    signed_sources: Counts,
    /// When the last one was counted.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_seen: Option<Timestamp>,
}

fn by_word<S: Serializer>(counts: &Counts, serializer: S) -> Result<S::Ok, S::Error> {
    let words = VersionSource::ALL.iter().map(|source| source.as_str());
    serializer.collect_map(words.zip(counts))
}

/// The requests of an application.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AppUsage {
    /// What it is.
    pub kind: AppKind,
    /// The ident of an application.
    pub ident: Option<String>,
    /// Its display name, while it exists.
    pub name: Option<String>,
    /// `active`, `disabled` or `deleted`.
    pub state: Option<String>,
    /// Its requests.
    #[serde(flatten)]
    pub requests: Requests,
    /// The last client; of the signed requests, if there are any.
    pub client: Option<ClientUsage>,
}

/// A client.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ClientUsage {
    /// Its address.
    pub address: String,
    /// Its user agent, if it sent one.
    pub user_agent: Option<String>,
    /// Whether its request was signed. Otherwise anyone may have sent it.
    pub is_signed: bool,
}

/// Existing applications by what they would notice, by ident.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Retiring {
    /// They named the version.
    pub named_by: BTreeSet<String>,
    /// The version is their default version, with or without requests.
    pub pinned: BTreeSet<String>,
    /// They got it by default.
    pub by_default: BTreeSet<String>,
    /// They named a version that does not exist, and got this one.
    pub by_unknown: BTreeSet<String>,
    /// They may use the version longer than its life cycle says; each with the time.
    pub extended: BTreeMap<String, String>,
    /// They named it, got it by default or instead of another one in unsigned requests only, which anyone can send.
    pub only_unsigned: BTreeSet<String>,
}

impl Summary {
    /// Reads and summarises the last days, `now` included: of all applications, or of the one with this internal id.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn read(
        store: &Store,
        days: u16,
        now: Timestamp,
        configured: &Versions,
        app: Option<i64>,
    ) -> Result<Self, StoreError> {
        let last = Day::at(now);
        let only = app.map(|application| Only {
            application,
            versions: configured
                .iter()
                .map(|version| (**version.name()).clone())
                .collect(),
        });
        let first = last.minus(days - 1);
        let usage = read(store, first.number()..=last.number(), only.as_ref()).await?;
        Ok(Self::new(&usage, days, now, configured))
    }

    /// Summarises what the store knows.
    pub fn new(usage: &StoredUsage, days: u16, now: Timestamp, configured: &Versions) -> Self {
        let last = Day::at(now);
        let counted = usage.counts.iter().map(|count| &*count.version);
        let configured_names = configured.iter().map(|version| version.name().as_str());
        let names: BTreeSet<_> = counted.chain(configured_names).collect();
        let (began, first) = (usage.began_at, last.minus(days - 1));
        Self {
            days,
            first_day: first.to_string(),
            last_day: last.to_string(),
            counted_since: began,
            is_complete: began.is_some_and(|began| began <= first.begin()),
            default_version: configured.default().name().to_string(),
            rejects_unknown: configured.unknown == UnknownVersion::Reject,
            versions: names
                .into_iter()
                .map(|name| VersionSummary::new(name, usage, now, configured))
                .collect(),
            place: None,
        }
    }
}

impl VersionSummary {
    fn new(name: &str, usage: &StoredUsage, now: Timestamp, configured: &Versions) -> Self {
        let mut requests: BTreeMap<i64, Requests> = BTreeMap::new();
        for count in usage.counts.iter().filter(|count| count.version == name) {
            requests.entry(count.application).or_default().add(count);
        }
        let mut clients: BTreeMap<i64, Vec<&StoredClient>> = BTreeMap::new();
        for client in usage.clients.iter().filter(|client| client.version == name) {
            clients.entry(client.application).or_default().push(client);
        }
        let known_apps: BTreeMap<_, _> =
            usage.applications.iter().map(|app| (app.id, app)).collect();
        let mut all = Requests::default();
        let mut applications = Vec::new();
        for (id, mut requests) in requests {
            let clients = clients.get(&id).map(Vec::as_slice).unwrap_or_default();
            requests.last_seen = clients.iter().map(|client| client.last_seen).max();
            all.include(&requests);
            applications.push(AppUsage::new(
                id,
                requests,
                clients,
                known_apps.get(&id).copied(),
            ));
        }
        applications.sort_by(|app, other| {
            let most = other.requests.requests.cmp(&app.requests.requests);
            // Then by ident, so that two reports of the same numbers are the same.
            most.then_with(|| app.ident.cmp(&other.ident))
        });
        let version = configured.named(name.as_bytes());
        Self {
            version: name.to_owned(),
            is_configured: version.is_some(),
            is_default: configured.default().name().as_str() == name,
            is_retired: version.is_some_and(|version| version.stage(now) == Stage::Retired),
            requests: all,
            retiring: Retiring::new(name, &applications, &usage.applications),
            applications,
            paths: None,
        }
    }
}

impl Requests {
    /// The number of a source.
    pub fn of(&self, source: VersionSource) -> u64 {
        self.sources[source as usize]
    }

    /// The requests that name the version: in the header, by host or by path.
    pub fn named(&self) -> u64 {
        let sources = [
            VersionSource::Header,
            VersionSource::Host,
            VersionSource::Prefix,
        ];
        sources.map(|source| self.of(source)).iter().sum()
    }

    fn add(&mut self, count: &StoredCount) {
        self.requests += count.requests;
        let source = VersionSource::from_word(&count.source);
        if let Some(source) = source {
            self.sources[source as usize] += count.requests;
        }
        if count.is_signed {
            self.signed += count.requests;
            if let Some(source) = source {
                self.signed_sources[source as usize] += count.requests;
            }
        }
    }

    /// Whether there are requests of a source, but no signed ones: then that source may be a stranger's doing.
    fn has_unsigned_source(&self) -> bool {
        use VersionSource::{Default, Header, Unknown};
        let mut sources = [Header, Default, Unknown].into_iter();
        sources.any(|source| self.of(source) > 0 && self.signed_sources[source as usize] == 0)
    }

    fn include(&mut self, other: &Self) {
        self.requests += other.requests;
        self.signed += other.signed;
        for (sum, requests) in self.sources.iter_mut().zip(other.sources) {
            *sum += requests;
        }
        self.last_seen = self.last_seen.max(other.last_seen);
    }
}

impl AppUsage {
    fn new(
        id: i64,
        requests: Requests,
        clients: &[&StoredClient],
        known: Option<&StoredApp>,
    ) -> Self {
        let kind = AppKind::of(id);
        let ident = clients.iter().find_map(|client| client.ident.clone());
        let state = known.map_or(DELETED, |app| &app.state).to_owned();
        let mut by_signature = clients
            .iter()
            // An unsigned request can name any application: beside signed ones, its client says nothing.
            .filter(|client| requests.signed == 0 || client.is_signed);
        let client = by_signature.find_map(|client| ClientUsage::from_stored(client));
        Self {
            kind,
            ident: known.map(|app| app.ident.clone()).or(ident),
            name: known.map(|app| app.name.clone()),
            state: (kind == AppKind::Application).then_some(state),
            requests,
            client,
        }
    }

    /// The user agent of the last client; empty if it is not known.
    pub fn user_agent(&self) -> &str {
        let client = self.client.as_ref();
        let agent = client.and_then(|client| client.user_agent.as_deref());
        agent.unwrap_or_default()
    }

    fn exists(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state != DELETED)
    }
}

impl ClientUsage {
    fn from_stored(client: &StoredClient) -> Option<Self> {
        let user_agent = client.user_agent.as_deref().map(printable);
        Some(Self {
            address: printable(client.address.as_deref()?),
            user_agent: user_agent.filter(|text| !text.is_empty()),
            is_signed: client.is_signed,
        })
    }
}

impl Retiring {
    fn new(version: &str, applications: &[AppUsage], known: &[StoredApp]) -> Self {
        let pinned = known.iter();
        let pinned = pinned.filter(|app| app.default_version.as_deref() == Some(version));
        let extended = known.iter().filter_map(|app| {
            let extensions = extensions_of(app.extensions.as_deref());
            let mut extensions = extensions.into_iter();
            let found = extensions.find(|one| one.version.as_str() == version)?;
            Some((app.ident.clone(), rfc3339(found.until)))
        });
        let with = |has: fn(&Requests) -> bool| {
            let noticing = applications
                .iter()
                .filter(|app| app.exists() && has(&app.requests));
            noticing.filter_map(|app| app.ident.clone()).collect()
        };
        Self {
            named_by: with(|of| of.named() > 0),
            pinned: pinned.map(|app| app.ident.clone()).collect(),
            extended: extended.collect(),
            by_default: with(|of| of.of(VersionSource::Default) > 0),
            by_unknown: with(|of| of.of(VersionSource::Unknown) > 0),
            only_unsigned: with(Requests::has_unsigned_source),
        }
    }
}

/// A text of the store as printable ASCII: it is a client's, and a terminal might obey it.
fn printable(text: &str) -> String {
    let shown = |letter: char| matches!(letter, ' '..='~');
    let letters = text.chars();
    letters
        .map(|letter| if shown(letter) { letter } else { '?' })
        .collect()
}
