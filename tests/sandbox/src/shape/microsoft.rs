//! Microsoft Entra ID, version 2.0 of its endpoints.
//!
//! - Authorization, exchange, errors:
//!   <https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow>
//! - Discovery document: <https://learn.microsoft.com/en-us/entra/identity-platform/v2-protocols-oidc>
//! - Claims: <https://learn.microsoft.com/en-us/entra/identity-platform/id-token-claims-reference>
//! - AADSTS codes: <https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes>
//! - Userinfo: <https://learn.microsoft.com/en-us/entra/identity-platform/userinfo>
//!
//! `common` is for all tenants: its discovery document has a template as issuer, its ID tokens have the user's tenant.

use axum::http::{HeaderMap, StatusCode};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Answer, ClientAuth, Paths, Shape};
use crate::{
    grant::Grant,
    key::Algorithm,
    openid::{self, OpenId},
    parameters::Parameters,
    token::TokenError,
    user::User,
};

/// The only tenant.
pub const TENANT_ID: &str = "00000000-0000-4000-8000-000000000001";

/// Entra ID, as one tenant or as all of them.
#[derive(Debug)]
pub struct Microsoft {
    name: &'static str,
    tenant: &'static str,
    issuing_tenant: &'static str,
}

impl Microsoft {
    /// The tenant [`TENANT_ID`].
    pub const TENANT: Self = Self {
        name: "microsoft",
        tenant: TENANT_ID,
        issuing_tenant: TENANT_ID,
    };
    /// All tenants.
    pub const COMMON: Self = Self {
        name: "microsoft/common",
        tenant: "common",
        issuing_tenant: "{tenantid}",
    };
}

impl Shape for Microsoft {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prefix(&self) -> String {
        format!("/microsoft/{}", self.tenant)
    }

    fn paths(&self) -> Paths {
        Paths {
            authorize: "/oauth2/v2.0/authorize",
            token: "/oauth2/v2.0/token",
            user: "/oidc/userinfo",
        }
    }

    fn client_auth(&self) -> ClientAuth {
        ClientAuth::Either
    }

    fn check(&self, request: &Parameters) -> Result<(), &'static str> {
        openid::check(request)
    }

    /// Codes of Entra ID have about a thousand characters.
    fn code(&self, random: String) -> String {
        format!("1.A{}", random.repeat(30))
    }

    fn success_details(&self, _request: &Parameters) -> Vec<(&'static str, String)> {
        vec![("session_state", TENANT_ID.to_owned())]
    }

    fn error_details(&self, error: &str) -> Vec<(&'static str, String)> {
        let code = match error {
            "access_denied" => 65_004,
            "login_required" => 50_058,
            "invalid_scope" => 70_011,
            "server_error" => 90_036,
            "temporarily_unavailable" => 90_006,
            "unauthorized_client" => 700_011,
            "unsupported_response_type" => 70_005,
            _ => 9_002_313,
        };
        vec![("error_description", description(code, error))]
    }

    fn token(&self, access_token: &str, grant: &Grant) -> Value {
        json!({
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": 3599,
            "ext_expires_in": 3599,
            "scope": grant.scope,
        })
    }

    fn token_error(&self, error: TokenError) -> Answer {
        let (status, name, code) = match error {
            TokenError::MalformedRequest => (StatusCode::BAD_REQUEST, "invalid_request", 900_144),
            TokenError::UnknownClient => (StatusCode::BAD_REQUEST, "unauthorized_client", 700_011),
            TokenError::WrongSecret => (StatusCode::UNAUTHORIZED, "invalid_client", 70_002),
            TokenError::UnsupportedGrantType => {
                (StatusCode::BAD_REQUEST, "unsupported_grant_type", 70_003)
            }
            TokenError::UnknownCode => (StatusCode::BAD_REQUEST, "invalid_grant", 54_005),
            TokenError::OtherRedirectUri => (StatusCode::BAD_REQUEST, "invalid_grant", 50_011),
            TokenError::OtherVerifier => (StatusCode::BAD_REQUEST, "invalid_grant", 501_481),
        };
        let body = json!({
            "error": name,
            "error_description": description(code, name),
            "error_codes": [code],
            "timestamp": "2016-01-09 02:02:12Z",
            "trace_id": TENANT_ID,
            "correlation_id": TENANT_ID,
        });
        Answer { status, body }
    }

    fn user(&self, _request: &HeaderMap, grant: Option<&Grant>) -> Answer {
        let Some(grant) = grant else {
            let error =
                json!({ "code": "InvalidAuthenticationToken", "message": "sandbox: expired" });
            return Answer {
                status: StatusCode::UNAUTHORIZED,
                body: json!({ "error": error }),
            };
        };
        Answer::ok(json!({
            "sub": subject(grant),
            "name": grant.user.display_name,
            "email": grant.user.email(),
        }))
    }

    fn id_field(&self) -> &'static str {
        "sub"
    }

    fn openid(&self) -> Option<&dyn OpenId> {
        Some(self)
    }
}

impl OpenId for Microsoft {
    fn algorithms(&self) -> &'static [Algorithm] {
        &[Algorithm::Rs256]
    }

    fn algorithm(&self, _user: &User) -> Algorithm {
        Algorithm::Rs256
    }

    fn issuer(&self, url: &str) -> String {
        issuer_of(url, TENANT_ID)
    }

    fn documented_issuer(&self, url: &str) -> String {
        issuer_of(url, self.issuing_tenant)
    }

    fn sends_issuer(&self) -> bool {
        false
    }

    fn discovery_path(&self) -> &'static str {
        "/v2.0/.well-known/openid-configuration"
    }

    fn keys_path(&self) -> &'static str {
        "/discovery/v2.0/keys"
    }

    fn metadata(&self) -> Value {
        json!({
            "subject_types_supported": ["pairwise"],
            "scopes_supported": ["openid", "profile", "email", "offline_access"],
            "response_modes_supported": ["query", "fragment", "form_post"],
            "token_endpoint_auth_methods_supported":
                ["client_secret_post", "private_key_jwt", "client_secret_basic"],
        })
    }

    /// Without the scope `profile`, the claims that name the user are missing.
    fn claims(&self, _access_token: &str, grant: &Grant) -> Value {
        let user = &grant.user;
        let mut claims = json!({
            "sub": subject(grant),
            "tid": TENANT_ID,
            "ver": "2.0",
        });
        if grant.has_scope("profile") {
            claims["oid"] = user.bare_uuid().into();
            claims["name"] = user.display_name.as_str().into();
            claims["preferred_username"] = user.email().into();
        }
        claims
    }

    /// Without `alg`, but with `issuer`.
    fn publish_key(&self, url: &str, key: &mut Map<String, Value>) {
        key.remove("alg");
        key.insert("issuer".to_owned(), self.documented_issuer(url).into());
    }
}

/// Pairwise: another for each client.
fn subject(grant: &Grant) -> String {
    let pair = format!("{} {}", grant.client_id, grant.user.name);
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(pair.as_bytes()))
}

/// The issuer of a tenant, where `url` is the address of any tenant.
fn issuer_of(url: &str, tenant: &str) -> String {
    let (all_tenants, _) = url.rsplit_once('/').unwrap_or((url, ""));
    format!("{all_tenants}/{tenant}/v2.0")
}

fn description(code: u32, error: &str) -> String {
    format!("AADSTS{code}: sandbox: {error}.\r\nTrace ID: {TENANT_ID}")
}
