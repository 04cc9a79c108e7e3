//! Discovery documents, key sets, ID tokens and claims.

use proptest::{prelude::*, sample::select};
use signpost_openid::testing::Signer;

use super::{Inputs, check, damage::damaged, text};

const TOKENS: &[&[u8]] = &[
    b"\"",
    b"\\u0061",
    b",",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
    b"0",
    b"-",
    b"e400",
    b".",
    b"=",
    b"A",
    b"/",
    b"@",
    b"#",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\"iss\":\"https://id.example\",",
    b"\"kid\":\"rsa\",",
];

/// An object with these members, in their order: the text of each value is one that its expression matches.
fn object(members: &[(&str, &str)]) -> Inputs {
    let members: Vec<_> = members
        .iter()
        .map(|(name, value)| {
            let name = format!("\"{name}\":");
            // A member is sometimes left out.
            let value = text(value).prop_map(move |value| [name.as_bytes(), &value].concat());
            prop_oneof![30 => value, 1 => Just(Vec::new())]
        })
        .collect();
    members
        .prop_map(|members| {
            let present: Vec<_> = members.into_iter().filter(|one| !one.is_empty()).collect();
            [b"{", &present.join(&b","[..])[..], b"}"].concat()
        })
        .boxed()
}

/// Puts this line before an input.
fn behind(line: &'static str, inputs: Inputs) -> Inputs {
    inputs
        .prop_map(move |input| [line.as_bytes(), b"\n", &input].concat())
        .boxed()
}

#[test]
fn discovery_documents() {
    let url = r#""https://id\.[a-z]{1,3}(/[a-z]{0,3}){0,2}""#;
    let document = object(&[
        ("issuer", r#""https://id\.example""#),
        ("authorization_endpoint", url),
        ("token_endpoint", url),
        ("userinfo_endpoint", &format!("{url}|null")),
        (
            "jwks_uri",
            r#""https?://([a-z]{1,3}\.)?(localhost|example)/?""#,
        ),
        (
            "response_types_supported",
            r#"null|\["code"(,"id_token")?\]"#,
        ),
        (
            "token_endpoint_auth_methods_supported",
            r#"null|\["client_secret_(basic|post|jwt)"\]"#,
        ),
        (
            "id_token_signing_alg_values_supported",
            r#"\["(RS|ES|HS)256"(,"EdDSA")?\]"#,
        ),
        (
            "authorization_response_iss_parameter_supported",
            "true|false|null",
        ),
    ]);
    let inputs = behind("https://id.example", document);
    check(fuzz::openid, damaged(inputs, TOKENS), 3_000, 10..=50);
}

#[test]
fn key_sets() {
    let key = prop_oneof![
        1 => object(&[
            ("kty", r#""(OKP|EC)""#),
            ("crv", r#""(Ed25519|P-256)""#),
            ("x", r#""[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]""#),
            ("y", r#"null|"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]""#),
            ("use", r#"null|"sig"|"enc""#),
            ("alg", r#"null|"EdDSA"|"ES256""#),
            ("key_ops", r#"null|\["(verify|sign)"\]"#),
            ("kid", r#"null|"[a-z]{0,3}""#),
        ]),
        1 => object(&[
            ("kty", r#""RSA""#),
            ("n", r#""_[A-Za-z0-9_-]{340}[AQgw]|[A-Za-z0-9]{344}""#),
            ("e", r#""(AQAB|Aw|AAEAAQ|BA|AQ|[A-Za-z0-9]{4,8})""#),
            ("kid", r#"null|"[a-z]{0,3}""#),
        ]),
        2 => select(&Signer::ALL[..]).prop_map(|signer| signer.jwk().to_string().into_bytes()),
    ];
    let sets = proptest::collection::vec(key, 1..4);
    let sets = sets.prop_map(|keys| [b"{\"keys\":[", &keys.join(&b","[..])[..], b"]}"].concat());
    let inputs = behind("keys", sets.boxed());
    check(fuzz::openid, damaged(inputs, TOKENS), 1_000, 20..=70);
}

#[test]
fn claims() {
    let payload = object(&[
        ("iss", r#""https://id\.example""#),
        ("aud", r#""me"|\["me"\]|\["(me|you)","me"\]"#),
        ("azp", r#""me"|null"#),
        ("sub", r#""[ -!#-\[\]-~]{1,9}""#),
        ("nonce", r#""n""#),
        ("exp", r"14[34][0-9]|[2-9][0-9]{3,20}|1\.[5-9][0-9]e[3-9]"),
        ("nbf", "null|15[56][0-9]|-?1"),
        ("iat", r"1500|-1|0\.5"),
        ("name", r#"null|"Ada"|7"#),
    ]);
    let inputs = behind("claims", payload);
    check(fuzz::openid, damaged(inputs, TOKENS), 3_000, 10..=60);
}

/// Damaged anywhere, a token is never verified; the target panics if one is.
#[test]
fn tokens() {
    let payload =
        r#"{"iss":"https://id.example","aud":"me","sub":"7","nonce":"n","exp":2000,"iat":1000}"#;
    let header = object(&[
        ("alg", r#""EdDSA"|"ES256"|"RS256"|"none"|"HS256""#),
        ("kid", r#"null|"ed25519"|"rsa""#),
        ("typ", r#"null|"[Jj][Ww][Tt]"|"at\+jwt""#),
    ]);
    // Signed by another key than the header's, so that no new signing input is valid.
    let forged = header.prop_map(|header| {
        let header = String::from_utf8_lossy(&header).into_owned();
        let signer = if header.contains("ES256") {
            Signer::EdDsa
        } else {
            Signer::Es256
        };
        signer.sign(&header, "{}").into_bytes()
    });
    let signed = select(&Signer::ALL[..]).prop_map(|signer| signer.token(payload).into_bytes());
    let inputs = behind("token", prop_oneof![signed, forged].boxed());
    check(fuzz::openid, damaged(inputs, TOKENS), 1_000, 15..=40);
}
