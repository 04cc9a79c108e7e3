//! `/api/v1/accounts`: users, as far as operators end their logins.

use axum::{Json, extract::State};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    ApiError, Shared,
    body::{Input, known_ident},
    caller::Caller,
};
use crate::administration::logins::{AccountName, EndedLogins};

/// Whose logins are ended.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountLogout {
    /// The provider's name in the configuration of the login service: an account's `provider`, in v1 its `type`.
    provider: String,
    /// The account's `username`.
    username: String,
    /// Only logins to the application with this ident.
    app: Option<String>,
    /// Why, for the audit: up to 200 characters.
    reason: Option<String>,
}

/// Ends all logins of an account, or only those to an application: every gateway and login service rejects their credentials
/// within a second. The user can log in again.
#[utoipa::path(post, path = "/api/v1/accounts/logout", tag = "accounts", request_body = AccountLogout, responses((status = OK, description = "How many were ended.", body = EndedLogins)))]
pub(super) async fn logout(
    State(api): State<Shared>,
    caller: Caller,
    Input(input): Input<AccountLogout>,
) -> Result<Json<EndedLogins>, ApiError> {
    let author = caller.author(input.reason.as_deref())?;
    let app = input.app.as_deref().map(known_ident).transpose()?;
    let name = AccountName {
        provider: input.provider,
        username: input.username,
    };
    let logins = api.logins();
    let ended = logins.end_of_account(&name, app, author, caller.at);
    Ok(Json(ended.await?))
}
