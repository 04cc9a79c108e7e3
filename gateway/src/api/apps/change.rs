//! Changes of an application. Each names the revision that it was decided upon.

use std::time::Duration;

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Request},
    response::IntoResponse,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use signpost_protocol::app::AppIdent;
use utoipa::ToSchema;

use super::{ProfileInput, WithKey, known_ident, origins, rate, version};
use crate::{
    api::{
        ApiError, Shared,
        body::{Decision, Input, Segment, etag, not_null, parsed, revision},
        caller::Caller,
    },
    directory::apps::{
        AppState,
        administration::{Administration, AdministrationError, AppChanges, Change, ChangeRequest},
        store::AppSummary,
    },
};

/// Hours for which the old key stays valid, if a rotation names none.
const DEFAULT_OVERLAP_HOURS: u64 = 24;

/// A change of the application of the path, as it was decided.
pub(in crate::api) struct Changing<T> {
    apps: Administration,
    ident: AppIdent,
    request: ChangeRequest,
    body: T,
}

/// A body that names the revision that its change was decided upon, and says why.
pub(in crate::api) trait Decided: DeserializeOwned {
    fn decision(&self) -> (Option<i64>, Option<&str>);
}

macro_rules! decided {
    ($($body:ident),*) => {$(
        impl Decided for $body {
            fn decision(&self) -> (Option<i64>, Option<&str>) {
                (self.revision, self.reason.as_deref())
            }
        }
    )*};
}

decided!(Update, Rotation, Decision);

impl<T: Decided> FromRequest<Shared> for Changing<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Shared) -> Result<Self, ApiError> {
        let (mut head, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut head, api).await?;
        let Segment(ident) = Segment::from_request_parts(&mut head, api).await?;
        let headers = head.headers.clone();
        let request = Request::from_parts(head, body);
        let Input(body) = Input::<T>::from_request(request, api).await?;
        let (seen, reason) = body.decision();
        let request = ChangeRequest {
            author: caller.author(reason)?,
            at: caller.at,
            revision: Some(revision(&headers, seen)?),
        };
        let ident = known_ident(&ident)?;
        Ok(Self {
            apps: api.administration(),
            ident,
            request,
            body,
        })
    }
}

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
    #[serde(default, deserialize_with = "not_null")]
    #[schema(nullable = false)]
    name: Option<String>,
    /// Origins that a login may return to; replaces all of them. Null removes them.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    return_to: Change<Vec<String>>,
    /// Settings of its own sign profile; null removes it.
    #[serde(default)]
    #[schema(value_type = Option<ProfileInput>)]
    profile: Change<ProfileInput>,
    /// The version for requests that name none; null: the gateway's.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    default_version: Change<String>,
    /// Its own rate limit; null: the gateway's.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    rate_limit: Change<String>,
}

/// Changes an application's settings.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/update", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Update, responses((status = OK, description = "Its state.", body = AppSummary, headers(("ETag" = String)))))]
pub(in crate::api) async fn update(
    change: Changing<Update>,
) -> Result<impl IntoResponse, ApiError> {
    let update = change.body;
    let name = update.name.as_deref().map(|text| parsed("name", text));
    let changes = AppChanges {
        name: name.transpose()?,
        return_to: update.return_to.try_map(|texts| origins(&texts))?,
        profile: update.profile.try_map(ProfileInput::choice)?,
        default_version: update.default_version.try_map(|text| version(&text))?,
        rate_limit: update.rate_limit.try_map(|text| rate(&text))?,
    };
    let updated = change.apps.update(change.ident, &changes, change.request);
    shown(updated.await)
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
    #[serde(default, deserialize_with = "not_null")]
    #[schema(minimum = 0, maximum = 720, default = 24, nullable = false)]
    overlap_hours: Option<u64>,
}

/// Replaces an application's key. The new key is shown in this response only.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/rotate", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Rotation, responses((status = OK, description = "Its state and the new key.", body = WithKey, headers(("ETag" = String)))))]
pub(in crate::api) async fn rotate(
    change: Changing<Rotation>,
) -> Result<impl IntoResponse, ApiError> {
    let hours = change.body.overlap_hours.unwrap_or(DEFAULT_OVERLAP_HOURS);
    let overlap = Duration::from_secs(hours.saturating_mul(3600));
    let rotated = change.apps.rotate(change.ident, overlap, change.request);
    let (app, key) = rotated.await?;
    let key = key.expose().to_owned();
    Ok((etag(app.revision), Json(WithKey { app, key })))
}

/// Ends the validity of the key before the last rotation.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/end-overlap", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Decision, responses((status = OK, description = "Its state.", body = AppSummary, headers(("ETag" = String)))))]
pub(in crate::api) async fn end_overlap(
    change: Changing<Decision>,
) -> Result<impl IntoResponse, ApiError> {
    let ended = change.apps.end_overlap(change.ident, change.request);
    shown(ended.await)
}

/// Accepts a disabled application's requests again.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/enable", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Decision, responses((status = OK, description = "Its state.", body = AppSummary, headers(("ETag" = String)))))]
pub(in crate::api) async fn enable(
    change: Changing<Decision>,
) -> Result<impl IntoResponse, ApiError> {
    set_state(change, AppState::Active).await
}

/// Rejects an application's requests.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/disable", tag = "apps", params(("ident" = String, Path), ("If-Match" = Option<String>, Header, description = "The revision that the change was decided upon, as in `ETag`; the body can name it, too.")), request_body = Decision, responses((status = OK, description = "Its state.", body = AppSummary, headers(("ETag" = String)))))]
pub(in crate::api) async fn disable(
    change: Changing<Decision>,
) -> Result<impl IntoResponse, ApiError> {
    set_state(change, AppState::Disabled).await
}

async fn set_state(
    change: Changing<Decision>,
    state: AppState,
) -> Result<impl IntoResponse, ApiError> {
    let set = change.apps.set_state(change.ident, state, change.request);
    shown(set.await)
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
pub(in crate::api) async fn delete(change: Changing<Decision>) -> Result<Json<Deleted>, ApiError> {
    change.apps.delete(change.ident, change.request).await?;
    let deleted = change.ident.to_string();
    Ok(Json(Deleted { deleted }))
}

fn shown(app: Result<AppSummary, AdministrationError>) -> Result<impl IntoResponse, ApiError> {
    let app = app?;
    Ok((etag(app.revision), Json(app)))
}
