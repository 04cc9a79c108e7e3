//! Reserves file descriptors for management, backends and the store.

use std::{net::SocketAddr, time::Instant};

use async_trait::async_trait;
use pingora::listeners::ConnectionFilter;
use signpost_kit::{descriptors::Descriptors, once_a_minute::OnceAMinute};

/// Closes clients' new connections while only the reserve is left. Closed rather than queued, so that a load balancer
/// can try another gateway.
#[derive(Debug)]
pub(crate) struct DescriptorReserve {
    descriptors: Descriptors,
    full: OnceAMinute,
}

impl DescriptorReserve {
    /// Creates a filter for this limit.
    #[must_use]
    pub(crate) const fn new(descriptors: Descriptors) -> Self {
        Self {
            descriptors,
            full: OnceAMinute::new(),
        }
    }
}

#[async_trait]
impl ConnectionFilter for DescriptorReserve {
    async fn should_accept(&self, _: Option<&SocketAddr>) -> bool {
        let has_room = self.descriptors.has_room();
        if !has_room && let Some(refused) = self.full.count(Instant::now()) {
            let (limit, reserve) = (self.descriptors.limit(), self.descriptors.reserve());
            tracing::warn!(
                refused,
                "closed {refused} new connections: out of file descriptors (limit {limit}, of which {reserve} are reserved)"
            );
        }
        has_room
    }
}
