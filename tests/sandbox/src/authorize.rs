//! The authorization endpoint: the page where the user logs in, allows or denies.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use url::Url;

use crate::{
    grant::Grant, page, parameters::Parameters, provider::Provider, redirect_uri::Rule, user::User,
};

/// A valid authorization request (RFC 6749 section 4.1.1).
#[derive(Debug)]
struct AuthorizationRequest {
    parameters: Parameters,
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
pub async fn show(
    State(provider): State<Arc<Provider>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    provider.counts.authorize.add_one();
    match read(&provider, query.unwrap_or_default().as_bytes()) {
        Ok(request) => Html(page::choose_user(&provider, &request.parameters)).into_response(),
        Err(rejected) => reject(&provider, &headers, rejected),
    }
}

/// `POST`: the user pressed Allow or Deny.
pub async fn decide(
    State(provider): State<Arc<Provider>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    provider.counts.decide.add_one();
    let request = match read(&provider, &body) {
        Ok(accepted) => accepted,
        Err(rejected) => return reject(&provider, &headers, rejected),
    };
    let form = &request.parameters;
    if form.value("decision") != Some("allow") {
        return fail(&provider, &headers, &request, "access_denied");
    }
    let name = form
        .value("other")
        .or_else(|| form.value("user"))
        .unwrap_or_default();
    let Some(user) = User::named(name) else {
        let page = page::problem("No such user. Go back and pick another one.");
        return (StatusCode::BAD_REQUEST, Html(page)).into_response();
    };
    if let Some(refusal) = user.refusal {
        return fail(&provider, &headers, &request, refusal.code());
    }
    let grant = Grant {
        client_id: provider.settings.client_id.clone(),
        user,
        redirect_uri: form.value("redirect_uri").map(str::to_owned),
        code_challenge: form.value("code_challenge").map(str::to_owned),
        scope: form.value("scope").map(str::to_owned),
        nonce: form.value("nonce").map(str::to_owned),
    };
    let shape = provider.shape;
    let code = provider
        .grants
        .issue_code(grant, |random| shape.code(random));
    let mut result = vec![("code", code)];
    result.extend(shape.success_details(form));
    redirect_back(&provider, &headers, &request, result)
}

fn read(provider: &Provider, encoded: &[u8]) -> Result<AuthorizationRequest, Rejected> {
    let parameters = Parameters::parse(encoded)
        .map_err(|_| Rejected::ToUser("A parameter of the request occurs twice."))?;
    if parameters.value("client_id") != Some(&provider.settings.client_id) {
        return Err(Rejected::ToUser(
            "No client with this client_id is registered.",
        ));
    }
    let registered = &provider.settings.callback;
    let rule = provider.shape.redirect_uri();
    let request = |callback, parameters| AuthorizationRequest {
        parameters,
        callback,
    };
    let request = match rule.choose(registered, parameters.value("redirect_uri")) {
        Some(callback) => request(callback, parameters),
        None if rule == Rule::ExactOrAbsent => {
            let request = request(registered.clone(), parameters);
            return Err(Rejected::ToClient(
                Box::new(request),
                "redirect_uri_mismatch",
            ));
        }
        None => {
            return Err(Rejected::ToUser(
                "The redirect_uri does not match the registered callback.",
            ));
        }
    };
    match check(provider, &request.parameters) {
        Ok(()) => Ok(request),
        Err(error) => Err(Rejected::ToClient(Box::new(request), error)),
    }
}

fn check(provider: &Provider, parameters: &Parameters) -> Result<(), &'static str> {
    if parameters.value("response_type") != Some("code") {
        return Err("unsupported_response_type");
    }
    // Without a method it would be `plain` (RFC 7636 section 4.3), which proves too little.
    let is_s256 = parameters.value("code_challenge_method") == Some("S256");
    if parameters.value("code_challenge").is_some() != is_s256 {
        return Err("invalid_request");
    }
    provider.shape.check(parameters)
}

fn reject(provider: &Provider, headers: &HeaderMap, rejected: Rejected) -> Response {
    match rejected {
        Rejected::ToUser(reason) => {
            (StatusCode::BAD_REQUEST, Html(page::problem(reason))).into_response()
        }
        Rejected::ToClient(request, error) => fail(provider, headers, &request, error),
    }
}

fn fail(
    provider: &Provider,
    headers: &HeaderMap,
    request: &AuthorizationRequest,
    error: &str,
) -> Response {
    let mut result = vec![("error", error.to_owned())];
    result.extend(provider.shape.error_details(error));
    redirect_back(provider, headers, request, result)
}

/// Redirects to the client's callback (RFC 6749 section 4.1.2), with `iss` if configured or the shape's way (RFC 9207).
fn redirect_back(
    provider: &Provider,
    headers: &HeaderMap,
    request: &AuthorizationRequest,
    mut result: Vec<(&'static str, String)>,
) -> Response {
    if let Some(state) = request.parameters.value("state") {
        result.push(("state", state.to_owned()));
    }
    let issuer = provider.settings.issuer.clone().or_else(|| {
        let openid = provider.shape.openid()?;
        openid
            .sends_issuer()
            .then(|| openid.issuer(&provider.url(headers)))
    });
    if let Some(issuer) = issuer {
        result.push(("iss", issuer));
    }
    let mut callback = request.callback.clone();
    callback.query_pairs_mut().extend_pairs(result);
    let location = [(header::LOCATION, callback.to_string())];
    (StatusCode::FOUND, location).into_response()
}
