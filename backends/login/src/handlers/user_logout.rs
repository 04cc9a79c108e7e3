//! `POST /user/logout`: the credential ends, everywhere. CONTRACT 8.

use axum::{Json, extract::State};
use serde_json::{Map, Value};

use crate::{error::LoginError, request::Person, service::Serving};

/// Ends the credential that the request carries.
pub(crate) async fn user_logout(
    State(serving): State<Serving>,
    person: Person,
) -> Result<Json<Map<String, Value>>, LoginError> {
    serving
        .service
        .state
        .credentials
        .revoke(&person.credential, serving.service.now())
        .await?;
    Ok(Json(Map::new()))
}
