//! `/api/v1/apps`: applications.

pub(super) mod change;
pub(super) mod transfer;

use axum::{Json, extract::State, response::IntoResponse};
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use signpost_protocol::{
    app::AppIdent,
    sign::{ReplayPolicy, SignAlgorithm, SignCover, SignProfile},
    version::Version,
};
use utoipa::ToSchema;

use super::{
    ApiError, Shared,
    body::{Input, List, Params, Segment, Why, etag, limit, not_null, parsed},
    caller::Caller,
    problem::Code,
};
use crate::{
    config::OwnRate,
    directory::{
        apps::{
            AppState,
            administration::Listing,
            rules::{Origin, ProfileChoice},
            seal::{new_app_ident, new_app_key},
            store::{AppStoreError, AppSummary, NewApp},
        },
        logins::EndedLogins,
    },
};

/// An application and its new key, which is shown only once.
#[derive(Serialize, ToSchema)]
pub(super) struct WithKey {
    app: AppSummary,
    /// The key that its clients sign with.
    #[schema(value_type = String)]
    key: String,
}

/// Which applications.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {
    /// Only the application with this ident, and those whose names begin with this text, by name. Otherwise all, oldest
    /// first.
    search: Option<String>,
    /// Maximum number of items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// Lists applications.
#[utoipa::path(get, path = "/api/v1/apps", tag = "apps", params(ListParams), responses((status = OK, description = "A page.", body = List<AppSummary>)))]
pub(super) async fn list(
    State(api): State<Shared>,
    Params(params): Params<ListParams>,
) -> Result<Json<List<AppSummary>>, ApiError> {
    let after = params.after.as_deref().map(|text| parsed("after", text));
    let listing = Listing {
        search: params.search,
        after: after.transpose()?,
        limit: limit(params.limit)?,
    };
    let page = api.administration().list(&listing).await?;
    let next = page.next.map(|next| next.to_string());
    Ok(Json(List {
        items: page.apps,
        next,
    }))
}

/// Shows an application.
#[utoipa::path(get, path = "/api/v1/apps/{ident}", tag = "apps", params(("ident" = String, Path)), responses((status = OK, description = "Its state.", body = AppSummary, headers(("ETag" = String)))))]
pub(super) async fn show(
    State(api): State<Shared>,
    Segment(ident): Segment,
) -> Result<impl IntoResponse, ApiError> {
    let app = api.administration().show(known_ident(&ident)?).await?;
    Ok((etag(app.revision), Json(app)))
}

/// A new application.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAppInput {
    /// The display name, shown to users on login pages: 1 to 64 characters.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// Origins that a login may return to.
    #[serde(default)]
    return_to: Vec<String>,
    /// Its own sign profile; without one, it has the gateway's.
    profile: Option<ProfileInput>,
    /// The version for requests that name none.
    default_version: Option<String>,
    /// Its own rate limit, for example "100/200" (a second, at once), or "unlimited".
    rate_limit: Option<String>,
    /// Why, for the audit.
    reason: Option<String>,
}

/// Settings of a sign profile of its own; those that are absent stay the gateway's, or as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileInput {
    /// How the canonical string is written: plain, decoded, bilibili, alipay, wechat or top.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(nullable = false)]
    preset: Option<String>,
    /// md5 or hmac-sha256.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = Option<String>, nullable = false)]
    algorithm: Option<SignAlgorithm>,
    /// parameters or request.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = Option<String>, nullable = false)]
    cover: Option<SignCover>,
    /// allow or reject.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = Option<String>, nullable = false)]
    replay: Option<ReplayPolicy>,
}

impl ProfileInput {
    fn choice(self) -> Result<ProfileChoice, ApiError> {
        let preset = |name: String| {
            let unknown = || ApiError::invalid("profile.preset", SignProfile::PRESETS.join(", "));
            SignProfile::preset(&name).ok_or_else(unknown)
        };
        Ok(ProfileChoice {
            preset: self.preset.map(preset).transpose()?,
            algorithm: self.algorithm,
            cover: self.cover,
            replay: self.replay,
        })
    }
}

/// Creates an application. Its key is shown in this response only.
#[utoipa::path(post, path = "/api/v1/apps/create", tag = "apps", request_body = NewAppInput, responses((status = CREATED, description = "Its state and key.", body = WithKey, headers(("ETag" = String), ("Location" = String)))))]
pub(super) async fn create(
    State(api): State<Shared>,
    caller: Caller,
    Input(new): Input<NewAppInput>,
) -> Result<impl IntoResponse, ApiError> {
    let administration = api.administration();
    let choice = new.profile.map(ProfileInput::choice).transpose()?;
    let app = NewApp {
        ident: new_app_ident().map_err(AppStoreError::from)?,
        key: new_app_key().map_err(AppStoreError::from)?,
        name: parsed("name", &new.name)?,
        profile: choice
            .as_ref()
            .and_then(|choice| administration.profile_of(choice)),
        return_to: origins(&new.return_to)?,
        default_version: new.default_version.as_deref().map(version).transpose()?,
        rate_limit: new.rate_limit.as_deref().map(rate).transpose()?,
        state: AppState::Active,
        created_at: caller.at,
    };
    let (ident, key) = (app.ident, app.key.expose().to_owned());
    let app = administration
        .create(app, caller.author(new.reason.as_deref())?)
        .await?;
    let location =
        HeaderValue::try_from(format!("/api/v1/apps/{ident}")).map_err(ApiError::internal)?;
    let headers = [(header::LOCATION, location)];
    Ok((
        StatusCode::CREATED,
        etag(app.revision),
        headers,
        Json(WithKey { app, key }),
    ))
}

/// Ends all logins to an application: every gateway and login service rejects their credentials within a second. Its users can
/// log in again. The application itself does not change, so that no revision is named.
#[utoipa::path(post, path = "/api/v1/apps/{ident}/logout", tag = "apps", params(("ident" = String, Path)), request_body = Why, responses((status = OK, description = "How many were ended.", body = EndedLogins)))]
pub(super) async fn logout(
    State(api): State<Shared>,
    caller: Caller,
    Segment(ident): Segment,
    Input(why): Input<Why>,
) -> Result<Json<EndedLogins>, ApiError> {
    let author = caller.author(why.reason.as_deref())?;
    let ident = known_ident(&ident)?;
    let logins = api.logins();
    let ended = logins.end_of_app(Some(ident), author, caller.at);
    Ok(Json(ended.await?))
}

/// The ident of a path: what is none names no application.
pub(super) fn known_ident(text: &str) -> Result<AppIdent, ApiError> {
    text.parse().map_err(|_| Code::AppNotFound.into())
}

fn origins(texts: &[String]) -> Result<Vec<Origin>, ApiError> {
    texts.iter().map(|text| parsed("return_to", text)).collect()
}

fn version(text: &str) -> Result<Version, ApiError> {
    parsed("default_version", text)
}

fn rate(text: &str) -> Result<OwnRate, ApiError> {
    parsed("rate_limit", text)
}
