//! What is asked of a store of applications.

use std::time::Duration;

use async_trait::async_trait;
use gateway_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
    version::Version,
};
use signpost_kit::clock::Timestamp;

use super::{App, AppState, seal::SealError};

/// What an operator says of a new application.
#[derive(Clone, Debug)]
pub struct NewApp {
    /// The ident that its clients send.
    pub ident: AppIdent,
    /// The key that they sign with.
    pub key: AppKey,
    /// What people call it; shown on the page of a polling login.
    pub name: String,
    /// Its own sign profile; without one, the gateway's.
    pub profile: Option<SignProfile>,
    /// Origins that a login may return to.
    pub return_to_origins: Vec<String>,
    /// The version of requests that name none.
    pub default_version: Option<Version>,
    /// Now.
    pub created_at: Timestamp,
}

/// What an operator changes of an application. What is not named stays as it is.
#[derive(Clone, Debug)]
pub struct AppUpdate {
    /// Whose.
    pub(crate) ident: AppIdent,
    /// What people call it.
    pub(crate) name: Option<String>,
    /// Origins that a login may return to: all of them.
    pub(crate) return_to_origins: Option<Vec<String>>,
    /// Its own sign profile.
    pub(crate) profile: Edit<SignProfile>,
    /// The version of requests that name none.
    pub(crate) default_version: Edit<Version>,
}

/// What becomes of something that an application may have or not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Edit<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is this from now on.
    Set(T),
    /// The application has none any more.
    Unset,
}

impl<T> Edit<T> {
    /// The same with what is set turned into something else.
    pub(crate) fn map<U>(self, turn: impl FnOnce(T) -> U) -> Edit<U> {
        match self {
            Self::Keep => Edit::Keep,
            Self::Set(value) => Edit::Set(turn(value)),
            Self::Unset => Edit::Unset,
        }
    }

    /// Whether anything changes.
    pub(crate) const fn is_change(&self) -> bool {
        !matches!(self, Self::Keep)
    }

    /// The new value; none where there is none, or where it does not change.
    pub(crate) const fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Unset => None,
        }
    }
}

/// What became of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// All applications are there.
    Done,
    /// None is: these idents are taken.
    Taken(Vec<AppIdent>),
}

/// An application whose default version is none that the gateway has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownDefault {
    /// Whose.
    pub ident: String,
    /// The version.
    pub version: String,
}

/// A new key for an application.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Whose.
    pub(crate) ident: AppIdent,
    /// The new key.
    pub(crate) key: AppKey,
    /// How long the old one stays valid.
    pub(crate) overlap: Duration,
    /// Whether a key that is still valid from the last rotation ends now.
    pub(crate) ends_running_overlap: bool,
    /// Now.
    pub(crate) now: Timestamp,
}

/// What became of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotated {
    /// The new key is in force.
    Done,
    /// No such application.
    Unknown,
    /// Nothing happened: the key before the last rotation is still valid, and two old keys cannot be.
    Overlapping {
        /// Up to when.
        until: Timestamp,
    },
}

/// What an operator may see of an application: neither its key nor its internal id.
#[derive(Clone, Debug, serde::Serialize)]
pub struct AppSummary {
    /// The ident that its clients send.
    pub(crate) ident: String,
    /// What people call it.
    pub(crate) name: String,
    /// `active` or `disabled`.
    pub(crate) state: String,
    /// When it was created.
    pub(crate) created_at: Timestamp,
    /// Its own sign profile, if it has one.
    pub(crate) sign_profile: Option<SignProfile>,
    /// Origins that a login may return to.
    pub(crate) return_to: Vec<String>,
    /// The version of requests that name none.
    pub(crate) default_version: Option<String>,
    /// Up to when the key before the last rotation is valid.
    pub(crate) previous_key_until: Option<Timestamp>,
}

/// A store of applications. A change reaches every running gateway within 1 s.
#[async_trait]
pub trait AppStore: Send + Sync {
    /// The application of that ident, with its keys opened.
    ///
    /// # Errors
    ///
    /// The store is away, or the record is not readable under this master key.
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError>;

    /// Adds an application.
    ///
    /// # Errors
    ///
    /// The store is away, or the name holds U+0000.
    async fn create(&self, app: NewApp) -> Result<(), AppStoreError>;

    /// Adds all of these applications, or none of them.
    ///
    /// # Errors
    ///
    /// The store is away, or a name holds U+0000.
    async fn import(&self, apps: Vec<NewApp>) -> Result<ImportOutcome, AppStoreError>;

    /// Those of these idents that are taken.
    ///
    /// # Errors
    ///
    /// The store is away.
    async fn taken(&self, idents: Vec<AppIdent>) -> Result<Vec<AppIdent>, AppStoreError>;

    /// Changes an application. `false`: no such application.
    ///
    /// # Errors
    ///
    /// The store is away, or the name holds U+0000.
    async fn update(&self, update: AppUpdate) -> Result<bool, AppStoreError>;

    /// Forgets keys whose overlap ended before then. How many there were.
    ///
    /// # Errors
    ///
    /// The store is away.
    async fn forget_previous(&self, ended_before: Timestamp) -> Result<u64, AppStoreError>;

    /// One application.
    ///
    /// # Errors
    ///
    /// The store is away.
    async fn summary(&self, ident: AppIdent) -> Result<Option<AppSummary>, AppStoreError>;

    /// All applications, oldest first.
    ///
    /// # Errors
    ///
    /// The store is away.
    async fn list(&self) -> Result<Vec<AppSummary>, AppStoreError>;

    /// Gives the application a new key; the old one stays valid for a while.
    ///
    /// # Errors
    ///
    /// The store is away.
    async fn rotate(&self, rotation: Rotation) -> Result<Rotated, AppStoreError>;

    /// Switches the application on or off. `false`: no such application.
    ///
    /// # Errors
    ///
    /// The store is away.
    async fn set_state(&self, ident: AppIdent, state: AppState) -> Result<bool, AppStoreError>;

    /// Removes the application. `false`: no such application.
    ///
    /// # Errors
    ///
    /// The store is away.
    async fn delete(&self, ident: AppIdent) -> Result<bool, AppStoreError>;
}

/// Why a store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum AppStoreError {
    /// The store is away, or too busy.
    #[error("the store of applications does not answer")]
    Store(#[from] signpost_store::StoreError),
    /// A key cannot be opened: the master key is another one, or somebody changed the record.
    #[error("an application's key cannot be opened")]
    Seal(#[from] SealError),
    /// The name has a letter that not every store can keep: nothing was written.
    #[error("an application's name cannot hold U+0000")]
    Name,
    /// A record holds something that no release wrote.
    #[error("an application's record is malformed: {0}")]
    Malformed(&'static str),
}
