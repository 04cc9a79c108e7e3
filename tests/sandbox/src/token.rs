//! The token endpoint: exchanges a code for an access token.

use std::sync::Arc;

use axum::{
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

use crate::{
    fault::{Fault, PeerSocket},
    grant::Grant,
    id_token,
    parameters::Parameters,
    provider::Provider,
    shape::{Answer, ClientAuth},
};

/// Why a code is not exchanged. Each shape words it in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// Not a form, a parameter twice, no code, or a client that authenticates in two ways.
    MalformedRequest,
    /// No client has this id.
    UnknownClient,
    /// The secret is another, or the client did not authenticate the way that it must.
    WrongSecret,
    /// The `grant_type` is not `authorization_code`.
    UnsupportedGrantType,
    /// The code was never issued, is expired, or was exchanged before.
    UnknownCode,
    /// The `redirect_uri` is not that of the authorization request.
    OtherRedirectUri,
    /// The `code_verifier` does not belong to the challenge (RFC 7636 section 4.6).
    OtherVerifier,
}

impl TokenError {
    /// The response of RFC 6749 section 5.2.
    #[must_use]
    pub fn standard(self) -> Answer {
        let (status, error) = match self {
            Self::MalformedRequest => (StatusCode::BAD_REQUEST, "invalid_request"),
            Self::UnknownClient | Self::WrongSecret => (StatusCode::UNAUTHORIZED, "invalid_client"),
            Self::UnsupportedGrantType => (StatusCode::BAD_REQUEST, "unsupported_grant_type"),
            Self::UnknownCode | Self::OtherRedirectUri | Self::OtherVerifier => {
                (StatusCode::BAD_REQUEST, "invalid_grant")
            }
        };
        let description = format!("sandbox: {error}");
        let body = json!({ "error": error, "error_description": description });
        Answer { status, body }
    }
}

/// Exchanges a code.
pub async fn exchange(
    State(provider): State<Arc<Provider>>,
    ConnectInfo(peer): ConnectInfo<PeerSocket>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    provider.counts.token.add_one();
    let grant = match redeem(&provider, &headers, &body) {
        Ok(grant) => grant,
        Err(error) => return refuse(&provider, &headers, error),
    };
    let access_token = provider.grants.issue_access_token(grant.clone());
    let mut correct = provider.shape.token(&access_token, &grant);
    let mut field = "access_token";
    if provider.keys.is_some() {
        field = "id_token";
        if let Some(id_token) = id_token::issue(&provider, &headers, &access_token, &grant) {
            correct[field] = id_token.into();
        }
    }
    match grant.user.token_fault {
        Some(Fault::Refused) => refuse(&provider, &headers, TokenError::UnknownCode),
        Some(fault) => fault.spoil(correct, field, &peer, &provider.settings).await,
        None => {
            let answer = Answer {
                status: StatusCode::OK,
                body: correct,
            };
            provider.shape.write_token(&headers, answer)
        }
    }
}

fn refuse(provider: &Provider, headers: &HeaderMap, error: TokenError) -> Response {
    let answer = provider.shape.token_error(error);
    if answer.status == StatusCode::UNAUTHORIZED {
        let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"sandbox\"")];
        return (challenge, provider.shape.write_token(headers, answer)).into_response();
    }
    provider.shape.write_token(headers, answer)
}

fn redeem(provider: &Provider, headers: &HeaderMap, body: &[u8]) -> Result<Grant, TokenError> {
    let is_form = headers.get(header::CONTENT_TYPE).is_some_and(|value| {
        value
            .as_bytes()
            .starts_with(b"application/x-www-form-urlencoded")
    });
    let parameters = is_form.then(|| Parameters::parse(body).ok()).flatten();
    authenticate(provider, headers, parameters.as_ref())?;
    let parameters = parameters.ok_or(TokenError::MalformedRequest)?;
    let grant_type = parameters.value("grant_type");
    if provider.shape.needs_grant_type() && grant_type != Some("authorization_code") {
        return Err(TokenError::UnsupportedGrantType);
    }
    let code = parameters
        .value("code")
        .ok_or(TokenError::MalformedRequest)?;
    let grant = provider
        .grants
        .redeem_code(code)
        .ok_or(TokenError::UnknownCode)?;
    if parameters.value("redirect_uri") != grant.redirect_uri.as_deref() {
        return Err(TokenError::OtherRedirectUri);
    }
    let challenge = parameters
        .value("code_verifier")
        .map(|verifier| BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())));
    // A verifier without a challenge is rejected too (RFC 9700 section 2.1.1): our login lost its challenge on the way.
    if challenge != grant.code_challenge {
        return Err(TokenError::OtherVerifier);
    }
    Ok(grant)
}

/// Checks the client's id and secret, which the shape expects in a certain place (RFC 6749 section 2.3.1).
fn authenticate(
    provider: &Provider,
    headers: &HeaderMap,
    form: Option<&Parameters>,
) -> Result<(), TokenError> {
    let basic = basic_credentials(headers);
    let post = form.and_then(post_credentials);
    let given = match provider.shape.client_auth() {
        ClientAuth::Basic => basic,
        ClientAuth::Post => post,
        ClientAuth::Either if basic.is_some() && post.is_some() => {
            return Err(TokenError::MalformedRequest);
        }
        ClientAuth::Either => basic.or(post),
    };
    let (client_id, client_secret) = given.ok_or(TokenError::WrongSecret)?;
    if client_id != provider.settings.client_id {
        return Err(TokenError::UnknownClient);
    }
    if client_secret != provider.settings.client_secret {
        return Err(TokenError::WrongSecret);
    }
    Ok(())
}

/// HTTP Basic, both halves form-encoded.
fn basic_credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let decoded = BASE64_STANDARD.decode(value.strip_prefix("Basic ")?).ok()?;
    let credentials = String::from_utf8(decoded).ok()?;
    let (client_id, client_secret) = credentials.split_once(':')?;
    let decode = |half: &str| percent_decode_str(half).decode_utf8_lossy().into_owned();
    Some((decode(client_id), decode(client_secret)))
}

fn post_credentials(form: &Parameters) -> Option<(String, String)> {
    let client_id = form.value("client_id")?.to_owned();
    let client_secret = form.value("client_secret")?.to_owned();
    Some((client_id, client_secret))
}
