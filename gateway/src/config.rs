//! The gateway's configuration: typed, and valid by construction.
//!
//! [`Config::load`] reports all problems at once: file, line, key, found value, allowed values.
//! `conf/gateway.toml` explains the keys and their defaults; a test loads that file.

mod applications;
mod connections;
mod cors;
mod limits;
mod listen;
mod rate_limits;
mod sign;
mod version;

pub(crate) use self::{
    applications::MultiApplications,
    connections::ConnectionLimits,
    cors::{AllowedOrigins, Cors, OriginPattern},
    limits::{Limits, Timeouts},
    listen::{ListenerSettings, Protocols},
    rate_limits::{ADDRESS_RULE, APPLICATION_RULE, PathLimit, RateLimits},
    sign::{AlwaysSigned, SignConfig, weaknesses},
    version::{
        AccountCheck, AfterSunset, Backend, BackendAddress, BackendName, Balance, Balancing,
        HealthChecks, HostPort, LifeCycle, Part, ServedVersion, Stage, StickyBy, UnknownVersion,
        Upstream, rfc3339,
    },
};
pub use self::{
    applications::{Applications, MasterKey},
    rate_limits::OwnRate,
    version::Versions,
};

use std::{net::IpAddr, path::Path, sync::Arc};

use ipnet::IpNet;
use signpost_kit::{
    clock::{Clock, SystemClock},
    config::{
        self as engine, ConfigError, Invalid, Loaded, Read, Section,
        origin::Origin,
        shared_keys::{self, Log, TracingSettings},
    },
    secret::Secret,
    server::{management::ManagementSettings, shutdown::ShutdownSettings},
};
use signpost_protocol::header::HeaderNames;
use signpost_store::StoreSettings;

/// Default of `management.listen`. CONTRACT 10.
const DEFAULT_MANAGEMENT: &str = "127.0.0.1:8081";

/// Limit of `metrics.applications`: each has up to six samples in every scrape.
const MAX_LISTED: usize = 1000;
/// Default of `metrics.applications`: what a dashboard can show.
const LISTED_APPLICATIONS: usize = 20;

/// The gateway's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The names of the convention headers.
    pub(crate) headers: HeaderNames,
    /// The listeners: at least one.
    pub(crate) listeners: Vec<ListenerSettings>,
    /// Limits of clients' connections.
    pub(crate) connections: ConnectionLimits,
    /// The origin under which browsers reach the first listener, through any proxies in front.
    pub(crate) public_url: Origin,
    /// The listener of `/healthz`, `/readyz` and `/metrics`.
    pub(crate) management: ManagementSettings,
    /// The store of applications, and the settings of its Postgres connections.
    pub(crate) store: StoreSettings,
    /// A single application, or many in the store.
    pub applications: Applications,
    /// How requests are signed.
    pub sign: SignConfig,
    /// The versions and their backends.
    pub versions: Versions,
    /// Pages of other origins that may call; `None`: none.
    pub(crate) cors: Option<Cors>,
    /// Limits of requests' sizes, and of unsigned requests' rates.
    pub(crate) limits: Limits,
    /// Rate limits of applications, client addresses and paths.
    pub(crate) rate_limits: RateLimits,
    /// Timeouts of connections, requests and backends.
    pub(crate) timeouts: Timeouts,
    /// The secret that proves to backends that a request comes from the gateway.
    pub(crate) gateway_secret: Option<Secret>,
    /// Proxies whose `X-Forwarded-*` headers are trusted.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Worker threads. Default: one per processor.
    pub(crate) threads: usize,
    /// Delays of a graceful shutdown.
    pub(crate) shutdown: ShutdownSettings,
    /// Applications with counts of their own at `/metrics`: the busiest. 0 to 1000, default 20.
    pub(crate) counted_applications: usize,
    /// Level, filter and format of the log.
    pub(crate) log: Log,
    /// Sampled requests, and where their spans go.
    pub(crate) tracing: TracingSettings,
    /// Warnings about files with secrets that other users may read.
    secret_warnings: Vec<String>,
}

impl Config {
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
    pub(crate) fn load_settings(path: &Path) -> Result<Loaded<Self>, ConfigError> {
        engine::load(path, Self::read)
    }

