//! The configuration: parsed, typed and valid.
//!
//! `Config::load` reports all problems at once: file, line, key, the value found, the values allowed. `conf/v1.toml`
//! explains the keys and their defaults; a test reads that file. Each module reads one group of keys.

mod gateway_secret;
mod limits;
mod logins;
mod provider;

use std::{net::SocketAddr, path::Path, str::FromStr, time::Duration};

use signpost_kit::{
    config::{
        self as engine, ConfigError, Loaded, Read, Section,
        keys::{Key, keys},
        origin::ParseOriginError,
        shared_keys::{self, Log, ManagementSettings, Outgoing, TracingSettings},
    },
    read_all,
    server::shutdown::ShutdownSettings,
};
use signpost_protocol::header::HeaderNames;
use signpost_store::StoreSettings;
use url::Url;

pub use signpost_kit::config::origin::Origin;

pub use self::{
    gateway_secret::Gateway,
    limits::{LoginLimits, Timeouts},
    logins::{Lifetimes, Polling, SameNetwork, SingleApplication},
    provider::{
        ClientAuth, Label, OAuthSettings, PassedOn, Protocol, ProviderConfig, ProviderName,
        Providers,
    },
};
pub use crate::json::FieldPath;

/// Default of `listen`: v1's address in `conf/README.md`.
const LISTEN: &str = "127.0.0.1:7001";
/// Default of `public_url`: the gateway of the demo. `conf/README.md`.
const PUBLIC_URL: &str = "http://127.0.0.1:8080";
/// Allowed values of `public_url`, for messages.
const ORIGIN: &str =
    "an http or https origin without a path, for example \"https://login.example\"";

/// The example that explains every key.
const EXAMPLE: &str = include_str!("../../../conf/v1.toml");

/// The whole configuration of one process.
#[derive(Clone, Debug)]
pub struct Config {
    /// Names of the convention headers.
    pub headers: HeaderNames,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The listener of `/healthz`, `/readyz` and `/metrics` for operators, if there is one.
    pub management: Option<ManagementSettings>,
    /// The gateway's origin as browsers see it.
    pub public_url: PublicUrl,
    /// The address of the database, and its connection settings.
    pub store: StoreSettings,
    /// How long cached data is used while the store does not answer.
    pub stale: Duration,
    /// How requests prove that they come from the gateway.
    pub gateway: Gateway,
    /// Threads that serve requests.
    pub threads: usize,
    /// The application of single-application mode.
    pub application: SingleApplication,
    /// Lifetimes of logins, credentials and events.
    pub lifetimes: Lifetimes,
    /// What a browser may confirm from another network.
    pub same_network: SameNetwork,
    /// Settings of polling logins.
    pub polling: Polling,
    /// Limits on what clients can start.
    pub limits: LoginLimits,
    /// Timeouts of requests and connections.
    pub timeouts: Timeouts,
    /// The providers that users can log in with.
    pub providers: Providers,
    /// Timing of a graceful shutdown.
    pub shutdown: ShutdownSettings,
    /// Settings of the log.
    pub log: Log,
    /// Settings of traces.
    pub tracing: TracingSettings,
    /// The proxy of calls to providers.
    pub outgoing: Outgoing,
    secret_warnings: Vec<String>,
}

