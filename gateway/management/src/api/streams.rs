//! What all streams of server-sent events have: a limited number of places, and an end when their token ends.
//!
//! | what | limit |
//! | --- | --- |
//! | streams; of them with one token | 64; 16 |
//! | time after which a token that has ended, or a login, ends its stream | 1 s |

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::stream::{Stream, StreamExt};
use http::{HeaderValue, header::CACHE_CONTROL};
use tokio::time::Instant;

use super::{
    ApiError, Shared,
    caller::{CHECK_INTERVAL, Caller, SignedIn},
    problem::Code,
};

/// Limit on streams.
pub(super) const MAX_STREAMS: usize = 64;
/// Limit on streams with one token: others get some, too.
pub(super) const MAX_STREAMS_OF_TOKEN: usize = 16;
/// When a client that gets no stream should try again; also what browsers wait before they connect again.
pub(super) const RETRY: Duration = Duration::from_secs(5);
/// Time from one comment to the next, while there are no events.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
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
    /// The login that takes the place of a token.
    signed_in: Option<SignedIn>,
    /// When the token is checked again.
    pub check_at: Instant,
}

impl Streams {
    /// A place for a stream of this caller.
    ///
    /// # Errors
    ///
    /// Its token or all have as many as they may.
    pub(super) fn take(&self, caller: &Caller) -> Result<Place, ApiError> {
        let token = caller.token.id;
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.iter().filter(|one| **one == token).count();
        if taken.len() >= MAX_STREAMS || own >= MAX_STREAMS_OF_TOKEN {
            return Err(ApiError::from(Code::RateLimited).retry_after(RETRY));
        }
        taken.push(token);
        Ok(Place {
            places: Arc::clone(&self.0),
            token,
            signed_in: caller.signed_in.clone(),
            check_at: Instant::now() + CHECK_INTERVAL,
        })
    }
}

impl Place {
    /// Checks the token, or the login, if it is time to; `None` if it has ended, or the store does not answer.
    pub(super) async fn check(&mut self, api: &Shared) -> Option<()> {
        if Instant::now() < self.check_at {
            return Some(());
        }
        self.check_at = Instant::now() + CHECK_INTERVAL;
        if let Some(signed_in) = &self.signed_in {
            return signed_in.check(api).await.ok();
        }
        let now = api.current.load().state.clock.now();
        let found = api.tokens.list(Some(self.token - 1), 1).await;
        let (found, _) = found.ok()?;
        let token = found.first().filter(|token| token.id == self.token)?;
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
pub(super) fn response(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let events = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive);
    let mut response = events.into_response();
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}
