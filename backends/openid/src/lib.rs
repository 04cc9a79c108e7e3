//! `OpenID Connect` (OIDC) for the login service: what a provider publishes about itself, its keys, and its ID tokens.
//!
//! No I/O, no async, no clock: the caller fetches the documents and says what time it is. All input is hostile until
//! the signature of an ID token is valid, so each type is made in one way only, and each step by the type before it:
//!
//! ```text
//! discovery_url ──► Discovery ──► Keys ──┐
//!                       IdToken::parse ──┴─► IdToken::verify ──► Claims::check ──► User
//! ```
//!
//! | module | subject | source |
//! | --- | --- | --- |
//! | [`web_url`] | the URLs that a provider may name | OIDC Core 16.17 |
//! | [`discovery`] | the issuer and its discovery document | OIDC Discovery 3 and 4, RFC 9207 3 |
//! | [`keys`] | the provider's public keys, and their signature algorithms | RFC 7517 4 and 5, RFC 7518 3.1 and 6, RFC 8037 2 and 3.1 |
//! | [`token`] | the compact JWS that an ID token is, and its signature | RFC 7515 3, 4 and 5.2, RFC 8725 3 |
//! | [`claims`] | what a signed ID token must say | OIDC Core 2, 3.1.3.7 and 5.1 |
//! | [`fault`] | why an ID token is rejected, and what a log line shows of it | |
//!
//! Deliberately absent: `alg: none`, HMAC (its key would be the client secret) and encrypted ID tokens; keys that a
//! token brings along (`jwk`, `jku`, `x5c`, `x5u`); algorithms that are chosen by the token alone (the key decides).

pub mod claims;
pub mod discovery;
pub mod fault;
mod json;
pub mod keys;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod token;
pub mod web_url;

pub use self::{
    claims::{Claims, Expected, LEEWAY, User},
    discovery::{Discovery, DiscoveryFault, IssuerFault, discovery_url},
    fault::{Shown, TokenFault},
    keys::{Algorithm, Keys, KeysFault},
    token::{IdToken, MAX_TOKEN},
    web_url::UrlFault,
};

/// Largest discovery document and key set in bytes.
pub const MAX_DOCUMENT: usize = 64 * 1024;
