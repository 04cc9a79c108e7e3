//! `POST /site/oauth2/access_token`: exchanges a code for an access token.

use std::sync::Arc;

use axum::{
    Json,
    body::Bytes,
    extract::{ConnectInfo, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use percent_encoding::percent_decode_str;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{Sandbox, Settings, fault::PeerSocket, grant::Grant, parameters::Parameters};

/// Exchanges a code. Errors are those of RFC 6749 section 5.2.
pub async fn exchange(
    State(sandbox): State<Arc<Sandbox>>,
    ConnectInfo(peer): ConnectInfo<PeerSocket>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    sandbox.counts.token.add_one();
    if !is_client(&headers, &sandbox.settings) {
        let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"sandbox\"")];
        return (
            StatusCode::UNAUTHORIZED,
            challenge,
            refusal("invalid_client"),
        )
            .into_response();
    }
    let grant = match redeem(&sandbox, &headers, &body) {
        Ok(grant) => grant,
        Err(error) => return (StatusCode::BAD_REQUEST, refusal(error)).into_response(),
    };
    let fault = grant.user.token_fault;
    let correct = json!({
        "access_token": sandbox.grants.issue_access_token(grant.user),
        "token_type": "bearer",
        "expires_in": 7200,
        "scopes": "account",
        "state": "authorization_code",
    });
    match fault {
        Some(fault) => {
            fault
                .spoil(correct, "access_token", &peer, &sandbox.settings)
                .await
        }
        None => ([(header::CACHE_CONTROL, "no-store")], Json(correct)).into_response(),
    }
}

fn redeem(sandbox: &Sandbox, headers: &HeaderMap, body: &[u8]) -> Result<Grant, &'static str> {
    let is_form = headers.get(header::CONTENT_TYPE).is_some_and(|value| {
        value
            .as_bytes()
            .starts_with(b"application/x-www-form-urlencoded")
    });
    if !is_form {
        return Err("invalid_request");
    }
    let parameters = Parameters::parse(body).map_err(|_| "invalid_request")?;
    if parameters.value("grant_type") != Some("authorization_code") {
        return Err("unsupported_grant_type");
    }
    let code = parameters.value("code").ok_or("invalid_request")?;
    let grant = sandbox.grants.redeem_code(code).ok_or("invalid_grant")?;
    if parameters.value("redirect_uri") != grant.redirect_uri.as_deref() {
        return Err("invalid_grant");
    }
    let challenge = parameters
        .value("code_verifier")
        .map(|verifier| BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())));
    // A verifier without a challenge is rejected too (RFC 9700 section 2.1.1): our login lost its challenge on the way.
    if challenge != grant.code_challenge {
        return Err("invalid_grant");
    }
    Ok(grant)
}

/// Whether the client authenticates by HTTP Basic, both halves form-encoded (RFC 6749 section 2.3.1).
fn is_client(headers: &HeaderMap, settings: &Settings) -> bool {
    let credentials = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Basic "))
        .and_then(|encoded| BASE64_STANDARD.decode(encoded).ok())
        .and_then(|decoded| String::from_utf8(decoded).ok());
    let Some((client_id, client_secret)) = credentials
        .as_deref()
        .and_then(|credentials| credentials.split_once(':'))
    else {
        return false;
    };
    let decode = |half: &str| percent_decode_str(half).decode_utf8_lossy().into_owned();
    decode(client_id) == settings.client_id && decode(client_secret) == settings.client_secret
}

fn refusal(error: &str) -> Json<serde_json::Value> {
    Json(json!({ "error": error, "error_description": format!("sandbox: {error}") }))
}
