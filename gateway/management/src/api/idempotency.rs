//! Idempotency keys: a request that is repeated with its key changes nothing again, and gets the same response for a day.
//!
//! The row of a key is written before its request runs. If the process ends before the response is in that row, the outcome
//! is not known, and no repetition runs.

use std::net::SocketAddr;

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{FromRequestParts, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, IF_MATCH},
    request::Parts,
};
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};
use signpost_kit::clock::Timestamp;
use signpost_store::tables::idempotency::{self, Earlier};
use tokio::sync::Semaphore;
use utoipa::openapi::{
    ObjectBuilder, Type,
    path::{Parameter, ParameterBuilder, ParameterIn},
};

use super::{
    ApiError, Shared,
    body::{MAX_BODY_BYTES, body_timeout, read},
    caller::{Caller, Proof, authenticate, is_file},
    layers::{Call, rendered},
    problem::{Code, Unchanged},
};
use crate::administration::{import::MAX_FILE_BYTES, tokens::Role};

/// The header with the key.
pub(crate) const KEY: &str = "idempotency-key";
/// Limit of a key's length.
const MAX_KEY_LENGTH: usize = 255;
/// The header of a response that was kept.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Limit of a response that is kept in bytes: far above any.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// Files to import that are held in memory: one here, and another one by its handler. Unit tests share a process.
static FILES: Semaphore = Semaphore::const_new(if cfg!(test) { 64 } else { 1 });

/// A response, as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

/// The description of the header.
pub(super) fn parameter() -> Parameter {
    let key = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_KEY_LENGTH))
        .pattern(Some("^[!-~]+$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .description(Some(
            "A request that is repeated with its key changes nothing again, and gets the same response for a day.",
        ))
        .schema(Some(key))
        .build()
}

/// Runs a POST with an idempotency key once.
pub(super) async fn once(State(api): State<Shared>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST || !request.headers().contains_key(KEY) {
        return next.run(request).await;
    }
    let response = run(&api, request, next).await;
    response.unwrap_or_else(IntoResponse::into_response)
}

async fn run(api: &Shared, request: Request, next: Next) -> Result<Response, ApiError> {
    let (mut head, body) = request.into_parts();
    let caller = Caller::from_request_parts(&mut head, api).await?;
    let row = row_key(given(&head.headers), caller.token.id)?;
    let (permit, limit) = if is_file(&head) {
        let busy = |_| ApiError::from(Code::RateLimited).retry_after(body_timeout(api));
        (Some(FILES.try_acquire().map_err(busy)?), MAX_FILE_BYTES)
    } else {
        (None, MAX_BODY_BYTES)
    };
    let body = read(body, limit, body_timeout(api)).await?;
    if let Some(earlier) = begin(api, &row, caller.at, (&head, &body)).await? {
        return Ok(earlier);
    }
    let call = head.extensions.get::<Call>().cloned();
    let response = next.run(Request::from_parts(head, body.into())).await;
    drop(permit);
    let response = match &call {
        Some(call) => rendered(response, call),
        None => response,
    };
    Ok(keep(api, &row, response).await)
}

/// Runs a form of the console once; it has a key as a call has one. A form that may not run gets its error.
pub(crate) async fn form_once(
    api: &Shared,
    (proof, address): (Proof, SocketAddr),
    (key, head, body): (&str, &Parts, &Bytes),
    run: impl AsyncFnOnce(Option<ApiError>) -> Response,
) -> Response {
    let begun = async {
        // Every form changes something: who may only see writes no row by one.
        let caller = authenticate(api, Role::Operator, address, Some(proof), "console").await?;
        let row = row_key(key.as_bytes(), caller.token.id)?;
        let earlier = begin(api, &row, caller.at, (head, body)).await?;
        Ok::<_, ApiError>((row, earlier))
    };
    match begun.await {
        Ok((_, Some(earlier))) => earlier,
        Ok((row, None)) => {
            let response = run(None).await;
            keep(api, &row, response).await
        }
        Err(error) => run(Some(error)).await,
    }
}

/// Writes the row of a request; or returns the response that was kept for it.
async fn begin(
    api: &Shared,
    row: &[u8; 32],
    at: Timestamp,
    (head, body): (&Parts, &Bytes),
) -> Result<Option<Response>, ApiError> {
    let requests = fingerprints(api, head, body);
    let earlier = idempotency::begin(api.store(), row, &requests[0], at).await?;
    let Some(Earlier { request, response }) = earlier else {
        return Ok(None);
    };
    let replayed = response.map(|sealed| replay(api, row, &sealed));
    // A master key that is no longer known has also hashed the request, so that this cannot be compared.
    let is_lost = matches!(replayed, Some(None));
    if !is_lost && !requests.contains(&request) {
        return Err(Code::IdempotencyConflict.into());
    }
    let replayed = replayed.flatten();
    Ok(Some(replayed.ok_or(Code::IdempotencyUnfinished)?))
}

