//! `GET /events` (`limit`, `before`): the user's own events, the newest first, by page. CONTRACT 8.

use std::sync::Arc;

use axum::{Json, extract::State};
use login::{
    LoginError, ParamRule, Service, Timestamp,
    events::{Event, EventCursor, EventPage},
    request::{AuthenticatedUser, Parameters},
};
use serde::Serialize;

/// Events of a page without `limit`.
const DEFAULT_LIMIT: u64 = 20;

/// The response.
#[derive(Debug, Serialize)]
pub(crate) struct EventsView {
    events: Vec<EventView>,
    /// `before` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct EventView {
    id: i64,
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    received_at: Timestamp,
}

/// Returns the events that the user's application has reported about the user.
pub(crate) async fn events(
    State(service): State<Arc<Service>>,
    user: AuthenticatedUser,
    parameters: Parameters,
) -> Result<Json<EventsView>, LoginError> {
    let limit = parameters.number("limit", 1..=EventPage::MAX_EVENTS)?;
    let before = parameters.optional("before")?.map(cursor).transpose()?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let page = user.events(&service, before, limit).await?;
    Ok(Json(page.into()))
}

fn cursor(text: &str) -> Result<EventCursor, LoginError> {
    text.parse().map_err(|_| LoginError::ParamInvalid {
        name: "before",
        rule: ParamRule::Values("[A-Za-z0-9_-]{11}".to_owned()),
    })
}

impl From<EventPage> for EventsView {
    fn from(page: EventPage) -> Self {
        Self {
            events: page.events.into_iter().map(EventView::from).collect(),
            next: page.next.map(|next| next.to_string()),
        }
    }
}

impl From<Event> for EventView {
    fn from(event: Event) -> Self {
        Self {
            id: event.id,
            event: event.name.as_str().to_owned(),
            data: event.data,
            received_at: event.received_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: i64, data: Option<&str>) -> Event {
        Event {
            id,
            name: "level.up".parse().unwrap(),
            data: data.map(str::to_owned),
            received_at: Timestamp::from_millis(5),
        }
    }

    #[test]
    fn a_page_has_these_fields_and_no_others() {
        let next = "AAAAAAAAAAc".parse().unwrap();
        let page = EventPage {
            events: vec![event(8, Some("{}")), event(7, None)],
            next: Some(next),
        };
        assert_eq!(
            serde_json::to_string(&EventsView::from(page)).unwrap(),
            concat!(
                r#"{"events":[{"id":8,"event":"level.up","data":"{}","received_at":5},"#,
                r#"{"id":7,"event":"level.up","received_at":5}],"next":"AAAAAAAAAAc"}"#
            )
        );
        let last = EventPage {
            events: vec![],
            next: None,
        };
        assert_eq!(
            serde_json::to_string(&EventsView::from(last)).unwrap(),
            r#"{"events":[]}"#
        );
    }
}