    fn read(root: &mut Section<'_>) -> Read<Self> {
        let headers = shared_keys::headers(root);
        let listeners = ListenerSettings::read_all(root);
        let own: Vec<_> = listeners.iter().flatten().map(|one| one.address).collect();
        let public_url = public_url(root, listeners.as_deref());
        let management = root.section("management", |section| {
            shared_keys::management(section, DEFAULT_MANAGEMENT, &own)
        });
        let addresses = management.iter().map(|one| one.listen);
        let own: Vec<_> = own.into_iter().chain(addresses).collect();
        let connections = root.section("connections", ConnectionLimits::read);
        let store = shared_keys::store(root);
        let sign = root.section("sign", SignConfig::read);
        let allows_weak_keys = sign.as_ref().is_ok_and(|sign| sign.allows_weak_keys);
        let applications = Applications::read(root, store.as_ref().ok(), allows_weak_keys);
        let versions = Versions::read(root, &own);
        let cors = root.section("cors", Cors::read);
        let limits = root.section("limits", Limits::read);
        let rate_limits = root.section("rate_limits", RateLimits::read);
        let timeouts = root.section("timeouts", Timeouts::read);
        let gateway_secret = shared_keys::gateway_secret(root);
        let networks = "addresses or networks, for example \"10.0.0.0/8\"";
        let trusted_proxies = root.list("trusted_proxies", &[], networks, network);
        let threads = shared_keys::threads(root);
        let shutdown = root.section("shutdown", shared_keys::shutdown);
        let counted_applications = root.section("metrics", |section| {
            section.number("applications", 0..=MAX_LISTED, LISTED_APPLICATIONS)
        });
        let log = root.section("log", Log::read);
        let tracing = root.section("tracing", TracingSettings::read);
        Ok(Self {
            headers: headers?,
            listeners: listeners?,
            connections: connections?,
            public_url: public_url?,
            management: management?,
            store: store?,
            applications: applications?,
            sign: sign?,
            versions: versions?,
            cors: cors?,
            limits: limits?,
            rate_limits: rate_limits?,
            timeouts: timeouts?,
            gateway_secret: gateway_secret?,
            trusted_proxies: trusted_proxies?,
            threads: threads?,
            shutdown: shutdown?,
            counted_applications: counted_applications?,
            log: log?,
            tracing: tracing?,
            secret_warnings: root.secret_warnings(),
        })
    }

    /// Warnings about risky or useless settings. They are logged, and `signpost check` prints them.
    #[must_use]
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.sign.warnings();
        let is_remote = |backend: &Arc<Backend>| backend.upstream.is_remote();
        warnings.extend(self.store.address.weakness().map(str::to_owned));
        if self.gateway_secret.is_none() && self.versions.backends().any(is_remote) {
            warnings.push(
                "gateway_secret is not set, but a backend is on another machine: such a backend must \
                 refuse to start without it"
                    .to_owned(),
            );
        }
        let in_clear_text =
            |backend: &Arc<Backend>| is_remote(backend) && !backend.upstream.has_tls();
        if self.gateway_secret.is_some() && self.versions.backends().any(in_clear_text) {
            warnings.push(
                "gateway_secret crosses the network in clear text to a backend without https: use https, or a network that \
                 only the gateway and its backends can reach"
                    .to_owned(),
            );
        }
        warnings.extend(self.versions.warnings().map(str::to_owned));
        let now = SystemClock.now();
        warnings.extend(self.versions.life_cycle_warnings(now));
        let balances_by_app = |backend: &Arc<Backend>| backend.upstream.balances_by_app();
        if matches!(self.applications, Applications::Single(_))
            && self.versions.backends().any(balances_by_app)
        {
            warnings.push(
                "balance = \"hash-app\" with a single application sends all requests to one address"
                    .to_owned(),
            );
        }
        if matches!(self.applications, Applications::Single(_)) {
            let splits = |version: &&ServedVersion| version.splits_by_app();
            warnings.extend(self.versions.iter().filter(splits).map(|version| {
                let name = version.name();
                format!(
                    "versions.{name}.sticky_by = \"app\" with a single application sends all requests to the same canary, or \
                     to none"
                )
            }));
        }
        let has_store = matches!(self.applications, Applications::Multi(_));
        warnings.extend(self.rate_limits.warnings(has_store));
        warnings.extend(self.listener_warnings());
        warnings.extend(self.tracing.warnings());
        warnings.extend(self.secret_warnings.iter().cloned());
        warnings
    }

    /// Warnings about listeners that strangers can reach.
    fn listener_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let open = self.listeners.iter().find(|one| one.is_open());
        // With an https public_url, something in front of the gateway ends TLS: then only its machine should get here.
        let is_behind_proxy = self.public_url.is_https() && !self.trusted_proxies.is_empty();
        if let Some(listener) = open.filter(|_| !is_behind_proxy) {
            let address = listener.address;
            warnings.push(format!(
                "listen: {address} has no tls: credentials and signatures can be read in transit; set tls, or terminate TLS \
                 in front of the gateway and set public_url and trusted_proxies"
            ));
        }
        let is_reachable = |one: &ListenerSettings| !one.address.ip().is_loopback();
        if self.limits.unsigned.is_none() && self.listeners.iter().any(is_reachable) {
            warnings.push(
                "limits.unsigned.per_second is 0: strangers can send any number of unsigned requests to callback_paths and \
                 browser_paths"
                    .to_owned(),
            );
        }
        let now = SystemClock.now();
        warnings.extend(
            self.listeners
                .iter()
                .flat_map(|one| one.expiry_warnings(now)),
        );
        warnings
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
            let first = listeners.ok().and_then(<[_]>::first).ok_or(Invalid)?;
            let scheme = if first.tls.is_some() { "https" } else { "http" };
            let origin = format!("{scheme}://{}", first.address).parse();
            origin.map_err(|_| Invalid)
        }
    }
}

fn network(text: &str) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| address()).ok()
}

#[cfg(test)]
pub(crate) mod tests;
