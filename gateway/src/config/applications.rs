//! One application from the configuration, or many from the store. CONTRACT 4.

use std::path::PathBuf;

use gateway_protocol::sign::AppKey;
use signpost_store::StoreSettings;

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
    /// A file; made where it is missing.
    File(PathBuf),
    /// A file that several gateways share, each with a copy of its own: made by the operator alone, since each of
    /// them would make another.
    SharedFile(PathBuf),
}

impl Applications {
    /// `store` is none where that setting is wrong.
    pub(super) fn from_root(
        root: &mut Section<'_>,
        store: Option<&StoreSettings>,
        allows_weak_keys: bool,
    ) -> Option<Self> {
        let single = root.optional_section("application");
        let multi = root.optional_section("applications");
        match (single, multi) {
            (Some(mut section), None) => {
                single_key(&mut section, allows_weak_keys).map(Self::Single)
            }
            (None, Some(section)) => {
                MultiApplications::from_section(section, store).map(Self::Multi)
            }
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
    fn from_section(mut section: Section<'_>, store: Option<&StoreSettings>) -> Option<Self> {
        let cache_entries = section.number("cache_entries", 1..=10_000_000, CACHE_ENTRIES);
        let master_key = MasterKey::from_section(&mut section, store);
        Some(Self {
            master_key: master_key?,
            cache_entries: cache_entries? as u64,
        })
    }
}

impl MasterKey {
    fn from_section(section: &mut Section<'_>, store: Option<&StoreSettings>) -> Option<Self> {
        let Some(setting) = section.optional::<String>("master_key") else {
            return Self::beside(section, store?);
        };
        match SecretSource::from(&*setting) {
            SecretSource::File(path)
                if store.is_some_and(|store| store.address.file().is_none()) =>
            {
                Some(Self::SharedFile(path))
            }
            SecretSource::File(path) => Some(Self::File(path)),
            SecretSource::Literal(_) => {
                section.problem(
                    "master_key",
                    "a text of its own",
                    "\"env:NAME\" or \"file:PATH\"",
                );
                None
            }
            source @ SecretSource::Env(_) => match source.read() {
                Ok(secret) => Some(Self::Given(secret)),
                Err(error) => {
                    section.problem(
                        "master_key",
                        &error.to_string(),
                        "64 hex digits in \"env:NAME\" or \"file:PATH\"",
                    );
                    None
                }
            },
        }
    }

    /// The default: a file beside the database. A server has no such place, and several gateways share it.
    fn beside(section: &Section<'_>, store: &StoreSettings) -> Option<Self> {
        let beside = store.address.file().map(|file| file.with_extension("key"));
        if beside.is_none() {
            section.problem(
                "master_key",
                "nothing",
                "\"env:NAME\" or \"file:PATH\", the same key for every gateway on this store",
            );
        }
        beside.map(Self::File)
    }
}
