//! Google, whose endpoints are on several hosts in reality and on several paths here.
//!
//! - Authentication, callback, ID token: <https://developers.google.com/identity/openid-connect/openid-connect>
//! - Discovery document and claims: <https://developers.google.com/identity/openid-connect/reference>
//! - Errors: <https://developers.google.com/identity/protocols/oauth2/web-server#errors>
//!
//! The callback's `authuser`, `hd` and `prompt` are documented nowhere, but always sent.

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{Answer, ClientAuth, Paths, Shape};
use crate::{
    grant::Grant,
    key::Algorithm,
    openid::{self, OpenId},
    parameters::Parameters,
    token::TokenError,
    user::User,
};

/// Google.
#[derive(Debug)]
pub struct Google;

/// The Workspace domain of all users.
const DOMAIN: &str = "sandbox.example";

impl Shape for Google {
    fn name(&self) -> &'static str {
        "google"
    }

    fn paths(&self) -> Paths {
        Paths {
            authorize: "/o/oauth2/v2/auth",
            token: "/oauth2/token",
            user: "/openidconnect/v1/userinfo",
        }
    }

    fn client_auth(&self) -> ClientAuth {
        ClientAuth::Either
    }

    fn check(&self, request: &Parameters) -> Result<(), &'static str> {
        openid::check(request)
    }

    /// With a slash, which a client must encode.
    fn code(&self, random: String) -> String {
        format!("4/0A{random}")
    }

    /// The scopes that are short for others are followed by those.
    fn success_details(&self, request: &Parameters) -> Vec<(&'static str, String)> {
        let mut scopes: Vec<_> = request.scopes().map(str::to_owned).collect();
        for short in ["email", "profile"] {
            if request.scopes().any(|scope| scope == short) {
                scopes.push(format!("https://www.googleapis.com/auth/userinfo.{short}"));
            }
        }
        let prompt = request.value("prompt").unwrap_or("consent");
        vec![
            ("scope", scopes.join(" ")),
            ("authuser", "0".to_owned()),
            ("hd", DOMAIN.to_owned()),
            ("prompt", prompt.to_owned()),
        ]
    }

    fn token(&self, access_token: &str, grant: &Grant) -> Value {
        json!({
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": 3599,
            "scope": grant.scope,
        })
    }

    fn token_error(&self, error: TokenError) -> Answer {
        if error == TokenError::OtherRedirectUri {
            return Answer {
                status: StatusCode::BAD_REQUEST,
                body: json!({
                    "error": "redirect_uri_mismatch",
                    "error_description": "sandbox: redirect_uri_mismatch",
                }),
            };
        }
        error.standard()
    }

    fn user(&self, _request: &HeaderMap, grant: Option<&Grant>) -> Answer {
        let Some(grant) = grant else {
            return Answer {
                status: StatusCode::UNAUTHORIZED,
                body: json!({
                    "error": "invalid_request",
                    "error_description": "Invalid Credentials",
                }),
            };
        };
        Answer::ok(person(grant))
    }

    fn id_field(&self) -> &'static str {
        "sub"
    }

    fn openid(&self) -> Option<&dyn OpenId> {
        Some(self)
    }
}

impl OpenId for Google {
    fn algorithms(&self) -> &'static [Algorithm] {
        &[Algorithm::Rs256]
    }

    fn algorithm(&self, _user: &User) -> Algorithm {
        Algorithm::Rs256
    }

    fn sends_issuer(&self) -> bool {
        true
    }

    fn keys_path(&self) -> &'static str {
        "/oauth2/v3/certs"
    }

    fn metadata(&self) -> Value {
        json!({
            "authorization_response_iss_parameter_supported": true,
            "subject_types_supported": ["public"],
            "scopes_supported": ["openid", "email", "profile"],
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
        })
    }

    fn claims(&self, access_token: &str, grant: &Grant) -> Value {
        let mut claims = person(grant);
        claims["azp"] = grant.client_id.as_str().into();
        claims["at_hash"] = openid::hash_of(access_token).into();
        claims
    }
}

fn person(grant: &Grant) -> Value {
    let user = &grant.user;
    let mut person = json!({ "sub": format!("1{:020}", user.wide_number()), "hd": DOMAIN });
    if grant.has_scope("profile") {
        let given_name = user.display_name.split(' ').next();
        person["name"] = user.display_name.as_str().into();
        person["given_name"] = given_name.into();
    }
    if grant.has_scope("email") {
        person["email"] = user.email().into();
        person["email_verified"] = true.into();
    }
    person
}
