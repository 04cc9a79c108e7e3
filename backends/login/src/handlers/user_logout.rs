//! `POST /user/logout`: the credential ends, everywhere. CONTRACT 8.

use axum::{Json, extract::State};
use serde_json::{Map, Value};

use crate::{error::LoginError, request::Person, router::Backend};

/// Ends the credential that the request carries.
pub(crate) async fn user_logout(
    State(backend): State<Backend>,
    person: Person,
) -> Result<Json<Map<String, Value>>, LoginError> {
    backend
        .service
        .credentials
        .revoke(&person.credential, backend.service.now())
        .await?;
    Ok(Json(Map::new()))
}
