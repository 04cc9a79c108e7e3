//! The applications that changes have removed from the cache, for the loader.

use std::sync::{Mutex, MutexGuard, PoisonError};

use signpost_protocol::app::AppIdent;
use signpost_store::{Change, Topic};

/// Limit of the changed applications that are read one by one; beyond it, all are read.
const MAX_CHANGED: usize = 100;

/// What has to be read again.
#[derive(Debug, Default)]
pub(super) struct Unread(Mutex<Changed>);

/// Changed applications.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// Any may have changed.
    pub(super) all: bool,
    /// These have.
    pub(super) idents: Vec<AppIdent>,
}

impl Unread {
    pub(super) fn on_change(&self, change: &Change) {
        match change {
            Change::Item { topic, key } if *topic == Topic::Application => {
                let mut changed = self.lock();
                match AppIdent::try_from(&key[..]) {
                    Ok(ident) if changed.idents.len() < MAX_CHANGED => changed.idents.push(ident),
                    _ => changed.all = true,
                }
            }
            Change::Restored | Change::Everything => self.add_all(),
            Change::Item { .. } | Change::Lost => {}
        }
    }

    pub(super) fn add_all(&self) {
        self.lock().all = true;
    }

    pub(super) fn take(&self) -> Changed {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Changed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
