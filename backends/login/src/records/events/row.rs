//! Reads events from rows.

use signpost_kit::clock::StoredTime;
use signpost_store::StoredRow;

use super::Event;

/// Reads the columns `id`, `event`, `data` and `received_at`.
pub(super) fn event_from_row<R: StoredRow>(row: &R) -> Result<Event, R::Error> {
    Ok(Event {
        id: row.number("id")?,
        name: row.parsed("event")?,
        data: row.optional_text("data")?.map(str::to_owned),
        received_at: row.time("received_at")?,
    })
}
