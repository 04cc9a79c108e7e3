//! Writes all problems: as JSON, or as a page for a browser. CONTRACT 7.

use std::{any::Any, sync::Arc};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use signpost_kit::limits::RETRY_SECONDS;
use signpost_protocol::{
    header::HeaderNames,
    problem::{self, Problem},
    text::text,
};

use super::admit::MAX_BODY_BYTES;
use crate::{
    error::{LoginError, ProblemKind},
    http::{
        Context, pages,
        request::{MAX_PARAMETERS, RequestInfo},
    },
};

/// The error of a response whose problem is not written yet: handlers do not know the language and the format.
#[derive(Clone)]
pub(super) struct Unrendered(pub(super) Arc<LoginError>);

impl IntoResponse for LoginError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(Unrendered(Arc::new(self)));
        response
    }
}

/// Writes the problem of a response that has one, and keeps the response's headers.
pub(super) async fn render_problems(
    State(context): State<Context>,
    info: RequestInfo,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    let Some(Unrendered(error)) = response.extensions().get().cloned() else {
        return response;
    };
    let language = info.language;
    let names = &context.service.config.headers;
    let rendered = match error.kind() {
        ProblemKind::Shared(code) => {
            let problem = Problem::new(code, language, info.id.as_str());
            let problem = with_details(problem, &error, names, response.headers());
            if info.wants_page {
                pages::problem(&problem, response.extensions().get())
            } else {
                json(problem.to_json())
            }
        }
        // Never a page: only `/login` has pages, and that path is the library's.
        ProblemKind::Own(own) => json(own.to_json(language, info.id.as_str())),
    };
    let (mut parts, _) = response.into_parts();
    let (written, body) = rendered.into_parts();
    // The length of the empty body before.
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.extend(written.headers);
    if let LoginError::RateLimited { retry_after, .. } = *error {
        parts.headers.insert(RETRY_AFTER, retry_after.into());
    } else if parts.status == StatusCode::SERVICE_UNAVAILABLE {
        // A version's own stays.
        let entry = parts.headers.entry(RETRY_AFTER);
        entry.or_insert(RETRY_SECONDS.into());
    }
    if parts.status == StatusCode::UNAUTHORIZED
        && let Ok(challenge) = HeaderValue::try_from(names.challenge(error.code()))
    {
        parts.headers.insert(WWW_AUTHENTICATE, challenge);
    }
    Response::from_parts(parts, body)
}

/// Adds what the detail of some problems names.
fn with_details(
    problem: Problem,
    error: &LoginError,
    names: &HeaderNames,
    response: &HeaderMap,
) -> Problem {
    match error {
        LoginError::MethodNotAllowed => {
            let methods = response.get(ALLOW).and_then(|value| value.to_str().ok());
            problem.detail_args(&[("methods", methods.unwrap_or_default())])
        }
        LoginError::AuthorizationMissing
        | LoginError::AuthorizationMalformed
        | LoginError::AuthorizationInvalid => {
            problem.detail_args(&[("name", &names.spelled(&names.authorization))])
        }
        LoginError::NotFound { slip: Some(slip) } => {
            let args = [
                ("name", &*names.spelled(&names.version)),
                ("version", &*slip.version),
                ("path", &*slip.path),
            ];
            let hint = text(problem.language, slip.hint, &args);
            problem.hint(hint)
        }
        LoginError::ParamsMalformed { at } => {
            let arguments = at.arguments();
            let arguments = arguments.iter().map(|(name, value)| (*name, &**value));
            problem.detail_args(&arguments.collect::<Vec<_>>())
        }
        LoginError::ParamMissing { name } => problem.detail_args(&[("name", name)]),
        LoginError::ParamInvalid { name, rule } => {
            let (rule, allowed) = rule.text_args();
            problem.detail_args(&[("name", name), ("rule", rule), ("allowed", &allowed)])
        }
        LoginError::HeaderDuplicated { name } => problem.detail_args(&[("name", name)]),
        LoginError::BodyTooLarge => problem.detail_args(&[("limit", &MAX_BODY_BYTES.to_string())]),
        LoginError::RequestTimeout { limit } => {
            problem.detail_args(&[("seconds", &limit.as_secs().to_string())])
        }
        LoginError::ParamsTooMany => problem.detail_args(&[("limit", &MAX_PARAMETERS.to_string())]),
        _ => problem,
    }
}

fn json(body: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, problem::MEDIA_TYPE)], body).into_response()
}

/// The response after a panic. The panic hook has logged the panic and its location.
pub(super) fn panicked(_: Box<dyn Any + Send>) -> Response {
    LoginError::Internal {
        what: "a request panicked",
    }
    .into_response()
}
