//! Applications: who may sign requests, with which key, by which rules. CONTRACT 4.
//!
//! | module | subject |
//! | --- | --- |
//! | [`store`] | what is asked of a store |
//! | [`sqlite`], [`postgres`] | the embedded store, and the one on a server |
//! | [`open`] | which of them, with the master key |
//! | [`directory`] | how a request finds its application: one for all, or cached records |
//! | [`administration`] | what operators may do, by which rules |
//! | [`import`] | applications from a file |
//! | [`inspect`] | looking at a store without changing it |
//! | [`seal`] | keys at rest |

pub(crate) mod administration;
pub(crate) mod directory;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod open;
pub(crate) mod postgres;
mod record;
mod reseal;
pub(crate) mod seal;
pub(crate) mod sqlite;
pub(crate) mod store;

use gateway_protocol::{
    app::{AppId, AppIdent},
    sign::{AppKey, SignProfile, SignTime},
    version::Version,
};

/// An application as a request needs it. Immutable; a change makes a new one.
#[derive(Clone, Debug)]
pub struct App {
    /// The internal id.
    pub id: AppId,
    /// The public ident; none in single-application mode.
    pub ident: Option<AppIdent>,
    /// Whether it may be used.
    pub state: AppState,
    /// The key.
    pub key: AppKey,
    /// The key before the last rotation.
    pub previous_key: Option<PreviousKey>,
    /// How it signs; `None`: by the gateway's own profile. Most have none, so that a record stays small.
    pub profile: Option<Box<SignProfile>>,
    /// The version of requests that name none.
    pub default_version: Option<Version>,
}

/// The key before a rotation, and how long it is valid.
#[derive(Clone, Debug)]
pub struct PreviousKey {
    /// The key.
    pub key: AppKey,
    /// The last millisecond of its overlap.
    pub until: SignTime,
}

/// Whether an application may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppState {
    /// It may.
    Active,
    /// An operator switched it off.
    Disabled,
}

impl AppState {
    /// The word in the store and in listings.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }
}

#[cfg(test)]
mod tests;
