//! The state of a backend's addresses, as the running gateway reports it to the management API and to `signpost versions`,
//! and what the metrics count beside it.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use signpost_kit::{counted_label, label_enum, metrics::cells::LabelCounters};

use super::{Balancer, address::Address};

/// The state of a running gateway, as it reports it to the commands.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GatewayStatus {
    /// Whether its configuration differs from its file.
    pub differs: bool,
    /// Its backends.
    pub backends: Vec<BackendStatus>,
}

/// The addresses of one backend.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BackendStatus {
    /// The backend's name.
    pub backend: String,
    /// Its addresses; a name's as last resolved.
    pub addresses: Vec<AddressStatus>,
    /// Requests in flight to addresses that a reload has removed.
    pub leaving: usize,
    /// The requests that this gateway has forwarded to it, by the status class of the response that the client got.
    pub responses: BTreeMap<String, u64>,
}

/// The state of one address.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AddressStatus {
    /// IP address and port; or as configured, if no gateway has resolved it.
    pub address: String,
    /// Whether it gets requests.
    pub health: AddressHealth,
    /// Requests in flight; `None` if no gateway was asked.
    pub in_flight: Option<usize>,
}

label_enum! {
    /// Whether an address gets requests.
    #[derive(Deserialize, Serialize)]
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum AddressHealth {
        /// It passes its checks.
        Healthy = "healthy",
        /// It fails its checks: it gets no requests.
        Unhealthy = "unhealthy",
        /// No connection could be established. If the backend has other addresses, this one gets no requests for a moment: it
        /// is ejected.
        Unreachable = "unreachable",
        /// An operator has drained it: it gets no new requests.
        Drained = "drained",
        /// It has no checks, or has not passed one yet; the last connection to it, if any, was established.
        Unchecked = "unchecked",
        /// No gateway was asked.
        Unknown = "unknown",
    }
}

/// Whether a backend with these addresses serves requests, as far as checks and connections tell; `None` if nothing does.
#[must_use]
pub fn availability(addresses: &[AddressStatus]) -> Option<bool> {
    let has = |health| addresses.iter().any(|address| address.health == health);
    match (
        has(AddressHealth::Healthy),
        has(AddressHealth::Unchecked) || has(AddressHealth::Unknown),
    ) {
        (true, _) => Some(true),
        (false, true) => None,
        (false, false) => Some(false),
    }
}

impl Balancer {
    /// The state of all addresses.
    #[must_use]
    pub fn status(&self) -> Vec<AddressStatus> {
        let addresses = self.addresses.load();
        let status = |address: &Arc<Address>| AddressStatus {
            address: address.socket().to_string(),
            health: self.health_of(address),
            in_flight: Some(address.in_flight()),
        };
        addresses.iter().map(status).collect()
    }

    fn health_of(&self, address: &Address) -> AddressHealth {
        let state = &address.state;
        // Several may hold at once. An operator's decision is named first, then what a check has found.
        if state.is_drained() {
            AddressHealth::Drained
        } else if self.checks.is_some() && !state.health.is_healthy() {
            AddressHealth::Unhealthy
        } else if state.is_unreachable() {
            AddressHealth::Unreachable
        } else if self.checks.is_none() || !state.health.has_passed() {
            AddressHealth::Unchecked
        } else {
            AddressHealth::Healthy
        }
    }
}

/// What happened to one backend so far. The counts outlive a configuration, as long as it has a backend of this name.
pub(crate) type BackendCounts = LabelCounters<BackendEvent>;

label_enum! {
    /// What happens to a backend. Its text is the label `cause` of failures, and `result` of health checks.
    pub enum BackendEvent {
        /// No connection was established, also because that took too long.
        Connect = "connect",
        /// The TLS handshake failed, or took too long.
        Tls = "tls",
        /// The connection was closed or reset.
        Reset = "reset",
        /// The backend did not accept the request, or did not answer, in time.
        Timeout = "timeout",
        /// The response is malformed.
        Malformed = "malformed",
        /// An address was ejected.
        Ejection = "ejection",
        /// A health check passed.
        PassedCheck = "passed",
        /// A health check failed.
        FailedCheck = "failed",
        /// A request was sent again.
        Retry = "retry",
    }
}

counted_label!(BackendEvent);

impl BackendEvent {
    /// Why an attempt to get a response failed.
    pub(crate) const FAILURES: [Self; 5] = [
        Self::Connect,
        Self::Tls,
        Self::Reset,
        Self::Timeout,
        Self::Malformed,
    ];
    /// The results of health checks.
    pub(crate) const CHECKS: [Self; 2] = [Self::PassedCheck, Self::FailedCheck];
}
