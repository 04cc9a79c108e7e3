//! The interface of a store of applications.

use std::time::Duration;

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
    version::Version,
};

use super::{App, seal::SealError};
use crate::config::OwnRate;

/// A new application.
#[derive(Clone, Debug)]
pub struct NewApp {
    /// The ident that its clients send.
    pub ident: AppIdent,
    /// The key that its clients sign with.
    pub key: AppKey,
    /// The display name; shown on the page of a polling login.
    pub name: String,
    /// Its own sign profile; `None`: the gateway's.
    pub profile: Option<SignProfile>,
    /// Origins that a login may return to.
    pub return_to_origins: Vec<String>,
    /// The version for requests that name none.
    pub default_version: Option<Version>,
    /// The time of its creation.
    pub created_at: Timestamp,
}

/// Changes of an application. `None` and [`Edit::Keep`] change nothing.
#[derive(Clone, Debug)]
pub(crate) struct AppUpdate {
    /// The application's ident.
    pub(crate) ident: AppIdent,
    /// The display name.
    pub(crate) name: Option<String>,
    /// Origins that a login may return to; replaces all of them.
    pub(crate) return_to_origins: Option<Vec<String>>,
    /// Its own sign profile.
    pub(crate) profile: Edit<SignProfile>,
    /// The version for requests that name none.
    pub(crate) default_version: Edit<Version>,
    /// Its own rate limit.
    pub(crate) rate_limit: Edit<OwnRate>,
}

/// A change of an optional setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Edit<T> {
    /// It does not change.
    #[default]
    Keep,
    /// It gets this value.
    Set(T),
    /// It is removed.
    Unset,
}

impl<T> Edit<T> {
    /// Converts the new value.
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Edit<U> {
        match self {
            Self::Keep => Edit::Keep,
            Self::Set(value) => Edit::Set(convert(value)),
            Self::Unset => Edit::Unset,
        }
    }

    /// Whether the setting changes.
    pub(crate) const fn is_change(&self) -> bool {
        !matches!(self, Self::Keep)
    }

    /// The new value; `None` if the setting is kept or removed.
    pub(crate) const fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Unset => None,
        }
    }
}

/// As a change of a column.
impl<T> From<Edit<T>> for Option<Option<T>> {
    fn from(edit: Edit<T>) -> Self {
        match edit {
            Edit::Keep => None,
            Edit::Set(value) => Some(Some(value)),
            Edit::Unset => Some(None),
        }
    }
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImportOutcome {
    /// All applications were added.
    Done,
    /// None was added: the store already has these idents.
    Taken(Vec<AppIdent>),
}

/// An application whose default version the gateway does not have, or no longer serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnusableDefault {
    /// The application's ident.
    pub ident: String,
    /// Its default version.
    pub version: String,
}

/// A replacement of an application's key.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    /// The application's ident.
    pub(crate) ident: AppIdent,
    /// The new key.
    pub(crate) key: AppKey,
    /// Time for which the old key stays valid.
    pub(crate) overlap: Duration,
    /// Whether to end the validity of a key that is still valid from the last rotation.
    pub(crate) ends_running_overlap: bool,
    /// The time of the rotation.
    pub(crate) now: Timestamp,
}

/// The result of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RotationOutcome {
    /// The key was replaced.
    Done,
    /// The application is unknown.
    Unknown,
    /// Nothing changed: the key before the last rotation is still valid, and only one old key may be.
    Overlapping {
        /// The end of its validity.
        until: Timestamp,
    },
}

/// An application as shown to operators, without its key and internal id.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct AppSummary {
    /// The ident that its clients send.
    pub(crate) ident: String,
    /// The display name.
    pub(crate) name: String,
    /// `active` or `disabled`.
    pub(crate) state: String,
    /// When it was created.
    pub(crate) created_at: Timestamp,
    /// Its own sign profile, if it has one.
    pub(crate) sign_profile: Option<SignProfile>,
    /// Origins that a login may return to.
    pub(crate) return_to: Vec<String>,
    /// The version for requests that name none.
    pub(crate) default_version: Option<String>,
    /// Its own rate limit: "100/200" (a second, at once), or "unlimited".
    pub(crate) rate_limit: Option<OwnRate>,
    /// The end of the previous key's validity.
    pub(crate) previous_key_until: Option<Timestamp>,
}

/// Where requests find their applications.
#[async_trait]
pub trait AppStore: Send + Sync {
    /// Finds an application, and opens its keys.
    ///
    /// # Errors
    ///
    /// The store is unavailable, the master key does not open the keys, or the record is malformed.
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError>;
}

/// Why a store's operation failed.
#[derive(Debug, thiserror::Error)]
pub enum AppStoreError {
    /// The store is unavailable or overloaded.
    #[error("the store is unavailable")]
    Store(#[from] signpost_store::StoreError),
    /// A key cannot be opened: the master key is wrong, or the record was changed.
    #[error("an application's key cannot be decrypted")]
    Seal(#[from] SealError),
    /// The name contains U+0000, which Postgres cannot store. Nothing was written.
    #[error("an application's name must not contain U+0000")]
    Name,
    /// A record holds a value that no release writes.
    #[error("an application's record is malformed: {0}")]
    Malformed(&'static str),
}
