//! A request's way from one address to the next. CONTRACT 5.

use std::{net::SocketAddr, sync::Arc};

use smallvec::SmallVec;

use super::address::{Address, UnderWay};

/// Limit of addresses for one request: if more are down, waiting longer does not help the client.
const MOST: usize = 3;

/// How a request was sent so far: to which addresses, where there are several.
#[derive(Debug, Default)]
pub struct Attempts {
    current: Option<UnderWay>,
    failed: SmallVec<[Arc<Address>; MOST - 1]>,
}

impl Attempts {
    /// The address that it was sent to last: the one that serves it, or failed to.
    #[must_use]
    pub(crate) fn last(&self) -> Option<&Arc<Address>> {
        self.current().or_else(|| self.failed.last())
    }

    pub(super) fn begin(&mut self, address: &Arc<Address>) -> SocketAddr {
        self.current = Some(UnderWay::begin(address));
        address.socket()
    }

    /// The address that it is in flight to, one of several.
    pub(super) fn current(&self) -> Option<&Arc<Address>> {
        self.current.as_ref().map(UnderWay::address)
    }

    /// The address that it was sent to last did not serve it.
    pub(super) fn give_up(&mut self) {
        if let Some(failed) = self.current.take() {
            self.failed.push(Arc::clone(failed.address()));
        }
    }

    /// Whether it may go there: not a second time, nor as one too many.
    pub(super) fn may_try(&self, address: &Address) -> bool {
        let tried = self.failed.iter().chain(self.current());
        let is_new = |tried: &Arc<Address>| tried.socket() != address.socket();
        tried.clone().count() < MOST && tried.clone().all(is_new)
    }
}
