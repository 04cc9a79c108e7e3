//! Which requests are admitted, and which headers are passed on.

use signpost_protocol::header::HeaderOverrides;

use super::*;
use crate::request::client::ConnectionInfo;

const PEER: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn rules(trusted_proxies: &[&str]) -> AdmissionRules {
    AdmissionRules {
        names: HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default())
            .unwrap()
            .into(),
        trusted_proxies: trusted_proxies
            .iter()
            .map(|net| net.parse().unwrap())
            .collect(),
        scheme: "http",
        max_form: 100,
        methods: Methods::USUAL,
        varies: false,
        limits: HeadLimits {
            bytes: 32768,
            headers: 100,
            query: 8192,
        },
    }
}

fn admit_with<'a>(
    method: &str,
    headers: &'a [(&'a str, &'a str)],
    framing: BodyLength,
    rules: &AdmissionRules,
) -> Result<Admitted<'a>, Rejection> {
    let peer = Peer::new(&ConnectionInfo::plain(PEER), &rules.trusted_proxies);
    admit(method.as_bytes(), headers, framing, &peer, rules)
}

fn get<'a>(headers: &'a [(&'a str, &'a str)]) -> Result<Admitted<'a>, Rejection> {
    admit_with("GET", headers, BodyLength::None, &rules(&[]))
}

fn post(content_type: &[&str], framing: BodyLength) -> Result<(), Rejection> {
    let headers: Vec<_> = content_type
        .iter()
        .map(|value| ("Content-Type", *value))
        .collect();
    admit_with("POST", &headers, framing, &rules(&[])).map(drop)
}

#[test]
fn only_get_and_post_are_allowed() {
    assert!(get(&[]).is_ok());
    for method in [
        "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "CONNECT",
    ] {
        let rejection = admit_with(method, &[], BodyLength::None, &rules(&[])).unwrap_err();
        assert!(
            matches!(rejection, Rejection::MethodNotAllowed { .. }),
            "{method}"
        );
    }
}

#[test]
fn convention_headers_are_read_in_any_letter_case() {
    let admitted = get(&[
        ("ACME-X-APP", "abcdefghijklmnopqrstuvw1"),
        ("acme-x-version", " v2 "),
        ("Acme-X-Language", "JA"),
    ])
    .unwrap();
    assert_eq!(
        admitted.app,
        AppHeader::Ident("abcdefghijklmnopqrstuvw1".parse().unwrap())
    );
    assert_eq!(admitted.version, b"v2");
    assert_eq!(
        get(&[("Acme-X-App", "not an ident")]).unwrap().app,
        AppHeader::Malformed(b"not an ident")
    );
}

#[test]
fn a_duplicate_convention_header_is_rejected() {
    for name in [
        "Acme-X-App",
        "Acme-X-Version",
        "Acme-X-Language",
        "Acme-X-Authorization",
    ] {
        let rejection = get(&[(name, "a"), (&name.to_lowercase(), "a")]).unwrap_err();
        assert!(
            matches!(rejection, Rejection::HeaderDuplicated { .. }),
            "{name}"
        );
    }
    assert!(get(&[("Accept", "a"), ("Accept", "b")]).is_ok());
}

#[test]
fn a_header_that_connection_names_counts_as_absent() {
    let admitted = get(&[
        ("Acme-X-Version", "v2"),
        ("Connection", "close, acme-x-version"),
        ("Acme-X-Version", "v3"),
    ])
    .unwrap();
    assert!(admitted.version.is_empty());
}

#[test]
fn header_names_with_underscores_are_ignored() {
    assert!(get(&[("Acme_X_Version", "v2")]).unwrap().version.is_empty());
}

#[test]
fn a_get_with_a_body_is_rejected() {
    let rules = rules(&[]);
    let rejection = admit_with("GET", &[], BodyLength::Known(1), &rules).unwrap_err();
    assert!(matches!(rejection, Rejection::BodyNotAllowed));
}

#[test]
fn a_body_without_a_declared_length_may_turn_out_to_be_empty() {
    const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
    let rules = rules(&[]);
    let admitted = |method, headers| {
        let admitted = admit_with(method, headers, BodyLength::Unknown, &rules);
        admitted.map(|admitted| admitted.body.must_be_empty())
    };
    for (method, headers, must_be_empty) in [
        ("GET", &[][..], true),
        ("GET", &[FORM], true),
        ("POST", &[], true),
        ("POST", &[("Content-Type", "application/json")], true),
        ("POST", &[FORM, ("Content-Encoding", "gzip")], true),
        ("POST", &[FORM], false),
        ("POST", &[FORM, ("Expect", "100-continue")], false),
    ] {
        let found = admitted(method, headers).unwrap();
        assert_eq!(found, must_be_empty, "{method} {headers:?}");
    }
    // Who waits for a 100 has bytes.
    let expects = [("Expect", "100-continue")];
    let rejection = admitted("GET", &expects).unwrap_err();
    assert!(matches!(rejection, Rejection::BodyNotAllowed));
    let rejection = admitted("POST", &expects).unwrap_err();
    assert!(matches!(
        rejection,
        Rejection::ContentTypeUnsupported { .. }
    ));
}

