//! `GET /login?state=…&code=…` and `&error=…`: the callback, to which the provider redirects the browser. CONTRACT 8.

use axum::{
    Json,
    response::{IntoResponse, Response},
};

use super::{cookie, redirect_to};
use crate::{
    error::LoginError,
    flow::{BrowserOutcome, BrowserRequest, Callback, finish_login},
    http::{
        pages,
        request::RequestInfo,
        views::{LoginResultView, Views},
    },
    service::HandlerContext,
};

/// Completes or fails the login, and removes its cookie in both cases.
pub(super) async fn callback<V: Views>(
    context: &HandlerContext,
    info: &RequestInfo,
    request: &BrowserRequest<'_>,
    callback: &Callback<'_>,
) -> Result<Response, LoginError> {
    let finished = finish_login(&context.service, request, callback).await?;
    let response = match finished.outcome {
        BrowserOutcome::ReturnTo(url) => redirect_to(&url)?,
        BrowserOutcome::Result(result) => {
            Json(LoginResultView::<V>::new(&result, context.service.now())).into_response()
        }
        BrowserOutcome::Close(application) => pages::done(&application.name, info.page_language),
        BrowserOutcome::Problem(problem) => problem.into_response(),
    };
    Ok((cookie(finished.remove_cookie), response).into_response())
}
