//! Bitbucket Cloud, at the root.
//!
//! - OAuth 2.0: <https://developer.atlassian.com/cloud/bitbucket/oauth-2/>
//! - The callback: <https://support.atlassian.com/bitbucket-cloud/docs/use-oauth-on-bitbucket-cloud/>
//! - The user: <https://developer.atlassian.com/cloud/bitbucket/rest/api-group-users/#api-user-get>

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{Answer, ClientAuth, Paths, Shape};
use crate::{grant::Grant, redirect_uri::Rule};

/// Bitbucket.
#[derive(Debug)]
pub struct Bitbucket;

impl Shape for Bitbucket {
    fn name(&self) -> &'static str {
        "bitbucket"
    }

    fn prefix(&self) -> String {
        String::new()
    }

    fn paths(&self) -> Paths {
        Paths {
            authorize: "/site/oauth2/authorize",
            token: "/site/oauth2/access_token",
            user: "/2.0/user",
        }
    }

    fn client_auth(&self) -> ClientAuth {
        ClientAuth::Basic
    }

    fn redirect_uri(&self) -> Rule {
        Rule::RegisteredOrBelow
    }

    fn token(&self, access_token: &str, _grant: &Grant) -> Value {
        json!({
            "access_token": access_token,
            "token_type": "bearer",
            "expires_in": 7200,
            "scopes": "account",
            "state": "authorization_code",
        })
    }

    fn user(&self, _request: &HeaderMap, grant: Option<&Grant>) -> Answer {
        let Some(Grant { user, .. }) = grant else {
            let error = json!({ "message": "Access token expired." });
            return Answer {
                status: StatusCode::UNAUTHORIZED,
                body: json!({ "type": "error", "error": error }),
            };
        };
        let uuid = user.uuid();
        Answer::ok(json!({
            "type": "user",
            "uuid": uuid,
            "display_name": user.display_name,
            "nickname": user.name,
            "created_on": "2012-12-10T14:44:13.592000+00:00",
            "links": { "self": { "href": format!("/2.0/users/{uuid}") } },
        }))
    }

    fn id_field(&self) -> &'static str {
        "uuid"
    }
}
