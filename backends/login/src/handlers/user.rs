//! `GET /user`: the account. CONTRACT 8.

use axum::Json;

use crate::{request::Person, views::Views};

/// The account, as the version shows it.
pub(crate) async fn user<V: Views>(person: Person) -> Json<V::Account> {
    Json((&person.logged_in.account).into())
}
