//! Hostile claims. The signature of each token is valid.

use serde_json::{Value, json};

use super::*;
use crate::{
    IdToken, Keys,
    testing::{Signer, key_set},
};

const NOW: u64 = 1_700_000_000;

const EXPECTED: Expected<'_> = Expected {
    issuer: "https://id.example",
    client_id: "me",
    nonce: "n-0S6_WzA2Mj",
    now: NOW,
};

/// What a provider says, with these claims in place of its own.
fn payload(changes: &Value) -> Value {
    let mut payload = json!({
        "iss": "https://id.example",
        "aud": "me",
        "sub": "24400320",
        "nonce": "n-0S6_WzA2Mj",
        "exp": NOW + 300,
        "iat": NOW,
        "name": "Ada Lovelace",
        "email": "ada@id.example",
        "email_verified": true,
    });
    for (name, value) in changes.as_object().unwrap() {
        payload[name] = value.clone();
    }
    payload
}

fn check(payload: &str) -> Result<User, TokenFault> {
    let token = Signer::EdDsa.token(payload);
    let keys = Keys::parse(key_set().as_bytes()).unwrap();
    let token = IdToken::parse(&token).unwrap();
    token.verify(&keys).unwrap().check(&EXPECTED)
}

#[test]
fn the_user_is_the_subject() {
    let user = check(&payload(&json!({})).to_string()).unwrap();
    let expected = User {
        subject: "24400320".to_owned(),
        name: Some("Ada Lovelace".to_owned()),
        email: Some("ada@id.example".to_owned()),
    };
    assert_eq!(user, expected);
    for name in [json!(null), json!(7), json!(["Ada"])] {
        let user = check(&payload(&json!({"name": name})).to_string());
        assert_eq!(user.unwrap().name, None, "{name}");
    }
    for changes in [
        json!({"email_verified": null}),
        json!({"email_verified": false}),
        json!({"email_verified": "yes"}),
        json!({"email": 7}),
    ] {
        let user = check(&payload(&changes).to_string());
        assert_eq!(user.unwrap().email, None, "{changes}");
    }
}

