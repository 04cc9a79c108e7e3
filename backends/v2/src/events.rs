//! `GET /events` (`limit`, `before`): the user's own events, the newest first, by page. CONTRACT 8.

use std::sync::Arc;

use axum::{Json, extract::State};
use login::{
    LoginError, ParamRule, Service, Timestamp,
    description::{Operation, number, pattern},
    events::{Event, EventCursor, EventPage},
    request::{AuthenticatedUser, Parameters},
};
use serde::Serialize;
use utoipa::ToSchema;

/// Events of a page without `limit`.
const DEFAULT_LIMIT: u64 = 20;

/// What `before` can be.
const CURSOR: &str = "[A-Za-z0-9_-]{11}";

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Events)]
pub(crate) struct EventsView {
    /// The newest first.
    events: Vec<EventView>,
    /// `before` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// An event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
struct EventView {
    /// Its id, which grows with time.
    id: i64,
    /// Its name.
    event: String,
    /// Its data, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    data: Option<String>,
    /// When it was received: UTC milliseconds since 1970.
    #[schema(value_type = u64)]
    received_at: Timestamp,
}

/// What the document says of it.
pub(crate) fn operation() -> Operation {
    let limit = format!("Events of a page; {DEFAULT_LIMIT} by default.");
    Operation::new("The user's events that the application has reported, the newest first.")
        .user()
        .optional("limit", number(1..=EventPage::MAX_EVENTS), limit)
        .optional("before", pattern(CURSOR), "`next` of the page before.")
        .returns::<EventsView>()
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
        rule: ParamRule::Values(CURSOR.to_owned()),
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
