//! The record of the access token's user: Bitbucket's profile, GitHub's user, an `OpenID` provider's userinfo.

use std::sync::Arc;

use axum::{
    Json,
    extract::{ConnectInfo, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::{fault::PeerSocket, provider::Provider};

/// Returns the record, in the shape's format.
pub async fn show(
    State(provider): State<Arc<Provider>>,
    ConnectInfo(peer): ConnectInfo<PeerSocket>,
    headers: HeaderMap,
) -> Response {
    provider.counts.profile.add_one();
    let grant = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .and_then(|access_token| provider.grants.bearer(access_token));
    let answer = provider.shape.user(&headers, grant.as_ref());
    let fault = grant.and_then(|grant| grant.user.profile_fault);
    match fault {
        Some(fault) if answer.status == StatusCode::OK => {
            let field = provider.shape.id_field();
            fault
                .spoil(answer.body, field, &peer, &provider.settings)
                .await
        }
        _ if answer.status == StatusCode::UNAUTHORIZED => {
            // RFC 6750 section 3.
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")];
            (answer.status, challenge, Json(answer.body)).into_response()
        }
        _ => (answer.status, Json(answer.body)).into_response(),
    }
}