#[test]
fn a_hostile_claim_is_rejected() {
    let claim = |name| Some(TokenFault::Claim { name });
    let issuer = |found: &str| {
        let found = Shown::new(found);
        Some(TokenFault::OtherIssuer { found })
    };
    let expired = |seconds| Some(TokenFault::Expired { seconds });
    let early = |seconds| Some(TokenFault::NotYetValid { seconds });
    let audience = Some(TokenFault::OtherAudience);
    let client = Some(TokenFault::OtherClient);
    let nonce = Some(TokenFault::OtherNonce);
    let subject = Some(TokenFault::BadSubject);
    for (change, expected) in [
        (json!({}), None),
        (json!({"iss": null}), claim("iss")),
        (json!({"iss": ["https://id.example"]}), claim("iss")),
        (json!({"iss": ""}), issuer("")),
        (
            json!({"iss": "https://id.example/"}),
            issuer("https://id.example/"),
        ),
        (
            json!({"iss": "https://ID.example"}),
            issuer("https://ID.example"),
        ),
        (
            json!({"iss": "http://id.example"}),
            issuer("http://id.example"),
        ),
        (
            json!({"iss": "https://id.example.evil.example"}),
            issuer("https://id.example.evil.example"),
        ),
        (
            json!({"iss": "https://\u{456}d.example"}),
            issuer("https://d.example"),
        ),
        (
            json!({"iss": "https://id.example\0"}),
            issuer("https://id.example"),
        ),
        (json!({"aud": ["me"]}), None),
        (json!({"aud": ["me"], "azp": "me"}), None),
        (json!({"aud": ["other", "me"], "azp": "me"}), None),
        (json!({"aud": "me", "azp": null}), None),
        (json!({"aud": null}), claim("aud")),
        (json!({"aud": 7}), claim("aud")),
        (json!({"aud": {"me": true}}), claim("aud")),
        (json!({"aud": [["me"]]}), claim("aud")),
        (json!({"aud": ["me", 7]}), claim("aud")),
        (json!({"aud": ["me", null]}), claim("aud")),
        (json!({"aud": []}), audience.clone()),
        (json!({"aud": "other"}), audience.clone()),
        (json!({"aud": "Me"}), audience.clone()),
        (json!({"aud": "me "}), audience.clone()),
        (json!({"aud": "me,other"}), audience.clone()),
        (json!({"aud": ["other", "third"], "azp": "me"}), audience),
        (json!({"aud": ["me", "other"]}), client.clone()),
        (json!({"aud": ["me", "me"]}), client.clone()),
        (
            json!({"aud": ["me", "other"], "azp": "other"}),
            client.clone(),
        ),
        (json!({"azp": "other"}), client.clone()),
        (json!({"azp": ""}), client),
        (json!({"azp": ["me"]}), claim("azp")),
        (json!({"exp": NOW}), None),
        (json!({"exp": NOW - 59}), None),
        (json!({"exp": NOW as f64 - 59.5}), None),
        (json!({"exp": u64::MAX}), None),
        (json!({"exp": 1e300}), None),
        (json!({"exp": NOW - 60}), expired(60)),
        (json!({"exp": NOW - 3_600}), expired(3_600)),
        (json!({"exp": 0}), expired(NOW)),
        (json!({"exp": -1}), expired(NOW + 1)),
        (json!({"exp": -1e300}), expired(u64::MAX)),
        (json!({"exp": null}), claim("exp")),
        (json!({"exp": (NOW + 300).to_string()}), claim("exp")),
        (json!({"exp": [NOW + 300]}), claim("exp")),
        (json!({"exp": true}), claim("exp")),
        (json!({"nbf": NOW + 60}), None),
        (json!({"nbf": 0}), None),
        (json!({"nbf": NOW + 61}), early(61)),
        (json!({"nbf": 1e300}), early(u64::MAX)),
        (json!({"nbf": "0"}), claim("nbf")),
        (json!({"iat": NOW as f64 + 0.5}), None),
        (json!({"iat": null}), claim("iat")),
        (json!({"iat": NOW.to_string()}), claim("iat")),
        (json!({"nonce": null}), claim("nonce")),
        (json!({"nonce": ["n-0S6_WzA2Mj"]}), claim("nonce")),
        (json!({"nonce": ""}), nonce.clone()),
        (json!({"nonce": "other"}), nonce.clone()),
        (json!({"nonce": "N-0S6_WzA2Mj"}), nonce.clone()),
        (json!({"nonce": "n-0S6_WzA2Mj\0"}), nonce),
        (json!({"sub": "a".repeat(255)}), None),
        (json!({"sub": "auth0|a b~{}"}), None),
        (json!({"sub": null}), claim("sub")),
        (json!({"sub": 24_400_320}), claim("sub")),
        (json!({"sub": ["a"]}), claim("sub")),
        (json!({"sub": ""}), subject.clone()),
        (json!({"sub": "a".repeat(256)}), subject.clone()),
        (json!({"sub": "\u{430}da"}), subject.clone()),
        (json!({"sub": "ada\0"}), subject.clone()),
        (json!({"sub": "ada\n"}), subject.clone()),
        (json!({"sub": "ada\u{7f}"}), subject),
    ] {
        let found = check(&payload(&change).to_string());
        assert_eq!(found.err(), expected, "{change}");
    }
}

/// What `serde_json` cannot write.
#[test]
fn a_number_that_is_none_is_rejected() {
    let text = payload(&json!({})).to_string();
    let with =
        |exp: &str| text.replace(&format!("\"exp\":{}", NOW + 300), &format!("\"exp\":{exp}"));
    let claim = Some(TokenFault::Claim { name: "exp" });
    for (exp, expected) in [
        ("1.7000003E9", None),
        ("99999999999999999999999999", None),
        ("1e400", claim.clone()),
        ("-1e400", claim.clone()),
        ("\"NaN\"", claim.clone()),
        ("\"Infinity\"", claim),
    ] {
        assert_eq!(check(&with(exp)).err(), expected, "{exp}");
    }
}
