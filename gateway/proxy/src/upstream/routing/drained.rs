//! The addresses of a backend that operators have drained.

use std::net::SocketAddr;

use serde::Serialize;
use signpost_kit::clock::Timestamp;

use super::address::AddressState;
use crate::config::{BackendName, as_rfc3339};

/// An address that gets no new requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DrainedAddress {
    /// The backend's name.
    pub backend: String,
    /// The address, also as resolved.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub address: SocketAddr,
    /// When it gets requests again.
    #[serde(serialize_with = "as_rfc3339")]
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub until: Timestamp,
    /// Whether it gets none even if the backend has no other address that does.
    #[serde(skip)]
    pub is_forced: bool,
}

/// Addresses that get no new requests. If no other one is left, only those that are forced get none: a draining does not make
/// a backend unavailable, also if its other addresses are drained or removed later.
#[derive(Clone, Debug, Default)]
pub struct Drained(Vec<(SocketAddr, bool)>);

/// Addresses, and whether each is forced.
impl FromIterator<(SocketAddr, bool)> for Drained {
    fn from_iter<T: IntoIterator<Item = (SocketAddr, bool)>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

impl Drained {
    /// Drains these addresses among `all` of a backend, and ends the draining of the others.
    pub fn apply<'s>(
        &self,
        name: &BackendName,
        all: impl Iterator<Item = (SocketAddr, &'s AddressState)> + Clone,
    ) {
        let entry = |address| self.0.iter().find(|(drained, _)| *drained == address);
        let is_any_left = all.clone().any(|(address, _)| entry(address).is_none());
        for (address, state) in all {
            let is_drained = entry(address).is_some_and(|(_, forced)| *forced || is_any_left);
            state.drain(is_drained, name, address);
        }
    }
}
