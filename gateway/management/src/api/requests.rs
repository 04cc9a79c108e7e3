//! `/api/v1/requests`: the requests of this gateway as they end; `/api/v1/rejections`: the last ones that it has rejected.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, sse::Event},
};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use signpost_proxy::{Filter, SeenRequest, Watch, Watched, Watching};
use tokio::time::timeout_at;

use super::{
    ApiError, Shared,
    body::{List, Params, Segment, limit},
    caller::Caller,
    problem::Code,
    streams::{self, Place, RETRY},
};
use crate::{administration::printable::printable_json, reports::rejections};

/// Which requests.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestParams {
    /// Only those that were routed to this version.
    version: Option<String>,
    /// Only those that name this application.
    app: Option<String>,
    /// Only those with this status; 4 and 5 stand for all that begin with them.
    #[param(minimum = 1, maximum = 599)]
    status: Option<u16>,
}

impl RequestParams {
    fn filter(self) -> Result<Filter, ApiError> {
        if let Some(1..=5 | 100..=599) | None = self.status {
            return Ok(Filter {
                version: self.version,
                app: self.app,
                status: self.status,
            });
        }
        Err(ApiError::invalid("status", "1 to 5, or 100 to 599"))
    }
}

/// Streams the requests of this gateway as they end, as server-sent events: each of the type `request` has a request as data,
/// each of the type `missed` the number of those that were left out in a second, since the stream gets at most 50.
#[utoipa::path(
    get, path = "/api/v1/requests", tag = "requests", params(RequestParams),
    responses((status = OK, description = "The requests.", body = String, content_type = "text/event-stream")),
)]
pub(super) async fn stream(
    State(api): State<Shared>,
    caller: Caller,
    Params(params): Params<RequestParams>,
) -> Result<impl IntoResponse, ApiError> {
    let filter = params.filter()?;
    let place = api.streams.take(&caller)?;
    let watching = watch(&api)?.begin(filter);
    let first = Event::default().retry(RETRY).comment("");
    let live = Live {
        api,
        place,
        watching,
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
                Watched::Request(seen) => ("request", json!(*seen)),
                Watched::Missed(requests) => ("missed", json!({ "requests": requests })),
                Watched::Nothing => continue,
            };
            let data = printable_json(&data.to_string());
            return Some(Event::default().event(name).data(data));
        }
    }
}

fn watch(api: &Shared) -> Result<Arc<Watch>, ApiError> {
    let watch = api.current.load().state.records.watch.clone();
    watch.ok_or_else(|| ApiError::internal(anyhow::anyhow!("the API runs, and nothing is watched")))
}

/// Which rejected requests.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectionParams {
    /// Only those that name this application.
    app: Option<String>,
    /// Maximum number of items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// Lists the last requests that this gateway has rejected, newest first. Each of its threads keeps 200.
#[utoipa::path(get, path = "/api/v1/rejections", tag = "requests", params(RejectionParams), responses((status = OK, body = List<SeenRequest>)))]
pub(super) async fn rejections(
    State(api): State<Shared>,
    Params(params): Params<RejectionParams>,
) -> Result<Json<List<SeenRequest>>, ApiError> {
    let limit = limit(params.limit)?;
    let app = params.app.as_deref();
    let is_wanted = |seen: &SeenRequest| app.is_none_or(|app| seen.app.as_deref() == Some(app));
    let items = watch(&api)?.last_rejected(is_wanted, limit);
    Ok(Json(List::new((items, false), |one| {
        one.request_id.clone()
    })))
}

/// Shows a request that was rejected, by the id that its client got: all gateways of the store are asked, for 2 s.
#[utoipa::path(
    get, path = "/api/v1/rejections/{request_id}", tag = "requests",
    params(("request_id" = String, Path, description = "The id, as `X-Request-Id` or the problem has it.")),
    responses((status = OK, description = "The request.", body = SeenRequest)),
)]
pub(super) async fn rejection(
    State(api): State<Shared>,
    Segment(request_id): Segment,
) -> Result<Json<Value>, ApiError> {
    if let Some(own) = watch(&api)?.rejected(&request_id) {
        return Ok(Json(json!(own)));
    }
    // What is no id was sent by no gateway.
    let found = match request_id.parse() {
        Ok(id) => rejections::ask(api.store(), &id).await?,
        Err(_) => None,
    };
    found.map(Json).ok_or_else(|| Code::NotFound.into())
}
