//! Where a request goes, and where it goes next if that fails. CONTRACT 5.

use std::net::{IpAddr, SocketAddr};

use super::{Balancer, attempts::Attempts, key::Key};
use crate::{apps::App, config::Backend, rejection::Rejection};

/// The addresses that one request may go to.
pub(crate) struct Destination<'g> {
    backend: &'g Backend,
    choice: Choice<'g>,
}

enum Choice<'g> {
    /// There is one address, whatever happens.
    Fixed(SocketAddr),
    /// A balancer chooses.
    Balanced {
        balancer: &'g Balancer,
        key: Key<'g>,
        attempts: Attempts,
    },
}

impl<'g> Destination<'g> {
    /// Where a request to `backend` may go. `balancer` is that backend's, if there is anything to choose; `app` and
    /// `client` are what the choice may depend on.
    ///
    /// # Errors
    ///
    /// There is something to choose and no balancer: a bug.
    pub(crate) fn new(
        backend: &'g Backend,
        balancer: Option<&'g Balancer>,
        app: Option<&'g App>,
        client: IpAddr,
    ) -> Result<Self, Rejection> {
        let choice = match (backend.upstream.fixed(), balancer) {
            (Some(address), _) => Choice::Fixed(address),
            (None, Some(balancer)) => Choice::Balanced {
                balancer,
                key: Key::of(balancer.balance(), app, client),
                attempts: Attempts::default(),
            },
            (None, None) => return Err(Rejection::Internal("a version without a balancer".into())),
        };
        Ok(Self { backend, choice })
    }

    /// The next address: one that the request was not sent to before, unless there is only one.
    ///
    /// # Errors
    ///
    /// No address is healthy, or none is left.
    pub(crate) fn choose(&mut self) -> Result<SocketAddr, Rejection> {
        let (balancer, key, attempts) = match &mut self.choice {
            Choice::Fixed(address) => return Ok(*address),
            Choice::Balanced {
                balancer,
                key,
                attempts,
            } => (balancer, key, attempts),
        };
        let is_first = attempts.last().is_none();
        let none_left = || {
            if is_first {
                let version = self.backend.version.clone();
                Rejection::NoHealthyBackend { version }
            } else {
                // There was another one when the last one failed.
                let why = "no other address is left".to_owned();
                Rejection::BackendUnreachable { why }
            }
        };
        balancer
            .choose(key.as_bytes(), attempts)
            .ok_or_else(none_left)
    }

    /// Whether a request that failed at one address could go to another.
    #[must_use]
    pub(crate) fn has_another(&self) -> bool {
        match &self.choice {
            Choice::Fixed(_) => false,
            Choice::Balanced {
                balancer, attempts, ..
            } => balancer.has_another(attempts),
        }
    }

    /// No connection to the last address could be established: it gets no requests for a while.
    pub(crate) fn eject(&self, why: &str) {
        if let Choice::Balanced {
            balancer, attempts, ..
        } = &self.choice
        {
            balancer.take_out(attempts, why);
        }
    }

    /// A connection to the last address was established.
    pub(crate) fn restore(&self) {
        if let Choice::Balanced {
            balancer, attempts, ..
        } = &self.choice
        {
            balancer.mark_healthy(attempts);
        }
    }

    /// The address that the request was sent to last; `None` before the first.
    #[must_use]
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match &self.choice {
            Choice::Fixed(address) => Some(*address),
            Choice::Balanced { attempts, .. } => attempts.last().map(|address| address.socket()),
        }
    }
}
