//! `GET /login?state=…&code=…` and `&error=…`: the provider sends the browser back. CONTRACT 8.

use axum::{
    Json,
    response::{IntoResponse, Response},
};

use super::{cookie, found};
use crate::{
    error::LoginError,
    flow::{Callback, End, Visit, finish_login},
    pages,
    request::RequestInfo,
    service::Serving,
    views::{LoginResultView, Views},
};

/// Completes or fails the login. Its cookie is taken away in either case.
pub(super) async fn callback<V: Views>(
    serving: &Serving,
    info: &RequestInfo,
    visit: &Visit<'_>,
    callback: &Callback<'_>,
) -> Result<Response, LoginError> {
    let finished = finish_login(&serving.service, visit, callback).await?;
    let answer = match finished.end {
        End::ReturnTo(url) => found(&url)?,
        End::Result(result) => {
            Json(LoginResultView::<V>::new(&result, serving.service.now())).into_response()
        }
        End::Close(application) => pages::done(&application.name, info.page_language),
        End::Problem(problem) => problem.into_response(),
    };
    Ok((cookie(finished.remove_cookie), answer).into_response())
}