#[test]
fn only_other_protocols_than_http_and_tls_are_asked_for() {
    for (connection, upgrade, asks) in [
        ("Upgrade", "websocket", true),
        ("keep-alive, upgrade", "WebSocket", true),
        ("upgrade", "websocket/13", true),
        ("upgrade", "h2c, websocket", true),
        ("upgrade", "SPDY/3.1", true),
        ("upgrade", "tlsx", true),
        ("upgrade", "h2c", false),
        ("upgrade", "H2C , , HTTP/2.0,TLS/1.2,h2", false),
        ("upgrade", "", false),
        ("keep-alive", "websocket", false),
    ] {
        let headers = [("Upgrade", upgrade), ("Connection", connection)];
        let found = get(&headers).unwrap().asks_upgrade;
        assert_eq!(found, asks, "{connection}: {upgrade}");
    }
    assert!(!get(&[("Connection", "upgrade")]).unwrap().asks_upgrade);
    let lines = ["h2c", "websocket"].map(|upgrade| ("Upgrade", upgrade));
    let headers = [&lines[..], &[("Connection", "upgrade")]].concat();
    assert!(get(&headers).unwrap().asks_upgrade);
}

#[test]
fn a_body_must_be_a_utf8_form() {
    for good in [
        "application/x-www-form-urlencoded",
        "Application/X-WWW-Form-URLEncoded",
        "application/x-www-form-urlencoded; charset=UTF-8",
        "application/x-www-form-urlencoded;charset=\"utf-8\"",
    ] {
        assert!(post(&[good], BodyLength::Known(1)).is_ok(), "{good}");
    }
    for bad in [
        &[][..],
        &["application/json"],
        &["application/x-www-form-urlencoded; charset=latin1"],
        &[
            "application/x-www-form-urlencoded",
            "application/x-www-form-urlencoded",
        ],
    ] {
        let rejection = post(bad, BodyLength::Known(1)).unwrap_err();
        assert!(
            matches!(rejection, Rejection::ContentTypeUnsupported { .. }),
            "{bad:?}"
        );
    }
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Encoding", "identity"),
    ];
    assert!(admit_with("POST", &headers, BodyLength::Known(1), &rules(&[])).is_err());
}

#[test]
fn without_a_body_the_content_type_does_not_matter() {
    assert!(post(&["application/json"], BodyLength::None).is_ok());
}

#[test]
fn the_limit_of_the_declared_length_is_inclusive() {
    let form = &["application/x-www-form-urlencoded"];
    assert!(post(form, BodyLength::Known(100)).is_ok());
    let rejection = post(form, BodyLength::Known(101)).unwrap_err();
    assert!(matches!(rejection, Rejection::BodyTooLarge { limit: 100 }));
}

#[test]
fn ids_are_accepted_from_trusted_proxies_only() {
    let headers = [("X-Request-Id", "theirs"), ("traceparent", TRACE)];
    assert!(get(&headers).unwrap().request_id.is_none());
    let admitted = admit_with("GET", &headers, BodyLength::None, &rules(&["127.0.0.0/8"])).unwrap();
    assert_eq!(admitted.request_id.unwrap().as_str(), "theirs");
    assert_eq!(admitted.traceparent.unwrap(), TRACE);
    for bad in [
        "00-a-b-00",
        "",
        &TRACE.to_uppercase(),
        &format!("{TRACE}-x"),
        &TRACE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
        &TRACE.replace("b7ad6b7169203331", &"0".repeat(16)),
        &TRACE.replacen("00", "ff", 1),
        &format!("{TRACE}0").replacen("00", "01", 1),
    ] {
        let headers = [("traceparent", bad)];
        let rules = rules(&["127.0.0.0/8"]);
        let admitted = admit_with("GET", &headers, BodyLength::None, &rules).unwrap();
        assert!(admitted.traceparent.is_none(), "{bad}");
    }
}

