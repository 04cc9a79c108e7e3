//! GitHub, in the form of Enterprise Server, where all endpoints are on one host.
//!
//! - Authorization and exchange:
//!   <https://docs.github.com/en/enterprise-server@latest/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps>
//! - Errors at the callback:
//!   <https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-authorization-request-errors>
//! - Errors of the exchange, which have status 200:
//!   <https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors>
//! - PKCE: <https://github.blog/changelog/2025-07-14-pkce-support-for-oauth-and-github-app-authentication>
//! - The user: <https://docs.github.com/en/rest/users/users#get-the-authenticated-user>
//! - `User-Agent`: <https://docs.github.com/en/rest/using-the-rest-api/getting-started-with-the-rest-api#user-agent>

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{Answer, ClientAuth, Paths, Shape};
use crate::{grant::Grant, redirect_uri::Rule, token::TokenError};

/// GitHub.
#[derive(Debug)]
pub struct GitHub;

const DOCUMENTS: &str = "/apps/oauth-apps/maintaining-oauth-apps";

impl Shape for GitHub {
    fn name(&self) -> &'static str {
        "github"
    }

    fn paths(&self) -> Paths {
        Paths {
            authorize: "/login/oauth/authorize",
            token: "/login/oauth/access_token",
            user: "/api/v3/user",
        }
    }

    fn client_auth(&self) -> ClientAuth {
        ClientAuth::Post
    }

    fn redirect_uri(&self) -> Rule {
        Rule::ExactOrAbsent
    }

    fn error_details(&self, error: &str) -> Vec<(&'static str, String)> {
        let page = "troubleshooting-authorization-request-errors";
        let anchor = error.replace('_', "-");
        vec![
            ("error_description", format!("sandbox: {error}")),
            ("error_uri", format!("{DOCUMENTS}/{page}/#{anchor}")),
        ]
    }

    /// The documentation does not list it.
    fn needs_grant_type(&self) -> bool {
        false
    }

    /// Scopes are separated by commas here, but by spaces in the request.
    fn token(&self, access_token: &str, grant: &Grant) -> Value {
        json!({
            "access_token": access_token,
            "scope": grant.scopes().collect::<Vec<_>>().join(","),
            "token_type": "bearer",
        })
    }

    fn token_error(&self, error: TokenError) -> Answer {
        let error = match error {
            TokenError::UnknownClient | TokenError::WrongSecret => "incorrect_client_credentials",
            TokenError::OtherRedirectUri => "redirect_uri_mismatch",
            TokenError::MalformedRequest
            | TokenError::UnsupportedGrantType
            | TokenError::UnknownCode
            | TokenError::OtherVerifier => "bad_verification_code",
        };
        let page = "troubleshooting-oauth-app-access-token-request-errors";
        let anchor = error.replace('_', "-");
        Answer::ok(json!({
            "error": error,
            "error_description": format!("sandbox: {error}"),
            "error_uri": format!("{DOCUMENTS}/{page}/#{anchor}"),
        }))
    }

    /// A form, unless the request accepts JSON.
    fn write_token(&self, request: &HeaderMap, answer: Answer) -> Response {
        let accepts_json = request
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.contains("application/json"));
        let (media, body) = if accepts_json {
            ("application/json; charset=utf-8", answer.body.to_string())
        } else {
            (
                "application/x-www-form-urlencoded; charset=utf-8",
                form(&answer.body),
            )
        };
        let head = [
            (header::CONTENT_TYPE, media),
            (header::CACHE_CONTROL, "no-store"),
        ];
        (answer.status, head, body).into_response()
    }

    fn user(&self, request: &HeaderMap, grant: Option<&Grant>) -> Answer {
        let reject = |status, message: &str| Answer {
            status,
            body: json!({ "message": message, "documentation_url": "https://docs.github.com/rest" }),
        };
        if !request.contains_key(header::USER_AGENT) {
            return reject(StatusCode::FORBIDDEN, "sandbox: no User-Agent");
        }
        let Some(Grant { user, .. }) = grant else {
            return reject(StatusCode::UNAUTHORIZED, "Bad credentials");
        };
        Answer::ok(json!({
            "login": user.name,
            "id": user.number(),
            "node_id": format!("U_{}", user.bare_uuid()),
            "type": "User",
            "site_admin": false,
            "name": user.entered_name(),
            "email": null,
            "created_at": "2008-01-14T04:33:35Z",
        }))
    }
}

fn form(body: &Value) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in body.as_object().into_iter().flatten() {
        form.append_pair(name, value.as_str().unwrap_or_default());
    }
    form.finish()
}
