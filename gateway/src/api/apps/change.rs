//! Changes of an application. Each names the revision that it was decided upon.

use std::time::Duration;

use axum::{Json, extract::State, response::IntoResponse};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ProfileInput, WithKey, known_ident, origins, rate, version};
use crate::{
    api::{
        ApiError, Shared,
        body::{Decision, Input, Segment, etag, nullable, parsed, revision},
        caller::Caller,
    },
    directory::apps::{
        AppState,
        administration::{AppChanges, ChangeRequest},
        store::AppSummary,
    },
};

/// Hours for which the old key stays valid, if a rotation names none.
const DEFAULT_OVERLAP_HOURS: u64 = 24;

/// Changes of an application's settings. Members that are absent change nothing; null removes a setting.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct Update {
    /// The revision that the change was decided upon; the header `If-Match` can name it, too.
    #[schema(minimum = 1)]
    revision: Option<i64>,
    /// Why, for the audit: up to 200 characters.
    reason: Option<String>,
    /// The display name.
    name: Option<String>,
    /// Origins that a login may return to; replaces all of them.
    return_to: Option<Vec<String>>,
    /// Settings of its own sign profile; null removes it.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<ProfileInput>)]
    profile: Option<Option<ProfileInput>>,
    /// The version for requests that name none; null: the gateway's.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<String>)]
    default_version: Option<Option<String>>,
    /// Its own rate limit; null: the gateway's.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<String>)]
    rate_limit: Option<Option<String>>,
}

/// Changes an application's settings.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/update", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Update, responses((status = OK, description = "Its state.", body = AppSummary, headers(("ETag" = String)))))]
pub(in crate::api) async fn update(
    State(api): State<Shared>,
    caller: Caller,
    Segment(ident): Segment,
    headers: HeaderMap,
    Input(update): Input<Update>,
) -> Result<impl IntoResponse, ApiError> {
    let request = request(&caller, &headers, update.revision, update.reason.as_deref())?;
    let profile = update
        .profile
        .map(|profile| profile.map(ProfileInput::choice).transpose());
    let version = update
        .default_version
        .map(|new| new.as_deref().map(version).transpose());
    let rate = update
        .rate_limit
        .map(|new| new.as_deref().map(rate).transpose());
    let changes = AppChanges {
        name: update
            .name
            .as_deref()
            .map(|text| parsed("name", text))
            .transpose()?,
        return_to: update.return_to.as_deref().map(origins).transpose()?,
        profile: profile.transpose()?,
        default_version: version.transpose()?,
        rate_limit: rate.transpose()?,
    };
    let ident = known_ident(&ident)?;
    shown(
        api.administration()
            .update(ident, &changes, request)
            .await?,
    )
}

/// A rotation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct Rotation {
    /// The revision that the change was decided upon; the header `If-Match` can name it, too.
    #[schema(minimum = 1)]
    revision: Option<i64>,
    /// Why, for the audit: up to 200 characters.
    reason: Option<String>,
    /// Hours for which the old key stays valid.
    #[schema(minimum = 0, maximum = 720, default = 24)]
    overlap_hours: Option<u64>,
}

/// Replaces an application's key. The new key is shown in this response only.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/rotate", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Rotation, responses((status = OK, description = "Its state and the new key.", body = WithKey, headers(("ETag" = String)))))]
pub(in crate::api) async fn rotate(
    State(api): State<Shared>,
    caller: Caller,
    Segment(ident): Segment,
    headers: HeaderMap,
    Input(rotation): Input<Rotation>,
) -> Result<impl IntoResponse, ApiError> {
    let request = request(
        &caller,
        &headers,
        rotation.revision,
        rotation.reason.as_deref(),
    )?;
    let hours = rotation.overlap_hours.unwrap_or(DEFAULT_OVERLAP_HOURS);
    let overlap = Duration::from_secs(hours.saturating_mul(3600));
    let ident = known_ident(&ident)?;
    let (app, key) = api.administration().rotate(ident, overlap, request).await?;
    let key = key.expose().to_owned();
    Ok((etag(app.revision), Json(WithKey { app, key })))
}

/// Ends the validity of the key before the last rotation.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/end-overlap", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Decision, responses((status = OK, description = "Its state.", body = AppSummary, headers(("ETag" = String)))))]
pub(in crate::api) async fn end_overlap(
    State(api): State<Shared>,
    caller: Caller,
    Segment(ident): Segment,
    headers: HeaderMap,
    Input(decision): Input<Decision>,
) -> Result<impl IntoResponse, ApiError> {
    let request = decided(&caller, &headers, &decision)?;
    let ident = known_ident(&ident)?;
    shown(api.administration().end_overlap(ident, request).await?)
}

/// Accepts a disabled application's requests again.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/enable", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Decision, responses((status = OK, description = "Its state.", body = AppSummary, headers(("ETag" = String)))))]
pub(in crate::api) async fn enable(
    state: State<Shared>,
    caller: Caller,
    ident: Segment,
    headers: HeaderMap,
    decision: Input<Decision>,
) -> Result<impl IntoResponse, ApiError> {
    set_state(state, caller, ident, headers, decision, AppState::Active).await
}

/// Rejects an application's requests.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/disable", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Decision, responses((status = OK, description = "Its state.", body = AppSummary, headers(("ETag" = String)))))]
pub(in crate::api) async fn disable(
    state: State<Shared>,
    caller: Caller,
    ident: Segment,
    headers: HeaderMap,
    decision: Input<Decision>,
) -> Result<impl IntoResponse, ApiError> {
    set_state(state, caller, ident, headers, decision, AppState::Disabled).await
}

async fn set_state(
    State(api): State<Shared>,
    caller: Caller,
    Segment(ident): Segment,
    headers: HeaderMap,
    Input(decision): Input<Decision>,
    state: AppState,
) -> Result<impl IntoResponse, ApiError> {
    let request = decided(&caller, &headers, &decision)?;
    let ident = known_ident(&ident)?;
    shown(
        api.administration()
            .set_state(ident, state, request)
            .await?,
    )
}

/// What a deletion leaves.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Deleted {
    /// What is no more.
    #[schema(value_type = String)]
    deleted: String,
}

/// Deletes an application permanently.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/delete", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Decision, responses((status = OK, description = "It is deleted.", body = Deleted)))]
pub(in crate::api) async fn delete(
    State(api): State<Shared>,
    caller: Caller,
    Segment(ident): Segment,
    headers: HeaderMap,
    Input(decision): Input<Decision>,
) -> Result<Json<Deleted>, ApiError> {
    let request = decided(&caller, &headers, &decision)?;
    let ident = known_ident(&ident)?;
    api.administration().delete(ident, request).await?;
    let deleted = ident.to_string();
    Ok(Json(Deleted { deleted }))
}

fn decided(
    caller: &Caller,
    headers: &HeaderMap,
    decision: &Decision,
) -> Result<ChangeRequest, ApiError> {
    request(
        caller,
        headers,
        decision.revision,
        decision.reason.as_deref(),
    )
}

fn request(
    caller: &Caller,
    headers: &HeaderMap,
    seen: Option<i64>,
    reason: Option<&str>,
) -> Result<ChangeRequest, ApiError> {
    Ok(ChangeRequest {
        author: caller.author(reason)?,
        at: caller.at,
        revision: Some(revision(headers, seen)?),
    })
}

fn shown(app: AppSummary) -> Result<impl IntoResponse, ApiError> {
    Ok((etag(app.revision), Json(app)))
}
