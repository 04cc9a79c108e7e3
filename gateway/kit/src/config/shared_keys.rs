//! The keys that all programs share, with the same names, defaults and units. CONTRACT 1 and 9.

mod outgoing;
mod store;
mod tracing;

use std::{fmt, net::SocketAddr, num::NonZero, path::PathBuf};

use http::HeaderValue;
use signpost_protocol::{
    header::{HeaderNames, HeaderOverrides, Prefix},
    sign::check_strength,
};
use tracing_subscriber::EnvFilter;

pub use self::{
    outgoing::Outgoing,
    store::{stale, store},
    tracing::{Collector, TracingSettings},
};
use super::{ADDRESS, Read, Section};
use crate::{
    secret::Secret,
    server::{shutdown::ShutdownSettings, socket::overlap},
};

const PREFIX: &str = "a letter, then up to 31 letters, digits or hyphens";

/// Settings of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The format of the lines.
    pub format: LogFormat,
    /// A filter of `tracing-subscriber`, for example `info` or `warn,signpost=debug`.
    pub filter: String,
    /// Where lines go.
    pub output: LogOutput,
    /// Sampling: one of N successful requests has an access line. 0: no request has one. Up to 1,000,000; default 1:
    /// each request.
    pub access_sample: u32,
}

/// Where log lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogOutput {
    /// To standard output.
    Stdout,
    /// To a file, which is appended to, and reopened on SIGUSR1.
    File(PathBuf),
}

/// Maximum of `log.access_sample`.
const MAX_SAMPLE: u32 = 1_000_000;

const OUTPUT: &str = "\"stdout\", or the path of a file with at least one \"/\", for example \"/var/log/signpost/gateway.log\"";

impl LogOutput {
    /// A path needs a slash: so a misspelt `stdout` is no file.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "stdout" => Some(Self::Stdout),
            path if path.contains('/') && !path.ends_with('/') => Some(Self::File(path.into())),
            _ => None,
        }
    }
}

impl fmt::Display for LogOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => formatter.write_str("standard output"),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Plain text, for people.
    Human,
    /// A JSON object a line, for programs.
    Json,
}

impl Log {
    /// Reads `[log]`.
    ///
    /// # Errors
    ///
    /// A value is invalid.
    pub fn read(section: &mut Section<'_>) -> Read<Self> {
        let formats = [("human", LogFormat::Human), ("json", LogFormat::Json)];
        let filters = "a filter, for example \"info\" or \"warn,login=debug,signpost=debug\"";
        let filter = |filter: &str| {
            let parsed = EnvFilter::try_new(filter);
            parsed.is_ok().then(|| filter.to_owned())
        };
        crate::read_all!(Self {
            format: section.choice("format", &formats, LogFormat::Human),
            filter: section.parsed_by("filter", "info", filters, filter),
            output: section.parsed_by("output", "stdout", OUTPUT, LogOutput::parse),
            access_sample: section.number("access_sample", 0..=MAX_SAMPLE, 1),
        })
    }
}

/// Reads `prefix` and `[headers]`: the names of the convention headers.
///
/// # Errors
///
/// The prefix is missing or invalid, or a name cannot be used.
pub fn headers(root: &mut Section<'_>) -> Read<HeaderNames> {
    headers_and(root, |_, _| Ok(())).map(|(names, ())| names)
}

/// As [`headers`], with further keys of `[headers]`; their reader gets the names, if they are valid.
///
/// # Errors
///
/// As [`headers`], or a further key is invalid.
pub fn headers_and<T>(
    root: &mut Section<'_>,
    further: impl FnOnce(&mut Section<'_>, Option<&HeaderNames>) -> Read<T>,
) -> Read<(HeaderNames, T)> {
    let prefix: Read<Prefix> = root.required("prefix", PREFIX);
    root.section("headers", |section| {
        let names = header_names(section, prefix);
        let further = further(section, names.as_ref().ok());
        Ok((names?, further?))
    })
}

fn header_names(section: &mut Section<'_>, prefix: Read<Prefix>) -> Read<HeaderNames> {
    let mut name = |key| section.optional(key, "a header name, for example \"Acme-X-App\"");
    let overrides = crate::read_all!(HeaderOverrides {
        authorization: name("authorization"),
        app: name("app"),
        language: name("language"),
        version: name("version"),
    });
    let overrides = overrides?;
    HeaderNames::new(&prefix?, &overrides).map_err(|error| {
        section.problem(error.key, "a name that cannot be used", &error.to_string())
    })
}

/// The key of the secret that a gateway and a backend share.
pub const GATEWAY_SECRET: &str = "gateway_secret";

/// Reads a secret that the gateway and a backend share: [`GATEWAY_SECRET`], or `key`.
///
/// # Errors
///
/// Its source has no secret, or the secret is weak or not a valid header value.
pub fn gateway_secret(section: &mut Section<'_>, key: &str) -> Read<Option<Secret>> {
    const ALLOWED: &str = "a random string of at least 128 bits, for example from openssl rand -hex 32: \"env:NAME\", \
                           \"file:PATH\", or the secret itself";
    let secret = section.secret(key)?;
    if let Some(secret) = &secret {
        let text = secret.expose();
        if text.contains(' ') || HeaderValue::from_str(text).is_err() {
            let value = "a string with white space, or characters that are not allowed in a header";
            return Err(section.problem(key, value, ALLOWED));
        }
        // Operators create it themselves, so a weak one need not be accepted.
        if let Err(weak) = check_strength(text) {
            return Err(section.problem(key, &format!("a weak secret: {weak}"), ALLOWED));
        }
    }
    Ok(secret)
}

/// Settings of a management listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementSettings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The names under which it answers.
    pub hosts: Hosts,
}

