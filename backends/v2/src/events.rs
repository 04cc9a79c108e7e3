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
mod both_stores {
    use login::testing::TestService;
    use serde_json::json;

    use crate::V2;

    #[tokio::test]
    async fn a_user_reads_the_own_events_by_page() {
        let service = TestService::new::<V2>().await;
        let ada = service.logged_in("ada");
        assert_eq!(ada.get("/events").await.json(), json!({ "events": [] }));
        let level = [("event", "level.up"), ("data", "{}")];
        let first = ada.post("/event/send", level).await.json();
        let last = ada.post("/event/send", [("event", "level.down")]).await;
        let page = ada.get("/events?limit=1").await.json();
        assert_eq!(page["events"], json!([last.json()]));
        let next = page["next"].as_str().unwrap();
        let mut expected = first;
        expected["data"] = "{}".into();
        let page = ada.get(&format!("/events?before={next}")).await;
        assert_eq!(page.json(), json!({ "events": [expected] }));
        for other in [
            service.logged_in("grace"),
            service.logged_in("ada").of_application("shop"),
        ] {
            assert_eq!(other.get("/events").await.json(), json!({ "events": [] }));
        }
        let odd = ada.get("/events?before=x").await;
        assert_eq!(odd.problem(), "param_invalid");
        let stranger = service.get("/events").await;
        assert_eq!(stranger.problem(), "authorization_missing");
    }
}
