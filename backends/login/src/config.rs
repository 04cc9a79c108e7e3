//! What the service was told, as it means it: parsed, complete, and impossible to get wrong afterwards.
//!
//! [`raw`] holds the file as written; `TryFrom` turns it into [`Config`], naming every problem at once.
//! One file per concern beside it.

mod application;
mod gateway_secret;
mod lifetimes;
mod limits;
mod log;
mod problems;
mod provider;
mod public_url;
pub mod raw;
mod secret_text;
mod serving;
mod store;

use std::{net::SocketAddr, path::Path};

use gateway_protocol::header::{HeaderNames, HeaderOverrides, Prefix};
use http::HeaderName;
use signpost_store::StoreSettings;

pub use self::{
    application::{Origin, SingleApplication},
    gateway_secret::{Gateway, GatewaySecret},
    lifetimes::Lifetimes,
    limits::{LoginLimits, Polling},
    log::{LogConfig, LogFormat},
    problems::{ConfigProblem, ConfigProblems},
    provider::{ProviderConfig, ProviderKind, ProviderName, Providers},
    public_url::PublicUrl,
    secret_text::SecretText,
    serving::Serving,
};
use self::{
    problems::Problems,
    raw::{RawConfig, RawHeaders},
};

/// Where a version listens unless told otherwise: v1's address of CONTRACT 10.
const LISTEN: &str = "127.0.0.1:7001";
/// How browsers reach the gateway of the demo. CONTRACT 10.
const PUBLIC_URL: &str = "http://127.0.0.1:8080";
/// Enough to use two cores; each thread costs memory while idle.
const WORKER_THREADS: u64 = 2;

/// The whole configuration of one process.
#[derive(Clone, Debug)]
pub struct Config {
    headers: HeaderNames,
    listen: SocketAddr,
    public_url: PublicUrl,
    store: StoreSettings,
    gateway: Gateway,
    worker_threads: usize,
    application: SingleApplication,
    lifetimes: Lifetimes,
    polling: Polling,
    limits: LoginLimits,
    providers: Providers,
    serving: Serving,
    log: LogConfig,
}

impl Config {
    /// Reads and understands the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is no TOML, or every key that is unknown or has a value it cannot have.
    pub fn load(file: &Path) -> Result<Self, ConfigProblems> {
        let text = std::fs::read_to_string(file).map_err(|cause| {
            ConfigProblems::from(ConfigProblem::new(
                "",
                &cause.to_string(),
                "a file that can be read",
            ))
        });
        text.and_then(|text| Self::parse(&text))
            .map_err(|problems| problems.of_file(file))
    }

    /// Understands a file's text.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn parse(text: &str) -> Result<Self, ConfigProblems> {
        let (raw, mut problems) = RawConfig::parse(text)?;
        match Self::try_from(raw) {
            Ok(config) if problems.is_empty() => Ok(config),
            Ok(_) => Err(problems),
            Err(more) => {
                problems.extend(more);
                Err(problems)
            }
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

    /// Where the database is, and how it is spoken to.
    #[must_use]
    pub fn store(&self) -> &StoreSettings {
        &self.store
    }

    /// Who may call.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// How connections are served, and how long a stop takes.
    #[must_use]
    pub fn serving(&self) -> &Serving {
        &self.serving
    }

    /// Threads that serve requests.
    #[must_use]
    pub fn worker_threads(&self) -> usize {
        self.worker_threads
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
    pub fn log(&self) -> LogConfig {
        self.log
    }
}

impl TryFrom<RawConfig> for Config {
    type Error = ConfigProblems;

    fn try_from(raw: RawConfig) -> Result<Self, ConfigProblems> {
        let mut problems = Problems::default();
        let listen = problems.parse(
            "listen",
            raw.listen.as_deref().unwrap_or(LISTEN),
            "an address and a port, \"127.0.0.1:7001\" say",
        );
        let headers = headers(raw.prefix.as_deref(), raw.headers, &mut problems);
        let public_url = problems.parse(
            "public_url",
            raw.public_url.as_deref().unwrap_or(PUBLIC_URL),
            "an http or https origin without a path, \"https://login.example\" say",
        );
        let store = store::read(raw.store.as_deref(), raw.postgres, &mut problems);
        let gateway = Gateway::read(
            raw.gateway_secret,
            raw.without_gateway,
            listen,
            &mut problems,
        );
        let worker_threads =
            problems.within("worker_threads", raw.worker_threads, WORKER_THREADS, 1..=64);
        let application = SingleApplication::read(raw.application, &mut problems);
        let lifetimes = Lifetimes::read(raw.login, &raw.events, &mut problems);
        let polling = Polling::read(raw.polling, &mut problems);
        let serving = Serving::read(
            raw.limits.connections,
            &raw.timeouts,
            &raw.shutdown,
            &mut problems,
        );
        let limits = LoginLimits::read(&raw.limits, &mut problems);
        let providers = Providers::read(
            raw.providers,
            raw.provider_kinds,
            raw.default_provider,
            &mut problems,
        );
        let log = LogConfig::read(raw.log, &mut problems);
        let (
            Some(listen),
            Some(headers),
            Some(public_url),
            Some(store),
            Some(gateway),
            Some(providers),
            Ok(()),
        ) = (
            listen,
            headers,
            public_url,
            store,
            gateway,
            providers,
            problems.is_none(),
        )
        else {
            return Err(problems.into());
        };
        Ok(Self {
            headers,
            listen,
            public_url,
            store,
            gateway,
            worker_threads: usize::try_from(worker_threads).expect("at most 64"),
            application,
            lifetimes,
            polling,
            limits,
            providers,
            serving,
            log,
        })
    }
}

/// The convention headers' names; there is no default prefix, since the gateway has none either.
fn headers(prefix: Option<&str>, raw: RawHeaders, problems: &mut Problems) -> Option<HeaderNames> {
    let overrides = overrides(raw, problems);
    let allowed = "a letter, then up to 31 letters, digits or hyphens: the gateway's prefix";
    let Some(prefix) = prefix else {
        problems.add("prefix", "nothing", allowed);
        return None;
    };
    let prefix: Prefix = problems.parse("prefix", prefix, allowed)?;
    HeaderNames::new(&prefix, &overrides)
        .map_err(|error| {
            let key = format!("headers.{}", error.key());
            problems.add(&key, "a name that cannot be used", &error.to_string());
        })
        .ok()
}

fn overrides(raw: RawHeaders, problems: &mut Problems) -> HeaderOverrides {
    let mut name = |key: &str, given: Option<String>| -> Option<HeaderName> {
        given.and_then(|given| problems.parse(&format!("headers.{key}"), &given, "a header's name"))
    };
    HeaderOverrides {
        authorization: name("authorization", raw.authorization),
        app: name("app", raw.app),
        language: name("language", raw.language),
        version: name("version", raw.version),
    }
}

#[cfg(test)]
mod tests;
