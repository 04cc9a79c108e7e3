//! `GET /user`: returns the user's account. CONTRACT 8.

use axum::Json;

use crate::http::{request::AuthenticatedUser, views::Views};

/// Returns the account in the format of the version.
pub(crate) async fn user<V: Views>(user: AuthenticatedUser) -> Json<V::Account> {
    Json((&user.logged_in.account).into())
}
