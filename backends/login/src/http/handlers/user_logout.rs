//! `POST /user/logout`: revokes the credential. CONTRACT 8.

use axum::{Json, extract::State};
use serde_json::{Map, Value};

use crate::{error::LoginError, http::request::AuthenticatedUser, service::HandlerContext};

/// Revokes the request's credential in all processes.
pub(crate) async fn user_logout(
    State(context): State<HandlerContext>,
    user: AuthenticatedUser,
) -> Result<Json<Map<String, Value>>, LoginError> {
    context
        .service
        .state
        .credentials
        .revoke(&user.credential, context.service.now())
        .await?;
    Ok(Json(Map::new()))
}
