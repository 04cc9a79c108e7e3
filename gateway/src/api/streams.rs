//! What all streams of server-sent events have: a limited number of places, and an end when their token ends.
//!
//! | what | limit |
//! | --- | --- |
//! | streams; of them with one token | 64; 16 |
//! | time after which an ended or revoked token ends its stream | 5 s |

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::response::{
    IntoResponse,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::stream::{Stream, StreamExt};
use tokio::time::Instant;

use super::{ApiError, Shared, problem::Code};

/// Limit on streams.
pub(super) const MAX_STREAMS: usize = 64;
/// Limit on streams with one token: others get some, too.
pub(super) const MAX_STREAMS_OF_TOKEN: usize = 16;
/// When a client that gets no stream should try again; also what browsers wait before they connect again.
pub(super) const RETRY: Duration = Duration::from_secs(5);
/// Time from one comment to the next, while there are no events.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Time from one check of the token to the next.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The tokens of the streams, one for each.
type Places = Mutex<Vec<i64>>;

/// The streams of this process.
#[derive(Default)]
pub(super) struct Streams(Arc<Places>);

/// The place of a stream, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    /// The id of its token.
    pub token: i64,
    /// When the token is checked again.
    pub check_at: Instant,
}

impl Streams {
    /// A place for a stream with this token.
    ///
    /// # Errors
    ///
    /// This token or all have as many as they may.
    pub(super) fn take(&self, token: i64) -> Result<Place, ApiError> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.iter().filter(|one| **one == token).count();
        if taken.len() >= MAX_STREAMS || own >= MAX_STREAMS_OF_TOKEN {
            return Err(ApiError::from(Code::RateLimited).retry_after(RETRY));
        }
        taken.push(token);
        Ok(Place {
            places: Arc::clone(&self.0),
            token,
            check_at: Instant::now() + CHECK_INTERVAL,
        })
    }
}

impl Place {
    /// Checks the token if it is time to; `None` if it has ended, or the store does not answer.
    pub(super) async fn check(&mut self, api: &Shared) -> Option<()> {
        if Instant::now() < self.check_at {
            return Some(());
        }
        // The console ends the streams of those who have signed in by an account.
        if self.token < 0 {
            self.check_at = Instant::now() + CHECK_INTERVAL;
            return Some(());
        }
        let now = api.current.load().state.clock.now();
        let found = api.tokens.list(Some(self.token - 1), 1).await;
        let (found, _) = found.ok()?;
        let token = found.first().filter(|token| token.id == self.token)?;
        self.check_at = Instant::now() + CHECK_INTERVAL;
        (token.revoked_at.is_none() && token.expires_at > now).then_some(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = taken.iter().position(|one| *one == self.token) {
            taken.swap_remove(place);
        }
    }
}

/// The response of a stream.
pub(super) fn response(events: impl Stream<Item = Event> + Send + 'static) -> impl IntoResponse {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive)
}
