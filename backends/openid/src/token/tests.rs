//! Hostile ID tokens: their form and their signature.

use ring::hmac;
use serde_json::json;

use super::*;
use crate::{
    Expected,
    testing::{Signer, encoded, key_set},
};

const PAYLOAD: &str =
    r#"{"iss":"https://id.example","aud":"me","sub":"7","nonce":"n","exp":2000,"iat":1000}"#;

fn keys() -> Keys {
    Keys::parse(key_set().as_bytes()).unwrap()
}

/// Parses and verifies by the keys of all signers.
fn fault(token: &str) -> Option<TokenFault> {
    let token = IdToken::parse(token);
    token
        .and_then(|token| token.verify(&keys()).map(drop))
        .err()
}

fn with_header(signer: Signer, header: &str) -> String {
    signer.sign(header, PAYLOAD)
}

#[test]
fn every_signer_is_verified() {
    for signer in Signer::ALL {
        let token = signer.token(PAYLOAD);
        let parsed = IdToken::parse(&token).unwrap();
        assert_eq!(parsed.key_id(), Some(signer.key_id()));
        let name = signer.algorithm().name();
        assert_eq!(format!("{parsed:?}"), format!("IdToken({name})"));
        let keys = keys();
        let claims = parsed.verify(&keys).unwrap();
        assert_eq!(format!("{claims:?}"), "Claims");
        let user = claims.check(&Expected {
            issuer: "https://id.example",
            client_id: "me",
            nonce: "n",
            now: 1_500,
        });
        assert_eq!(user.unwrap().subject, "7");
        // Each byte of each part counts.
        for at in (0..token.len()).step_by(token.len() / 40) {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let damaged = String::from_utf8(bytes).unwrap();
            assert!(fault(&damaged).is_some(), "{name} at {at}");
        }
    }
}

