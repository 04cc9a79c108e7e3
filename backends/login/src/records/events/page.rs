//! A page of an account's events.

use signpost_protocol::app::AppId;
use signpost_store::StoreError;

use super::{Event, EventCursor, Events};
use crate::records::accounts::AccountId;

/// Which events a page has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventQuery {
    /// The account that the events concern.
    pub(crate) account: AccountId,
    /// The application that has reported them: no other one shows them.
    pub(crate) application: AppId,
    /// Where the page begins; `None` is the newest event.
    pub(crate) before: Option<EventCursor>,
    /// The largest number of events.
    pub(crate) limit: u64,
}

/// Events, the newest first.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// Where the next page begins; `None` if there are no older events.
    pub next: Option<EventCursor>,
}

impl EventPage {
    /// The largest number of events of a page. With 4 KiB of data each, a page takes about 400 KiB of memory.
    pub const MAX_EVENTS: u64 = 100;

    /// Reads a page. It has one event at least, if there is one, and [`Self::MAX_EVENTS`] at most.
    pub(crate) async fn read(store: &Events, query: EventQuery) -> Result<Self, StoreError> {
        let limit = query.limit.clamp(1, Self::MAX_EVENTS);
        // One more than asked for shows whether there is a next page.
        let query = EventQuery {
            limit: limit + 1,
            ..query
        };
        let mut events = store.list(query).await?;
        let size = usize::try_from(limit).expect("at most 100");
        let has_more = events.len() > size;
        events.truncate(size);
        let last = events.last().filter(|_| has_more);
        Ok(Self {
            next: last.map(|event| EventCursor::behind(event.id)),
            events,
        })
    }
}
