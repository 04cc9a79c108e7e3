//! `/site/oauth2/authorize`: the page where somebody signs in, allows or denies.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{RawQuery, State},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use url::Url;

use crate::{Sandbox, grant::Grant, page, parameters::Parameters, redirect_uri, user::User};

/// A request for authorization that may be shown to a person (RFC 6749 section 4.1.1).
#[derive(Debug)]
pub struct AuthorizationRequest {
    /// As given, for the exchange to repeat.
    pub redirect_uri: Option<String>,
    /// The client's own, handed back untouched.
    pub state: Option<String>,
    /// The S256 challenge.
    pub code_challenge: Option<String>,
    /// Where the answer goes.
    callback: Url,
}

/// Why a request is not shown.
#[derive(Debug)]
enum Unacceptable {
    /// The callback cannot be trusted: the person is told, the client is not (section 4.1.2.1).
    ToPerson(&'static str),
    /// The client is told at its callback.
    ToClient(Box<AuthorizationRequest>, &'static str),
}

/// `GET`: the page.
pub async fn show(State(sandbox): State<Arc<Sandbox>>, RawQuery(query): RawQuery) -> Response {
    sandbox.counts.authorize.add_one();
    match read(&sandbox, query.unwrap_or_default().as_bytes()) {
        Ok((request, _)) => {
            Html(page::choose_user(&sandbox.settings.client_id, &request)).into_response()
        }
        Err(unacceptable) => refuse(&sandbox, unacceptable),
    }
}

/// `POST`: somebody pressed Allow or Deny.
pub async fn decide(State(sandbox): State<Arc<Sandbox>>, body: Bytes) -> Response {
    sandbox.counts.decide.add_one();
    let (request, form) = match read(&sandbox, &body) {
        Ok(accepted) => accepted,
        Err(unacceptable) => return refuse(&sandbox, unacceptable),
    };
    if form.value("decision") != Some("allow") {
        return answer(&sandbox, &request, &[("error", "access_denied")]);
    }
    let name = form
        .value("other")
        .or_else(|| form.value("user"))
        .unwrap_or_default();
    let Some(user) = User::named(name) else {
        let page = page::problem("There is no such user. Go back and pick another.");
        return (StatusCode::BAD_REQUEST, Html(page)).into_response();
    };
    let code = sandbox.grants.issue_code(Grant {
        user,
        redirect_uri: request.redirect_uri.clone(),
        code_challenge: request.code_challenge.clone(),
    });
    answer(&sandbox, &request, &[("code", &code)])
}

fn read(
    sandbox: &Sandbox,
    encoded: &[u8],
) -> Result<(AuthorizationRequest, Parameters), Unacceptable> {
    let parameters = Parameters::parse(encoded)
        .map_err(|_| Unacceptable::ToPerson("A parameter of the request came twice."))?;
    if parameters.value("client_id") != Some(&sandbox.settings.client_id) {
        return Err(Unacceptable::ToPerson(
            "No client of that id is registered.",
        ));
    }
    let given = parameters.value("redirect_uri");
    let callback = redirect_uri::choose(&sandbox.settings.callback, given).ok_or(
        Unacceptable::ToPerson("The redirect_uri does not match the registered callback."),
    )?;
    let request = AuthorizationRequest {
        redirect_uri: given.map(str::to_owned),
        state: parameters.value("state").map(str::to_owned),
        code_challenge: parameters.value("code_challenge").map(str::to_owned),
        callback,
    };
    if parameters.value("response_type") != Some("code") {
        return Err(Unacceptable::ToClient(
            Box::new(request),
            "unsupported_response_type",
        ));
    }
    // Without a method it would be `plain` (RFC 7636 section 4.3), which is not worth having.
    let method = parameters.value("code_challenge_method");
    if request.code_challenge.is_some() != (method == Some("S256")) {
        return Err(Unacceptable::ToClient(Box::new(request), "invalid_request"));
    }
    Ok((request, parameters))
}

fn refuse(sandbox: &Sandbox, unacceptable: Unacceptable) -> Response {
    match unacceptable {
        Unacceptable::ToPerson(reason) => {
            (StatusCode::BAD_REQUEST, Html(page::problem(reason))).into_response()
        }
        Unacceptable::ToClient(request, error) => answer(sandbox, &request, &[("error", error)]),
    }
}

/// Back to the client's callback (RFC 6749 section 4.1.2), with `iss` where configured (RFC 9207).
fn answer(sandbox: &Sandbox, request: &AuthorizationRequest, result: &[(&str, &str)]) -> Response {
    let mut callback = request.callback.clone();
    {
        let mut query = callback.query_pairs_mut();
        query.extend_pairs(result);
        if let Some(state) = &request.state {
            query.append_pair("state", state);
        }
        if let Some(issuer) = &sandbox.settings.issuer {
            query.append_pair("iss", issuer);
        }
    }
    let location = [(header::LOCATION, callback.to_string())];
    (StatusCode::FOUND, location).into_response()
}
