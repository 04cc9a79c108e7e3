//! `/api/v1/tokens` and `/api/v1/whoami`: who may call.

use std::time::Duration;

use axum::{Json, extract::State, response::IntoResponse};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    ApiError, Shared,
    body::{Input, List, PageParams, Params, Segment, Why, after, limit},
    caller::Caller,
    problem::Code,
};
use crate::administration::tokens::{NewToken, Role, Token, TokenError};

/// Days for which a token is valid, if none are named.
const DEFAULT_DAYS: u64 = 90;

/// A new token, and its text, which is shown only once.
#[derive(Serialize, ToSchema)]
pub(super) struct WithSecret {
    token: Token,
    /// What its user sends as `Authorization: Bearer`.
    secret: String,
}

/// A token to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTokenInput {
    /// Its name, which the audit has as the actor: 1 to 64 characters. No other live token has it.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// What it may do.
    #[schema(inline)]
    role: Role,
    /// Days for which it is valid.
    #[schema(minimum = 1, maximum = 366, default = 90)]
    days: Option<u64>,
    /// Why, for the audit: up to 200 characters.
    reason: Option<String>,
}

/// Shows the token of this call.
#[utoipa::path(get, path = "/api/v1/whoami", tag = "tokens", responses((status = OK, body = Token)))]
pub(super) async fn whoami(caller: Caller) -> Json<Token> {
    Json(caller.token)
}

/// Lists the tokens, also those that are no longer valid, oldest first.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens", params(PageParams), responses((status = OK, body = List<Token>)))]
pub(super) async fn list(
    State(api): State<Shared>,
    Params(params): Params<PageParams>,
) -> Result<Json<List<Token>>, ApiError> {
    let after = after(params.after.as_deref())?;
    let page = api.tokens.list(after, limit(params.limit)?).await?;
    Ok(Json(List::new(page, |token| token.id.to_string())))
}

/// Creates a token. Its text is shown in this response only.
#[utoipa::path(post, path = "/api/v1/tokens/create", tag = "tokens", request_body = NewTokenInput, responses((status = CREATED, body = WithSecret)))]
pub(super) async fn create(
    State(api): State<Shared>,
    caller: Caller,
    Input(new): Input<NewTokenInput>,
) -> Result<impl IntoResponse, ApiError> {
    let author = caller.author(new.reason.as_deref())?;
    let days = new.days.unwrap_or(DEFAULT_DAYS);
    let validity = Duration::from_secs(days.saturating_mul(24 * 60 * 60));
    let new = NewToken {
        name: new.name,
        role: new.role,
        expires_at: caller.at.plus(validity),
    };
    let (token, secret) = api.tokens.create(new, author, caller.at).await?;
    let secret = secret.expose().to_owned();
    Ok((StatusCode::CREATED, Json(WithSecret { token, secret })))
}

/// Revokes a token: every gateway rejects it at once.
#[utoipa::path(post, path = "/api/v1/tokens/{id}/revoke", tag = "tokens", params(("id" = i64, Path)), request_body = Why, responses((status = OK, body = Token)))]
pub(super) async fn revoke(
    State(api): State<Shared>,
    caller: Caller,
    Segment(id): Segment,
    Input(why): Input<Why>,
) -> Result<Json<Token>, ApiError> {
    let id = id.parse().map_err(|_| Code::TokenNotFound)?;
    let author = caller.author(why.reason.as_deref())?;
    Ok(Json(api.tokens.revoke(id, author, caller.at).await?))
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Name => Self::invalid("name", "1 to 64 characters that can be seen"),
            TokenError::End => Self::invalid("days", "1 to 366"),
            TokenError::Taken => Code::TokenTaken.into(),
            TokenError::Unknown => Code::TokenNotFound.into(),
            TokenError::NoRandomness => Self::internal(error),
            TokenError::Store(error) => error.into(),
        }
    }
}
