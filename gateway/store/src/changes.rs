//! The change feed: notifies every process of changes within 1 s, so that it invalidates its caches. CONTRACT 4 and 8.
//!
//! A writer records a change together with its write. How other processes are notified depends on the database.

use std::convert::Infallible;

use signpost_protocol::label_enum;
use tokio::sync::oneshot;

use crate::audit::Audit;

label_enum! {
    /// The kind of thing that changed.
    #[derive(Hash)]
    pub enum Topic {
        /// An application; the key is its ident.
        Application = "application",
        /// A login; the key is the hash of its token.
        Login = "login",
        /// Credentials; the key is their hashes, one behind the other.
        Credential = "credential",
        /// The addresses that are drained; the key is empty.
        Drain = "drain",
        /// Rejected requests that an operator asks for; the key is empty.
        Rejection = "rejection",
    }
}

impl Topic {
    /// How many keys fit into one entry, one behind the other: of credentials, as many as a notification of Postgres can
    /// have, 8,000 bytes of hex digits. Their keys are up to two hashes.
    pub(crate) const fn keys_in_entry(self) -> usize {
        match self {
            Self::Credential => 50,
            Self::Application | Self::Login | Self::Drain | Self::Rejection => 1,
        }
    }
}

/// What a write changes. What operators change cannot be written without what the [audit](crate::audit) says of it.
#[derive(Debug)]
pub enum Changed {
    /// A pending login.
    Login,
    /// Credentials.
    Credential,
    /// Applications. If no row changes, no audit row is written. This holds for the other variants, too.
    Application(Audit),
    /// What no process caches. It has no entry in the feed.
    Uncached(Audit),
    /// Drained addresses.
    Drain(Audit),
    /// Rejected requests that an operator asks for.
    Rejection,
}

impl Changed {
    /// What the feed and the audit have of it.
    pub(crate) fn into_records(self) -> Records {
        match self {
            Self::Login => (Some(Topic::Login), None),
            Self::Credential => (Some(Topic::Credential), None),
            Self::Rejection => (Some(Topic::Rejection), None),
            Self::Application(audit) => (Some(Topic::Application), Some(audit)),
            Self::Drain(audit) => (Some(Topic::Drain), Some(audit)),
            Self::Uncached(audit) => (None, Some(audit)),
        }
    }
}

/// The key of a change of many rows, in SQL: anything of the topic may have changed.
pub(crate) const NO_KEY: &str = "''";

/// What is written together with a change: to the feed, and to the audit.
pub(crate) type Records = (Option<Topic>, Option<Audit>);

/// An event of the change feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A change of the rows that `key` names. If `key` is empty, any row of the topic may have changed.
    Item {
        /// The kind of row.
        topic: Topic,
        /// The key; each [`Topic`] defines its bytes.
        key: Vec<u8>,
    },
    /// The feed is lost, since the store does not answer. Caches are known to be correct up to now.
    /// [`Change::Restored`] follows when the store answers again.
    Lost,
    /// The feed reports changes again. Those since [`Change::Lost`] were missed: any cached value may be outdated.
    Restored,
    /// Any cached value is outdated, or may long have been.
    Everything,
}

/// A running subscription to the change feed.
#[derive(Debug)]
#[must_use = "the watch ends when this is dropped"]
pub struct Watch {
    _alive: Alive,
}

/// Nothing is ever sent: dropping this ends the watch.
type Alive = oneshot::Sender<Infallible>;

impl Watch {
    /// Creates a watch, and the signal that ends its thread.
    pub(crate) fn new() -> (Self, WatchEnd) {
        let (alive, end) = oneshot::channel();
        (Self { _alive: alive }, end)
    }
}

/// Resolves, with an error, when the watch is dropped.
pub(crate) type WatchEnd = oneshot::Receiver<Infallible>;

/// Logs that no changes are reported until the store answers.
pub(crate) fn log_lost(cause: &str) {
    tracing::warn!(%cause, "the store's change feed is lost until the store answers again");
}

/// Logs that changes are reported again.
pub(crate) fn log_restored() {
    tracing::info!("the store's change feed is restored");
}
