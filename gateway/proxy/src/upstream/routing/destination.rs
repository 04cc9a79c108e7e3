//! Where a request is sent, and where it is retried. CONTRACT 5.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use super::{
    Balancer,
    address::{AddressState, FixedInFlight},
    attempts::Attempts,
    key::HashKey,
    status::{BackendCounts, BackendEvent},
};
use crate::{
    config::Backend, directory::apps::App, request::rejection::Rejection, tls::backend::Endpoint,
};

/// A backend, and what the gateway has of it.
#[derive(Clone)]
pub struct Callee {
    /// What the configuration says of it.
    pub backend: Arc<Backend>,
    /// Chooses among its addresses; `None` if it has one fixed address.
    pub balancer: Option<Arc<Balancer>>,
    /// The state of its fixed address, if it has one.
    pub fixed: Arc<AddressState>,
    /// What happened to it.
    pub counts: Arc<BackendCounts>,
}

/// The address or addresses for one request.
pub struct Destination<'g> {
    backend: &'g Backend,
    choice: Choice<'g>,
    /// Whether what happens to the request changes what is known of the backend: not for a copy, whose timeouts are
    /// shorter.
    is_noted: bool,
}

enum Choice<'g> {
    /// The version has one fixed address.
    Fixed {
        endpoint: &'g Endpoint,
        counts: &'g BackendCounts,
        in_flight: FixedInFlight<'g>,
    },
    /// A balancer chooses.
    Balanced {
        balancer: &'g Balancer,
        key: HashKey<'g>,
        attempts: Attempts,
    },
}

impl<'g> Destination<'g> {
    /// Creates the destination of a request to a backend. The choice may depend on `app` and `client`.
    ///
    /// # Errors
    ///
    /// Neither a fixed address nor a balancer: a bug.
    pub fn new(
        callee: &'g Callee,
        app: Option<&'g App>,
        client: IpAddr,
    ) -> Result<Self, Rejection> {
        let backend = &*callee.backend;
        let choice = match (&backend.upstream.fixed, &callee.balancer) {
            (Some(endpoint), _) => Choice::Fixed {
                endpoint,
                counts: &callee.counts,
                in_flight: FixedInFlight::begin(&callee.fixed),
            },
            (None, Some(balancer)) => Choice::Balanced {
                balancer,
                key: HashKey::new(balancer.balance(), app, client),
                attempts: Attempts::default(),
            },
            (None, None) => return Err(Rejection::Internal("a version without a balancer".into())),
        };
        Ok(Self {
            backend,
            choice,
            is_noted: true,
        })
    }

    /// The same, of a copy: only its request in flight is counted.
    #[must_use]
    pub(crate) fn of_copy(self) -> Self {
        Self {
            is_noted: false,
            ..self
        }
    }

    /// Chooses the next address: one that the request was not sent to before, unless the address is fixed.
    ///
    /// # Errors
    ///
    /// No address is healthy, or none is left.
    pub fn choose(&mut self) -> Result<Endpoint, Rejection> {
        let unavailable = || {
            let backend = self.backend.name.to_string();
            Rejection::NoHealthyBackend { backend }
        };
        let (balancer, key, attempts) = match &mut self.choice {
            Choice::Fixed { in_flight, .. } if in_flight.state().is_drained() => {
                return Err(unavailable());
            }
            Choice::Fixed { endpoint, .. } => return Ok((*endpoint).clone()),
            Choice::Balanced {
                balancer,
                key,
                attempts,
            } => (balancer, key, attempts),
        };
        let is_first = attempts.last().is_none();
        let none_left = || {
            if is_first {
                unavailable()
            } else {
                // Another address was available when the last attempt failed, but is not any more.
                let why = "no other address is left".to_owned();
                Rejection::BackendUnreachable { why }
            }
        };
        balancer
            .choose(key.as_bytes(), attempts)
            .ok_or_else(none_left)
    }

    /// A connection to the backend that was idle for this many seconds is not used again.
    #[must_use]
    pub const fn idle_seconds(&self) -> u16 {
        self.backend.upstream.idle_seconds
    }

    /// Counts what happened to the backend. A balancer has its counts, too: a request needs no space for both.
    pub fn count(&self, event: BackendEvent) {
        if !self.is_noted {
            return;
        }
        match &self.choice {
            Choice::Fixed { counts, .. } => counts.count(event),
            Choice::Balanced { balancer, .. } => balancer.counts.count(event),
        }
    }

    /// Whether a failed request could be retried on another address.
    #[must_use]
    pub(crate) fn has_another(&self) -> bool {
        match &self.choice {
            Choice::Fixed { .. } => false,
            Choice::Balanced {
                balancer, attempts, ..
            } => balancer.has_another(attempts),
        }
    }

    /// Marks the current address as unreachable, after no connection to it could be established, and ejects it unless it is the
    /// only one.
    pub fn fail(&self, why: &str) {
        if !self.is_noted {
            return;
        }
        match &self.choice {
            Choice::Fixed {
                endpoint,
                in_flight,
                ..
            } => {
                // Marked, but not ejected: there is no other address that could take its requests.
                let state = in_flight.state();
                state.fail(&self.backend.name, endpoint.address, why);
            }
            Choice::Balanced {
                balancer, attempts, ..
            } => balancer.fail(attempts, why),
        }
    }

    /// Marks the current address as reachable, after a connection to it was established, and ends its ejection.
    pub fn restore(&self) {
        if !self.is_noted {
            return;
        }
        match &self.choice {
            Choice::Fixed {
                endpoint,
                in_flight,
                ..
            } => in_flight
                .state()
                .restore(&self.backend.name, endpoint.address),
            Choice::Balanced {
                balancer, attempts, ..
            } => balancer.restore(attempts),
        }
    }

    /// The address of the last attempt; `None` before the first.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.choice {
            Choice::Fixed { endpoint, .. } => Some(endpoint.address),
            Choice::Balanced { attempts, .. } => attempts.last().map(|address| address.socket()),
        }
    }
}
