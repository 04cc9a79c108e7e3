//! `/api/v1/events`: the rows of the audit as they are written, by whichever gateway or command, as server-sent events.
//!
//! | what | limit |
//! | --- | --- |
//! | rows that a stream can be behind; then it is cut off | 1000 |
//! | time for which a row that is not committed yet delays those behind it | 2 s |
//!
//! | module | subject |
//! | --- | --- |
//! | `feed` | finds new rows, for all streams |
//! | `position` | which rows were seen; the id of an event |

pub(super) mod feed;
mod position;

use std::{collections::VecDeque, sync::Arc};

use axum::{extract::State, response::IntoResponse};
use futures_util::stream;
use http::{HeaderMap, HeaderName};
use signpost_store::{
    StoreError,
    tables::audit::{AuditRow, between, newest_ids},
};
use tokio::{sync::broadcast::Receiver, time::timeout_at};

pub(crate) use self::feed::Events;
use self::{
    feed::{Event, json_of},
    position::Position,
};
use super::{
    ApiError, Shared,
    caller::Caller,
    streams::{self, Place, RETRY},
};

/// Older rows that a stream reads at once, and holds.
const OLDER: usize = 50;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Streams the rows of the audit as they are written, as server-sent events of the type `audit`. The data of each is an
/// item of `/api/v1/audit`.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "audit",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received: the stream continues after it.")),
    responses((status = OK, description = "The events.", body = String, content_type = "text/event-stream")),
)]
pub(super) async fn stream(
    State(api): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let id = headers.get(LAST_EVENT_ID);
    let id = id.map(|id| id.to_str().ok()?.parse().ok());
    let is_malformed = id == Some(None);
    if is_malformed {
        return Err(ApiError::invalid(
            "Last-Event-ID",
            position::ParsePositionError,
        ));
    }
    let place = api.streams.take(&caller)?;
    let stream = Stream::begin(api, id.flatten(), place).await?;
    let next = async |mut stream: Stream| Some((stream.next().await?, stream));
    Ok(streams::response(stream::unfold(stream, next)))
}

/// An event as it is sent.
type Sent = axum::response::sse::Event;

/// What is to be sent.
enum Ready {
    First(Sent),
    /// A row, and what was seen with it. It is written when it is its turn.
    Row(AuditRow, String),
}

/// The events of one client.
struct Stream {
    api: Shared,
    /// What the client has got once `ready` is sent.
    seen: Position,
    ready: VecDeque<Ready>,
    /// New events; `None` while older ones are read.
    live: Option<Receiver<Arc<Event>>>,
    place: Place,
}

impl Stream {
    /// A stream that continues after a position; without one, it begins now.
    async fn begin(api: Shared, last: Option<Position>, place: Place) -> Result<Self, ApiError> {
        let (live, now) = api.events.subscribe().await?;
        let newest = newest_ids(api.store(), 1).await?;
        let newest = newest.first().copied().unwrap_or(0);
        let (live, seen) = match last {
            Some(last) if last.last() <= newest => (None, last),
            // An event of another store, as after a restore, says nothing about what follows.
            _ => (Some(live), now),
        };
        // A client without an event so far also knows where to continue.
        let first = Sent::default().id(seen.to_string()).retry(RETRY);
        Ok(Self {
            api,
            seen,
            ready: [Ready::First(first)].into(),
            live,
            place,
        })
    }

    /// The next event; `None` ends the stream: its client is too slow, its token has ended, or the store does not answer.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            self.place.check(&self.api).await?;
            match self.ready.pop_front() {
                Some(Ready::First(first)) => return Some(first),
                Some(Ready::Row(row, seen)) => return Some(event(&json_of(row), seen)),
                None => {}
            }
            let Some(live) = &mut self.live else {
                self.read_older().await.ok()?;
                continue;
            };
            // Without an event until then, the token is checked.
            let Ok(event) = timeout_at(self.place.check_at, live.recv()).await else {
                continue;
            };
            let event = event.ok()?;
            let is_new = !self.seen.has(event.id);
            self.seen.add_all(&event.position);
            if is_new {
                return Some(self::event(&event.data, self.seen.to_string()));
            }
        }
    }

    /// Reads the next rows that were written before the stream was live; without any, it becomes live.
    async fn read_older(&mut self) -> Result<(), StoreError> {
        let (live, now) = self.api.events.subscribe().await?;
        let Some((first, last)) = self.seen.first_missing(&now) else {
            self.seen.add_all(&now);
            self.live = Some(live);
            return Ok(());
        };
        let turn = self.api.turns.of_stream(self.place.token).await;
        let rows = between(self.api.store(), first..=last, OLDER).await?;
        drop(turn);
        let is_page = rows.len() == OLDER;
        for row in rows {
            self.seen.add(first, row.id);
            self.ready.push_back(Ready::Row(row, self.seen.to_string()));
        }
        if !is_page {
            self.seen.add(first, last);
        }
        Ok(())
    }
}

/// An event, whose id is what was seen with it.
fn event(data: &str, seen: String) -> Sent {
    Sent::default().event("audit").id(seen).data(data)
}
