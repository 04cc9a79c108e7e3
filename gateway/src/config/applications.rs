//! One application from the configuration, or many from the store. CONTRACT 4.

use std::path::PathBuf;

use gateway_protocol::sign::AppKey;

use super::{
    secret::{Secret, SecretSource},
    table::Section,
};

/// Records that are remembered by default: about 1 KiB each.
const CACHE_ENTRIES: usize = 10_000;

/// Who may sign requests.
#[derive(Debug)]
pub enum Applications {
    /// One key for everybody; the application header is ignored.
    Single(AppKey),
    /// The application header names a record of the store.
    Multi(MultiApplications),
}

/// How records of the store are read.
#[derive(Debug)]
pub struct MultiApplications {
    /// What keys are encrypted under.
    pub master_key: MasterKey,
    /// Most records remembered, unknown idents among them.
    pub cache_entries: u64,
}

/// What keys are encrypted under.
#[derive(Debug)]
pub enum MasterKey {
    /// Given by the operator.
    Given(Secret),
    /// A file of our own making beside the database.
    Beside,
    /// A file that the operator names; made where it is missing.
    File(PathBuf),
}

impl Applications {
    pub(super) fn from_root(root: &mut Section<'_>, allows_weak_keys: bool) -> Option<Self> {
        let single = root.optional_section("application");
        let multi = root.optional_section("applications");
        match (single, multi) {
            (Some(mut section), None) => {
                single_key(&mut section, allows_weak_keys).map(Self::Single)
            }
            (None, Some(section)) => MultiApplications::from_section(section).map(Self::Multi),
            (single, multi) => {
                let found = if single.is_some() { "both" } else { "neither" };
                // What is inside of them is another matter.
                drop((single, multi));
                root.problem(
                    "application",
                    &format!("{found} [application] {} [applications]", if found == "both" { "and" } else { "nor" }),
                    "[application] with a key, for one application, or [applications], for those in the store",
                );
                None
            }
        }
    }
}

fn single_key(section: &mut Section<'_>, allows_weak_keys: bool) -> Option<AppKey> {
    let Some(secret) = section.secret("key")? else {
        section.problem(
            "key",
            "nothing",
            "\"env:NAME\", \"file:PATH\", or the key itself",
        );
        return None;
    };
    let key: AppKey = match secret.expose().parse() {
        Ok(key) => key,
        Err(_) => {
            section.problem(
                "key",
                "white space inside the key",
                "a text without white space",
            );
            return None;
        }
    };
    if let Err(weak) = key.check_strength()
        && !allows_weak_keys
    {
        section.problem(
            "key",
            &format!("a weak key: {weak}"),
            "a longer key, or allow_weak_key = true in [sign]",
        );
        return None;
    }
    Some(key)
}

impl MultiApplications {
    fn from_section(mut section: Section<'_>) -> Option<Self> {
        let cache_entries = section.number("cache_entries", 1..=10_000_000, CACHE_ENTRIES);
        let setting: Option<String> = section.optional("master_key");
        let master_key = match setting.as_deref().map(SecretSource::from) {
            None => MasterKey::Beside,
            Some(SecretSource::File(path)) => MasterKey::File(path),
            Some(SecretSource::Literal(_)) => {
                section.problem(
                    "master_key",
                    "a text of its own",
                    "\"env:NAME\" or \"file:PATH\"",
                );
                return None;
            }
            Some(source) => match source.read() {
                Ok(secret) => MasterKey::Given(secret),
                Err(error) => {
                    section.problem(
                        "master_key",
                        &error.to_string(),
                        "64 hex digits in \"env:NAME\" or \"file:PATH\"",
                    );
                    return None;
                }
            },
        };
        Some(Self {
            master_key,
            cache_entries: cache_entries? as u64,
        })
    }
}
