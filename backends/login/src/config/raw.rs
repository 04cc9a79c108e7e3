//! The configuration file as written: strings and numbers, every key optional, units in the keys.
//!
//! What the values mean, and their defaults, is [`Config`](super::Config)'s business. Reading goes key by
//! key, so that a wrong type or an unknown key is reported together with all the others. What may hold a secret has
//! no `Debug`.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};
use toml::{Table, Value};

use super::{ConfigProblem, ConfigProblems};

/// The file.
#[derive(Default)]
pub struct RawConfig {
    pub(super) prefix: Option<String>,
    pub(super) listen: Option<String>,
    pub(super) public_url: Option<String>,
    pub(super) store: Option<String>,
    pub(super) gateway_secret: Option<String>,
    pub(super) without_gateway: Option<bool>,
    pub(super) worker_threads: Option<i64>,
    pub(super) default_provider: Option<String>,
    pub(super) headers: RawHeaders,
    pub(super) application: RawApplication,
    pub(super) login: RawLogin,
    pub(super) polling: RawPolling,
    pub(super) limits: RawLimits,
    pub(super) events: RawEvents,
    pub(super) timeouts: RawTimeouts,
    pub(super) shutdown: RawShutdown,
    pub(super) postgres: RawPostgres,
    pub(super) log: RawLog,
    pub(super) providers: BTreeMap<String, RawProvider>,
    pub(super) provider_kinds: BTreeMap<String, RawProviderKind>,
}

/// The keys above all sections.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTop {
    prefix: Option<String>,
    listen: Option<String>,
    public_url: Option<String>,
    store: Option<String>,
    gateway_secret: Option<String>,
    without_gateway: Option<bool>,
    worker_threads: Option<i64>,
    default_provider: Option<String>,
}

/// `[headers]`: names in place of the derived ones.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHeaders {
    pub(super) authorization: Option<String>,
    pub(super) app: Option<String>,
    pub(super) language: Option<String>,
    pub(super) version: Option<String>,
}

/// `[application]`: the one of single-application mode.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawApplication {
    pub(super) name: Option<String>,
    pub(super) return_to: Option<Vec<String>>,
}

/// `[login]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLogin {
    pub(super) login_ttl_seconds: Option<i64>,
    pub(super) claim_ttl_seconds: Option<i64>,
    pub(super) credential_ttl_seconds: Option<i64>,
}

/// `[polling]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPolling {
    pub(super) confirm: Option<bool>,
    pub(super) interval_seconds: Option<i64>,
}

/// `[limits]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimits {
    pub(super) connections: Option<i64>,
    pub(super) starts_per_second: Option<i64>,
    pub(super) starts_burst: Option<i64>,
    pub(super) callbacks_per_second: Option<i64>,
    pub(super) callbacks_burst: Option<i64>,
    pub(super) provider_calls: Option<i64>,
}

/// `[events]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEvents {
    pub(super) retention_days: Option<i64>,
}

/// `[timeouts]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTimeouts {
    pub(super) head_seconds: Option<i64>,
    pub(super) body_seconds: Option<i64>,
    pub(super) idle_seconds: Option<i64>,
}

/// `[shutdown]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawShutdown {
    pub(super) drain_delay_seconds: Option<i64>,
    pub(super) grace_seconds: Option<i64>,
}

/// `[postgres]`: how a Postgres is spoken to.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPostgres {
    pub(super) password: Option<String>,
    pub(super) pool_size: Option<i64>,
    pub(super) connect_seconds: Option<i64>,
    pub(super) wait_seconds: Option<i64>,
    pub(super) statement_seconds: Option<i64>,
    pub(super) root_certificate: Option<String>,
}

/// `[log]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLog {
    pub(super) format: Option<String>,
    pub(super) level: Option<String>,
}

/// `[providers.NAME]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProvider {
    pub(super) kind: Option<String>,
    pub(super) auth_url: Option<String>,
    pub(super) api_url: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(super) redirect_uri: Option<bool>,
    pub(super) pkce: Option<bool>,
    pub(super) issuer: Option<String>,
    pub(super) allow_sandbox: Option<bool>,
}

/// `[provider_kinds.NAME]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProviderKind {
    pub(super) authorize_path: Option<String>,
    pub(super) token_path: Option<String>,
    pub(super) user_path: Option<String>,
    pub(super) id_field: Option<String>,
    pub(super) pkce: Option<bool>,
}

