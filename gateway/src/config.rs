//! What the configuration file means: typed, and right by construction. Nothing else of the file is kept.
//!
//! [`Config::load`] reports every problem at once: file, key, what was found, what is allowed.
//! The keys and their defaults are explained in `conf/gateway.toml`; a test reads that file.

mod applications;
mod error;
mod limits;
mod secret;
mod sign;
mod store;
mod table;
mod versions;

pub use self::{
    applications::{Applications, MasterKey, MultiApplications},
    error::ConfigError,
    limits::{Limits, Timeouts, UnsignedLimits},
    secret::{Secret, SecretSource},
    sign::{AlwaysSigned, SignConfig, weaknesses},
    versions::{
        Backend, BackendAddress, Balance, Balancing, HealthChecks, Place, UnknownVersion, Upstream,
        Versions,
    },
};

use std::{net::SocketAddr, path::Path, sync::Arc};

use gateway_protocol::{
    header::{HeaderNames, HeaderOverrides, Prefix},
    sign::KeyStrength,
};
use http::HeaderValue;
use ipnet::IpNet;
use signpost_kit::shutdown::{self, ShutdownSettings};
use signpost_store::StoreSettings;
use url::Url;

use self::table::{Document, Section};

/// Where the gateway listens unless told otherwise. CONTRACT 10.
const LISTEN: &str = "127.0.0.1:8080";
/// Where management listens unless told otherwise. CONTRACT 10.
const MANAGEMENT: &str = "127.0.0.1:8081";
/// Our own lines, and of pingora what somebody should act on.
const LOG_FILTER: &str = "info,pingora_core=warn,pingora_load_balancing=error,deadpool=error";

/// Everything a running gateway is told.
#[derive(Debug)]
pub struct Config {
    /// The names of the convention headers.
    pub headers: HeaderNames,
    /// The address that clients call.
    pub listen: SocketAddr,
    /// How browsers reach that address, through whatever stands in front.
    pub public_url: Url,
    /// The address of `/healthz` and `/readyz`.
    pub management: SocketAddr,
    /// Where applications are stored, and how a server there is spoken to.
    pub store: StoreSettings,
    /// One application, or many in the store.
    pub applications: Applications,
    /// How requests are signed.
    pub sign: SignConfig,
    /// The versions and their backends.
    pub versions: Versions,
    /// How large requests may be.
    pub limits: Limits,
    /// How long anything may take.
    pub timeouts: Timeouts,
    /// What backends know the gateway by.
    pub gateway_secret: Option<Secret>,
    /// Whose `X-Forwarded-*` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Worker threads. Default: one for each processor.
    pub threads: usize,
    /// How long an orderly stop takes.
    pub shutdown: ShutdownSettings,
    /// How the log is written.
    pub log: Log,
}

/// How the log is written.
#[derive(Clone, Debug)]
pub struct Log {
    /// For people or for programs.
    pub format: LogFormat,
    /// A filter of `tracing-subscriber`: `info`, or `warn,signpost=debug`.
    pub filter: String,
    /// Whether each request leaves a line.
    pub access: bool,
}

/// For people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// A line to read.
    Human,
    /// A JSON object a line.
    Json,
}

