//! A single application from the configuration, or many from the store. CONTRACT 4.

use std::{path::PathBuf, time::Duration};

use signpost_kit::{
    config::{Invalid, Read, Section},
    read_all,
    secret::{Secret, SecretSource},
};
use signpost_protocol::sign::AppKey;
use signpost_store::StoreSettings;

/// Default size of the application cache, in entries of about 1 KiB.
const DEFAULT_CACHE_ENTRIES: u64 = 10_000;

/// What the configuration allows for a master key.
const MASTER_KEY: &str = "64 hex digits in \"env:NAME\" or \"file:PATH\"";

/// The applications that may sign requests.
#[derive(Clone, Debug)]
pub enum Applications {
    /// One key for all clients; the application header is ignored.
    Single(AppKey),
    /// The application header names an application in the store.
    Multi(MultiApplications),
}

/// Settings of multi-application mode.
#[derive(Clone, Debug)]
pub struct MultiApplications {
    /// Encrypts the applications' keys.
    pub master_key: MasterKey,
    /// Also opens the applications' keys, while `signpost master-key rotate` replaces the master key.
    pub previous_master_key: Option<Secret>,
    /// Limit of cached applications; unknown idents have places of their own.
    pub cache_entries: u64,
    /// Where the applications are also written, for a start without a Postgres.
    pub snapshot: Option<PathBuf>,
    /// How long the audit is kept; `None`: for ever.
    pub audit_retention: Option<Duration>,
}

/// The key that encrypts the applications' keys.
#[derive(Clone, Debug)]
pub enum MasterKey {
    /// Given by the operator in an environment variable.
    Given(Secret),
    /// A file; created if it is missing.
    File(PathBuf),
    /// A file that each of several gateways has a copy of. Only the operator creates it: each gateway would create a
    /// different key.
    SharedFile(PathBuf),
}

impl Applications {
    /// How long the audit is kept; `None`: for ever.
    pub const fn audit_retention(&self) -> Option<Duration> {
        match self {
            Self::Single(_) => None,
            Self::Multi(multi) => multi.audit_retention,
        }
    }

    /// Reads `[application]` or `[applications]`. `store` is `None` if that setting is invalid.
    pub(super) fn read(
        root: &mut Section<'_>,
        store: Option<&StoreSettings>,
        allows_weak_keys: bool,
    ) -> Read<Self> {
        let (is_single, is_multi) = (root.has("application"), root.has("applications"));
        let single = root.optional_section("application", |section| {
            single_key(section, allows_weak_keys)
        });
        let multi = root.optional_section("applications", |section| {
            read_all!(MultiApplications {
                cache_entries: section.number(
                    "cache_entries",
                    1..=10_000_000,
                    DEFAULT_CACHE_ENTRIES
                ),
                snapshot: section.path("snapshot"),
                audit_retention: section.number("audit_days", 0..=36_500, 0).map(days),
                master_key: MasterKey::read(section, store),
                previous_master_key: previous_master_key(section),
            })
        });
        let mode = match (is_single, is_multi) {
            (true, false) => Ok("one, from [application]"),
            (false, true) => Ok("many, from the store"),
            (true, true) => Err("both [application] and [applications]"),
            (false, false) => Err("neither [application] nor [applications]"),
        };
        let allowed = "either [application] with a key (one application) or [applications] (many, in the store)";
        let mode = mode.map_err(|tables| root.problem("application", tables, allowed))?;
        root.set("applications", mode);
        match single? {
            Some(key) => Ok(Self::Single(key)),
            None => multi?.map(Self::Multi).ok_or(Invalid),
        }
    }
}

/// `None`: for ever.
fn days(days: u64) -> Option<Duration> {
    (days > 0).then(|| Duration::from_secs(days * 24 * 60 * 60))
}

fn single_key(section: &mut Section<'_>, allows_weak_keys: bool) -> Read<AppKey> {
    let secret = section.required_secret("key")?;
    let problem = |fault: &str, allowed| section.problem("key", fault, allowed);
    // No report quotes the key: reports go to the log and to terminals.
    let key = secret.expose().parse::<AppKey>();
    let key =
        key.map_err(|_| problem("white space inside the key", "a key without white space"))?;
    match key.check_strength() {
        Err(weak) if !allows_weak_keys => {
            let allowed = "a longer key, or allow_weak_key = true in [sign]";
            Err(problem(&format!("a weak key: {weak}"), allowed))
        }
        _ => Ok(key),
    }
}

/// Reads the master key that no longer seals. Unlike [`MasterKey`], it is never created.
fn previous_master_key(section: &mut Section<'_>) -> Read<Option<Secret>> {
    const KEY: &str = "previous_master_key";
    let Some(source) = section.secret_source(KEY, MASTER_KEY)? else {
        return Ok(None);
    };
    if let SecretSource::Literal(_) = source {
        return Err(section.problem(KEY, "the key itself", MASTER_KEY));
    }
    let secret = section.fetch(KEY, source, MASTER_KEY)?;
    let digits = secret.expose();
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(section.problem(KEY, "a text of another form", MASTER_KEY));
    }
    Ok(Some(secret))
}

impl MasterKey {
    fn read(section: &mut Section<'_>, store: Option<&StoreSettings>) -> Read<Self> {
        const KEY: &str = "master_key";
        const ALLOWED: &str = MASTER_KEY;
        let Some(source) = section.secret_source(KEY, ALLOWED)? else {
            return Self::default_for(section, store.ok_or(Invalid)?);
        };
        match source {
            SecretSource::File(path) => {
                section.set(KEY, format!("\"file:{}\"", path.display()));
                section.note_secret(KEY, Some(&path));
                Ok(match store {
                    Some(store) if store.address.file().is_none() => Self::SharedFile(path),
                    _ => Self::File(path),
                })
            }
            // The file of the configuration gets into repositories and back-ups, and this key opens the keys of all
            // applications.
            SecretSource::Literal(_) => Err(section.problem(KEY, "the key itself", ALLOWED)),
            source @ SecretSource::Env(_) => section.fetch(KEY, source, ALLOWED).map(Self::Given),
        }
    }

    /// The default: a file beside the SQLite database. A Postgres has none: all gateways there share one key.
    fn default_for(section: &Section<'_>, store: &StoreSettings) -> Read<Self> {
        let allowed = "\"env:NAME\" or \"file:PATH\", the same key for every gateway on this store";
        let file = store.address.file();
        let file = file.ok_or_else(|| section.missing("master_key", allowed))?;
        let beside = file.with_extension("key");
        section.note_secret("master_key", Some(&beside));
        Ok(Self::File(beside))
    }
}