#[test]
fn a_traceparent_of_a_later_version_is_passed_on_in_the_known_one() {
    let rules = rules(&["127.0.0.0/8"]);
    for (given, passed) in [
        (TRACE.to_owned(), TRACE.to_owned()),
        (TRACE.replace("-01", "-03"), TRACE.replace("-01", "-03")),
        (TRACE.replacen("00", "01", 1), TRACE.to_owned()),
        (
            format!("{TRACE}-more").replacen("00", "cc", 1),
            TRACE.to_owned(),
        ),
        (
            TRACE.replacen("00", "01", 1).replace("-01", "-fe"),
            TRACE.replace("-01", "-00"),
        ),
    ] {
        let headers = [("traceparent", &*given)];
        let admitted = admit_with("GET", &headers, BodyLength::None, &rules).unwrap();
        assert_eq!(admitted.traceparent.unwrap(), passed, "{given}");
    }
}

#[test]
fn an_invalid_traceparent_is_ignored_with_its_tracestate() {
    const TRUSTED: [&str; 1] = ["127.0.0.0/8"];
    let zero = TRACE.replace("b7ad6b7169203331", &"0".repeat(16));
    let state = ("tracestate", "a=b");
    assert_eq!(
        passed(&[state, ("traceparent", TRACE)], &TRUSTED),
        ["tracestate"]
    );
    for headers in [
        &[state][..],
        &[state, ("traceparent", &zero)],
        &[("traceparent", TRACE), state, ("traceparent", TRACE)],
    ] {
        assert_eq!(passed(headers, &TRUSTED), [""; 0], "{headers:?}");
    }
    let headers = [("traceparent", &*zero)];
    let admitted = admit_with("GET", &headers, BodyLength::None, &rules(&TRUSTED)).unwrap();
    assert_eq!(admitted.traceparent, None);
}

/// The headers that are passed to the backend.
fn passed(headers: &[(&str, &str)], trusted_proxies: &[&str]) -> Vec<String> {
    let rules = rules(trusted_proxies);
    let peer = Peer::new(&ConnectionInfo::plain(PEER), &rules.trusted_proxies);
    let admitted = admit(b"GET", headers, BodyLength::None, &peer, &rules).unwrap();
    let indices = admitted.passed_fields.iter();
    indices
        .map(|&index| headers[usize::from(index)].0.to_owned())
        .collect()
}

#[test]
fn a_client_can_neither_set_nor_imitate_trusted_headers() {
    for name in [
        "x-gateway-app-id",
        "x_gateway_app_id",
        "x-gateway_secret",
        "x-gateway-anything",
        "acme_x_app",
        "acme-x_version",
        "forwarded",
        "x-forwarded-for",
        "x_forwarded_for",
        "x-forwarded-prefix",
        "x-real-ip",
        "x-request-id",
        "x_request_id",
        "traceparent",
        "tracestate",
        "x-original-url",
        "x-rewrite-url",
        "x-http-method-override",
        "x_http_method_override",
        "transfer_encoding",
        "content_length",
        "x-original-uri",
        "true-client-ip",
        "x-override-url",
        "x-envoy-original-path",
        "x-original-forwarded-for",
        "x_original_anything",
        "cf-connecting-ip",
        "cf_connecting_ip",
        "client-ip",
        "x-client-ip",
        "x_client-ip",
        "x-cluster-client-ip",
        "x-method",
        "x_method",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "transfer-encoding",
        "proxy-connection",
        "proxy-authorization",
    ] {
        assert_eq!(passed(&[(name, "a")], &[]), [""; 0], "{name}");
        let shouted = name.to_uppercase();
        assert_eq!(passed(&[(&shouted, "a")], &[]), [""; 0], "{shouted}");
    }
    for name in [
        "accept",
        "acme-x-app",
        "acme-x-authorization",
        "cookie",
        "x_other",
        "content-type",
        "x-custom",
    ] {
        assert_eq!(passed(&[(name, "a")], &[]), [name]);
    }
}

#[test]
fn a_trusted_proxy_may_set_origin_headers_only() {
    const TRUSTED: [&str; 1] = ["127.0.0.0/8"];
    for name in ["x-real-ip", "x-forwarded-port"] {
        assert_eq!(passed(&[(name, "a")], &TRUSTED), [name]);
    }
    for name in [
        "x-gateway-app",
        "x_forwarded_for",
        "x-original-url",
        "transfer_encoding",
        "content_length",
        "x-original-uri",
        "x-client-ip",
        "cf-connecting-ip",
        "x-override-url",
        "x-envoy-original-path",
        "connection",
    ] {
        assert_eq!(passed(&[(name, "a")], &TRUSTED), [""; 0], "{name}");
    }
}

