//! Which connections a listener takes: each has a place, or waits for one for a short time.

use std::{net::SocketAddr, sync::Arc, time::Duration, time::Instant};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::timeout,
};

use super::{
    HttpSettings,
    places::{Place, Places, Share, Shares},
};
use crate::{limits::Network, log::once_a_minute::OnceAMinute};

/// Connections above the limit: for health checks, and for those that wait for a place.
pub(super) const SPARE_CONNECTIONS: usize = 64;
/// Share of one network in them: other networks' health checks still find a spare connection.
const SPARE_OF_NETWORK: usize = SPARE_CONNECTIONS / 2;
/// How long a connection above the limit waits for a place: longer than most requests take.
pub(super) const PLACE_TIMEOUT: Duration = Duration::from_secs(1);

/// The places of a listener, and the spares of connections that wait.
#[derive(Default)]
pub(super) struct Admission {
    places: Arc<Places>,
    spares: Arc<Shares>,
    closed: OnceAMinute,
}

/// A connection that is not closed at once.
pub(super) enum Admitted {
    WithPlace(Place),
    /// It waits for a place, and has a spare one until then.
    Waiting(Network, Share),
}

impl Admission {
    /// Takes a place for a new connection, or a spare; `None` if it must be closed. `connections` are open.
    pub(super) fn admit(
        &self,
        connections: usize,
        peer: SocketAddr,
        settings: &HttpSettings,
    ) -> Option<Admitted> {
        // By /48: a single IPv6 site has 65,536 networks, and could take all places with them.
        let network = Network::from_site(peer.ip());
        let place = || self.places.take(network, settings).map(Admitted::WithPlace);
        let spare = || {
            let spare = self.spares.take(network, SPARE_OF_NETWORK);
            spare.map(|spare| Admitted::Waiting(network, spare))
        };
        let is_possible = connections < settings.max_connections + SPARE_CONNECTIONS;
        let admitted = is_possible.then(|| place().or_else(spare)).flatten();
        if admitted.is_none() {
            self.log_closed(settings);
        }
        admitted
    }

    /// The place of an admitted connection, and the spare of one beyond the limit: a health check does not wait. `None` if
    /// no connection is without a request or closed soon. `first` gets the bytes that were read.
    pub(super) async fn place(
        &self,
        admitted: Admitted,
        settings: &HttpSettings,
        stream: &mut (impl AsyncRead + Unpin),
        first: &mut Vec<u8>,
    ) -> Option<(Place, Option<Share>)> {
        let (network, spare) = match admitted {
            Admitted::WithPlace(place) => return Some((place, None)),
            Admitted::Waiting(network, spare) => (network, spare),
        };
        let place = async {
            if begins_with_health_check(stream, first).await {
                Place::beyond_limit()
            } else {
                self.places.wait(network, settings).await
            }
        };
        // One deadline for first bytes and place: a client that sends nothing gives its spare back, too.
        let Ok(place) = timeout(PLACE_TIMEOUT, place).await else {
            self.log_closed(settings);
            return None;
        };
        // With a place, the spare is free at once for the next connection that waits.
        let spare = place.is_beyond_limit().then_some(spare);
        Some((place, spare))
    }

    fn log_closed(&self, settings: &HttpSettings) {
        if let Some(refused) = self.closed.count(Instant::now()) {
            tracing::warn!(
                listener = settings.name,
                refused,
                max_connections = settings.max_connections,
                "all connections are in use, or all that one network may have: closed new ones"
            );
        }
    }
}

impl Admitted {
    /// Time for what precedes HTTP: a connection with a place has the timeout of a head.
    pub(super) fn limit(&self, head: Duration) -> Duration {
        match self {
            Self::WithPlace(_) => head,
            Self::Waiting(..) => head.min(PLACE_TIMEOUT),
        }
    }

    /// Waits until another connection needs its place; for ever without one.
    pub(super) async fn is_needed(&self) {
        match self {
            Self::WithPlace(place) => place.is_needed().await,
            Self::Waiting(..) => std::future::pending().await,
        }
    }
}

/// Reads the first bytes; whether they ask if the program is up or ready.
async fn begins_with_health_check(
    stream: &mut (impl AsyncRead + Unpin),
    first: &mut Vec<u8>,
) -> bool {
    const LONGEST: u64 = b"HEAD /healthz ".len() as u64;
    // The connection's end, or its error, is noticed when it is served.
    let _ = stream.take(LONGEST).read_buf(first).await;
    let path = first.strip_prefix(b"GET ");
    let path = path.or_else(|| first.strip_prefix(b"HEAD "));
    // With the space: `/healthz2` or a path below is not a health check.
    path.is_some_and(|path| path.starts_with(b"/healthz ") || path.starts_with(b"/readyz "))
}
