//! What is asked of a store of applications.

use std::time::Duration;

use async_trait::async_trait;
use gateway_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile, SignTime},
    version::Version,
};

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
    pub created_at: SignTime,
}

/// A new key for an application.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Whose.
    pub ident: AppIdent,
    /// The new key.
    pub key: AppKey,
    /// How long the old one stays valid.
    pub overlap: Duration,
    /// Whether a key that is still valid from the last rotation ends now.
    pub ends_running_overlap: bool,
    /// Now.
    pub now: SignTime,
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
        /// Up to when, UTC milliseconds.
        until: u64,
    },
}

/// What an operator may see of an application: neither its key nor its internal id.
#[derive(Clone, Debug, serde::Serialize)]
pub struct AppSummary {
    /// The ident that its clients send.
    pub ident: String,
    /// What people call it.
    pub name: String,
    /// `active` or `disabled`.
    pub state: String,
    /// UTC milliseconds since the epoch.
    pub created_at: u64,
    /// Its own sign profile, if it has one.
    pub sign_profile: Option<SignProfile>,
    /// Origins that a login may return to.
    pub return_to: Vec<String>,
    /// The version of requests that name none.
    pub default_version: Option<String>,
    /// Up to when the key before the last rotation is valid, UTC milliseconds.
    pub previous_key_until: Option<u64>,
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

    /// Whether the store answers.
    ///
    /// # Errors
    ///
    /// It does not.
    async fn check(&self) -> Result<(), AppStoreError>;
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
