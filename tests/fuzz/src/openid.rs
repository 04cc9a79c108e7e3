//! Discovery documents, key sets, ID tokens and their claims.

use std::{fmt::Debug, sync::LazyLock};

use signpost_openid::{
    Discovery, Expected, IdToken, Keys, TokenFault, User,
    testing::{Signer, key_set},
};

use crate::{
    naive::openid::{self as naive, Verdict},
    query_and_body,
};

/// What the claims are compared with.
const EXPECTED: Expected<'_> = Expected {
    issuer: "https://id.example",
    client_id: "me",
    nonce: "n",
    now: 1_500,
};

/// The payloads of the tokens in the corpus: the first one names a user, the other is for another client.
const SIGNED: [&str; 2] = [
    r#"{"iss":"https://id.example","aud":"me","sub":"7","nonce":"n","exp":2000,"iat":1000}"#,
    r#"{"iss":"https://id.example","aud":"other","sub":"7","nonce":"n","exp":2000,"iat":1000}"#,
];

/// The keys that verify the tokens.
static KEYS: LazyLock<Keys> =
    LazyLock::new(|| Keys::parse(key_set().as_bytes()).expect("the keys are usable"));

/// What was ever signed by these keys, for each of [`SIGNED`].
static SIGNING_INPUTS: LazyLock<[Vec<String>; 2]> = LazyLock::new(|| {
    SIGNED.map(|payload| {
        let tokens = Signer::ALL.map(|signer| signer.token(payload));
        let inputs = tokens.iter().filter_map(|token| token.rsplit_once('.'));
        inputs.map(|(input, _)| input.to_owned()).collect()
    })
});

/// Reads what the first line says: `keys`, `token`, `claims`, or a discovery document of the issuer in this line.
///
/// # Panics
///
/// When two results differ, or a token is verified that was never signed.
pub fn openid(input: &[u8]) -> bool {
    let (line, rest) = query_and_body(input);
    match line {
        b"keys" => keys(rest),
        b"token" => token(&String::from_utf8_lossy(rest)),
        b"claims" => claims(&String::from_utf8_lossy(rest)),
        issuer => discovery(rest, &String::from_utf8_lossy(issuer)),
    }
}

fn discovery(document: &[u8], issuer: &str) -> bool {
    let read = || Discovery::parse(document, issuer);
    let found = read();
    assert_eq!(found, read(), "read twice");
    assert_verdict(naive::discovery(document, issuer), &found);
    found.is_ok()
}

fn keys(document: &[u8]) -> bool {
    let read = || Keys::parse(document).map(|keys| keys.count());
    let found = read();
    assert_eq!(found, read(), "read twice");
    if let Some(count) = naive::usable_keys(document) {
        assert_eq!(found.ok(), (count > 0).then_some(count), "usable keys");
    }
    // Only a set with the signer's key verifies what it signed.
    if let Ok(keys) = Keys::parse(document) {
        let token = Signer::EdDsa.token(SIGNED[0]);
        let token = IdToken::parse(&token).expect("the token is well-formed");
        let has_key = naive::has_point(document, &Signer::EdDsa.jwk()["x"]);
        assert!(token.verify(&keys).is_err() || has_key != Some(false));
    }
    found.is_ok()
}

/// A token from anywhere: never accepted unless one of the keys signed it.
fn token(text: &str) -> bool {
    let found = IdToken::parse(text);
    let again = IdToken::parse(text);
    assert_eq!(format!("{found:?}"), format!("{again:?}"), "read twice");
    assert_verdict(naive::token(text), &found);
    let Ok(token) = found else {
        return false;
    };
    let Ok(claims) = token.verify(&KEYS) else {
        return false;
    };
    let is_input = |input: &String| {
        text.rsplit_once('.')
            .is_some_and(|(found, _)| found == input)
    };
    let signed = SIGNING_INPUTS
        .iter()
        .position(|inputs| inputs.iter().any(is_input));
    let user = claims.check(&EXPECTED);
    match signed {
        Some(0) => assert!(user.is_ok(), "{user:?}"),
        Some(_) => assert_eq!(user, Err(TokenFault::OtherAudience)),
        None => panic!("a token is verified that was never signed"),
    }
    user.is_ok()
}

/// Claims that a provider did sign.
fn claims(payload: &str) -> bool {
    let token = Signer::EdDsa.token(payload);
    let found = user(&token);
    assert_eq!(found, user(&token), "read twice");
    if token.len() <= signpost_openid::MAX_TOKEN {
        assert_verdict(naive::claims(payload, &EXPECTED), &found);
    }
    found.is_ok()
}

fn user(token: &str) -> Result<User, TokenFault> {
    IdToken::parse(token)?.verify(&KEYS)?.check(&EXPECTED)
}

fn assert_verdict<T: Debug, F: Debug>(expected: Verdict, found: &Result<T, F>) {
    let differs = expected.is_some_and(|is_accepted| is_accepted != found.is_ok());
    assert!(!differs, "{found:?} instead of {expected:?}");
}
