//! An open listener, by one configuration.

use std::{net::SocketAddr, ops::Deref, sync::Arc};

use signpost_kit::metrics::cells::Counters;

use crate::{
    config::{Config, ListenerSettings},
    request::client::ListenerId,
};

/// An open listener: its settings, and its count of connections, which continues after a reload.
#[derive(Debug)]
pub struct Listener {
    /// For its connections.
    pub id: ListenerId,
    settings: ListenerSettings,
    accepted: Arc<Counters>,
}

impl Listener {
    /// The listeners of a configuration. Those at an address of `before` continue them.
    pub(super) fn all(config: &Config, before: &[Arc<Self>]) -> Vec<Arc<Self>> {
        let listeners = config.listeners.iter();
        listeners
            .map(|settings| Arc::new(Self::new(settings, find(before, settings.address))))
            .collect()
    }

    fn new(settings: &ListenerSettings, before: Option<&Arc<Self>>) -> Self {
        match before {
            None => Self {
                id: ListenerId::next(),
                settings: settings.clone(),
                accepted: Arc::new(Counters::new(1)),
            },
            Some(before) => Self {
                // Open connections know their listener by this id: a new one would end them with their next response.
                id: before.id,
                settings: settings.continuing(&before.settings),
                accepted: Arc::clone(&before.accepted),
            },
        }
    }

    /// Counts a connection. It may be refused afterwards.
    pub(crate) fn count_accepted(&self) {
        self.accepted.add(0, 1);
    }

    /// The connections since it was opened.
    pub fn accepted(&self) -> u64 {
        self.accepted.value(0)
    }
}

impl Deref for Listener {
    type Target = ListenerSettings;

    fn deref(&self) -> &ListenerSettings {
        &self.settings
    }
}

/// The listener at this address. There are few, so each new connection searches them all.
pub(super) fn find(listeners: &[Arc<Listener>], address: SocketAddr) -> Option<&Arc<Listener>> {
    listeners
        .iter()
        .find(|listener| listener.address == address)
}
