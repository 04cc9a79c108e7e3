//! A request's way from one address to the next. CONTRACT 5.

use std::{net::SocketAddr, sync::Arc};

use smallvec::SmallVec;

use super::address::{Address, UnderWay};

/// A request goes to no more addresses than this: with more away than that, waiting on longer helps nobody.
const MOST: usize = 3;

/// How a request was sent so far: to which addresses, where there are several.
#[derive(Debug, Default)]
pub struct Attempts {
    current: Option<UnderWay>,
    failed: SmallVec<[Arc<Address>; MOST - 1]>,
    again: Again,
}

/// Whether a request goes to the same address a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Again {
    #[default]
    No,
    /// The next time that it is sent.
    Next,
    /// It did, which is as often as it may.
    Done,
}

impl Attempts {
    /// The address that it was sent to last: the one that serves it, or failed to.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<Address>> {
        self.current().or_else(|| self.failed.last())
    }

    pub(super) fn begin(&mut self, address: &Arc<Address>) -> SocketAddr {
        self.current = Some(UnderWay::begin(address));
        address.socket()
    }

    /// The address that it is under way to, one of several.
    pub(super) fn current(&self) -> Option<&Arc<Address>> {
        self.current.as_ref().map(UnderWay::address)
    }

    /// The address that it was sent to last did not serve it.
    pub(super) fn give_up(&mut self) {
        if let Some(failed) = self.current.take() {
            self.failed.push(Arc::clone(failed.address()));
        }
    }

    /// It goes to the same address next, if it may: a kept connection had ended, and each request gets one more try
    /// for that, over a new one. What ended one may have ended all that are kept.
    pub fn stay(&mut self) -> bool {
        let may_stay = self.again == Again::No;
        if may_stay {
            self.again = Again::Next;
        }
        may_stay
    }

    /// Whether it goes to the same address now, over a new connection. To be asked once each time that it is sent.
    pub fn stays(&mut self) -> bool {
        let stays = self.again == Again::Next;
        if stays {
            self.again = Again::Done;
        }
        stays
    }

    /// Whether it may go there: not a second time, nor as one too many.
    pub(super) fn may_try(&self, address: &Address) -> bool {
        let tried = self.failed.iter().chain(self.current());
        let is_new = |tried: &Arc<Address>| tried.socket() != address.socket();
        tried.clone().count() < MOST && tried.clone().all(is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_stays_once() {
        let mut attempts = Attempts::default();
        assert!(!attempts.stays());
        assert!(attempts.stay());
        assert!(attempts.stays() && !attempts.stays());
        assert!(!attempts.stay() && !attempts.stays());
    }
}
