//! The keys that all programs share, with the same names, defaults and units. CONTRACT 1, 9 and 10.

mod store;

use std::num::NonZero;

use gateway_protocol::{
    header::{HeaderNames, HeaderOverrides, Prefix},
    sign::KeyStrength,
};
use http::HeaderValue;
use tracing_subscriber::EnvFilter;

pub use self::store::store;
use super::{Read, Section};
use crate::{
    secret::Secret,
    shutdown::{self, ShutdownSettings},
};

const PREFIX: &str = "a letter, then up to 31 letters, digits or hyphens";

/// Settings of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The format of the lines.
    pub format: LogFormat,
    /// A filter of `tracing-subscriber`, for example `info` or `warn,gateway=debug`.
    pub filter: String,
    /// Whether each request is logged.
    pub access: bool,
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
        section.renamed("level", "filter");
        let formats = [("human", LogFormat::Human), ("json", LogFormat::Json)];
        let format = section.choice("format", &formats, LogFormat::Human);
        let filter = section.parsed_by(
            "filter",
            "info",
            "a filter, for example \"info\" or \"warn,login=debug,gateway=debug\"",
            |filter| {
                let parsed = EnvFilter::try_new(filter);
                parsed.is_ok().then(|| filter.to_owned())
            },
        );
        let access = section.flag("access", true);
        Ok(Self {
            format: format?,
            filter: filter?,
            access: access?,
        })
    }
}

/// Reads `prefix` and `[headers]`: the names of the convention headers.
///
/// # Errors
///
/// The prefix is missing or invalid, or a name cannot be used.
pub fn headers(root: &mut Section<'_>) -> Read<HeaderNames> {
    let prefix: Read<Prefix> = root.required("prefix", PREFIX);
    root.section("headers", |section| {
        let mut name = |key| section.optional(key, "a header name, for example \"Acme-X-App\"");
        let (authorization, app) = (name("authorization"), name("app"));
        let (language, version) = (name("language"), name("version"));
        let overrides = HeaderOverrides {
            authorization: authorization?,
            app: app?,
            language: language?,
            version: version?,
        };
        HeaderNames::new(&prefix?, &overrides).map_err(|error| {
            section.problem(
                error.key(),
                "a name that cannot be used",
                &error.to_string(),
            )
        })
    })
}

/// Reads `gateway_secret`, which gateway and backends share.
///
/// # Errors
///
/// Its source has no secret, or the secret is weak or not a valid header value.
pub fn gateway_secret(root: &mut Section<'_>) -> Read<Option<Secret>> {
    const KEY: &str = "gateway_secret";
    const ALLOWED: &str = "a random string of at least 128 bits, for example from openssl rand -hex 32: \"env:NAME\", \
                           \"file:PATH\", or the secret itself";
    let secret = root.secret(KEY)?;
    if let Some(secret) = &secret {
        let text = secret.expose();
        if HeaderValue::from_str(text).is_err() {
            let found = "a string with characters that are not allowed in a header";
            return Err(root.problem(KEY, found, ALLOWED));
        }
        // Operators create it themselves, so a weak one need not be accepted.
        if let Err(weak) = KeyStrength::check(text) {
            return Err(root.problem(KEY, &format!("a weak secret: {weak}"), ALLOWED));
        }
    }
    Ok(secret)
}

/// Reads `threads`: worker threads, by default one per processor.
///
/// # Errors
///
/// The number is invalid.
pub fn threads(root: &mut Section<'_>) -> Read<usize> {
    root.renamed("worker_threads", "threads");
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
    let drain_delay = section.seconds(
        "drain_delay_seconds",
        0..=shutdown::MAX_DRAIN_DELAY_SECONDS.into(),
        shutdown::DRAIN_DELAY_SECONDS.into(),
    );
    let grace = section.seconds(
        "grace_seconds",
        1..=shutdown::MAX_GRACE_SECONDS.into(),
        shutdown::GRACE_SECONDS.into(),
    );
    Ok(ShutdownSettings {
        drain_delay: drain_delay?,
        grace: grace?,
    })
}
