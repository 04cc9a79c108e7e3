//! Gitea, and Forgejo, which has the same endpoints.
//!
//! - Authorization, exchange and scopes: <https://docs.gitea.com/development/oauth2-provider>
//! - Errors, which are documented by the source only:
//!   <https://github.com/go-gitea/gitea/blob/main/routers/web/auth/oauth2_provider.go>
//! - The user: <https://docs.gitea.com/api/>, `GET /user`

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{Answer, ClientAuth, Paths, Shape};
use crate::{grant::Grant, token::TokenError};

/// Gitea.
#[derive(Debug)]
pub struct Gitea;

impl Shape for Gitea {
    fn name(&self) -> &'static str {
        "gitea"
    }

    fn paths(&self) -> Paths {
        Paths {
            authorize: "/login/oauth/authorize",
            token: "/login/oauth/access_token",
            user: "/api/v1/user",
        }
    }

    fn client_auth(&self) -> ClientAuth {
        ClientAuth::Either
    }

    fn token(&self, access_token: &str, _grant: &Grant) -> Value {
        json!({
            "access_token": access_token,
            "token_type": "bearer",
            "expires_in": 3600,
            "refresh_token": "sandbox-has-no-refresh",
        })
    }

    /// Always 400, and a wrong secret or code is `unauthorized_client`.
    fn token_error(&self, error: TokenError) -> Answer {
        let code = match error {
            TokenError::MalformedRequest => "invalid_request",
            TokenError::UnknownClient => "invalid_client",
            TokenError::UnsupportedGrantType => "unsupported_grant_type",
            TokenError::WrongSecret | TokenError::UnknownCode | TokenError::OtherVerifier => {
                "unauthorized_client"
            }
            TokenError::OtherRedirectUri => "invalid_grant",
        };
        Answer {
            status: StatusCode::BAD_REQUEST,
            body: json!({ "error": code, "error_description": format!("sandbox: {code}") }),
        }
    }

    fn user(&self, _request: &HeaderMap, grant: Option<&Grant>) -> Answer {
        let reject = |status, message: &str| Answer {
            status,
            body: json!({ "message": message, "url": "/api/swagger" }),
        };
        let Some(grant) = grant else {
            return reject(StatusCode::UNAUTHORIZED, "token is required");
        };
        if !may_read_user(grant) {
            return reject(StatusCode::FORBIDDEN, "sandbox: read:user is required");
        }
        let user = &grant.user;
        Answer::ok(json!({
            "id": user.number(),
            "login": user.name,
            "login_name": "",
            "full_name": user.entered_name().unwrap_or_default(),
            "email": user.email(),
            "username": user.name,
            "active": true,
        }))
    }
}

/// A token without scopes of its own may do everything; those of `OpenID Connect` do not count.
fn may_read_user(grant: &Grant) -> bool {
    let mut own = grant
        .scopes()
        .filter(|scope| !["openid", "profile", "email", "groups"].contains(scope))
        .peekable();
    own.peek().is_none() || own.any(|scope| ["read:user", "write:user", "all"].contains(&scope))
}
