//! One application from the configuration, or many from the store. CONTRACT 4.

use std::path::PathBuf;

use gateway_protocol::sign::AppKey;
use signpost_kit::{
    config::{Invalid, Read, Section},
    secret::{Secret, SecretSource},
};
use signpost_store::StoreSettings;

/// Records that are remembered by default: about 1 KiB each.
const CACHE_ENTRIES: u64 = 10_000;

/// Who may sign requests.
#[derive(Clone, Debug)]
pub enum Applications {
    /// One key for everybody; the application header is ignored.
    Single(AppKey),
    /// The application header names a record of the store.
    Multi(MultiApplications),
}

/// How records of the store are read.
#[derive(Clone, Debug)]
pub struct MultiApplications {
    /// What keys are encrypted under.
    pub(crate) master_key: MasterKey,
    /// Most records remembered, unknown idents among them.
    pub(crate) cache_entries: u64,
}

/// What keys are encrypted under.
#[derive(Clone, Debug)]
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
    /// `store` is none if that setting is invalid.
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
            MultiApplications::read(section, store)
        });
        if is_single == is_multi {
            let found = if is_single {
                "both [application] and [applications]"
            } else {
                "neither [application] nor [applications]"
            };
            let allowed = "[application] with a key, for one application, or [applications], for those in the store";
            return Err(root.problem("application", found, allowed));
        }
        let mode = if is_single {
            "one, from [application]"
        } else {
            "many, from the store"
        };
        root.set("applications", mode);
        match (single?, multi?) {
            (Some(key), _) => Ok(Self::Single(key)),
            (None, Some(multi)) => Ok(Self::Multi(multi)),
            (None, None) => Err(Invalid),
        }
    }
}

fn single_key(section: &mut Section<'_>, allows_weak_keys: bool) -> Read<AppKey> {
    let secret = section.required_secret("key")?;
    let key: AppKey = secret.expose().parse().map_err(|_| {
        section.problem(
            "key",
            "white space inside the key",
            "a text without white space",
        )
    })?;
    match key.check_strength() {
        Err(weak) if !allows_weak_keys => Err(section.problem(
            "key",
            &format!("a weak key: {weak}"),
            "a longer key, or allow_weak_key = true in [sign]",
        )),
        _ => Ok(key),
    }
}

impl MultiApplications {
    fn read(section: &mut Section<'_>, store: Option<&StoreSettings>) -> Read<Self> {
        let cache_entries = section.number("cache_entries", 1..=10_000_000, CACHE_ENTRIES);
        let master_key = MasterKey::read(section, store);
        Ok(Self {
            master_key: master_key?,
            cache_entries: cache_entries?,
        })
    }
}

impl MasterKey {
    fn read(section: &mut Section<'_>, store: Option<&StoreSettings>) -> Read<Self> {
        const KEY: &str = "master_key";
        const ALLOWED: &str = "64 hex digits in \"env:NAME\" or \"file:PATH\"";
        let Some(source) = section.secret_source(KEY, ALLOWED)? else {
            return Self::beside(section, store.ok_or(Invalid)?);
        };
        match source {
            SecretSource::File(path) => {
                section.set(KEY, format!("\"file:{}\"", path.display()));
                let is_shared = store.is_some_and(|store| store.address.file().is_none());
                Ok(if is_shared {
                    Self::SharedFile(path)
                } else {
                    Self::File(path)
                })
            }
            SecretSource::Literal(_) => Err(section.problem(KEY, "the key itself", ALLOWED)),
            source @ SecretSource::Env(_) => section.fetch(KEY, source, ALLOWED).map(Self::Given),
        }
    }

    /// The default: a file beside the database. A server has no such place, and several gateways share it.
    fn beside(section: &Section<'_>, store: &StoreSettings) -> Read<Self> {
        let file = store.address.file();
        let beside = file.map(|file| Self::File(file.with_extension("key")));
        beside.ok_or_else(|| {
            let allowed =
                "\"env:NAME\" or \"file:PATH\", the same key for every gateway on this store";
            section.missing("master_key", allowed)
        })
    }
}
