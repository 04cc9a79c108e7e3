//! Applications: their keys, sign profiles and states. CONTRACT 4.
//!
//! | module | subject |
//! | --- | --- |
//! | [`stored`] | the applications of the database |
//! | [`open`] | opens the configured store with the master key |
//! | [`directory`] | looks up a request's application: the single one, or a cached one |
//! | [`loader`] | keeps all applications in the cache |
//! | [`unread`] | what it has to read again |
//! | [`snapshot`] | all applications in a file, for a start without the store |
//! | [`defaults`] | default versions that are not in service |
//! | [`seal`] | encryption of keys at rest |

pub(crate) mod defaults;
pub(crate) mod directory;
pub(crate) mod loader;
pub(crate) mod open;
pub(crate) mod seal;
pub(crate) mod snapshot;
pub(crate) mod stored;
mod unread;

use std::str::FromStr;

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    app::{AppId, AppIdent},
    label_enum,
    sign::{AppKey, SignProfile, SignTime},
    version::Version,
};
use signpost_store::StoreError;

use self::seal::SealError;
use crate::config::{Extension, OwnRate};

/// An application, as requests need it. Immutable; a change creates a new one.
#[derive(Clone, Debug)]
pub struct App {
    /// The internal id.
    pub id: AppId,
    /// The public ident; `None` in single-application mode.
    pub ident: Option<AppIdent>,
    /// Whether its requests are accepted.
    pub state: AppState,
    /// The key.
    pub key: AppKey,
    /// The key before the last rotation.
    pub previous_key: Option<PreviousKey>,
    /// Its own sign profile; `None`: the gateway's. Boxed, because few have one and cached applications should be
    /// small.
    pub profile: Option<Box<SignProfile>>,
    /// The version of requests that name none.
    pub default_version: Option<Version>,
    /// Its own rate limit; `None`: the gateway's.
    pub rate_limit: Option<OwnRate>,
    /// The versions that it may use longer than their life cycles say.
    pub extensions: Box<[Extension]>,
}

impl App {
    /// Until when it may use a version longer; `None`: as the version's life cycle says.
    #[must_use]
    pub fn extended_until(&self, version: &Version) -> Option<Timestamp> {
        let mut extensions = self.extensions.iter();
        let found = extensions.find(|one| one.version == *version);
        found.map(|one| one.until)
    }

    /// Its keys, the current one first; the one before also if its overlap has ended.
    pub fn keys(&self) -> impl Iterator<Item = &AppKey> {
        let previous = self.previous_key.as_ref().map(|previous| &previous.key);
        [Some(&self.key), previous].into_iter().flatten()
    }

    /// The application of single-application mode.
    pub fn single(key: AppKey) -> Self {
        Self {
            id: AppId::SINGLE,
            ident: None,
            state: AppState::Active,
            key,
            previous_key: None,
            profile: None,
            default_version: None,
            rate_limit: None,
            extensions: Box::default(),
        }
    }
}

/// The key before the last rotation, and the end of its validity.
#[derive(Clone, Debug)]
pub struct PreviousKey {
    /// The key.
    pub key: AppKey,
    /// The last millisecond in which it is valid.
    pub until: SignTime,
}

label_enum! {
    /// Whether an application's requests are accepted, as the store and listings have it.
    pub enum AppState {
        /// They are.
        Active = "active",
        /// An operator disabled the application.
        Disabled = "disabled",
    }
}

impl FromStr for AppState {
    type Err = ParseAppStateError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::from_word(word).ok_or(ParseAppStateError)
    }
}

/// The text is not a state.
#[derive(Debug, thiserror::Error)]
#[error("\"active\" or \"disabled\"")]
pub struct ParseAppStateError;

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
    Store(#[from] StoreError),
    /// A key cannot be opened: the master key is wrong, or the record was changed.
    #[error("an application's key cannot be decrypted")]
    Seal(#[from] SealError),
    /// No application has that ident.
    #[error("no application has the ident {0}")]
    Unknown(AppIdent),
    /// A record holds a value that no release writes.
    #[error("an application's record is malformed: {0}")]
    Malformed(&'static str),
}
