//! What tells the providers apart: their paths, their words for errors, their records of users.
//!
//! Each stands in for a real provider, which the tests cannot reach. What is documented is done as documented. Where the
//! documents leave a choice, the stricter one is taken, so that a mistake in our exchange shows.

use std::fmt::Debug;

use axum::{
    Json,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::Value;

use crate::{
    grant::Grant, openid::OpenId, parameters::Parameters, redirect_uri::Rule, token::TokenError,
};

pub mod bitbucket;
pub mod gitea;
pub mod github;
pub mod gitlab;
pub mod google;
pub mod microsoft;
pub mod oidc;

/// All shapes. Microsoft has two: a tenant, and `common`, whose issuer is a template.
pub const ALL: [&dyn Shape; 8] = [
    &bitbucket::Bitbucket,
    &github::GitHub,
    &gitlab::GitLab,
    &gitea::Gitea,
    &google::Google,
    &microsoft::Microsoft::TENANT,
    &microsoft::Microsoft::COMMON,
    &oidc::Oidc,
];

/// The paths of the endpoints, below the prefix.
#[derive(Clone, Copy, Debug)]
pub struct Paths {
    /// The authorization endpoint.
    pub authorize: &'static str,
    /// The token endpoint.
    pub token: &'static str,
    /// The user's record.
    pub user: &'static str,
}

/// Where the token endpoint expects the client's id and secret (RFC 6749 section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// In the header `Authorization`.
    Basic,
    /// In the form.
    Post,
    /// In one of both.
    Either,
}

/// A response of JSON.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its body.
    pub body: Value,
}

impl Answer {
    /// 200 with this body.
    #[must_use]
    pub fn ok(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body,
        }
    }
}

/// A provider's documented behavior.
pub trait Shape: Debug + Send + Sync {
    /// Its name in the counts.
    fn name(&self) -> &'static str;

    /// The path before all others.
    fn prefix(&self) -> String {
        format!("/{}", self.name())
    }

    /// The paths of its endpoints.
    fn paths(&self) -> Paths;

    /// Where the token endpoint expects the client's credentials.
    fn client_auth(&self) -> ClientAuth;

    /// Its rule for the callback.
    fn redirect_uri(&self) -> Rule {
        Rule::Exact
    }

    /// Checks what is its own about an authorization request.
    ///
    /// # Errors
    ///
    /// The `error` for the callback.
    fn check(&self, _request: &Parameters) -> Result<(), &'static str> {
        Ok(())
    }

    /// Makes a code in its form.
    fn code(&self, random: String) -> String {
        random
    }

    /// The parameters of the callback beside `code`, `state` and `iss`.
    fn success_details(&self, _request: &Parameters) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The parameters of the callback beside `error`, `state` and `iss`.
    fn error_details(&self, error: &str) -> Vec<(&'static str, String)> {
        vec![("error_description", format!("sandbox: {error}"))]
    }

    /// Whether an exchange must say that it is one of a code.
    fn needs_grant_type(&self) -> bool {
        true
    }

    /// The token endpoint's body, without an ID token.
    fn token(&self, access_token: &str, grant: &Grant) -> Value;

    /// Why a code is not exchanged.
    fn token_error(&self, error: TokenError) -> Answer {
        error.standard()
    }

    /// Writes a response of the token endpoint.
    fn write_token(&self, _request: &HeaderMap, answer: Answer) -> Response {
        let no_store = [(header::CACHE_CONTROL, "no-store")];
        (answer.status, no_store, Json(answer.body)).into_response()
    }

    /// The user's record, or the rejection of the request. `grant` is that of the access token.
    fn user(&self, request: &HeaderMap, grant: Option<&Grant>) -> Answer;

    /// The most important member of the user's record.
    fn id_field(&self) -> &'static str {
        "id"
    }

    /// What it is as an `OpenID` provider, if it is one.
    fn openid(&self) -> Option<&dyn OpenId> {
        None
    }
}
