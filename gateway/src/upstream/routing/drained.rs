//! The addresses of a backend that operators have drained.

use std::net::SocketAddr;

use super::address::AddressState;
use crate::config::BackendName;

/// Addresses that get no new requests. If no other one is left, only those that are forced get none: a draining does not make
/// a backend unavailable, also if its other addresses are drained or removed later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drained(Vec<(SocketAddr, bool)>);

/// Addresses, and whether each is forced.
impl FromIterator<(SocketAddr, bool)> for Drained {
    fn from_iter<T: IntoIterator<Item = (SocketAddr, bool)>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

impl Drained {
    /// Drains these addresses among `all` of a backend, and ends the draining of the others.
    pub(crate) fn apply<'s>(
        &self,
        name: &BackendName,
        all: impl Iterator<Item = (SocketAddr, &'s AddressState)> + Clone,
    ) {
        let found = |address| self.0.iter().find(|(drained, _)| *drained == address);
        let is_any_left = all.clone().any(|(address, _)| found(address).is_none());
        for (address, state) in all {
            let is_drained = found(address).is_some_and(|(_, forced)| *forced || is_any_left);
            state.drain(is_drained, name, address);
        }
    }
}