#[test]
fn a_header_that_asks_for_something_else_is_rejected() {
    let other = |name| Some(TokenFault::OtherAlgorithm { name });
    let unsigned = Some(TokenFault::Unsigned);
    let malformed = Some(TokenFault::HeaderMalformed);
    let long = |length: usize| json!({"alg": "ES256", "kid": "a".repeat(length)}).to_string();
    let deep = format!(
        r#"{{"alg":"ES256","a":{}{}}}"#,
        "[".repeat(900),
        "]".repeat(900)
    );
    let own = Signer::Es256.jwk();
    for (header, expected) in [
        (r#"{"alg":"ES256"}"#, None),
        (r#"{"alg":"ES256","kid":"p256","typ":"jwt"}"#, None),
        (r#"{"alg":"ES256","typ":"application/JWT","cty":"a"}"#, None),
        (r#"{"alg":"ES256","kid":null}"#, None),
        (r#"{"alg":"\u0045S256"}"#, None),
        (&deep, None),
        (r#"{"alg":"none"}"#, unsigned.clone()),
        (r#"{"alg":"None"}"#, unsigned.clone()),
        (r#"{"alg":"nOnE","kid":"p256"}"#, unsigned.clone()),
        (r#"{"alg":"NONE"}"#, unsigned),
        (r#"{"alg":"HS256"}"#, other("HS256")),
        (r#"{"alg":"HS512"}"#, other("HS512")),
        (r#"{"alg":"PS256"}"#, other("PS256")),
        (r#"{"alg":"RS512"}"#, other("RS512")),
        (r#"{"alg":"ES256K"}"#, other("ES256K")),
        (r#"{"alg":"Ed25519"}"#, other("Ed25519")),
        (r#"{"alg":"es256"}"#, Some(TokenFault::UnknownAlgorithm)),
        (r#"{"alg":"ES256 "}"#, Some(TokenFault::UnknownAlgorithm)),
        (
            r#"{"alg":"ES256\u0000"}"#,
            Some(TokenFault::UnknownAlgorithm),
        ),
        (r#"{"alg":""}"#, Some(TokenFault::UnknownAlgorithm)),
        (r#"{"alg":["ES256"]}"#, malformed.clone()),
        (r#"{"alg":null}"#, malformed.clone()),
        (r#"{"kid":"p256"}"#, malformed.clone()),
        (r#"{"alg":"ES256""#, malformed.clone()),
        (r#"["ES256"]"#, malformed.clone()),
        ("\u{feff}{\"alg\":\"ES256\"}", malformed.clone()),
        ("{\"alg\":\"ES256\"}\0", malformed.clone()),
        ("", malformed.clone()),
        (
            r#"{"alg":"none","alg":"ES256"}"#,
            Some(TokenFault::HeaderAmbiguous),
        ),
        (
            r#"{"alg":"ES256","\u0061lg":"none"}"#,
            Some(TokenFault::HeaderAmbiguous),
        ),
        (
            r#"{"alg":"ES256","crit":["exp"]}"#,
            Some(TokenFault::Extension),
        ),
        (
            r#"{"alg":"ES256","crit":null}"#,
            Some(TokenFault::Extension),
        ),
        (
            r#"{"alg":"ES256","b64":false}"#,
            Some(TokenFault::Extension),
        ),
        (
            r#"{"alg":"ES256","typ":"at+jwt"}"#,
            Some(TokenFault::OtherType),
        ),
        (
            r#"{"alg":"ES256","typ":"application/logout+jwt"}"#,
            Some(TokenFault::OtherType),
        ),
        (r#"{"alg":"ES256","typ":""}"#, Some(TokenFault::OtherType)),
        (r#"{"alg":"ES256","typ":7}"#, malformed),
        (
            r#"{"alg":"ES256","kid":7}"#,
            Some(TokenFault::KeyIdMalformed),
        ),
        (&long(255), Some(TokenFault::UnknownKey)),
        (&long(256), Some(TokenFault::KeyIdMalformed)),
        (r#"{"alg":"ES256","kid":""}"#, Some(TokenFault::UnknownKey)),
        (
            r#"{"alg":"ES256","kid":"P256"}"#,
            Some(TokenFault::UnknownKey),
        ),
        (
            r#"{"alg":"ES256","kid":"../p256"}"#,
            Some(TokenFault::UnknownKey),
        ),
        // A key of another algorithm.
        (
            r#"{"alg":"ES256","kid":"rsa"}"#,
            Some(TokenFault::UnknownKey),
        ),
        (
            r#"{"alg":"RS256","kid":"p256"}"#,
            Some(TokenFault::UnknownKey),
        ),
        // A key that the token brings along is not used, even if it would fit.
        (
            &json!({"alg": "ES256", "kid": "x", "jwk": own}).to_string(),
            Some(TokenFault::UnknownKey),
        ),
        (
            &json!({"alg": "RS256", "kid": "rsa", "jwk": own}).to_string(),
            Some(TokenFault::BadSignature),
        ),
        (
            r#"{"alg":"EdDSA","kid":"ed25519","jku":"https://evil.example/","x5u":"https://evil.example/"}"#,
            Some(TokenFault::BadSignature),
        ),
    ] {
        let found = fault(&with_header(Signer::Es256, header));
        assert_eq!(found, expected, "{header}");
    }
}

#[test]
fn a_token_of_another_form_is_rejected() {
    let token = Signer::Es256.token(PAYLOAD);
    let parts: Vec<_> = token.split('.').collect();
    let [header, payload, signature] = parts[..] else {
        panic!("{token}")
    };
    let joined = |parts: [&str; 3]| parts.join(".");
    // The last letter of 64 bytes has four bits that must be zero: a lax decoder takes `R` for `Q`.
    let last = signature.chars().last().unwrap();
    let lax = char::from(last as u8 + 1);
    let loose = format!("{}{lax}", &signature[..signature.len() - 1]);
    let large = "a".repeat(MAX_TOKEN + 1);
    let rest = MAX_TOKEN - header.len() - signature.len() - 2;
    let full = joined([header, &"A".repeat(rest), signature]);
    for (text, expected) in [
        (token.clone(), None),
        (String::new(), Some(TokenFault::NotCompact)),
        ("a".to_owned(), Some(TokenFault::NotCompact)),
        (format!("{header}.{payload}"), Some(TokenFault::NotCompact)),
        (format!("{token}."), Some(TokenFault::NotCompact)),
        (format!(".{token}"), Some(TokenFault::NotCompact)),
        (format!("{token}.a.b"), Some(TokenFault::NotCompact)),
        ("..".to_owned(), Some(TokenFault::HeaderMalformed)),
        (
            joined([header, payload, ""]),
            Some(TokenFault::BadSignature),
        ),
        (
            joined([header, "", signature]),
            Some(TokenFault::BadSignature),
        ),
        (
            joined(["", payload, signature]),
            Some(TokenFault::HeaderMalformed),
        ),
        (
            joined([header, signature, payload]),
            Some(TokenFault::BadSignature),
        ),
        (format!("{token}="), Some(TokenFault::NotBase64)),
        (format!("{token}\n"), Some(TokenFault::NotBase64)),
        (format!(" {token}"), Some(TokenFault::NotBase64)),
        (format!("{token}\0"), Some(TokenFault::NotBase64)),
        // No bytes have a letter alone.
        (
            joined([header, "A", signature]),
            Some(TokenFault::NotBase64),
        ),
        (
            joined([header, payload, &loose]),
            Some(TokenFault::NotBase64),
        ),
        (
            joined([header, "é", signature]),
            Some(TokenFault::NotBase64),
        ),
        (
            joined([header, "a+b/", signature]),
            Some(TokenFault::NotBase64),
        ),
        (
            json!({"payload": payload, "signatures": []}).to_string(),
            Some(TokenFault::NotCompact),
        ),
        (large, Some(TokenFault::TooLong)),
        (full, Some(TokenFault::BadSignature)),
    ] {
        let shown: String = text.chars().take(200).collect();
        let found = fault(&text);
        assert_eq!(found, expected, "{shown}");
    }
}

#[test]
fn a_signature_of_another_form_is_invalid() {
    let header = encoded(r#"{"alg":"ES256","kid":"p256"}"#);
    let input = format!("{header}.{}", encoded(PAYLOAD));
    let fixed = Signer::Es256.signature(input.as_bytes());
    let der = {
        let integer = |bytes: &[u8]| {
            let zero = vec![0; usize::from(bytes[0] >= 0x80)];
            let bytes = [zero, bytes.to_vec()].concat();
            [vec![2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
        };
        let both = [integer(&fixed[..32]), integer(&fixed[32..])].concat();
        [vec![0x30, u8::try_from(both.len()).unwrap()], both].concat()
    };
    // The order of the group: `r` or `s` above it, or zero, must be refused (CVE-2022-21449).
    let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let order: Vec<_> = (0..32)
        .map(|at| u8::from_str_radix(&order[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    for (name, signature, is_valid) in [
        ("fixed", fixed.clone(), true),
        ("DER", der, false),
        ("zeros", vec![0; 64], false),
        ("r is zero", [&[0; 32], &fixed[32..]].concat(), false),
        ("s is zero", [&fixed[..32], &[0; 32]].concat(), false),
        ("r is the order", [&order, &fixed[32..]].concat(), false),
        ("both are the order", [&order[..], &order].concat(), false),
        (
            "halves swapped",
            [&fixed[32..], &fixed[..32]].concat(),
            false,
        ),
        ("truncated", fixed[..63].to_vec(), false),
        ("longer", [&fixed[..], &[0]].concat(), false),
        ("96 bytes", [&fixed[..], &fixed[..32]].concat(), false),
        (
            "of the payload",
            Signer::Es256.signature(PAYLOAD.as_bytes()),
            false,
        ),
        (
            "of another key",
            Signer::EdDsa.signature(input.as_bytes()),
            false,
        ),
    ] {
        let found = fault(&format!("{input}.{}", encoded(signature)));
        let expected = (!is_valid).then_some(TokenFault::BadSignature);
        assert_eq!(found, expected, "{name}");
    }

    for signer in [Signer::Rs256, Signer::EdDsa] {
        let token = signer.token(PAYLOAD);
        let (input, signature) = token.rsplit_once('.').unwrap();
        let length = URL_SAFE_NO_PAD.decode(signature).unwrap().len();
        for bytes in [
            vec![0; length],
            vec![0xff; length],
            vec![1],
            vec![0; length + 1],
        ] {
            let found = fault(&format!("{input}.{}", encoded(bytes)));
            assert_eq!(found, Some(TokenFault::BadSignature), "{signer:?}");
        }
    }
}

/// The classic: the public key, which everybody has, is taken for the secret of an HMAC.
#[test]
fn a_public_key_is_no_secret() {
    let jwk = Signer::Rs256.jwk();
    for secret in [
        jwk.to_string(),
        jwk["n"].as_str().unwrap().to_owned(),
        key_set(),
    ] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        for (algorithm, expected) in [
            ("HS256", TokenFault::OtherAlgorithm { name: "HS256" }),
            ("RS256", TokenFault::BadSignature),
        ] {
            let header = json!({"alg": algorithm, "kid": "rsa"}).to_string();
            let input = format!("{}.{}", encoded(header), encoded(PAYLOAD));
            let signature = hmac::sign(&key, input.as_bytes());
            let found = fault(&format!("{input}.{}", encoded(signature)));
            assert_eq!(found, Some(expected));
        }
    }
}

#[test]
fn keys_that_share_an_id_are_all_tried() {
    let token = Signer::EdDsa.sign(r#"{"alg":"EdDSA","kid":"a"}"#, PAYLOAD);
    let without_id = Signer::EdDsa.sign(r#"{"alg":"EdDSA"}"#, PAYLOAD);
    let key = |x: Option<[u8; 32]>, id: Option<&str>| {
        let mut jwk = Signer::EdDsa.jwk();
        jwk["kid"] = id.into();
        if let Some(x) = x {
            jwk["x"] = encoded(x).into();
        }
        jwk
    };
    let mut of_another_algorithm = Signer::Rs256.jwk();
    of_another_algorithm["kid"] = "a".into();
    let others =
        |count: u8, id| -> Vec<_> { (1..=count).map(|one| key(Some([one; 32]), id)).collect() };
    let bad = Some(TokenFault::BadSignature);
    let unknown = Some(TokenFault::UnknownKey);
    for (before, last, with_id, none) in [
        (vec![], key(None, Some("a")), None, None),
        (vec![], key(None, Some("b")), unknown.clone(), None),
        (vec![], key(None, None), unknown.clone(), None),
        (
            vec![of_another_algorithm.clone()],
            key(None, Some("a")),
            None,
            None,
        ),
        (others(1, Some("a")), key(None, Some("a")), None, None),
        (others(9, Some("a")), key(None, Some("a")), None, None),
        (
            others(10, Some("a")),
            key(None, Some("a")),
            bad.clone(),
            bad.clone(),
        ),
        (
            others(10, Some("b")),
            key(None, Some("a")),
            None,
            bad.clone(),
        ),
        (others(1, Some("a")), key(None, Some("b")), bad, None),
        (vec![], of_another_algorithm, unknown.clone(), unknown),
    ] {
        let all = [before, vec![last]].concat();
        let set = json!({ "keys": all }).to_string();
        let keys = Keys::parse(set.as_bytes()).unwrap();
        let fault = |token| IdToken::parse(token).unwrap().verify(&keys).err();
        assert_eq!(
            (fault(&token), fault(&without_id)),
            (with_id, none),
            "{set}"
        );
    }
}

#[test]
fn only_a_signed_payload_is_read() {
    for (payload, expected) in [
        ("[]", Some(TokenFault::PayloadMalformed)),
        ("", Some(TokenFault::PayloadMalformed)),
        ("\u{feff}{}", Some(TokenFault::PayloadMalformed)),
        (r#"{"exp":NaN}"#, Some(TokenFault::PayloadMalformed)),
        (
            r#"{"iss":"a","iss":"b"}"#,
            Some(TokenFault::PayloadAmbiguous),
        ),
        (r#"{"exp":1,"exp":2}"#, Some(TokenFault::PayloadAmbiguous)),
        (
            r#"{"aud":"a","\u0061ud":"b"}"#,
            Some(TokenFault::PayloadAmbiguous),
        ),
        (r#"{"other":1e400,"deep":[[[[]]]]}"#, None),
    ] {
        let token = Signer::EdDsa.token(payload);
        assert_eq!(fault(&token), expected, "{payload}");
        let (input, _) = token.rsplit_once('.').unwrap();
        let forged = format!("{input}.{}", encoded([0; 64]));
        assert_eq!(fault(&forged), Some(TokenFault::BadSignature), "{payload}");
    }
}
