//! Issuers and hostile discovery documents.

use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "https://id.example";
const LOCAL: &str = "http://127.0.0.1:7100";

/// A document of this issuer, as certified providers have it.
fn document(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "userinfo_endpoint": format!("{issuer}/me"),
        "jwks_uri": format!("{issuer}/jwks"),
        "response_types_supported": ["code", "code id_token"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "id_token_signing_alg_values_supported": ["RS256", "HS256", "EdDSA"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
}

/// The document with these members in place of its own.
fn changed(issuer: &str, changes: &Value) -> Value {
    let mut document = document(issuer);
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

fn read(document: &Value, issuer: &str) -> Result<Discovery, DiscoveryFault> {
    Discovery::parse(document.to_string().as_bytes(), issuer)
}

#[test]
fn the_document_is_below_the_issuer() {
    let url = |fault: UrlFault| Err(IssuerFault::Url(fault));
    for (issuer, expected) in [
        (
            "https://id.example",
            Ok("https://id.example/.well-known/openid-configuration"),
        ),
        (
            "https://id.example/",
            Ok("https://id.example/.well-known/openid-configuration"),
        ),
        (
            "https://id.example/realms/a",
            Ok("https://id.example/realms/a/.well-known/openid-configuration"),
        ),
        (
            "https://id.example/realms/a/",
            Ok("https://id.example/realms/a/.well-known/openid-configuration"),
        ),
        (
            "http://localhost:7100",
            Ok("http://localhost:7100/.well-known/openid-configuration"),
        ),
        ("http://id.example", url(UrlFault::NotHttps)),
        ("http://localhost.evil.example", url(UrlFault::NotHttps)),
        ("https://id.example?tenant=a", url(UrlFault::Query)),
        ("https://id.example/?", url(UrlFault::Query)),
        ("https://id.example#", url(UrlFault::Fragment)),
        ("https://a@id.example", url(UrlFault::UserInfo)),
        ("id.example", url(UrlFault::Malformed)),
        ("", url(UrlFault::Malformed)),
        (
            "https://login.microsoftonline.com/{tenantid}/v2.0",
            Err(IssuerFault::Templated),
        ),
    ] {
        let found = discovery_url(issuer);
        let found = found.as_ref().map(Url::as_str).map_err(|fault| *fault);
        assert_eq!(found, expected, "{issuer}");
    }
}

#[test]
fn a_document_says_where_and_how() {
    let found = read(&document(ISSUER), ISSUER).unwrap();
    let url = |path: &str| Url::parse(&format!("{ISSUER}{path}")).unwrap();
    let expected = Discovery {
        authorization_endpoint: url("/authorize"),
        token_endpoint: url("/token"),
        userinfo_endpoint: Some(url("/me")),
        jwks_uri: url("/jwks"),
        sends_iss: true,
        takes_basic: true,
        algorithms: vec![Algorithm::Rs256, Algorithm::EdDsa],
    };
    assert_eq!(found, expected);

    let required = json!({
        "issuer": ISSUER,
        "authorization_endpoint": url("/authorize?a=b").as_str(),
        "token_endpoint": url("/token").as_str(),
        "jwks_uri": url("/jwks").as_str(),
    });
    let expected = Discovery {
        authorization_endpoint: url("/authorize?a=b"),
        userinfo_endpoint: None,
        sends_iss: false,
        algorithms: Algorithm::ALL.to_vec(),
        ..expected
    };
    assert_eq!(read(&required, ISSUER).unwrap(), expected);
}

#[test]
fn a_hostile_document_is_rejected() {
    let member = |name| Some(DiscoveryFault::Member { name });
    let endpoint = |name, fault| Some(DiscoveryFault::Endpoint { name, fault });
    let other = |found: &str| {
        let found = Shown::new(found);
        Some(DiscoveryFault::OtherIssuer { found })
    };
    let long = format!("https://id.example/{}", "a".repeat(2_048));
    let template = "https://login.microsoftonline.com/{tenantid}/v2.0";
    for (change, fault) in [
        (json!({}), None),
        (
            json!({"grant_types_supported": 7, "mtls_endpoint_aliases": {}}),
            None,
        ),
        (json!({"userinfo_endpoint": null}), None),
        (json!({"issuer": null}), member("issuer")),
        (json!({"issuer": [ISSUER]}), member("issuer")),
        (json!({"issuer": ""}), other("")),
        (
            json!({"issuer": "https://id.example/"}),
            other("https://id.example/"),
        ),
        (
            json!({"issuer": "https://ID.example"}),
            other("https://ID.example"),
        ),
        (
            json!({"issuer": "http://id.example"}),
            other("http://id.example"),
        ),
        (
            json!({"issuer": "https://id.example:443"}),
            other("https://id.example:443"),
        ),
        (
            json!({"issuer": "https://\u{456}d.example"}),
            other("https://d.example"),
        ),
        (
            json!({"issuer": "https://id.example\0"}),
            other("https://id.example"),
        ),
        (json!({"issuer": template}), {
            let found = Shown::new(template);
            Some(DiscoveryFault::TemplatedIssuer { found })
        }),
        (
            json!({"authorization_endpoint": null}),
            member("authorization_endpoint"),
        ),
        (json!({"token_endpoint": 7}), member("token_endpoint")),
        (json!({"jwks_uri": {}}), member("jwks_uri")),
        (
            json!({"authorization_endpoint": "javascript:alert(1)"}),
            endpoint("authorization_endpoint", UrlFault::NotHttps),
        ),
        (
            json!({"token_endpoint": "http://id.example/token"}),
            endpoint("token_endpoint", UrlFault::NotHttps),
        ),
        (
            json!({"token_endpoint": "http://127.0.0.1:6379/"}),
            endpoint("token_endpoint", UrlFault::NotHttps),
        ),
        (
            json!({"token_endpoint": "https://a:b@id.example/"}),
            endpoint("token_endpoint", UrlFault::UserInfo),
        ),
        (
            json!({"userinfo_endpoint": "/me"}),
            endpoint("userinfo_endpoint", UrlFault::Malformed),
        ),
        (
            json!({"jwks_uri": "data:application/json,%7B%7D"}),
            endpoint("jwks_uri", UrlFault::NotHttps),
        ),
        (
            json!({"jwks_uri": "file:///etc/passwd"}),
            endpoint("jwks_uri", UrlFault::NotHttps),
        ),
        (
            json!({"jwks_uri": "https://id.example/jwks#a"}),
            endpoint("jwks_uri", UrlFault::Fragment),
        ),
        (
            json!({"jwks_uri": long}),
            endpoint("jwks_uri", UrlFault::TooLong),
        ),
        (
            json!({"jwks_uri": ""}),
            endpoint("jwks_uri", UrlFault::Malformed),
        ),
        (
            json!({"authorization_response_iss_parameter_supported": "true"}),
            member("authorization_response_iss_parameter_supported"),
        ),
        (
            json!({"response_types_supported": ["id_token", "code id_token"]}),
            Some(DiscoveryFault::NoCode),
        ),
        (
            json!({"response_types_supported": "code"}),
            member("response_types_supported"),
        ),
        (
            json!({"response_types_supported": [7]}),
            member("response_types_supported"),
        ),
        (
            json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}),
            Some(DiscoveryFault::NoClientAuth),
        ),
        (
            json!({"token_endpoint_auth_methods_supported": []}),
            Some(DiscoveryFault::NoClientAuth),
        ),
        (
            json!({"id_token_signing_alg_values_supported": ["HS256", "none", "rs256"]}),
            Some(DiscoveryFault::NoAlgorithm),
        ),
        (
            json!({"id_token_signing_alg_values_supported": []}),
            Some(DiscoveryFault::NoAlgorithm),
        ),
    ] {
        let found = read(&changed(ISSUER, &change), ISSUER);
        assert_eq!(found.err(), fault, "{change}");
    }
}

#[test]
fn bytes_that_are_no_document_are_rejected() {
    let text = document(ISSUER).to_string();
    let padded = |length: usize| text.clone() + &" ".repeat(length - text.len());
    let with = |member: &str| text.replacen('{', &format!("{{{member},"), 1);
    let deep = format!("\"deep\":{}{}", "[".repeat(20_000), "]".repeat(20_000));
    for (bytes, fault) in [
        (padded(MAX_DOCUMENT).as_bytes(), None),
        (
            padded(MAX_DOCUMENT + 1).as_bytes(),
            Some(DiscoveryFault::TooLarge),
        ),
        (with(&deep).as_bytes(), None),
        (with("\"number\":1e400").as_bytes(), None),
        (
            with("\"jwks_uri\":\"https://evil.example\"").as_bytes(),
            Some(DiscoveryFault::Ambiguous),
        ),
        (
            with("\"\\u0069ssuer\":\"https://id.example\"").as_bytes(),
            Some(DiscoveryFault::Ambiguous),
        ),
        (
            b"<!DOCTYPE html><title>Sign in</title>",
            Some(DiscoveryFault::NotObject),
        ),
        (b"", Some(DiscoveryFault::NotObject)),
        (b"[]", Some(DiscoveryFault::NotObject)),
        (b"{}", Some(DiscoveryFault::Member { name: "issuer" })),
        (
            &[b"\xef\xbb\xbf", text.as_bytes()].concat(),
            Some(DiscoveryFault::NotObject),
        ),
        (
            &[text.as_bytes(), b"\0"].concat(),
            Some(DiscoveryFault::NotObject),
        ),
        (
            &text.as_bytes()[..text.len() - 1],
            Some(DiscoveryFault::NotObject),
        ),
        (
            with("\"a\":\"\u{1}\"").as_bytes(),
            Some(DiscoveryFault::NotObject),
        ),
        (
            &[b"{\"a\":\"\xff\",", &text.as_bytes()[1..]].concat(),
            Some(DiscoveryFault::NotObject),
        ),
    ] {
        let found = Discovery::parse(bytes, ISSUER).err();
        let shown = bytes[..bytes.len().min(60)].escape_ascii();
        assert_eq!(found, fault, "{shown}");
    }
}

#[test]
fn an_issuer_on_this_host_may_have_endpoints_on_this_host() {
    let found = read(&document(LOCAL), LOCAL).unwrap();
    assert_eq!(found.token_endpoint.as_str(), format!("{LOCAL}/token"));
    let change = json!({"token_endpoint": "http://id.example/token"});
    let fault = read(&changed(LOCAL, &change), LOCAL).unwrap_err();
    let text = "the discovery document's token_endpoint is not https \
                (http is allowed only for an issuer on this host's loopback address)";
    assert_eq!(fault.to_string(), text);
}

#[test]
fn a_template_asks_for_the_tenant() {
    let common = "https://login.microsoftonline.com/common/v2.0";
    let template = "https://login.microsoftonline.com/{tenantid}/v2.0";
    let found = read(&changed(common, &json!({"issuer": template})), common);
    let text = found.unwrap_err().to_string();
    assert!(
        text.contains(template) && text.contains("tenant's ID in `issuer`"),
        "{text}"
    );
}
