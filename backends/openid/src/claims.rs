//! What a signed ID token must say. Source: OIDC Core sections 2 and 3.1.3.7.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::Deserialize;

use crate::{
    fault::{Shown, TokenFault},
    json::Object,
};

/// How many seconds the provider's clock and ours may differ.
pub const LEEWAY: u64 = 60;

/// Longest subject in bytes (section 2).
const MAX_SUBJECT: usize = 255;

/// The claims of an ID token whose signature is valid. Only [`IdToken::verify`](crate::IdToken::verify) makes them.
pub struct Claims<'t>(Object<'t>);

/// What the claims are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The issuer as configured: `iss` must equal it.
    pub issuer: &'a str,
    /// Our client ID at the provider.
    pub client_id: &'a str,
    /// The nonce of this login.
    pub nonce: &'a str,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// Who logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// `sub`: identifies the user at this issuer, for ever. 1 to 255 visible ASCII characters and spaces.
    pub subject: String,
    /// `name`: any text.
    pub name: Option<String>,
    /// `email`: any text, which the issuer says to have verified (`email_verified`, OIDC Core section 5.1).
    pub email: Option<String>,
}

impl<'t> Claims<'t> {
    pub(crate) fn read(payload: &'t [u8]) -> Result<Self, TokenFault> {
        let (malformed, ambiguous) = (TokenFault::PayloadMalformed, TokenFault::PayloadAmbiguous);
        Object::read(payload, malformed, ambiguous).map(Self)
    }

    /// Checks that the token is of this issuer, for us, for this login, and still valid.
    ///
    /// # Errors
    ///
    /// A claim is missing, malformed or another one.
    pub fn check(&self, expected: &Expected<'_>) -> Result<User, TokenFault> {
        let issuer: String = self.required("iss")?;
        if issuer != expected.issuer {
            let found = Shown::new(&issuer);
            return Err(TokenFault::OtherIssuer { found });
        }
        self.check_audience(expected.client_id)?;
        self.check_time(expected.now)?;
        let nonce: String = self.required("nonce")?;
        if nonce != expected.nonce {
            return Err(TokenFault::OtherNonce);
        }
        let is_verified = self.0.get("email_verified", ()) == Ok(Some(true));
        Ok(User {
            subject: self.subject()?,
            // They are only shown: one of another type is no reason to refuse a login.
            name: self.0.get("name", ()).ok().flatten(),
            email: self
                .0
                .get("email", ())
                .ok()
                .flatten()
                .filter(|_| is_verified),
        })
    }

    fn check_audience(&self, client_id: &str) -> Result<(), TokenFault> {
        let audiences = match self.required("aud")? {
            Audience::One(audience) => vec![audience],
            Audience::Several(audiences) => audiences,
        };
        if !audiences.iter().any(|audience| audience == client_id) {
            return Err(TokenFault::OtherAudience);
        }
        match self.optional::<String>("azp")? {
            Some(party) if party == client_id => Ok(()),
            // A token for others as well must say that it was issued to us: they could have got it.
            None if audiences.len() == 1 => Ok(()),
            _ => Err(TokenFault::OtherClient),
        }
    }

    fn check_time(&self, now: u64) -> Result<(), TokenFault> {
        let (now, leeway) = (now as f64, LEEWAY as f64);
        let absent = |name| TokenFault::Claim { name };
        let expires = self.time("exp")?.ok_or(absent("exp"))?;
        if now >= expires + leeway {
            let seconds = (now - expires) as u64;
            return Err(TokenFault::Expired { seconds });
        }
        let begins = self.time("nbf")?.unwrap_or(0.0);
        if begins > now + leeway {
            let seconds = (begins - now) as u64;
            return Err(TokenFault::NotYetValid { seconds });
        }
        // Required (OIDC Core section 2), but not compared: how old a token may be, `exp` and the nonce say.
        self.time("iat")?.map(drop).ok_or(absent("iat"))
    }

    /// A time in seconds. As a float: whole seconds are exact far beyond our time, and nothing overflows.
    fn time(&self, name: &'static str) -> Result<Option<f64>, TokenFault> {
        let time: Option<f64> = self.optional(name)?;
        match time {
            // Comparisons with NaN are all false.
            Some(time) if !time.is_finite() => Err(TokenFault::Claim { name }),
            _ => Ok(time),
        }
    }

    fn subject(&self) -> Result<String, TokenFault> {
        let subject: String = self.required("sub")?;
        let is_allowed = |byte| matches!(byte, b' '..=b'~');
        let is_subject = (1..=MAX_SUBJECT).contains(&subject.len());
        if !is_subject || !subject.bytes().all(is_allowed) {
            return Err(TokenFault::BadSubject);
        }
        Ok(subject)
    }

    fn required<T: Deserialize<'t>>(&self, name: &'static str) -> Result<T, TokenFault> {
        let claim = self.optional(name)?;
        claim.ok_or(TokenFault::Claim { name })
    }

    fn optional<T: Deserialize<'t>>(&self, name: &'static str) -> Result<Option<T>, TokenFault> {
        self.0.get(name, TokenFault::Claim { name })
    }
}

/// Without the claims: they are about a person.
impl fmt::Debug for Claims<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Claims")
    }
}

/// `aud` (RFC 7519 section 4.1.3).
#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}
