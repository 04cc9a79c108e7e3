//! `/api/v1/requests`: the requests of this gateway as they end.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    response::{Response, sse::Event},
};
use futures_util::{
    future::{BoxFuture, ready},
    stream,
};
use http::Uri;
use serde_json::json;
pub(crate) use signpost_proxy::Filter as RequestParams;
use signpost_proxy::{SeenRequest, Watched, Watching};
use tokio::time::timeout_at;

use super::{
    ApiError, Shared,
    caller::Caller,
    layers::Call,
    streams::{self, Place, RETRY},
};
use crate::{
    administration::printable::printable_json,
    operations::{input::of_query, requests::watch},
};

/// Streams the requests of this gateway as they end, as server-sent events: each of the type `request` has a request as data,
/// each of the type `missed` the number of those that were left out in a second, since the stream gets at most 50.
#[utoipa::path(
    get, path = "/api/v1/requests", tag = "requests", params(RequestParams),
    responses((status = OK, description = "The requests.", body = String, content_type = "text/event-stream")),
)]
pub(super) async fn stream(
    State(api): State<Shared>,
    Extension(call): Extension<Call>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, ApiError> {
    let as_json = move |seen: Arc<SeenRequest>| {
        let seen = SeenRequest::clone(&seen).in_language(call.language);
        ready(printable_json(&json!(seen).to_string()))
    };
    let write: Write = Box::new(move |seen| Box::pin(as_json(seen)));
    watch_by(api, &caller, of_query(&uri)?, write)
}

/// Writes the data of a request's event.
pub(crate) type Write = Box<dyn Fn(Arc<SeenRequest>) -> BoxFuture<'static, String> + Send + Sync>;

/// The stream of a caller.
pub(super) fn watch_by(
    api: Shared,
    caller: &Caller,
    params: RequestParams,
    write: Write,
) -> Result<Response, ApiError> {
    let (Some(1..=5 | 100..=599) | None) = params.status else {
        return Err(ApiError::invalid("status", "1 to 5, or 100 to 599"));
    };
    let place = api.streams.take(caller)?;
    let watching = watch(&api.current.load())?.begin(params);
    let first = Event::default().retry(RETRY).comment("");
    let live = Live {
        api,
        place,
        watching,
        write,
        first: Some(first),
    };
    let next = async |mut live: Live| Some((live.next().await?, live));
    Ok(streams::response(stream::unfold(live, next)))
}

/// The requests of one client.
struct Live {
    api: Shared,
    place: Place,
    watching: Watching,
    write: Write,
    /// So that a client knows at once that it is connected.
    first: Option<Event>,
}

impl Live {
    /// The next event; `None` ends the stream.
    async fn next(&mut self) -> Option<Event> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            self.place.check(&self.api).await?;
            // Without a request until then, the token is checked.
            let next = timeout_at(self.place.check_at, self.watching.next());
            let Ok(watched) = next.await else {
                continue;
            };
            let (name, data) = match watched {
                Watched::Request(seen) => ("request", (self.write)(seen).await),
                Watched::Missed(requests) => {
                    ("missed", json!({ "requests": requests }).to_string())
                }
                Watched::Nothing => continue,
            };
            return Some(Event::default().event(name).data(data));
        }
    }
}