/// Names under which a management listener answers, besides IP addresses and `localhost`.
///
/// A page that an operator opens can give its own name the listener's address (DNS rebinding), and then read what the
/// listener answers. But the browser still sends the page's name as `Host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(pub Vec<String>);

impl Hosts {
    /// The configured names and `localhost`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).chain(["localhost"])
    }
}

/// Reads `[management]`: the listener of `/healthz`, `/readyz` and `/metrics`, at `default` if the file has
/// no address; `None` without either. `own` are the program's other addresses.
///
/// # Errors
///
/// The address is invalid or one of `own`, or it is not a loopback address, without TLS, and `insecure` is not set; or `hosts`
/// has something else than names.
pub fn management(
    section: &mut Section<'_>,
    default: Option<&str>,
    own: &[SocketAddr],
) -> Read<Option<ManagementSettings>> {
    let (insecure, hosts) = (section.flag("insecure", false), hosts(section));
    let listen = match default {
        Some(default) => Some(section.address(LISTEN, default)?),
        None => section.optional(LISTEN, ADDRESS)?,
    };
    let insecure = insecure?;
    if let Some(listen) = listen {
        // The gateway's has a default, and may use TLS.
        check_management(section, listen, insecure, (own, default.is_some()))?;
    }
    let hosts = hosts?;
    Ok(listen.map(|listen| ManagementSettings { listen, hosts }))
}

const LISTEN: &str = "listen";

fn hosts(section: &mut Section<'_>) -> Read<Hosts> {
    let allowed = "host names without a port, for example \"gateway-a\"";
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let name = |text: &str| {
        let is_name = !text.is_empty() && text.len() <= 253 && text.bytes().all(is_allowed);
        is_name.then(|| text.to_owned())
    };
    section.list("hosts", &[], allowed, name).map(Hosts)
}

fn check_management(
    section: &Section<'_>,
    address: SocketAddr,
    insecure: bool,
    (own, has_tls): (&[SocketAddr], bool),
) -> Read<()> {
    let clashes = |other: &&SocketAddr| **other == address || overlap(address, **other);
    let clash = own.iter().find(clashes);
    let allowed = if clash.is_some() {
        "an address other than listen, at another port if either is for all of a family"
    } else if address.ip().is_loopback() || insecure || section.has("tls") {
        return Ok(());
    } else if has_tls {
        "a loopback address, [management.tls], or insecure = true in [management]"
    } else {
        "a loopback address, or insecure = true in [management]"
    };
    let value = match clash {
        Some(other) if *other != address => format!("{address} beside {other}"),
        _ => address.to_string(),
    };
    Err(section.problem(LISTEN, &value, allowed))
}

/// Reads `threads`: worker threads, by default one per processor.
///
/// # Errors
///
/// The number is invalid.
pub fn threads(root: &mut Section<'_>) -> Read<usize> {
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    Ok(match root.number("threads", 0..=1024, 0)? {
        0 => processors(),
        threads => threads,
    })
}

/// Reads `[shutdown]`: the times of a graceful shutdown.
///
/// # Errors
///
/// A value is invalid.
pub fn shutdown(section: &mut Section<'_>) -> Read<ShutdownSettings> {
    let default = ShutdownSettings::default();
    let (drain_delay, grace) = (default.drain_delay.as_secs(), default.grace.as_secs());
    crate::read_all!(ShutdownSettings {
        drain_delay: section.seconds("drain_delay_seconds", 0..=300, drain_delay),
        grace: section.seconds("grace_seconds", 1..=3600, grace),
    })
}
