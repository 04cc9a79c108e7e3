//! ID tokens (`OpenID Connect` Core section 2), and what is wrong with them for users whose names ask for it.

use std::sync::Arc;

use axum::http::HeaderMap;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{clock, grant::Grant, openid, provider::Provider};

/// A fault for which a client must reject the ID token (Core section 3.1.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdFault {
    /// `aud` is another client.
    WrongAudience,
    /// `nonce` is that of another login.
    WrongNonce,
    /// `iss` is another provider.
    WrongIssuer,
    /// `exp` was an hour ago.
    Expired,
    /// `alg` is `none`, and there is no signature.
    Unsigned,
    /// `alg` is HS256, and the key is the public key.
    Confused,
    /// `kid` is that of no published key.
    UnknownKey,
    /// The signature is that of another key.
    OtherSignature,
    /// There is no `sub`.
    NoSubject,
    /// There is no ID token.
    Missing,
}

impl IdFault {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 10] = [
        Self::WrongAudience,
        Self::WrongNonce,
        Self::WrongIssuer,
        Self::Expired,
        Self::Unsigned,
        Self::Confused,
        Self::UnknownKey,
        Self::OtherSignature,
        Self::NoSubject,
        Self::Missing,
    ];

    /// Its name, as part of user names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WrongAudience => "wrong-aud",
            Self::WrongNonce => "wrong-nonce",
            Self::WrongIssuer => "wrong-issuer",
            Self::Expired => "expired",
            Self::Unsigned => "none",
            Self::Confused => "hs256",
            Self::UnknownKey => "unknown-key",
            Self::OtherSignature => "other-signature",
            Self::NoSubject => "no-sub",
            Self::Missing => "missing",
        }
    }

    /// Its description on the page, after "ID token".
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::WrongAudience => "is for another client",
            Self::WrongNonce => "has another nonce",
            Self::WrongIssuer => "is of another issuer",
            Self::Expired => "is expired",
            Self::Unsigned => "is not signed",
            Self::Confused => "is signed with the public key",
            Self::UnknownKey => "is signed with an unknown key",
            Self::OtherSignature => "has the signature of another key",
            Self::NoSubject => "has no subject",
            Self::Missing => "is missing",
        }
    }
}

/// Lifetime of an ID token, in seconds.
const LIFETIME: u64 = 3600;

/// Issues the ID token of a grant, with the fault of its user. `None` where the fault is that there is none.
pub fn issue(
    provider: &Provider,
    headers: &HeaderMap,
    access_token: &str,
    grant: &Grant,
) -> Option<String> {
    let fault = grant.user.id_fault;
    if fault == Some(IdFault::Missing) {
        return None;
    }
    let claims = claims(provider, headers, access_token, grant)?;
    let openid = provider.shape.openid()?;
    let key = provider.keys.as_ref()?.key(openid.algorithm(&grant.user))?;
    // Only for these faults: a new key takes longer than the signature.
    let signer = match fault {
        Some(IdFault::UnknownKey | IdFault::OtherSignature) => Arc::new(key.unpublished()),
        _ => Arc::clone(&key),
    };
    let algorithm = match fault {
        Some(IdFault::Unsigned) => "none",
        Some(IdFault::Confused) => "HS256",
        _ => key.algorithm().name(),
    };
    let kid = match fault {
        Some(IdFault::UnknownKey) => &signer.kid,
        _ => &key.kid,
    };
    let header = json!({ "typ": "JWT", "alg": algorithm, "kid": kid });
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let (header, claims) = (header.to_string(), claims.to_string());
    let signed = format!(
        "{}.{}",
        encode(header.as_bytes()),
        encode(claims.as_bytes())
    );
    let signature = match fault {
        Some(IdFault::Unsigned) => Vec::new(),
        Some(IdFault::Confused) => key.confuse(signed.as_bytes()),
        _ => signer.sign(signed.as_bytes()),
    };
    Some(format!("{signed}.{}", encode(&signature)))
}

fn claims(
    provider: &Provider,
    headers: &HeaderMap,
    access_token: &str,
    grant: &Grant,
) -> Option<Value> {
    let openid = provider.shape.openid()?;
    let now = clock::now();
    let mut claims = json!({
        "iss": openid.issuer(&provider.url(headers)),
        "aud": grant.client_id,
        "iat": now,
        "exp": now + LIFETIME,
    });
    if let Some(nonce) = &grant.nonce {
        claims["nonce"] = nonce.as_str().into();
    }
    openid::extend(&mut claims, openid.claims(access_token, grant));
    match grant.user.id_fault {
        Some(IdFault::WrongAudience) => claims["aud"] = "another-client".into(),
        Some(IdFault::WrongNonce) => claims["nonce"] = "another-nonce".into(),
        Some(IdFault::WrongIssuer) => claims["iss"] = "https://another.example".into(),
        Some(IdFault::Expired) => {
            claims["iat"] = (now - 2 * LIFETIME).into();
            claims["exp"] = (now - LIFETIME).into();
        }
        Some(IdFault::NoSubject) => {
            claims.as_object_mut()?.remove("sub");
        }
        _ => {}
    }
    Some(claims)
}