impl Config {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no TOML, or has keys or values that it cannot have: all of them.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let document = Document::read(path)?;
        let config = Self::from_section(&mut document.root());
        document.finish(config)
    }

    fn from_section(root: &mut Section<'_>) -> Option<Self> {
        let prefix: Option<Prefix> = root.needed("prefix");
        let overrides = overrides(root.section("headers"));
        let listen = root.address("listen", LISTEN);
        let public_url = root.public_url("public_url", listen);
        let management = management(root.section("management"), listen);
        let names = names(root, prefix.as_ref(), &overrides);
        let store = store::settings(root);
        let sign = SignConfig::from_section(root.section("sign"));
        let allows_weak_keys = sign.as_ref().is_some_and(|sign| sign.allows_weak_keys);
        let applications = Applications::from_root(root, store.as_ref(), allows_weak_keys);
        let versions = Versions::from_root(root, [listen, management]);
        let limits = Limits::from_section(root.section("limits"));
        let timeouts = Timeouts::from_section(root.section("timeouts"));
        let gateway_secret = gateway_secret(root);
        let trusted_proxies = root.list(
            "trusted_proxies",
            "addresses or networks, \"10.0.0.0/8\" say",
            |text| {
                text.parse()
                    .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from))
                    .ok()
            },
        );
        let threads = root.number("threads", 0..=1024, 0);
        let shutdown = shutdown(root.section("shutdown"));
        let log = log(root.section("log"));
        Some(Self {
            headers: names?,
            listen: listen?,
            public_url: public_url?,
            management: management?,
            store: store?,
            applications: applications?,
            sign: sign?,
            versions: versions?,
            limits: limits?,
            timeouts: timeouts?,
            gateway_secret: gateway_secret?,
            trusted_proxies: trusted_proxies?,
            threads: processors_unless(threads?),
            shutdown: shutdown?,
            log: log?,
        })
    }

    /// What the configuration allows and a careful operator should know: `signpost check` prints it.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.sign.warnings();
        let is_remote = |backend: &Arc<Backend>| backend.upstream.is_remote();
        warnings.extend(self.store.address.weakness().map(str::to_owned));
        if self.gateway_secret.is_none() && self.versions.iter().any(is_remote) {
            warnings.push(
                "gateway_secret is not set, but a backend is on another machine: it must refuse to \
                 start without one"
                    .to_owned(),
            );
        }
        warnings.extend(self.versions.warnings().map(str::to_owned));
        let goes_by_app = |backend: &Arc<Backend>| backend.upstream.goes_by_app();
        if matches!(self.applications, Applications::Single(_))
            && self.versions.iter().any(goes_by_app)
        {
            warnings.push(
                "balance = \"hash-app\", but there is one application: all of its requests go to one address"
                    .to_owned(),
            );
        }
        if self.public_url.scheme() == "http" && !self.listen.ip().is_loopback() {
            warnings.push(
                "public_url is http: credentials and signs can be read on the way; put TLS in front"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// What backends know the gateway by. It is of the operator's own making, so that there is no reason to take a weak one.
fn gateway_secret(root: &mut Section<'_>) -> Option<Option<Secret>> {
    let secret = root.secret("gateway_secret")?;
    let Some(text) = secret.as_ref().map(Secret::expose) else {
        return Some(None);
    };
    let problem = if HeaderValue::from_str(text).is_err() {
        Some("a text with characters that no header can have".to_owned())
    } else {
        KeyStrength::of(text)
            .err()
            .map(|weak| format!("a weak secret: {weak}"))
    };
    if let Some(found) = problem {
        let allowed = "a random text of at least 128 bits, of openssl rand -hex 32 say: \"env:NAME\", \"file:PATH\" \
                       or the secret itself";
        root.problem("gateway_secret", &found, allowed);
        return None;
    }
    Some(secret)
}

fn names(
    root: &mut Section<'_>,
    prefix: Option<&Prefix>,
    overrides: &HeaderOverrides,
) -> Option<HeaderNames> {
    HeaderNames::new(prefix?, overrides)
        .map_err(|error| {
            root.problem(
                &format!("headers.{}", error.key()),
                "a name that cannot be used",
                &error.to_string(),
            );
        })
        .ok()
}

fn overrides(mut headers: Section<'_>) -> HeaderOverrides {
    let mut name = |key| headers.parsed_as(key, "a header's name, \"Acme-X-App\" say");
    HeaderOverrides {
        authorization: name("authorization"),
        app: name("app"),
        language: name("language"),
        version: name("version"),
    }
}

fn management(mut section: Section<'_>, listen: Option<SocketAddr>) -> Option<SocketAddr> {
    let insecure = section.flag("insecure", false)?;
    let address = section.address("listen", MANAGEMENT)?;
    if listen == Some(address) {
        section.problem(
            "listen",
            &address.to_string(),
            "another address than the one that clients call",
        );
        return None;
    }
    if address.ip().is_loopback() || insecure {
        return Some(address);
    }
    section.problem(
        "listen",
        &address.to_string(),
        "a loopback address, or insecure = true beside it",
    );
    None
}

fn shutdown(mut section: Section<'_>) -> Option<ShutdownSettings> {
    let drain_delay = section.seconds(
        "drain_delay_seconds",
        0..=shutdown::MAX_DRAIN_DELAY_SECONDS as usize,
        shutdown::DRAIN_DELAY_SECONDS as usize,
    );
    let grace = section.seconds(
        "grace_seconds",
        1..=shutdown::MAX_GRACE_SECONDS as usize,
        shutdown::GRACE_SECONDS as usize,
    );
    Some(ShutdownSettings {
        drain_delay: drain_delay?,
        grace: grace?,
    })
}

fn log(mut section: Section<'_>) -> Option<Log> {
    let format = section.choice(
        "format",
        &[("human", LogFormat::Human), ("json", LogFormat::Json)],
        LogFormat::Human,
    );
    let filter = section.text(
        "filter",
        LOG_FILTER,
        |filter| tracing_subscriber::EnvFilter::try_new(filter).is_ok(),
        "a filter, \"info\" or \"warn,signpost=debug\" say",
    );
    let access = section.flag("access", true);
    Some(Log {
        format: format?,
        filter: filter?,
        access: access?,
    })
}

fn processors_unless(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, Into::into),
        given => given,
    }
}

#[cfg(test)]
pub(crate) mod tests;
