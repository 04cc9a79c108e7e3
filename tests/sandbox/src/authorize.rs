//! `/site/oauth2/authorize`: the page where the user logs in, allows or denies.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{RawQuery, State},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use url::Url;

use crate::{Sandbox, grant::Grant, page, parameters::Parameters, redirect_uri, user::User};

/// A valid authorization request (RFC 6749 section 4.1.1).
#[derive(Debug)]
pub struct AuthorizationRequest {
    /// The `redirect_uri` as sent; the exchange must repeat it.
    pub redirect_uri: Option<String>,
    /// The client's `state`, returned unchanged.
    pub state: Option<String>,
    /// The S256 challenge (RFC 7636).
    pub code_challenge: Option<String>,
    /// The target of the redirect back.
    callback: Url,
}

/// A rejected request, and where the error is reported.
#[derive(Debug)]
enum Rejected {
    /// To the user, since the callback cannot be trusted (section 4.1.2.1).
    ToUser(&'static str),
    /// To the client, at its callback.
    ToClient(Box<AuthorizationRequest>, &'static str),
}

/// `GET`: shows the page.
pub async fn show(State(sandbox): State<Arc<Sandbox>>, RawQuery(query): RawQuery) -> Response {
    sandbox.counts.authorize.add_one();
    match read(&sandbox, query.unwrap_or_default().as_bytes()) {
        Ok((request, _)) => {
            Html(page::choose_user(&sandbox.settings.client_id, &request)).into_response()
        }
        Err(rejected) => reject(&sandbox, rejected),
    }
}

/// `POST`: the user pressed Allow or Deny.
pub async fn decide(State(sandbox): State<Arc<Sandbox>>, body: Bytes) -> Response {
    sandbox.counts.decide.add_one();
    let (request, form) = match read(&sandbox, &body) {
        Ok(accepted) => accepted,
        Err(rejected) => return reject(&sandbox, rejected),
    };
    if form.value("decision") != Some("allow") {
        return redirect_back(&sandbox, &request, &[("error", "access_denied")]);
    }
    let name = form
        .value("other")
        .or_else(|| form.value("user"))
        .unwrap_or_default();
    let Some(user) = User::named(name) else {
        let page = page::problem("No such user. Go back and pick another one.");
        return (StatusCode::BAD_REQUEST, Html(page)).into_response();
    };
    let code = sandbox.grants.issue_code(Grant {
        user,
        redirect_uri: request.redirect_uri.clone(),
        code_challenge: request.code_challenge.clone(),
    });
    redirect_back(&sandbox, &request, &[("code", &code)])
}

fn read(sandbox: &Sandbox, encoded: &[u8]) -> Result<(AuthorizationRequest, Parameters), Rejected> {
    let parameters = Parameters::parse(encoded)
        .map_err(|_| Rejected::ToUser("A parameter of the request occurs twice."))?;
    if parameters.value("client_id") != Some(&sandbox.settings.client_id) {
        return Err(Rejected::ToUser(
            "No client with this client_id is registered.",
        ));
    }
    let given = parameters.value("redirect_uri");
    let callback = redirect_uri::choose(&sandbox.settings.callback, given).ok_or(
        Rejected::ToUser("The redirect_uri does not match the registered callback."),
    )?;
    let request = AuthorizationRequest {
        redirect_uri: given.map(str::to_owned),
        state: parameters.value("state").map(str::to_owned),
        code_challenge: parameters.value("code_challenge").map(str::to_owned),
        callback,
    };
    if parameters.value("response_type") != Some("code") {
        return Err(Rejected::ToClient(
            Box::new(request),
            "unsupported_response_type",
        ));
    }
    // Without a method it would be `plain` (RFC 7636 section 4.3), which proves too little.
    let method = parameters.value("code_challenge_method");
    if request.code_challenge.is_some() != (method == Some("S256")) {
        return Err(Rejected::ToClient(Box::new(request), "invalid_request"));
    }
    Ok((request, parameters))
}

fn reject(sandbox: &Sandbox, rejected: Rejected) -> Response {
    match rejected {
        Rejected::ToUser(reason) => {
            (StatusCode::BAD_REQUEST, Html(page::problem(reason))).into_response()
        }
        Rejected::ToClient(request, error) => redirect_back(sandbox, &request, &[("error", error)]),
    }
}

/// Redirects to the client's callback (RFC 6749 section 4.1.2), with `iss` if configured (RFC 9207).
fn redirect_back(
    sandbox: &Sandbox,
    request: &AuthorizationRequest,
    result: &[(&str, &str)],
) -> Response {
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
