//! The addresses that a request was sent to. CONTRACT 5.

use std::sync::Arc;

use smallvec::SmallVec;

use super::address::{Address, InFlightRequest};
use crate::tls::backend::Endpoint;

/// Limit of addresses for one request: if this many fail, waiting longer does not help the client.
const MAX_ADDRESSES: usize = 3;

/// The attempts of a request to a version with several addresses.
#[derive(Debug, Default)]
pub struct Attempts {
    current: Option<InFlightRequest>,
    failed: SmallVec<[Arc<Address>; MAX_ADDRESSES - 1]>,
}

impl Attempts {
    /// The address of the last attempt, whether it failed or not.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<Address>> {
        self.current().or_else(|| self.failed.last())
    }

    pub(super) fn begin(&mut self, address: &Arc<Address>) -> Endpoint {
        self.current = Some(InFlightRequest::begin(address));
        address.endpoint.clone()
    }

    /// The address that the request is in flight to.
    pub(super) fn current(&self) -> Option<&Arc<Address>> {
        self.current.as_ref().map(InFlightRequest::address)
    }

    /// Marks the current attempt as failed.
    pub(super) fn mark_failed(&mut self) {
        if let Some(failed) = self.current.take() {
            self.failed.push(Arc::clone(failed.address()));
        }
    }

    /// Whether the request may be sent to `address`: not twice, and within the limit.
    pub(super) fn may_try(&self, address: &Address) -> bool {
        let tried = self.failed.iter().chain(self.current());
        // By address, not by object: a lookup between two attempts may have replaced the object.
        let is_new = |tried: &Arc<Address>| tried.socket() != address.socket();
        tried.clone().count() < MAX_ADDRESSES && tried.clone().all(is_new)
    }
}
