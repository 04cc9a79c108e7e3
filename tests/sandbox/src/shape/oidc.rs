//! A plain `OpenID` provider, as Keycloak or Authelia may be configured: no RSA, `iss` in the callback, and a name that
//! only the userinfo endpoint tells.
//!
//! - <https://openid.net/specs/openid-connect-core-1_0.html>
//! - `iss` in the callback: <https://www.rfc-editor.org/rfc/rfc9207>
//! - Paths: <https://www.keycloak.org/securing-apps/oidc-layers>

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{Answer, ClientAuth, Paths, Shape};
use crate::{
    grant::Grant,
    key::Algorithm,
    openid::{self, OpenId},
    parameters::Parameters,
    user::User,
};

/// A plain `OpenID` provider.
#[derive(Debug)]
pub struct Oidc;

impl Shape for Oidc {
    fn name(&self) -> &'static str {
        "oidc"
    }

    fn paths(&self) -> Paths {
        Paths {
            authorize: "/protocol/openid-connect/auth",
            token: "/protocol/openid-connect/token",
            user: "/protocol/openid-connect/userinfo",
        }
    }

    fn client_auth(&self) -> ClientAuth {
        ClientAuth::Basic
    }

    fn check(&self, request: &Parameters) -> Result<(), &'static str> {
        openid::check(request)
    }

    fn token(&self, access_token: &str, grant: &Grant) -> Value {
        json!({
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": 300,
            "scope": grant.scope,
        })
    }

    fn user(&self, _request: &HeaderMap, grant: Option<&Grant>) -> Answer {
        let Some(Grant { user, .. }) = grant else {
            return Answer {
                status: StatusCode::UNAUTHORIZED,
                body: json!({ "error": "invalid_token" }),
            };
        };
        Answer::ok(json!({
            "sub": user.bare_uuid(),
            "name": user.display_name,
            "preferred_username": user.name,
        }))
    }

    fn id_field(&self) -> &'static str {
        "sub"
    }

    fn openid(&self) -> Option<&dyn OpenId> {
        Some(self)
    }
}

impl OpenId for Oidc {
    fn algorithms(&self) -> &'static [Algorithm] {
        &[Algorithm::Es256, Algorithm::EdDsa]
    }

    /// `EdDSA` for `grace`, so that a test can choose.
    fn algorithm(&self, user: &User) -> Algorithm {
        match user.name.as_str() {
            "grace" => Algorithm::EdDsa,
            _ => Algorithm::Es256,
        }
    }

    fn sends_issuer(&self) -> bool {
        true
    }

    fn keys_path(&self) -> &'static str {
        "/protocol/openid-connect/certs"
    }

    fn metadata(&self) -> Value {
        json!({
            "authorization_response_iss_parameter_supported": true,
            "subject_types_supported": ["public"],
            "scopes_supported": ["openid", "profile"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
        })
    }

    fn claims(&self, _access_token: &str, grant: &Grant) -> Value {
        json!({ "sub": grant.user.bare_uuid(), "azp": grant.client_id })
    }
}
