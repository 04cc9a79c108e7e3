//! What the configuration file means: typed, and right by construction.
//!
//! [`Config::load`] reports every problem at once: file, line, key, what was found, what is allowed. The keys and their
//! defaults are explained in `conf/v1.toml`; a test reads that file. One file for each concern beside this one.

mod application;
mod gateway_secret;
mod lifetimes;
mod limits;
mod provider;
mod public_url;
mod timeouts;

use std::{net::SocketAddr, path::Path};

use gateway_protocol::header::HeaderNames;
use signpost_kit::{
    config::{
        self as engine, ConfigError, Loaded, Read, Section,
        shared_keys::{self, Log},
    },
    shutdown::ShutdownSettings,
};
use signpost_store::StoreSettings;

pub use self::{
    application::{Origin, SingleApplication},
    gateway_secret::{Gateway, GatewaySecret},
    lifetimes::Lifetimes,
    limits::{LoginLimits, Polling},
    provider::{ProviderConfig, ProviderKind, ProviderName, Providers},
    public_url::PublicUrl,
    timeouts::Timeouts,
};

/// Where a version listens unless told otherwise: v1's address of CONTRACT 10.
const LISTEN: &str = "127.0.0.1:7001";
/// How browsers reach the gateway of the demo. CONTRACT 10.
const PUBLIC_URL: &str = "http://127.0.0.1:8080";
/// What `public_url` can be.
const ORIGIN: &str =
    "an http or https origin without a path, for example \"https://login.example\"";

/// The whole configuration of one process.
#[derive(Clone, Debug)]
pub struct Config {
    headers: HeaderNames,
    listen: SocketAddr,
    public_url: PublicUrl,
    store: StoreSettings,
    gateway: Gateway,
    threads: usize,
    application: SingleApplication,
    lifetimes: Lifetimes,
    polling: Polling,
    limits: LoginLimits,
    timeouts: Timeouts,
    providers: Providers,
    shutdown: ShutdownSettings,
    log: Log,
}

impl Config {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not TOML, or has unknown keys or invalid values: all of them.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_settings(path).map(|loaded| loaded.config)
    }

    /// Reads the file at `path`, and lists what it sets.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn load_settings(path: &Path) -> Result<Loaded<Self>, ConfigError> {
        engine::load(path, Self::read)
    }

    /// Reads a configuration from its text, and lists what it sets; `path` is for messages only.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn parse(path: &Path, text: &str) -> Result<Loaded<Self>, ConfigError> {
        engine::parse(path, text, Self::read)
    }

    fn read(root: &mut Section<'_>) -> Read<Self> {
        let headers = shared_keys::headers(root);
        let listen = root.address("listen", LISTEN);
        let public_url = root.parsed("public_url", PUBLIC_URL, ORIGIN);
        let store = shared_keys::store(root);
        let gateway = Gateway::read(root, listen.ok());
        let threads = shared_keys::threads(root);
        let application = root.section("application", SingleApplication::read);
        let lifetimes = Lifetimes::read(root);
        let polling = root.section("polling", Polling::read);
        let limits = root.section("limits", LoginLimits::read);
        let timeouts = root.section("timeouts", Timeouts::read);
        let providers = Providers::read(root);
        let shutdown = root.section("shutdown", shared_keys::shutdown);
        let log = root.section("log", Log::read);
        Ok(Self {
            headers: headers?,
            listen: listen?,
            public_url: public_url?,
            store: store?,
            gateway: gateway?,
            threads: threads?,
            application: application?,
            lifetimes: lifetimes?,
            polling: polling?,
            limits: limits?,
            timeouts: timeouts?,
            providers: providers?,
            shutdown: shutdown?,
            log: log?,
        })
    }

    /// Whether a changed key needs a restart; `changed` are all that changed.
    ///
    /// Whether requests need the gateway's secret depends on `listen`: if both change, both wait, so that no address beyond
    /// loopback is ever open to everybody.
    #[must_use]
    pub fn needs_restart(key: &str, changed: &[&str]) -> bool {
        match key {
            "listen" | "threads" | "store" => true,
            "gateway_secret" | "without_gateway" => changed.contains(&"listen"),
            _ => key.starts_with("postgres."),
        }
    }

    /// This configuration as far as it can take the place of `running` without a restart.
    #[must_use]
    pub fn in_place_of(self, running: &Self) -> Self {
        let gateway = if self.listen == running.listen {
            self.gateway
        } else {
            running.gateway.clone()
        };
        Self {
            listen: running.listen,
            threads: running.threads,
            store: running.store.clone(),
            gateway,
            ..self
        }
    }

    /// What the configuration allows and a careful operator should know: told at the start, and by `--check`.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let store = self.store.address.weakness().map(str::to_owned);
        store.into_iter().chain(self.providers.warnings()).collect()
    }

    /// The convention headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderNames {
        &self.headers
    }

    /// Where to listen.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// How browsers reach the gateway.
    #[must_use]
    pub fn public_url(&self) -> &PublicUrl {
        &self.public_url
    }

    /// Where the database is, and how it is connected to.
    #[must_use]
    pub fn store(&self) -> &StoreSettings {
        &self.store
    }

    /// Who may call.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// How long requests and connections may take.
    #[must_use]
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// How long an orderly stop takes.
    #[must_use]
    pub fn shutdown(&self) -> ShutdownSettings {
        self.shutdown
    }

    /// Threads that serve requests.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The application of single-application mode.
    #[must_use]
    pub fn application(&self) -> &SingleApplication {
        &self.application
    }

    /// How long logins and credentials last.
    #[must_use]
    pub fn lifetimes(&self) -> &Lifetimes {
        &self.lifetimes
    }

    /// How polling logins go.
    #[must_use]
    pub fn polling(&self) -> &Polling {
        &self.polling
    }

    /// How much callers can start.
    #[must_use]
    pub fn limits(&self) -> LoginLimits {
        self.limits
    }

    /// Who people log in through.
    #[must_use]
    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    /// How the log is written.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }
}

#[cfg(test)]
mod tests;
