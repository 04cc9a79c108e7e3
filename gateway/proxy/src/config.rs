//! The gateway's configuration: typed, and valid by construction.
//!
//! [`Config::load`] reports all problems at once: file, line, key, found value, allowed values.
//! `conf/gateway.toml` explains the keys and their defaults; a test loads that file.

mod applications;
mod connections;
mod cors;
mod limits;
mod listen;
mod management;
mod path_pattern;
mod rate_limits;
mod readers;
mod response_headers;
mod sign;
mod version;

pub use self::{
    applications::{Applications, MasterKey, MultiApplications},
    limits::{Limits, Timeouts},
    listen::ListenerSettings,
    management::{ConsoleAccount, ConsoleSettings, Role},
    path_pattern::{OTHER_PATHS, PathPattern},
    rate_limits::OwnRate,
    response_headers::ResponseHeaders,
    sign::weaknesses,
    version::{
        Backend, BackendAddress, Changes, Endpoint, Extension, HostPort, LifeCycle, Part, Placed,
        ServedVersion, Shadow, Stage, UnknownVersion, Upstream, Versions, as_rfc3339,
        parse_short_duration, parse_since, rfc3339,
    },
};
pub(crate) use self::{
    connections::ConnectionLimits,
    cors::{AllowedOrigins, Cors, OriginPattern},
    limits::SpoolSettings,
    listen::Protocols,
    management::Management,
    rate_limits::{ADDRESS_RULE, APPLICATION_RULE, PathLimit, RateLimits},
    sign::{SignConfig, Unsigned},
    version::{
        AccountCheck, AccountRules, BackendIndex, BackendName, Balance, Bodies, Change,
        ChangedPath, HeaderChange, HealthChecks, ParamEffect, Paths, RequestChange, RequestRules,
        StickyBy, may_change,
    },
};

use std::{path::Path, time::Duration};

use ipnet::IpNet;
use signpost_kit::{
    clock::{Clock, SystemClock},
    config::{
        self as engine, ConfigError, Invalid, Loaded, Read, Section,
        keys::{Key, keys},
        origin::Origin,
        shared_keys::{self, Log, Outgoing, TracingSettings},
    },
    read_all,
    server::shutdown::ShutdownSettings,
};
use signpost_protocol::header::HeaderNames;
use signpost_release::RELEASE;
use signpost_store::StoreSettings;

use self::{readers::networks, version::GatewayRules};

/// Limit of `metrics.applications`: each has up to six samples in every scrape.
const MAX_LISTED: usize = 1000;
/// Default of `metrics.applications`: what a dashboard can show.
const LISTED_APPLICATIONS: usize = 20;

/// Stands for the key of a client, which is not in a configuration.
const NO_KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7";

/// The examples, which explain every key.
const EXAMPLES: [&str; 2] = [
    include_str!("../../../conf/gateway.toml"),
    include_str!("../../../conf/gateway-multi.toml"),
];

/// The gateway's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The names of the convention headers.
    pub headers: HeaderNames,
    /// Fixed headers of responses without a version.
    pub response_headers: ResponseHeaders,
    /// The listeners: at least one.
    pub listeners: Vec<ListenerSettings>,
    /// Limits of clients' connections.
    pub connections: ConnectionLimits,
    /// The origin under which browsers reach the first listener, through any proxies in front.
    pub public_url: Origin,
    /// The listener of `/healthz`, `/readyz`, `/metrics` and the management API.
    pub management: Management,
    /// The store of applications, and the settings of its Postgres connections.
    pub store: StoreSettings,
    /// How long cached applications and credentials are used while the store does not answer.
    pub stale: Duration,
    /// A single application, or many in the store.
    pub applications: Applications,
    /// How requests are signed.
    pub sign: SignConfig,
    /// The versions and their backends.
    pub versions: Versions,
    /// Pages of other origins that may call; `None`: none.
    pub cors: Option<Cors>,
    /// Limits of requests' sizes, and of unsigned requests' rates.
    pub limits: Limits,
    /// Rate limits of applications, client addresses and paths.
    pub rate_limits: RateLimits,
    /// Where large bodies wait.
    pub(crate) spool: SpoolSettings,
    /// Timeouts of connections, requests and backends.
    pub timeouts: Timeouts,
    /// Proxies whose `X-Forwarded-*` headers are trusted.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Worker threads.
    pub threads: usize,
    /// Delays of a graceful shutdown.
    pub shutdown: ShutdownSettings,
    /// Applications with counts of their own at `/metrics`: the busiest.
    pub(crate) counted_applications: usize,
    /// Level, filter and format of the log.
    pub log: Log,
    /// Sampled requests, and where their spans go.
    pub tracing: TracingSettings,
    /// Warnings about files with secrets that other users may read.
    secret_warnings: Vec<String>,
}