/// The key that a call has given; empty if it has several.
fn given(headers: &HeaderMap) -> &[u8] {
    let mut fields = headers.get_all(KEY).into_iter();
    match (fields.next(), fields.next()) {
        (Some(field), None) => field.as_bytes(),
        _ => b"",
    }
}

/// The row's key: SHA-256 of token and given key, so that no token gets another one's response.
fn row_key(given: &[u8], token: i64) -> Result<[u8; 32], ApiError> {
    let is_key =
        (1..=MAX_KEY_LENGTH).contains(&given.len()) && given.iter().all(u8::is_ascii_graphic);
    if !is_key {
        let allowed = format!("one key of 1 to {MAX_KEY_LENGTH} visible ASCII characters");
        return Err(ApiError::invalid("Idempotency-Key", allowed));
    }
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(&token.to_be_bytes());
    context.update(given);
    Ok(bytes(context.finish().as_ref()))
}

/// The hashes of what makes the request another one; the first is the one to write. They have a key, since bodies can have
/// applications' keys.
fn fingerprints(api: &Shared, head: &Parts, body: &Bytes) -> Vec<[u8; 32]> {
    let fields = [IF_MATCH, CONTENT_TYPE].into_iter();
    let fields = fields.flat_map(|name| head.headers.get_all(name));
    let fields: Vec<_> = fields.map(HeaderValue::as_bytes).collect();
    let fields = fields.join(&b'\n');
    let target = head
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let hash = |key: hmac::Key| {
        let mut context = hmac::Context::with_key(&key);
        for part in [target.as_bytes(), b"\n", &*fields, b"\n\n", body] {
            context.update(part);
        }
        bytes(context.sign().as_ref())
    };
    let keys = api.apps.sealer().request_keys();
    keys.into_iter().map(hash).collect()
}

fn bytes(hash: &[u8]) -> [u8; 32] {
    hash.try_into().expect("SHA-256 has 32 bytes")
}

/// Keeps a response, unless its request surely changed nothing: then a repetition runs.
async fn keep(api: &Shared, row: &[u8; 32], response: Response) -> Response {
    let status = response.status();
    let is_unchanged = response.extensions().get::<Unchanged>().is_some();
    if status.is_server_error() && !is_unchanged {
        // It may have changed something: the row says that the outcome is not known.
        return response;
    }
    let (head, body) = response.into_parts();
    let body = match to_bytes(body, MAX_RESPONSE_BYTES).await {
        Ok(body) => body,
        Err(error) => return ApiError::internal(error).into_response(),
    };
    let kept = async {
        if is_unchanged {
            return Ok(idempotency::abandon(api.store(), row).await?);
        }
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str()));
        let kept = Kept {
            status: status.as_u16(),
            headers: headers
                .filter_map(|(name, value)| Some((name, value.ok()?.to_owned())))
                .collect(),
            body: String::from_utf8_lossy(&body).into_owned(),
        };
        let sealed = api
            .apps
            .sealer()
            .seal_response(&serde_json::to_vec(&kept)?, row)?;
        anyhow::Ok(idempotency::finish(api.store(), row, sealed).await?)
    };
    if let Err(error) = kept.await {
        // The caller gets its response. Another attempt does not run: the row has no outcome.
        tracing::debug!(
            cause = format!("{error:#}"),
            "a response cannot be kept for repetitions"
        );
    }
    Response::from_parts(head, body.into())
}

/// The response that was kept; `None` if a master key that is no longer known has sealed it.
fn replay(api: &Shared, row: &[u8; 32], sealed: &[u8]) -> Option<Response> {
    let opened = api.apps.sealer().open_response(sealed, row).ok()?;
    let kept: Kept = serde_json::from_slice(&opened).ok()?;
    let mut response = Response::new(Body::from(kept.body));
    *response.status_mut() = StatusCode::from_u16(kept.status).ok()?;
    let headers = response.headers_mut();
    for (name, value) in kept.headers {
        let name = HeaderName::try_from(name).ok()?;
        headers.append(name, HeaderValue::try_from(value).ok()?);
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    headers.remove(CONTENT_LENGTH);
    Some(response)
}