impl RawConfig {
    /// Reads what can be read, and notes what cannot.
    ///
    /// # Errors
    ///
    /// The text is no TOML at all.
    pub fn parse(text: &str) -> Result<(Self, ConfigProblems), ConfigProblems> {
        let mut table: Table = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| text[..span.start].lines().count().max(1));
            // Only the message: the whole error shows the line, which may hold a secret.
            let found = format!("in line {line}: {}", error.message());
            ConfigProblem::new("", &found, "TOML")
        })?;
        let mut problems = ConfigProblems::none();
        let headers = section(&mut table, "headers", &mut problems);
        let application = section(&mut table, "application", &mut problems);
        let login = section(&mut table, "login", &mut problems);
        let polling = section(&mut table, "polling", &mut problems);
        let limits = section(&mut table, "limits", &mut problems);
        let events = section(&mut table, "events", &mut problems);
        let timeouts = section(&mut table, "timeouts", &mut problems);
        let shutdown = section(&mut table, "shutdown", &mut problems);
        let postgres = section(&mut table, "postgres", &mut problems);
        let log = section(&mut table, "log", &mut problems);
        let providers = sections(&mut table, "providers", &mut problems);
        let provider_kinds = sections(&mut table, "provider_kinds", &mut problems);
        let top: RawTop = read("", table, &mut problems);
        let raw = Self {
            prefix: top.prefix,
            listen: top.listen,
            public_url: top.public_url,
            store: top.store,
            gateway_secret: top.gateway_secret,
            without_gateway: top.without_gateway,
            worker_threads: top.worker_threads,
            default_provider: top.default_provider,
            headers,
            application,
            login,
            polling,
            limits,
            events,
            timeouts,
            shutdown,
            postgres,
            log,
            providers,
            provider_kinds,
        };
        Ok((raw, problems))
    }
}

fn section<T: DeserializeOwned + Default>(
    table: &mut Table,
    name: &str,
    problems: &mut ConfigProblems,
) -> T {
    let section = take_table(table, name, name, problems);
    read(&format!("{name}."), section, problems)
}

fn sections<T: DeserializeOwned + Default>(
    table: &mut Table,
    name: &str,
    problems: &mut ConfigProblems,
) -> BTreeMap<String, T> {
    let mut named = take_table(table, name, name, problems);
    let names: Vec<String> = named.keys().cloned().collect();
    names
        .into_iter()
        .map(|one| {
            let path = format!("{name}.{one}");
            let section = take_table(&mut named, &one, &path, problems);
            (one, read(&format!("{path}."), section, problems))
        })
        .collect()
}

fn take_table(table: &mut Table, name: &str, path: &str, problems: &mut ConfigProblems) -> Table {
    match table.remove(name) {
        Some(Value::Table(section)) => section,
        Some(other) => {
            problems.push(ConfigProblem::new(
                path,
                other.type_str(),
                &format!("a section [{path}]"),
            ));
            Table::new()
        }
        None => Table::new(),
    }
}

/// Tries each key alone, so that each problem is known by its key; what is good is then read together.
fn read<T: DeserializeOwned + Default>(
    path: &str,
    table: Table,
    problems: &mut ConfigProblems,
) -> T {
    let mut good = Table::new();
    for (key, value) in table {
        let found = format!("a value of type {}", value.type_str());
        let alone = Table::from_iter([(key.clone(), value.clone())]);
        match alone.try_into::<T>() {
            Ok(_) => {
                good.insert(key, value);
            }
            Err(error) => {
                let message = error.message().trim();
                let (found, allowed) = match message.rsplit_once(", expected ") {
                    Some((unknown, allowed)) if unknown.starts_with("unknown field") => {
                        ("an unknown key".to_owned(), allowed.to_owned())
                    }
                    Some((_, allowed)) => (found, in_words(allowed)),
                    None => (found, "another type".to_owned()),
                };
                problems.push(ConfigProblem::new(
                    &format!("{path}{key}"),
                    &found,
                    &allowed,
                ));
            }
        }
    }
    good.try_into().unwrap_or_default()
}

/// The parser names Rust's types.
fn in_words(allowed: &str) -> String {
    let words = match allowed {
        "i64" => "a whole number",
        "a sequence" => "a list, [\"…\"]",
        "a boolean" => "true or false",
        "a string" => "a text, \"…\"",
        other => other,
    };
    words.to_owned()
}