impl Config {
    /// Whether requests name their application.
    #[must_use]
    pub const fn has_many_applications(&self) -> bool {
        matches!(self.applications, Applications::Multi(_))
    }

    /// Whether requests need the store, apart from its applications: for accounts, or for the replay memory of all
    /// gateways.
    #[must_use]
    pub fn requests_need_store(&self) -> bool {
        self.versions.check_accounts() || self.sign.replay_outage().is_some()
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not TOML, or has unknown keys or invalid values. The error lists all of them.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_settings(path).map(|loaded| loaded.config)
    }

    /// Reads the file at `path`, and lists its settings.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn load_settings(path: &Path) -> Result<Loaded<Self>, ConfigError> {
        engine::load(path, Self::read)
    }

    /// What a client that has no configuration takes for its gateway's: the defaults.
    ///
    /// # Errors
    ///
    /// None; the defaults are valid.
    pub fn of_client() -> Result<Self, ConfigError> {
        let text = format!(
            "prefix = 'Acme'\n[application]\nkey = '{NO_KEY}'\n[versions.v1]\nbackend = '127.0.0.1:7001'\n"
        );
        let name = Path::new("the defaults");
        engine::parse(name, &text, Self::read).map(|loaded| loaded.config)
    }

    /// Describes all keys.
    pub fn keys(needs_restart: impl Fn(&str) -> bool) -> Vec<Key> {
        keys(Self::read, &EXAMPLES, needs_restart)
    }

    fn read(root: &mut Section<'_>) -> Read<Self> {
        let (headers, response_headers) =
            match shared_keys::headers_and(root, ResponseHeaders::read) {
                Ok((names, response)) => (Ok(names), Ok(response)),
                Err(Invalid) => (Err(Invalid), Err(Invalid)),
            };
        let listeners = ListenerSettings::read_all(root);
        let own: Vec<_> = listeners
            .iter()
            .flatten()
            .map(|listener| listener.address)
            .collect();
        let public_url = public_url(root, listeners.as_deref());
        let has_store = root.has("applications");
        let management = root.section("management", |section| {
            Management::read(section, &own, has_store)
        });
        let addresses = management
            .iter()
            .map(|management| management.settings.listen);
        // A backend at one of these would be this gateway itself.
        let own: Vec<_> = own.into_iter().chain(addresses).collect();
        let connections = root.section("connections", ConnectionLimits::read);
        let store = shared_keys::store(root).map(|mut store| {
            store.program = format!("signpost {}", RELEASE);
            store
        });
        let sign = root.section("sign", SignConfig::read);
        let outgoing = root.section("outgoing", Outgoing::read);
        // Tables below depend on those above. What depends on an invalid table is read with defaults, so that one run
        // reports all problems.
        let allows_weak_keys = sign.as_ref().is_ok_and(|sign| sign.allows_weak_keys);
        let names = (headers.as_ref().ok(), response_headers.as_ref().ok());
        let rules = GatewayRules::new(&own, sign.as_ref().ok(), names, has_store);
        let versions = Versions::read(root, rules);
        let applications = Applications::read(root, store.as_ref().ok(), allows_weak_keys);
        let largest_body = versions.as_ref().map_or(0, Versions::largest_body);
        read_all!(Self {
            headers,
            response_headers,
            listeners,
            connections,
            public_url,
            management,
            store,
            stale: shared_keys::stale(root),
            applications,
            sign,
            versions,
            cors: root.section("cors", Cors::read),
            limits: root.section("limits", Limits::read),
            rate_limits: root.section("rate_limits", RateLimits::read),
            spool: root.section("spool", |section| SpoolSettings::read(
                section,
                largest_body
            )),
            timeouts: root.section("timeouts", Timeouts::read),
            trusted_proxies: networks(root, "trusted_proxies"),
            threads: shared_keys::threads(root),
            shutdown: root.section("shutdown", shared_keys::shutdown),
            counted_applications: root.section("metrics", |section| {
                section.number("applications", 0..=MAX_LISTED, LISTED_APPLICATIONS)
            }),
            log: root.section("log", Log::read),
            tracing: root.section("tracing", |section| TracingSettings::read(
                section, outgoing
            )),
            secret_warnings: Ok(root.secret_warnings()),
        })
    }

    /// Warnings about risky or useless settings. They are logged, and `signpost check` prints them.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let now = SystemClock.now();
        let is_single = matches!(self.applications, Applications::Single(_));
        let mut warnings = self.sign.warnings();
        warnings.extend(self.snapshot_warning());
        warnings.extend(self.store.address.weakness().map(str::to_owned));
        warnings.extend(self.secret_warnings_of_backends());
        warnings.extend(self.versions.unsigned_warning(&self.sign));
        warnings.extend(self.grace_warning());
        warnings.extend(self.spool_warning());
        warnings.extend_from_slice(&self.versions.warnings);
        warnings.extend(self.versions.life_cycle_warnings(now));
        if is_single {
            warnings.extend(self.single_application_warnings());
        }
        warnings.extend(self.rate_limits.warnings(!is_single));
        warnings.extend(self.listener_warnings());
        let tls = self
            .listeners
            .iter()
            .filter_map(|listener| listener.tls.as_ref());
        let tls = tls.chain(&self.management.tls);
        warnings.extend(tls.flat_map(|tls| tls.loaded().warnings(now)));
        warnings.extend(self.tracing.warnings());
        warnings.extend_from_slice(&self.secret_warnings);
        warnings
    }

    /// A warning if a snapshot is configured that is never written.
    fn snapshot_warning(&self) -> Option<String> {
        let text = "applications.snapshot is for a start without a Postgres; with SQLite it is not written";
        let is_useless = match &self.applications {
            Applications::Multi(multi) => {
                multi.snapshot.is_some() && self.store.address.file().is_some()
            }
            Applications::Single(_) => false,
        };
        is_useless.then(|| text.to_owned())
    }

    /// Warnings about backends on other machines: without a secret anyone there can pose as the gateway, without TLS anyone on
    /// the way can read the secret.
    fn secret_warnings_of_backends(&self) -> impl Iterator<Item = String> {
        let remote = |is_affected: fn(&Backend) -> bool| {
            let backends = self.versions.backends();
            let affected =
                backends.filter(|backend| backend.upstream.is_remote() && is_affected(backend));
            let names: Vec<_> = affected.map(|backend| backend.name.to_string()).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        let without = remote(|backend| backend.secret.is_none()).map(|names| {
            format!(
                "gateway_secret is not set for {names}, on another machine: such a backend must refuse to start without it"
            )
        });
        let in_clear = remote(|backend| backend.secret.is_some() && !backend.upstream.has_tls()).map(|names| {
            format!(
                "gateway_secret crosses the network in clear text to {names}: use https, or a network that only the \
                 gateway and its backends can reach"
            )
        });
        without.into_iter().chain(in_clear)
    }

    /// Warnings about keys that share out requests by application, although there is only one.
    fn single_application_warnings(&self) -> impl Iterator<Item = String> {
        let mut backends = self.versions.backends();
        let balances = backends.any(|backend| backend.upstream.balances_by_app());
        let balances = balances.then(|| {
            "balance = \"hash-app\" with a single application sends all requests to one address"
                .to_owned()
        });
        let split = self
            .versions
            .iter()
            .filter(|version| version.splits_by_app());
        let split = split.map(|version| {
            format!(
                "versions.{}.sticky_by = \"app\" with a single application sends all requests to the same canary, or \
                 to none",
                version.name()
            )
        });
        balances.into_iter().chain(split)
    }

    /// Warnings about what strangers can do at the listeners.
    fn listener_warnings(&self) -> impl Iterator<Item = String> {
        // With an https public_url, something in front of the gateway ends TLS: then only its machine should get here.
        let is_behind_proxy = self.public_url.is_https() && !self.trusted_proxies.is_empty();
        let mut listeners = self.listeners.iter();
        let open = listeners.find(|listener| listener.is_open() && !is_behind_proxy).map(|open| {
            format!(
                "listen: {} has no tls: credentials and signatures can be read in transit; set tls, or terminate TLS in \
                 front of the gateway and set public_url and trusted_proxies",
                open.address
            )
        });
        let public_url = self.public_url.to_url();
        let shared = self.management.shared_host(&public_url, &self.listeners).map(|host| {
            format!(
                "management.console and the clients' listeners share the host {host}: browsers send cookies to every port of a \
                 host, and scripts of any page there can set them; open the console by a name or an address of its own"
            )
        });
        let is_reachable = |listener: &ListenerSettings| !listener.address.ip().is_loopback();
        let is_flooded = self.limits.unsigned.is_none() && self.listeners.iter().any(is_reachable);
        let unlimited = is_flooded.then(|| {
            "limits.unsigned.per_second is 0: strangers can send any number of unsigned requests to callback_paths and \
             browser_paths"
                .to_owned()
        });
        [open, shared, unlimited].into_iter().flatten()
    }

    /// A warning if a stop cuts off requests that still have time for their backend.
    fn grace_warning(&self) -> Option<String> {
        let (shutdown, response) = (&self.shutdown, self.timeouts.response);
        let is_shorter = shutdown.wait_timeout() < response;
        is_shorter.then(|| {
            let (grace, response) = (shutdown.grace.as_secs(), response.as_secs());
            format!(
                "shutdown.grace_seconds = {grace} is less than 2 s above timeouts.response_seconds = {response}: a stop cuts \
                 off requests that could still be answered, with 504 gateway_stopping"
            )
        })
    }
}

impl Config {
    /// A warning if a version or a route takes a body that no network's share of the spool has room for.
    fn spool_warning(&self) -> Option<String> {
        let (largest, share) = (self.versions.largest_body(), self.spool.share());
        (largest > share).then(|| {
            format!(
                "max_body = {largest} is more than a quarter of spool.bytes, {share}: a client network has no more, so a \
                 body of that size is 503 spool_full"
            )
        })
    }
}

/// The origin under which browsers reach the gateway. Default: the address of the first listener, with its scheme.
fn public_url(
    root: &mut Section<'_>,
    listeners: Result<&[ListenerSettings], &Invalid>,
) -> Read<Origin> {
    const KEY: &str = "public_url";
    let allowed =
        "an http or https address without a path, for example \"https://api.example.com\"";
    match root.optional(KEY, allowed)? {
        Some(origin) => Ok(origin),
        None => {
            root.set(KEY, "the address of listen");
            // Without a report: the listeners have theirs already.
            let first = listeners.ok().and_then(<[_]>::first).ok_or(Invalid)?;
            let scheme = if first.tls.is_some() { "https" } else { "http" };
            let origin = format!("{scheme}://{}", first.address).parse();
            origin.map_err(|_| Invalid)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
