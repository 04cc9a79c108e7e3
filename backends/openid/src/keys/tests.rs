//! Hostile key sets.

use serde_json::{Value, json};

use super::*;
use crate::testing::{Signer, encoded, key_set};

fn set(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// The key of a signer with these members in place of its own.
fn changed(signer: Signer, changes: &Value) -> Value {
    let mut jwk = signer.jwk();
    for (name, value) in changes.as_object().unwrap() {
        jwk[name] = value.clone();
    }
    jwk
}

/// A modulus of this many bits.
fn modulus(bits: usize) -> String {
    let mut bytes = vec![0xff; bits.div_ceil(8)];
    bytes[0] >>= (8 - bits % 8) % 8;
    encoded(bytes)
}

#[test]
fn a_key_is_usable_or_left_out() {
    use Signer::{EdDsa, Es256, Rs256};
    let n = URL_SAFE_NO_PAD.decode(Rs256.jwk()["n"].as_str().unwrap());
    let zero_before = encoded([vec![0], n.unwrap()].concat());
    for (signer, change, is_usable) in [
        (Rs256, json!({}), true),
        (Rs256, json!({"kid": null, "use": null, "alg": null}), true),
        (Rs256, json!({"kid": "a".repeat(255)}), true),
        (Rs256, json!({"kid": "a".repeat(256)}), false),
        (Rs256, json!({"kid": 7}), false),
        (
            Rs256,
            json!({"d": "AQAB", "x5c": [7], "x5u": "file:///"}),
            true,
        ),
        (Rs256, json!({"use": "enc"}), false),
        (Rs256, json!({"use": ["sig"]}), false),
        (Rs256, json!({"key_ops": ["verify", "sign"]}), true),
        (Rs256, json!({"key_ops": ["encrypt"]}), false),
        (Rs256, json!({"key_ops": "verify"}), false),
        (Rs256, json!({"alg": "RS512"}), false),
        (Rs256, json!({"alg": "PS256"}), false),
        (Rs256, json!({"alg": "HS256"}), false),
        (Rs256, json!({"alg": "ES256"}), false),
        (Rs256, json!({"alg": "none"}), false),
        (Rs256, json!({"kty": "EC"}), false),
        (Rs256, json!({"kty": "rsa"}), false),
        (Rs256, json!({"kty": null}), false),
        (Rs256, json!({"kty": "oct", "k": "c2VjcmV0"}), false),
        (Rs256, json!({"n": modulus(1_024)}), false),
        (Rs256, json!({"n": modulus(2_047)}), false),
        (Rs256, json!({"n": modulus(2_048)}), true),
        (Rs256, json!({"n": modulus(8_192)}), true),
        (Rs256, json!({"n": modulus(8_193)}), false),
        (Rs256, json!({"n": zero_before}), true),
        (
            Rs256,
            json!({"n": encoded([vec![0xff; 255], vec![0xfe]].concat())}),
            false,
        ),
        (Rs256, json!({"n": ""}), false),
        (Rs256, json!({"n": encoded([0; 256])}), false),
        (Rs256, json!({"n": modulus(2_048) + "="}), false),
        (Rs256, json!({"n": null}), false),
        (Rs256, json!({"e": encoded([3])}), true),
        (Rs256, json!({"e": encoded([0, 1, 0, 1])}), true),
        (Rs256, json!({"e": encoded([1])}), false),
        (Rs256, json!({"e": encoded([4])}), false),
        (Rs256, json!({"e": encoded([0])}), false),
        (Rs256, json!({"e": encoded([1, 255, 255, 255, 255])}), true),
        (Rs256, json!({"e": encoded([2, 0, 0, 0, 1])}), false),
        (Rs256, json!({"e": encoded([255; 9])}), false),
        (Rs256, json!({"e": 65_537}), false),
        (Es256, json!({}), true),
        (Es256, json!({"crv": "P-384"}), false),
        (Es256, json!({"crv": "secp256k1"}), false),
        (Es256, json!({"crv": null}), false),
        (Es256, json!({"x": encoded([1; 31])}), false),
        (Es256, json!({"y": encoded([1; 33])}), false),
        (Es256, json!({"y": null}), false),
        (Es256, json!({"alg": "RS256"}), false),
        (EdDsa, json!({}), true),
        (EdDsa, json!({"x": encoded([1; 31])}), false),
        (EdDsa, json!({"crv": "X25519"}), false),
        (EdDsa, json!({"crv": "Ed448"}), false),
        (EdDsa, json!({"kty": "EC"}), false),
    ] {
        let keys = Keys::parse(set(&[changed(signer, &change)]).as_bytes());
        let expected = if is_usable {
            Ok(1)
        } else {
            Err(KeysFault::NoneUsable)
        };
        assert_eq!(
            keys.map(|keys| keys.count()),
            expected,
            "{signer:?} {change}"
        );
    }
}

#[test]
fn one_bad_key_locks_nobody_out() {
    let bad = changed(Signer::Es256, &json!({"x": "not base64"}));
    let keys = set(&[bad, json!(7), json!(null), Signer::EdDsa.jwk()]);
    let twice = keys.replacen("[{", "[{\"kty\":\"RSA\",\"kty\":\"EC\"},{", 1);
    let keys = Keys::parse(twice.as_bytes()).unwrap();
    assert_eq!(keys.count(), 1);
    assert_eq!(format!("{keys:?}"), "Keys(1)");
}

#[test]
fn a_set_that_is_none_is_rejected() {
    let keys = key_set();
    let padded = |length: usize| keys.clone() + &" ".repeat(length - keys.len());
    let small = json!({"kty": "oct"});
    let full = |count: usize| [vec![Signer::EdDsa.jwk()], vec![small.clone(); count - 1]].concat();
    for (document, expected) in [
        (keys.clone(), Ok(3)),
        (padded(MAX_DOCUMENT), Ok(3)),
        (padded(MAX_DOCUMENT + 1), Err(KeysFault::TooLarge)),
        (set(&full(100)), Ok(1)),
        (set(&full(101)), Err(KeysFault::TooMany)),
        (set(&[]), Err(KeysFault::NoneUsable)),
        (set(&[small]), Err(KeysFault::NoneUsable)),
        ("{}".to_owned(), Err(KeysFault::Malformed)),
        (r#"{"keys":null}"#.to_owned(), Err(KeysFault::Malformed)),
        (r#"{"keys":{}}"#.to_owned(), Err(KeysFault::Malformed)),
        ("[]".to_owned(), Err(KeysFault::Malformed)),
        (Signer::EdDsa.jwk().to_string(), Err(KeysFault::Malformed)),
        ("<html>".to_owned(), Err(KeysFault::Malformed)),
        (format!("\u{feff}{keys}"), Err(KeysFault::Malformed)),
        (
            keys.replacen('{', r#"{"keys":[],"#, 1),
            Err(KeysFault::Ambiguous),
        ),
    ] {
        let found = Keys::parse(document.as_bytes()).map(|keys| keys.count());
        let shown: String = document.chars().take(60).collect();
        assert_eq!(found, expected, "{shown}");
    }
}

#[test]
fn a_point_beside_the_curve_verifies_nothing() {
    let point = json!({"x": encoded([1; 32]), "y": encoded([1; 32])});
    let keys = set(&[changed(Signer::Es256, &point)]);
    let keys = Keys::parse(keys.as_bytes()).unwrap();
    let signature = Signer::Es256.signature(b"message");
    let verdict = keys.verify(Algorithm::Es256, None, b"message", &signature);
    assert_eq!(verdict, Err(TokenFault::BadSignature));
}

#[test]
fn leading_zeros_change_no_key() {
    let jwk = Signer::Rs256.jwk();
    let with_zeros = |name: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap());
        encoded([vec![0, 0], bytes.unwrap()].concat())
    };
    let change = json!({"n": with_zeros("n"), "e": with_zeros("e")});
    let keys = set(&[changed(Signer::Rs256, &change)]);
    let keys = Keys::parse(keys.as_bytes()).unwrap();
    let signature = Signer::Rs256.signature(b"message");
    let verdict = keys.verify(Algorithm::Rs256, Some("rsa"), b"message", &signature);
    assert_eq!(verdict, Ok(()));
}
