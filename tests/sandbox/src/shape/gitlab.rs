//! GitLab.
//!
//! - Authorization and exchange: <https://docs.gitlab.com/api/oauth2/>
//! - Scopes: <https://docs.gitlab.com/integration/oauth_provider/>
//! - Errors are those of Doorkeeper: <https://github.com/doorkeeper-gem/doorkeeper/blob/main/config/locales/en.yml>
//! - The user: <https://docs.gitlab.com/api/users/>
//! - Status 401: <https://docs.gitlab.com/api/rest/troubleshooting/>

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{Answer, ClientAuth, Paths, Shape};
use crate::{clock, grant::Grant, parameters::Parameters};

/// GitLab.
#[derive(Debug)]
pub struct GitLab;

impl Shape for GitLab {
    fn name(&self) -> &'static str {
        "gitlab"
    }

    fn paths(&self) -> Paths {
        Paths {
            authorize: "/oauth/authorize",
            token: "/oauth/token",
            user: "/api/v4/user",
        }
    }

    fn client_auth(&self) -> ClientAuth {
        ClientAuth::Either
    }

    /// The registered application has the scope `read_user` only.
    fn check(&self, request: &Parameters) -> Result<(), &'static str> {
        if request.scopes().eq(["read_user"]) {
            Ok(())
        } else {
            Err("invalid_scope")
        }
    }

    fn token(&self, access_token: &str, _grant: &Grant) -> Value {
        json!({
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": 7200,
            "refresh_token": "sandbox-has-no-refresh",
            "scope": "read_user",
            "created_at": clock::now(),
        })
    }

    fn user(&self, _request: &HeaderMap, grant: Option<&Grant>) -> Answer {
        let Some(Grant { user, .. }) = grant else {
            return Answer {
                status: StatusCode::UNAUTHORIZED,
                body: json!({ "message": "401 Unauthorized" }),
            };
        };
        Answer::ok(json!({
            "id": user.number(),
            "username": user.name,
            "name": user.display_name,
            "state": "active",
            "locked": false,
            "email": user.email(),
            "created_at": "2012-05-23T08:00:58Z",
        }))
    }
}
