//! Keeps clients from using up the descriptors that management, backends and the store need.

use std::{net::SocketAddr, time::Instant};

use async_trait::async_trait;
use pingora::listeners::ConnectionFilter;
use signpost_kit::{descriptors::Descriptors, once_a_minute::OnceAMinute};

/// Closes clients' new connections as long as only the reserve is left. They are closed rather than left waiting, so that a
/// balancer can try another gateway.
#[derive(Debug)]
pub(crate) struct DescriptorReserve {
    descriptors: Descriptors,
    full: OnceAMinute,
}

impl DescriptorReserve {
    /// Under this limit.
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
                "{refused} new connections were closed: of {limit} file descriptors, {reserve} are reserved, and the rest is in use"
            );
        }
        has_room
    }
}