#[test]
fn headers_that_connection_names_are_stripped_except_essential_ones() {
    let headers = [
        ("host", "h"),
        ("connection", "Acme-X-App, host, x-own, content-type"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("acme-x-app", "a"),
        ("x-own", "b"),
        ("acme_x_app", "c"),
        ("x-kept", "d"),
    ];
    assert_eq!(passed(&headers, &[]), ["content-type", "x-kept"]);
}

#[test]
fn host_and_length_are_not_passed_since_the_head_writer_sets_them() {
    let headers = [("Host", "h"), ("Content-Length", "0"), ("X-Kept", "a")];
    assert_eq!(passed(&headers, &[]), ["X-Kept"]);
}

#[test]
fn the_number_of_names_in_connection_is_limited() {
    let named = |count| vec!["x"; count].join(",");
    assert!(get(&[("Connection", &named(64))]).is_ok());
    let headers = [("Connection", &*named(60)), ("Connection", &*named(5))];
    let rejection = get(&headers).unwrap_err();
    assert!(matches!(
        rejection,
        Rejection::HeadersTooLarge { headers: 100, .. }
    ));
}

/// What a version with these rules makes of a declared body.
fn checked(
    (method, bodies): (Method, Bodies),
    content_type: &str,
    body: BodyLength,
    expects: bool,
) -> &'static str {
    let mut body_type = BodyType::default();
    body_type.note_content_type(content_type.as_bytes());
    let rules = RequestRules {
        bodies,
        max_body: 1000,
        ..RequestRules::USUAL
    };
    match check_body(method, (body, expects), body_type, (&rules, 100)) {
        Ok(BodyKind::None) => "none",
        Ok(BodyKind::Empty) => "empty",
        Ok(BodyKind::Form) => "form",
        Ok(BodyKind::Other(1000)) => "other",
        Ok(BodyKind::Other(_) | BodyKind::Unjudged(_)) => "?",
        Err(Rejection::BodyNotAllowed) => "not allowed",
        Err(Rejection::ContentTypeUnsupported { beside: None }) => "no form",
        Err(Rejection::ContentTypeUnsupported { .. }) => "no form nor JSON",
        Err(Rejection::BodyTooLarge { limit: 100 }) => "too large for a form",
        Err(Rejection::BodyTooLarge { limit: 1000 }) => "too large",
        Err(_) => "?",
    }
}

#[rustfmt::skip] // A table: one case a line.
#[test]
fn a_declared_body_is_judged_by_method_type_and_length() {
    const FORM: &str = "application/x-www-form-urlencoded";
    const JSON: &str = "application/problem+json";
    let known = BodyLength::Known;
    for method in [Method::Post, Method::Put, Method::Patch, Method::Delete] {
        for bodies in [Bodies::Form, Bodies::Json, Bodies::Any] {
            let of = |content_type, body, expects| checked((method, bodies), content_type, body, expects);
            for content_type in [FORM, JSON, "text/plain", ""] {
                for expects in [false, true] {
                    assert_eq!(of(content_type, BodyLength::None, expects), "none");
                }
            }
            assert_eq!(of(FORM, known(100), true), "form");
            assert_eq!(of(FORM, BodyLength::Unknown, true), "form");
            assert_eq!(of(FORM, known(101), false), "too large for a form");
            let (json, large, text, announced) = match bodies {
                Bodies::Form => ("no form", "no form", "no form", "empty"),
                Bodies::Json => ("other", "too large", "no form nor JSON", "empty"),
                Bodies::Any => ("other", "too large", "other", "other"),
            };
            assert_eq!(of(JSON, known(1000), true), json);
            assert_eq!(of(JSON, known(1001), false), large);
            assert_eq!(of("text/plain", known(1), false), text);
            assert_eq!(of("text/plain", BodyLength::Unknown, false), announced);
            // A client that waits for a 100 has bytes.
            assert_eq!(of("text/plain", BodyLength::Unknown, true), text);
        }
    }
    for method in [Method::Get, Method::Head] {
        for bodies in [Bodies::Form, Bodies::Any] {
            for content_type in [FORM, JSON, ""] {
                let of = |body, expects| checked((method, bodies), content_type, body, expects);
                assert_eq!(of(BodyLength::None, true), "none");
                assert_eq!(of(BodyLength::Unknown, false), "empty");
                assert_eq!(of(BodyLength::Unknown, true), "not allowed");
                assert_eq!(of(known(1), false), "not allowed");
            }
        }
    }
}
