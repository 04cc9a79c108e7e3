//! What an `OpenID` provider has beside OAuth 2.0: the discovery document, the keys, the claims of its ID tokens.
//!
//! - <https://openid.net/specs/openid-connect-core-1_0.html>
//! - <https://openid.net/specs/openid-connect-discovery-1_0.html>

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    grant::Grant, key::Algorithm, parameters::Parameters, provider::Provider, shape::Shape,
    user::User,
};

/// An `OpenID` provider's documented behavior. `url` is its address, with its prefix.
pub trait OpenId: Shape {
    /// The algorithms of its keys, one key each.
    fn algorithms(&self) -> &'static [Algorithm];

    /// The algorithm of this user's ID tokens.
    fn algorithm(&self, user: &User) -> Algorithm;

    /// The issuer of its ID tokens.
    fn issuer(&self, url: &str) -> String {
        url.to_owned()
    }

    /// The issuer that its discovery document names.
    fn documented_issuer(&self, url: &str) -> String {
        self.issuer(url)
    }

    /// Whether the callback has `iss` (RFC 9207).
    fn sends_issuer(&self) -> bool;

    /// Path of the discovery document, below the prefix.
    fn discovery_path(&self) -> &'static str {
        "/.well-known/openid-configuration"
    }

    /// Path of the keys, below the prefix.
    fn keys_path(&self) -> &'static str;

    /// The members of its discovery document that are its own.
    fn metadata(&self) -> Value;

    /// The claims of an ID token beside `iss`, `aud`, `iat`, `exp` and `nonce`.
    fn claims(&self, access_token: &str, grant: &Grant) -> Value;

    /// Changes a published key into its form.
    fn publish_key(&self, _url: &str, _key: &mut Map<String, Value>) {}
}

/// `GET`: the discovery document.
pub async fn discovery(State(provider): State<Arc<Provider>>, headers: HeaderMap) -> Json<Value> {
    provider.counts.discovery.add_one();
    let Some(openid) = provider.shape.openid() else {
        return Json(Value::Null);
    };
    let url = provider.url(&headers);
    let paths = openid.paths();
    let mut document = json!({
        "issuer": openid.documented_issuer(&url),
        "authorization_endpoint": format!("{url}{}", paths.authorize),
        "token_endpoint": format!("{url}{}", paths.token),
        "userinfo_endpoint": format!("{url}{}", paths.user),
        "jwks_uri": format!("{url}{}", openid.keys_path()),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code"],
        "id_token_signing_alg_values_supported":
            openid.algorithms().iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>(),
    });
    extend(&mut document, openid.metadata());
    Json(document)
}

/// `GET`: the keys (RFC 7517).
pub async fn keys(State(provider): State<Arc<Provider>>, headers: HeaderMap) -> Json<Value> {
    provider.counts.keys.add_one();
    let (Some(openid), Some(keyring)) = (provider.shape.openid(), &provider.keys) else {
        return Json(Value::Null);
    };
    let url = provider.url(&headers);
    let mut keys = keyring.published();
    for key in &mut keys {
        openid.publish_key(&url, key);
    }
    Json(json!({ "keys": keys }))
}

/// `POST`: makes new keys and drops the old ones, for tests.
pub async fn rotate_keys(State(provider): State<Arc<Provider>>) -> StatusCode {
    if let Some(keyring) = &provider.keys {
        keyring.rotate();
    }
    StatusCode::NO_CONTENT
}

/// Checks an authentication request (Core section 3.1.2.1). Nobody is logged in here, so `prompt=none` fails.
pub(crate) fn check(request: &Parameters) -> Result<(), &'static str> {
    if request.value("scope").is_none() {
        return Err("invalid_request");
    }
    if !request.scopes().any(|scope| scope == "openid") {
        return Err("invalid_scope");
    }
    match request.value("prompt") {
        None | Some("login" | "consent" | "select_account") => Ok(()),
        Some("none") => Err("login_required"),
        Some(_) => Err("invalid_request"),
    }
}

/// The claim `at_hash` (Core section 3.1.3.6), for algorithms with SHA-256.
pub(crate) fn hash_of(access_token: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(access_token.as_bytes()).into();
    let (left, _) = digest.split_at(16);
    BASE64_URL_SAFE_NO_PAD.encode(left)
}

/// Adds the members of one object to another.
pub(crate) fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}
