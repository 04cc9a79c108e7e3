//! Telling every process what changed, so that it drops what it remembers. CONTRACT 4 and 8: within 1 s.
//!
//! A writer records a change together with what it writes; how the others hear of it is each database's own.

use std::convert::Infallible;

use tokio::sync::oneshot;

/// What kind of thing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// An application; the key is its ident.
    Application,
    /// A login; the key is the hash of its token.
    Login,
    /// A credential; the key is its hash.
    Credential,
}

impl Topic {
    const ALL: [Self; 3] = [Self::Application, Self::Login, Self::Credential];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Login => "login",
            Self::Credential => "credential",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.as_str() == name)
    }
}

/// What a watcher is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// One thing changed.
    Item {
        /// Its kind.
        topic: Topic,
        /// Which one; what the bytes are is said at each [`Topic`].
        key: Vec<u8>,
    },
    /// From now on nothing is heard, since the store does not answer. What is remembered is known to be right up to
    /// now; [`Change::Everything`] follows when the store answers again.
    Lost,
    /// Something may have been missed: whatever is remembered may be out of date.
    Everything,
}

/// A running watch; dropping it ends it.
#[derive(Debug)]
#[must_use = "the watch ends when this is dropped"]
pub struct Watch {
    _alive: Alive,
}

/// Nothing is ever sent: what ends the watch is that this is gone.
type Alive = oneshot::Sender<Infallible>;

impl Watch {
    /// A watch, and what its thread sees the end by.
    pub(crate) fn new() -> (Self, Watched) {
        let (alive, watched) = oneshot::channel();
        (Self { _alive: alive }, watched)
    }
}

/// Resolves, with an error, when the watch is dropped.
pub(crate) type Watched = oneshot::Receiver<Infallible>;
