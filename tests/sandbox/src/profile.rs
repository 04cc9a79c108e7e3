//! `GET /2.0/user`: the profile of the access token's user.

use std::sync::Arc;

use axum::{
    Json,
    extract::{ConnectInfo, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::{Sandbox, fault::PeerSocket};

/// Returns the profile, in Bitbucket's format.
pub async fn show(
    State(sandbox): State<Arc<Sandbox>>,
    ConnectInfo(peer): ConnectInfo<PeerSocket>,
    headers: HeaderMap,
) -> Response {
    sandbox.counts.profile.add_one();
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .and_then(|access_token| sandbox.grants.bearer(access_token));
    let Some(user) = bearer else {
        let refusal = json!({ "type": "error", "error": { "message": "Access token expired." } });
        return (StatusCode::UNAUTHORIZED, Json(refusal)).into_response();
    };
    let uuid = user.uuid();
    let correct = json!({
        "type": "user",
        "uuid": uuid,
        "display_name": user.display_name,
        "nickname": user.name,
        "created_on": "2012-12-10T14:44:13.592000+00:00",
        "links": { "self": { "href": format!("/2.0/users/{uuid}") } },
    });
    match user.profile_fault {
        Some(fault) => fault.spoil(correct, "uuid", &peer, &sandbox.settings).await,
        None => Json(correct).into_response(),
    }
}