impl Config {
    /// Reads the file at `path`; also returns its settings, key by key. `own` reads the keys of versions.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not TOML, or has unknown keys or invalid values; the error lists all of them.
    pub(crate) fn load<T>(
        path: &Path,
        own: impl FnOnce(&mut Section<'_>) -> Read<T>,
    ) -> Result<Loaded<(Self, T)>, ConfigError> {
        engine::load(path, |root| Self::read(root, own))
    }

    /// As [`Self::load`], but from text; `path` appears in messages only.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub(crate) fn parse<T>(
        path: &Path,
        text: &str,
        own: impl FnOnce(&mut Section<'_>) -> Read<T>,
    ) -> Result<Loaded<(Self, T)>, ConfigError> {
        engine::parse(path, text, |root| Self::read(root, own))
    }

    /// Describes all keys; `examples` explain those that `own` reads.
    pub(crate) fn keys<T>(
        own: impl FnOnce(&mut Section<'_>) -> Read<T>,
        examples: &[String],
    ) -> Vec<Key> {
        let needs_restart = |key: &str| Self::needs_restart(key, &[key]);
        let examples = examples.iter().map(String::as_str);
        let examples: Vec<_> = [EXAMPLE].into_iter().chain(examples).collect();
        keys(|root| Self::read(root, own), &examples, needs_restart)
    }

    fn read<T>(
        root: &mut Section<'_>,
        own: impl FnOnce(&mut Section<'_>) -> Read<T>,
    ) -> Read<(Self, T)> {
        let (shared, own) = (Self::read_shared(root), own(root));
        let (mut config, own) = (shared?, own?);
        config.secret_warnings = root.secret_warnings();
        Ok((config, own))
    }

    fn read_shared(root: &mut Section<'_>) -> Read<Self> {
        let headers = shared_keys::headers(root);
        let listen = root.address("listen", LISTEN);
        // Management must listen elsewhere.
        let own: Vec<_> = listen.iter().copied().collect();
        let login = Lifetimes::read(root);
        let outgoing = root.section("outgoing", Outgoing::read);
        read_all!(Self {
            headers,
            listen,
            management: root.section("management", |section| {
                shared_keys::management(section, None, &own)
            }),
            public_url: root.parsed("public_url", PUBLIC_URL, ORIGIN),
            store: shared_keys::store(root),
            stale: shared_keys::stale(root),
            gateway: Gateway::read(root, listen.ok()),
            threads: shared_keys::threads(root),
            application: root.section("application", SingleApplication::read),
            lifetimes: login.map(|(lifetimes, _)| lifetimes),
            same_network: login.map(|(_, same_network)| same_network),
            polling: root.section("polling", Polling::read),
            limits: root.section("limits", LoginLimits::read),
            timeouts: root.section("timeouts", Timeouts::read),
            providers: Providers::read(root),
            shutdown: root.section("shutdown", shared_keys::shutdown),
            log: root.section("log", Log::read),
            tracing: root.section("tracing", |section| {
                TracingSettings::read(section, outgoing.clone())
            }),
            outgoing,
            secret_warnings: Ok(Vec::new()),
        })
    }

    /// Whether a changed key needs a restart; `changed` has all changed keys.
    ///
    /// A secret can only be omitted on a loopback address. So if `listen` changes too, the keys of the secret also wait
    /// for the restart; otherwise an address beyond loopback could lose its secret.
    pub(crate) fn needs_restart(key: &str, changed: &[&str]) -> bool {
        match key {
            "listen" | "threads" | "store" => true,
            "gateway_secret" | "gateway_secret_next" | "without_gateway" => {
                changed.contains(&"listen")
            }
            _ => key.starts_with("postgres.") || key.starts_with("management."),
        }
    }

    /// Returns this configuration with the values of `running` for all keys that need a restart.
    pub(crate) fn with_restart_keys_of(self, running: &Self) -> Self {
        let mut config = self;
        if config.listen != running.listen {
            config.gateway = running.gateway.clone();
        }
        config.listen = running.listen;
        config.management.clone_from(&running.management);
        config.threads = running.threads;
        config.store = running.store.clone();
        config
    }

    /// Returns warnings about insecure settings, for the log at start and for `check`.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let store = self.store.address.weakness().map(str::to_owned);
        let providers = self.providers.all.iter().flat_map(ProviderConfig::warnings);
        let warnings = store.into_iter().chain(providers);
        let warnings = warnings.chain(self.providers.shared_callbacks());
        let warnings = warnings.chain(self.providers.warnings());
        let warnings = warnings.chain(self.tracing.warnings());
        warnings.chain(self.secret_warnings.clone()).collect()
    }
}

/// The gateway's origin as browsers see it. Determines the URLs sent to browsers, and the cookies' attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(Origin);

impl PublicUrl {
    /// Whether the scheme is https, so that cookies can be `Secure`.
    pub(crate) fn is_https(&self) -> bool {
        self.0.is_https()
    }

    /// OAuth's `redirect_uri`, where the provider sends the browser back to. CONTRACT 8.
    pub(crate) fn callback(&self) -> Url {
        let mut url = self.0.to_url();
        url.set_path("/login");
        url
    }

    /// The URL of the page of the polling login of `state`.
    pub(crate) fn page(&self, state: &str) -> Url {
        let mut url = self.callback();
        url.query_pairs_mut().append_pair("state", state);
        url
    }
}

impl FromStr for PublicUrl {
    type Err = ParseOriginError;

    /// Parses an origin. It has no path, since the gateway forwards paths unchanged.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests;
